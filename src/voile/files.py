"""Files that are either whole or not there: written beside, then renamed; durable, and digested."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from voile.errors import UsageError


def write_whole(path: Path, content: bytes, *, overwrite: bool = True) -> Path:
    """Put a file in its place in one step; an interrupted run leaves what was there before."""
    if path.is_dir():
        raise UsageError(f"{str(path)!r} is a folder", hint="name a file")
    if path.exists() and not overwrite:
        raise UsageError(
            f"{str(path)!r} exists already", hint="choose another name, or pass --overwrite"
        )
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
