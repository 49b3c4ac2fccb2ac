"""Groups whose expression cuts bins, such as months of days in quarters, or ages under 40.

Rows are known by their bins, so a release cannot say which of these groups a row is in. Each group
is asked for by a condition instead, which interpolates within the bins that it cuts, and has an
interval that includes what they hide (binned.py):

    select x > 3 as rich, count(*) from t group by rich

is, for rich = true,

    select count(*) from t where (x > 3) = true
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from voile.answering.binned import CUTTING, BinnedQuery
from voile.answering.evidence import Evidence
from voile.answering.shares import equals
from voile.answering.subtotals import AnswerPart, answer_parts
from voile.answering.walk import AnswerWalk, grouped_by
from voile.estimate import Answer
from voile.query.predicate import both, wording

MOST_KEYS = 100
"""Groups that are asked for one by one."""


def answer_cut_groups(
    binned: BinnedQuery,
    walk_of: Callable[[Any], AnswerWalk[Evidence]],
    confidence: float,
    *,
    simultaneous: bool = False,
) -> Answer | None:
    """The answer with an interval for each group; None where the groups cannot be listed."""
    query, lost = binned.original, binned.lost_groups
    keys = binned.keys_of(lost, MOST_KEYS)
    if keys is None:
        return None
    kept = tuple(i for i in range(len(query.groups)) if i not in lost)
    parts = []
    for key in keys:
        condition = query.predicate
        for place, value in zip(lost, key, strict=True):
            condition = both(condition, equals(query.groups[place], value, binned.schema))
        walk = walk_of(replace(grouped_by(query, kept), predicate=condition))
        parts.append(AnswerPart(walk, kept, dict(zip(lost, key, strict=True))))
    said = dict.fromkeys(note for part in parts for note in part.walk.notes())
    groups = [query.groups[place] for place in lost]
    read = {name for group in groups for name in group.attributes}
    cut = binned.cut_note([wording(group) for group in groups], read)
    notes = [note for note in said if CUTTING.partition("{}")[2] not in note]
    return answer_parts(query, parts, (*notes, cut), confidence, simultaneous=simultaneous)
