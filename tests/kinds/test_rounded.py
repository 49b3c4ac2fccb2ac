"""A kind that another package brings goes wherever Voile's own kinds go; src/ never names it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import voile
from tests.support import running
from voile.errors import VoileError
from voile.evaluate.frontier.result import find_frontier
from voile.evaluate.losses.measure import losses
from voile.kinds import registry

POINT = EntryPoint("rounded", "tests.kinds.rounded:Rounded", registry.GROUP)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    file = tmp_path / "people.csv"
    frame = pd.DataFrame({"age": rng.integers(20, 24, 400), "ill": rng.choice(["a", "b"], 400)})
    frame.to_csv(file, index=False)
    return file


def installed(monkeypatch: pytest.MonkeyPatch, *points: EntryPoint) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda **_: EntryPoints(points))


def test_from_python(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, POINT)
    publish: Any = voile.publish  # a type checker knows the options of built-in methods only
    release = publish(table, method="rounded", base=10, to=tmp_path / "r.voile")
    assert voile.verify(release.path).manifest.method == "rounded"
    (answer,) = voile.open(release.path).query("select count(*) from people").rows
    assert abs(answer["count"].value - 400) <= 8 * 5
    assert answer["count"].stderr == pytest.approx(10 * np.sqrt(8 / 12))
    assert release.explain("select count(*) from people where age = 21")["base"] == 10
    assert "multiples of 10" in release.describe()
    assert not release.promised() and len(release.not_promised()) == 2
    found = losses(table, release, sensitive="ill", qi=["age"])
    assert found.kind == "rounded" and found.p_loss == found.p_loss_revealed


def test_on_the_frontier(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, POINT)
    found = find_frontier(
        table, sensitive="ill", qi=["age"], methods=["trivial", "rounded"], jobs=1
    )
    rounded = [point for point in found.points if point.method == "rounded"]
    assert [point.parameters for point in rounded] == [{"base": 2.0}, {"base": 10.0}]
    assert rounded[0].u_loss <= rounded[1].u_loss
    assert "voile publish" in rounded[0].command and "--method rounded" in rounded[0].command


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ((EntryPoint("alphabeta", "theirs:Kind", registry.GROUP),), ["'theirs'", "Voile itself"]),
        ((POINT, EntryPoint("rounded", "theirs:Kind", registry.GROUP)), ["'theirs'", "already"]),
        ((EntryPoint("rounded", "no_such:Kind", registry.GROUP),), ["no_such", "cannot be loaded"]),
        ((EntryPoint("other", POINT.value, registry.GROUP),), ["not a kind of release"]),
    ],
)
def test_what_cannot_be_used_is_named(
    points: tuple[EntryPoint, ...], words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, *points)
    with pytest.raises(VoileError) as refused:
        registry.kind_of("other" if points[0].name == "other" else "rounded")
    assert all(word in refused.value.message for word in words)


def test_failures_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, POINT, EntryPoint("broken", "no_such:Kind", registry.GROUP))
    assert [kind.name for kind in registry.foreign_kinds()] == ["rounded"]
    (failure,) = registry.load_failures().items()
    assert failure[0] == "broken" and "No module named 'no_such'" in failure[1].message


def command(folder: Path, home: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`voile`, with an installed package: a dist-info folder on the path."""
    info = folder / "site" / "voile_rounded-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: voile-rounded\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\nrounded = {home}\n")
    path = [str(info.parent), str(Path(__file__).parents[2]), *sys.path]
    return subprocess.run(
        [sys.executable, "-m", "voile.cli", *words], capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)}, cwd=folder, check=False,
    )  # fmt: skip


def test_the_command_line_names_a_package_that_cannot_be_loaded(
    table: Path, tmp_path: Path
) -> None:
    """Its flags are not known then: what matters is why."""
    for method in (["--method", "rounded"], ["--method=rounded"]):
        done = command(tmp_path, "no_such:Kind", "publish", str(table), *method, "--base", "10")
        assert done.returncode == 2
        said = " ".join(done.stderr.split())
        assert "the package 'voile-rounded' cannot be loaded" in said
        assert "No module named 'no_such'" in said
    listed = command(tmp_path, "no_such:Kind", "publish", "--method", "rounded", "--help")
    words = " ".join(listed.stdout.replace("│", " ").split())
    assert listed.returncode == 0 and "rounded (cannot" in words


def test_from_the_command_line(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installed, in a process of its own, where it is published and asked; else in this one."""
    release = str(tmp_path / "r.voile")
    installed(monkeypatch, POINT)

    def run(*words: str) -> str:
        if words[0] in ("publish", "query"):
            done = command(tmp_path, POINT.value, *words)
        else:
            done = running.voile(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def as_json(*words: str) -> Any:
        return json.loads(run(*words, "--json"))

    sql = "select count(*) from people"
    made = as_json("publish", str(table), "-o", release, "--method", "rounded", "--base", "10")
    assert made["parameters"] == {"base": 10}
    assert as_json("verify", release)["ok"]
    assert "multiples of 10" in run("describe", release)
    assert as_json("guarantees", release) == []
    assert as_json("query", release, sql)["rows"]
    assert as_json("explain", release, sql)["base"] == 10
    assert "count" in run("shell", release, "-c", sql)
    told = as_json("loss", str(table), release, "--sensitive", "ill", "--qi", "age")
    assert told["kind"] == "rounded"
    found = as_json("frontier", str(table), "--sensitive", "ill", "--qi", "age", "-o", "frontier",
                    "--methods", "trivial,rounded", "--jobs", "1")  # fmt: skip
    assert {"trivial", "rounded"} == {point["method"] for point in found["points"]}
