"""What a theorem that leads from one guarantee to another is, and arithmetic that errs safely.

Every number that a theorem finds is rounded to the side of the weaker promise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from voile.errors import spelled
from voile.privacy.guarantee import (
    LARGEST_EPSILON,
    Adversary,
    DGamma,
    Guarantee,
    Value,
    log,
    round_up,
)
from voile.privacy.guarantees import (
    About,
    Amplification,
    Breach,
    DeltaT,
    Dp,
    Indistinguishable,
    Relative,
    SBreach,
    Unit,
)

# ---------------------------------------------------------------------- what a theorem is


Wanted = Mapping[str, Any]
"""The requested parameters, by name."""


class NothingFollows(Exception):  # noqa: N818  (an outcome, not an error)
    """A theorem's conclusion would be empty for these numbers; says why."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True)
class PrintedConstant:
    """A looser constant that a paper prints, where it differs from the tight one."""

    where: str
    values: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Where it is printed, and its numbers, ready for JSON."""
        return {"where": self.where, **self.values}


@dataclass(frozen=True)
class Theorem:
    """Every mechanism that keeps the source guarantee keeps the one that `derive` gives."""

    source: str
    target: str
    cite: str
    formula: str
    derive: Callable[[Any, Wanted], Guarantee]
    tight: bool = True
    """Some mechanism keeps the premise and no stronger conclusion of this kind."""
    equivalent: bool = False
    """The conclusion also implies the premise."""
    needs: tuple[str, ...] = ()
    """Parameters of the conclusion that hold for any choice, so that one must be made."""
    condition: str = ""
    printed: Callable[[Any], tuple[PrintedConstant, ...]] = lambda _: ()


def ratio_of(prior: float, posterior: float | Fraction) -> Fraction:
    """The likelihood ratio that takes a belief from `prior` to `posterior`."""
    p, q = Fraction(prior), Fraction(posterior)
    return q * (1 - p) / (p * (1 - q))


def belief_after(prior: float, ratio: Fraction) -> Fraction:
    """What a belief of `prior` becomes by this ratio."""
    p = Fraction(prior)
    return p * ratio / (p * ratio + 1 - p)


def exp_up(x: float) -> Fraction:
    """A fraction just not below e^x."""
    if x > 700:
        return exp_up(x / 2) ** 2
    return Fraction(math.nextafter(math.exp(x), math.inf)) if x else Fraction(1)


def log_up(ratio: Fraction) -> float:
    """A float just not below ln(ratio), for ratios of at least 1."""
    if ratio <= 1:
        return 0.0
    near = math.log(round_up(ratio)) if ratio < 10**300 else log(ratio) * (1 + 1e-13)
    return within_reason(math.nextafter(near, math.inf))


def twice(x: float) -> float:
    """Twice a logarithm of a ratio, if that can be stated."""
    return within_reason(2 * x)


def within_reason(x: float) -> float:
    """A logarithm of a ratio that can be stated."""
    if x > LARGEST_EPSILON:
        raise NothingFollows(f"the logarithm of the ratio would be {x:g}, which promises nothing")
    return x


def below_one(x: Fraction, name: str, hint: str = "") -> float:
    """x as a float, rounded up; a belief of 1 promises nothing."""
    near = round_up(x) if x < 2**1000 else math.inf
    if near >= 1:
        raise NothingFollows(f"{name} would be {near:.6g}, which promises nothing", hint)
    return near


def chosen(wanted: Wanted, name: str, default: Value) -> Any:
    """A parameter as requested, else the source's own."""
    return wanted.get(name, default)


# ---------------------------------------------------------------------- formulas
# The arithmetic of the theorems between promises about beliefs.
#
# L is P(view | with a record)/P(view | without it). Three bounds say everything here: low ≤ L,
# L ≤ high, and L of one record over L of another ≤ swap, where swap ≤ high/low always holds.
# Proofs: docs/mathematics, section 16.


REPORT = "technical report of VLDB 2007"


def gamma_within(d: float, low: Fraction, high: Fraction) -> Fraction:
    """The least γ with d/γ ≤ low that a ratio of `high` does not exceed at prior d.

    Against exclusive adversaries `high` is the ratio of exchanging a record.
    """
    return max(belief_after(d, high), Fraction(d) / low)


def d_gamma_within(
    d: float, low: Fraction, high: Fraction, adversary: Adversary = "independent"
) -> DGamma:
    """The strongest (d, γ) that bounds imply; `high` as for `gamma_within`."""
    needed = gamma_within(d, low, high)
    limit = float(low)
    target = spelled("target", f"breach(rho1={d:g}, about=presence)", flag="--to")
    hint = (
        f"choose a smaller d; below {limit:.4g} there is a γ. The upper half still holds, "
        f"how far beliefs rise: {target}"
        if limit
        else ""
    )
    gamma = below_one(needed, "γ", hint)
    return DGamma(d, max(gamma, math.nextafter(d, 1)), adversary)


