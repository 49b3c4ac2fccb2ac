"""Noisy views and perturbed rows on the frontier."""

from __future__ import annotations

import csv
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from voile.cli import app
from voile.errors import PromiseError, UsageError
from voile.evaluate.frontier import find_frontier
from voile.evaluate.frontier.frontier_plot import draw, records
from voile.evaluate.frontier.measuring import SEED
from voile.evaluate.frontier.page import NOISE, page
from voile.evaluate.frontier.portfolio import check_methods
from voile.evaluate.frontier.result import Frontier
from voile.evaluate.losses.measure import losses
from voile.publishing import perturb_table, publish_table
from voile.release import Release, ViewRelease

COLUMNS = ["age", "town", "ward", "disease"]
ASKED: dict[str, Any] = {"sensitive": "disease", "qi": COLUMNS[:3], "min_support": 0.1}
GRID = "t=0.1;posterior=0.01,0.5,0.9;retention=0.2,0.9"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 people on a domain of 60,000 tuples; the disease depends on the age."""
    generator = np.random.default_rng(4)
    age = np.concatenate([np.arange(20, 60), generator.integers(20, 60, 560)])
    sick = generator.random(600) < age / 80
    path = tmp_path_factory.mktemp("tables") / "people.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", *COLUMNS])
        for i in range(600):
            disease = "heart" if sick[i] else ("flu", "none")[i % 2]
            writer.writerow([f"p{i}", age[i], f"t{i % 20}", f"w{i // 24}", disease])
    return path


@pytest.fixture(scope="module")
def found(people: Path) -> Frontier:
    methods = ["mondrian", "alphabeta", "retention"]
    return find_frontier(people, source=str(people), grid=GRID, methods=methods, **ASKED)


def of(found: Frontier, method: str) -> Any:
    return [point for point in found.points if point.method == method]


def test_losses_are_those_that_are_measured_of_the_release(found: Frontier, people: Path) -> None:
    """By the way that `voile loss` goes: the release opened, the table read by its domain."""
    for point in (*of(found, "alphabeta"), *of(found, "retention")):
        make: Any = publish_table if point.method == "alphabeta" else perturb_table
        prior = {"prior_factor": 10.0} if point.method == "alphabeta" else {}
        release = make(
            people, columns=COLUMNS, simulate_seed=SEED, **point.parameters, **prior
        ).release
        known = losses(people, release, **ASKED, queries=0)
        assert (point.p_loss, point.p_loss_permitted) == pytest.approx(
            (known.p_loss, known.p_loss_permitted)
        )
        assert point.u_loss == pytest.approx(known.u_loss)
        assert point.rows == release.manifest.rows


def test_promises_are_told_in_words(found: Frontier) -> None:
    views, rows = of(found, "alphabeta"), of(found, "retention")
    assert [p.parameters for p in views] == [{"posterior": 0.5}, {"posterior": 0.9}]
    assert "d = 0.1 and γ = 0.5, ε = " in views[0].requirement  # 10 · 600/60,000
    # Every column's e^ε is 1 + size·p/(1 − p): 40, 20, 25 and 3 values.
    epsilon = sum(np.log1p(size * 0.2 / 0.8) for size in (40, 20, 25, 3))
    assert rows[0].requirement == f"local ε = {epsilon:.3g} for a row"


def test_the_certified_bound_is_not_about_noise(found: Frontier) -> None:
    for point in (*of(found, "alphabeta"), *of(found, "retention")):
        record = found.record(point)
        assert [record[n] for n in ("recode", "classes", "certified", "above", "ratio")] == [
            None
        ] * 5
    assert found.record(of(found, "mondrian")[0])["p_loss_permitted"] is None


def test_what_cannot_be_promised_is_refused(people: Path, found: Frontier) -> None:
    assert [(r.method, r.parameters) for r in found.refused] == [("alphabeta", {"posterior": 0.01})]
    assert "0.01" in found.refused[0].why
    limited = find_frontier(people, grid=GRID, also={"k": 5},
                            methods=["mondrian", "alphabeta", "retention"], **ASKED)  # fmt: skip
    assert {p.method for p in limited.points} == {"mondrian"}
    assert len(limited.refused) == 5 and all("no classes" in r.why for r in limited.refused)
    with pytest.raises(PromiseError, match="nothing that the grid asks for"):
        find_frontier(people, grid="posterior=0.01", methods=["alphabeta"], **ASKED)
    with pytest.raises(UsageError, match=r"posterior = 1\.5"):
        find_frontier(people, grid="posterior=1.5", methods=["alphabeta"], **ASKED)
    with pytest.raises(PromiseError, match="keeps every value"):  # the table as it is
        find_frontier(people, grid="retention=1", methods=["retention"], **ASKED)
    with pytest.raises(UsageError, match="no value for any"):
        find_frontier(people, grid="t=0.1", methods=["alphabeta"], **ASKED)


def test_another_domain_than_that_of_classes_is_refused(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    heights = generator.normal(170, 10, 2000)
    lines = [f"{h:.4f},{'ab'[i % 2]}" for i, h in enumerate(heights)]
    path = tmp_path / "heights.csv"
    path.write_text("\n".join(["height,group", *lines]) + "\n")
    done = find_frontier(path, sensitive="group", qi=["height"], min_support=0.1,
                         grid="t=0.1;retention=0.5", methods=["mondrian", "retention"])  # fmt: skip
    assert "'height'" in done.refused[0].why and "schema=" in done.refused[0].why


def test_the_commands_publish_them_with_their_own_coins(found: Frontier, tmp_path: Path) -> None:
    for point in (of(found, "alphabeta")[0], of(found, "retention")[0]):
        words = shlex.split(point.command)
        words[words.index("-o") + 1] = str(tmp_path / point.method)
        done = CliRunner().invoke(app, words[1:])
        assert done.exit_code == 0, (point.command, done.output, done.exception)
        release = Release.open(tmp_path / point.method)
        assert not release.manifest.simulated
        assert list(release.schema.names) == COLUMNS
        if isinstance(release, ViewRelease):
            assert release.promise.posterior == 0.5
            assert release.promise.prior == pytest.approx(0.1)


def test_they_are_measured_only_where_they_are_named() -> None:
    assert not {"alphabeta", "retention", "freeshape"} & set(check_methods(None))


def test_what_is_worse_than_telling_nothing_is_not_efficient(found: Frontier) -> None:
    """Trivial anonymization was not among the methods, and yet it is known."""
    (few, _) = of(found, "retention")
    assert few.u_loss > found.certified.trivial
    assert not found.efficient[found.points.index(few)]


def test_recommended_noise_has_its_own_words(found: Frontier) -> None:
    view = replace(of(found, "alphabeta")[1], u_loss=1e-5)
    words = replace(found, points=(view,)).in_words()
    assert words.startswith(f"Publish noisy views with {view.requirement}, {view.rows:,} rows: ")
    assert "bucketization" not in words and "classes" not in words


def test_every_kind_has_its_own_mark(found: Frontier, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"noisy views", "generalization"} <= {row["shown by"] for row in records(found)}
    drawn = json.dumps(draw(found).to_dict(), ensure_ascii=False)
    assert '"square"' in drawn and '"noisy views"' in drawn
    monkeypatch.setattr("voile.evaluate.pages.javascript", str)  # it takes seconds
    assert NOISE in page(found).decode()
    header, *lines = found.csv().decode().splitlines()
    assert {"posterior", "retention", "p_loss_permitted"} <= set(header.split(","))
    assert len(lines) == len(found.points)
