"""The error to expect of published tables, beside that of larger tables at the same promise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from voile.records import Record

__all__ = ["Published", "break_even", "halves_needed"]

SHARE = 0.25
"""Of the rows that have each part of the conjunction whose error is stated."""
TOLERATED, MISSED = 0.05, 0.05
"""The error, and the chance that some conjunct has a larger one, at which figures are compared."""


@dataclass(frozen=True)
class Published:
    """What is published: tables of d columns each, of all rows or of both sides of t halves."""

    sizes: tuple[int, ...]
    """Of the columns' domains."""
    arity: int
    halves: int
    rows: int
    rho: float
    """The privacy loss of all tables together: ρ of zero-concentrated differential privacy."""

    @property
    def tables(self) -> int:
        """How many are charged for: both sides of a half together are one."""
        return math.comb(len(self.sizes), self.arity) * max(1, self.halves)

    @property
    def figures(self) -> int:
        """The cells of all tables."""
        return figures(self.sizes, self.arity) * (2 * self.halves or 1)

    @property
    def variance(self) -> float:
        """Of the noise on each figure: a row that changes moves two of them by 1."""
        return self.tables / self.rho

    @property
    def error(self) -> float:
        """The standard error of the share of a conjunction of d columns."""
        noise = 2 * self.variance / self.halves if self.halves else self.variance
        return math.sqrt(noise) / self.rows

    @property
    def joint_error(self) -> float:
        """That of a conjunction of two parts of d columns each, from halves."""
        sampling = SHARE * (1 - SHARE)
        noise = 2 * self.variance / self.rows
        splits = math.comb(2 * self.arity, self.arity) // 2
        rest = (2 * sampling * noise + noise**2) / splits
        return math.sqrt((sampling**2 + rest) / self.halves)


@dataclass(frozen=True)
class TableComparison(Record):
    """The same questions from halves, and from tables that have all of their columns."""

    columns: int
    """Columns of a question."""
    figures: int
    error: float
    """The standard error of a share, from halves."""
    direct_figures: int
    direct_error: float
    fewer_figures_from: int
    """With so many Boolean columns, halves need fewer figures for the same error."""


def compared(published: Published) -> TableComparison | None:
    """None where there is nothing to compare: tables of one column, directly."""
    p = published
    if not p.halves:
        if p.arity < 2:
            return None
        arity = (p.arity + 1) // 2
        halves = best_halves(len(p.sizes), arity, p.rows, p.rho)
        parted, direct = Published(p.sizes, arity, halves, p.rows, p.rho), p
    else:
        wide = min(2 * p.arity, len(p.sizes))
        parted, direct = p, Published(p.sizes, wide, 0, p.rows, p.rho)
    return TableComparison(
        columns=direct.arity,
        figures=parted.figures,
        error=parted.joint_error,
        direct_figures=direct.figures,
        direct_error=direct.error,
        fewer_figures_from=break_even(parted.arity),
    )


def best_halves(columns: int, arity: int, rows: int, rho: float) -> int:
    """t for which noise is as large as what halves differ by, where the error is least."""
    each = 2 * math.comb(columns, arity) / rho / rows
    return max(2, round(SHARE * (1 - SHARE) / each))


def figures(sizes: tuple[int, ...], arity: int) -> int:
    """The cells of all tables of `arity` columns: a symmetric polynomial of the sizes."""
    found = [1, *([0] * arity)]
    for size in sizes:
        for degree in range(arity, 0, -1):
            found[degree] += size * found[degree - 1]
    return found[arity]


def halves_needed(columns: int, arity: int, *, functions: bool = False) -> float:
    """Halves, without noise, after which no conjunct of 2d Boolean columns is off by 0.05.

    Some is with probability at most 0.05, by the normal tail and a union over all conjuncts, with
    contrasts that vary as much as they can. A Boolean function adds up to 2^(2d) conjuncts.
    """
    conjuncts = math.comb(columns, 2 * arity) * 2 ** (2 * arity)
    tolerated = TOLERATED / (2 ** (2 * arity) if functions else 1)
    return 2 * math.log(2 * conjuncts / MISSED) / 16 / tolerated**2


def break_even(arity: int, *, functions: bool = False) -> int:
    """From how many Boolean columns on halves need fewer figures than the tables of 2d columns."""
    columns = 2 * arity
    while True:
        halves = halves_needed(columns, arity, functions=functions)
        parted = halves * math.comb(columns, arity) * 2**arity
        if parted < math.comb(columns, 2 * arity) * 2 ** (2 * arity):
            return columns
        columns += 1
