"""The account of a learnt schema: exact, added up over columns, and checked on opening."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import voile
from voile.errors import PromiseError, UsageError, VoileError
from voile.kinds.manifest import CHOSEN, MANIFEST
from voile.kinds.marginals.manifest import marginals_not_promised
from voile.learning import LearningBudget, LearntColumn, SchemaAccount, learn_schema
from voile.learning.budget import exceeds, failure, threshold_for
from voile.learning.values import NumberCounter
from voile.noise import Key
from voile.noise.geometric import two_sided_geometric
from voile.noise.normal import rounded_normal
from voile.privacy.gaussian import epsilon_of
from voile.privacy.spent import NOTHING, Spent
from voile.schema import Values


def people(rows: int = 3000, seed: int = 1) -> pa.Table:
    """A table with a column of each kind that is learnt."""
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "town": draw.choice(["Ulm", "Bonn", "Kiel"], rows, p=[0.5, 0.3, 0.2]),
            "age": draw.integers(18, 66, rows),
            "pay": np.round(draw.lognormal(7.5, 0.6, rows), 2),
        }
    )


# ---------------------------------------------------------------------- sums


def test_parts_compose() -> None:
    """Gaussian parts by their squares, pure ones and failures by adding."""
    both = Spent(0.3, 0.1, 1e-10).and_(Spent(0.4, 0.2, 2e-10))
    assert both.mu == pytest.approx(0.5, rel=1e-9)
    assert both.epsilon == pytest.approx(0.3, rel=1e-9)
    assert both.delta == pytest.approx(3e-10, rel=1e-9)
    assert Spent(0.3).and_(NOTHING) == Spent(0.3)
    assert both.epsilon_at(1e-9) == pytest.approx(0.3 + epsilon_of(0.5, 7e-10), rel=1e-9)
    assert both.epsilon_at(1e-10) == math.inf


@pytest.mark.parametrize("noise", ["gaussian", "geometric"])
@pytest.mark.parametrize("rows_per_person", [1, 2, 5])
def test_the_threshold_fails_as_seldom_as_it_says(noise: Any, rows_per_person: int) -> None:
    """Brute force over all ways in which c rows may share values that nobody else has."""

    def partitions(rows: int, largest: int) -> list[list[int]]:
        if rows == 0:
            return [[]]
        return [
            [part, *rest]
            for part in range(min(rows, largest), 0, -1)
            for rest in partitions(rows - part, part)
        ]

    for scale in (0.7, 3.0, 40.0):
        threshold = threshold_for(noise, scale, 1e-6, rows_per_person)
        worst = max(
            sum(exceeds(noise, scale, threshold - part) for part in parts)
            for parts in partitions(rows_per_person, rows_per_person)
        )
        assert failure(noise, scale, threshold, rows_per_person) == pytest.approx(worst)
        assert worst <= 1e-6
        assert failure(noise, scale, threshold - 1, rows_per_person) > 1e-6


@pytest.mark.parametrize("noise", ["gaussian", "geometric"])
def test_the_tail_is_that_of_the_noise_that_is_drawn(noise: Any) -> None:
    """200,000 draws: five standard errors, a false alarm of 1 in 300,000 for each value."""
    draw = rounded_normal if noise == "gaussian" else two_sided_geometric
    drawn = draw(2.5, 200_000, Key.from_seed(5).stream("tail"))
    for value in (1, 2, 4, 7):
        share = exceeds(noise, 2.5, value)
        spread = math.sqrt(share * (1 - share) / len(drawn))
        assert abs((drawn >= value).mean() - share) < 5 * spread


@pytest.mark.parametrize("unit", ["add-remove", "exchange"])
@pytest.mark.parametrize("noise", ["gaussian", "geometric"])
@pytest.mark.parametrize("rows_per_person", [1, 3])
def test_all_looks_together_cost_the_budget(noise: Any, unit: Any, rows_per_person: int) -> None:
    """Recomputed from the scales alone, for every unit and number of rows."""
    budget = LearningBudget(noise, 0.5, 1e-8, unit, rows_per_person)
    table = voile.read(people(500))
    account = learn_schema(table, list(table.columns), budget, Key.from_seed(3)).account
    by = rows_per_person * {"add-remove": 1, "exchange": math.sqrt(2)}[unit]
    if noise == "geometric":
        by = rows_per_person * {"add-remove": 1, "exchange": 2}[unit]
    rates = [by / scale for column in account.columns for scale in column.scales]
    rates += [rows_per_person / account.rows_scale] if account.rows_scale else []
    cost = sum(r * r for r in rates) / 2 if noise == "gaussian" else sum(rates)
    whole = 0.5 if unit == "add-remove" else 0.5 * 0.95
    assert cost == pytest.approx(whole, rel=1e-9)
    assert account.spent().delta <= 1e-8


@pytest.mark.parametrize("noise", ["gaussian", "geometric"])
def test_a_budget_grows_where_rows_are_few_and_never_beyond_its_most(noise: Any) -> None:
    """Recomputed from the scales alone; how much follows from the noisy number of rows."""
    for rows, grown in ((60, True), (2_000_000, False)):
        budget = LearningBudget(noise, 0.02, 1e-8, most=0.07)
        table = voile.read(pa.table({"n": np.arange(rows) % 5, "x": np.arange(rows) % 7 / 4}))
        account = learn_schema(table, ["n", "x"], budget, Key.from_seed(3)).account
        rates = [1 / scale for column in account.columns for scale in column.scales]
        rates.append(1 / (account.rows_scale or math.inf))
        cost = sum(r * r for r in rates) / 2 if noise == "gaussian" else sum(rates)
        assert cost == pytest.approx(0.07 if grown else 0.02, rel=1e-6)
        assert cost <= 0.07 * (1 + 1e-9)


# ---------------------------------------------------------------------- neighbours


def test_a_value_of_one_person_is_listed_as_seldom_as_delta_says() -> None:
    """An audit with δ = 0.05 and 600 keys: a rate of 0.15 is found with probability 0.999."""
    rows = people(200)
    town = rows["town"].to_pylist()
    town[0] = "Atlantis"
    table = voile.read(pa.table({"town": town}))
    budget = LearningBudget("gaussian", 0.005, 0.05)
    found = [
        "Atlantis" in tuple(learn_schema(table, ["town"], budget, Key.from_seed(s)).schema["town"])
        for s in range(600)
    ]
    share = float(np.mean(found))
    assert 0.02 < share < 0.05 + 5 * math.sqrt(0.05 * 0.95 / 600)


def test_one_row_moves_no_one_elses_coins() -> None:
    """The noise of a value is its own: another value beside it changes nothing."""
    with_, without = people(2000), people(2000)
    more = pa.concat_tables([with_, with_.slice(0, 1).set_column(0, "town", pa.array(["Oslo"]))])
    budget = LearningBudget("gaussian", 0.05, 1e-9)
    one, other = (
        learn_schema(voile.read(t), ["town"], budget, Key.from_seed(4)).schema["town"]
        for t in (more, without)
    )
    assert one == other


# ---------------------------------------------------------------------- releases


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Marginals of a table whose domain was learnt."""
    folder = tmp_path_factory.mktemp("learnt") / "release"
    voile.publish(people(), method="marginals", epsilon=2, order=1, name="people", to=folder)
    return folder


