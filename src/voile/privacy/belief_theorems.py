"""The theorems between promises about beliefs; proofs in docs/mathematics.md, section 16.

L is P(view | with a record)/P(view | without it). Three bounds say everything here: low ≤ L,
L ≤ high, and L of one record over L of another ≤ swap, where swap ≤ high/low always holds.
"""

from __future__ import annotations

import math
from fractions import Fraction

from voile.privacy.beliefs import (
    Amplification,
    Breach,
    DeltaT,
    Dp,
    Indistinguishable,
    Relative,
    SBreach,
)
from voile.privacy.guarantee import Adversary, DGamma
from voile.privacy.planner import round_up
from voile.privacy.theorems import (
    NothingFollows,
    Printed,
    Theorem,
    Wanted,
    below_one,
    belief_after,
    chosen,
    exp_up,
    log_up,
    ratio_of,
)

REPORT = "technical report of VLDB 2007"
BREACHES = "Evfimievski, Gehrke, Srikant, PODS 2003, Statement 1"
BY_ITSELF = "each record is perturbed by itself, and what comes of it is what is published"


def d_gamma_within(
    d: float, low: Fraction, high: Fraction, adversary: Adversary = "independent"
) -> DGamma:
    """The strongest (d, γ) when d/γ ≤ `low` is needed below, and `high` is the ratio above.

    Against exclusive adversaries `high` is that of exchanging a record.
    """
    needed = max(belief_after(d, high), Fraction(d) / low)
    gamma = below_one(needed, "γ", f"choose a smaller d; below {float(low):.4g} there is a γ")
    return DGamma(d, max(gamma, math.nextafter(d, 1)), adversary)


# ---------------------------------------------------------------------- from (d, γ)


def d_gamma_to_relative(source: DGamma, wanted: Wanted) -> Relative:
    return Relative(chosen(wanted, "d", source.prior), log_up(source.ratio_high))


def d_gamma_to_swap(source: DGamma, _: Wanted) -> Dp:
    return Dp(log_up(source.ratio_high / source.ratio_low), "swap")


def d_gamma_to_swap_printed(source: DGamma) -> tuple[Printed, ...]:
    delta = log_up(source.ratio_high)
    return (
        Printed(f"Proposition 3.5, {REPORT}: 2δ + 2·ln 2", {"epsilon": 2 * (delta + math.log(2))}),
        Printed("2δ, which suffices for Proposition 3.5", {"epsilon": 2 * delta}),
    )


def exclusive_to_swap(source: DGamma, _: Wanted) -> Dp:
    return Dp(log_up(source.ratio_high), "swap")


def d_gamma_to_d_gamma(source: DGamma, wanted: Wanted) -> DGamma:
    return d_gamma_within(wanted["d"], source.ratio_low, source.ratio_high, source.adversary)


def exclusive_to_independent(source: DGamma, _: Wanted) -> DGamma:
    return DGamma(source.prior, source.posterior)


def independent_to_exclusive(source: DGamma, wanted: Wanted) -> DGamma:
    swap = source.ratio_high / source.ratio_low
    d = chosen(wanted, "d", source.prior)
    return d_gamma_within(d, source.ratio_low, swap, "exclusive")


def d_gamma_to_presence(source: DGamma, wanted: Wanted) -> Breach:
    return breach_within(source.ratio_high, chosen(wanted, "rho1", source.prior), "presence")


def exclusive_to_breach(source: DGamma, wanted: Wanted) -> Breach:
    return breach_within(source.ratio_high, chosen(wanted, "rho1", source.prior), "record")


# ---------------------------------------------------------------------- relative and add-remove


def relative_to_d_gamma(source: Relative, wanted: Wanted) -> DGamma:
    return of_both_sides(source.delta, chosen(wanted, "d", source.d))


def dp_to_d_gamma(source: Dp, wanted: Wanted) -> DGamma:
    return of_both_sides(source.epsilon, wanted["d"])


def of_both_sides(epsilon: float, d: float) -> DGamma:
    """e^−ε ≤ L ≤ e^ε: the lower bound decides, γ = d·e^ε."""
    ratio = exp_up(epsilon)
    return d_gamma_within(d, 1 / ratio, ratio)


def dp_to_exclusive(source: Dp, wanted: Wanted) -> DGamma:
    ratio = exp_up(source.epsilon)
    return d_gamma_within(wanted["d"], 1 / ratio, ratio**2, "exclusive")


def relative_to_dp(source: Relative, _: Wanted) -> Dp:
    return Dp(source.delta, "add-remove")


def relative_to_relative(source: Relative, wanted: Wanted) -> Relative:
    return Relative(wanted["d"], source.delta)


def dp_to_relative(source: Dp, wanted: Wanted) -> Relative:
    return Relative(wanted["d"], source.epsilon)


def relative_to_indistinguishable(source: Relative, _: Wanted) -> Indistinguishable:
    return Indistinguishable(2 * source.delta)


def relative_to_indistinguishable_printed(source: Relative) -> tuple[Printed, ...]:
    printed = 2 * source.delta + 2 * math.log(2)
    return (Printed(f"Proposition 3.5, {REPORT}: 2δ + 2·ln 2", {"epsilon": printed}),)


