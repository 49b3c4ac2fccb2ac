"""The theorems between promises about noisy answers; proofs in docs/mathematics, section 33."""

from __future__ import annotations

import math

from voile.errors import spelled
from voile.privacy.guarantees import ApproximateDp, DeltaT, Dp, NoisyAnswers, Zcdp
from voile.privacy.guarantees.theorems import (
    NothingFollows,
    PrintedConstant,
    Theorem,
    Wanted,
    chosen,
    within_reason,
)
from voile.privacy.interactive.laws import concentrated_rho, geometric_rate

ROUNDED = 1 + 1e-9
"""What sums in floats may lose."""
EXACT = "Mathematics §33: the exact law of the sum of T losses"
CONVERSION = "Bun, Steinke, TCC 2016, Proposition 1.3"
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


def zcdp_to_approximate(source: Zcdp, wanted: Wanted) -> ApproximateDp:
    """ε = ρ + 2·√(ρ·ln(1/δ)) at the wanted δ."""
    delta = probability(wanted)
    epsilon = source.rho + 2 * math.sqrt(source.rho * -math.log(delta))
    return ApproximateDp(within_reason(epsilon * ROUNDED), delta)


def zcdp_to_delta_t(source: Zcdp, wanted: Wanted) -> DeltaT:
    """At the best order of Rényi's divergence: exp(−(δ−ρ)²/4ρ)."""
    rise, rho = wanted["delta"], source.rho
    eta = 1.0 if rise <= rho else math.exp(-((rise - rho) ** 2) / (4 * rho)) if rho else 0.0
    return rising(wanted, eta, chosen(wanted, "T", None))


def zcdp_to_swap(source: Zcdp, _: Wanted) -> Dp:
    """ε = 0 where ρ = 0; no ε for any other ρ."""
    if source.rho > 0:
        target = spelled("target", "approximate-dp(delta=1e-6)", flag="--to")
        raise NothingFollows(NO_EPSILON, f"try {target}")
    return Dp(0.0, "swap")


def swap_to_zcdp(source: Dp, _: Wanted) -> Zcdp:
    """ρ = ε·tanh(ε/2), below ε²/2 and below ε."""
    return Zcdp(within_reason(concentrated_rho(source.epsilon) * ROUNDED))


def swap_to_zcdp_printed(source: Dp) -> tuple[PrintedConstant, ...]:
    """The looser ρ of the paper."""
    where = "Bun, Steinke, TCC 2016, Proposition 1.4: ε²/2"
    return (PrintedConstant(where, {"rho": source.epsilon**2 / 2}),)


def swap_to_approximate(source: Dp, wanted: Wanted) -> ApproximateDp:
    """The same ε at any δ, 0 unless another is wanted."""
    return ApproximateDp(source.epsilon, chosen(wanted, "delta", 0.0))


def approximate_to_swap(source: ApproximateDp, _: Wanted) -> Dp:
    """The same ε where δ = 0; no ε for any other δ."""
    if source.delta > 0:
        raise NothingFollows(
            f"with probability δ = {source.delta:g} anything may be published, even the record "
            "itself: no ε bounds that",
            "only approximate-dp with delta=0 is ε-differential privacy",
        )
    return Dp(source.epsilon, "swap")


def approximate_to_delta_t(source: ApproximateDp, wanted: Wanted) -> DeltaT:
    """η by Markov's inequality, at the wanted rise."""
    rise = wanted["delta"]
    gap = -math.expm1(source.epsilon - rise)
    eta = source.delta / gap if gap > 0 else float(source.epsilon > rise or source.delta > 0)
    return rising(wanted, eta, chosen(wanted, "T", None))


def rising(wanted: Wanted, eta: float, queries: int | None) -> DeltaT:
    """δ as wanted and the least η that is known for it; a chance of 1 promises nothing."""
    if eta * ROUNDED >= 1:
        raise NothingFollows(
            f"log-odds may rise by more than δ = {wanted['delta']:g} with any probability",
            "choose a larger delta",
        )
    return DeltaT(wanted["delta"], queries, eta * ROUNDED)


def probability(wanted: Wanted) -> float:
    """δ of (ε, δ); a target of (δ, T) may have one that is none."""
    delta = float(wanted["delta"])
    if not 0 < delta < 1:
        raise NothingFollows(f"δ = {delta:g} is no chance between 0 and 1", "1e-6 is usual")
    return delta


ANSWER_THEOREMS = (
    *(
        Theorem(
            f"noisy-answers[{noise}]", "approximate-dp", EXACT,
            "the least ε with E[(1 − e^(ε − loss))⁺] ≤ δ", noisy_to_approximate, needs=("delta",),
        )
        for noise in ("binomial", "gaussian", "geometric")
    ),
    *(
        Theorem(
            f"noisy-answers[{noise}]", "delta-T", f"{EXACT}; {MARKOV}",
            "η = E[(1 − e^(ε − loss))⁺]/(1 − e^(ε − δ)) at the best ε", noisy_to_delta_t,
            tight=False, needs=("delta",),
        )
        for noise in ("binomial", "gaussian", "geometric")
    ),
    Theorem("noisy-answers[gaussian]", "zcdp", DISCRETE, "ρ = T/2V", gaussian_to_zcdp),
    Theorem(
        "noisy-answers[geometric]", "dp[swap]", "Mathematics §33: each loss is at most ε₀",
        "ε = T·ε₀ with V = 1/(2·sinh²(ε₀/2))", geometric_to_swap,
    ),
    Theorem(
        "noisy-answers[geometric]", "zcdp", PURE, "ρ = T·ε₀·tanh(ε₀/2)", geometric_to_zcdp,
        tight=False,
    ),
    *(
        Theorem(
            "noisy-answers[binomial]", target, "Mathematics §33: the ends of the binomial law",
            "never", binomial_to_neither,
        )
        for target in ("zcdp", "dp[swap]")
    ),
    Theorem(
        "zcdp", "approximate-dp", CONVERSION, "ε = ρ + 2·√(ρ·ln(1/δ))", zcdp_to_approximate,
        tight=False, needs=("delta",),
    ),
    Theorem(
        "zcdp", "delta-T", CHERNOFF, "η = exp(−(δ−ρ)²/4ρ)", zcdp_to_delta_t, tight=False,
        needs=("delta",),
    ),
    Theorem("zcdp", "dp[swap]", "both say that nothing is learnt", "ε = 0 if ρ = 0", zcdp_to_swap),
    Theorem(
        "dp[swap]", "zcdp", PURE, "ρ = ε·tanh(ε/2)", swap_to_zcdp, printed=swap_to_zcdp_printed
    ),
    Theorem(
        "dp[swap]", "approximate-dp", "the definition, with a rest of 0", "the same ε, for any δ",
        swap_to_approximate, tight=False,
    ),
    Theorem(
        "approximate-dp", "dp[swap]", "the definition, with a rest of 0", "ε = ε, if δ = 0",
        approximate_to_swap,
    ),
    Theorem(
        "approximate-dp", "delta-T", MARKOV, "η = δ'/(1 − e^(ε − δ)), δ' the rest",
        approximate_to_delta_t, needs=("delta",),
    ),
)  # fmt: skip