def test_schema_and_tables_keep_the_promise(release: Path) -> None:
    """What is learnt plus what is measured equals (ε, δ)."""
    manifest: Any = voile.open(release).manifest
    account, plan = manifest.schema_account, manifest.plan
    spent = account.spent()
    assert spent.mu > 0 and spent.delta > 0
    whole = Spent(mu=math.sqrt(2 * plan.measured_rho)).and_(spent)
    assert whole.epsilon_at(1e-9) == pytest.approx(manifest.guarantee.epsilon, rel=1e-6)
    assert manifest.guarantee.epsilon == pytest.approx(2, rel=1e-6)
    assert manifest.guarantee.epsilon <= 2 * (1 + 1e-9)
    assert {one.why for one in manifest.disclosed} == {CHOSEN}


def cheaper(account: dict[str, Any]) -> None:
    account["columns"][0]["scales"][0] *= 2


def lower(account: dict[str, Any]) -> None:
    account["columns"][0]["threshold"] -= 5


def unpaid(account: dict[str, Any]) -> None:
    del account["columns"][0]


def exact(account: dict[str, Any]) -> None:
    account["rows_scale"] = None


def unlisted(account: dict[str, Any]) -> None:
    account["columns"][0]["threshold"] = None


def other_unit(account: dict[str, Any]) -> None:
    account["unit"] = "exchange"


