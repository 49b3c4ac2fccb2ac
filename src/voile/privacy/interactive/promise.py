"""The noise that keeps (δ,T)-privacy or (ε,δ)-DP, and what it amounts to in other words.

(δ,T)-privacy: after at most T answers, conf of any property of one row is above its start by more
than δ with probability at most η. (ε,δ)-DP: every event is as likely if one person's rows were
others, up to a factor of e^ε and a rest of δ. The normal law gives V; it is raised to what the law
that is drawn needs, whatever totals are queried. Proofs: docs/mathematics, section 33.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from voile.errors import PromiseError, UsageError
from voile.privacy import gaussian
from voile.privacy.interactive.confidence import LEAST_ETA, variance_needed, walk
from voile.privacy.interactive.laws import (
    Change,
    Kind,
    checked_kind,
    concentrated_rho,
    geometric_rate,
)
from voile.privacy.interactive.losses import NormalGrid, WorstCase, sums
from voile.records import Record

CLOSE = 1e-4
"""V is found to this relative error, on the side of more noise."""
MOST_EPSILON = 100.0
"""Beyond, nothing is promised that could be felt."""


@dataclass(frozen=True)
class BreachChances:
    """Chances that conf rises by more than δ."""

    end: float
    """After so many answers, for someone who weighs two hypotheses about a row; after fewer it is
    not larger, that of one less with geometric noise included."""
    low: float
    high: float
    """What `end` lies between: the error of the arithmetic."""
    anytime: float
    """At any time, at most: also for an adversary who stops when they have what they want."""
    any_property: float
    """At any time, for any property of the row and any prior, at most."""


@dataclass(frozen=True)
class NoiseNeed:
    """The noise that keeps a promise, and how well."""

    kind: Kind
    delta: float
    eta: float
    queries: int
    anytime_asked: bool
    variance: float
    """V, of a total that one person changes by 1."""
    formula: float
    """V by the normal law; geometric noise needs about twice that."""
    breach: float
    breach_anytime: float
    breach_any: float
    breach_high: float
    """An upper bound of `breach`, the arithmetic's error included."""

    @property
    def per_query(self) -> float:
        """V/T."""
        return self.variance / self.queries

    @property
    def raised(self) -> bool:
        """Whether the law that is drawn needs more than the normal law says."""
        return self.variance > self.formula

    def to_dict(self) -> dict[str, Any]:
        """Its numbers with V/T and whether V was raised, ready for JSON."""
        return asdict(self) | {"per_query": self.per_query, "raised": self.raised}


@dataclass(frozen=True)
class EpsilonNeed(Record):
    """The noise that keeps (ε, δ)-differential privacy over all answers, and how well."""

    json_keys = (
        "kind", "epsilon", "delta", "queries", "variance", "formula", "spent", "per_query",
        "raised",
    )  # fmt: skip

    kind: Kind
    epsilon: float
    delta: float
    queries: int
    variance: float
    """V, of a total that one person changes by 1."""
    formula: float
    """V by the normal law; geometric noise may need more or less than that."""
    spent: float
    """δ at ε of the law that is drawn: the most of all totals that can be queried."""

    @property
    def per_query(self) -> float:
        """V/T."""
        return self.variance / self.queries

    @property
    def raised(self) -> bool:
        """Whether the law that is drawn needs more than the normal law says."""
        return self.variance > self.formula


@dataclass(frozen=True)
class Account(Record):
    """What a number of answers costs, as others count it."""

    kind: Kind
    variance: float
    charges: int
    rho: float
    """zCDP; of binomial noise that of the normal law, which it only comes near."""
    rho_holds: bool
    mu: float
    """The distance of two normal laws that are as hard to distinguish, in deviations."""
    epsilon_zcdp: float
    """ε at δ by the zCDP conversion."""
    epsilon: float
    """ε at δ of the noise that is drawn; not below the exact one, and inf if none is enough."""
    epsilon_normal: float
    """ε at δ of normal noise of that variance."""
    epsilon_pure: float | None
    """ε at δ = 0; geometric noise alone has one."""
    delta: float
    atom: float
    """The chance of an answer that only one hypothesis can give; counted in δ."""


