"""The theorems between promises that hold up to a small probability.

About noisy answers: docs/mathematics, section 33; about normal noise and units: section 39.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from voile.errors import spelled
from voile.privacy import gaussian
from voile.privacy.guarantees import (
    LARGEST_MU,
    ApproximateDp,
    DeltaT,
    Dp,
    Gdp,
    NoisyAnswers,
    Unit,
    Zcdp,
)
from voile.privacy.guarantees.theorems import (
    ABOUT,
    NothingFollows,
    PrintedConstant,
    Theorem,
    Wanted,
    below_one,
    chosen,
    exp_up,
    twice,
    within_reason,
)
from voile.privacy.interactive.laws import concentrated_rho, geometric_rate

ROUNDED = 1 + 1e-9
"""What sums in floats may lose."""
EXACT = "Mathematics §33: the exact law of the sum of T losses"
TIGHTER_CONVERSION = "Canonne, Kamath, Steinke, NeurIPS 2020, Proposition 12"
GAUSSIAN = "Dong, Roth, Su, JRSS B 2022"
ORDERS = 200
"""Steps in the search of the best order of Rényi's divergence. Any order gives a sound bound."""
MOST_EXPONENT = 700.0
"""Beyond, e^ε is no float."""
PURE = "Bun, Steinke, TCC 2016, Proposition 1.4, made tight in Mathematics §33"
DISCRETE = "Canonne, Kamath, Steinke, NeurIPS 2020, Theorem 4, and Mathematics §33"
MARKOV = "Mathematics §33: Markov's inequality for (1 − e^(ε − loss))⁺"
CHERNOFF = "Mathematics §33: Chernoff's bound by Rényi's divergence"
NO_EPSILON = "an extreme answer can favour one hypothesis by any factor: no ε bounds that"


def noisy_to_approximate(source: NoisyAnswers, wanted: Wanted) -> ApproximateDp:
    """The largest ε of all totals that can be queried."""
    from voile.privacy.interactive.promise import account  # noqa: PLC0415  (loads SciPy)

    delta = probability(wanted)
    found = account(source.noise, source.variance, source.T, at=delta)
    if math.isinf(found.epsilon):
        raise NothingFollows(
            f"answers that only one hypothesis can give have probability {found.atom:.3g}",
            f"choose a larger delta than {found.atom:.3g}, or gaussian noise",
        )
    return ApproximateDp(within_reason(found.epsilon * ROUNDED), delta)


def noisy_to_delta_t(source: NoisyAnswers, wanted: Wanted) -> DeltaT:
    """η for the wanted rise, from the exact law of the sum of losses."""
    from voile.privacy.interactive.promise import breaches  # noqa: PLC0415  (loads SciPy)

    queries = chosen(wanted, "T", source.T)
    answers = source.T if queries is None else min(int(queries), source.T)
    rise = wanted["delta"]
    if rise <= 0:
        return rising(wanted, 1.0, queries)
    found = breaches(source.noise, source.variance, answers, rise)
    return rising(wanted, found.any_property, queries)


def gaussian_to_zcdp(source: NoisyAnswers, _: Wanted) -> Zcdp:
    """ρ = T/2V for discrete Gaussian noise."""
    return Zcdp(within_reason(source.T / (2 * source.variance) * ROUNDED))


def geometric_to_swap(source: NoisyAnswers, _: Wanted) -> Dp:
    """ε = T·ε₀: the losses of geometric noise add up."""
    return Dp(within_reason(source.T * geometric_rate(source.variance) * ROUNDED), "swap")


def geometric_to_zcdp(source: NoisyAnswers, _: Wanted) -> Zcdp:
    """ρ = T·ε₀·tanh(ε₀/2) for geometric noise."""
    rho = source.T * concentrated_rho(geometric_rate(source.variance))
    return Zcdp(within_reason(rho * ROUNDED))


def binomial_to_neither(source: NoisyAnswers, _: Wanted) -> Zcdp:
    """Listed as a theorem, so that its reason is given."""
    raise NothingFollows(
        f"of {source.noise} noise some answers can come from one hypothesis alone, with a small "
        "chance: neither an ε nor a ρ bounds that",
        "request approximate-dp(delta=1e-6), or take gaussian noise",
    )


