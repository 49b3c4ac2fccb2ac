"""The portfolio, its efficient set, resumption, the folder and the command."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import voile
from tests.support.paths import TESTS
from voile.cli import app
from voile.errors import PromiseError, SchemaError, TableError, UsageError, VoileError
from voile.evaluate.frontier import find_frontier, running
from voile.evaluate.frontier.measuring import measure
from voile.evaluate.frontier.portfolio import Candidate, candidates, frontier_methods, read_grid
from voile.evaluate.frontier.result import Frontier, efficient
from voile.evaluate.frontier.subject import Subject, read_subject
from voile.journal import Journal

ORACLE = json.loads((TESTS / "oracle" / "frontier.json").read_text())
ADULT = "dataset:adult/frontier"
QI = ["age", "workclass", "education", "marital_status", "race", "sex"]
SMALL: dict[str, Any] = {"sensitive": "disease", "qi": ["age", "sex"], "min_support": 0.1}


@pytest.fixture(scope="module")
def adult() -> Subject:
    return read_subject(ADULT, source=ADULT, sensitive="occupation", qi=QI)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 400 people; the disease depends on the age."""
    generator = np.random.default_rng(2)
    age = generator.integers(20, 60, 400)
    sick = generator.random(400) < age / 80
    other = generator.choice(["flu", "none"], 400)
    path = tmp_path_factory.mktemp("tables") / "people.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "age", "sex", "disease"])
        for i in range(400):
            disease = "heart" if sick[i] else other[i]
            writer.writerow([f"p{i}", age[i], "mf"[i % 2], disease])
    return path


@pytest.fixture(scope="module")
def found(small: Path) -> Frontier:
    grid = "k=5,20,100;l=1.5,2;t=0.02,0.1;semantic=1,2"
    methods = [name for name, how in frontier_methods().items() if how.recodes]
    return find_frontier(small, grid=grid, methods=methods, **SMALL)


# ------------------------------------------------------------------ the paper's claims


def test_adult_points_are_the_known_ones(adult: Subject) -> None:
    curves = ORACLE["curves"]["R1 edunum"]
    options = {"k": "k", "l": "l", "t": "t", "d": "semantic"}
    for name in ("k:50", "k:5000", "l:4", "l:5.5", "t:0.1", "t:0.4", "d:1.0", "d:2.0"):
        kind, value = name.split(":")
        number = int(value) if kind == "k" else float(value)
        general, bucket = measure(adult, Candidate("mondrian", {options[kind]: number}))
        classes, p_loss, general_loss, bucket_loss = curves[name]
        assert general.classes == bucket.classes == classes
        assert general.p_loss == pytest.approx(p_loss, abs=1e-6)
        assert general.u_loss == pytest.approx(general_loss, abs=1e-6)
        assert bucket.u_loss == pytest.approx(bucket_loss, abs=1e-6)


def test_bucketization_is_below_generalization_in_all_forty_comparisons(adult: Subject) -> None:
    """Both readings of semantic privacy: 5 curves of 8 values."""
    asked = candidates(["mondrian"], read_grid("paper"))
    assert len(asked) == 40
    points = [measure(adult, candidate) for candidate in asked]
    assert all(bucket.u_loss < general.u_loss for general, bucket in points)
    lowest_of_closeness(points)


def lowest_of_closeness(points: Any) -> None:
    """No other requirement's point is below the line through those of t-closeness."""
    buckets = [bucket for _, bucket in points]
    line = sorted((p.p_loss, p.u_loss) for p in buckets if "t" in p.parameters)
    places, losses = zip(*line, strict=True)
    others = [p for p in buckets if "t" not in p.parameters and places[0] <= p.p_loss <= places[-1]]
    assert len(others) >= 12
    for point in others:
        assert point.u_loss > np.interp(point.p_loss, places, losses)


def test_trivial_and_revealed_are_the_known_ones(adult: Subject) -> None:
    (point,) = measure(adult, Candidate("trivial"))
    assert point.p_loss == 0
    assert point.u_loss == pytest.approx(ORACLE["populations"]["U_trivial"], abs=1e-6)
    known = ORACLE["js_revealed_natural_log"]["values"]
    assert adult.revealed == pytest.approx((min(known.values()), max(known.values())), abs=1e-9)
    assert adult.raw_p_loss == pytest.approx(max(known.values()), abs=1e-9)


# ------------------------------------------------------------------ what is found


def test_the_efficient_set_by_its_definition() -> None:
    generator = np.random.default_rng(0)
    for _ in range(50):
        losses = [tuple(pair) for pair in generator.integers(0, 6, (15, 2)).astype(float)]
        for point, best in zip(losses, efficient(losses), strict=True):
            beaten = any(
                a <= point[0] and b <= point[1] and (a < point[0] or b < point[1])
                for a, b in losses
            )
            assert best == (not beaten)


