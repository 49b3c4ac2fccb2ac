"""Refined answers: the model through the contraction, weighed, adding up, never negative."""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import voile
from voile.engines import read_all
from voile.kinds.views.estimator import adding_up
from voile.kinds.views.refinement import storage
from voile.query import DomainSums, parse
from voile.query.predicate import Term
from voile.release import ViewRelease

SMALL = {"a": 4, "b": 3}
COLUMNS = ["age", "education", "sex", "native_country", "salary"]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> ViewRelease:
    folder = tmp_path_factory.mktemp("refined")
    made = voile.publish(
        "dataset:adult/boundary", columns=COLUMNS, prior=0.01, retention=0.5, simulate_seed=3
    )
    saved = made.save(folder / "five.voile")
    saved.refine()
    return saved


@pytest.fixture(scope="module")
def truth() -> Any:
    import duckdb

    con = duckdb.connect()
    con.register("adult", read_all("dataset:adult/boundary"))
    return lambda sql: con.execute(sql).fetchall()


def refined(release: ViewRelease, sql: str) -> list[dict[str, Any]]:
    return list(release.query(sql, refine=True).rows)


def test_it_is_fitted_once_and_kept_beside_the_release(release: ViewRelease) -> None:
    path = release.refinement_path
    assert path == release.path.resolve().with_name("five.voile.refined.npz")
    assert path.is_file() and path.parent == release.path.resolve().parent
    before = path.stat().st_mtime_ns
    again = ViewRelease.open(release.path)
    assert again.refine().mixture.components == release.refine().mixture.components
    assert path.stat().st_mtime_ns == before
    assert voile.verify(release.path).name == release.name


def test_the_models_counts_are_those_of_its_tables(release: ViewRelease) -> None:
    """Contracted with every condition of the language, against the tables multiplied out."""
    mixture = release.refine().mixture
    model = release._model()

    sums = DomainSums(release.schema, release._view.domain)
    places = [release.schema.names.index(n) for n in ("age", "education", "salary")]
    cells = mixture.marginal(places)
    domains = [list(release.schema[n]) for n in ("age", "education", "salary")]
    for where, holds in [
        ("age < 30 and education = 'Masters'", lambda a, e, _: a < 30 and e == "Masters"),
        ("age < 30 or (education like 'B%' and salary = '>50K')",
         lambda a, e, s: a < 30 or (e.startswith("B") and s == ">50K")),
        ("age % 7 = length(education) % 7", lambda a, e, _: a % 7 == len(e) % 7),
    ]:  # fmt: skip
        predicate = parse(f"select count(*) from t where {where}", release.schema).predicate
        (found,) = sums.sums([Term(predicate)], (), model.weights)
        expected = sum(
            cells[i, j, k]
            for i, a in enumerate(domains[0])
            for j, e in enumerate(domains[1])
            for k, s in enumerate(domains[2])
            if holds(a, e, s)  # type: ignore[no-untyped-call]
        )
        assert model.rows * float(found.total) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "select", ["count(*)", "sum(age)", "count(*) filter (where age > 40)"]
)  # fmt: skip
@pytest.mark.parametrize("where", ["true", "sex = 'Female' and age < 35"])
def test_groups_add_up_to_the_total(release: ViewRelease, select: str, where: str) -> None:
    (total,) = refined(release, f"select {select} as x from adult where {where}")
    for groups in ("education", "floor(age / 10), salary", "native_country"):
        rows = refined(release, f"select {select} as x from adult where {where} group by {groups}")
        assert sum(row["x"].value for row in rows) == pytest.approx(total["x"].value, rel=1e-6)
        assert all(row["x"].value >= 0 for row in rows)
        assert all(row["x"].interval()[0] >= 0 for row in rows)


def test_small_counts_are_far_better_and_large_ones_not_worse(
    release: ViewRelease, truth: Any
) -> None:
    groups = "education, native_country, sex"
    sql = f"select {groups}, count(*) as n from adult group by {groups}"
    exact = {tuple(row[:3]): row[3] for row in truth(sql)}
    rows = release.query(sql, refine=True).rows
    names = ("education", "native_country", "sex")
    true = np.array([exact.get(tuple(row[n] for n in names), 0) for row in rows])
    model = np.array([row["n"].value for row in rows])
    plain = np.array([row["n"].plain.value for row in rows])
    assert np.abs(model - true).mean() < 0.5 * np.abs(plain - true).mean()
    large = true >= 500
    assert np.abs(model - true)[large].mean() < 1.2 * np.abs(plain - true)[large].mean()
    stated = np.array([row["n"].stderr for row in rows])
    # Errors are stated on average over queries: most lie within twice the stated one.
    assert (np.abs(model - true) <= 2 * stated + 1).mean() > 0.9


def test_averages_and_shares_of_refined_totals(release: ViewRelease, truth: Any) -> None:
    sql = (
        "select sex, avg(age) as mean, 100.0 * count(*) filter (where salary = '>50K') / count(*) "
        "as rich, stddev(age) as spread from adult group by sex order by sex"
    )
    rows = refined(release, sql)
    for row, exact in zip(rows, truth(sql), strict=True):
        assert row["sex"] == exact[0]
        for name, true in zip(("mean", "rich", "spread"), exact[1:], strict=True):
            assert abs(row[name].value - true) < 5 * row[name].stderr
            assert row[name].stderr <= row[name].plain.stderr * 1.05
            low, high = row[name].interval()
            assert low <= row[name].value <= high


