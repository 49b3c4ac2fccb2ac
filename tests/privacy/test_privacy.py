"""The promise: exact posteriors by enumeration, for the set and the multiset form.

Nothing here uses the formulas under test: the chance of a view is computed from what the
algorithm does to each record and each tuple, in exact fractions, and Bayes' rule does the rest.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from voile.errors import PromiseError, UsageError
from voile.mechanisms import AlphaBeta
from voile.privacy import Adversary, DGamma, Form, plan

D, GAMMA = 0.01, 0.2
MOST = 9
"""Published counts that are enumerated; the ratio does not grow beyond."""


def published_law(mechanism: AlphaBeta, copies: int) -> list[Fraction]:
    """P(published count of a tuple = j) when the table has it `copies` times."""
    a, noise = Fraction(mechanism.retention), Fraction(mechanism.noise)
    kept = [math.comb(copies, i) * a**i * (1 - a) ** (copies - i) for i in range(copies + 1)]
    if mechanism.form == "set":
        assert copies in (0, 1)
        return [1 - a, a] if copies else [1 - noise, noise]
    return [
        sum(
            (kept[i] * (1 - noise) * noise ** (j - i) for i in range(min(j, copies) + 1)),
            Fraction(0),
        )
        for j in range(MOST + 1)
    ]


def posteriors(mechanism: AlphaBeta, prior: Fraction, others: int) -> list[Fraction]:
    """What is believed of one more record of a tuple after each published count of it."""
    with_it, without = (published_law(mechanism, others + extra) for extra in (1, 0))
    return [
        prior * yes / (prior * yes + (1 - prior) * no)
        for yes, no in zip(with_it, without, strict=True)
    ]


@pytest.mark.parametrize("form", ["set", "multiset"])
@pytest.mark.parametrize("retention", [None, 0.5])
def test_positive_leakage_bound_is_met_with_equality(form: Form, retention: float | None) -> None:
    planned = plan(DGamma(D, GAMMA), form, retention=retention)
    mechanism = AlphaBeta(planned.retention, planned.noise, form)
    for others in range(1 if form == "set" else 6):
        worst = max(posteriors(mechanism, Fraction(D), others))
        assert worst <= Fraction(GAMMA)
        if others == 0:
            assert worst == pytest.approx(GAMMA, rel=1e-12)


@pytest.mark.parametrize("form", ["set", "multiset"])
def test_negative_leakage_bound_is_met_with_equality_at_the_largest_retention(form: Form) -> None:
    planned = plan(DGamma(D, GAMMA), form)
    mechanism = AlphaBeta(planned.retention, planned.noise, form)
    limit = Fraction(D) / Fraction(GAMMA)
    tiny = Fraction(1, 10**15)
    for others in range(1 if form == "set" else 6):
        for prior in (tiny, Fraction(D) / 2, Fraction(D)):
            least = min(posteriors(mechanism, prior, others)) / prior
            assert least >= limit
        if others == 0:
            assert min(posteriors(mechanism, tiny, 0)) / tiny == pytest.approx(float(limit), 1e-9)


@pytest.mark.parametrize("form", ["set", "multiset"])
@pytest.mark.parametrize("retention", [None, 0.5])
def test_thirty_per_cent_too_little_noise_breaks_the_promise(
    form: Form, retention: float | None
) -> None:
    promise = DGamma(D, GAMMA)
    planned = plan(promise, form, retention=retention)
    weak = AlphaBeta(planned.retention, planned.noise * 0.7, form)
    assert max(posteriors(weak, Fraction(D), 0)) > Fraction(GAMMA)
    assert not promise.kept_by(weak.likelihood_ratio())


@pytest.mark.parametrize("form", ["set", "multiset"])
def test_a_larger_retention_breaks_the_promise(form: Form) -> None:
    promise = DGamma(D, GAMMA)
    planned = plan(promise, form)
    bold = AlphaBeta(planned.retention + 1e-3, planned.noise * 1.01, form)
    prior = Fraction(1, 10**9)
    assert min(posteriors(bold, prior, 0)) / prior < Fraction(D) / Fraction(GAMMA)
    assert not promise.kept_by(bold.likelihood_ratio())


def test_whole_views_of_whole_tables() -> None:
    """Definition 2.3 itself on a domain of three tuples: every table, every view."""
    promise = DGamma(0.1, 0.3)
    planned = plan(promise, "set")
    a, beta = Fraction(planned.retention), Fraction(planned.noise)
    priors = [Fraction(1, 10), Fraction(1, 20), Fraction(1)]
    instances = list(product((0, 1), repeat=3))

    def chance_of_table(table: tuple[int, ...]) -> Fraction:
        return math.prod(
            (p if x else 1 - p for p, x in zip(priors, table, strict=True)), start=Fraction(1)
        )

    def chance_of_view(view: tuple[int, ...], table: tuple[int, ...]) -> Fraction:
        keep = [a if x else beta for x in table]
        return math.prod(
            (k if v else 1 - k for k, v in zip(keep, view, strict=True)), start=Fraction(1)
        )

    worst = Fraction(0)
    for view in instances:
        joint = {t: chance_of_table(t) * chance_of_view(view, t) for t in instances}
        total = sum(joint.values())
        for t in (0, 1):
            posterior = sum((p for table, p in joint.items() if table[t]), Fraction(0)) / total
            assert posterior <= Fraction(promise.posterior)
            assert posterior / priors[t] >= Fraction(promise.prior) / Fraction(promise.posterior)
            worst = max(worst, posterior)
    assert worst == pytest.approx(promise.posterior, rel=1e-12)


@pytest.mark.parametrize("form", ["set", "multiset"])
@pytest.mark.parametrize("tuples", [2, 8])
def test_exclusive_adversaries(form: Form, tuples: int) -> None:
    """Exactly one of several tuples is real: the posterior reaches γ and no more."""
    promise = DGamma(D, GAMMA, "exclusive")
    planned = plan(promise, form)
    mechanism = AlphaBeta(planned.retention, planned.noise, form)
    assert exclusive_posterior(mechanism, tuples) <= Fraction(GAMMA)
    weak = AlphaBeta(planned.retention, planned.noise * 0.7, form)
    assert exclusive_posterior(weak, 2) > Fraction(GAMMA)
    independent = plan(DGamma(D, GAMMA), form, retention=0.5)
    unsafe = AlphaBeta(independent.retention, independent.noise, form)
    assert exclusive_posterior(unsafe, 2) > Fraction(GAMMA)


def exclusive_posterior(mechanism: AlphaBeta, tuples: int) -> Fraction:
    """The worst belief in a tuple of prior d, of which one of `tuples` is in the table."""
    present, absent = published_law(mechanism, 1), published_law(mechanism, 0)
    rest = (1 - Fraction(D)) / (tuples - 1)
    worst = Fraction(0)
    shown = range(len(present))
    for mine in shown:
        # By symmetry the worst case shows the same count at all the others.
        for theirs in shown:
            me = Fraction(D) * present[mine] * absent[theirs] ** (tuples - 1)
            they = (
                rest
                * (tuples - 1)
                * absent[mine]
                * present[theirs]
                * absent[theirs] ** (tuples - 2)
            )
            worst = max(worst, me / (me + they))
    return worst


def test_exclusive_bound_is_tight() -> None:
    for form in ("set", "multiset"):
        planned = plan(DGamma(D, GAMMA, "exclusive"), form)
        mechanism = AlphaBeta(planned.retention, planned.noise, form)
        assert exclusive_posterior(mechanism, 2) == pytest.approx(GAMMA, rel=1e-9)


# ---------------------------------------------------------------------- the planner


def test_parameters_on_adult(oracle: dict[str, Any]) -> None:
    given_ = oracle["params.adult"]
    n, m = given_["inputs"]["n"], given_["inputs"]["m"]
    promise = DGamma(10 * n / m, 0.2)
    expected = given_["expected"]
    assert promise.prior == pytest.approx(expected["d"], rel=1e-12)
    ratio = expected["R=gamma(1-d)/(d(1-gamma))"]
    assert float(promise.ratio_high) == pytest.approx(ratio, rel=1e-12)
    assert plan(promise, "set", retention=0.5).noise == pytest.approx(
        expected["tight"]["beta"], rel=1e-12
    )
    largest = oracle["params.Smax"]["expected"]
    planned = plan(promise, "set")
    assert planned.retention == pytest.approx(largest["S"], rel=1e-12)
    assert planned.noise == pytest.approx(largest["beta"], rel=1e-12)
    multiset = oracle["dup.options"]["expected"]["E_geometric_multiset"]
    for retention, numbers in multiset.items():
        made = plan(promise, "multiset", retention=float(retention))
        assert made.noise == pytest.approx(numbers["r"], rel=1e-9)
        mechanism = AlphaBeta(made.retention, made.noise)
        per_cell = mechanism.noise_variance / mechanism.excess**2
        assert per_cell == pytest.approx(numbers["var_noise_per_cell"], rel=1e-9)
    assert plan(promise, "multiset").retention == pytest.approx(float(retention), rel=1e-12)


def test_epsilon_on_adult(oracle: dict[str, Any]) -> None:
    expected = oracle["dp.adult"]["expected"]
    for name, retention in (("tight", 0.5), ("Smax", expected["Smax"]["S"])):
        mechanism = AlphaBeta(retention, expected[name]["beta"], "set")
        ratio = mechanism.likelihood_ratio()
        add_remove, swap = ratio.epsilon("add-remove"), ratio.epsilon("swap")
        assert add_remove == pytest.approx(expected[name]["eps_addremove"], rel=1e-9)
        assert swap == pytest.approx(expected[name]["eps_swap"], rel=1e-9)


def test_theorem_4_3_prints_a_sufficient_retention_the_exact_one_is_larger(
    oracle: dict[str, Any],
) -> None:
    expected = oracle["errata.thm43"]["expected"]
    promise = DGamma(expected["d"], expected["g"])
    assert plan(promise, "set").retention == pytest.approx(expected["max_S_exact"], rel=1e-9)
    assert plan(promise, "multiset").retention == pytest.approx(expected["max_S_printed"], 1e-9)


promises = st.builds(
    lambda d, share, adversary: (d, d + (0.999 - d) * share, adversary),
    st.floats(1e-40, 0.5),
    st.floats(1e-3, 0.999),
    st.sampled_from(["independent", "exclusive"]),
)


@given(promises, st.sampled_from(["set", "multiset"]), st.floats(0.01, 1))
def test_every_plan_keeps_its_promise_in_exact_arithmetic(
    wish: tuple[float, float, Adversary], form: Form, share: float
) -> None:
    promise = DGamma(*wish)
    best = plan(promise, form)
    given_ = plan(promise, form, retention=best.largest_retention * share)
    for planned in (best, given_):
        assume(form == "multiset" or planned.noise < planned.retention)
        mechanism = AlphaBeta(planned.retention, planned.noise, form)
        assert promise.kept_by(mechanism.likelihood_ratio())


@given(promises, st.sampled_from(["set", "multiset"]), st.floats(0.01, 1))
def test_no_other_retention_has_less_variance(
    wish: tuple[float, float, Adversary], form: Form, share: float
) -> None:
    promise = DGamma(*wish)
    assume(float(promise.ratio_high) > 1.01)
    best = plan(promise, form)
    other = plan(promise, form, retention=best.largest_retention * share)
    assume(form == "multiset" or other.noise < other.retention)

    def variance(planned: Any) -> float:
        mechanism = AlphaBeta(planned.retention, planned.noise, form)
        return mechanism.noise_variance / mechanism.excess**2

    assert variance(best) <= variance(other) * (1 + 1e-6)


def test_view_ratio_is_respected_and_nothing_is_wasted() -> None:
    promise = DGamma(10 * 30162 / 648023040, 0.2)
    ratio = Fraction(648023040, 30162)
    planned = plan(promise, "multiset", max_view_ratio=10, domain_ratio=ratio)
    mechanism = AlphaBeta(planned.retention, planned.noise)
    size = planned.retention + mechanism.noise_mean * float(ratio)
    assert size == pytest.approx(10, rel=1e-6)
    with pytest.raises(PromiseError, match="one record in a thousand"):
        plan(promise, "multiset", max_view_ratio=1e-3, domain_ratio=ratio)
    with pytest.raises(UsageError, match="must be positive"):
        plan(promise, "multiset", max_view_ratio=-1, domain_ratio=ratio)


@pytest.mark.parametrize(
    ("wish", "error", "says"),
    [
        ((0.3, 0.2), PromiseError, "a posterior above 0.3, or a prior below 0.2"),
        ((0.2, 0.2), PromiseError, "Theorem 4.3"),
        ((0.0, 0.2), UsageError, "between 0 and 1"),
        ((1.5, 0.2), UsageError, "between 0 and 1"),
        ((0.1, 1.0), UsageError, "posterior γ = 1.0"),
        ((0.1, 0.2, "clever"), UsageError, "'clever' is not known"),
    ],
)
def test_infeasible_wishes_say_what_is_feasible(
    wish: tuple[Any, ...], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        DGamma(*wish)


@pytest.mark.parametrize("form", ["set", "multiset"])
@pytest.mark.parametrize("adversary", ["independent", "exclusive"])
def test_a_prior_next_to_the_posterior(form: Form, adversary: Adversary) -> None:
    """Kept or refused, never a crash or a broken promise."""
    refused = 0
    for gamma in [i / 100 for i in range(1, 100)]:
        promise = DGamma(math.nextafter(gamma, 0), gamma, adversary)
        try:
            planned = plan(promise, form)
        except PromiseError as refusal:
            assert "only noise would be left" in refusal.message
            refused += 1
        else:
            mechanism = AlphaBeta(planned.retention, planned.noise, form)
            assert promise.kept_by(mechanism.likelihood_ratio())
    assert refused or adversary == "independent"


def test_linked_posterior_is_what_enumeration_finds() -> None:
    for form in ("set", "multiset"):
        planned = plan(DGamma(D, GAMMA), form, retention=0.5)
        mechanism = AlphaBeta(planned.retention, planned.noise, form)
        stated = mechanism.likelihood_ratio().linked_posterior(D)
        assert stated == pytest.approx(exclusive_posterior(mechanism, 2), rel=1e-12)


def test_too_large_a_retention_names_the_theorem_and_the_nearest() -> None:
    with pytest.raises(PromiseError) as caught:
        plan(DGamma(0.1, 0.2), "multiset", retention=0.9)
    assert "Theorem 4.3 allows at most 0.5" in str(caught.value)
    assert "retention=0.5" in caught.value.hint
    with pytest.raises(UsageError, match="must lie in"):
        plan(DGamma(0.1, 0.2), "multiset", retention=0)


def test_no_noise_is_no_promise() -> None:
    bare = AlphaBeta(1.0, 0.0).likelihood_ratio()
    assert bare.high is None
    assert bare.posterior(0.001) == 1
    assert bare.epsilon("swap") == math.inf
    assert not DGamma(0.01, 0.2).kept_by(bare)
