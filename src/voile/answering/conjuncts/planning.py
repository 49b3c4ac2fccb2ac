"""Which tables answer a query: one margin of at most d columns, or two of them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from voile.answering.axes import ClassAxis
from voile.answering.conjuncts.joints import (
    Average,
    JointMargins,
    TableCells,
    Variances,
    averaged,
    crossed,
)
from voile.answering.conjuncts.margins import Margin, margin_of
from voile.answering.conjuncts.source import Tables
from voile.arrays import Floats
from voile.errors import QueryError

Places = tuple[int, ...]
MOST_PAIRS = 2**22
"""Classes of one part times classes of the other."""


@dataclass(frozen=True, eq=False)
class Direct:
    """All that is read is in one margin."""

    margin: Margin
    parts: Variances

    def variance(self, slope: Floats) -> Floats:
        found = np.einsum("gi,gij,gj->g", slope, self.parts.noise, slope)
        return np.asarray(np.maximum(found, 0.0))

    def estimates(self, cells: TableCells) -> Floats:
        return cells.summed(self.margin.totals[cells.along(self.margin)])


Plan = Direct | Average


@dataclass(frozen=True, eq=False)
class Planner:
    """Finds the plan with the least error."""

    tables: Tables
    axes: Sequence[ClassAxis]
    _margins: dict[Places, Margin] = field(default_factory=dict)

    def plan(self, read: Places, cells: TableCells) -> Plan:
        """`read` are the axes that what is asked depends on."""
        if len(read) <= self.tables.arity:
            return self._direct(read, cells)
        self._check(read)
        found = [self._joint(a, b) for a, b in splits(read, self.tables.arity)]
        if len(read) == 2 * self.tables.arity:
            return averaged(found, cells)  # no two of them have a table in common
        return min((averaged([one], cells) for one in found), key=error)

    def _direct(self, read: Places, cells: TableCells) -> Direct:
        margin = self.margin(read)
        noise, at = margin.total_noise, cells.along(margin)
        ends = cells.summed(noise.along[at])
        own = crossed(cells.payoffs, noise.own[at], cells.group, cells.groups)
        found = own - noise.rate * ends[:, :, None] * ends[:, None, :]
        nothing = np.zeros_like(found)
        return Direct(margin, Variances(nothing, nothing, nothing, found))

    def margin(self, places: Places) -> Margin:
        if places not in self._margins:
            self._margins[places] = margin_of(places, self.axes, self.tables)
        return self._margins[places]

    def _joint(self, left: Places, right: Places) -> JointMargins:
        found = self.margin(left), self.margin(right)
        if len(found[0].totals) * len(found[1].totals) > MOST_PAIRS:
            raise QueryError(
                f"the query tells {len(found[0].totals):,} classes of "
                f"{self._names(left)} and {len(found[1].totals):,} of {self._names(right)} apart, "
                "which is too much together",
                hint="group by coarser values, as in floor(age / 10) * 10",
            )
        return JointMargins(*found, self.tables)

    def _check(self, read: Places) -> None:
        arity, halves = self.tables.arity, self.tables.halves
        most = 2 * arity if halves else arity
        if len(read) <= most:
            return
        more = "" if halves else ", and of all rows together only"
        raise QueryError(
            f"it depends on {len(read)} columns at once ({self._names(read)}); the release has "
            f"tables of {arity}{more}, which answer questions about up to {most}",
            hint=f"ask about {most} columns or fewer; whoever holds the table can publish with "
            f"--direct --arity {len(read)}",
        )

    def _names(self, places: Places) -> str:
        return ", ".join(self.axes[j].attribute for j in places)


def splits(read: Places, arity: int) -> Iterator[tuple[Places, Places]]:
    """Pairs of parts of at most d columns that have all of them, each pair once.

    Parts overlap only where both are as large as can be: the smaller of two parts is known from
    several tables, and needs no more columns.
    """
    whole = set(read)
    for size in range(1, arity + 1):
        for left in combinations(read, size):
            rest = tuple(j for j in read if j not in left)
            if len(rest) <= arity and (len(left), left) <= (len(rest), rest):
                yield left, rest
            if size == arity:
                for right in combinations(read, arity):
                    overlap = set(left) & set(right)
                    if left < right and overlap and set(left) | set(right) == whole:
                        yield left, right


def error(plan: Average) -> float:
    """How large the errors of the first term are expected to be, of one way to part it."""
    return float(np.maximum(plan.parts[0].expected[:, 0, 0], 0.0).sum())
