"""Errors that are measured before classes are published: intervals cover fresh questions."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import voile
from tests.support.soak import rounds
from voile import datasets
from voile.errors import PromiseError, ReleaseError
from voile.kinds.classes.errors import FIELDS, fitting_model, leaning, quantile, reach, rounded_up
from voile.kinds.classes.manifest import MOST_ERROR, ClassErrorModel

QI = ["age", "education", "marital_status", "sex"]
METHODS = ("uniform", "entropy")
CASES: list[dict[str, Any]] = [
    {"method": "mondrian", "k": 10},
    {"method": "mondrian", "k": 40},
    {"method": "mondrian", "recode": "bucketize", "l": 3},
    {"method": "anatomy", "l": 4},
    {"method": "fulldomain", "k": 10},
]


def people(rows: int, seed: int) -> pa.Table:
    """Rows of Adult, a random part."""
    file = f"{datasets.__path__[0]}/adult.parquet"
    names = ", ".join([*QI, "occupation"])
    sql = f"select {names} from '{file}' where occupation is not null"
    table = duckdb.connect().sql(sql).to_arrow_table()
    chosen = np.random.default_rng(seed).choice(table.num_rows, rows, replace=False)
    return table.take(np.sort(chosen))


def condition(rng: np.random.Generator, table: pa.Table, name: str) -> str:
    """A condition on one column: someone's value, a range, or a set."""
    values = table.column(name).to_pylist()
    some = sorted({values[i] for i in rng.integers(0, len(values), int(rng.integers(1, 6)))})
    if isinstance(some[0], int):
        way = int(rng.integers(3))
        if way < 2:
            return f"{name} between {some[0]} and {some[-1]}" if way else f"{name} >= {some[0]}"
    return f"{name} in ({', '.join(repr(value) for value in some)})"


def questions(rng: np.random.Generator, table: pa.Table, number: int) -> list[str]:
    """Counts, averages, sums, shares and groups by one to four columns."""
    found = []
    for _ in range(number):
        names = rng.permutation(table.column_names).tolist()
        count = int(rng.integers(1, 4))
        where = " and ".join(condition(rng, table, name) for name in names[:count])
        share = f"avg(case when {condition(rng, table, names[count])} then 1.0 else 0.0 end)"
        what = ["count(*)", "sum(age)", "avg(age)", share][int(rng.integers(4))]
        by = f"{names[-1]}, " if rng.random() < 0.5 and names[-1] != "age" else ""
        group = f" group by {names[-1]}" if by else ""
        found.append(f"select {by}{what} as x from t where {where}{group}")
    return found


def inside(release: Any, table: pa.Table, asked: list[str], method: str) -> list[bool]:
    """Whether each interval that leaves something open holds the truth."""
    found = []
    truth = duckdb.connect()
    truth.register("t", table)
    for sql in asked:
        true = {tuple(row[:-1]): row[-1] for row in truth.sql(sql).fetchall()}
        for row in release.query(sql, method=method).rows[:2]:
            *key, estimate = row.values()
            value = true.get(tuple(key), 0)
            if value is None or estimate.stderr == 0 or math.isnan(estimate.value):
                continue
            low, high = estimate.interval()
            found.append(low - 1e-6 <= value <= high + 1e-6)
    return found


def test_intervals_cover_fresh_questions(tmp_path: Path) -> None:
    """At least 0.93 over releases and questions on Adult; seeds are fixed, so no false alarm."""
    found: dict[str, list[bool]] = {method: [] for method in METHODS}
    for number, case in enumerate(CASES):
        table = people(2000, number)
        release = voile.publish(
            table, to=tmp_path / f"r{number}", name="t", qi=QI, sensitive=["occupation"],
            simulate_seed=number, **case,
        )  # fmt: skip
        asked = questions(np.random.default_rng(number), table, rounds(40, 400))
        for method in METHODS:
            found[method] += inside(release, table, asked, method)
    for method, covered in found.items():
        assert len(covered) > 200
        assert np.mean(covered) >= 0.93, (method, np.mean(covered), len(covered))


