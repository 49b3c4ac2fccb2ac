"""Windows. What cannot be had there is said beside it, and in docs/reference/systems.md.

Nothing here is loaded when the module is: tests try all of it on other systems, with what Windows
has put in place (`tests/support/windows.py`).
"""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voile.system.names import fault_of_path as fault_of_path  # noqa: PLC0414  (passed on)

if TYPE_CHECKING:
    import asyncio
    import socket
    import subprocess

ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)
)
"""Ctrl-C, `terminate` from Python, and Ctrl-Break or the closing of the console's window."""
PIPE_ENCODING: str | None = "utf-8"
"""Python would take the code page of the machine, which lacks ε and most names of the world."""
CHANGES_SHOW = False
"""A file's times can all be set back, so that a file that was checked is checked again."""

PATIENCE, PAUSE = 2.0, 0.02
"""Seconds to wait for whoever has a file open, such as a scanner, and between two looks."""


# ---------------------------------------------------------------------- locks

PLACE = 2**31 - 2
"""The byte that is locked: nobody can read a locked one, so it lies behind all content. What locks
does not count beyond it."""
HELD = (errno.EACCES, errno.EDEADLOCK, errno.EAGAIN)
LOCKS = threading.Lock()
"""Locks are taken at the place where the handle is, so one thread at a time moves it."""


def lock(handle: int, *, wait: bool) -> None:
    """Lock out others until the file is closed, or its process ends; BlockingIOError: they have."""
    msvcrt: Any = importlib.import_module("msvcrt")
    while True:
        try:
            with LOCKS, kept_place(handle):
                os.lseek(handle, PLACE, os.SEEK_SET)
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno not in HELD:
                raise
            if not wait:
                raise BlockingIOError(errno.EAGAIN, "another program has it") from None
            time.sleep(PAUSE)
        else:
            return


@contextmanager
def kept_place(handle: int) -> Iterator[None]:
    """Let a handle be at the same place afterwards."""
    before = os.lseek(handle, 0, os.SEEK_CUR)
    try:
        yield
    finally:
        os.lseek(handle, before, os.SEEK_SET)


@contextmanager
def folder_lock(folder: Path) -> Iterator[bool]:
    """Wait for a folder, and hold it; whether it is still the one that has this name.

    Folders cannot be locked: a file among this user's temporary ones stands for it, so that
    programs of another user are not waited for.
    """
    import hashlib  # noqa: PLC0415  (only who signs needs it)

    before = folder.stat()
    name = hashlib.sha256(os.path.normcase(folder.resolve()).encode()).hexdigest()[:32]
    handle = open_file(Path(tempfile.gettempdir()) / f"voile-{name}.lock", create=True)
    try:
        lock(handle, wait=True)
        yield os.path.samestat(before, folder.stat())
    finally:
        os.close(handle)


# ---------------------------------------------------------------------- files


def open_file(
    path: Path, *, write: bool = False, create: bool = False, new: bool = False,
    truncate: bool = False, follow: bool = True,
) -> int:  # fmt: skip
    """A handle of a file's bytes, which no child gets.

    What is made gets the rights of its folder. `new` fails where something has the name; without
    `follow`, a link does, if it was one just before.
    """
    if not follow and path.is_symlink():
        raise OSError(errno.ELOOP, "it is a link", str(path))
    flags = os.O_RDWR if write or create or new else os.O_RDONLY
    flags |= getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
    flags |= os.O_CREAT if create or new else 0
    flags |= os.O_EXCL if new else 0
    flags |= os.O_TRUNC if truncate else 0
    return os.open(path, flags, 0o600)


def read_at(handle: int, size: int, at: int) -> bytes:
    """So many bytes from a place on, or as many as there are."""
    with LOCKS, kept_place(handle):
        os.lseek(handle, at, os.SEEK_SET)
        found = b""
        while len(found) < size and (part := os.read(handle, size - len(found))):
            found += part
        return found


def write_at(handle: int, content: bytes, at: int) -> None:
    """Write bytes to a place."""
    with LOCKS, kept_place(handle):
        os.lseek(handle, at, os.SEEK_SET)
        left = memoryview(content)
        while left:
            left = left[os.write(handle, left) :]


def flush(handle: int) -> None:
    """Wait until what was written to an open file is on disk."""
    os.fsync(handle)


def sync(path: Path) -> None:
    """Make a file durable before anything refers to it.

    Only a handle that may write can be synced. A folder has none: NTFS keeps a journal of names.
    """
    if path.is_dir():
        return
    handle = open_file(path, write=True)
    try:
        flush(handle)
    finally:
        os.close(handle)


def replace(one: Path, other: Path) -> None:
    """Give a file another name, in one step; what had that name is gone."""
    patiently(lambda: one.replace(other))


def move(one: Path, other: Path) -> None:
    """Give a folder another name, which nothing has."""
    patiently(lambda: one.rename(other))


def place_new(beside: Path, path: Path) -> None:
    """Give a file its name, in one step; FileExistsError where something has it by then.

    Not every file system of Windows has links. But a rename never replaces anything there.
    """
    patiently(lambda: beside.rename(path))


