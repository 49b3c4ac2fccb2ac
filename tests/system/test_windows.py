"""What Windows does in place of what it lacks; `kernel32` and `msvcrt` are stood in for."""

from __future__ import annotations

import ctypes
import os
import socket
import stat
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from voile.system import windows, windows_memory


class Held:
    """A `msvcrt` whose byte somebody holds so many times."""

    LK_NBLCK = 2

    def __init__(self, times: int, errno: int = 13) -> None:
        self.times, self.errno, self.places = times, errno, list[int]()

    def locking(self, handle: int, mode: int, size: int) -> None:
        assert (mode, size) == (self.LK_NBLCK, 1)
        self.places.append(os.lseek(handle, 0, os.SEEK_CUR))
        if len(self.places) <= self.times:
            raise OSError(self.errno, "held")


def stand_in(monkeypatch: pytest.MonkeyPatch, times: int, errno: int = 13) -> Held:
    held = Held(times, errno)
    monkeypatch.setitem(sys.modules, "msvcrt", held)
    return held


def test_a_lock_is_refused_or_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "lock").open("w+b") as file:
        file.write(b"content")
        file.flush()
        held = stand_in(monkeypatch, 1)
        with pytest.raises(BlockingIOError):
            windows.lock(file.fileno(), wait=False)
        stand_in(monkeypatch, 3)
        windows.lock(file.fileno(), wait=True)
        assert file.tell() == os.lseek(file.fileno(), 0, os.SEEK_CUR) == len(b"content")
        assert held.places == [windows.PLACE]
        assert windows.PLACE < 2**31, "the C library tells places in 32 bits"


def test_a_lock_that_fails_for_another_reason_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, 1, errno=9)
    with (tmp_path / "lock").open("w+b") as file, pytest.raises(OSError, match="held"):
        windows.lock(file.fileno(), wait=True)


def test_a_folder_that_was_replaced_while_it_was_waited_for_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    stand_in(monkeypatch, 0)
    with windows.folder_lock(folder) as same:
        assert same

    def replaced(_handle: int, *, wait: bool) -> None:
        assert wait
        folder.rename(tmp_path / "old")
        folder.mkdir()

    monkeypatch.setattr(windows, "lock", replaced)
    with windows.folder_lock(folder) as same:
        assert not same


def test_bytes_are_read_and_written_at_places(tmp_path: Path) -> None:
    path = tmp_path / "file"
    handle = windows.open_file(path, new=True)
    try:
        windows.write_at(handle, b"abcdef", 0)
        windows.write_at(handle, b"XY", 2)
        assert windows.read_at(handle, 100, 1) == b"bXYef"
        assert windows.read_at(handle, 2, 4) == b"ef"
        assert os.lseek(handle, 0, os.SEEK_CUR) == 0
    finally:
        os.close(handle)
    with pytest.raises(FileExistsError):
        windows.open_file(path, new=True)
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(OSError, match="link"):
        windows.open_file(link, follow=False)


