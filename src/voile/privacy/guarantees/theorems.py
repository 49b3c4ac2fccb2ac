"""What a theorem that leads from one guarantee to another is, and arithmetic that errs safely.

Every number that a theorem finds is rounded to the side of the weaker promise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from voile.privacy.guarantee import log
from voile.privacy.guarantees.kinds import Guarantee
from voile.privacy.guarantees.parameters import LARGEST_EPSILON, Value
from voile.privacy.planner import round_up

Wanted = Mapping[str, Any]
"""The parameters that were asked for, by name."""


class NothingFollows(Exception):  # noqa: N818  (an outcome, not an error)
    """A theorem's conclusion would be empty for these numbers; says why."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True)
class Printed:
    """A looser constant that a paper prints, where it differs from the tight one."""

    where: str
    values: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        return {"where": self.where, **self.values}


@dataclass(frozen=True)
class Theorem:
    """Every mechanism that keeps the source guarantee keeps the one that `derive` gives."""

    source: str
    target: str
    cite: str
    formula: str
    derive: Callable[[Any, Wanted], Guarantee]
    tight: bool = True
    """Some mechanism keeps the premise and no stronger conclusion of this kind."""
    equivalent: bool = False
    """The conclusion also implies the premise."""
    needs: tuple[str, ...] = ()
    """Parameters of the conclusion that hold for any choice, so that one must be made."""
    condition: str = ""
    printed: Callable[[Any], tuple[Printed, ...]] = lambda _: ()


def ratio_of(prior: float, posterior: float | Fraction) -> Fraction:
    """The likelihood ratio that takes a belief from `prior` to `posterior`."""
    p, q = Fraction(prior), Fraction(posterior)
    return q * (1 - p) / (p * (1 - q))


def belief_after(prior: float, ratio: Fraction) -> Fraction:
    """What a belief of `prior` becomes by this ratio."""
    p = Fraction(prior)
    return p * ratio / (p * ratio + 1 - p)


def exp_up(x: float) -> Fraction:
    """A fraction just not below e^x."""
    if x > 700:
        return exp_up(x / 2) ** 2
    return Fraction(math.nextafter(math.exp(x), math.inf)) if x else Fraction(1)


def log_up(ratio: Fraction) -> float:
    """A float just not below ln(ratio), for ratios of at least 1."""
    if ratio <= 1:
        return 0.0
    near = math.log(round_up(ratio)) if ratio < 10**300 else log(ratio) * (1 + 1e-13)
    return within_reason(math.nextafter(near, math.inf))


def twice(x: float) -> float:
    return within_reason(2 * x)


def within_reason(x: float) -> float:
    """A logarithm of a ratio that can be stated."""
    if x > LARGEST_EPSILON:
        raise NothingFollows(f"the logarithm of the ratio would be {x:g}, which promises nothing")
    return x


def below_one(x: Fraction, name: str, hint: str = "") -> float:
    """x as a float, rounded up; a belief of 1 promises nothing."""
    near = round_up(x) if x < 2**1000 else math.inf
    if near >= 1:
        raise NothingFollows(f"{name} would be {near:.6g}, which promises nothing", hint)
    return near


def chosen(wanted: Wanted, name: str, default: Value) -> Any:
    """A parameter as asked for, else the source's own."""
    return wanted.get(name, default)
