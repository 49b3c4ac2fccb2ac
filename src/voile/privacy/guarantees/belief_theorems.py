"""The theorems between promises about beliefs; proofs in docs/mathematics, section 16."""

from __future__ import annotations

from voile.privacy.guarantees.belief_formulas import (
    REPORT,
    add_remove_to_swap,
    amplification_to_breach,
    amplification_to_swap,
    breach_to_amplification,
    breach_to_breach,
    breach_to_dp,
    breach_to_s_breach,
    d_gamma_to_d_gamma,
    d_gamma_to_presence,
    d_gamma_to_relative,
    d_gamma_to_swap,
    d_gamma_to_swap_printed,
    delta_t_to_swap,
    dp_to_breach,
    dp_to_d_gamma,
    dp_to_exclusive,
    dp_to_relative,
    exclusive_to_breach,
    exclusive_to_independent,
    exclusive_to_swap,
    independent_to_exclusive,
    indistinguishable_to_swap,
    relative_to_d_gamma,
    relative_to_dp,
    relative_to_exclusive,
    relative_to_indistinguishable,
    relative_to_indistinguishable_printed,
    relative_to_relative,
    swap_to_amplification,
    swap_to_delta_t,
    swap_to_indistinguishable,
)
from voile.privacy.guarantees.theorems import Theorem

BREACHES = "Evfimievski, Gehrke, Srikant, PODS 2003, Statement 1"
BY_ITSELF = "each record is perturbed by itself, and what comes of it is what is published"
SAME_BOUND = "Mathematics §16: both bound the same ratio"
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
        "relative", "dp[add-remove]", "Mathematics §16: the quotient of beliefs tends to the "
        "likelihood ratio as the prior tends to 0", "ε = δ", relative_to_dp, equivalent=True,
    ),
    Theorem(
        "dp[add-remove]", "relative", "Mathematics §16: Bayes' rule, for every prior",
        "δ = ε, for any d", dp_to_relative, equivalent=True, needs=("d",),
    ),
    Theorem(
        "relative", "relative", "Mathematics §16: the same for every prior",
        "the same δ, for any d", relative_to_relative, equivalent=True, needs=("d",),
    ),
    Theorem(
        "dp[add-remove]", "d-gamma[independent]", f"Proposition 2.5, {REPORT}, and Mathematics §16",
        "γ = d·e^ε, where that is below 1", dp_to_d_gamma, needs=("d",),
    ),
    Theorem(
        "relative", "d-gamma[exclusive]", "Mathematics §6: exchanging a record",
        "the larger of d·e^δ and d·e^2δ/(1 − d + d·e^2δ)", relative_to_exclusive,
    ),
    Theorem(
        "dp[add-remove]", "d-gamma[exclusive]", "Mathematics §6: exchanging a record",
        "the larger of d·e^ε and d·e^2ε/(1 − d + d·e^2ε)", dp_to_exclusive, needs=("d",),
    ),
    Theorem(
        "dp[add-remove]", "dp[swap]",
        "Mathematics §12: a swap takes one record out and puts another in", "2ε",
        add_remove_to_swap,
    ),
    Theorem(
        "d-gamma[independent]", "dp[swap]",
        f"Proposition 3.5, {REPORT}, made tight in Mathematics §16",
        "ε = ln(R·γ/d)", d_gamma_to_swap, printed=d_gamma_to_swap_printed,
    ),
    Theorem(
        "relative", "indistinguishable",
        f"Proposition 3.5, {REPORT}, made tight in Mathematics §16",
        "ε = 2δ", relative_to_indistinguishable, printed=relative_to_indistinguishable_printed,
    ),
    Theorem(
        "d-gamma[exclusive]", "dp[swap]", "Mathematics §6: exchanging a record", "ε = ln R",
        exclusive_to_swap,
    ),
    Theorem(
        "d-gamma[exclusive]", "d-gamma[independent]", "Definition 6.2, VLDB 2007",
        "the same d and γ", exclusive_to_independent,
    ),
    Theorem(
        "d-gamma[independent]", "d-gamma[exclusive]", "Mathematics §6: exchanging a record",
        "γ(d, R·γ/d), the belief that the ratio R·γ/d makes of d", independent_to_exclusive,
    ),
    Theorem(
        "d-gamma[independent]", "d-gamma[independent]",
        "Mathematics §2: Bayes' rule at another prior",
        "the larger of what R makes of d, and d·γ₀/d₀", d_gamma_to_d_gamma, needs=("d",),
    ),
    Theorem(
        "d-gamma[exclusive]", "d-gamma[exclusive]", "Mathematics §6: Bayes' rule at another prior",
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
        "amplification", "dp[swap]", "Mathematics §16: one record changes one factor", "ε = ln γ",
        amplification_to_swap, equivalent=True, condition=BY_ITSELF,
    ),
    Theorem(
        "dp[swap]", "amplification", "Mathematics §16: one record changes one factor", "γ = e^ε",
        swap_to_amplification, equivalent=True, condition=BY_ITSELF,
    ),
    Theorem(
        "amplification", "breach[record]", BREACHES, "ρ₂(1−ρ₁)/(ρ₁(1−ρ₂)) = γ",
        amplification_to_breach, equivalent=True, needs=("rho1",), condition=BY_ITSELF,
    ),
    Theorem(
        "breach[record]", "amplification", f"{BREACHES}, and its converse in Mathematics §16",
        "γ = ρ₂(1−ρ₁)/(ρ₁(1−ρ₂))", breach_to_amplification, equivalent=True, condition=BY_ITSELF,
    ),
    Theorem(
        "breach[record]", "s-breach", "Agrawal, Srikant, Thomas, SIGMOD 2005, Definitions 4 and 5",
        "the same ρ₁ and ρ₂, for any s", breach_to_s_breach, tight=False, needs=("s",),
        condition=BY_ITSELF,
    ),
    Theorem(
        "dp[swap]", "delta-T", "Mathematics §16: log-odds change by the logarithm of the ratio",
        "δ = ε, η = 0, for every T", swap_to_delta_t, equivalent=True,
    ),
    Theorem(
        "delta-T", "dp[swap]", "Mathematics §16: log-odds change by the logarithm of the ratio",
        "ε = δ", delta_t_to_swap, equivalent=True,
        condition="η = 0, and all that is published answers at most T queries",
    ),
)  # fmt: skip
