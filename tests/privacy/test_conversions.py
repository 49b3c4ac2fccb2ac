"""Promises as text and as commands: spelling, errors, what follows from a release."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.running import voile
from voile.errors import PromiseError, UsageError, in_shell
from voile.mechanisms import AlphaBeta
from voile.privacy import (
    KINDS,
    DGamma,
    Form,
    LikelihoodRatio,
    Told,
    consequences,
    convert,
    not_promised,
    parse_guarantee,
    parse_wish,
    plan,
    spelled,
    statements,
)
from voile.units import chance

WRITTEN = [
    "d-gamma(d=0.000465, gamma=0.2, adversary=exclusive)",
    "relative(d=0.01, delta=3.2)",
    "dp(epsilon=1.5, unit=swap)",
    "indistinguishable(epsilon=2)",
    "breach(rho1=0.1, rho2=0.5, about=presence)",
    "s-breach(s=68, rho1=0.1, rho2=0.95)",
    "amplification(gamma=19)",
    "delta-T(delta=1, T=any, eta=0)",
    "delta-T(delta=1, T=40, eta=1e-06)",
    "noisy-answers(T=100, variance=2358.5, noise=binomial)",
    "noisy-answers(T=100, variance=2358.5, noise=gaussian)",
    "noisy-answers(T=20, variance=500, noise=geometric)",
    "zcdp(rho=0.125)",
    "approximate-dp(epsilon=0.5, delta=1e-06)",
    "delta-T(delta=1, T=any, eta=1e-06, about=presence)",
    "zcdp(rho=0.125, unit=add-remove)",
    "approximate-dp(epsilon=0.5, delta=1e-06, unit=add-remove)",
    "gdp(mu=0.25)",
    "gdp(mu=0.25, unit=add-remove)",
    "k(k=5)",
    "l(l=2.5, measure=entropy)",
    "t(t=0.1, distance=jensen-shannon)",
    "semantic(delta=1, absent=ignored)",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_what_is_written_is_read_back(text: str) -> None:
    guarantee = parse_guarantee(text)
    assert spelled(guarantee) == text
    assert parse_guarantee(f"  {text.replace('=', ' = ').replace(', ', ',')} ") == guarantee
    assert guarantee.to_dict()["kind"] == guarantee.kind == text.partition("(")[0]
    json.dumps(guarantee.to_dict())
    words = guarantee.explain()
    assert words.endswith(".")
    if guarantee.adversary != "exclusive" or guarantee.kind != "d-gamma":
        assert "not" in words or "Nothing" in words
    assert guarantee.against


def test_every_kind_is_written_somewhere() -> None:
    assert {text.partition("(")[0] for text in WRITTEN} == set(KINDS)


WRONG = [
    ("d-gama(d=0.1, gamma=0.2)", "'d-gama' is not known (character 1", "d-gamma"),
    ("dp(epsilon=1, unti=swap)", "no parameter 'unti' (character 15", "unit"),
    ("dp(epsilon=1, unit=swop)", "unit = 'swop' is not known (character 20", "swap"),
    ("d-gamma(gamma=0.2)", "d-gamma lacks d", "d-gamma(d=…, gamma=…)"),
    ("d-gamma(d=0.1, d=0.2)", "'d' is given twice (character 16", "once"),
    ("d-gamma(d=0.1, gamma=1.2)", "1.2 must be a number above 0 and below 1 (character 22", ""),
    ("d-gamma(d=nan, gamma=0.2)", "d = nan must be a number", "d=0.5"),
    ("d-gamma(d=0.1, gamma=two)", "gamma = 'two' must be a number", "gamma=0.5"),
    ("dp(epsilon)", "'epsilon' is not parameter=value (character 4", "dp(epsilon=…)"),
    ("dp(epsilon=)", "'epsilon=' is not parameter=value", "dp(epsilon=…)"),
    ("dp(epsilon=1", "is not a guarantee", "d-gamma(d=…"),
    ("", "is not a guarantee", "d-gamma(d=…"),
    ("k(k=2.5)", "k = '2.5' must be a whole number", "k=2"),
    ("k(k=0)", "k = 0 must be a whole number at least 1", "k=2"),
    ("delta-T(delta=1, T=0)", "T = 0 must be a whole number", "T=any"),
    ("breach(rho1=0.5, rho2=0.1)", "rho1 = 0.5 is above rho2 = 0.1", "before"),
    ("amplification(gamma=0.5)", "gamma = 0.5 must be a number at least 1", "gamma=2"),
    ("dp(epsilon=1,)", "'' is not parameter=value (character 14", "dp(epsilon=…)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "hint"), WRONG)
def test_a_wrong_text_is_named_with_its_place(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_guarantee(text)
    assert message in error.value.message
    assert hint in error.value.hint


def test_a_promise_that_cannot_be_kept_is_refused_as_such() -> None:
    with pytest.raises(PromiseError, match=r"is not below posterior γ = 0\.2"):
        parse_guarantee("d-gamma(d=0.3, gamma=0.2)")


@given(st.text(alphabet="d-gamp(=,)0.12 εk", max_size=24))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_guarantee(text)
    except (UsageError, PromiseError) as error:
        assert error.message


# ---------------------------------------------------------------------- conversions


def to(source: str, wish: str) -> dict[str, Any]:
    return convert(parse_guarantee(source), parse_wish(wish)).to_dict()


def test_a_free_parameter_must_be_chosen() -> None:
    with pytest.raises(UsageError, match="for every d: say which") as error:
        to("dp(epsilon=1)", "d-gamma")
    assert error.value.hint == "target='d-gamma(d=…)'"
    with pytest.raises(UsageError, match="for every s and rho1: say which") as error:
        to("dp(epsilon=1)", "s-breach")
    with pytest.raises(UsageError, match="for every rho1: say which") as error:
        to("dp(epsilon=1)", "s-breach(s=3)")
    assert error.value.hint == "target='s-breach(rho1=…, s=3)'"
    with pytest.raises(UsageError) as error, in_shell():
        to("dp(epsilon=1)", "s-breach(s=3)")
    assert error.value.hint == "--to 's-breach(rho1=…, s=3)'"
    found = to("dp(epsilon=1)", "d-gamma(d=0.01)")["guarantee"]
    assert found["gamma"] == pytest.approx(0.01 * math.e)


def test_a_word_left_open_is_that_of_the_same_adversaries() -> None:
    assert to("d-gamma(d=0.01, gamma=0.2)", "dp")["guarantee"]["unit"] == "add-remove"
    assert to("d-gamma(d=0.01, gamma=0.2)", "breach")["guarantee"]["about"] == "presence"
    exclusive = "d-gamma(d=0.01, gamma=0.2, adversary=exclusive)"
    assert to(exclusive, "dp")["guarantee"]["unit"] == "swap"
    assert to(exclusive, "breach")["guarantee"] == {
        "kind": "breach", "rho1": 0.01, "rho2": 0.2, "about": "record",
    }  # fmt: skip
    assert to("amplification(gamma=3)", "dp")["guarantee"]["unit"] == "swap"


def test_a_claim_that_is_asked_for_must_follow() -> None:
    assert to("dp(epsilon=1)", "dp(epsilon=2, unit=swap)")["guarantee"]["epsilon"] == 2
    with pytest.raises(PromiseError, match="what follows is dp"):
        to("dp(epsilon=1)", "dp(epsilon=1.9, unit=swap)")
    assert to("l(l=3)", "k(k=2)")["guarantee"] == {"kind": "k", "k": 3}
    with pytest.raises(PromiseError, match="what follows is k"):
        to("l(l=3)", "k(k=4)")


def test_nothing_empty_is_promised() -> None:
    with pytest.raises(PromiseError, match=r"γ would be 1\.35914") as error:
        to("dp(epsilon=1)", "d-gamma(d=0.5)")
    assert "below 0.3679" in error.value.hint
    for source, wish in (
        ("dp(epsilon=10000)", "dp(unit=swap)"),
        ("dp(epsilon=9000, unit=swap)", "amplification"),
        ("dp(epsilon=9000)", "breach(rho1=0.1)"),
        ("dp(epsilon=9000)", "d-gamma(d=1e-300)"),
    ):
        with pytest.raises(PromiseError, match="promises nothing"):
            to(source, wish)
    assert to("dp(epsilon=0)", "d-gamma(d=0.01)")["guarantee"]["gamma"] > 0.01


def test_why_something_does_not_follow() -> None:
    with pytest.raises(PromiseError, match="number of rows") as error:
        to("dp(epsilon=1, unit=swap)", "dp(unit=add-remove)")
    assert "counterexample" in error.value.hint
    with pytest.raises(PromiseError, match=r"§2\.4"):
        to("k(k=5)", "d-gamma(d=0.1)")
    with pytest.raises(PromiseError, match=r"η = 0\.001"):
        to("delta-T(delta=1, eta=0.001)", "dp")


@pytest.mark.parametrize("text", WRITTEN)
def test_all_that_follows_can_also_be_asked_for(text: str) -> None:
    source = parse_guarantee(text)
    found = consequences(source)
    json.dumps(found.to_dict())
    for conversion in found.follows:
        again = convert(source, parse_wish(spelled(conversion.guarantee)))
        assert again.guarantee.to_dict() == pytest.approx(conversion.guarantee.to_dict())
    assert found.follows or found.refused


# ---------------------------------------------------------------------- releases


def ratio_of(form: Form, promise: DGamma, retention: float | None = None) -> LikelihoodRatio:
    planned = plan(promise, form, retention=retention)
    return AlphaBeta(planned.retention, planned.noise, form).likelihood_ratio()


RATIOS = [
    ratio_of("multiset", DGamma(0.01, 0.2)),
    ratio_of("set", DGamma(0.01, 0.2), 0.5),
    ratio_of("multiset", DGamma(0.01, 0.2, "exclusive")),
    LikelihoodRatio(Fraction(1, 20), Fraction(2)),
]


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize(
    "told",
    [
        Told(),
        Told(rows=True),
        Told(rows=True, marginals=True),
        Told(kept=("x", "y")),
        Told(edits=True),
    ],
)
def test_statements_stand_before_those_they_imply(ratio: LikelihoodRatio, told: Told) -> None:
    promise = DGamma(0.01, 0.2)
    found = statements(promise, ratio, told=told, simulated=False)
    kept = [s for s in found if s.holds]
    as_written = promise.to_dict() in [s.data for s in kept]
    assert as_written is promise.kept_by(ratio)
    assert not as_written or kept[0].data == promise.to_dict()
    beyond = kept[as_written:]
    assert [s.adversary for s in beyond] == sorted(s.adversary for s in beyond)
    for i, later in enumerate(beyond):
        for earlier in beyond[:i]:
            assert later.bounds is not None
            assert earlier.bounds is not None
            if later.bounds.imply(earlier.bounds):
                assert earlier.bounds.imply(later.bounds)
    kinds = [(s.data["kind"], s.data.get("unit")) for s in kept]
    assert (("dp", "add-remove") in kinds) is not bool(told.by_adding)
    assert (("dp", "swap") in kinds) is not bool(told.by_exchanging)
    assert (("delta-T", None) in kinds) is not bool(told.by_exchanging)
    for one in kept:
        assert told.by_exchanging in one.condition
        if told.by_adding and one.adversary == "independent":
            assert one.condition.startswith("of the view alone")
            assert "knows all" not in one.against + one.explain
        if told.edits:
            assert "a row that is edited" in one.condition
        if told.kept:
            assert "between tables that agree in x and y" in one.condition
    assert as_written


def test_what_is_next_to_nothing_is_marked_and_no_belief_is_rounded_to_1() -> None:
    """Beliefs that may rise from 0.01 to 0.9996: nobody should read that as a promise."""
    ratio = LikelihoodRatio(Fraction(1, 50), Fraction(5000))
    found = statements(DGamma(0.01, 0.999), ratio, told=Told(), simulated=False)
    for one in found:
        bound = max(one.data.get("gamma", 0), one.data.get("rho2", 0))
        assert one.says_little is (bound > 0.99)
        assert one.to_dict()["says_little"] is one.says_little
        assert not re.search(r"at most 1\b(?!\.)", one.explain)
    exclusive = next(s for s in found if s.data.get("adversary") == "exclusive")
    assert exclusive.says_little
    assert "at most 0.9996." in exclusive.explain  # 1 − γ = 0.99/(0.01·250,000 + 0.99)
    assert not any(s.says_little for s in statements(
        DGamma(0.01, 0.2), RATIOS[2], told=Told(), simulated=False))  # fmt: skip


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.2, 3, "0.2"), (0.99, 3, "0.99"), (0.99997, 3, "0.99997"), (0.990777, 3, "0.9908"),
     (0.990777, 6, "0.990777"), (1.0, 3, "1"), (12.3456, 3, "12.3"),
     (math.nextafter(1, 0), 3, "0.99999999999999989")],
)  # fmt: skip
def test_probabilities_below_1_are_written_below_1(value: float, digits: int, text: str) -> None:
    assert chance(value, digits) == text


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_narrow_terminals_cut_no_number(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from voile.terminal import show
    from voile.terminal.guarantees import statements_view

    monkeypatch.setenv("COLUMNS", str(columns))
    promise, ratio = DGamma(10 * 30162 / 648023040, 0.2), RATIOS[0]
    kept = statements(promise, ratio, told=Told(rows=True), simulated=False)
    denied = not_promised(promise, ratio, told=Told(rows=True))
    show(None, lambda: statements_view(kept, denied, simulated=False))
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= columns
    assert "…" not in told
    for one in kept:
        for value in one.data.values():
            if isinstance(value, float):
                assert chance(value, 6) in told


def test_the_exact_bounds_are_those_of_the_oracle(oracle: dict[str, dict[str, Any]]) -> None:
    expected = oracle["errata.thm43"]["expected"]
    most = AlphaBeta(expected["max_S_exact"], expected["max_S_exact"] / 24.75, "set")
    found = statements(DGamma(0.01, 0.2001), most.likelihood_ratio(), told=Told(), simulated=False)
    exact = next(s for s in found if s.data.get("gamma") == pytest.approx(0.2, rel=1e-8))
    assert exact.adversary == "independent"
    least = Fraction(exact.data["d"]) / Fraction(exact.data["gamma"])
    assert float(least) == pytest.approx(expected["at_max_S"]["ratio_p->0"], rel=1e-8)
    half = AlphaBeta(0.5, expected["beta_tight"], "set").likelihood_ratio()
    assert float(half.low) == pytest.approx(expected["min_ratio"], rel=1e-8)
    adult = oracle["dp.adult"]["expected"]["tight"]
    ratio = AlphaBeta(0.5, adult["beta"], "set").likelihood_ratio()
    promise = DGamma(10 * 30162 / 648023040, 0.2 * (1 + 1e-8))
    stated = statements(promise, ratio, told=Told(), simulated=False)
    epsilons = {s.data["unit"]: s.data["epsilon"] for s in stated if s.data["kind"] == "dp"}
    assert epsilons["add-remove"] == pytest.approx(adult["eps_addremove"], rel=1e-9)
    assert epsilons["swap"] == pytest.approx(adult["eps_swap"], rel=1e-9)


def test_a_promise_that_is_not_kept_is_not_listed() -> None:
    for ratio in (LikelihoodRatio(Fraction(0), Fraction(2)), LikelihoodRatio(Fraction(1, 2), None)):
        found = statements(DGamma(0.01, 0.2), ratio, told=Told(), simulated=False)
        assert not any(s.holds for s in found)
    weak = LikelihoodRatio(Fraction(1, 2), Fraction(30))
    found = statements(DGamma(0.01, 0.2), weak, told=Told(), simulated=False)
    assert DGamma(0.01, 0.2).to_dict() not in [s.data for s in found if s.holds]


# ---------------------------------------------------------------------- the commands


def test_convert_as_a_command() -> None:
    done = voile("convert", "d-gamma(d=4.65e-4, gamma=0.2)", "--to", "dp", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found["guarantee"]) == ["kind", "epsilon", "unit"]
    assert found["guarantee"]["kind"] == "dp"
    assert found["guarantee"]["epsilon"] == pytest.approx(
        math.log(0.2 * (1 - 4.65e-4) / (4.65e-4 * 0.8)), rel=1e-12
    )
    assert found["guarantee"]["unit"] == "add-remove"
    assert "Proposition 2.5" in found["theorem"]
    wrong = voile("convert", "d-gamma(d=4.65e-4, gama=0.2)")
    assert wrong.returncode == 2
    assert "did you mean 'gamma'?" in wrong.stderr
    refused = voile("convert", "k(k=5)", "--to", "dp")
    assert refused.returncode == 1
    assert "Joe" in refused.stderr
    plain = voile("convert", "dp(epsilon=1)")
    assert "does not follow" in plain.stdout


def test_guarantees_as_a_command(tmp_path: Path) -> None:
    made = ["--columns", "age,sex,salary,education", "--prior", "0.01", "--posterior", "0.2"]
    source = "dataset:adult/boundary"
    assert voile("publish", source, *made, "-o", "a.voile", cwd=tmp_path).returncode == 0
    done = voile("guarantees", "a.voile", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    for one in found:
        assert {"kind", "adversary", "against", "theorem", "holds", "explain"} <= set(one)
    assert all(one["holds"] for one in found)
    assert {"kind": "d-gamma", "d": 0.01, "gamma": 0.2}.items() <= found[0].items()
    assert "as written" in found[0]["theorem"]
    assert {one["kind"] for one in found} == {"d-gamma", "dp", "relative", "breach", "delta-T"}
    told = voile("guarantees", "a.voile", "--not-promised", "--json", cwd=tmp_path).stdout
    denied = json.loads(told)
    assert not any(one["holds"] for one in denied)
    assert {one["kind"] for one in denied} == {"d-gamma", "k", "l", "t"}
    assert any("6.1" in one["theorem"] for one in denied)
    assert any("6.4" in one["theorem"] for one in denied)
    told = voile("guarantees", "a.voile", cwd=tmp_path).stdout
    assert told.startswith("Whoever believed, before seeing the release")
    assert told.index("strongest first") < told.index("not promised")
    alone = voile("guarantees", "a.voile", "--not-promised", cwd=tmp_path).stdout
    assert "not promised" in alone and "strongest first" not in alone


def test_a_simulated_release_promises_nothing(tmp_path: Path) -> None:
    made = ["--columns", "age,sex", "--prior", "0.01", "--simulate-seed", "3", "-o", "s.voile"]
    assert voile("publish", "dataset:adult/boundary", *made, cwd=tmp_path).returncode == 0
    done = voile("guarantees", "s.voile", "--json", cwd=tmp_path)
    listed = json.loads(done.stdout)
    assert listed[0]["kind"] == "d-gamma" and not any(one["holds"] for one in listed)
    assert "promises nothing" in done.stderr
    assert "promises nothing" in voile("guarantees", "s.voile", cwd=tmp_path).stdout


# ---------------------------------------------------------------------- the number of rows, told


@pytest.mark.parametrize("form", ["set", "multiset"])
def test_with_the_number_of_rows_the_exclusive_bound_holds_and_the_other_does_not(
    form: Form,
) -> None:
    """Every table and every view of four tuples: who believes each with 1/4, and is told n = 1.

    Then exactly one is real. The view alone keeps γ; with n the bound is that of a list.
    """
    promise = DGamma(0.25, 0.6)
    found = plan(promise, form)
    mechanism = AlphaBeta(found.retention, found.noise, form)
    a, noise = Fraction(mechanism.retention), Fraction(mechanism.noise)

    def law(member: bool, seen: int) -> Fraction:
        if form == "set":
            chance = a if member else noise
            return chance if seen else 1 - chance
        alone = (1 - noise) * noise**seen
        if not member:
            return alone
        return (1 - a) * alone + (a * (1 - noise) * noise ** (seen - 1) if seen else 0)

    counts = (0, 1) if form == "set" else (0, 1, 2)
    ratio = {seen: law(True, seen) / law(False, seen) for seen in counts}
    told = max(
        ratio[view[0]] / sum(ratio[seen] for seen in view) for view in product(counts, repeat=4)
    )
    alone = max(r * Fraction(1, 4) / (r * Fraction(1, 4) + Fraction(3, 4)) for r in ratio.values())
    assert alone <= Fraction(promise.posterior) < told
    assert told <= mechanism.likelihood_ratio().linked_posterior(promise.prior)