@lru_cache(maxsize=64)
def breaches(
    kind: str, variance: float, queries: int, delta: float, change: Change | None = None
) -> BreachChances:
    """For the law that is drawn: exactly of totals of one change, else the most of all changes."""
    worst = WorstCase(tuple(sums(checked_kind(kind), variance, queries, delta, change)))
    low, high = worst.between(delta)
    end = worst.above(delta)
    any_property = max(end, worst.any_breach(delta))
    return BreachChances(end, low, high, min(1.0, 2 * end), any_property)


def kept(kind: Kind, variance: float, queries: int, delta: float, target: float) -> bool:
    """Whether conf ends above δ with probability at most `target`, whatever totals are queried."""
    return all(law.above(delta) <= target for law in sums(kind, variance, queries, delta))


@lru_cache(maxsize=64)
def needed(
    kind: str, delta: float, eta: float, queries: int, *, anytime: bool = False
) -> NoiseNeed:
    """The least noise that keeps the promise: the formula's, and what the drawn law needs above.

    `anytime` promises η for the highest point of the walk, not only for its end.
    """
    noise = checked_kind(kind)
    formula = variance_needed(delta, eta, queries, anytime=anytime)
    target = eta / 2 if anytime else eta
    least = _geometric(delta, target, queries) if noise == "geometric" else (
        _raised(noise, formula, delta, target, queries)
    )  # fmt: skip
    found = breaches(noise, least, queries, delta)
    return NoiseNeed(
        noise, delta, eta, queries, anytime, least, formula, found.end, found.anytime,
        found.any_property, found.high,
    )  # fmt: skip


def _raised(kind: Kind, formula: float, delta: float, target: float, queries: int) -> float:
    """The formula's V raised for the normal law on a grid, and then for the law that is drawn."""

    def on_grid(variance: float) -> bool:
        return NormalGrid(queries, variance).above(delta) <= target

    def drawn(variance: float) -> bool:
        return kept(kind, variance, queries, delta, target)

    found = _least_above(_least_above(formula, on_grid, CLOSE / 1000), drawn, CLOSE)
    if found is None:
        raise PromiseError(
            f"no {kind} noise keeps δ = {delta:g} with η = {target:g}",
            hint="choose a larger δ or η",
        )
    return found


# ---------------------------------------------------------------------- (ε, δ)-DP


def spent_at(kind: Kind, variance: float, queries: int, epsilon: float) -> float:
    """δ at ε after so many answers, whatever totals are queried: exactly, or a little more."""
    return max(law.excess(epsilon) for law in sums(kind, variance, queries, epsilon))


@lru_cache(maxsize=64)
def needed_for_epsilon(kind: str, epsilon: float, delta: float, queries: int) -> EpsilonNeed:
    """The least noise with which so many answers are (ε, δ)-differentially private together.

    By the exact law of what is drawn; fewer answers, and any choice of questions, reveal less.
    """
    noise = checked_kind(kind)
    check_epsilon(epsilon, delta, queries)
    formula = queries / gaussian.mu_for(epsilon, delta) ** 2
    most = delta * (1 - 1e-9)  # sums in floats lose less

    def on_grid(variance: float) -> bool:
        return NormalGrid(queries, variance).excess(epsilon) <= most

    def drawn(variance: float) -> bool:
        return spent_at(noise, variance, queries, epsilon) <= most

    least: float | None
    if noise == "geometric":
        least = _least_below(_geometric_variance(epsilon / queries), drawn)
    else:
        least = _least_above(_least_above(formula, on_grid, CLOSE / 1000), drawn, CLOSE)
    if least is None:
        raise PromiseError(
            f"no {kind} noise keeps ε = {epsilon:g} at δ = {delta:g}", hint="choose a larger ε or δ"
        )
    spent = spent_at(noise, least, queries, epsilon)
    return EpsilonNeed(noise, epsilon, delta, queries, least, formula, spent)


def check_epsilon(epsilon: float, delta: float, queries: int) -> None:
    """Refuse what is no (ε, δ) over T answers."""
    if not 0 < epsilon <= MOST_EPSILON:
        raise UsageError(
            f"ε = {epsilon} is not above 0 and at most {MOST_EPSILON:g}",
            hint="1 lets every event be up to 2.72 times as likely",
        )
    if not LEAST_ETA <= delta < 0.5:
        raise UsageError(
            f"δ = {delta} of (ε, δ) is not between {LEAST_ETA:g} and .5",
            hint="it should be far below one over the number of people; 1e-9 is usual",
        )
    if queries < 1:
        raise UsageError(f"T = {queries} questions is less than 1", hint="give at least 1")


