"""Linux and macOS."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    import socket
    import subprocess

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a program to end."""
PIPE_ENCODING: str | None = None
"""How text goes into a file or a pipe; None: as the environment says."""
CHANGES_SHOW = True
"""Whether whoever changes a file cannot hide that: its ctime tells."""


# ---------------------------------------------------------------------- locks


def lock(handle: int, *, wait: bool) -> None:
    """Lock out others until the file is closed, or its process ends; BlockingIOError: they have."""
    fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


@contextmanager
def folder_lock(folder: Path) -> Iterator[bool]:
    """Wait for a folder, and hold it; whether it is still the one that has this name."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        lock(handle, wait=True)
        yield os.path.samestat(os.fstat(handle), folder.stat())
    finally:
        os.close(handle)


# ---------------------------------------------------------------------- files


def open_file(
    path: Path, *, write: bool = False, create: bool = False, new: bool = False,
    truncate: bool = False, follow: bool = True,
) -> int:  # fmt: skip
    """A handle of a file's bytes, which no child gets; what is made is for its owner alone.

    A pipe or a terminal is not waited for. `new` fails where something has the name; without
    `follow`, a link does.
    """
    flags = os.O_RDWR if write or create or new else os.O_RDONLY
    flags |= os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    flags |= os.O_CREAT if create or new else 0
    flags |= os.O_EXCL if new else 0
    flags |= os.O_TRUNC if truncate else 0
    flags |= 0 if follow else os.O_NOFOLLOW
    return os.open(path, flags, 0o600)


def read_at(handle: int, size: int, at: int) -> bytes:
    """So many bytes from a place on, or as many as there are."""
    return os.pread(handle, size, at)


def write_at(handle: int, content: bytes, at: int) -> None:
    """Write bytes to a place."""
    os.pwrite(handle, content, at)


def flush(handle: int) -> None:
    """Wait until what was written to an open file or folder is on disk.

    On macOS fsync hands it to the drive, which may keep it in its memory; F_FULLFSYNC waits for the
    drive, too. File systems that lack it, such as those of networks, get fsync.
    """
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        try:
            fcntl.fcntl(handle, full)
        except OSError as error:
            if error.errno not in UNABLE | {errno.ENOTTY}:
                raise
        else:
            return
    os.fsync(handle)


def sync(path: Path) -> None:
    """Make a file or folder durable before anything refers to it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        flush(handle)
    finally:
        os.close(handle)


def replace(one: Path, other: Path) -> None:
    """Give a file another name, in one step; what had that name is gone."""
    one.replace(other)


def move(one: Path, other: Path) -> None:
    """Give a folder another name, which nothing has."""
    one.rename(other)


def place_new(beside: Path, path: Path) -> None:
    """Give a file its name, in one step; FileExistsError where something has it by then.

    The name that it had may stay: whoever calls this removes it.
    """
    os.link(beside, path)


AT_FDCWD, RENAME_EXCHANGE = -100, 2
"""Of Linux: paths count from the working folder; both names stay, and change places."""
RENAME_SWAP = 2
"""Of macOS."""
UNABLE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
"""What kernels and file systems say that cannot exchange names."""


def exchanged(one: Path, other: Path) -> bool:
    """Whether both have changed places, in one step; False: the system cannot, and nothing is done.

    Both must exist and lie in one file system. Whatever else is wrong raises OSError. Where it
    gives False, two renames have to do, and whoever is interrupted between them has to be cleaned
    up after (`kinds/staging.py`).
    """
    import ctypes  # noqa: PLC0415  (only who replaces a release needs it)

    name = {"linux": "renameat2", "darwin": "renamex_np"}.get(sys.platform)
    rename = name and getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if not rename:
        return False
    first, second = os.fsencode(one), os.fsencode(other)
    if name == "renameat2":
        failed = rename(AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE)
    else:
        failed = rename(first, second, RENAME_SWAP)
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in UNABLE:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))


def fault_of_path(path: str) -> str:
    """Why no file or folder can have this path; empty if one can."""
    return ""


# ---------------------------------------------------------------------- rights


def set_rights(handle: int, mode: int) -> None:
    """Who may read and write an open file."""
    os.fchmod(handle, mode)


def is_ours(state: os.stat_result) -> bool:
    """Whether a file belongs to this user."""
    return state.st_uid == os.getuid()


def is_private(state: os.stat_result) -> bool:
    """Whether nobody but its owner may read or write a file."""
    return not stat.S_IMODE(state.st_mode) & 0o077


def data_folder(home: Path) -> Path:
    """Where programs keep a user's data."""
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    return home / ".local" / "share"


def state_folder(home: Path) -> Path:
    """Where programs keep what a user did, such as what was typed."""
    return home / ".local" / "state"


def cache_folder(home: Path) -> Path:
    """Where programs keep what may be lost."""
    return home / ".cache"


# ---------------------------------------------------------------------- processes


@contextmanager
def handling_endings(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> Iterator[None]:
    """Have a loop call `stop` when a signal asks to end; afterwards all is as it was."""
    before = {number: signal.getsignal(number) for number in ENDING}
    for number in ENDING:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def end_this_process() -> None:
    """Ask this process to end, from any of its threads."""
    os.kill(os.getpid(), signal.SIGTERM)


def start_with_socket(
    command: Sequence[str], given: socket.socket, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a process that nothing but a socket leads to: its last argument says which.

    It hears nothing of Ctrl-C at our terminal.
    """
    import subprocess  # noqa: PLC0415  (only servers need it)

    return subprocess.Popen(  # noqa: S603  (whoever calls names a program of ours)
        [*command, str(given.fileno())],
        pass_fds=[given.fileno()],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def inherited_socket(argument: str) -> socket.socket:
    """The socket that `start_with_socket` gave this process."""
    import socket  # noqa: PLC0415  (only servers need it)

    return socket.socket(fileno=int(argument))


def claim_port(listener: socket.socket) -> None:
    """Before a socket is bound: the port is free as soon as nobody listens there any more."""
    import socket  # noqa: PLC0415  (only servers need it)

    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def let_go_first(process: subprocess.Popen[bytes]) -> None:
    """Let other processes have the processor before this one, where the system lets us."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PGRP, process.pid, 10)


def arm_alarms() -> None:
    """Before the first of `set_alarms`: they end the process, also in the midst of C."""
    for alarm in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(alarm, signal.SIG_DFL)


def set_alarms(cpu: float, seconds: float) -> None:
    """End this process after so much time, of the processor or of the clock; 0: never."""
    signal.setitimer(signal.ITIMER_PROF, cpu)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def limit_memory(more: int) -> None:
    """Let this process have so many bytes more than it uses now, where the system can tell."""
    with suppress(ImportError, OSError, ValueError):  # macOS has no /proc
        import resource  # noqa: PLC0415  (only servers need it)

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # what ends would leave its rows on disk
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
        most = int(pages) * resource.getpagesize() + more
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def limit_files(most: int) -> None:
    """Let this process have so many files open, where the system lets it."""
    with suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415  (only servers need it)

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        ceiling = most if hard == resource.RLIM_INFINITY else min(most, hard)
        if soft != resource.RLIM_INFINITY and soft < ceiling:
            resource.setrlimit(resource.RLIMIT_NOFILE, (ceiling, hard))
