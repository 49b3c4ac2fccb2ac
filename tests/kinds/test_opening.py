"""Opening releases that someone has tampered with: what is refused, and what is believed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import voile
from tests.support.forging import sealed
from tests.support.paths import TESTS
from tests.support.running import voile as run
from voile import digests
from voile.errors import ReleaseError
from voile.kinds.manifest import MANIFEST
from voile.kinds.registry import kind_of, kinds
from voile.release import Release

FOLDER = TESTS / "fixtures" / "version1"
COUNT = "select count(*) from people"


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return pd.DataFrame({"age": [30 + i % 4 for i in range(400)], "zip": ["a", "b"] * 200})


@pytest.fixture(scope="module")
def view(people: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Release:
    target = tmp_path_factory.mktemp("view") / "people.voile"
    return voile.publish(people, to=target, prior=0.1, posterior=0.5, name="people")


@pytest.fixture
def copied(view: Release, tmp_path: Path) -> Path:
    to = tmp_path / "copy.voile"
    shutil.copytree(view.path, to)
    return to


# ---------------------------------------------------------------------- names of files


def renamed(folder: Path, name: str) -> Path:
    """The release with its rows in a file of that name, sealed again."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / "data/part-00000.parquet").rename(folder / name)
    data = json.loads((folder / MANIFEST).read_bytes())
    for entry in data["files"]:
        entry["path"] = name if entry["path"].startswith("data/") else entry["path"]
    (folder / MANIFEST).write_text(json.dumps(data))
    return sealed(folder, rows=data["rows"])


@pytest.mark.parametrize(
    "name",
    ["data/age=45/p.parquet", "data/zip=*/part.parquet", "data/age=45/part-00000.parquet",
     "data/part-0000*.parquet", "data/part-00000.parquet.parquet", "part-00000.parquet",
     "data/part-٠٠٠٠٠.parquet", "data/part-00000.parquet\n",
      "history/age=45/part-00000.parquet", "classes/part-00000.parquet",
     "DATA/part-00000.parquet", "data/table-0001.parquet", "data/../data/part-00000.parquet"],
)  # fmt: skip
def test_a_file_with_another_name_is_refused(copied: Path, name: str) -> None:
    forged = renamed(copied, name)
    for opened in (voile.open, voile.verify):
        with pytest.raises(ReleaseError, match="names a file"):
            opened(forged)
    assert run("verify", str(forged)).returncode == 1


def test_folders_called_like_columns_are_no_columns(view: Release, tmp_path: Path) -> None:
    """DuckDB would take `age=45` for a column of its own."""
    place = tmp_path / "age=45" / "zip=*" / "people.voile"
    place.parent.mkdir(parents=True)
    shutil.copytree(view.path, place)
    sql = "select count(*) from people where age = 45 or age = 31"
    assert voile.verify(place).query(sql).to_dict() == view.query(sql).to_dict()


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.voile")))
def test_the_names_that_voile_has_ever_written_are_known(name: str) -> None:
    assert voile.open(FOLDER / name).manifest.files


def test_a_kind_of_another_package_states_its_names_or_has_rows_in_data() -> None:
    assert all(kind.file_names for kind in kinds())
    assert kind_of("retention").file_names == (r"data/part-[0-9]{5}\.parquet",)


@pytest.mark.parametrize("what", ["link", "folder linked", "fifo", "folder"])
def test_only_files_of_its_own_are_read(copied: Path, what: str) -> None:
    part = copied / "data" / "part-00000.parquet"
    elsewhere = copied.with_name("elsewhere")
    if what == "folder linked":
        part.parent.rename(elsewhere)
        part.parent.symlink_to(elsewhere)
    else:
        part.rename(elsewhere)
        if what == "link":
            part.symlink_to(elsewhere)
        else:
            (os.mkfifo if what == "fifo" else os.mkdir)(part)
    with pytest.raises(ReleaseError, match="missing"):
        voile.open(copied)


