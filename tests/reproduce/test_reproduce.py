"""Reproducing: pieces are done once, kept, and judged; and all figures of the papers come out."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import voile
import voile.reproduce
from tests.support import figures, running
from tests.support.paths import ROOT
from tests.support.soak import SOAK, some
from voile.cli import app
from voile.errors import UsageError
from voile.reproduce import FIGURES, Claim, Figure, Number, Part, Run, Sample, find, reproduce
from voile.reproduce.running import KEPT
from voile.reproduce.verdict import Reproduction, sign
from voile.reproduce.writing import article, as_json

RUNNER = CliRunner()


# ---------------------------------------------------------------------- verdicts


def test_a_number_agrees_within_its_reading_and_what_coins_do() -> None:
    exact = Sample.of(2.0)
    assert Number("x", 2.04, exact, 0.05).agrees
    assert not Number("x", 2.06, exact, 0.05).agrees
    # Student's quantile for 0.9995 and 7 degrees of freedom is 5.4079 in every table of it.
    spread = Sample.of([1.0, 3.0] * 4)
    beyond = 5.4079 * spread.sd / 8**0.5
    assert Number("x", 2 + beyond - 0.001, spread).agrees
    assert not Number("x", 2 + beyond + 0.001, spread).agrees
    assert Number("x", 2 + beyond + 0.04, spread, reading=0.05).agrees


def test_what_one_run_may_give_differs_and_does_not_fail() -> None:
    """A print that is one run of the authors' is not what runs give on average."""
    spread = Sample.of([1.0, 3.0] * 4)
    single = 5.4079 * spread.sd * (9 / 8) ** 0.5
    one = Number("x", 2 + single - 0.001, spread)
    assert (one.agrees, one.sound) == (False, True)
    assert "a single run may" in one.reason
    beyond = Number("x", 2 + single + 0.001, spread)
    assert (beyond.agrees, beyond.sound, beyond.reason) == (False, False, "")


def test_a_print_never_agrees_that_our_own_right_value_contradicts() -> None:
    """Few runs that scatter leave room for both: our own right value decides."""
    spread = Sample.of([1.0, 3.0] * 4)
    allowed = 5.4079 * spread.sd / 8**0.5
    printed = 2 - allowed + 0.001
    assert Number("x", printed, spread, right=printed + allowed - 0.001).agrees
    wrong = Number("x", printed, spread, right=2 + allowed - 0.001, why="…")
    assert (wrong.agrees, wrong.sound) == (False, True)


def test_figure_3_tells_the_tight_beta_from_the_loose_one() -> None:
    """With twenty runs that scatter as ours do, 120 agrees at 108 and not at 167 or at 99."""
    steps = np.linspace(-1, 1, 20)
    runs = 5.8 * steps / steps.std(ddof=1)
    for mean, agrees in ((108.3, True), (167.0, False), (99.0, False)):
        assert Number("x", 120, Sample.of(mean + runs), 10).agrees is agrees


def test_averages_are_judged_more_strictly_than_single_runs() -> None:
    """By Student's quantile for 7 degrees of freedom, over the root of 8."""
    spread = Sample.of([1.0, 3.0] * 4)
    beyond = 5.4079 * spread.sd / 8**0.5
    for off, sound in ((beyond - 0.001, True), (beyond + 0.001, False)):
        assert Number("x", None, spread, right=2 + off, average=True).sound is sound
        assert Number("x", None, spread, right=2 + off).sound
    assert not Number("x", None, Sample.of(2.0), 0.05, right=2.06, average=True).sound


def test_runs_of_two_seeds_have_nothing_in_common() -> None:
    several = [set(Run(seed=seed).seeds(900, 5)) for seed in (1, 2, 3)]
    assert len(set.union(*several)) == 2700
    assert Run(seed=1).seeds(3, 2) == range(1, 4)
    for seed in (0, -1):
        with pytest.raises(UsageError, match="too small"):
            Run(seed=seed)


