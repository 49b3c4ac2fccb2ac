"""How many times as likely one original value can make what is seen as another: γ = e^ε.

P(y|x) = p·1[y=x] + (1−p)·m(y), so that P(y|y)/P(y|x) = 1 + p/((1−p)·m(y)), largest where the
replacing distribution m is least. Columns are perturbed apart, so that a row's γ is the product.
A γ of None is unbounded: some value can be seen only of those who have it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from voile.privacy.guarantee import LARGEST_EPSILON, log, round_down, round_up
from voile.privacy.guarantees import Amplification, Breach, DeltaT, Dp, SBreach
from voile.privacy.guarantees.statements import RatioBounds, Statement, not_kept, stated, void
from voile.privacy.guarantees.theorems import NothingFollows, amplifying, breach_within, ratio_of
from voile.privacy.guarantees.theorems import belief_after as belief_by_ratio

Chance = float | Fraction
"""A probability; a fraction where it must be exact."""
SMALL, LESS_SMALL = Fraction(1, 2**50), Fraction(1, 2**34)
"""Relative steps by which a number is brought to the safe side."""
FLOAT_BITS = 1000
"""Numbers of so many bits are floats."""


def amplification(retention: Chance, least_mass: Chance) -> Fraction | None:
    """γ of one column: `least_mass` is the least chance that m gives to any value of the domain.

    For uniform replacement that is 1/D. A domain of one value (a mass of 1) reveals nothing.
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

    A column of one value reveals nothing and takes no share.
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


# ---------------------------------------------------------------------- (s, ρ₁, ρ₂) breaches
# (s, ρ₁, ρ₂) breaches of retention replacement (Agrawal, Srikant, Thomas, SIGMOD 2005).
#
# A set S of values has the prior p_S and the replacing mass m_S; s = p_S/m_S is its relative a
# priori probability. There is a breach if p_S ≤ ρ₁ and P[X∈S | Y∈S] exceeds ρ₂. These theorems
# speak of one who hears only that Y lies in S; one who sees Y itself is bounded by γ, or, where the
# prior is known, by `posteriors`. All arithmetic is exact, rounded to less retention.


# ---------------------------------------------------------------------- one column


def relative_prior_bound(retention: Chance, breach: Breach) -> Fraction | None:
    """Theorem 4: no set with a relative prior below this is breached; None where none ever is.

    s = (ρ₂−ρ₁)(1−p)/((1−ρ₂)p).
    """
    p = Fraction(retention)
    low, high = Fraction(breach.rho1), Fraction(breach.rho2)
    return None if p == 0 else (high - low) * (1 - p) / ((1 - high) * p)


def largest_rho1(retention: Chance, s: Chance, rho2: Chance) -> Fraction:
    """Theorem 4 for a given s: below this ρ₁ nothing of relative prior below s is breached.

    Lemma 1 is s = 1: identity replacement gives every set that relative prior.
    """
    p, high = Fraction(retention), Fraction(rho2)
    return high - Fraction(s) * p * (1 - high) / (1 - p)


def retention_against(breach: SBreach) -> float:
    """The largest retention of a column that prevents it by Theorem 4."""
    low, high = Fraction(breach.rho1), Fraction(breach.rho2)
    return round_down((high - low) / (high - low + Fraction(breach.s) * (1 - high)))


def identity_retention(breach: Breach) -> float:
    """Lemma 1: the same for identity replacement, whatever the column holds."""
    return retention_against(SBreach(1.0, breach.rho1, breach.rho2))


# ---------------------------------------------------------------------- several columns, any set


def chance_of_retaining(retentions: Sequence[Chance]) -> Fraction:
    """That at least one column of a row is retained."""
    return 1 - math.prod((1 - p for p in exact(retentions)), start=Fraction(1))


def row_bound(retentions: Sequence[Chance], breach: Breach) -> Fraction | None:
    """No set of rows, of any shape, with a relative prior below this is breached.

    With the chance Π(1−p_i) all columns are replaced; else any set that X is in may be hit. So
    this is Theorem 4 for one coin that retains with the chance 1 − Π(1−p_i), and on fine domains
    some set reaches it. Theorem 5 below allows more, but speaks only of sets S₁×…×S_k.
    """
    return relative_prior_bound(chance_of_retaining(retentions), breach)


def row_retention(breach: SBreach, columns: int) -> float:
    """The largest retention of so many columns alike that prevents the breach of any set."""
    most = Fraction(retention_against(breach))
    return largest_along(lambda p: chance_of_retaining([p] * columns) <= most)


# ---------------------------------------------------------------------- several columns, products


def joint_bound(
    retentions: Sequence[Chance], masses: Sequence[Chance], breach: Breach
) -> Fraction | None:
    """Theorem 5: no set S₁×…×S_k of these masses with a relative prior below this is breached.

    ρ₂(1−ρ₁)·Π(1−p_i) / ((1−ρ₂)·Π((1−p_i)m_i + p_i)). None where no set is.
    """
    bound = Fraction(breach.rho2) * (1 - Fraction(breach.rho1)) / (1 - Fraction(breach.rho2))
    for p, m in zip(exact(retentions), exact(masses), strict=True):
        seen = (1 - p) * m + p
        if seen == 0:
            return None
        bound *= (1 - p) / seen
    return bound


