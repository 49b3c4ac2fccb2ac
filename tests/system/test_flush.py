"""What is durable has reached the disk, also where fsync alone does not see to that."""

from __future__ import annotations

import ast
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from voile.files import write_whole
from voile.journal import Journal
from voile.serve.ledger.counter import sync_file, write_synced
from voile.system import here as system
from voile.web import sqlite

FULL = 51
"""The number of F_FULLFSYNC on macOS."""


class FakeDisk:
    """Notes how files are synced, as a system that has F_FULLFSYNC."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fcntl = pytest.importorskip("fcntl")
        self.full: list[str] = []
        self.plain: list[str] = []
        self.fault = 0
        self._fcntl = fcntl.fcntl
        monkeypatch.setattr(fcntl, "F_FULLFSYNC", FULL, raising=False)
        monkeypatch.setattr(fcntl, "fcntl", self.controlled)
        monkeypatch.setattr(os, "fsync", lambda handle: self.plain.append(named(handle)))

    def controlled(self, handle: int, command: int, argument: int = 0) -> int:
        if command != FULL:
            return int(self._fcntl(handle, command, argument))
        if self.fault:
            raise OSError(self.fault, os.strerror(self.fault))
        self.full.append(named(handle))
        return 0


def named(handle: int) -> str:
    return Path(f"/proc/self/fd/{handle}").resolve().name if Path("/proc/self").exists() else ""


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FakeDisk:
    return FakeDisk(monkeypatch)


def test_all_that_is_durable_reaches_the_disk_of_a_mac(disk: FakeDisk, tmp_path: Path) -> None:
    steps: dict[str, Callable[[], object]] = {
        "whole": lambda: write_whole(tmp_path / "whole", b"x"),
        "folder": lambda: system.sync(tmp_path),
        "counter": lambda: write_synced(tmp_path / "counter", b"x", 0, new=True),
        "other's": lambda: sync_file(tmp_path / "counter"),
    }
    for number, (name, step) in enumerate(steps.items(), start=1):
        step()
        assert (len(disk.full), disk.plain) == (number, []), name
    with Journal(tmp_path / "journal", "about"):
        assert len(disk.full) == len(steps) + 1


@pytest.mark.parametrize("fault", [errno.ENOTSUP, errno.EINVAL, errno.ENOTTY])
def test_a_file_system_without_it_gets_what_there_is(
    disk: FakeDisk, tmp_path: Path, fault: int
) -> None:
    disk.fault = fault
    system.sync(tmp_path)
    assert (disk.full, len(disk.plain)) == ([], 1)


def test_a_disk_that_fails_is_not_passed_over(disk: FakeDisk, tmp_path: Path) -> None:
    disk.fault = errno.EIO
    with pytest.raises(OSError, match="Input/output"):
        system.sync(tmp_path)
    assert not disk.plain


def test_other_systems_have_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.delattr(fcntl, "F_FULLFSYNC", raising=False)
    plain: list[int] = []
    monkeypatch.setattr(os, "fsync", plain.append)
    system.sync(tmp_path)
    assert len(plain) == 1


def test_nobody_else_calls_fsync() -> None:
    """It would be enough on Linux alone."""
    found = {
        path.relative_to(ROOT / "src" / "voile").as_posix()
        for path in (ROOT / "src").rglob("*.py")
        if "fsync" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in ("fsync", "fdatasync")
    }
    assert found == {"system/posix.py", "system/windows.py"}


def test_databases_are_durable_and_forget_what_is_removed(tmp_path: Path) -> None:
    (tmp_path / "a.db").touch()
    connection = sqlite.connect(tmp_path / "a.db")
    try:
        sqlite.make_durable(connection)
        names = ("journal_mode", "synchronous", "fullfsync", "checkpoint_fullfsync",
                 "secure_delete")  # fmt: skip
        found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
        assert found == ["wal", 2, 1, 1, 1]
    finally:
        connection.close()