def test_a_fitted_model_covers_where_it_is_true(tmp_path: Path) -> None:
    """Independent columns, n = 1,000, k = 20: as if parameters were known, .70 of groups."""
    rng, found = np.random.default_rng(5), list[bool]()
    for number in range(rounds(3, 20)):
        columns = {f"c{j}": rng.binomial(9, 0.2 + 0.1 * j, 1000) for j in range(4)}
        table = pa.table(columns | {"s": rng.integers(0, 4, 1000)})
        release = voile.publish(
            table, to=tmp_path / f"r{number}", name="t", method="mondrian", qi=list(columns),
            sensitive=["s"], k=20, simulate_seed=number,
        )  # fmt: skip
        asked = [f"select c{j}, count(*) as x from t where c{(j + 1) % 4} <= {v} group by c{j}"
                 for j in range(4) for v in (1, 3)]  # fmt: skip
        found += inside(release, table, asked, "entropy")
    assert np.mean(found) >= 0.93, (np.mean(found), len(found))


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A release without an error model."""
    return voile.publish(
        people(600, 2), to=tmp_path_factory.mktemp("plain") / "r", name="t", method="mondrian",
        qi=QI, sensitive=["occupation"], k=10, error_model=False,
    )  # fmt: skip


def test_without_an_error_model_no_interval_is_stated(without: Any) -> None:
    from rich.console import Console

    for sql in (
        "select count(*) from t where age < 33",
        "select avg(age) from t where sex = 'Female'",
        "select median(age) from t",
        "select median(age) - avg(age) from t",
        "select stddev_pop(age) from t",
    ):
        for method in METHODS:
            answer = without.query(sql, method=method)
            entry = next(iter(answer.to_dict()["rows"][0].values()))
            assert entry["stderr"] is entry["low"] is entry["high"] is None, sql
            assert entry["certain_low"] <= entry["estimate"] <= entry["certain_high"]
            assert "no interval is stated" in answer.covers
            assert any("no error model" in note for note in answer.notes)
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(answer)
    shown = console.export_text()
    assert "interval" not in shown and "certain" in shown and "unknown" not in shown
    assert "certainly in [" in str(answer.scalar) and "at 0.95" not in str(answer.scalar)
    assert without.explain(sql)["stderr"] is None
    assert without.query("select count(*) from t").scalar.stderr == 0
    assert "how far" not in " ".join(entry.what for entry in without.manifest.disclosed)


def test_an_error_model_is_three_rounded_numbers_and_disclosed(tmp_path: Path) -> None:
    table = people(600, 2)
    options: dict[str, Any] = {"method": "mondrian", "qi": QI, "sensitive": ["occupation"], "k": 10}
    models = []
    for number, seed in enumerate((1, 1, 2)):
        release = voile.publish(
            table, to=tmp_path / f"r{number}", name="t", simulate_seed=seed, **options
        )
        assert any("three rounded numbers" in entry.what for entry in release.manifest.disclosed)
        models.append(release.manifest.parameters.error_model)
        assert f"{models[-1].spread:g}²·V" in (tmp_path / f"r{number}" / "README.md").read_text()
    assert models[0] == models[1] and models[0] != models[2]
    for x in models[0].model_dump().values():
        assert float(f"{x:.2g}") == x
    voile.verify(tmp_path / "r0")


@pytest.mark.parametrize("wrong", [-1.0, 2 * MOST_ERROR, "NaN", "Infinity", None])
def test_a_forged_error_model_is_refused(wrong: Any, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    voile.publish(
        people(600, 2), to=folder, name="t", method="mondrian", qi=QI, sensitive=["occupation"],
        k=10, simulate_seed=1,
    )  # fmt: skip
    data = json.loads((folder / "manifest.json").read_text())
    data["parameters"]["error_model"]["share"] = wrong
    (folder / "manifest.json").write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n")
    with pytest.raises(ReleaseError):
        voile.open(folder)


def test_the_least_wide_model_covers_its_errors() -> None:
    """Errors that are a share of what is open, or grow with its root, are told apart."""
    rng = np.random.default_rng(4)
    rows = 10 ** rng.uniform(1, 4, 2000)
    noise = np.abs(rng.standard_normal(2000))
    for spread, share in ((3.0, 0.0), (0.0, 0.4)):
        off = np.hypot(spread * np.sqrt(rows), share * rows) * noise
        none, one = np.zeros(2000), np.ones(2000)
        parts = {"kind": none, "columns": one, "of_people": none, "rows": rows, "variance": rows,
                 "size": one, "lean": one, "plain": off, "fitted": off / 2}  # fmt: skip
        model = fitting_model(np.stack([parts[name] for name in FIELDS], axis=1), fitted=True)
        assert model is not None and model.fitted is not None
        error = np.hypot(model.spread * np.sqrt(rows), model.share * rows)
        assert 0.95 <= (off <= reach(error, np.ones(2000), 0.05)).mean() <= 0.99
        assert 0.4 <= model.fitted <= 0.6
        wide = error / np.hypot(spread * np.sqrt(rows), share * rows)
        assert 0.8 < np.median(wide) < 1.6


def test_what_rows_add_and_cancel_leans_half_as_much() -> None:
    """A count as a whole, an average by half; what has no rows is taken for a count."""
    found = leaning(np.array([10.0, 0.0, -3.0, 0.0]), np.array([10.0, 10, 6, 0]), np.ones(4))
    assert found.tolist() == [1, 0.5, 0.75, 1]


def test_quantiles_are_students_with_four_degrees_of_freedom() -> None:
    from scipy.stats import t

    for miss in (0.5, 0.2, 0.05, 0.01, 1e-6):
        expected = 1.959964 * t.ppf(1 - miss / 2, 4) / t.ppf(0.975, 4)
        assert quantile(miss) == pytest.approx(expected, rel=1e-5)
    assert [rounded_up(x) for x in (0.0, 0.3, 0.311, 12.01, 1e9)] == [0, 0.3, 0.32, 13, MOST_ERROR]
    assert ClassErrorModel(spread=0, share=0, fitted=None).fitted is None


@pytest.mark.parametrize(
    "void",
    [
        {"k": 1},
        {"t": 1.0, "t_distance": "variational"},
        {"k": 1, "l": {"occupation": 1}, "semantic": 20.0, "absent": "ignored"},
    ],
)
def test_a_promise_of_nothing_needs_weak(void: dict[str, Any], tmp_path: Path) -> None:
    options: dict[str, Any] = {"method": "mondrian", "qi": QI, "sensitive": ["occupation"], **void}
    table = people(300, 2)
    with pytest.raises(PromiseError, match="promises nothing") as refused:
        voile.publish(table, to=tmp_path / "r", **options)
    assert "weak=True" in str(refused.value.hint)
    assert not (tmp_path / "r").exists()
    options["error_model"] = False  # which has no part in this
    release = voile.publish(table, to=tmp_path / "r", name="t", weak=True, **options)
    assert release.manifest.parameters.weak
    assert "say nothing" in (tmp_path / "r" / "README.md").read_text()
    better = voile.publish(table, to=tmp_path / "b", name="t", **options | {"k": 5})
    assert not better.manifest.parameters.weak


def test_rows_that_were_left_out_are_counted(tmp_path: Path) -> None:
    table = people(600, 2)
    missing = pa.array([None if i < 7 else x for i, x in enumerate(table["age"].to_pylist())])
    done = voile.publishing.group_table(
        table.set_column(0, "age", missing), to=tmp_path / "r", name="t", method="suppress",
        qi=QI, sensitive=["occupation"], k=5, suppression=0.4, nulls="drop", simulate_seed=1,
    )  # fmt: skip
    removed = done.release.manifest.parameters.removed
    assert removed > 0
    assert done.to_dict()["left_out"] == {"nulls": 7, "suppressed": removed}
    facts = dict(done.facts())
    assert f"{removed:,} (no class could hold them) and 7 (a value is missing)" in facts["left out"]
    assert f"{removed:,} rows were left out" in (tmp_path / "r" / "README.md").read_text()