@pytest.mark.parametrize("what", ["link", "fifo", "folder"])
def test_only_a_manifest_of_its_own_is_read(copied: Path, what: str) -> None:
    manifest = copied / MANIFEST
    elsewhere = copied.with_name("elsewhere")
    manifest.rename(elsewhere)
    if what == "link":
        manifest.symlink_to(elsewhere)
    else:
        (os.mkfifo if what == "fifo" else os.mkdir)(manifest)
    with pytest.raises(ReleaseError, match=r"manifest\.json"):
        voile.open(copied)


# ---------------------------------------------------------------------- hashes


def tampered(folder: Path) -> Path:
    """A byte changed in place, and the times as they were."""
    part = next((folder / "data").glob("*.parquet"))
    before = part.stat()
    with part.open("r+b") as file:
        file.seek(20)
        byte = file.read(1)
        file.seek(20)
        file.write(bytes([byte[0] ^ 1]))
    os.utime(part, ns=(before.st_atime_ns, before.st_mtime_ns))
    return part


@pytest.mark.parametrize(
    "command",
    [["query", COUNT], ["explain", COUNT], ["shell", "-c", COUNT], ["describe"], ["guarantees"],
     ["refine"]],
)  # fmt: skip
def test_nothing_is_answered_from_a_file_that_was_changed(copied: Path, command: list[str]) -> None:
    verb, *rest = command
    tampered(copied)
    done = run(verb, str(copied), *rest)
    assert done.returncode == 1
    assert "data/part-00000.parquet was changed" in done.stderr
    assert not done.stdout
    unchecked = run(verb, str(copied), *rest, "--no-check")
    assert "was changed" not in unchecked.stderr


def test_a_file_that_is_changed_after_it_was_opened_shows_at_the_next_opening(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "SETTLED_NS", -(10**18))
    voile.open(copied)
    tampered(copied)
    with pytest.raises(ReleaseError, match="was changed after"):
        voile.open(copied)
    assert voile.open(copied, check=False).name == "people"


def test_verify_hashes_every_byte_whatever_is_remembered(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = tampered(copied)
    stated = next(f for f in voile.open(copied, check=False).manifest.files if "data" in f.path)
    monkeypatch.setattr(digests, "SETTLED_NS", -(10**18))
    digests.remember([digests.entry_of(part.stat(), stated.sha256)])
    voile.open(copied)
    with pytest.raises(ReleaseError, match="was changed"):
        voile.verify(copied)


# ---------------------------------------------------------------------- what does not fit together


def misfit(name: str, tmp_path: Path, change: Any) -> Path:
    """A release of version 1 with its manifest changed, and sealed."""
    folder = tmp_path / name
    shutil.copytree(FOLDER / name, folder)
    data = json.loads((folder / MANIFEST).read_bytes())
    change(data)
    manifest = kind_of(data["method"]).manifest.model_validate(data)
    (folder / MANIFEST).write_text(manifest.sealed().text(), encoding="utf-8")
    return folder


@pytest.mark.parametrize("wrong", [{}, [], "occupation", None, -9, 1.5])
def test_a_requirement_of_no_attribute_is_refused(wrong: Any, tmp_path: Path) -> None:
    """Found by tools/fuzz_releases.py, as are those below."""

    def change(data: dict[str, Any]) -> None:
        data["guarantee"]["requirements"][1]["requirement"]["attribute"] = wrong

    folder = misfit("mondrian.voile", tmp_path, change)
    with pytest.raises(ReleaseError):
        voile.verify(folder)
    assert run("verify", str(folder)).returncode == 1


@pytest.mark.parametrize("kind", [{}, [], None, 5])
def test_a_requirement_of_no_kind_is_refused(kind: Any, tmp_path: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        data["guarantee"]["requirements"][0]["requirement"]["kind"] = kind

    with pytest.raises(ReleaseError):
        voile.open(misfit("mondrian.voile", tmp_path, change))


def test_a_number_that_no_float_holds_is_refused(tmp_path: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        data["attributes"][0] = {"name": "age", "kind": "numeric", "values": [1, 10**400]}

    with pytest.raises(ReleaseError):
        voile.open(misfit("view.voile", tmp_path, change))
