"""What several releases of one table promise together: the total of what each of them promises.

Every release has coins of its own, and keeps its promise whatever the others were: then losses add
up, whichever tables are neighbours, as long as they are the same ones for all. Three ways to add:

- pure: ε adds up;
- concentrated: ρ adds up, and turns into (ε, δ) in the end. A pure ε enters by its own ρ, which
  for small ε costs far less than ε itself. Where all of them are Gaussian, the squares of μ add up
  instead, and the curve of normal noise gives (ε, δ) exactly; a pure ε enters by its own μ;
- approximate: ε and δ add up each, for promises that state neither a pure ε nor a ρ.

The least total of all ways that hold is taken. Proofs: docs/mathematics, section 38.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from voile.privacy import gaussian
from voile.privacy.guarantee import DGamma
from voile.privacy.guarantees import Dp, Target, Zcdp
from voile.privacy.guarantees.answer_theorems import MOST_EXPONENT, epsilon_of_concentrated
from voile.privacy.guarantees.conversions import convert
from voile.privacy.guarantees.theorems import NothingFollows, d_gamma_within
from voile.records import Record

__all__ = [
    "PrivacyLoss",
    "PrivacyTotal",
    "RatioRange",
    "compose",
    "compose_beliefs",
    "epsilon_of_concentrated",
]

UP = 1 + 1e-12
"""What sums in floats may lose; a total is never below the true one."""
MOST_CUTS = 32
"""Divisions into pure and concentrated losses that are tried. Any of them gives a sound total."""


@dataclass(frozen=True)
class PrivacyLoss(Record):
    """What one release costs between tables of one unit; None: it states no such number."""

    epsilon: float | None = None
    rho: float | None = None
    approximate: tuple[float, float] | None = None
    """(ε, δ)."""
    mu: float | None = None
    """Of Gaussian differential privacy."""

    @property
    def is_bounded(self) -> bool:
        """Whether anything is promised for this unit at all."""
        known = (self.epsilon, self.rho, self.approximate, self.mu)
        return any(one is not None for one in known)

    @property
    def concentrated(self) -> float | None:
        """The least ρ that is known: the stated one, or what follows from ε or μ."""
        known = [self.rho] if self.rho is not None else []
        if self.epsilon is not None:
            known.append(rho_of_pure(self.epsilon))
        if self.mu is not None:
            known.append(self.mu**2 / 2 * UP)
        return min(known, default=None)

    @property
    def gaussian(self) -> float | None:
        """The least μ that is known: the stated one, or what follows from ε."""
        known = [self.mu] if self.mu is not None else []
        if self.epsilon is not None:
            known.append(mu_of_pure(self.epsilon))
        return min(known, default=None)


@dataclass(frozen=True)
class PrivacyTotal(Record):
    """What several releases promise together, for one unit."""

    epsilon: float | None
    """At `delta`; None where nothing bounds it."""
    delta: float
    pure: float | None
    """The sum of all ε, where every release has one."""
    rho: float | None
    """The sum of all ρ, where every release has one, or an ε."""
    way: str
    """How it was added up, in words."""


NOTHING = PrivacyTotal(0.0, 0.0, 0.0, 0.0, "nothing has left")


@lru_cache(maxsize=4096)
def rho_of_pure(epsilon: float) -> float:
    """The ρ of a pure ε, by the theorem of `voile convert`."""
    found = convert(Dp(epsilon, "swap"), Target(Zcdp, {})).guarantee
    return float(found.to_dict()["rho"])


@lru_cache(maxsize=4096)
def mu_of_pure(epsilon: float) -> float:
    """The μ of a pure ε, by the theorem of `voile convert`; ∞ where it is too large to state."""
    return gaussian.mu_of_pure(epsilon) if epsilon <= MOST_EXPONENT else math.inf


@lru_cache(maxsize=4096)
def epsilon_of_normal(mu: float, delta: float) -> float:
    """The exact ε at δ of μ-GDP."""
    return gaussian.epsilon_of(mu, delta) if math.isfinite(mu) else math.inf


def compose(losses: Sequence[PrivacyLoss], delta: float = 0.0) -> PrivacyTotal:
    """The least (ε, δ) that is known of all of them together, at the wanted δ where that goes.

    Where promises with a δ of their own need more than `delta`, the total has that δ; where one of
    them is unbounded, it has no ε.
    """
    if not losses:
        return PrivacyTotal(0.0, 0.0, 0.0, 0.0, NOTHING.way)
    pure, rho = pure_sum(losses), concentrated_sum(losses)
    if not all(loss.is_bounded for loss in losses):
        return PrivacyTotal(None, delta, None, None, "nothing bounds some of it")
    if pure is not None and delta == 0:
        return PrivacyTotal(pure, 0.0, pure, rho, "the ε add up")
    found = [one for one in ways(losses, delta) if one[0] is not None]
    within = [one for one in found if one[1] <= delta * UP]
    if not found:
        return PrivacyTotal(None, delta, None, rho, "no ε holds with δ = 0")
    epsilon, at, way = min(within or found, key=lambda one: (one[0], one[1]))
    return PrivacyTotal(epsilon, at, pure, rho, way)


def pure_sum(losses: Sequence[PrivacyLoss]) -> float | None:
    """The sum of all ε, if every release has one."""
    known = [loss.epsilon for loss in losses if loss.epsilon is not None]
    return math.fsum(known) * UP if len(known) == len(losses) else None


def concentrated_sum(losses: Sequence[PrivacyLoss]) -> float | None:
    """The sum of all ρ, if every release has one."""
    known = [rho for loss in losses if (rho := loss.concentrated) is not None]
    return math.fsum(known) * UP if len(known) == len(losses) else None


def ways(losses: Sequence[PrivacyLoss], delta: float) -> list[tuple[float, float, str]]:
    """(ε, δ) by every division of the losses into pure, concentrated and approximate ones.

    Those with a pure ε are divided by its size: small ones gain most from being concentrated.
    """
    stated = [one for one in losses if one.concentrated is None]
    either = [
        one
        for one in losses
        if one.concentrated is not None and one.approximate and one.epsilon is None
    ]
    found = []
    for approximate in [stated, stated + either] if either else [stated]:
        rest = [one for one in losses if one not in approximate]
        ordered = sorted(rest, key=lambda one: math.inf if one.epsilon is None else -one.epsilon)
        found += [
            added(approximate, ordered[:number], ordered[number:], delta)
            for number in cuts([one.epsilon for one in ordered])
        ]
    return [one for one in found if one is not None]


def cuts(epsilons: Sequence[float | None]) -> list[int]:
    """Where the pure ones may end: at none, between different ε, and at all that have one."""
    known = sum(epsilon is not None for epsilon in epsilons)
    found = [n for n in range(1, known) if epsilons[n] != epsilons[n - 1]]
    return [0, *found[:: max(1, len(found) // MOST_CUTS)], *([known] if known else [])]


def added(
    approximate: Sequence[PrivacyLoss],
    pure: Sequence[PrivacyLoss],
    concentrated: Sequence[PrivacyLoss],
    delta: float,
) -> tuple[float, float, str] | None:
    """(ε, δ) of one division, and how it came about; None where it needs a δ and has none."""
    pairs = [one.approximate for one in approximate if one.approximate is not None]
    spent = math.fsum(pair[1] for pair in pairs)
    epsilons = [pair[0] for pair in pairs] + [one.epsilon or 0.0 for one in pure]
    words = ["the ε add up"] if epsilons else []
    at = spent
    if concentrated:
        left = delta - spent if delta > spent else delta
        if left <= 0:
            return None
        epsilon, way = converted(concentrated, left)
        epsilons.append(epsilon)
        words.append(way)
        at = spent + left
    return math.fsum(epsilons) * UP, at, ", and ".join(words)


def converted(losses: Sequence[PrivacyLoss], delta: float) -> tuple[float, str]:
    """The least ε at δ of losses that are added up as ρ, or as μ where all have one; and how."""
    rho = math.fsum(one.concentrated or 0.0 for one in losses) * UP
    found = [(epsilon_of_concentrated(rho, delta), f"ρ = {rho:.4g} of zCDP turned into (ε, δ)")]
    mus = [mu for one in losses if (mu := one.gaussian) is not None]
    if len(mus) == len(losses):
        mu = gaussian.composed(mus) * UP
        found.append((epsilon_of_normal(mu, delta), f"μ = {mu:.4g} of GDP turned into (ε, δ)"))
    return min(found)


# ---------------------------------------------------------------------- beliefs


@dataclass(frozen=True)
class RatioRange:
    """P(release | with a record)/P(release | without it) lies between these."""

    low: Fraction
    high: Fraction


def compose_beliefs(d: float, ranges: Sequence[RatioRange]) -> DGamma | None:
    """(d, γ) of independent attackers who see all of it; None where no γ below 1 holds.

    For every course of the other records the ratio of all releases together is the product of
    theirs, since each has coins of its own; so it stays within the products of the bounds.
    """
    low = math.prod((one.low for one in ranges), start=Fraction(1))
    high = math.prod((one.high for one in ranges), start=Fraction(1))
    try:
        return d_gamma_within(d, low, high)
    except NothingFollows:
        return None