def add_remove_to_swap(source: Dp, _: Wanted) -> Dp:
    return Dp(2 * source.epsilon, "swap")


# ---------------------------------------------------------------------- exchanging a record


def breach_within(ratio: Fraction, rho1: float, about: str) -> Breach:
    rho2 = below_one(belief_after(rho1, ratio), "ρ₂", "choose a smaller rho1")
    return Breach(rho1, rho2, "presence" if about == "presence" else "record")


def dp_to_breach(source: Dp, wanted: Wanted) -> Breach:
    about = "presence" if source.unit == "add-remove" else "record"
    return breach_within(exp_up(source.epsilon), wanted["rho1"], about)


def breach_to_dp(source: Breach, _: Wanted) -> Dp:
    ratio = ratio_of(source.rho1, source.rho2)
    return Dp(log_up(ratio), "add-remove" if source.about == "presence" else "swap")


def breach_to_breach(source: Breach, wanted: Wanted) -> Breach:
    return breach_within(ratio_of(source.rho1, source.rho2), wanted["rho1"], source.about)


def swap_to_indistinguishable(source: Dp, _: Wanted) -> Indistinguishable:
    return Indistinguishable(source.epsilon)


def indistinguishable_to_swap(source: Indistinguishable, _: Wanted) -> Dp:
    return Dp(source.epsilon, "swap")


def amplification_to_swap(source: Amplification, _: Wanted) -> Dp:
    return Dp(log_up(Fraction(source.gamma)), "swap")


def swap_to_amplification(source: Dp, _: Wanted) -> Amplification:
    return amplifying(exp_up(source.epsilon))


def amplification_to_breach(source: Amplification, wanted: Wanted) -> Breach:
    return breach_within(Fraction(source.gamma), wanted["rho1"], "record")


def breach_to_amplification(source: Breach, _: Wanted) -> Amplification:
    return amplifying(ratio_of(source.rho1, source.rho2))


def amplifying(ratio: Fraction) -> Amplification:
    if ratio > 10**300:
        raise NothingFollows("γ would be above 10³⁰⁰, which promises nothing")
    return Amplification(round_up(ratio))


def breach_to_s_breach(source: Breach, wanted: Wanted) -> SBreach:
    rho1 = chosen(wanted, "rho1", source.rho1)
    found = breach_within(ratio_of(source.rho1, source.rho2), rho1, "record")
    return SBreach(wanted["s"], rho1, found.rho2)


def swap_to_delta_t(source: Dp, wanted: Wanted) -> DeltaT:
    return DeltaT(source.epsilon, chosen(wanted, "T", None), 0.0)


def delta_t_to_swap(source: DeltaT, _: Wanted) -> Dp:
    if source.eta > 0:
        raise NothingFollows(
            f"with a chance of η = {source.eta:g} anything may be published, even the record "
            "itself: no ε bounds that",
            "only delta-T with eta=0 is differential privacy",
        )
    return Dp(source.delta, "swap")


