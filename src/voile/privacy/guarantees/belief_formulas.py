"""The arithmetic of the theorems between promises about beliefs.

L is P(view | with a record)/P(view | without it). Three bounds say everything here: low ≤ L,
L ≤ high, and L of one record over L of another ≤ swap, where swap ≤ high/low always holds.
Proofs: docs/mathematics, section 16.
"""

from __future__ import annotations

import math
from fractions import Fraction

from voile.privacy.guarantee import Adversary, DGamma
from voile.privacy.guarantees.beliefs import (
    About,
    Amplification,
    Breach,
    DeltaT,
    Dp,
    Indistinguishable,
    Relative,
    SBreach,
)
from voile.privacy.guarantees.theorems import (
    NothingFollows,
    Printed,
    Wanted,
    belief_after,
    below_one,
    chosen,
    exp_up,
    log_up,
    ratio_of,
    twice,
)
from voile.privacy.planner import round_up

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
    hint = (
        f"choose a smaller d; below {limit:.4g} there is a γ. The upper half still holds, "
        f'how far beliefs rise: --to "breach(rho1={d:g}, about=presence)"'
        if limit
        else ""
    )
    gamma = below_one(needed, "γ", hint)
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
    return of_both_sides_linked(source.epsilon, wanted["d"])


def relative_to_exclusive(source: Relative, wanted: Wanted) -> DGamma:
    return of_both_sides_linked(source.delta, chosen(wanted, "d", source.d))


def of_both_sides_linked(epsilon: float, d: float) -> DGamma:
    """e^−ε ≤ L ≤ e^ε, so that exchanging a record has a ratio of at most e^2ε."""
    ratio = exp_up(epsilon)
    return d_gamma_within(d, 1 / ratio, ratio**2, "exclusive")


def relative_to_dp(source: Relative, _: Wanted) -> Dp:
    return Dp(source.delta, "add-remove")


def relative_to_relative(source: Relative, wanted: Wanted) -> Relative:
    return Relative(wanted["d"], source.delta)


def dp_to_relative(source: Dp, wanted: Wanted) -> Relative:
    return Relative(wanted["d"], source.epsilon)


def relative_to_indistinguishable(source: Relative, _: Wanted) -> Indistinguishable:
    return Indistinguishable(twice(source.delta))


def relative_to_indistinguishable_printed(source: Relative) -> tuple[Printed, ...]:
    printed = 2 * source.delta + 2 * math.log(2)
    return (Printed(f"Proposition 3.5, {REPORT}: 2δ + 2·ln 2", {"epsilon": printed}),)


def add_remove_to_swap(source: Dp, _: Wanted) -> Dp:
    return Dp(twice(source.epsilon), "swap")


# ---------------------------------------------------------------------- exchanging a record


def breach_within(ratio: Fraction, rho1: float, about: About) -> Breach:
    rho2 = below_one(belief_after(rho1, ratio), "ρ₂", "choose a smaller rho1")
    return Breach(rho1, rho2, about)


def dp_to_breach(source: Dp, wanted: Wanted) -> Breach:
    about: About = "presence" if source.unit == "add-remove" else "record"
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
