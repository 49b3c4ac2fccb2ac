"""Answers with several groupings at once: ROLLUP, CUBE and GROUPING SETS.

Each grouping is a query of its own, with its own estimates and intervals: a subtotal is not the
sum of the estimates below it, where the release says more about it than they do together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from voile.answering.evidence import Evidence
from voile.answering.walk import AnswerWalk, at_once, places_in_order
from voile.estimate import Answer
from voile.query.query import Order, Query
from voile.units import counted

UNLIKE = "each subtotal is estimated by itself: groups need not add up to it"


def answer_sets(
    query: Query,
    walks: Sequence[AnswerWalk[Evidence]],
    confidence: float,
    *,
    simultaneous: bool = False,
) -> Answer:
    """One answer from those of all groupings, sorted and cut together."""
    intervals = sum(walk.intervals(confidence) for walk in walks) if simultaneous else 1
    names = [column.name for column in query.columns]
    rows: list[dict[str, Any]] = []
    keys: list[list[Any]] = [[] for _ in query.order]
    for chosen, walk in zip(query.sets, walks, strict=True):
        kept = walk.kept_groups()
        found = [walk.row(int(i), intervals, confidence) for i in kept]
        rows += [{name: row.get(name) for name in names} for row in found]
        for one, order in zip(keys, query.order, strict=True):
            one.extend(order_keys(walk, order, chosen, kept))
    places = np.arange(len(rows))
    for one, order in reversed(list(zip(keys, query.order, strict=True))):
        places = places[places_in_order([one[i] for i in places], order)]
    last = None if query.limit is None else query.offset + query.limit
    shown = tuple(rows[i] for i in places[query.offset : last])
    first = walks[0]
    notes = dict.fromkeys(note for walk in walks for note in walk.notes())
    covers = first.covers(simultaneous=False)
    if simultaneous:
        covers = at_once(covers, counted(sum(w.groups.possible for w in walks), "group"))
    numbers = {c.name: not isinstance(c.source, int) for c in query.columns}
    assumption = first.evidence.assumption(first.estimated)
    return Answer(shown, confidence, covers, (*notes, UNLIKE), numbers, assumption)


def order_keys(
    walk: AnswerWalk[Evidence], order: Order, chosen: tuple[int, ...], kept: Any
) -> list[Any]:
    """What the groups of one grouping are sorted by: NULL for a column that it has not."""
    if not isinstance(order.source, int):
        return list(walk.column(order.source).value[kept].tolist())
    if order.source not in chosen:
        return [None] * len(kept)
    place = chosen.index(order.source)
    return [walk.groups.keys[i][place] for i in kept]