def test_a_right_number_is_rejected_once_in_a_thousand_times() -> None:
    """Of 40,000 samples of 4 runs: within 5 standard deviations, false alarm about 10⁻⁶."""
    draws = np.random.default_rng(1).normal(3.0, 0.7, size=(40_000, 5))
    rejected = sum(not Sample.of(runs[:4]).near(runs[4], 0.0) for runs in draws.tolist())
    assert abs(rejected - 40) < 5 * (40 * 0.999) ** 0.5
    wrong = sum(not Sample.of(runs[:4]).near(runs[4] + 14.0, 0.0) for runs in draws[:4000].tolist())
    assert wrong > 3_000


@pytest.mark.parametrize(
    ("check", "agrees", "sound", "word"),
    [
        (Number("x", 2.0, Sample.of(2.0)), True, True, "agrees"),
        (Number("x", 3.0, Sample.of(2.0)), False, False, "fails"),
        (Number("x", 3.0, Sample.of(2.0), right=2.0, why="…"), False, True, "differs"),
        (Number("x", 3.0, Sample.of(2.0), right=4.0, why="…"), False, False, "fails"),
        (Number("x", 2.0, Sample.of(2.0), right=4.0, why="…"), False, False, "fails"),
        (Number("x", None, Sample.of(2.0)), None, True, "agrees"),
        (Number("x", None, Sample.of(2.0), right=4.0), None, False, "fails"),
        (Claim("x", "so", "so", agrees=True), True, True, "agrees"),
        (Claim("x", "so", "not so", agrees=False), False, False, "fails"),
        (Claim("x", "so", "not", agrees=False, expected=False, why="…"), False, True, "differs"),
        (Claim("x", "so", "so", agrees=True, expected=False, why="…"), True, False, "fails"),
    ],
)
def test_signs(check: Number | Claim, agrees: bool | None, sound: bool, word: str) -> None:
    assert (check.agrees, check.sound) == (agrees, sound)
    assert sign(check.agrees, check.sound) == word


# ---------------------------------------------------------------------- running


