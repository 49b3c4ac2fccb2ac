"""Files that are whole or not there, durable and digested, and files that lock others out."""

from __future__ import annotations

import atexit
import errno
import hashlib
import io
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from voile.errors import UsageError, spelled
from voile.system import here as system

TRIES = 50
"""To remove a folder, in the course of a second."""


class TemporaryFolders:
    """Folders for a while, which are gone when the program ends, however that comes about.

    Threads that the program does not wait for go on while it ends. So a folder is made and noted
    in one step, and none is made after those that were noted have been removed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folders: set[Path] = set()
        self._ended = False

    def make(self) -> Path:
        """A new folder that only this user may read."""
        with self._lock:
            if self._ended:
                raise RuntimeError("the program is ending")
            folder = Path(tempfile.mkdtemp(prefix="voile-"))
            self._folders.add(folder)
        return folder

    def remove(self, folder: Path) -> None:
        """Again and again: a thread that still writes fails at its next file, and adds no more."""
        for _ in range(TRIES):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.02)
        self._folders.discard(folder)

    def remove_all(self) -> None:
        """At the end of the program."""
        with self._lock:
            self._ended = True
            left = list(self._folders)
        for folder in left:
            self.remove(folder)


TEMPORARY = TemporaryFolders()
atexit.register(TEMPORARY.remove_all)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is removed in the end."""
    folder = TEMPORARY.make()
    try:
        yield folder
    finally:
        TEMPORARY.remove(folder)


@contextmanager
def exclusive(path: Path, *, busy: UsageError, unwritable: str) -> Iterator[None]:
    """Hold a lock file, or raise `busy`; the lock goes with its process, however that ends.

    `unwritable` is the hint where the file cannot be made.
    """
    try:
        handle = system.open_file(path, create=True)
    except OSError as error:
        raise UsageError(f"cannot write {str(path)!r}: {error.strerror}", hint=unwritable) from None
    try:
        try:
            system.lock(handle, wait=False)
        except BlockingIOError:
            raise busy from None
        yield
    finally:
        os.close(handle)


def write_whole(path: Path, content: bytes, *, overwrite: bool = True) -> Path:
    """Put a file in its place in one step; an interrupted run leaves what was there before."""
    with whole_file(path, overwrite=overwrite) as file:
        file.write(content)
    return path


@contextmanager
def whole_file(path: Path, *, overwrite: bool = True) -> Iterator[io.BufferedWriter]:
    """A file that is written beside its place, and put there in one step once it is whole."""
    if path.is_dir():
        raise UsageError(f"{str(path)!r} is a folder", hint="name a file")
    check_free(path, overwrite=overwrite)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            yield file
            file.flush()
            system.flush(file.fileno())
        system.replace(beside, path)
    except OSError as error:
        raise UsageError(
            f"cannot write {str(path)!r}: {error.strerror}", hint="choose another place"
        ) from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def check_utf8(path: Path) -> None:
    """Refuse a path that Arrow, DuckDB and SQLite cannot hold: it has to be UTF-8."""
    raw = os.fsencode(path.absolute())
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        raise UsageError(
            f"the path '{shown}' is not UTF-8: byte {raw[error.start]:#04x}",
            hint="rename it, or the folder that it is in",
        ) from None


def lies_within(path: Path, folder: Path) -> bool:
    """Whether a place is a folder or in it, by whatever name: of links, and in another case."""
    place = path.resolve()
    if place.is_relative_to(folder.resolve()):
        return True
    there = [one for one in (place, *place.parents) if one.exists()]
    return folder.exists() and any(one.samefile(folder) for one in there)


def check_name(path: Path) -> None:
    """Refuse a place that this system cannot have, such as the name of a device."""
    if fault := system.fault_of_path(str(path)):
        raise UsageError(
            f"{str(path)!r} cannot be written on this system: {fault}", hint="choose another name"
        )


def check_free(path: Path, *, overwrite: bool) -> None:
    """Refuse to replace what exists, unless that was said."""
    check_name(path)
    if path.exists() and not overwrite:
        raise UsageError(
            f"{str(path)!r} exists already",
            hint=f"choose another name, or pass {spelled('overwrite', True)}",
        )


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file for reading; OSError where it is a link, a pipe or anything else, at once."""
    handle = system.open_file(path, follow=False)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a file", str(path))
    return os.fdopen(handle, "rb")


def sha256(path: Path) -> str:
    """The digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Make a file or folder durable before anything refers to it."""
    system.sync(path)
