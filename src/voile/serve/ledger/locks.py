"""One server at a time: a lock goes with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from voile.errors import UsageError

LOCK = "lock"


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file, or refuse because another server does."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise UsageError(
            f"cannot write {str(path)!r}: {error.strerror}",
            hint="a server writes its ledger and its counter: give it the right to",
        ) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"another server is using {what}", hint="stop it first; one serves at a time"
            ) from None
        yield
    finally:
        os.close(handle)