def test_files_and_verdict(tmp_path: Path) -> None:
    (found,) = reproduce([figures.figure(tmp_path / "log")], tmp_path / "out", jobs=2)
    assert found.sound
    assert not found.agrees
    assert found.why == "a misprint: forgets <a> factor"
    names = [Path(file).name for file in found.files]
    assert names == [
        "tests-fig1.csv", "tests-fig1-again.csv", "tests-fig1.png", "tests-fig1.svg",
        "tests-fig1.json",
    ]  # fmt: skip
    with (tmp_path / "out/tests-fig1.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["error"]) for row in rows[:3]] == pytest.approx([10.01, 2.01, 1 / 0.9 + 0.01])
    told = json.loads((tmp_path / "out/tests-fig1.json").read_text(encoding="utf-8"))
    assert told["measured"]["error at p = .5"]["mean"] == pytest.approx(2.02)
    assert told["files"] == names
    assert told["voile"] == voile.__version__
    assert_picture(tmp_path / "out/tests-fig1.png")


def assert_picture(path: Path) -> None:
    content = path.read_bytes()
    width, height = struct.unpack(">II", content[16:24])
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert min(width, height) > 200


def test_pieces_are_done_once(tmp_path: Path) -> None:
    """Also those that a quick and a full run, or two figures, share."""
    log, out = tmp_path / "log", tmp_path / "out"
    both = [figures.figure(log), figures.figure(log, name="tests-again")]
    reproduce(both, out, run=Run(quick=True), jobs=1)
    assert len(lines_of(log)) == 6
    reproduce(both, out, jobs=1)
    assert len(lines_of(log)) == len(set(lines_of(log))) == 9
    reproduce(both, out, run=Run(seed=2), jobs=1)
    assert len(set(lines_of(log))) == 18  # another seed has no coin in common with this one


def lines_of(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8").splitlines()


def test_pieces_of_another_program_are_done_anew(tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "out"
    reproduce([figures.figure(log)], out, run=Run(quick=True), jobs=1)
    kept = (out / KEPT).read_text(encoding="utf-8").splitlines(keepends=True)
    (out / KEPT).write_text('{"about": "another"}\n' + "".join(kept[1:]), encoding="utf-8")
    reproduce([figures.figure(log)], out, run=Run(quick=True), jobs=1)
    assert len(lines_of(log)) == 12


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    """Its processes end with it."""
    log, out = tmp_path / "log", tmp_path / "out"
    code = (
        "import signal, sys; from pathlib import Path\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs\n"
        "from tests.reproduce.test_reproduce import interrupted\n"
        "if __name__ == '__main__': interrupted(Path(sys.argv[1]), Path(sys.argv[2]))\n"
    )
    script = tmp_path / "run.py"
    script.write_text(code, encoding="utf-8")
    root = ROOT
    begun = subprocess.Popen(
        [sys.executable, str(script), str(log), str(out)],
        env={**os.environ, "PYTHONPATH": str(root)},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: log.exists() and (out / KEPT).read_text(encoding="utf-8").count("\n") == 2)
    begun.send_signal(signal.SIGINT)
    assert begun.wait(timeout=20) != 0
    wait_for(lambda: not alive(begun.pid))
    reproduce([figures.figure(log)], out, run=Run(quick=True), jobs=1)
    assert lines_of(log).count("0 0.5") == 1


def interrupted(log: Path, out: Path) -> None:
    """A piece that is done at once, and one that is not."""

    def piece(seed: int) -> Figure:
        part = Part(figures.slow, {"seed": seed, "log": str(log)})
        return figures.made_of(part)

    done, endless = piece(0), piece(1)
    reproduce([done, Figure("tests-slow", "", "", endless.parts, endless.conclude)], out, jobs=1)


def alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_a_process_that_is_killed_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="memory ran out"):
        reproduce([figures.made_of(Part(figures.dies))], tmp_path, jobs=1)


def test_an_error_says_whose_it_is(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="divide") as raised:
        reproduce([figures.made_of(Part(figures.fails))], tmp_path, jobs=1)
    assert "figures.fails" in raised.value.__notes__[0]


def test_what_is_not_a_number_is_refused(tmp_path: Path) -> None:
    """In a piece, and in a verdict; no file is then left that others cannot read."""
    with pytest.raises(UsageError, match=r"figures\.unknown.* not a number"):
        reproduce([figures.made_of(Part(figures.unknown))], tmp_path, jobs=1)
    for value in (math.nan, math.inf):
        with pytest.raises(UsageError, match="infinite or not a number"):
            as_json({"mean": value}, "x")
    assert not list(tmp_path.glob("*.json"))


def test_the_page_tells_figures_of_another_version() -> None:
    told = {"name": "x", "agrees": True, "sound": True, "measured": {}, "files": [], "what": "",
            "quick": False, "title": ""}  # fmt: skip
    assert "made by" not in article(told | {"voile": voile.__version__})
    assert "made by Voile 0.0.1" in article(told | {"voile": "0.0.1"})
    assert "made by Voile of an older version" in article(told)


# ---------------------------------------------------------------------- the command


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Figure]]:
    known = [figures.figure(tmp_path / "log", printed=30.0)]
    monkeypatch.setattr(voile.reproduce, "FIGURES", known)
    monkeypatch.setattr(voile.reproduce, "find", lambda _: known[0])
    yield known


