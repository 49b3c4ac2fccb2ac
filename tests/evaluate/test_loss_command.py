"""Losses of releases of every kind, and `voile loss` as people use it."""

from __future__ import annotations

import json
import subprocess
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.running import voile
from voile.engines import connect
from voile.errors import VoileError
from voile.evaluate.losses.measure import losses
from voile.evaluate.losses.queries import estimated
from voile.hierarchies import default_levels
from voile.kinds.classes.publishing import group_table
from voile.kinds.evaluation import revealed, worst_divergence
from voile.kinds.perturbed.losses import shown_by_rows
from voile.kinds.perturbed.publishing import perturb
from voile.kinds.views.losses import shown_by_view
from voile.kinds.views.publishing import publish_table
from voile.privacy import LikelihoodRatio
from voile.privacy.divergence import jensen_shannon
from voile.recoding.populations import Populations, populations
from voile.release import LocalRelease, Release, ViewRelease

QI = ["age", "city"]
CITIES = ("Aalen", "Bremen", "Celle")
ILLS = ("cold", "flu", "gout", "mumps")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 rows in which illness depends on age and city."""
    coins = np.random.default_rng(11)
    age, city = coins.integers(20, 28, 400), coins.integers(0, 3, 400)
    chance = np.array([[8, 4, 2, 1], [2, 8, 1, 3], [1, 1, 6, 6]])[city] + np.eye(4)[age % 4] * 3
    ill = [coins.choice(4, p=row / row.sum()) for row in chance]
    file = tmp_path_factory.mktemp("loss") / "ill.csv"
    lines = [f"{a},{CITIES[c]},{ILLS[i]}" for a, c, i in zip(age, city, ill, strict=True)]
    file.write_text("age,city,ill\n" + "\n".join(lines) + "\n")
    return file


PERTURBED: dict[str, dict[str, Any]] = {
    "retention": {"retention": {"age": 0.5, "city": 0.7, "ill": 0.6}},
    "identity": {"retention": 0.6, "replace": "identity"},
    "frapp": {"retention": 0.4, "whole_rows": True},
}
VIEWS: dict[str, dict[str, Any]] = {
    "alphabeta": {},
    "set": {"rows": "set", "distinct": True},
    "shaped": {"noise_prior": "product"},
    "series": {"series": "s"},
}


def publish(kind: str, table: Path, folder: Path) -> Release:
    if kind in PERTURBED:
        return perturb(str(table), simulate_seed=1, **PERTURBED[kind])
    options = {"prior": 0.02, "posterior": 0.3, "simulate_seed": 1, **VIEWS[kind]}
    if kind == "series":
        options["ledger"] = folder / "s.series"
    return publish_table(str(table), to=folder / f"{kind}.voile", **options).release


def large_populations(table: Path, release: Release) -> Populations:
    codes, _ = connect(str(table)).columns_of_codes(release.schema, drop_nulls=False)
    levels = [default_levels(release.schema[name]) for name in QI]
    values = np.eye(4, dtype=np.int64)[codes[2]]
    return populations(np.stack(codes[:2]).astype(np.int32), levels, 40, values)


@pytest.mark.parametrize(
    "kind", ["alphabeta", "set", "shaped", "series", "retention", "identity", "frapp"]
)
def test_estimates_of_populations_are_those_of_queries(
    kind: str, table: Path, tmp_path: Path
) -> None:
    release = publish(kind, table, tmp_path)
    large = large_populations(table, release)
    assert isinstance(release, ViewRelease | LocalRelease)
    told = (
        shown_by_view(release, QI, "ill")
        if isinstance(release, ViewRelease)
        else shown_by_rows(release, QI, "ill")
    )
    found = estimated(told, large)
    values = [list(release.schema[name]) for name in QI]
    for y in range(0, large.number, 3):
        conditions = []
        for name, known, items, item in zip(QI, values, large.items, large.choices[y], strict=True):
            if item >= 0:
                inside = [repr(known[code]) for code in np.flatnonzero(items.has[item])]
                conditions.append(f"{name} IN ({', '.join(inside)})")
        for s, ill in enumerate(ILLS):
            where = " AND ".join([*conditions, f"ill = '{ill}'"])
            answer = release.query(f"SELECT count(*) FROM ill WHERE {where}")
            assert found[y, s] == pytest.approx(answer.value, abs=1e-6), where


# ---------------------------------------------------------------------- what one person loses


def beliefs_in_a_view(release: ViewRelease, overall: Any, cell: tuple[Any, ...]) -> list[float]:
    """Bayes' rule in fractions: the view shows so many copies of each tuple of this person's."""
    mechanism: Any = release.mechanism
    a, q = Fraction(mechanism.retention), Fraction(mechanism.noise)
    shown = release.to_arrow().to_pylist()
    weights = []
    for s, ill in enumerate(ILLS):
        copies = sum((row["age"], row["city"], row["ill"]) == (*cell, ill) for row in shown)
        without = (1 - q) * q**copies
        kept = (1 - q) * q ** (copies - 1) if copies else Fraction(0)
        weights.append(Fraction(overall[s]) * ((1 - a) * without + a * kept) / without)
    return [float(w / sum(weights)) for w in weights]


def rows_of(table: Path) -> list[list[str]]:
    return [line.split(",") for line in table.read_text().splitlines()[1:]]


def overall_of(table: Path) -> Any:
    return np.array([sum(row[2] == ill for row in rows_of(table)) / 400 for ill in ILLS])


def test_p_loss_of_a_view_is_that_of_bayes_rule(table: Path, tmp_path: Path) -> None:
    release = publish("alphabeta", table, tmp_path)
    assert isinstance(release, ViewRelease)
    overall = overall_of(table)
    people = {(int(age), city) for age, city, _ in rows_of(table)}
    beliefs = np.array([beliefs_in_a_view(release, overall, cell) for cell in people])
    found = losses(str(table), release, sensitive="ill", queries=0)
    assert found.p_loss == pytest.approx(jensen_shannon(beliefs, overall).max(), abs=1e-12)
    assert found.p_loss_permitted is not None
    assert found.p_loss <= found.p_loss_permitted < found.p_loss_revealed


@pytest.mark.parametrize("kind", list(PERTURBED))
def test_p_loss_of_perturbed_rows_is_that_of_bayes_rule(
    kind: str, table: Path, tmp_path: Path
) -> None:
    release = publish(kind, table, tmp_path)
    overall = overall_of(table)
    kept = {"retention": 0.6, "identity": 0.6, "frapp": 0.4}[kind]
    drawn = {"retention": [1 / 4] * 4, "identity": overall, "frapp": [1 / (8 * 3 * 4)] * 4}[kind]
    worst = 0.0
    for seen in range(4):
        chances = [(1 - kept) * drawn[seen] + kept * (s == seen) for s in range(4)]
        belief = overall * chances
        worst = max(worst, float(jensen_shannon(belief / belief.sum(), overall)))
    found = losses(str(table), release, sensitive="ill", queries=0)
    assert found.p_loss == pytest.approx(worst, abs=1e-12)
    assert found.p_loss <= (found.p_loss_permitted or 0) < found.p_loss_revealed


@pytest.mark.parametrize("ratio", [(0.5, 3.0), (0.9, 1.5), (0.2, 50.0), (1.0, 1.0)])
def test_no_likelihoods_within_the_ratio_lose_more_than_is_permitted(
    ratio: tuple[float, float],
) -> None:
    overall = np.array([0.4, 0.3, 0.2, 0.07, 0.03])
    permitted = worst_divergence(overall, LikelihoodRatio(*map(Fraction, ratio)))

    def loss(gains: Any) -> float:
        belief = overall * gains
        return float(jensen_shannon(belief / belief.sum(), overall))

    ends = max(loss(np.array(gains)) for gains in product(ratio, repeat=5))
    assert permitted == pytest.approx(ends, abs=1e-12)
    coins = np.random.default_rng(12)
    inside = coins.uniform(*ratio, (2000, 5))
    assert max(loss(gains) for gains in inside) <= permitted + 1e-12
    if ratio[0] < ratio[1]:  # and a little outside it they do
        wider = (ratio[0] * 0.99, ratio[1] * 1.01)
        assert max(loss(np.array(gains)) for gains in product(wider, repeat=5)) > permitted


def test_without_a_bound_everything_may_be_revealed() -> None:
    overall = np.array([0.6, 0.3, 0.1])
    assert worst_divergence(overall, LikelihoodRatio(Fraction(1, 2), None)) == pytest.approx(
        revealed(overall)
    )
    many = np.full(40, 1 / 40)
    some = worst_divergence(many, LikelihoodRatio(Fraction(1, 2), Fraction(3)))
    assert 0 < some < revealed(many)
    assert worst_divergence(np.ones(1), LikelihoodRatio(Fraction(1, 2), Fraction(3))) == 0


def test_releases_of_all_kinds_lie_between_nothing_and_everything(
    table: Path, tmp_path: Path
) -> None:
    for kind in (*PERTURBED, *VIEWS):
        if kind == "set":
            continue  # it is made of fewer rows than the table has
        found = losses(str(table), publish(kind, table, tmp_path), sensitive="ill", queries=50)
        assert 0 < found.p_loss < found.p_loss_revealed < np.log(2)
        assert (found.u_loss or 0) > 0 and found.classes is None
        assert found.accuracy.class_majority is None


def test_more_noise_loses_less_privacy_and_more_utility(table: Path) -> None:
    points = []
    for kept in (0.2, 0.5, 0.8, 1.0):
        release = perturb(str(table), retention=kept, simulate_seed=3)
        found = losses(str(table), release, sensitive="ill", queries=0)
        points.append((found.p_loss, found.u_loss or 0.0))
    assert points == sorted(points)
    assert [u for _, u in points] == sorted((u for _, u in points), reverse=True)
    assert points[-1][1] == pytest.approx(0, abs=1e-12)  # rows as they are
    assert points[-1][0] == pytest.approx(found.p_loss_revealed)


# ---------------------------------------------------------------------- the command


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return voile(*map(str, arguments))


@pytest.fixture(scope="module")
def classes(table: Path) -> Path:
    to = table.parent / "classes.voile"
    group_table(str(table), to=to, qi=QI, sensitive=["ill"], k=20)
    return to


KEYS = {
    "release", "kind", "rows", "qi", "sensitive", "p_loss", "p_loss_permitted",
    "p_loss_revealed", "u_loss", "u_loss_trivial", "min_support", "populations", "worst",
    "gen_iloss", "discernibility", "average_class_size", "normalised_class_size", "precision",
    "non_uniform_entropy", "kl", "relative_error", "queries", "accuracy", "publishable",
}  # fmt: skip


def test_the_command_prints_what_the_function_finds(table: Path, classes: Path) -> None:
    done = run("loss", table, classes, "--json")
    assert done.returncode == 0, done.stderr
    assert "not for publication" in " ".join(done.stderr.split())
    found = json.loads(done.stdout)
    assert set(found) == KEYS
    assert found == json.loads(json.dumps(losses(str(table), classes).to_dict()))
    assert found["publishable"] is False


def test_the_command_prints_a_table(table: Path, classes: Path) -> None:
    done = run("loss", table, classes, "--qi", "city", "--queries", "0")
    assert done.returncode == 0, done.stderr
    assert "P_loss" in done.stdout and "shown worst" in done.stdout
    assert "relative error" not in done.stdout


def test_a_part_of_the_quasi_identifiers_can_be_asked_about(table: Path, classes: Path) -> None:
    whole = losses(str(table), classes, queries=0)
    part = losses(str(table), classes, qi=["city"], queries=0)
    assert part.qi == ("city",) and part.p_loss == whole.p_loss
    assert part.populations < whole.populations


def test_without_a_large_population_there_is_no_u_loss(table: Path, classes: Path) -> None:
    found = losses(str(table), classes, min_support=1, queries=0)
    assert found.populations == 0
    assert found.u_loss is None and found.u_loss_trivial is None
    done = run("loss", table, classes, "--min-support", 1, "--queries", 0)
    assert done.returncode == 0 and "no population" in done.stdout


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"sensitive": "age"}, "no sensitive column 'age'"),
    ({"sensitive": "il"}, "did you mean 'ill'"),
    ({"qi": ["agee"]}, "did you mean 'age'"),
    ({"qi": ["age", "age"]}, "twice"),
    ({"qi": ["ill"]}, "in qi= and in sensitive="),
    ({"qi": []}, "no quasi-identifiers"),
    ({"min_support": 0}, "min_support=0 must lie"),
    ({"min_support": 1.5}, "min_support=1.5 must lie"),
    ({"dimension": 3}, "3 of 2 quasi-identifiers"),
    ({"dimension": 0}, "0 of 2 quasi-identifiers"),
    ({"selectivity": 0}, "selectivity 0 must lie"),
    ({"queries": -1}, "-1 queries"),
    ({"hierarchies": {"ill": "x.csv"}}, "not a column in use"),
    ({"hierarchies": {"age": "missing.csv"}}, "missing.csv"),
]


@pytest.mark.parametrize(("options", "words"), WRONG)
def test_wrong_calls_are_refused_with_what_to_do(
    options: dict[str, Any], words: str, table: Path, classes: Path
) -> None:
    with pytest.raises(VoileError) as caught:
        losses(str(table), classes, **options)
    assert words in str(caught.value) and caught.value.hint


def test_another_table_is_refused(table: Path, classes: Path, tmp_path: Path) -> None:
    lines = table.read_text().splitlines()
    shorter, other = tmp_path / "shorter.csv", tmp_path / "other.csv"
    shorter.write_text("\n".join(lines[:-1]) + "\n")
    last = lines[-1].rsplit(",", 1)
    changed = next(ill for ill in ILLS if ill != last[1])
    other.write_text("\n".join([*lines[:-1], f"{last[0]},{changed}"]) + "\n")
    with pytest.raises(VoileError, match="399 rows"):
        losses(str(shorter), classes)
    with pytest.raises(VoileError, match="does not have the table's values of 'ill'"):
        losses(str(other), classes)


def test_texts_that_mean_null_are_null(table: Path, tmp_path: Path) -> None:
    """The losses are those of a table that has NULL in their place."""
    release = tmp_path / "R.voile"
    asked, empty = tmp_path / "asked.csv", tmp_path / "empty.csv"
    asked.write_text(table.read_text().replace(",gout", ",?"))
    empty.write_text(table.read_text().replace(",gout", ","))
    roles: dict[str, Any] = {"qi": QI, "sensitive": ["ill"], "k": 10, "nulls": "as-value"}
    group_table(empty, method="mondrian", to=release, **roles)
    words = ["--queries", "0", "--json"]
    wanted = json.loads(run("loss", empty, release, *words).stdout)
    assert json.loads(run("loss", asked, release, "--null-text", "?", *words).stdout) == wanted
    assert "'?'" in run("loss", asked, release, *words).stderr


def test_a_view_needs_to_be_told_what_is_sensitive(table: Path, tmp_path: Path) -> None:
    release = publish("alphabeta", table, tmp_path)
    with pytest.raises(VoileError, match="not said which column is sensitive"):
        losses(str(table), release)
    with pytest.raises(VoileError, match="no sensitive column 'x'"):
        losses(str(table), release, sensitive="x")