def patiently(step: Callable[[], object]) -> None:
    """Do something to a file that a scanner or an indexer may have open for a moment."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            step()
        except PermissionError:
            if time.monotonic() > until:
                raise
            time.sleep(PAUSE)
        else:
            return


def exchanged(one: Path, other: Path) -> bool:
    """Two names do not change places in one step here: two renames have to do."""
    return False


# ---------------------------------------------------------------------- rights


def set_rights(handle: int, mode: int) -> None:
    """Nothing: a file has the rights of its folder, and in a user's folder those are the user's."""


def is_ours(state: os.stat_result) -> bool:
    """True: the times and modes of a file do not say whose it is."""
    return True


def is_private(state: os.stat_result) -> bool:
    """True: what others may do is in access lists, which a file's mode does not show."""
    return True


def data_folder(home: Path) -> Path:
    """Where programs keep a user's data."""
    return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")


def state_folder(home: Path) -> Path:
    """Where programs keep what a user did, such as what was typed."""
    return data_folder(home)


def cache_folder(home: Path) -> Path:
    """Where programs keep what may be lost."""
    return data_folder(home)


# ---------------------------------------------------------------------- processes


@contextmanager
def handling_endings(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> Iterator[None]:
    """Have a loop call `stop` when a signal asks to end; afterwards all is as it was."""
    before = {number: signal.getsignal(number) for number in ENDING}
    for number in ENDING:
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_this_process() -> None:
    """Ask this process to end, from any of its threads: `kill` would not ask."""
    signal.raise_signal(signal.SIGTERM)


NEW_GROUP = 0x00000200
"""Of a process: it hears nothing of Ctrl-C at our console."""
BELOW_NORMAL = 0x00004000
"""Of a process: others have the processor first."""


def start_with_socket(
    command: Sequence[str], given: socket.socket, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a process that nothing but a socket leads to, which is sent to it."""
    import subprocess  # noqa: PLC0415  (only servers need it)

    process = subprocess.Popen(  # noqa: S603  (whoever calls names a program of ours)
        [*command, "-"],
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        creationflags=NEW_GROUP,
    )
    share: Any = given.share  # type: ignore[attr-defined, unused-ignore]
    with suppress(OSError):  # it has ended; whoever waits for it sees that
        assert process.stdin is not None  # noqa: S101  (it was asked for)
        process.stdin.write(share(process.pid))
        process.stdin.close()
    return process


def inherited_socket(argument: str) -> socket.socket:
    """The socket that `start_with_socket` gave this process."""
    import socket  # noqa: PLC0415  (only servers need it)

    fromshare: Any = socket.fromshare  # type: ignore[attr-defined, unused-ignore]
    found: socket.socket = fromshare(sys.stdin.buffer.read())
    return found


def claim_port(listener: socket.socket) -> None:
    """Before a socket is bound: nobody else can listen at its port, too.

    A port is free there as soon as nobody listens. SO_REUSEADDR would let others take it over while
    we do, with the tokens that are sent to it.
    """
    import socket  # noqa: PLC0415  (only servers need it)

    if alone := getattr(socket, "SO_EXCLUSIVEADDRUSE", 0):
        listener.setsockopt(socket.SOL_SOCKET, alone, 1)


def let_go_first(process: subprocess.Popen[bytes]) -> None:
    """Let other processes have the processor before this one, where the system lets us."""
    with suppress(OSError, AttributeError):
        kernel().SetPriorityClass(process._handle, BELOW_NORMAL)  # type: ignore[attr-defined, unused-ignore]


def kernel() -> Any:
    """The functions of kernel32."""
    import ctypes  # noqa: PLC0415  (only servers need it)

    return ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]


def arm_alarms() -> None:
    """Nothing: see `set_alarms`."""


def set_alarms(cpu: float, seconds: float) -> None:
    """End this process after so many seconds of the clock; 0: never.

    Time of the processor cannot be bounded: there is no signal for it. A thread of the
    interpreter's own, which waits for nothing, ends the process also in the midst of C.
    """
    import faulthandler  # noqa: PLC0415  (only servers need it)

    faulthandler.cancel_dump_traceback_later()
    if seconds:
        faulthandler.dump_traceback_later(seconds, exit=True, file=NOWHERE.open())


class Nowhere:
    """Where nobody reads; open as long as the process lives."""

    def __init__(self) -> None:
        self._file: Any = None

    def open(self) -> Any:
        """The file."""
        if self._file is None:
            self._file = Path(os.devnull).open("wb")  # noqa: SIM115  (until the process ends)
        return self._file


NOWHERE = Nowhere()


def limit_memory(more: int) -> None:
    """Let this process have so many bytes more than it uses now: in a job object of its own."""
    from voile.system.windows_memory import limit_more  # noqa: PLC0415  (only servers need it)

    with suppress(OSError, AttributeError):
        limit_more(kernel(), more)


def limit_files(most: int) -> None:
    """Nothing: sockets are not counted among open files."""