def test_a_sum_of_ones_is_the_count(release: ViewRelease) -> None:
    (row,) = refined(release, "select count(*) as n, sum(1) as s, sum(3) as t from adult "
                              "where age < 40")  # fmt: skip
    assert row["s"].value == pytest.approx(row["n"].value)
    assert row["t"].value == pytest.approx(3 * row["n"].value)
    assert row["n"].stderr < row["n"].plain.stderr  # counts are surer,
    assert row["t"].stderr == pytest.approx(row["t"].plain.stderr)  # sums do not say so


def test_refined_quantiles_are_better_and_lie_in_the_plain_interval(
    release: ViewRelease, truth: Any
) -> None:
    sql = (
        "select education, sex, quantile_disc(age, 0.5) as m from adult group by education, sex "
        "order by education, sex"
    )
    exact = {row[:2]: row[2] for row in truth(sql)}
    rows = refined(release, sql)
    errors = [
        (abs(row["m"].value - exact[key]), abs(row["m"].plain.value - exact[key]))
        for row in rows
        if (key := (row["education"], row["sex"])) in exact and not np.isnan(row["m"].plain.value)
    ]
    assert len(errors) > 20
    better, plain = np.mean(errors, axis=0)
    assert better < plain
    for row in rows:
        low, high = row["m"].interval()
        assert low <= row["m"].value <= high
        assert (low, high) == row["m"].plain.interval()


def test_having_and_order_use_what_is_told(release: ViewRelease) -> None:
    rows = refined(
        release,
        "select education, count(*) as n from adult group by education having count(*) > 500 "
        "order by n desc",
    )
    values = [row["n"].value for row in rows]
    assert values == sorted(values, reverse=True) and min(values) > 500


def test_json_carries_the_plain_estimate(release: ViewRelease) -> None:
    entry = release.query("select count(*) from adult", refine=True).to_dict()
    assert set(entry["rows"][0]["count"]) == {"estimate", "stderr", "low", "high", "plain"}
    assert "not a guarantee" in entry["covers"]


def test_a_release_that_was_replaced_is_refined_anew(tmp_path: Path) -> None:
    """`publish --overwrite` leaves the file of the release before, and `--refine` failed."""
    target, question = tmp_path / "people.voile", "select count(*) from data where a = 1"
    table = pa.table({name: [i % size for i in range(120)] for name, size in SMALL.items()})
    answers = []
    for seed in (4, 5, 5):
        release = voile.publish(table, prior=0.02, simulate_seed=seed).save(target, overwrite=True)
        assert isinstance(release, ViewRelease)
        answers.append(release.query(question, refine=True).to_dict())
        of = json.loads(str(np.load(release.refinement_path)["about"]))["of"]
        assert of == hashlib.sha256((target / "manifest.json").read_bytes()).hexdigest()
    assert answers[0] != answers[1] == answers[2]
    with np.load(release.refinement_path) as arrays:
        content = dict(arrays)
    np.savez(release.refinement_path, **{**content, "full_rows": content["full_rows"] * 2})
    with pytest.raises(voile.VoileError, match="was changed"):
        ViewRelease.open(target).query(question, refine=True)
    assert ViewRelease.open(target).refine(replace_broken=True)
    assert ViewRelease.open(target).query(question, refine=True).to_dict() == answers[2]


def test_a_model_that_is_not_of_the_release_is_fitted_anew(tmp_path: Path) -> None:
    """It says the right digest, and is a whole file: forged by somebody who can write beside it."""
    question = "select count(*) from data where a = 1"
    table = pa.table({name: [i % size for i in range(1200)] for name, size in SMALL.items()})
    made = voile.publish(table, prior=0.02, simulate_seed=6)
    release = made.save(tmp_path / "people.voile")
    assert isinstance(release, ViewRelease)
    good = release.refine()
    answer, path = release.query(question, refine=True), release.refinement_path
    digest = json.loads(str(np.load(path)["about"]))["of"]
    kept = path.read_bytes()
    shares = np.full_like(good.mixture.tables[0], 0.001)
    shares[:, 1] = 0.997
    certain = replace(good.error, weights=np.zeros(3))
    forgeries = [
        replace(good, mixture=replace(good.mixture, tables=(shares, *good.mixture.tables[1:]))),
        replace(good, mixture=replace(good.mixture, rows=10 * good.mixture.rows)),
        replace(good, error=certain),
        replace(good, error=replace(good.error, whole=0.0)),
        replace(good, error=replace(good.error, rows=1.0)),
    ]
    for forged in forgeries:
        storage.save(forged, path, of=digest)
        found = ViewRelease.open(release.path).query(question, refine=True)
        assert found.to_dict() == answer.to_dict()
        assert np.array_equal(np.load(path)["full_mix"], good.mixture.mix)
    path.write_bytes(kept)
    before = path.stat().st_mtime_ns
    assert ViewRelease.open(release.path).query(question, refine=True).to_dict() == answer.to_dict()
    assert path.stat().st_mtime_ns == before  # what is of the release is not fitted again


def test_a_file_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.refined.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("full_mix.npy", bytes(2**28 + 1))
    assert path.stat().st_size < 2**20
    with pytest.raises(voile.VoileError, match="ValueError"):
        storage.load(path, of="")


def test_adding_up() -> None:
    values, variances = np.array([1.0, 5.0, 0.5]), np.array([1.0, 4.0, 0.0])
    assert adding_up(values, variances, 11.5, least=0.0).tolist() == [2.0, 9.0, 0.5]
    down = adding_up(np.array([1.0, 5.0]), np.array([4.0, 1.0]), 3.0, least=0.0)
    assert down.tolist() == [0.0, 3.0]
    assert adding_up(np.array([3.0]), np.array([0.0]), 9.0, least=0.0).tolist() == [3.0]