# ---------------------------------------------------------------------- within one unit
# These speak of two laws, so that they hold for every unit, and lead to promises of the same one.


def zcdp_to_approximate(source: Zcdp, wanted: Wanted) -> ApproximateDp:
    """The least ε that is known at the wanted δ."""
    delta = probability(wanted)
    epsilon = epsilon_of_concentrated(source.rho, delta)
    return ApproximateDp(within_reason(epsilon * ROUNDED), delta, source.unit)


@lru_cache(maxsize=4096)
def epsilon_of_concentrated(rho: float, delta: float) -> float:
    """The least known ε at δ of ρ-zCDP (Canonne, Kamath, Steinke, 2020, Proposition 12).

    ε = α·ρ + (ln(1/δ) + (α − 1)·ln(1 − 1/α) − ln α)/(α − 1) at the best order α > 1; each order is
    sound, so that a search which stops early gives too large an ε, never too small a one.
    """
    if rho == 0:
        return 0.0

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)  # α − 1
        order = 1 + excess
        rest = -math.log(delta) + excess * (log_excess - math.log(order)) - math.log(order)
        return order * rho + rest / excess

    low, high = math.log(1e-6), math.log(1e9)
    for _ in range(ORDERS):  # the bound falls and then rises
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if at(left) < at(right) else (left, high)
    plain = rho + 2 * math.sqrt(rho * -math.log(delta))
    return max(0.0, min(at((low + high) / 2), plain)) * (1 + 1e-12)


def zcdp_to_delta_t(source: Zcdp, wanted: Wanted) -> DeltaT:
    """At the best order of Rényi's divergence: exp(−(δ−ρ)²/4ρ)."""
    rise, rho = wanted["delta"], source.rho
    eta = 1.0 if rise <= rho else math.exp(-((rise - rho) ** 2) / (4 * rho)) if rho else 0.0
    return rising(wanted, eta, chosen(wanted, "T", None), source.unit)


def zcdp_to_dp(source: Zcdp, _: Wanted) -> Dp:
    """ε = 0 where ρ = 0; no ε for any other ρ."""
    return nothing_learnt(source.rho, source.unit)


def gdp_to_dp(source: Gdp, _: Wanted) -> Dp:
    """ε = 0 where μ = 0; no ε for any other μ."""
    return nothing_learnt(source.mu, source.unit)


def nothing_learnt(loss: float, unit: Unit) -> Dp:
    """ε = 0, if the loss is 0 by any other measure."""
    if loss > 0:
        parameters = "delta=1e-6" + ", unit=add-remove" * (unit == "add-remove")
        target = spelled("target", f"approximate-dp({parameters})", flag="--to")
        raise NothingFollows(NO_EPSILON, f"try {target}")
    return Dp(0.0, unit)


def dp_to_zcdp(source: Dp, _: Wanted) -> Zcdp:
    """ρ = ε·tanh(ε/2), below ε²/2 and below ε."""
    return Zcdp(within_reason(concentrated_rho(source.epsilon) * ROUNDED), source.unit)


def dp_to_zcdp_printed(source: Dp) -> tuple[PrintedConstant, ...]:
    """The looser ρ of the paper."""
    where = "Bun, Steinke, TCC 2016, Proposition 1.4: ε²/2"
    return (PrintedConstant(where, {"rho": source.epsilon**2 / 2}),)


def dp_to_gdp(source: Dp, _: Wanted) -> Gdp:
    """Φ(μ/2) = e^ε/(1 + e^ε)."""
    if source.epsilon > MOST_EXPONENT:
        raise NothingFollows(f"μ of ε = {source.epsilon:g} is too large to be stated")
    return Gdp(stated_mu(gaussian.mu_of_pure(source.epsilon)), source.unit)


def dp_to_approximate(source: Dp, wanted: Wanted) -> ApproximateDp:
    """The same ε at any δ, 0 unless another is wanted."""
    return ApproximateDp(source.epsilon, chosen(wanted, "delta", 0.0), source.unit)


def approximate_to_dp(source: ApproximateDp, _: Wanted) -> Dp:
    """The same ε where δ = 0; no ε for any other δ."""
    if source.delta > 0:
        raise NothingFollows(
            f"with probability δ = {source.delta:g} anything may be published, even the record "
            "itself: no ε bounds that",
            "only approximate-dp with delta=0 is ε-differential privacy",
        )
    return Dp(source.epsilon, source.unit)