def many_rows(account: dict[str, Any]) -> None:
    account["rows_per_person"] = 2


@pytest.mark.parametrize(
    "change", [cheaper, lower, unpaid, exact, unlisted, other_unit, many_rows, None]
)
def test_an_account_that_does_not_pay_is_refused(
    release: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None] | None
) -> None:
    """Whatever is changed, even with a new digest."""
    copy = tmp_path / "release"
    shutil.copytree(release, copy)
    path = copy / MANIFEST
    data = json.loads(path.read_text(encoding="utf-8"))
    if change is None:
        del data["parameters"]["schema_account"]
    else:
        change(data["parameters"]["schema_account"])
    manifest = type(voile.open(release).manifest).model_validate(data).sealed()
    path.write_text(manifest.text(), encoding="utf-8")
    with pytest.raises(VoileError):
        voile.open(copy).check_terms()


def resealed(release: Path, copy: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy whose manifest was changed, with a digest that fits."""
    shutil.copytree(release, copy)
    path = copy / MANIFEST
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    text = json.dumps({**data, "digest": ""}, ensure_ascii=False, indent=1) + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(text.replace('\n "digest": ""', f'\n "digest": "{digest}"'), encoding="utf-8")
    return copy


def test_a_manifest_that_nobody_changed_is_sealed_the_same_way(
    release: Path, tmp_path: Path
) -> None:
    """What the tests below refuse is refused for what they change."""
    voile.open(resealed(release, tmp_path / "same", lambda _: None)).check_terms()


@pytest.mark.parametrize("wrong", [-1.0, 0, math.nan, math.inf, 2.0**41, 1e308, "1", None, True])
@pytest.mark.parametrize("place", ["scale", "rows_scale", "delta", "threshold", "rows_figure"])
def test_numbers_that_no_account_has_are_refused(
    release: Path, tmp_path: Path, place: str, wrong: Any
) -> None:
    """Negative, not a number, infinite, huge, and of another type."""

    def change(data: dict[str, Any]) -> None:
        account = data["parameters"]["schema_account"]
        if place == "scale":
            account["columns"][1]["scales"][0] = wrong
        elif place == "threshold":
            account["columns"][0]["threshold"] = wrong
        elif place == "rows_figure":
            account["rows_figure"] = wrong if wrong not in (-1.0, 0) else 2**63
        else:
            account[place] = wrong

    with pytest.raises(VoileError):
        voile.open(resealed(release, tmp_path / "copy", change)).check_terms()


def test_listed_numbers_need_a_threshold() -> None:
    """A list is of values that occur, whether one of them stands for all others or not."""
    table = voile.read(pa.table({"x": np.tile([0.0, 1.5, 2.5], 2000)}))
    budget = LearningBudget("gaussian", 0.05, 1e-9)
    found = learn_schema(table, ["x"], budget, Key.from_seed(1))
    assert isinstance(found.schema["x"].domain, Values)
    found.account.check(found.schema)
    free = found.account.columns[0].model_copy(update={"threshold": None})
    account = found.account.model_copy(update={"columns": [free], "delta": 0.0})
    with pytest.raises(ValueError, match="without a threshold"):
        account.check(found.schema)


def test_an_account_of_many_columns_and_rows_is_read_at_once() -> None:
    """What a stranger's manifest makes one compute does not grow with the rows of a person."""
    columns = [
        LearntColumn(name=str(i), scales=[1e4 + i], threshold=200_000) for i in range(20_000)
    ]
    account = SchemaAccount(
        noise="gaussian", unit="add-remove", rows_per_person=10_000, rows_scale=1.0, rows_figure=1,
        columns=columns,
    )  # fmt: skip
    began = time.process_time()
    assert account.spent().delta > 0
    assert time.process_time() - began < 5  # 200,000,000 tails took minutes


def test_zero_has_one_sign() -> None:
    """Whether one row has −0 shows nowhere."""
    for seed in range(20):
        draw = np.random.default_rng(seed)
        numbers = draw.choice([0.0, 1.5], 50)
        numbers[draw.integers(50, size=40)] = -0.0
        counter = NumberCounter()
        counter.add(numbers)
        listed = counter.listed("gaussian", 0.5, 5, Key.from_seed(seed), "x")
        assert [math.copysign(1, value) for value in listed.values] == [1] * len(listed.values)


def test_pure_needs_a_codebook() -> None:
    """The reason is said, and what the hint names works."""
    with pytest.raises(UsageError, match="threshold") as raised:
        voile.publish(people(), method="marginals", pure=True, order=1)
    assert "active" in (raised.value.hint or "")
    done = voile.publish(people(300), method="marginals", pure=True, order=1, schema="active")
    assert done.manifest.schema_account is None


def test_an_unlisted_value_is_within_other(release: Path) -> None:
    """SQL says so."""
    answer = voile.open(release).query("select count(*) from people where town = 'Oslo'")
    assert any("among those of 'other'" in note for note in answer.notes)


def test_a_learnt_domain_that_is_declared_again_costs_nothing(
    release: Path, tmp_path: Path
) -> None:
    """As a codebook it is public; unlisted values and numbers beyond the ends still fit."""
    schema = voile.open(release).schema
    schema.save(tmp_path / "book.yaml")
    assert voile.Schema.open(tmp_path / "book.yaml") == schema
    strange = pa.concat_tables(
        [people(50), pa.table({"town": ["Oslo"], "age": [120], "pay": [1e9]})]
    )
    made = voile.publish(
        strange, method="marginals", order=1, schema=tmp_path / "book.yaml", name="people"
    )
    assert made.manifest.schema_account is None
    assert {a.public for a in made.schema} == {"declared"}
    assert made.schema["town"].other == "other"


@pytest.mark.parametrize("columns", [("town", "age"), ("town", "age", "pay", "a", "b")])
def test_beliefs_stay_below_certainty(columns: tuple[str, ...]) -> None:
    """For geometric noise the one exception is that a threshold fails; ρ is not what bounds it."""
    table = people(3000)
    for name in ("a", "b"):
        table = table.append_column(name, table["town"])
    release: Any = voile.publish(table.select(columns), epsilon=1, yes=True, name="people")
    found, manifest = release.belief_bounds(), release.manifest
    geometric = manifest.parameters.noise == "geometric"
    assert geometric == (len(columns) < 5)
    failing = manifest.schema_account.spent().delta
    assert failing > 0
    for one in found.bounds:
        assert one.posterior < 1 and one.eta >= failing
    assert "chosen privately" not in found.about
    if geometric:
        (half,) = (one for one in found.bounds if one.prior == 0.5)
        assert half.posterior == pytest.approx(1 / (1 + math.exp(-2)), rel=1e-6)
    (why,) = (one.explain for one in marginals_not_promised(manifest) if "δ = 0" in one.explain)
    assert ("normal noise" in why) != geometric


def test_a_large_delta_is_published_knowingly() -> None:
    """With δ = 0.4 dozens of 3,000 names are listed; with the δ of the hint, none."""
    table = people(3000).append_column("name", pa.array([f"name {i}" for i in range(3000)]))
    options: dict[str, Any] = {"columns": ["town", "name"], "yes": True}
    with pytest.raises(PromiseError, match="nothing is promised") as raised:
        voile.publish(table, delta=0.4, **options)
    assert "delta=1e-09" in (raised.value.hint or "")
    release: Any = voile.publish(table, delta=0.4, weak=True, **options)
    assert "The promise is weak" in release.describe()
    assert list(voile.publish(table, delta=1e-9, **options).schema["name"].domain) == ["other"]


def test_what_one_value_of_a_text_file_decides_is_listed(tmp_path: Path) -> None:
    """A kind is outside the promise: the release lists it, and says so."""
    numbers = [str(i % 40) for i in range(2000)]
    kinds = []
    for name, rows in (("without", numbers), ("with", [*numbers, "12.5"])):
        (tmp_path / f"{name}.csv").write_text("age\n" + "\n".join(rows) + "\n")
        release = voile.publish(tmp_path / f"{name}.csv", yes=True)
        (kind,) = (a.kind for a in release.schema)
        listed = {d.what: d.why for d in release.manifest.disclosed}
        why = listed[f"the columns and their kinds: age ({kind})"]
        assert "outside the promise" in why and "not learnt" not in why
        kinds.append(kind)
    assert kinds == ["integer", "numeric"]