def first_breach(
    retentions: Sequence[Chance], masses: Sequence[Chance], breach: Breach
) -> Fraction | None:
    """The least relative prior of a set of these masses that is breached under some prior.

    Theorem 5's proof is tight: a prior whose rows lie in S or outside of every S_i attains it.
    None where the breach would need p_S above ρ₁.
    """
    odds = Fraction(breach.rho2) / (1 - Fraction(breach.rho2))
    for p, m in zip(exact(retentions), exact(masses), strict=True):
        odds *= (1 - p) * m / ((1 - p) * m + p)
    prior = odds / (1 + odds)
    return None if prior > Fraction(breach.rho1) else prior / math.prod(exact(masses))


def least_relative_prior(retentions: Sequence[Chance], breach: Breach) -> Fraction | None:
    """Theorem 5 over all masses: no product set with a relative prior below this is breached.

    The worst sets hold nearly all of every column but the one that is retained most; of this one
    they hold so much that the prior is ρ₁, or nearly all of it where a lower prior is breached
    already. One column: Theorem 4 wherever that is at least ρ₁. None where nothing is retained.
    """
    kept = [p for p in exact(retentions) if p > 0]
    if not kept:
        return None
    rho1, rho2 = Fraction(breach.rho1), Fraction(breach.rho2)
    replaced = math.prod(1 - p for p in kept)
    slack = ratio_of(breach.rho1, breach.rho2) * replaced - 1
    if slack < 0:  # sets of all columns, with a prior below ρ₁
        odds = rho2 / (1 - rho2) * replaced
        return odds / (1 + odds)
    return rho1 * (slack + max(kept)) / max(kept)


def joint_retention(breach: SBreach, columns: int, mass: Chance | None = None) -> float:
    """The largest retention of so many columns alike that prevents a breach of product sets.

    For products of any masses. With `mass`, by Theorem 5 as printed, which suffices for products of
    sets that each have at most this replacing mass. Other sets may be breached: `row_retention` is
    for these.
    """
    wanted = Breach(breach.rho1, breach.rho2)

    def keeps(retention: float) -> bool:
        alike = [retention] * columns
        bound = (
            least_relative_prior(alike, wanted)
            if mass is None
            else joint_bound(alike, [mass] * columns, wanted)
        )
        return bound is None or bound >= Fraction(breach.s)

    return largest_along(keeps)


def exact(numbers: Sequence[Chance]) -> list[Fraction]:
    """Chances as the fractions they are."""
    return [Fraction(number) for number in numbers]


# ---------------------------------------------------------------------- statements
# All that perturbing a row promises, as the statements that every release can give.


BELIEFS = (0.01, 0.1, 0.5)
LARGEST_RATIO = 10**300
"""Of a γ that can be stated; a larger one is stated by its ε."""
ROW = "of one row; but for its public columns, and for that the row is there"


def local_statements(ratio: Fraction | None, *, simulated: bool) -> list[Statement]:
    """What follows from how much a row can change the chance of what is seen of it.

    Beyond all bounds that can be stated nothing does.
    """
    epsilon = epsilon_of(ratio)
    if ratio is None or epsilon > LARGEST_EPSILON:
        return []
    bounds, found = RatioBounds(swap=ratio), []
    if ratio <= LARGEST_RATIO:
        found.append(stated(local_promise(ratio), bounds, "the perturbing itself", ROW))
    cited = "a table of rows that are each perturbed within γ"
    found.append(stated(Dp(epsilon, "swap"), bounds, cited, ROW))
    found += [stated(b, bounds, "Bayes' rule", ROW) for b in breaches(ratio)]
    found.append(stated(DeltaT(epsilon), bounds, "log-odds change by ε at most", ROW))
    return [void(one) for one in found] if simulated else found


def breaches(ratio: Fraction) -> list[Breach]:
    """To what beliefs of a few sizes can rise."""
    found = []
    for prior in BELIEFS:
        try:
            found.append(breach_within(ratio, prior, "record"))
        except NothingFollows:
            continue
    return found


def locally_not_promised(
    ratio: Fraction | None, columns: Mapping[str, Fraction | None]
) -> list[Statement]:
    """What a perturbed table must not be taken to promise."""
    found = [
        not_kept(
            {"kind": "dp", "unit": "add-remove"}, "independent", "anyone",
            "every row is there, perturbed",
            "That a row is in the table is published: no ε holds for adding or removing one.",
        )
    ]  # fmt: skip
    if ratio is None:
        open_ = ", ".join(name for name, bound in columns.items() if bound is None)
        found.append(not_kept(
            {"kind": "dp", "unit": "swap"}, "exclusive",
            "anyone who knows which values are rare",
            "Privacy Preserving OLAP, §6.2.2",
            f"Columns without ε: {open_}. Public ones are shown as they are; where replacements "
            "are the column's own values, a rare value that is seen is probably somebody's own.",
        ))  # fmt: skip
    for kind, words in (("k", "k-anonymity"), ("l", "ℓ-diversity"), ("t", "t-closeness")):
        found.append(not_kept(
            {"kind": kind}, "none", "nobody in particular", "does not follow",
            f"{words} is not claimed: rows may stand alone. Nor would it limit what anyone learns.",
        ))  # fmt: skip
    return found