def test_no_bucketized_point_is_below_the_certified_frontier(found: Frontier) -> None:
    assert {p.method for p in found.points} == {
        m for m, how in frontier_methods().items() if how.recodes
    }
    for point in found.points:
        above = found.above(point)
        if point.recode == "bucketize":
            assert above is not None and above >= -1e-12


def test_what_is_recommended_is_efficient_and_within_the_limit(small: Path) -> None:
    grid = "k=5,50;t=0.01,0.05,0.2"
    free = find_frontier(small, grid=grid, **SMALL)
    best = free.recommended
    assert best is not None and free.efficient[free.points.index(best)]
    assert all(
        free.remoteness(best) <= free.remoteness(p)
        for p, good in zip(free.points, free.efficient, strict=True)
        if good
    )
    limited = find_frontier(small, grid=grid, most_p_loss=best.p_loss / 2, **SMALL)
    assert limited.recommended is not None
    assert limited.recommended.p_loss <= best.p_loss / 2
    assert "Publish" in limited.in_words()
    nothing = find_frontier(small, grid="k=5", methods=["mondrian"], most_p_loss=0.0, **SMALL)
    assert nothing.recommended is None and "Nothing" in nothing.in_words()


def test_what_a_steward_asks_for_is_in_every_release(small: Path) -> None:
    found = find_frontier(small, grid="k=5,50;t=0.2", also={"k": 20}, **SMALL)
    assert {p.parameters["k"] for p in found.points} == {20, 50}
    assert all("k = " in p.requirement for p in found.points)
    assert all(p.classes is not None and p.rows >= 20 * p.classes for p in found.points)


def test_what_cannot_be_is_told_and_left_out(small: Path) -> None:
    found = find_frontier(small, grid="k=10,401", methods=["mondrian"], **SMALL)
    assert {p.parameters["k"] for p in found.points} == {10}
    assert [r.parameters for r in found.refused] == [{"k": 401}]
    assert "401" in found.refused[0].why
    found = find_frontier(small, grid="l=2,7", methods=["mondrian"], **SMALL)
    assert "7" in found.refused[0].why  # there are three diseases
    with pytest.raises(PromiseError, match="nothing that the grid asks for"):
        find_frontier(small, grid="l=7;k=401", methods=["mondrian"], **SMALL)


def test_a_choice_by_sensitive_values_is_said_where_it_is_recommended(small: Path) -> None:
    for method, said in (("freeshape", True), ("information", True), ("mondrian", False)):
        best = find_frontier(small, grid="t=0.02", methods=[method], **SMALL)
        assert best.recommended is not None and best.recommended.method == method
        assert ("looking at the sensitive values" in best.in_words()) == said


def test_every_command_publishes_what_was_measured(
    found: Frontier, small: Path, tmp_path: Path
) -> None:
    """Each method once: the release has as many classes as the point says."""
    seen = set()
    for point in found.points:
        if (point.method, point.recode) in seen or point.method == "anatomy":
            continue
        seen.add((point.method, point.recode))
        words = shlex.split(point.command)
        words[words.index("-o") + 1] = str(tmp_path / f"{point.method}-{point.recode}")
        words[2] = str(small)
        done = CliRunner().invoke(app, [*words[1:], "--json"])
        assert done.exit_code == 0, (point.command, done.output, done.exception)
        assert json.loads(done.stdout)["classes"] == point.classes, point.command


# ------------------------------------------------------------------ resumption