SAME_BOUND = "section 16: both bound the same ratio"
BELIEF_THEOREMS = (
    Theorem(
        "d-gamma[independent]", "relative", f"Proposition 2.5, {REPORT}",
        "e^δ = R = γ(1−d)/(d(1−γ))", d_gamma_to_relative,
    ),
    Theorem(
        "relative", "d-gamma[independent]", f"Proposition 2.5, {REPORT}",
        "γ = d·e^δ, where that is below 1", relative_to_d_gamma,
    ),
    Theorem(
        "relative", "dp[add-remove]", "section 16: the quotient of beliefs tends to the "
        "likelihood ratio as the prior tends to 0", "ε = δ", relative_to_dp, equivalent=True,
    ),
    Theorem(
        "dp[add-remove]", "relative", "section 16: Bayes' rule, for every prior", "δ = ε, for any d",
        dp_to_relative, equivalent=True, needs=("d",),
    ),
    Theorem(
        "relative", "relative", "section 16: the same for every prior", "the same δ, for any d",
        relative_to_relative, equivalent=True, needs=("d",),
    ),
    Theorem(
        "dp[add-remove]", "d-gamma[independent]", f"Proposition 2.5, {REPORT}, and section 16",
        "γ = d·e^ε, where that is below 1", dp_to_d_gamma, needs=("d",),
    ),
    Theorem(
        "dp[add-remove]", "d-gamma[exclusive]", "section 6: exchanging a record",
        "the larger of d·e^ε and d·e^2ε/(1 − d + d·e^2ε)", dp_to_exclusive, needs=("d",),
    ),
    Theorem(
        "dp[add-remove]", "dp[swap]", "section 12: a swap takes one record out and puts another in",
        "2ε", add_remove_to_swap,
    ),
    Theorem(
        "d-gamma[independent]", "dp[swap]", f"Proposition 3.5, {REPORT}, made tight in section 16",
        "ε = ln(R·γ/d)", d_gamma_to_swap, printed=d_gamma_to_swap_printed,
    ),
    Theorem(
        "relative", "indistinguishable", f"Proposition 3.5, {REPORT}, made tight in section 16",
        "ε = 2δ", relative_to_indistinguishable, printed=relative_to_indistinguishable_printed,
    ),
    Theorem(
        "d-gamma[exclusive]", "dp[swap]", "section 6: exchanging a record", "ε = ln R",
        exclusive_to_swap,
    ),
    Theorem(
        "d-gamma[exclusive]", "d-gamma[independent]", "Definition 6.2, VLDB 2007", "the same d and γ",
        exclusive_to_independent,
    ),
    Theorem(
        "d-gamma[independent]", "d-gamma[exclusive]", "section 6: exchanging a record",
        "γ(d, R·γ/d), the belief that the ratio R·γ/d makes of d", independent_to_exclusive,
    ),
    Theorem(
        "d-gamma[independent]", "d-gamma[independent]", "section 2: Bayes' rule at another prior",
        "the larger of what R makes of d, and d·γ₀/d₀", d_gamma_to_d_gamma, needs=("d",),
    ),
    Theorem(
        "d-gamma[exclusive]", "d-gamma[exclusive]", "section 6: Bayes' rule at another prior",
        "the larger of what R makes of d, and d·γ₀/d₀", d_gamma_to_d_gamma, needs=("d",),
    ),
    Theorem(
        "d-gamma[independent]", "breach[presence]", "Definition 2.3, VLDB 2007, as a breach",
        "ρ₁ = d, ρ₂ = γ", d_gamma_to_presence,
    ),
    Theorem(
        "d-gamma[exclusive]", "breach[record]", "Definition 6.2, VLDB 2007, as a breach",
        "ρ₁ = d, ρ₂ = γ", exclusive_to_breach,
    ),
    Theorem(
        "dp[add-remove]", "breach[presence]", SAME_BOUND, "ρ₂(1−ρ₁)/(ρ₁(1−ρ₂)) = e^ε",
        dp_to_breach, equivalent=True, needs=("rho1",),
    ),
    Theorem(
        "breach[presence]", "dp[add-remove]", SAME_BOUND, "e^ε = ρ₂(1−ρ₁)/(ρ₁(1−ρ₂))",
        breach_to_dp, equivalent=True,
    ),
    Theorem(
        "dp[swap]", "breach[record]", SAME_BOUND, "ρ₂(1−ρ₁)/(ρ₁(1−ρ₂)) = e^ε", dp_to_breach,
        equivalent=True, needs=("rho1",),
    ),
    Theorem(
        "breach[record]", "dp[swap]", SAME_BOUND, "e^ε = ρ₂(1−ρ₁)/(ρ₁(1−ρ₂))", breach_to_dp,
        equivalent=True,
    ),
    Theorem(
        "breach[record]", "breach[record]", SAME_BOUND, "the same ratio at another ρ₁",
        breach_to_breach, equivalent=True, needs=("rho1",),
    ),
    Theorem(
        "breach[presence]", "breach[presence]", SAME_BOUND, "the same ratio at another ρ₁",
        breach_to_breach, equivalent=True, needs=("rho1",),
    ),
    Theorem(
        "dp[swap]", "indistinguishable", f"Definition 3.1, {REPORT}: the same statement", "ε = ε",
        swap_to_indistinguishable, equivalent=True,
    ),
    Theorem(
        "indistinguishable", "dp[swap]", f"Definition 3.1, {REPORT}: the same statement", "ε = ε",
        indistinguishable_to_swap, equivalent=True,
    ),
    Theorem(
        "amplification", "dp[swap]", "section 16: one record changes one factor", "ε = ln γ",
        amplification_to_swap, equivalent=True, condition=BY_ITSELF,
    ),
    Theorem(
        "dp[swap]", "amplification", "section 16: one record changes one factor", "γ = e^ε",
        swap_to_amplification, equivalent=True, condition=BY_ITSELF,
    ),
    Theorem(
        "amplification", "breach[record]", BREACHES, "ρ₂(1−ρ₁)/(ρ₁(1−ρ₂)) = γ",
        amplification_to_breach, equivalent=True, needs=("rho1",), condition=BY_ITSELF,
    ),
    Theorem(
        "breach[record]", "amplification", f"{BREACHES}, and its converse in section 16",
        "γ = ρ₂(1−ρ₁)/(ρ₁(1−ρ₂))", breach_to_amplification, equivalent=True, condition=BY_ITSELF,
    ),
    Theorem(
        "breach[record]", "s-breach", "Agrawal, Srikant, Thomas, SIGMOD 2005, Definitions 4 and 5",
        "the same ρ₁ and ρ₂, for any s", breach_to_s_breach, tight=False, needs=("s",),
        condition=BY_ITSELF,
    ),
    Theorem(
        "dp[swap]", "delta-T", "section 16: log-odds change by the logarithm of the ratio",
        "δ = ε, η = 0, for every T", swap_to_delta_t, equivalent=True,
    ),
    Theorem(
        "delta-T", "dp[swap]", "section 16: log-odds change by the logarithm of the ratio", "ε = δ",
        delta_t_to_swap, equivalent=True,
        condition="η = 0, and all that is published answers at most T queries",
    ),
)  # fmt: skip
