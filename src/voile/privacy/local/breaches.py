"""(s, ρ₁, ρ₂) breaches of retention replacement (Agrawal, Srikant, Thomas, SIGMOD 2005).

A set S of values has the prior p_S and the replacing mass m_S; s = p_S/m_S is its relative a
priori probability. There is a breach if p_S ≤ ρ₁ and P[X∈S | Y∈S] exceeds ρ₂. These theorems speak
of one who hears only that Y lies in S; one who sees Y itself is bounded by γ (amplification.py),
or, where the prior is known, by posteriors.py. All arithmetic is exact, rounded to less retention.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from voile.privacy.guarantees.beliefs import Breach, SBreach
from voile.privacy.guarantees.theorems import ratio_of
from voile.privacy.local.amplification import Chance, largest_along
from voile.privacy.planner import round_down

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

    The worst sets hold nearly all of every column but the one that is retained most. For one
    column this is Theorem 4. None where nothing is retained.
    """
    kept = [p for p in exact(retentions) if p > 0]
    if not kept:
        return None
    rho1 = Fraction(breach.rho1)
    replaced = math.prod(1 - p for p in kept)
    slack = ratio_of(breach.rho1, breach.rho2) * replaced - (1 - max(kept))
    mass = max(kept) / slack if slack > 0 else Fraction(1)
    return rho1 / min(mass, Fraction(1))


def joint_retention(breach: SBreach, columns: int, mass: Chance | None = None) -> float:
    """The largest retention of so many columns alike that prevents a breach of product sets.

    By Theorem 5 with every S_i of the replacing mass `mass`, or for products of any masses. Other
    sets may be breached: `row_retention` is for these.
    """
    wished = Breach(breach.rho1, breach.rho2)

    def keeps(retention: float) -> bool:
        alike = [retention] * columns
        bound = (
            least_relative_prior(alike, wished)
            if mass is None
            else joint_bound(alike, [mass] * columns, wished)
        )
        return bound is None or bound >= Fraction(breach.s)

    return largest_along(keeps)


def exact(numbers: Sequence[Chance]) -> list[Fraction]:
    return [Fraction(number) for number in numbers]
