"""Values and derivatives of a formula, and its form where it is a ratio of linear ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from voile.arrays import Floats
from voile.query.aggregate import Constant, Formula, Quantile, Total
from voile.query.predicate import Term


@dataclass(frozen=True)
class Dual:
    """A number for each group, and its derivative by each total."""

    value: Floats
    slope: Floats


def evaluate(formula: Formula, totals: Mapping[Term, Floats], quantiles: Mapping[Quantile, Floats],
             order: tuple[Term, ...], count: int) -> Dual:  # fmt: skip
    """The formula on estimated totals; a NULL of SQL is a NaN here."""
    if isinstance(formula, Constant):
        return Dual(np.full(count, formula.value), np.zeros((count, len(order))))
    if isinstance(formula, Quantile):
        return Dual(quantiles[formula], np.full((count, len(order)), np.nan))
    if isinstance(formula, Total):
        slope = np.zeros((count, len(order)))
        slope[:, order.index(formula.term)] = 1.0
        return Dual(totals[formula.term], slope)
    args = [evaluate(arg, totals, quantiles, order, count) for arg in formula.args]
    with np.errstate(all="ignore"):
        return CALLS[formula.name](*args)


def _chain(value: Floats, inner: Dual, slope: Floats) -> Dual:
    return Dual(value, slope[:, None] * inner.slope)


def _times(a: Dual, b: Dual) -> Dual:
    return Dual(a.value * b.value, a.value[:, None] * b.slope + b.value[:, None] * a.slope)


def _divided(a: Dual, b: Dual) -> Dual:
    bottom = np.where(b.value == 0, np.nan, b.value)
    ratio = a.value / bottom
    return Dual(ratio, (a.slope - ratio[:, None] * b.slope) / bottom[:, None])


def _power(a: Dual, b: Dual) -> Dual:
    value = a.value**b.value
    by_base = b.value * a.value ** (b.value - 1)
    by_exponent = np.where(b.slope.any(), value * np.log(a.value), 0.0)
    return Dual(value, by_base[:, None] * a.slope + by_exponent[:, None] * b.slope)


def _rounded(a: Dual, digits: Dual) -> Dual:
    return Dual(round_to(a.value, digits.value[0] if len(digits.value) else 0), a.slope)


def round_to(values: Floats, digits: float) -> Floats:
    """As SQL rounds: halves away from zero."""
    factor = 10.0 ** int(digits)
    return np.sign(values) * np.floor(np.abs(values) * factor + 0.5) / factor


def _null_if(a: Dual, b: Dual) -> Dual:
    return Dual(np.where(a.value == b.value, np.nan, a.value), a.slope)


def _flat(value: Floats) -> Dual:
    return Dual(value, np.zeros((len(value), 0)))


def _comparison(compare: Callable[[Floats, Floats], Floats]) -> Callable[[Dual, Dual], Dual]:
    def compared(a: Dual, b: Dual) -> Dual:
        unknown = np.isnan(a.value) | np.isnan(b.value)
        return _flat(np.where(unknown, np.nan, compare(a.value, b.value)))

    return compared


def _and(a: Dual, b: Dual) -> Dual:
    false = (a.value == 0) | (b.value == 0)
    return _flat(np.where(false, 0.0, a.value * b.value))


def _not(a: Dual) -> Dual:
    return _flat(1 - a.value)


def _or(a: Dual, b: Dual) -> Dual:
    return _not(_and(_not(a), _not(b)))


CALLS: dict[str, Callable[..., Dual]] = {
    "+": lambda a, b: Dual(a.value + b.value, a.slope + b.slope),
    "-": lambda a, b: Dual(a.value - b.value, a.slope - b.slope),
    "*": _times,
    "/": _divided,
    "pow": _power,
    "neg": lambda a: Dual(-a.value, -a.slope),
    "abs": lambda a: _chain(np.abs(a.value), a, np.sign(a.value)),
    "sqrt": lambda a: _chain(np.sqrt(a.value), a, 0.5 / np.sqrt(a.value)),
    "ln": lambda a: _chain(np.log(a.value), a, 1 / a.value),
    "exp": lambda a: _chain(np.exp(a.value), a, np.exp(a.value)),
    "round": _rounded,
    "nullif": _null_if,
    "<": _comparison(np.less),
    "<=": _comparison(np.less_equal),
    ">": _comparison(np.greater),
    ">=": _comparison(np.greater_equal),
    "=": _comparison(np.equal),
    "<>": _comparison(np.not_equal),
    "and": _and,
    "or": _or,
    "not": _not,
}


# ---------------------------------------------------------------------- ratios


@dataclass(frozen=True)
class Affine:
    """A constant plus multiples of totals."""

    constant: float
    parts: tuple[tuple[Term, float], ...] = ()

    @property
    def is_constant(self) -> bool:
        """Whether it has no total in it."""
        return not self.parts

    def plus(self, other: Affine, factor: float = 1.0) -> Affine:
        """Its sum with a multiple of another."""
        parts = dict(self.parts)
        for term, part in other.parts:
            parts[term] = parts.get(term, 0.0) + factor * part
        kept = tuple((term, part) for term, part in parts.items() if part)
        return Affine(self.constant + factor * other.constant, kept)

    def times(self, factor: float) -> Affine:
        """Its product with a number."""
        return Affine(0.0).plus(self, factor)

    def row(self, order: tuple[Term, ...]) -> Floats:
        """Its coefficients in the order of these terms."""
        found = dict(self.parts)
        return np.array([found.get(term, 0.0) for term in order])


ONE = Affine(1.0)


@dataclass(frozen=True)
class AffineRatio:
    """Affine over affine: sums, averages, shares, and what is made of them by constants."""

    top: Affine
    bottom: Affine = ONE

    def as_constant(self) -> float | None:
        """Its value where it has no total in it."""
        simple = self.top.is_constant and self.bottom == ONE
        return self.top.constant if simple else None


def as_ratio(formula: Formula) -> AffineRatio | None:
    """The formula as a ratio of affine ones, if it is one."""
    if isinstance(formula, Constant):
        return AffineRatio(Affine(formula.value))
    if isinstance(formula, Total):
        return AffineRatio(Affine(0.0, ((formula.term, 1.0),)))
    if isinstance(formula, Quantile):
        return None
    if formula.name == "nullif" and formula.args[1] == Constant(0.0):
        return as_ratio(formula.args[0])  # only decides whether there is a value
    args = [as_ratio(arg) for arg in formula.args]
    if any(arg is None for arg in args):
        return None
    return _combined(formula.name, [arg for arg in args if arg])


def _combined(name: str, args: list[AffineRatio]) -> AffineRatio | None:
    if name == "neg":
        return AffineRatio(args[0].top.times(-1), args[0].bottom)
    if name not in ("+", "-", "*", "/"):
        return None
    left, right = args
    if name in ("+", "-"):
        return _sum(left, right, 1.0 if name == "+" else -1.0)
    if name == "*":
        return _scaled(left, right.as_constant()) or _scaled(right, left.as_constant())
    return _quotient(left, right)


def _sum(left: AffineRatio, right: AffineRatio, sign: float) -> AffineRatio | None:
    if left.bottom == right.bottom:
        return AffineRatio(left.top.plus(right.top, sign), left.bottom)
    if (constant := right.as_constant()) is not None:
        return AffineRatio(left.top.plus(left.bottom, sign * constant), left.bottom)
    if (constant := left.as_constant()) is not None:
        return AffineRatio(right.bottom.times(constant).plus(right.top, sign), right.bottom)
    return None


def _scaled(ratio: AffineRatio, factor: float | None) -> AffineRatio | None:
    return None if factor is None else AffineRatio(ratio.top.times(factor), ratio.bottom)


def _quotient(left: AffineRatio, right: AffineRatio) -> AffineRatio | None:
    if (constant := right.as_constant()) is not None:
        return _scaled(left, 1 / constant) if constant else None
    if left.bottom == right.bottom:
        return AffineRatio(left.top, right.top)
    if right.bottom == ONE and (constant := left.as_constant()) is not None:
        return AffineRatio(Affine(constant), right.top)
    return None
