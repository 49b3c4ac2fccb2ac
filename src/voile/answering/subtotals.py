"""Answers with several groupings at once: ROLLUP, CUBE and GROUPING SETS.

Each grouping is a query of its own, with its own estimates and intervals: a subtotal is not the
sum of the estimates below it, where the release says more about it than they do together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from voile.answering.evidence import Evidence
from voile.answering.walk import AnswerWalk, at_once, places_in_order
from voile.estimate import Answer
from voile.query.query import Order, Query
from voile.units import counted

UNLIKE = "each subtotal is estimated by itself: groups need not add up to it"


@dataclass(frozen=True, eq=False)
class AnswerPart:
    """Some groups of an answer, from a query of their own."""

    walk: AnswerWalk[Evidence]
    chosen: tuple[int, ...]
    """Which of the groups' keys this query has, in its order."""
    fixed: Mapping[int, Any] = field(default_factory=dict)
    """Keys that all its groups have."""

    def row(self, names: Mapping[str, Any], i: int, intervals: int, level: float) -> dict[str, Any]:
        """One group; NULL for a key that it has not."""
        found = self.walk.row(i, intervals, level)
        return {
            name: self.fixed[source] if source in self.fixed else found.get(name)
            for name, source in names.items()
        }

    def order_keys(self, order: Order, kept: Any) -> list[Any]:
        """What the groups are sorted by: NULL for a column that they have not."""
        if not isinstance(order.source, int):
            return list(self.walk.column(order.source).value[kept].tolist())
        if order.source not in self.chosen:
            return [self.fixed.get(order.source)] * len(kept)
        place = self.chosen.index(order.source)
        return [self.walk.groups.keys[i][place] for i in kept]


def answer_sets(
    query: Query,
    walks: Sequence[AnswerWalk[Evidence]],
    confidence: float,
    *,
    simultaneous: bool = False,
) -> Answer:
    """One answer from those of all groupings, sorted and cut together."""
    parts = [AnswerPart(walk, chosen) for walk, chosen in zip(walks, query.sets, strict=True)]
    notes = dict.fromkeys(note for walk in walks for note in walk.notes())
    return answer_parts(query, parts, (*notes, UNLIKE), confidence, simultaneous=simultaneous)


def answer_parts(
    query: Query,
    parts: Sequence[AnswerPart],
    notes: tuple[str, ...],
    confidence: float,
    *,
    simultaneous: bool = False,
) -> Answer:
    """One answer from those of its parts, sorted and cut together."""
    walks = [part.walk for part in parts]
    intervals = sum(walk.intervals(confidence) for walk in walks) if simultaneous else 1
    names = {column.name: column.source for column in query.columns}
    rows: list[dict[str, Any]] = []
    keys: list[list[Any]] = [[] for _ in query.order]
    for part in parts:
        kept = part.walk.kept_groups()
        rows += [part.row(names, int(i), intervals, confidence) for i in kept]
        for one, order in zip(keys, query.order, strict=True):
            one.extend(part.order_keys(order, kept))
    places = np.arange(len(rows))
    for one, order in reversed(list(zip(keys, query.order, strict=True))):
        places = places[places_in_order([one[i] for i in places], order)]
    last = None if query.limit is None else query.offset + query.limit
    shown = tuple(rows[i] for i in places[query.offset : last])
    first = walks[0]
    covers = max((walk.covers(simultaneous=False) for walk in walks), key=len)
    if simultaneous:
        covers = at_once(covers, counted(sum(w.groups.possible for w in walks), "group"))
    numbers = {c.name: not isinstance(c.source, int) for c in query.columns}
    assumption = first.evidence.assumption(first.estimated)
    return Answer(shown, confidence, covers, notes, numbers, assumption)
