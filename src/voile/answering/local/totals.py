"""What is found about the totals of a query, for all of its groups."""

from __future__ import annotations

from dataclasses import dataclass, field

from voile.answering.totals import ListedGroups
from voile.arrays import Floats
from voile.query.predicate import Term


@dataclass(frozen=True)
class CountLaw:
    """A count that one coin decides for each row: Binomial(x, kept) + Binomial(rows − x, drawn)."""

    seen: int
    rows: int
    kept: float
    drawn: float


@dataclass(frozen=True)
class LocalTotals:
    """For each group, estimates of each term and the covariances of each two."""

    groups: ListedGroups
    terms: tuple[Term, ...]
    estimates: Floats
    """(groups, terms)"""
    seen: Floats
    """The same sums over the rows as they are seen."""
    covariances: dict[tuple[int, int], Floats]
    squares: dict[tuple[int, int], Floats]
    """Σ g·h over the seen rows: what bounds of deviations are made of."""
    largest: Floats
    """A bound of |g| and of |g − f| of one row, for each group and term."""
    widest: Floats
    """A bound of the standard error that holds for every table."""
    unit: float
    """A bound of |g| and of |g − f| of one row for any f of at most 1."""
    laws: dict[tuple[int, int], CountLaw] = field(default_factory=dict)
    """Of a group and a term, where one coin decides."""
    possible: bool = True
    """Whether any tuple of the domain can count."""

    def column(self, term: Term) -> int:
        return self.terms.index(term)


@dataclass(frozen=True)
class TotalErrors:
    """See LocalTotals."""

    covariances: dict[tuple[int, int], Floats]
    squares: dict[tuple[int, int], Floats]
    largest: Floats
    widest: Floats
    laws: dict[tuple[int, int], CountLaw]