def test_a_run_that_was_stopped_goes_on(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    original = running.measured_or_refused

    def counted(subject: Subject, candidate: Candidate) -> Any:
        calls.append(running.key_of(candidate))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(subject, candidate)

    monkeypatch.setattr(running, "measured_or_refused", counted)
    options: dict[str, Any] = {"grid": "k=5,10,20,40", "methods": ["mondrian"], "jobs": 1, **SMALL}
    with pytest.raises(KeyboardInterrupt):
        find_frontier(small, folder=tmp_path, **options)
    with (tmp_path / "points.jsonl").open("ab") as file:
        file.write(b'{"key": "cut off')
    done = find_frontier(small, folder=tmp_path, **options)
    assert len(calls) == 5  # two, the one that was stopped, and the two that were left
    assert [(p.p_loss, p.u_loss) for p in done.points] == [
        (p.p_loss, p.u_loss) for p in find_frontier(small, **options).points
    ]
    before = len(calls)
    find_frontier(small, folder=tmp_path, **options)
    assert len(calls) == before


def test_points_of_another_table_are_refused(small: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"grid": "k=5", "methods": ["mondrian"], **SMALL}
    find_frontier(small, folder=tmp_path / "f", **options)
    other = tmp_path / "other.csv"
    other.write_text(small.read_text().replace("p0,", "p0,", 1).rsplit("\n", 2)[0] + "\n")
    with pytest.raises(UsageError, match="another table"):
        find_frontier(other, folder=tmp_path / "f", **options)
    with pytest.raises(UsageError, match="another table"):
        find_frontier(small, folder=tmp_path / "f", **{**options, "min_support": 0.2})
    again = find_frontier(other, folder=tmp_path / "f", overwrite=True, **options)
    assert again.rows == 399


def test_two_runs_cannot_write_to_one_folder(tmp_path: Path) -> None:
    with Journal(tmp_path / "points.jsonl", "a"), pytest.raises(UsageError, match="another run"):
        Journal(tmp_path / "points.jsonl", "a").__enter__()


# ------------------------------------------------------------------ what comes out


def test_one_name_is_a_name_and_not_its_letters(small: Path) -> None:
    asked: dict[str, Any] = {"sensitive": "disease", "min_support": 0.1}
    one = find_frontier(small, qi="age", methods="mondrian", grid={"k": [20]}, **asked)
    listed = find_frontier(small, qi=["age"], methods=["mondrian"], grid="k=20", **asked)
    assert [point.u_loss for point in one.points] == [point.u_loss for point in listed.points]
    assert one.qi == ("age",)


def test_texts_that_mean_null_are_told_to_the_command(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "people.csv"
    table.write_text(small.read_text().replace(",flu", ",no answer"))
    words = [str(table), "--sensitive", "disease", "--qi", "age,sex", "--grid", "k=20"]
    words += ["--null-text", "no answer", "-o", str(tmp_path / "f")]
    refused = run(*words)
    assert isinstance(refused.exception, VoileError) and "NULL" in refused.exception.message
    done = run(*words, "--nulls", "as-value", "--methods", "mondrian")
    assert done.exit_code == 0, done.output
    # In one line, however narrow the screen, with which the same release is published.
    line = next(line for line in done.stdout.splitlines() if line.startswith("voile publish"))
    publishing = shlex.split(line)[1:]
    assert publishing[publishing.index("--null-text") + 1] == "no answer"
    monkeypatch.chdir(tmp_path)
    published = CliRunner().invoke(app, publishing)
    assert published.exit_code == 0, published.output
    assert voile.open("R.voile").schema["disease"].null


def test_the_frame_is_tidy(small: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = voile.frontier(small, sensitive="disease", qi=["age", "sex"], grid="k=5,50;t=0.1",
                           min_support=0.1)  # fmt: skip
    assert isinstance(frame, pandas.DataFrame)
    for column in ("method", "p_loss", "u_loss", "efficient", "certified", "command", "recode"):
        assert column in frame.columns
    assert frame["recommended"].sum() == 1
    assert frame.attrs["certified"][0]["lower"] <= frame.attrs["certified"][0]["u_loss"]


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["frontier", *words])


def test_the_command_writes_its_folder(small: Path, tmp_path: Path) -> None:
    asked = [str(small), "--sensitive", "disease", "--qi", "age,sex", "-o", str(tmp_path / "f"),
             "--grid", "k=5,50;t=0.05,0.2", "--min-support", "0.1"]  # fmt: skip
    done = run(*asked, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert set(told) == {
        "table", "rows", "qi", "sensitive", "min_support", "populations", "points", "certified",
        "trivial", "raw", "revealed", "refused", "recommended", "notes",
    }  # fmt: skip
    assert set(told["points"][0]) == {
        "method", "parameters", "requirement", "p_loss", "p_loss_permitted", "u_loss", "classes",
        "rows", "seconds", "command", "recode", "efficient", "certified", "above", "ratio",
    }  # fmt: skip
    assert set(told["certified"][0]) == {"p_loss", "u_loss", "lower", "steps", "seconds"}
    assert told["recommended"]["words"].startswith("Publish")
    files = {path.name for path in (tmp_path / "f").iterdir()}
    assert files == {"points.jsonl", "points.csv", "frontier.png", "frontier.html"}
    rows = list(csv.DictReader(io.StringIO((tmp_path / "f" / "points.csv").read_text())))
    assert len(rows) == len(told["points"])
    assert (tmp_path / "f" / "frontier.png").read_bytes().startswith(b"\x89PNG")
    shown = run(*asked)
    assert shown.exit_code == 0 and "Publish" in shown.stdout


def test_the_page_loads_nothing_and_tells_every_command(small: Path, tmp_path: Path) -> None:
    done = run(str(small), "--sensitive", "disease", "--qi", "age,sex", "-o", str(tmp_path / "f"),
               "--grid", "k=5,50;t=0.1", "--methods", "mondrian,trivial",
               "--min-support", "0.1")  # fmt: skip
    assert done.exit_code == 0, done.output
    whole = (tmp_path / "f" / "frontier.html").read_text()
    assert "<script" not in whole
    assert not re.search(r"<(link|img|iframe)\b[^>]*\b(src|href)=", whole)
    assert not re.search(r"@import|url\(\s*[\"']?https?:", whole)
    for words in ("--k 50", "--t 0.1", "--recode bucketize", "no bucketization"):
        assert words in whole


WRONG = [
    (["--sensitive", "nothing", "--qi", "age"], "no column 'nothing'"),
    (["--sensitive", "disease", "--qi", "agee"], "no column 'agee'"),
    (["--sensitive", "disease", "--qi", "age,disease"], "disease"),
    (["--sensitive", "disease", "--qi", "age", "--methods", "mondrain"], "no method 'mondrain'"),
    (["--sensitive", "disease", "--qi", "age", "--grid", "z=3"], "'z'"),
    (["--sensitive", "disease", "--qi", "age", "--grid", "k=ten"], "'ten'"),
    (["--sensitive", "disease", "--qi", "age", "--grid", "k=2.5"], "k = 2.5"),
    (["--sensitive", "disease", "--qi", "age", "--grid", "slow"], "--grid slow"),
    (["--sensitive", "disease", "--qi", "age", "--grid", "k=0"], "k = 0"),
    (["--sensitive", "disease", "--qi", "age", "--grid", "k=inf"], "k = inf"),
    (["--sensitive", "disease", "--qi", "age", "--grid", "t=0.1,-1"], "t = -1"),
    (["--sensitive", "disease", "--qi", "age", "--grid", "t=nan"], "t = nan"),
    (["--sensitive", "disease", "--qi", "age", "--grid", "l=0.5"], "l = 0.5"),
    (["--sensitive", "disease", "--qi", "age", "--grid", "retention=2"], "retention = 2"),
    (["--sensitive", "disease", "--qi", "age", "--k", "0"], "k = 0"),
    (["--sensitive", "disease", "--qi", "age", "--t", "-1"], "t = -1"),
    (["--sensitive", "disease", "--qi", "age", "--l", "nan"], "l = nan"),
    (["--sensitive", "disease", "--qi", "age", "--most-p-loss", "nan"], "nan"),
    (["--sensitive", "disease", "--qi", "age", "--min-support", "0"], "--min-support 0 must lie"),
    (["--sensitive", "disease", "--qi", "age", "--min-support", "7"], "--min-support 7 must lie"),
    (["--sensitive", "disease", "--qi", "age", "--jobs", "0"], "jobs 0"),
    (["--sensitive", "disease", "--qi", "age", "--most-p-loss", "-1"], "-1"),
    (["--sensitive", "disease", "--qi", "age", "--hierarchy", "age"], "COLUMN=FILE"),
    (["--sensitive", "disease", "--qi", "age", "--methods", "anatomy", "--grid", "l=2.5"], "grid"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "told"), WRONG)
def test_wrong_wishes_are_refused(words: list[str], told: str, small: Path, tmp_path: Path) -> None:
    done = run(str(small), "-o", str(tmp_path / "f"), *words)
    assert isinstance(done.exception, VoileError), done.output
    assert told in done.exception.message
    assert done.exception.hint
    assert isinstance(done.exception, UsageError | SchemaError | TableError)
    assert not (tmp_path / "f").exists()


def test_a_folder_with_other_files_is_not_written_over(small: Path, tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text("mine")
    done = run(str(small), "--sensitive", "disease", "--qi", "age", "-o", str(tmp_path))
    assert isinstance(done.exception, UsageError) and "exists already" in done.exception.message
    assert (tmp_path / "points.csv").read_text() == "mine"
    file = tmp_path / "points.csv"
    done = run(str(small), "--sensitive", "disease", "--qi", "age", "-o", str(file))
    assert isinstance(done.exception, UsageError) and "is a file" in done.exception.message


def test_identifiers_are_left_out_as_they_are_when_publishing() -> None:
    rng = np.random.default_rng(2)
    made = {"who": np.arange(400), "age": rng.integers(20, 60, 400), "ill": rng.integers(0, 3, 400)}
    roles: Any = {"sensitive": "ill", "qi": ["age"]}
    named = read_subject(pd.DataFrame(made), identifiers=["who"], **roles)
    assert named.options.identifiers == ("who",)
    assert named.digest == read_subject(pd.DataFrame(made), **roles).digest
    with pytest.raises(VoileError, match="named twice"):
        read_subject(pd.DataFrame(made), identifiers=["age"], **roles)
    with pytest.raises(VoileError, match="nobody"):
        read_subject(pd.DataFrame(made), identifiers=["nobody"], **roles)