# ---------------------------------------------------------------------- from (d, γ)


def d_gamma_to_relative(source: DGamma, wanted: Wanted) -> Relative:
    """δ = ln R: the upper bound of the ratio decides."""
    return Relative(chosen(wanted, "d", source.prior), log_up(source.ratio_high))


def d_gamma_to_swap(source: DGamma, _: Wanted) -> Dp:
    """ε = ln(R·γ/d): one record's upper bound over another's lower one."""
    return Dp(log_up(source.ratio_high / source.ratio_low), "swap")


def d_gamma_to_swap_printed(source: DGamma) -> tuple[PrintedConstant, ...]:
    """The looser ε of the technical report."""
    delta = log_up(source.ratio_high)
    return (
        PrintedConstant(
            f"Proposition 3.5, {REPORT}: 2δ + 2·ln 2", {"epsilon": 2 * (delta + math.log(2))}
        ),
        PrintedConstant("2δ, which suffices for Proposition 3.5", {"epsilon": 2 * delta}),
    )


def exclusive_to_swap(source: DGamma, _: Wanted) -> Dp:
    """ε = ln R: an exclusive promise bounds the exchange itself."""
    return Dp(log_up(source.ratio_high), "swap")


def d_gamma_to_d_gamma(source: DGamma, wanted: Wanted) -> DGamma:
    """The same bounds of the ratio, at another prior."""
    return d_gamma_within(wanted["d"], source.ratio_low, source.ratio_high, source.adversary)


def exclusive_to_independent(source: DGamma, _: Wanted) -> DGamma:
    """The same numbers, against fewer adversaries."""
    return DGamma(source.prior, source.posterior)


def independent_to_exclusive(source: DGamma, wanted: Wanted) -> DGamma:
    """The least γ against exclusive adversaries, whose ratio is high/low."""
    swap = source.ratio_high / source.ratio_low
    d = chosen(wanted, "d", source.prior)
    return d_gamma_within(d, source.ratio_low, swap, "exclusive")


def d_gamma_to_presence(source: DGamma, wanted: Wanted) -> Breach:
    """ρ₂ of a belief that a record is in the table."""
    return breach_within(source.ratio_high, chosen(wanted, "rho1", source.prior), "presence")


def exclusive_to_breach(source: DGamma, wanted: Wanted) -> Breach:
    """ρ₂ of a belief about one person's record."""
    return breach_within(source.ratio_high, chosen(wanted, "rho1", source.prior), "record")


# ---------------------------------------------------------------------- relative and add-remove


def relative_to_d_gamma(source: Relative, wanted: Wanted) -> DGamma:
    """γ from e^−δ ≤ L ≤ e^δ, at the wanted prior."""
    return of_both_sides(source.delta, chosen(wanted, "d", source.d))


def dp_to_d_gamma(source: Dp, wanted: Wanted) -> DGamma:
    """γ from e^−ε ≤ L ≤ e^ε, at the wanted prior."""
    return of_both_sides(source.epsilon, wanted["d"])


def of_both_sides(epsilon: float, d: float) -> DGamma:
    """e^−ε ≤ L ≤ e^ε: the lower bound decides, γ = d·e^ε."""
    ratio = exp_up(epsilon)
    return d_gamma_within(d, 1 / ratio, ratio)


def dp_to_exclusive(source: Dp, wanted: Wanted) -> DGamma:
    """γ against exclusive adversaries, from ε."""
    return of_both_sides_linked(source.epsilon, wanted["d"])


def relative_to_exclusive(source: Relative, wanted: Wanted) -> DGamma:
    """γ against exclusive adversaries, from δ."""
    return of_both_sides_linked(source.delta, chosen(wanted, "d", source.d))


def of_both_sides_linked(epsilon: float, d: float) -> DGamma:
    """e^−ε ≤ L ≤ e^ε, so that exchanging a record has a ratio of at most e^2ε."""
    ratio = exp_up(epsilon)
    return d_gamma_within(d, 1 / ratio, ratio**2, "exclusive")


def relative_to_dp(source: Relative, _: Wanted) -> Dp:
    """ε = δ: both bound the ratio of adding a record."""
    return Dp(source.delta, "add-remove")


def relative_to_relative(source: Relative, wanted: Wanted) -> Relative:
    """The same δ for any other d."""
    return Relative(wanted["d"], source.delta)


def dp_to_relative(source: Dp, wanted: Wanted) -> Relative:
    """δ = ε, for any d."""
    return Relative(wanted["d"], source.epsilon)


def relative_to_indistinguishable(source: Relative, _: Wanted) -> Indistinguishable:
    """ε = 2δ: exchanging is removing and adding."""
    return Indistinguishable(twice(source.delta))


def relative_to_indistinguishable_printed(source: Relative) -> tuple[PrintedConstant, ...]:
    """The looser ε of the technical report."""
    printed = 2 * source.delta + 2 * math.log(2)
    return (PrintedConstant(f"Proposition 3.5, {REPORT}: 2δ + 2·ln 2", {"epsilon": printed}),)


