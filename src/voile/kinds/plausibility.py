"""Whether what a release shows can have come from the mechanism that it states.

How a release was made cannot be seen from it. But chance leaves traces: noise that reaches every
tuple of a domain is found everywhere in it, whatever the table was. So each test here is of one
kind: *at least* so many rows must be in a part of the domain, for noise alone puts them there. A
release that fails was not made as it says, except with probability `FALSE_ALARM`; one that passes
may still have been made otherwise.

Every probability is a bound that holds for all tables (Chernoff), never an approximation. With X
binomial of N trials and chance p: ln P(X ≤ k) ≤ −N·KL(k/N ‖ p) for k ≤ N·p, and the same for k ≥
N·p from above. The counts of disjoint cells are independent, or negatively associated where rows
are given out one by one; in both cases the number of cells whose chance is below u is dominated in
its tail by a binomial law with chance u (Dubhashi and Ranjan, 1998), which the second test of
`DomainCells.least_chance` uses: it sees many cells that are a little too empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats, Ints
from voile.errors import ReleaseError

FALSE_ALARM = 1e-9
"""The probability that a sound release is called implausible, at most."""
LEVELS = (1e-6, 1e-4, 1e-3, 1e-2, 5e-2)
"""Chances of a cell of which it is counted how many cells are below."""
MOST_CELLS = 2**17
MOST_SETS = 48
"""Of the sets of columns whose cells are counted."""
MOST_PARTS = 512
"""Into which the values of a long column are divided."""
LEAST_MEAN = 0.25
"""Expected rows of a cell: where there are fewer, empty cells say nothing."""
MOST_COUNTED = 2**24
"""Rows times sets of columns; large releases are looked at in fewer ways."""


def lower_tail(seen: Floats, trials: Floats, chance: Floats) -> Floats:
    """ln of a bound of P(X ≤ seen), X binomial; 0 where so few are no surprise."""
    few = np.minimum(seen, trials * chance)
    return -_divergence(few, trials, chance)


def upper_tail(seen: Floats, trials: Floats, chance: Floats) -> Floats:
    """ln of a bound of P(X ≥ seen), X binomial; 0 where so many are no surprise."""
    many = np.minimum(np.maximum(seen, trials * chance), trials)
    return -_divergence(many, trials, chance)


def _divergence(seen: Floats, trials: Floats, chance: Floats) -> Floats:
    """trials · KL(seen/trials ‖ chance); trials may be more than a float counts one by one."""
    seen, trials, chance = (np.asarray(x, np.float64) for x in (seen, trials, chance))
    with np.errstate(divide="ignore", invalid="ignore"):
        hits = np.where(seen > 0, seen * np.log(seen / (trials * chance)), 0.0)
        misses = (trials - seen) * (np.log1p(-seen / trials) - np.log1p(-chance))
    found: Floats = hits + np.where(seen < trials, misses, 0.0)
    return np.maximum(np.nan_to_num(found, nan=0.0, posinf=np.inf), 0.0)


# ----------------------------------------------------------------------
# cells of the domain, and how many rows are in each


@dataclass(frozen=True, eq=False)
class ColumnParts:
    """A column's values in parts of equal length, each with its share of the noise."""

    width: int
    shares: Floats

    def of(self, codes: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """The part that each code is in."""
        return codes.astype(np.int64) // self.width


@dataclass(eq=False)
class DomainCells:
    """The cells that some columns divide the domain into, with what was counted in each."""

    names: tuple[str, ...]
    columns: tuple[int, ...]
    parts: tuple[ColumnParts, ...]
    shares: Floats
    """For each cell, the chance that something drawn from the noise falls into it."""
    seen: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.seen = np.zeros(len(self.shares), np.int64)

    def add(self, codes: Sequence[npt.NDArray[np.integer]]) -> None:
        """Count rows, given by the codes of all columns."""
        self.seen += np.bincount(self.places(codes), minlength=len(self.seen))

    def places(self, codes: Sequence[npt.NDArray[np.integer]]) -> npt.NDArray[np.int64]:
        """The cell that each row is in."""
        cell = np.zeros(len(codes[0]), np.int64)
        for column, parts in zip(self.columns, self.parts, strict=True):
            cell *= len(parts.shares)
            cell += parts.of(codes[column])
        return cell

    def least_chance(self, tails: Floats) -> float:
        """ln of the chance of what is least likely, given ln P of each cell's count.

        Corrected for the number of cells and of levels: any of them may be the one.
        """
        single = float(tails.min()) + math.log(len(tails))
        below = np.array([(tails <= math.log(level)).sum() for level in LEVELS], np.float64)
        many = upper_tail(below, np.full(len(LEVELS), len(tails), float), np.array(LEVELS))
        return min(single, float(many.min()) + math.log(len(LEVELS))) + math.log(2)


def cells_for(
    names: Sequence[str],
    masses: Sequence[Floats | int | None],
    expected: float,
    rows: int,
) -> list[DomainCells]:
    """Sets of one to three columns whose cells are worth looking at.

    `masses` are the chances of each column's values under the noise, or their number where all
    are alike, or None for a column that has no noise. `expected` is how much noise there is.
    """
    usable = [i for i, mass in enumerate(masses) if mass is not None and size_of(mass) > 1]
    parted = {i: divided(mass) for i in usable if (mass := masses[i]) is not None}
    found = []
    for width in (1, 2, 3):
        for columns in combinations(usable, width):
            number = math.prod(len(parted[i].shares) for i in columns)
            if number <= MOST_CELLS and expected / number >= LEAST_MEAN:
                found.append((number, columns))
    # The finest show most; and those of one column are few.
    found.sort(key=lambda entry: (len(entry[1]) > 1, -entry[0]))
    most = max(len(usable), min(MOST_SETS, MOST_COUNTED // max(1, rows)))
    return [cells_of(names, columns, parted) for _, columns in found[:most]]


def cells_of(
    names: Sequence[str],
    columns: tuple[int, ...],
    parted: dict[int, ColumnParts],
) -> DomainCells:
    """The cells of these columns."""
    shares = np.ones(1)
    for i in columns:
        shares = np.multiply.outer(shares, parted[i].shares).ravel()
    parts = tuple(parted[i] for i in columns)
    return DomainCells(tuple(names[i] for i in columns), columns, parts, shares)


def size_of(mass: Floats | int) -> int:
    """How many values a column has."""
    return mass if isinstance(mass, int) else len(mass)


def divided(mass: Floats | int) -> ColumnParts:
    """A column in at most so many parts; a range may be too long to list."""
    size = size_of(mass)
    width = -(-size // MOST_PARTS)
    number = -(-size // width)
    if isinstance(mass, int):
        shares = np.full(number, width / size)
        shares[-1] = (size - width * (number - 1)) / size
        return ColumnParts(width, shares)
    return ColumnParts(width, np.add.reduceat(mass, np.arange(0, size, width)))


# ----------------------------------------------------------------------
# the verdict over all that was looked at


@dataclass(frozen=True)
class Surprise:
    """One thing that was looked at: what it is, and ln of its chance."""

    what: str
    log_chance: float


def judge(surprises: Sequence[Surprise]) -> None:
    """Refuse a release of which one thing is too unlikely, given that so many were looked at."""
    if not surprises:
        return
    worst = min(surprises, key=lambda one: one.log_chance)
    if worst.log_chance + math.log(len(surprises)) < math.log(FALSE_ALARM):
        digits = worst.log_chance / math.log(10)
        raise ReleaseError(
            f"the rows are not what the stated noise makes: {worst.what} "
            f"(probability below 1e{math.ceil(digits):d})",
            hint="do not use it: it was not made as it says",
        )
