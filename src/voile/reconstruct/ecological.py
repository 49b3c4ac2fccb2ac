"""Who has which record, where only the records of whole groups are known.

Rows with attributes x are in groups, and of every group it is known how many of its rows have each
record s, not which. If x predicts s alike in all groups, they reveal it together: from groups with
many young rows and many students one learns that the young study. The model is

  P(s|x) ∝ exp(Σ_j b_j[x_j, s]),

with an effect of every value of every attribute. Each step hands the records of every group out to
its rows in proportion to P(s|x), scaled to the group's margins (the table of largest entropy
relative to P), and then moves the effects so that P's totals over the values of each attribute
approach those of what was handed out (generalized iterative scaling). Totals are smoothed by
`prior` rows that are spread as all records are, so that rare values stay near them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats, Ints

STEPS = 50
SCALINGS = 3
LAST_SCALINGS = 50
PRIOR = 20.0
NEAR = 1e-9


@dataclass(frozen=True, eq=False)
class RecordGroups:
    """Units of rows that are alike, and kinds of records, each pair of which shares a group."""

    kind: Ints
    """(units,): which combination of attributes a unit has."""
    attributes: Sequence[Ints]
    """For each attribute, its value for every kind."""
    rows: Floats
    """(units,)"""
    record: Ints
    """(entries,): which record an entry of a group's histogram is of."""
    records: int
    counts: Floats
    """(entries,)"""
    unit_of: Ints
    """(pairs,)"""
    entry_of: Ints
    """(pairs,)"""


def hand_out(groups: RecordGroups, steps: int = STEPS, prior: float = PRIOR) -> Floats:
    """For every pair, how many of the unit's rows have the record."""
    record_of = groups.record[groups.entry_of]
    kind_of = groups.kind[groups.unit_of]
    place = kind_of * groups.records + record_of
    kinds = len(groups.attributes[0]) if groups.attributes else 1
    weights = np.bincount(groups.kind, groups.rows, kinds)
    overall = np.bincount(groups.record, groups.counts, groups.records)
    overall = overall / overall.sum()
    effects = [np.zeros((int(values.max()) + 1, groups.records)) for values in groups.attributes]
    base = np.log(np.maximum(overall, 1e-300))
    model = np.broadcast_to(overall, (kinds, groups.records)).copy()
    handed = scaled(model.ravel()[place], groups, SCALINGS)
    for _ in range(steps):
        found = np.bincount(place, handed, kinds * groups.records).astype(np.float64)
        expected = weights[:, None] * model
        for values, effect in zip(groups.attributes, effects, strict=True):
            seen, modelled = (
                by_value(values, len(effect), x) + prior * overall
                for x in (found.reshape(kinds, -1), expected)
            )
            np.add(effect, np.log(seen / modelled) / len(effects), out=effect)
        logits = base + sum(
            effect[values] for values, effect in zip(groups.attributes, effects, strict=True)
        )
        logits -= logits.max(axis=1, keepdims=True)
        model = np.exp(logits)
        model /= model.sum(axis=1, keepdims=True)
        handed = scaled(np.maximum(model.ravel()[place], 1e-12), groups, SCALINGS)
    return scaled(np.maximum(handed, 1e-12), groups, LAST_SCALINGS)


def by_value(values: Ints, count: int, table: Floats) -> Floats:
    """The lines of a table, summed by a value of theirs."""
    found = np.zeros((count, table.shape[1]))
    np.add.at(found, values, table)
    return found


def scaled(table: Floats, groups: RecordGroups, rounds: int) -> Floats:
    """Scaled to the rows of every unit and the counts of every entry in turn."""
    for _ in range(rounds):
        sums = np.bincount(groups.entry_of, table, len(groups.counts))
        table = table * (groups.counts / sums)[groups.entry_of]
        sums = np.bincount(groups.unit_of, table, len(groups.rows))
        factor = groups.rows / sums
        table = table * factor[groups.unit_of]
        if np.abs(factor - 1).max(initial=0.0) < NEAR:
            break
    return table


# ---------------------------------------------------------------------- values in intervals
# How values are spread, where each is known only to lie in an interval.
#
# Of every row an interval of positions is known. The distribution that makes what is known most
# likely is the fixed point of Turnbull's steps: each interval hands its rows out to its positions
# in proportion to how likely those are, and what a position is handed is how likely it is next.
# One row that may be anywhere is added, so that no position becomes impossible; and few steps are
# made from an even spread, for the limit piles everything up on a few positions.


def spread_in_intervals(
    low: npt.NDArray[np.integer],
    high: npt.NDArray[np.integer],
    rows: Floats,
    size: int,
    steps: int = STEPS,
) -> Floats:
    """The chance of each of `size` positions, from intervals low … high of so many rows each."""
    likely = np.full(size, 1 / size)
    first, after = low.astype(np.int64), high.astype(np.int64) + 1
    total = float(rows.sum())
    for _ in range(steps if total else 0):
        summed = np.concatenate([[0.0], np.cumsum(likely)])
        each = rows / (summed[after] - summed[first])
        opened = np.bincount(first, each, size + 1) - np.bincount(after, each, size + 1)
        handed = np.maximum(np.cumsum(opened)[:size], 0.0) * likely
        likely = (handed + 1 / size) / (total + 1)
    return likely
