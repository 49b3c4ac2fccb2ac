"""One release takes the place of another: in one step, or so that a killed run is cleaned up."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import voile
from tests.support.kills import people
from tests.support.paths import ROOT
from tests.support.soak import SOAK, rounds
from voile.errors import ReleaseError, UsageError
from voile.kinds import release, staging
from voile.system import here as system
from voile.system.here import exchanged


def publish(target: Path, number: int) -> str:
    made = voile.publish(people(number), prior=0.01, to=target, overwrite=True)
    return made.manifest.digest


def digest(target: Path) -> str:
    voile.verify(target)
    return voile.open(target).manifest.digest


# ---------------------------------------------------------------------- exchanging names


def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders that are not empty, which no rename puts in each other's place."""
    made = tmp_path / "ä one", tmp_path / "other"
    for folder in made:
        folder.mkdir()
        (folder / "name").write_text(folder.name)
    return made


@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="other systems rename twice")
def test_two_folders_change_places(tmp_path: Path) -> None:
    one, other = folders(tmp_path)
    numbers = one.stat().st_ino, other.stat().st_ino
    if not exchanged(one, other):
        pytest.skip("this file system cannot exchange names")
    assert (other.stat().st_ino, one.stat().st_ino) == numbers
    assert [(folder / "name").read_text() for folder in (one, other)] == ["other", "ä one"]


def test_what_is_missing_is_an_error_and_nothing_is_done(tmp_path: Path) -> None:
    one, other = folders(tmp_path)
    with pytest.raises(OSError, match="none") as raised:
        assert exchanged(one, tmp_path / "none") or pytest.skip("this system cannot exchange")
    assert raised.value.errno == errno.ENOENT
    assert [(folder / "name").read_text() for folder in (one, other)] == ["ä one", "other"]


def test_systems_that_cannot_exchange_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = folders(tmp_path)
    monkeypatch.setattr(sys, "platform", "plan9")
    assert not exchanged(one, other)
    assert (one / "name").read_text() == one.name


# ---------------------------------------------------------------------- replacing a release


@pytest.mark.parametrize("can", [True, False])
def test_a_release_takes_the_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can: bool
) -> None:
    """With an exchange of names, and with two renames."""
    if not can:
        monkeypatch.setattr(system, "exchanged", lambda *_: False)
    target = tmp_path / "r.voile"
    first = publish(target, 1)
    second = publish(target, 2)
    assert first != second == digest(target)
    assert [path.name for path in tmp_path.iterdir()] == ["r.voile"]
    assert target.stat().st_mode & 0o777 == 0o755


def test_there_is_no_moment_without_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever a name changes while a release is replaced, before and after, there is one."""
    target = tmp_path / "r.voile"
    first = publish(target, 1)
    seen: list[str] = []
    true = system.exchanged

    def watched(one: Path, other: Path) -> bool:
        seen.append(digest(target))
        done = true(one, other)
        if not done:
            pytest.skip("this file system cannot exchange names")
        seen.append(digest(target))
        with pytest.raises(ReleaseError, match="did not finish"):  # the old one, to be removed
            voile.open(one)
        return done

    monkeypatch.setattr(system, "exchanged", watched)
    monkeypatch.setattr(Path, "rename", lambda *_: pytest.fail("a second step"))
    second = publish(target, 2)
    assert seen == [first, second]


def test_a_release_that_is_replaced_while_it_is_opened_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never the manifest of one with the files of the other."""
    target, other = tmp_path / "r.voile", tmp_path / "s.voile"
    publish(target, 1)
    new = publish(other, 2)
    true, calls = release.read_manifest, []

    def replaced(raw: bytes) -> Any:
        calls.append(raw)
        if len(calls) == 1 and not system.exchanged(target, other):
            pytest.skip("this file system cannot exchange names")
        return true(raw)

    monkeypatch.setattr(release, "read_manifest", replaced)
    assert voile.open(target).manifest.digest == new
    assert len(calls) == 2


@pytest.mark.parametrize("overwrite", [True, False])
def test_what_a_killed_run_moved_aside_is_put_back(tmp_path: Path, overwrite: bool) -> None:
    """Killed between two renames, where the system cannot exchange: the name was missing."""
    target = tmp_path / "r.voile"
    first = publish(target, 1)
    target.rename(tmp_path / ".r.voile.replaced-abc12345")
    (tmp_path / ".r.voile.partial-abc12345").mkdir(mode=0o700)
    with pytest.raises(UsageError, match="no release") as missing:
        voile.open(target)
    assert "'.r.voile.replaced-abc12345'" in str(missing.value.hint)
    if overwrite:
        assert publish(target, 2) != first
    else:
        with pytest.raises(UsageError, match="exists already"):
            voile.publish(people(2), prior=0.01, to=target)
        assert digest(target) == first
    assert not list(tmp_path.glob(".*.replaced-*"))


def test_only_a_sound_release_is_put_back_and_only_where_it_belongs(tmp_path: Path) -> None:
    target = tmp_path / "r.voile"
    publish(target, 1)
    for name in (".r.voile.replaced-1", ".q.voile.replaced-2", ".r.voile2.replaced-3"):
        (tmp_path / name).mkdir()
    target.rename(tmp_path / ".[r].voile.replaced-4")
    staging.put_back(target)
    assert not target.exists()
    staging.put_back(tmp_path / "[r].voile")
    assert (tmp_path / "[r].voile").exists()
    with pytest.raises(UsageError, match="cannot be called"):
        voile.open(tmp_path / "[r].voile").save(tmp_path / "x.replaced-y")


# ---------------------------------------------------------------------- kill -9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
@pytest.mark.parametrize(
    ("can", "kills", "seed"),
    [(True, rounds(10, 800), 1), *([(False, 200, 2)] if SOAK else [])],
)
def test_the_name_is_always_the_old_or_the_new_release(
    tmp_path: Path, can: bool, kills: int, seed: int
) -> None:
    """publish, generalize, perturb and a series, all with --overwrite, killed at random moments."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.kills", tmp_path, str(kills), str(seed),
         str(can)],
        cwd=ROOT, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ended = json.loads(done.stdout)
    assert sum(sum(counts.values()) for counts in ended.values()) == kills
    assert sum(counts["old"] for counts in ended.values()) > 0