def add_remove_to_swap(source: Dp, _: Wanted) -> Dp:
    """2ε: exchanging is removing and adding."""
    return Dp(twice(source.epsilon), "swap")


# ---------------------------------------------------------------------- exchanging a record


def breach_within(ratio: Fraction, rho1: float, about: About) -> Breach:
    """No breach beyond what this ratio makes of ρ₁."""
    rho2 = below_one(belief_after(rho1, ratio), "ρ₂", "choose a smaller rho1")
    return Breach(rho1, rho2, about)


def dp_to_breach(source: Dp, wanted: Wanted) -> Breach:
    """ρ₂ that odds reach when e^ε multiplies them."""
    return breach_within(exp_up(source.epsilon), wanted["rho1"], ABOUT[source.unit])


def breach_to_dp(source: Breach, _: Wanted) -> Dp:
    """ε = ln of the ratio that takes ρ₁ to ρ₂."""
    ratio = ratio_of(source.rho1, source.rho2)
    return Dp(log_up(ratio), "add-remove" if source.about == "presence" else "swap")


def breach_to_breach(source: Breach, wanted: Wanted) -> Breach:
    """ρ₂ of the same ratio, for another ρ₁."""
    return breach_within(ratio_of(source.rho1, source.rho2), wanted["rho1"], source.about)


def swap_to_indistinguishable(source: Dp, _: Wanted) -> Indistinguishable:
    """The same ε: the definitions agree."""
    return Indistinguishable(source.epsilon)


def indistinguishable_to_swap(source: Indistinguishable, _: Wanted) -> Dp:
    """The same ε: the definitions agree."""
    return Dp(source.epsilon, "swap")


def amplification_to_swap(source: Amplification, _: Wanted) -> Dp:
    """ε = ln γ."""
    return Dp(log_up(Fraction(source.gamma)), "swap")


def swap_to_amplification(source: Dp, _: Wanted) -> Amplification:
    """γ = e^ε, where each record is perturbed by itself."""
    return amplifying(exp_up(source.epsilon))


def amplification_to_breach(source: Amplification, wanted: Wanted) -> Breach:
    """ρ₂ that odds reach when γ multiplies them."""
    return breach_within(Fraction(source.gamma), wanted["rho1"], "record")


def breach_to_amplification(source: Breach, _: Wanted) -> Amplification:
    """γ, the ratio that takes ρ₁ to ρ₂."""
    return amplifying(ratio_of(source.rho1, source.rho2))


def amplifying(ratio: Fraction) -> Amplification:
    """γ of a ratio, rounded up, if it can be stated."""
    if ratio > 10**300:
        raise NothingFollows("γ would be above 10³⁰⁰, which promises nothing")
    return Amplification(round_up(ratio))


def breach_to_s_breach(source: Breach, wanted: Wanted) -> SBreach:
    """The same ρ₂: seeing less than the value cannot raise a belief more."""
    rho1 = chosen(wanted, "rho1", source.rho1)
    found = breach_within(ratio_of(source.rho1, source.rho2), rho1, "record")
    return SBreach(wanted["s"], rho1, found.rho2)


ABOUT: Mapping[Unit, About] = {"swap": "record", "add-remove": "presence"}
"""What beliefs are about that a promise for a unit limits."""


def dp_to_delta_t(source: Dp, wanted: Wanted) -> DeltaT:
    """δ = ε and η = 0: log-odds never change by more."""
    return DeltaT(source.epsilon, chosen(wanted, "T", None), 0.0, ABOUT[source.unit])


def delta_t_to_dp(source: DeltaT, _: Wanted) -> Dp:
    """ε = δ where η = 0; no ε for any other η."""
    if source.eta > 0:
        raise NothingFollows(
            f"with probability η = {source.eta:g} anything may be published, even the record "
            "itself: no ε bounds that",
            "only delta-T with eta=0 is differential privacy",
        )
    return Dp(source.delta, "add-remove" if source.about == "presence" else "swap")


# ---------------------------------------------------------------------- theorems
# The theorems between promises about beliefs; proofs in docs/mathematics, section 16.


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
    *(
        theorem
        for unit, about in ABOUT.items()
        for theorem in (
            Theorem(
                f"dp[{unit}]", f"delta-T[{about}]",
                "Mathematics §16: log-odds change by the logarithm of the ratio",
                "δ = ε, η = 0, for every T", dp_to_delta_t, equivalent=True,
            ),
            Theorem(
                f"delta-T[{about}]", f"dp[{unit}]",
                "Mathematics §16: log-odds change by the logarithm of the ratio",
                "ε = δ", delta_t_to_dp, equivalent=True,
                condition="η = 0, and all that is published answers at most T queries",
            ),
        )
    ),
)  # fmt: skip
