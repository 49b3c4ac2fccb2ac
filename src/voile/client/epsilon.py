"""Local ε of retention replacement, never below the truth."""

from __future__ import annotations

import math
from fractions import Fraction

LARGEST = 2**1000
"""Fractions below it are doubles."""
ROUNDING = 2.0**-48
"""Relative error that the logarithms below stay within, with room to spare (docs/mathematics,
§22)."""


def local_epsilon(retention: float, odds: int | Fraction) -> float:
    """ln(1 + p·w/(1 − p)), rounded up; w is 1/m of the least likely replacement.

    Infinite where everything is kept. The fraction is exact, the logarithm is not.
    """
    if retention == 0:
        return 0.0
    if retention == 1:
        return math.inf
    kept = Fraction(retention)
    return math.nextafter(log_one_more(kept * odds / (1 - kept)) * (1 + ROUNDING), math.inf)


def log_one_more(excess: Fraction) -> float:
    """ln(1 + a); where a is larger than a double can be, the 1 does not matter."""
    if excess < LARGEST:
        return math.log1p(float(excess))
    return math.log(excess.numerator) - math.log(excess.denominator)


def together(epsilons: list[float]) -> float:
    """The sum, rounded up."""
    total = math.fsum(epsilons)
    return math.nextafter(total, math.inf) if 0 < total < math.inf else total
