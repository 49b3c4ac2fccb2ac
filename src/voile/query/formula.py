"""Arithmetic of aggregates: what SELECT, HAVING and ORDER BY compute from sums over rows.

Every aggregate that can be estimated is built from totals, sums over rows of a term; a mechanism
estimates those, and a formula is arithmetic on the estimates. Quantiles stand apart: they invert
a distribution.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from voile.query.predicate import Expression, Predicate, Term


@dataclass(frozen=True)
class Number:
    value: float


@dataclass(frozen=True)
class Total:
    """The sum of a term over the rows that WHERE lets pass."""

    term: Term


@dataclass(frozen=True)
class Quantile:
    """The value below which a share of the rows lies; between two values, if interpolated."""

    share: float
    interpolated: bool
    value: Expression
    predicate: Predicate | None = None


@dataclass(frozen=True)
class Call:
    """An operator or a function by its name; `answering` knows what each does."""

    name: str
    args: tuple[Formula, ...]


Formula = Number | Total | Quantile | Call


def leaves(formula: Formula) -> Iterator[Total | Quantile]:
    if isinstance(formula, Total | Quantile):
        yield formula
    elif isinstance(formula, Call):
        for arg in formula.args:
            yield from leaves(arg)


def divided(top: Formula, bottom: Formula) -> Formula:
    return Call("/", (top, bottom))


def minus(left: Formula, right: Formula) -> Formula:
    return Call("-", (left, right))


def times(left: Formula, right: Formula) -> Formula:
    return Call("*", (left, right))


def covariance(xy: Total, x: Total, y: Total, n: Total, *, sample: bool) -> Formula:
    """The mean product less the product of means; n − 1 in the denominator for a sample's."""
    excess = minus(xy, divided(times(x, y), n))
    return divided(excess, minus(n, Number(1)) if sample else n)


def square_root(formula: Formula) -> Formula:
    return Call("sqrt", (formula,))