def approximate_to_delta_t(source: ApproximateDp, wanted: Wanted) -> DeltaT:
    """η by Markov's inequality, at the wanted rise."""
    rise = wanted["delta"]
    gap = -math.expm1(source.epsilon - rise)
    eta = source.delta / gap if gap > 0 else float(source.epsilon > rise or source.delta > 0)
    return rising(wanted, eta, chosen(wanted, "T", None), source.unit)


def gdp_to_zcdp(source: Gdp, _: Wanted) -> Zcdp:
    """ρ = μ²/2."""
    return Zcdp(within_reason(source.mu**2 / 2 * ROUNDED), source.unit)


def gdp_to_approximate(source: Gdp, wanted: Wanted) -> ApproximateDp:
    """The exact ε at the wanted δ."""
    delta = probability(wanted)
    return ApproximateDp(within_reason(gaussian.epsilon_of(source.mu, delta)), delta, source.unit)


def gdp_to_delta_t(source: Gdp, wanted: Wanted) -> DeltaT:
    """η for any property and whatever is computed from noisy figures."""
    eta = gaussian.any_rise_chance(source.mu, wanted["delta"])
    return rising(wanted, eta, chosen(wanted, "T", None), source.unit)


# ---------------------------------------------------------------------- from unit to unit


def zcdp_to_exchange(source: Zcdp, _: Wanted) -> Zcdp:
    """4ρ: groups of two have four times the ρ."""
    return Zcdp(within_reason(4 * source.rho), "swap")


def gdp_to_exchange(source: Gdp, _: Wanted) -> Gdp:
    """2μ: two normal laws twice as far apart."""
    return Gdp(stated_mu(2 * source.mu), "swap")


def approximate_to_exchange(source: ApproximateDp, wanted: Wanted) -> ApproximateDp:
    """2ε and (1 + e^ε)·δ."""
    epsilon = twice(source.epsilon)
    delta = 0.0
    if source.delta:
        delta = below_one((1 + exp_up(source.epsilon)) * Fraction(source.delta), "δ")
    asked = chosen(wanted, "delta", delta)
    if asked < delta:
        raise NothingFollows(
            f"for exchanging a record the rest is (1 + e^ε)·δ = {delta:.3g}, more than {asked:g}",
            f"choose a delta of at least {delta:.3g}",
        )
    return ApproximateDp(epsilon, asked, "swap")


# ---------------------------------------------------------------------- parts


def rising(wanted: Wanted, eta: float, queries: int | None, unit: Unit = "swap") -> DeltaT:
    """δ as wanted and the least η that is known for it; a chance of 1 promises nothing."""
    if eta * ROUNDED >= 1:
        raise NothingFollows(
            f"log-odds may rise by more than δ = {wanted['delta']:g} with any probability",
            "choose a larger delta",
        )
    return DeltaT(wanted["delta"], queries, eta * ROUNDED, ABOUT[unit])


def stated_mu(mu: float) -> float:
    """A μ that can be stated."""
    if mu > LARGEST_MU:
        raise NothingFollows(f"μ would be {mu:g}, which promises nothing")
    return mu


def probability(wanted: Wanted) -> float:
    """δ of (ε, δ); a target of (δ, T) may have one that is none."""
    delta = float(wanted["delta"])
    if not 0 < delta < 1:
        raise NothingFollows(f"δ = {delta:g} is no chance between 0 and 1", "1e-6 is usual")
    return delta


