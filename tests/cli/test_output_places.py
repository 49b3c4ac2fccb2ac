"""Where private output may not go: into a release, or in the place of the table itself."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import voile
from tests.support.running import voile as command
from voile.cli import app
from voile.errors import UsageError
from voile.kinds.staging import check_outside


def run(*arguments: object) -> Any:
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if found.exception and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("places") / "people.csv"
    rows = [f"{20 + i % 8},{'mf'[i % 2]},{'abc'[i % 3]}" for i in range(60)]
    path.write_text("row no,sex,ill\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def release(table: Path) -> Path:
    target = table.with_name("R.voile")
    voile.publish(table, method="mondrian", qi=["row no", "sex"], sensitive=["ill"], k=5, to=target)
    return target


WRITING: dict[str, list[str]] = {
    "risk --page": ["risk", "TABLE", "--qi", "sex", "--page", "PLACE/p.html"],
    "risk --plot": ["risk", "TABLE", "--qi", "sex", "--plot", "PLACE/p.png"],
    "hierarchy": ["hierarchy", "TABLE", "sex", "-o", "PLACE/h.csv"],
    "schema": ["schema", "TABLE", "-o", "PLACE/s.yaml"],
    "frontier": ["frontier", "TABLE", "--sensitive", "ill", "--qi", "sex", "-o", "PLACE/f"],
}


@pytest.mark.parametrize("words", WRITING.values(), ids=list(WRITING))
@pytest.mark.parametrize("place", ["", "data"])
def test_nothing_private_is_written_into_a_release(
    words: list[str], place: str, table: Path, release: Path
) -> None:
    before = sorted(release.rglob("*"))
    asked = [w.replace("PLACE", str(release / place)).replace("TABLE", str(table)) for w in words]
    with pytest.raises(UsageError, match="is inside the release"):
        run(*asked)
    assert sorted(release.rglob("*")) == before
    voile.verify(release)


def test_a_release_is_no_folder_for_a_frontier(table: Path, release: Path) -> None:
    words = [str(table), "--sensitive", "ill", "--qi", "sex", "-o", str(release), "--overwrite"]
    with pytest.raises(UsageError, match="is inside the release"):
        run("frontier", *words)
    voile.verify(release)


def test_beside_a_release_is_a_place(release: Path, tmp_path: Path) -> None:
    check_outside(release.with_name("p.html"))
    check_outside(release)
    link = tmp_path / "elsewhere"
    link.symlink_to(release)
    with pytest.raises(UsageError, match="is inside the release"):
        check_outside(link / "p.html")


@pytest.mark.parametrize("command", ["hierarchy", "schema"])
@pytest.mark.parametrize("named", ["people.csv", "link.csv", "peo*.csv"])
def test_the_table_itself_is_never_written_over(
    command: str, named: str, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_bytes(table.read_bytes())
    if named == "link.csv":
        Path(named).symlink_to("people.csv")
    column = ["sex"] if command == "hierarchy" else []
    with pytest.raises(UsageError, match="is the table itself"):
        run(command, named, *column, "-o", "people.csv", "--overwrite")
    assert Path("people.csv").read_bytes() == table.read_bytes()


def test_a_hierarchy_is_named_as_a_shell_takes_it(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = run("hierarchy", table, "row no", "-o", "f.csv").stderr
    option = told.strip().splitlines()[-1].partition("use it with ")[2]
    assert shlex.split(option) == ["--hierarchy", "row no=f.csv"]


# ---------------------------------------------------------------------- paths that are not UTF-8


BAD = os.fsdecode(b"b\xff")
"""A name that a file may have, and that Arrow, DuckDB and SQLite cannot hold."""


@pytest.mark.parametrize(
    "words",
    [
        ["publish", "people.csv", "--prior", "0.01", "-o", f"{BAD}.voile"],
        ["publish", "people.csv", "--prior", "0.01", "-o", f"{BAD}/r.voile"],
        ["publish", f"{BAD}.csv", "--prior", "0.01", "-o", "r.voile"],
        ["perturb", "people.csv", "--retention", "0.5", "-o", f"{BAD}.voile"],
        ["generalize", "people.csv", "--qi", "sex,ill", "--k", "5", "-o", f"{BAD}.csv"],
        ["serve", "init", BAD, "--table", "people.csv", "--delta", "1", "--queries", "10"],
        ["verify", f"{BAD}.voile"],
        ["query", f"{BAD}.voile", "select count(*) from people"],
    ],
)
def test_a_path_that_is_not_utf8_is_refused_in_words(
    words: list[str], table: Path, release: Path, tmp_path: Path
) -> None:
    shutil.copy(table, tmp_path / "people.csv")
    if words[0] == "publish":
        (tmp_path / BAD).mkdir()
    if words[0] in ("verify", "query"):
        shutil.copytree(release, tmp_path / f"{BAD}.voile")
    if words[1] == f"{BAD}.csv":
        shutil.copy(table, tmp_path / f"{BAD}.csv")
    before = sorted(os.fsencode(path) for path in tmp_path.rglob("*"))
    done = command(*words, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("error: ")
    assert "UTF-8" in done.stderr
    assert sorted(os.fsencode(path) for path in tmp_path.rglob("*")) == before


def test_what_python_writes_may_have_any_name(table: Path, tmp_path: Path) -> None:
    assert command("schema", str(table), "-o", f"{BAD}.yaml", cwd=tmp_path).returncode == 0
    assert (tmp_path / f"{BAD}.yaml").is_file()


def test_in_a_folder_that_is_not_utf8_nothing_is_written(table: Path, tmp_path: Path) -> None:
    (tmp_path / BAD).mkdir()
    with contextlib.chdir(tmp_path / BAD), pytest.raises(UsageError, match="byte 0xff"):
        voile.publish(table, prior=0.01, to="r.voile")
    assert not list((tmp_path / BAD).iterdir())


# ---------------------------------------------------------------------- what an error says


def test_an_error_says_what_became_of_a_release_where_there_is_one(
    table: Path, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "some file")

    monkeypatch.setattr("voile.kinds.verification.examine", full)
    done = command("verify", str(release))
    assert (done.returncode, done.stderr) == (1, "error: some file: No space left on device\n")
    publish = ["publish", str(table), "--prior", "0.01", "-o", str(tmp_path / "r.voile")]
    with monkeypatch.context() as changed:
        changed.setattr("voile.kinds.publishing.put", full)
        done = command(*publish)
    assert "hint: nothing was released" in done.stderr
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("voile.cli.publishing.published_view", full)
    done = command(*publish)
    assert "hint: the release is in its place" in done.stderr
    voile.verify(tmp_path / "r.voile")
