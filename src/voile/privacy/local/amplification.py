"""How much likelier one original value can make what is seen than another: γ = e^ε.

P(y|x) = p·1[y=x] + (1−p)·m(y), so that P(y|y)/P(y|x) = 1 + p/((1−p)·m(y)), largest where the
replacing distribution m is least. Columns are perturbed apart, so that a row's γ is the product.
A γ of None is unbounded: some value can be seen only of those who have it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from voile.privacy.guarantee import log
from voile.privacy.guarantees.belief_formulas import amplifying
from voile.privacy.guarantees.beliefs import Amplification, Breach
from voile.privacy.guarantees.theorems import belief_after as belief_by_ratio
from voile.privacy.guarantees.theorems import ratio_of
from voile.privacy.planner import round_down, round_up

Chance = float | Fraction
"""A probability; a fraction where it must be exact."""
SMALL, LESS_SMALL = Fraction(1, 2**50), Fraction(1, 2**34)
"""Relative steps by which a number is brought to the safe side."""
FLOAT_BITS = 1000
"""Numbers of so many bits are floats."""


def amplification(retention: Chance, least_mass: Chance) -> Fraction | None:
    """γ of one column: `least_mass` is the least chance that m gives to any value of the domain.

    For uniform replacement that is 1/D. A domain of one value (a mass of 1) has nothing to tell.
    Whole rows with one coin (FRAPP) are one column whose values are the tuples.
    """
    p, mass = Fraction(retention), Fraction(least_mass)
    if p == 0 or mass == 1:
        return Fraction(1)
    if p == 1 or mass == 0:
        return None
    return 1 + p / ((1 - p) * mass)


def row_amplification(ratios: Iterable[Fraction | None]) -> Fraction | None:
    """γ of a row whose columns are perturbed apart."""
    product = Fraction(1)
    for ratio in ratios:
        if ratio is None:
            return None
        product *= ratio
    return product


def epsilon_of(ratio: Fraction | None) -> float:
    """ε = ln γ, rounded up, however large γ is; ∞ where it is unbounded.

    What does not fit into a float is halved some times first: ln γ = ln(γ/2ⁿ) + n·ln 2.
    """
    if ratio is None:
        return math.inf
    if ratio <= 1:
        return 0.0
    bits = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    halvings = max(0, bits - FLOAT_BITS)
    near = math.log(round_up(ratio / 2**halvings))
    if not halvings:
        return math.nextafter(near, math.inf)
    return (near + halvings * math.log(2)) * (1 + float(SMALL))


def local_epsilon(retention: Chance, least_mass: Chance) -> float:
    """ε of one column; a row's is the sum."""
    return epsilon_of(amplification(retention, least_mass))


def local_promise(ratio: Fraction) -> Amplification:
    """The guarantee that such a ratio is; all others follow from it by `convert`."""
    return amplifying(ratio)


def prevents(ratio: Fraction | None, breach: Breach) -> bool:
    """Whether no property of what is perturbed can rise from ρ₁ to above ρ₂, for any prior."""
    return ratio is not None and ratio <= ratio_of(breach.rho1, breach.rho2)


def belief_after(prior: float, ratio: Fraction | None) -> Fraction:
    """The most that a belief can become."""
    return Fraction(1) if ratio is None else belief_by_ratio(prior, ratio)


# ---------------------------------------------------------------------- back to a retention


def retention_for_ratio(most: Fraction, least_mass: Chance) -> float:
    """The largest retention of a column with γ ≤ `most`: p/(1−p) = (γ−1)·m, rounded down."""
    mass = Fraction(least_mass)
    if mass == 1:
        return 1.0
    odds = (most - 1) * mass
    return round_down(odds / (1 + odds))


def equal_shares(most: Fraction, least_masses: Sequence[Chance]) -> tuple[float, ...]:
    """The largest retentions that split a row's ε equally among its columns.

    A column of one value tells nothing and takes no share.
    """
    sharing = sum(Fraction(mass) != 1 for mass in least_masses)
    share = root_down(most, max(1, sharing))
    return tuple(retention_for_ratio(share, mass) for mass in least_masses)


def common_retention(most: Fraction, least_masses: Sequence[Chance]) -> float:
    """The largest retention that all columns of a row can have alike, with γ ≤ `most`."""

    def keeps(retention: float) -> bool:
        ratio = row_amplification(amplification(retention, mass) for mass in least_masses)
        return ratio is not None and ratio <= most

    return largest_along(keeps)


def largest_along(keeps: Callable[[float], bool]) -> float:
    """The largest float up to 1 that keeps a promise which all smaller ones keep, by halving."""
    if keeps(1.0):
        return 1.0
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def exp_down(epsilon: float) -> Fraction:
    """A fraction just not above e^ε, such that `epsilon_of` it is at most ε."""
    near = Fraction(math.exp(epsilon)) if epsilon <= 700 else exp_down(epsilon / 2) ** 2
    step = SMALL if epsilon <= 700 else LESS_SMALL  # as fine as `epsilon_of` is
    while near > 1 and epsilon_of(near) > epsilon:
        near *= 1 - step
    return max(near, Fraction(1))


def root_down(most: Fraction, degree: int) -> Fraction:
    """A fraction just not above the root, in exact arithmetic."""
    if degree == 1 or most == 1:
        return most
    near = exp_down(log(most) / degree)
    while near**degree > most:
        near *= 1 - SMALL
    return max(near, Fraction(1))