def within_unit(unit: Unit) -> tuple[Theorem, ...]:
    """The theorems between promises for one unit."""
    zcdp, pure, gdp = f"zcdp[{unit}]", f"dp[{unit}]", f"gdp[{unit}]"
    approximate, beliefs = f"approximate-dp[{unit}]", f"delta-T[{ABOUT[unit]}]"
    return (
        Theorem(
            zcdp, approximate, TIGHTER_CONVERSION,
            "ε = αρ + (ln(1/δ) + (α−1)·ln(1 − 1/α) − ln α)/(α−1), at the best α > 1",
            zcdp_to_approximate, tight=False, needs=("delta",),
        ),
        Theorem(
            zcdp, beliefs, CHERNOFF, "η = exp(−(δ−ρ)²/4ρ)", zcdp_to_delta_t, tight=False,
            needs=("delta",),
        ),
        Theorem(zcdp, pure, "both say that nothing is learnt", "ε = 0 if ρ = 0", zcdp_to_dp),
        Theorem(pure, zcdp, PURE, "ρ = ε·tanh(ε/2)", dp_to_zcdp, printed=dp_to_zcdp_printed),
        Theorem(
            pure, approximate, "the definition, with a rest of 0", "the same ε, for any δ",
            dp_to_approximate, tight=False,
        ),
        Theorem(
            approximate, pure, "the definition, with a rest of 0", "ε = ε, if δ = 0",
            approximate_to_dp,
        ),
        Theorem(
            approximate, beliefs, MARKOV, "η = δ'/(1 − e^(ε − δ)), δ' the rest",
            approximate_to_delta_t, needs=("delta",),
        ),
        Theorem(
            gdp, approximate, f"{GAUSSIAN}, Corollary 2.13, and Mathematics §39",
            "Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) = δ", gdp_to_approximate, needs=("delta",),
        ),
        Theorem(gdp, zcdp, "Mathematics §39: Rényi's divergence", "ρ = μ²/2", gdp_to_zcdp),
        Theorem(
            gdp, beliefs, "Mathematics §39: the worst that can be computed from normal noise",
            "η = Φ(−a) with Φ(−a) = e^δ·Φ(−a − μ)", gdp_to_delta_t, needs=("delta",),
        ),
        Theorem(gdp, pure, "both say that nothing is learnt", "ε = 0 if μ = 0", gdp_to_dp),
        Theorem(
            pure, gdp, "Mathematics §39: randomized response is the worst",
            "Φ(μ/2) = e^ε/(1 + e^ε)", dp_to_gdp,
        ),
    )  # fmt: skip


ANSWER_THEOREMS = (
    *(
        Theorem(
            f"noisy-answers[{noise}]", "approximate-dp[swap]", EXACT,
            "the least ε with E[(1 − e^(ε − loss))⁺] ≤ δ", noisy_to_approximate, needs=("delta",),
        )
        for noise in ("binomial", "gaussian", "geometric")
    ),
    *(
        Theorem(
            f"noisy-answers[{noise}]", "delta-T[record]", f"{EXACT}; {MARKOV}",
            "η = E[(1 − e^(ε − loss))⁺]/(1 − e^(ε − δ)) at the best ε", noisy_to_delta_t,
            tight=False, needs=("delta",),
        )
        for noise in ("binomial", "gaussian", "geometric")
    ),
    Theorem("noisy-answers[gaussian]", "zcdp[swap]", DISCRETE, "ρ = T/2V", gaussian_to_zcdp),
    Theorem(
        "noisy-answers[geometric]", "dp[swap]", "Mathematics §33: each loss is at most ε₀",
        "ε = T·ε₀ with V = 1/(2·sinh²(ε₀/2))", geometric_to_swap,
    ),
    Theorem(
        "noisy-answers[geometric]", "zcdp[swap]", PURE, "ρ = T·ε₀·tanh(ε₀/2)", geometric_to_zcdp,
        tight=False,
    ),
    *(
        Theorem(
            "noisy-answers[binomial]", target, "Mathematics §33: the ends of the binomial law",
            "never", binomial_to_neither,
        )
        for target in ("zcdp[swap]", "dp[swap]")
    ),
    *within_unit("swap"),
    *within_unit("add-remove"),
    Theorem(
        "zcdp[add-remove]", "zcdp[swap]", "Bun, Steinke, TCC 2016, Proposition 1.9", "4ρ",
        zcdp_to_exchange,
    ),
    Theorem(
        "gdp[add-remove]", "gdp[swap]", f"{GAUSSIAN}, Theorem 2.14", "2μ", gdp_to_exchange,
    ),
    Theorem(
        "approximate-dp[add-remove]", "approximate-dp[swap]",
        "Mathematics §39: one step after the other", "2ε and (1 + e^ε)·δ",
        approximate_to_exchange,
    ),
)  # fmt: skip
