"""A process as Windows would have it, on another system: what Windows lacks is taken away.

    become_windows()

takes away modules, signals and functions; makes what is there behave as there (names that are
taken, files that are open, handles of text); and puts `msvcrt` and what shares sockets in place.
Processes that it starts are changed too: `sitecustomize` is on their path.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import importlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT

MODULES = ("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "syslog")
SIGNALS = frozenset({"SIGINT", "SIGTERM", "SIGABRT", "SIGFPE", "SIGILL", "SIGSEGV", "SIG_DFL",
                     "SIG_IGN"})  # fmt: skip
OF_SIGNAL = ("setitimer", "getitimer", "alarm", "pause", "pthread_kill", "pthread_sigmask",
             "sigwait", "siginterrupt", "ITIMER_PROF", "ITIMER_REAL", "ITIMER_VIRTUAL")  # fmt: skip
OF_OS = (
    "getuid", "geteuid", "getgid", "getegid", "getpgid", "getpgrp", "setsid", "killpg", "fork",
    "fchmod", "fchown", "chown", "pread", "pwrite", "preadv", "pwritev", "setpriority",
    "getpriority", "PRIO_PGRP", "PRIO_PROCESS", "sched_getaffinity", "mkfifo", "nice", "sysconf",
    "uname", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_DIRECTORY", "O_SYNC",
    "statvfs", "openpty", "fdatasync",
)  # fmt: skip
WITHOUT_ENDINGS = ("numba", "scipy.stats", "duckdb", "pyarrow.parquet", "pyarrow.fs", "uvicorn",
                   "cryptography.hazmat.primitives.asymmetric.ed25519", "pydantic", "rich.console",
                   "typer", "urllib.request", "sqlite3", "email.message", "bcrypt")  # fmt: skip
"""Libraries that look for what this system has when they are loaded."""
BINARY = 0o100000
"""A flag that says nothing here (O_LARGEFILE): who does not give it would write text."""
NOT_ALLOWED = errno.EACCES


def become_windows() -> None:
    """Change this process for good."""
    for name in WITHOUT_ENDINGS:
        importlib.import_module(name)
    put_msvcrt_in_place()
    take_away()
    put_files_in_place()
    put_processes_in_place()


def take_away() -> None:
    """What only other systems have."""
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    spare = signal.SIGUSR1
    for name in dir(signal):
        if name.startswith("SIG") and name[3:4].isalpha() and name not in SIGNALS:
            delattr(signal, name)
    for module, names in ((signal, OF_SIGNAL), (os, OF_OS)):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    signal.SIGBREAK = spare  # type: ignore[attr-defined]


def put_msvcrt_in_place() -> None:
    """Locks of a byte, which belong to a handle as Windows has it, and to no process."""
    import fcntl  # Windows has none, and its tests import this module

    module: Any = types.ModuleType("msvcrt")
    module.LK_UNLCK, module.LK_LOCK, module.LK_NBLCK = 0, 1, 2
    flock, exclusive, at_once = fcntl.flock, fcntl.LOCK_EX, fcntl.LOCK_NB

    def locking(handle: int, mode: int, size: int) -> None:
        assert (mode, size) == (module.LK_NBLCK, 1)
        place = os.lseek(handle, 0, os.SEEK_CUR)
        assert os.fstat(handle).st_size <= place < 2**31, "a byte of the content would be locked"
        try:
            flock(handle, exclusive | at_once)
        except BlockingIOError:
            raise PermissionError(NOT_ALLOWED, "Permission denied") from None

    module.locking = locking
    sys.modules["msvcrt"] = module


# ---------------------------------------------------------------------- files


def put_files_in_place() -> None:
    """What Windows refuses to do with folders, and with files that are open."""
    true_open, true_fsync = os.open, os.fsync
    os.O_BINARY, os.O_NOINHERIT = BINARY, 0  # type: ignore[attr-defined]

    def opened(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        assert dir_fd is None, "handles of folders lead nowhere there"
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.startswith("voile") and os.fspath(path) != os.devnull:
            assert flags & BINARY, f"{caller} opens {path} as text"
        if not isinstance(path, int) and Path(os.fsdecode(path)).is_dir():
            raise PermissionError(NOT_ALLOWED, "Permission denied", str(path))
        return true_open(path, flags, mode)

    def synced(handle: Any) -> None:
        number = handle if isinstance(handle, int) else handle.fileno()
        with open(f"/proc/self/fdinfo/{number}", encoding="ascii") as said:  # noqa: PTH123
            flags = int(said.read().split("flags:")[1].split()[0], 8)
        if flags & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        true_fsync(handle)

    os.open, os.fsync = opened, synced  # type: ignore[assignment]
    os.rename = moving(os.rename, over=False)
    os.replace = moving(os.replace, over=True)
    os.unlink = os.remove = removing(os.unlink)
    shutil._use_fd_functions = False  # type: ignore[attr-defined]


def moving(true: Callable[..., None], *, over: bool) -> Callable[..., None]:
    """Another name: never over a folder, and over a file only where that is meant."""

    def moved(one: Any, other: Any, **_: Any) -> None:
        first, second = Path(os.fsdecode(one)), Path(os.fsdecode(other))
        if not over and os.path.lexists(second):
            raise FileExistsError(errno.EEXIST, "File exists", str(one), 183, str(other))
        if second.is_dir():
            raise PermissionError(NOT_ALLOWED, "Access is denied", str(one), 5, str(other))
        for path in (first, second):
            check_closed(path)
        true(one, other)

    return moved


def removing(true: Callable[..., None]) -> Callable[..., None]:
    """Nothing that is open is removed."""

    def removed(path: Any, *, dir_fd: int | None = None) -> None:
        assert dir_fd is None
        check_closed(Path(os.fsdecode(path)))
        true(path)

    return removed


def check_closed(path: Path) -> None:
    """Refuse a file that this process has open, and a folder with such a file in it."""
    place = path.absolute()
    for handle in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with contextlib.suppress(OSError):
            found = Path(os.readlink(f"/proc/self/fd/{handle}"))  # noqa: PTH115
            if found == place or place in found.parents:
                raise PermissionError(NOT_ALLOWED, "another process uses it", str(found))


# ---------------------------------------------------------------------- processes


def put_processes_in_place() -> None:
    """Loops that know no signals, processes that inherit no handles, and sockets that are sent."""
    asyncio.SelectorEventLoop.add_signal_handler = no_handler  # type: ignore[assignment, method-assign]
    true_popen = subprocess.Popen

    class WindowsPopen(true_popen):  # type: ignore[valid-type, misc]
        def __init__(self, command: Any, **given: Any) -> None:
            given.pop("creationflags", 0)
            assert not given.get("pass_fds") and not given.get("start_new_session")
            environment = dict(given.pop("env", None) or os.environ)
            before = environment.get("PYTHONPATH", "")
            environment["PYTHONPATH"] = os.pathsep.join([str(CHANGED), str(ROOT), before])
            super().__init__(command, env=environment, **given)
            self._handle = self.pid

        def kill(self) -> None:
            if self.poll() is None:
                os.kill(self.pid, KILL)

    subprocess.Popen = WindowsPopen  # type: ignore[assignment, misc]
    socket.socket.share = shared  # type: ignore[attr-defined]
    socket.fromshare = from_share  # type: ignore[attr-defined]


CHANGED = Path(__file__).parent / "windows_site"
"""Has a `sitecustomize` that changes a process when it starts."""


KILL = 9
"""SIGKILL, which has no name there: Popen ends a process by a function of its own."""


def no_handler(*_: Any) -> None:
    """As loops of Windows answer."""
    raise NotImplementedError


def shared(given: socket.socket, _pid: int) -> bytes:
    """Words by which another process gets a socket, once."""
    folder = tempfile.mkdtemp(prefix="voile-test-")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{folder}/s")
    listener.listen(1)
    copy = given.dup()

    def send() -> None:
        with listener, copy:
            to, _ = listener.accept()
            with to:
                socket.send_fds(to, [b"-"], [copy.fileno()])
        for path in (f"{folder}/s", folder):
            (os.unlink if stat.S_ISSOCK(os.lstat(path).st_mode) else os.rmdir)(path)

    threading.Thread(target=send, daemon=True).start()
    return json.dumps(f"{folder}/s").encode()


def from_share(words: bytes) -> socket.socket:
    """The socket that another process has shared."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(json.loads(words))
        _, handles, _, _ = socket.recv_fds(asked, 1, 1)
    return socket.socket(fileno=handles[0])


def run_changed(script: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process that is changed before its first line."""
    path = os.pathsep.join([str(CHANGED), str(ROOT), *filter(None, sys.path)])
    given: Mapping[str, str] = {
        **{name: os.environ[name] for name in os.environ if not name.startswith(("VOILE", "XDG"))},
        "PYTHONPATH": path, "HOME": str(cwd), "LOCALAPPDATA": str(cwd / "local"),
        **environment,
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=cwd,
        env=dict(given),
        check=False,
        capture_output=True,
        text=True,
    )
