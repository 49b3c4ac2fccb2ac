"""A small file that says how far the ledger has come, and that only moves on.

It is on disk before an answer leaves. So a ledger that leads to it has lost nothing, and one that
does not is an old copy. Kept inside the server's folder, it notices a ledger that was put back
alone; kept outside, on another disk at best, also a whole folder that was.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

from voile.errors import UsageError
from voile.serve.ledger.base import LedgerError, RolledBackError
from voile.serve.ledger.chain import Head
from voile.serve.setting import COUNTER, Setting

FORMAT = "voile-counter"
PASSING = (errno.ENOSPC, errno.EDQUOT)


def counter_path(folder: Path, setting: Setting) -> Path:
    return (Path(setting.counter) if setting.counter else folder / COUNTER).absolute()


class Counter:
    """The counter of one server; one process at a time moves it on."""

    def __init__(self, path: Path, server: str) -> None:
        self.path = path
        self.server = server
        self.head = Head(-1, "")
        """What is known to be on disk."""
        self._broken: str | None = None

    def read(self) -> Head | None:
        """What the file says; None if it is not there."""
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            if found["format"] != FORMAT:
                raise ValueError("it is no counter")
            head = Head(int(found["number"]), str(found["digest"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RolledBackError(
                f"the counter {str(self.path)!r} cannot be read: {error}",
                hint="put the file back, or remove it and run voile serve recover",
            ) from None
        if found.get("server") != self.server:
            raise UsageError(
                f"{str(self.path)!r} is the counter of another server",
                hint="every server has a counter of its own",
            )
        return head

    def advance(self, head: Head) -> None:
        """Move on to the newest entry: durable when this returns."""
        if self._broken:
            raise self._gone()
        try:
            replace(self.path, self._content(head))
        except OSError as error:
            raise self._failed(error) from None
        self.head = head

    def _content(self, head: Head) -> bytes:
        said = {"format": FORMAT, "server": self.server, "number": head.number}
        return (json.dumps(said | {"digest": head.digest}) + "\n").encode()

    def _failed(self, error: OSError) -> LedgerError:
        if error.errno in PASSING:
            return LedgerError(
                f"there is no room for the counter {str(self.path)!r}",
                hint="the server's steward must make room",
            )
        self._broken = error.strerror or str(error)
        return self._gone()

    def _gone(self) -> LedgerError:
        return LedgerError(
            f"the counter {str(self.path)!r} cannot be written: {self._broken}",
            hint="the server's steward must look after its disk and start it anew",
            lasting=True,
        )


def replace(path: Path, content: bytes) -> None:
    """Write beside, sync, rename, sync the folder: whole or as before, and on disk."""
    beside = path.with_name(f".{path.name}.new")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(handle, content)
        os.fsync(handle)
    finally:
        os.close(handle)
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
