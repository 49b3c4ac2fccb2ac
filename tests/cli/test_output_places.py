"""Where private output may not go: into a release, or in the place of the table itself."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import voile
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