@pytest.mark.usefixtures("known")
def test_exit_1_where_a_figure_does_not_agree_and_should(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    done = RUNNER.invoke(app, ["reproduce", "tests-fig1", "-o", out, "--json"])
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert set(told) == {"name", "printed", "measured", "agrees", "why", "files"}
    assert told["agrees"] is False
    assert "error at p = .5: not explained" in told["why"]


@pytest.mark.usefixtures("known")
def test_what_people_see(tmp_path: Path) -> None:
    done = RUNNER.invoke(app, ["reproduce", "--all", "-o", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert "fails" in done.stdout
    assert "forgets <a> factor" in done.stdout


@pytest.mark.usefixtures("known")
def test_quick_runs_are_not_judged(tmp_path: Path) -> None:
    """Neither where a number is far off, nor where it is met: few runs show too little."""
    out = tmp_path / "out"
    done = RUNNER.invoke(app, ["reproduce", "tests-fig1", "-o", str(out), "--quick", "--json"])
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert (told["agrees"], told["why"]) == (None, "")
    assert {check["agrees"] for check in told["measured"].values()} == {None}
    shown = RUNNER.invoke(app, ["reproduce", "tests-fig1", "-o", str(out), "--quick"])
    assert "not judged" in shown.stdout
    assert "agrees" not in shown.stdout
    kept = json.loads((out / "tests-fig1.json").read_text(encoding="utf-8"))
    assert kept["sound"] is None
    assert "a quick run is not judged" in article(kept)


def test_the_list_is_quick_to_read() -> None:
    listed = json.loads(RUNNER.invoke(app, ["reproduce", "--list", "--json"]).stdout)
    assert [set(one) for one in listed] == [{"name", "paper", "what"}] * len(listed)
    names = [one["name"] for one in listed]
    assert len(set(names)) == len(names)
    assert all(len(one["what"]) <= 72 for one in listed)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "say which"),
        (["--all", "vldb07-fig3"], "not both"),
        (["vldb07-fig33"], "did you mean vldb07-fig3?"),
        (["vldb07-fig3", "--jobs", "0"], "too few"),
    ],
)
def test_wrong_usage(arguments: list[str], complaint: str, tmp_path: Path) -> None:
    done = running.voile("reproduce", *arguments, "-o", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_file_is_not_taken_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="is a file"):
        reproduce([figures.figure(tmp_path / "log")], tmp_path / "out")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "mine"


# ---------------------------------------------------------------------- the papers


def test_all_figures_of_the_papers_come_out(tmp_path: Path) -> None:
    """As printed, or as they should be where the print is wrong, in a quick run.

    A soak makes all of them; otherwise a seeded sample is made.
    """
    chosen = list(FIGURES) if SOAK else some(FIGURES, 3)
    found = reproduce(chosen, tmp_path / "out", run=Run(quick=True))
    assert [one.name for one in found] == [figure.name for figure in chosen]
    for made in found:
        assert_reproduced(made)
    page = (tmp_path / "out/index.html").read_text(encoding="utf-8")
    assert all(f'id="{figure.name}"' in page for figure in chosen)
    gallery = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    for figure, made in zip(chosen, found, strict=True):
        section = gallery.partition(f"\n### {figure.label}\n")[2].partition("\n### ")[0]
        assert f"images/gallery/{figure.name}.svg" in section, figure.name
        for what in made.measured:  # the gallery is of this program's figures
            assert f"| {what} |" in section.replace("\\|", "|"), (figure.name, what)


def assert_reproduced(made: Reproduction) -> None:
    """A quick run is not judged, but what it measures is checked here as a full run is."""
    assert made.checks
    assert not [check.what for check in made.checks if not check.sound], made.name
    assert not [check.what for check in made.checks if check.agrees is False and not check.reason]
    assert {Path(file).suffix for file in made.files} == {".csv", ".png", ".svg", ".json"}
    for file in map(Path, made.files):
        if file.suffix == ".csv":
            with file.open(encoding="utf-8") as rows:
                assert len(list(csv.reader(rows))) > 1, file
        elif file.suffix == ".png":
            assert_picture(file)


def test_find_knows_all() -> None:
    assert all(find(figure.name) is figure for figure in FIGURES)