def _least_below(most: float, enough: Callable[[float], bool]) -> float:
    """The least V that is enough, below one that surely is."""
    least = most / 2
    while enough(least):
        most, least = least, least / 2
    while most - least > CLOSE * most:
        between = (least + most) / 2
        least, most = (least, between) if enough(between) else (between, most)
    return most


def rise_within(kind: str, variance: float, queries: int, eta: float) -> float:
    """δ of (δ,T)-privacy at η that noise of this variance keeps, and next to the least one."""
    noise = checked_kind(kind)
    near = gaussian.rise_of(walk(queries, variance)[1], eta)
    worst = WorstCase(tuple(sums(noise, variance, queries, near)))
    if worst.atom > eta:
        raise PromiseError(
            f"an answer that only one hypothesis can give has probability {worst.atom:.3g}, more "
            f"than η = {eta:g}",
            hint="choose a larger η, or gaussian noise",
        )
    low, high = 0.0, max(near, 1e-6)
    while worst.above(high) > eta:
        low, high = high, 2 * high
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if worst.above(middle) <= eta else (middle, high)
    while not kept(noise, variance, queries, high, eta):  # digits are best near δ itself
        high *= 1 + CLOSE
    return high


def _least_above(
    least: float | None, enough: Callable[[float], bool], close: float
) -> float | None:
    """The least V from here on that is enough, to a relative error on the side of more noise."""
    if least is None or enough(least):
        return least
    low, high = 0.0, close
    while not enough(least * (1 + high)):
        low, high = high, 2 * high
        if high > 1e9:
            return None
    while high - low > close * (1 + low):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(least * (1 + middle)) else (middle, high)
    return least * (1 + high)


def _geometric(delta: float, target: float, queries: int) -> float:
    """The least V of geometric noise.

    The loss is ε or −ε each time, so that conf is above δ only if more than δ/ε of the signs more
    are + than −. At ε = δ/m the smallest m that keeps the promise is found, then ε within its step.
    """

    def enough(variance: float) -> bool:
        return kept("geometric", variance, queries, delta, target)

    low, high = 0, queries
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(_geometric_variance(delta / middle)) else (middle, high)
    most, least = _geometric_variance(delta / high), _geometric_variance(delta / max(low, 0.5))
    while most - least > CLOSE * most:
        between = (least + most) / 2
        least, most = (least, between) if enough(between) else (between, most)
    return most


def _geometric_variance(rate: float) -> float:
    return 1 / (2 * math.sinh(min(rate, 100.0) / 2) ** 2)


@lru_cache(maxsize=64)
def account(
    kind: str, variance: float, charges: int, *, at: float = 1e-6, change: Change | None = None
) -> Account:
    """What so many answers amount to, in ρ-zCDP and in (ε, δ)-DP at δ = `at`.

    ε is that of totals of one change, else the most of all changes.
    """
    noise = checked_kind(kind)
    if not 0 < at < 1:
        raise UsageError(f"δ = {at} is not between 0 and 1", hint="1e-6 is usual")
    rate = geometric_rate(variance) if noise == "geometric" else None
    rho = charges * (concentrated_rho(rate) if rate else 1 / (2 * variance))
    _, mu = walk(max(charges, 1), variance)
    normal = epsilon_of_normal(mu, at) if charges else 0.0
    epsilon, atom = 0.0, 0.0
    if charges:
        epsilon, atom = _epsilon(
            WorstCase(tuple(sums(noise, variance, charges, normal, change))), at
        )
    return Account(
        noise, variance, charges, rho, noise != "binomial", mu if charges else 0.0,
        rho + 2 * math.sqrt(rho * -math.log(at)), epsilon, normal,
        charges * rate if rate else None, at, atom,
    )  # fmt: skip


def _epsilon(worst: WorstCase, at: float) -> tuple[float, float]:
    """The least ε at δ = `at` on the grid, which is not below the exact one; and the atom."""
    if worst.atom >= at:
        return math.inf, worst.atom
    low, high = 0.0, 1e-3
    while worst.excess(high) > at:
        low, high = high, 2 * high
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if worst.excess(middle) > at else (low, middle)
    return high, worst.atom


def epsilon_of_normal(mu: float, delta: float) -> float:
    """The least ε between N(0, 1) and N(μ, 1) at δ: Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) = δ."""
    return gaussian.epsilon_of(mu, delta)
