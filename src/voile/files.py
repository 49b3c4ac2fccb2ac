"""Files that are whole or not there, durable and digested, and files that lock others out."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from voile.errors import UsageError, spelled


@contextmanager
def exclusive(path: Path, *, busy: UsageError, unwritable: str) -> Iterator[None]:
    """Hold a lock file, or raise `busy`; the lock goes with its process, however that ends.

    `unwritable` is the hint where the file cannot be made.
    """
    try:
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise UsageError(f"cannot write {str(path)!r}: {error.strerror}", hint=unwritable) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise busy from None
        yield
    finally:
        os.close(handle)


def write_whole(path: Path, content: bytes, *, overwrite: bool = True) -> Path:
    """Put a file in its place in one step; an interrupted run leaves what was there before."""
    if path.is_dir():
        raise UsageError(f"{str(path)!r} is a folder", hint="name a file")
    check_free(path, overwrite=overwrite)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise UsageError(
            f"cannot write {str(path)!r}: {error.strerror}", hint="choose another place"
        ) from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
    return path


def check_free(path: Path, *, overwrite: bool) -> None:
    """Refuse to replace what exists, unless that was said."""
    if path.exists() and not overwrite:
        raise UsageError(
            f"{str(path)!r} exists already",
            hint=f"choose another name, or pass {spelled('overwrite', True)}",
        )


def sha256(path: Path) -> str:
    """The digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Make a file or folder durable before anything refers to it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