def test_a_file_is_synced_by_a_handle_that_may_write_and_a_folder_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []

    def fsync(handle: int) -> None:
        os.write(handle, b"")
        synced.append(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    (tmp_path / "file").write_bytes(b"x")
    windows.sync(tmp_path / "file")
    windows.sync(tmp_path)
    assert len(synced) == 1


def test_a_file_that_a_scanner_has_open_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def step() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise PermissionError

    windows.patiently(step)
    assert len(tries) == 3
    monkeypatch.setattr(windows, "PATIENCE", -1.0)
    tries.clear()
    with pytest.raises(PermissionError):
        windows.patiently(step)
    assert len(tries) == 1


def test_a_name_that_is_taken_stays_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a rename, which refuses that on Windows: not every file system there has links."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("one")

    def rename(first: Any, second: Any) -> None:
        if os.path.lexists(second):
            raise FileExistsError
        Path(first).replace(second)

    monkeypatch.setattr(os, "rename", rename)
    windows.place_new(one, other)
    assert other.read_text() == "one" and not one.exists()
    one.write_text("two")
    with pytest.raises(FileExistsError):
        windows.place_new(one, other)
    assert other.read_text() == "one"


def test_folders_of_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    home = Path("home")
    assert windows.data_folder(home) == windows.cache_folder(home) == home / "AppData" / "Local"
    monkeypatch.setenv("LOCALAPPDATA", "elsewhere")
    assert windows.data_folder(home) == Path("elsewhere")


def test_rights_cannot_be_told_by_modes(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    file.chmod(0o666)
    assert windows.is_ours(file.stat()) and windows.is_private(file.stat())
    with file.open("rb") as opened:
        windows.set_rights(opened.fileno(), 0o600)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666


BUSY = """
import re
from voile.system import windows
windows.arm_alarms()
windows.set_alarms(1, 60)
windows.set_alarms(0, 0)
windows.set_alarms(1, 0.05)
re.match("(a*)*$", "a" * 40 + "b")  # minutes in C, without a look at signals or other threads
print("never")
"""


def test_a_clock_ends_a_process_in_the_midst_of_c() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BUSY], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == ""


# ---------------------------------------------------------------------- kernel32


class Kernel:
    """Keeps what it is told, as the structures of Windows have it."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}

        def current() -> int:
            return -1

        def create(_attributes: None, _name: None) -> int:
            return 77

        def memory(process: Any, counters: Any, size: int) -> None:
            assert process.value == ctypes.c_void_p(-1).value and size == 72
            counters._obj.committed = 5000

        def limit(job: Any, kind: int, limits: Any, size: int) -> None:
            found = limits._obj
            self.told["limit"] = (job.value, kind, size, found.basic.flags, found.process_memory)

        def assign(job: Any, process: Any) -> None:
            self.told["assigned"] = (job.value, process.value)

        self.GetCurrentProcess, self.CreateJobObjectW = current, create
        self.K32GetProcessMemoryInfo = memory
        self.SetInformationJobObject, self.AssignProcessToJobObject = limit, assign
        self.SetPriorityClass = lambda handle, kind: self.told.update(priority=(handle, kind))


@pytest.mark.skipif(ctypes.sizeof(ctypes.c_void_p) != 8, reason="sizes of 64-bit structures")
def test_memory_is_bound_by_a_job_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes are those of winnt.h on 64 bits: 144 bytes of limits, 72 of counters."""
    assert ctypes.sizeof(windows_memory.BasicLimits) == 64
    assert ctypes.sizeof(windows_memory.ExtendedLimits) == 144
    assert ctypes.sizeof(windows_memory.MemoryCounters) == 72
    kernel = Kernel()
    monkeypatch.setattr(windows, "kernel", lambda: kernel)
    windows.limit_memory(1000)
    assert kernel.told["limit"] == (77, 9, 144, 0x100, 6000)
    assert kernel.told["assigned"] == (77, ctypes.c_void_p(-1).value)


def test_a_long_question_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel()
    monkeypatch.setattr(windows, "kernel", lambda: kernel)
    windows.let_go_first(types.SimpleNamespace(_handle=5))  # type: ignore[arg-type]
    assert kernel.told["priority"] == (5, 0x4000)


def test_nobody_else_can_listen_at_a_port_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """SO_REUSEADDR, which other systems need, would let them there."""
    told: list[tuple[int, int, int]] = []
    listener: Any = types.SimpleNamespace(setsockopt=lambda *given: told.append(given))
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", ~socket.SO_REUSEADDR, raising=False)
    windows.claim_port(listener)
    assert told == [(socket.SOL_SOCKET, ~socket.SO_REUSEADDR, 1)]


def test_what_is_not_to_be_had_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> Any:
        raise OSError

    monkeypatch.setattr(windows, "kernel", nothing)
    windows.limit_memory(1000)
    windows.let_go_first(types.SimpleNamespace(_handle=5))  # type: ignore[arg-type]
    windows.limit_files(1000)
    assert not windows.exchanged(Path("a"), Path("b"))
