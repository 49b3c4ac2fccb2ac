"""A small file that says how far the ledger has come, and only moves forward.

It is on disk before an answer is given. So a ledger that leads to it has lost nothing, and one that
does not is an old copy. Kept inside the server's folder, it notices a ledger that was put back
alone; kept outside, on another disk at best, also a whole folder that was.

The file has two places of one sector each, written in turn and in place, which costs one sync and
never needs space. If the power fails in the middle of a write, the other place is still valid.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from voile.errors import UsageError
from voile.files import sync
from voile.serve.ledger.base import LedgerError, RolledBackError
from voile.serve.ledger.entries import Head
from voile.serve.setting import COUNTER, Setting
from voile.system import here as system

FORMAT = "voile-counter"
PLACE = 512
"""Bytes of a place: one sector of a disk."""
PASSING = (errno.ENOSPC, errno.EDQUOT)


def counter_path(folder: Path, setting: Setting) -> Path:
    """Where the counter of a server is: in its folder unless the setting says otherwise."""
    return (Path(setting.counter) if setting.counter else folder / COUNTER).absolute()


@dataclass(frozen=True)
class CounterRecord:
    """What one place says: how far the ledger has come, and at which turn this was written."""

    server: str
    turn: int
    head: Head

    def to_bytes(self) -> bytes:
        """One line that fills a place."""
        said = {"format": FORMAT, "server": self.server, "turn": self.turn,
                "number": self.head.number, "digest": self.head.digest}  # fmt: skip
        line = json.dumps(said | {"check": check_sum(self)})
        return line.ljust(PLACE - 1).encode() + b"\n"

    @classmethod
    def from_bytes(cls, place: bytes) -> CounterRecord | None:
        """None if it was never written, or not to its end."""
        with suppress(ValueError, KeyError, TypeError):
            found = json.loads(place)
            head = Head(int(found["number"]), str(found["digest"]))
            said = cls(str(found["server"]), int(found["turn"]), head)
            if found["format"] == FORMAT and found["check"] == check_sum(said):
                return said
        return None


def check_sum(said: CounterRecord) -> str:
    """Whether a place was written to its end; not a secret."""
    words = f"{FORMAT} {said.server} {said.turn} {said.head.number} {said.head.digest}"
    return hashlib.sha256(words.encode()).hexdigest()[:16]


class Counter:
    """The counter of one server; one process at a time moves it on, or several in turn."""

    def __init__(self, path: Path, server: str) -> None:
        self.path = path
        self.server = server
        self.head = Head(-1, "")
        """What is known to be on disk."""
        self.shared = False
        """Whether other processes of the same server move it on, too."""
        self._turn = 0
        self._broken: str | None = None

    def read(self) -> Head | None:
        """What the file says; None if it is not there."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from None
        places = (content[:PLACE], content[PLACE : 2 * PLACE])
        written = [said for said in map(CounterRecord.from_bytes, places) if said]
        if not written:
            raise self._unreadable("it is damaged, or no counter")
        newest = max(written, key=lambda said: said.turn)
        if newest.server != self.server:
            raise UsageError(
                f"{str(self.path)!r} is the counter of another server",
                hint="every server has a counter of its own",
            )
        self._turn = newest.turn
        return newest.head

    def create(self, head: Head) -> None:
        """Make the file: durable when this returns, whole or not there."""
        beside = self.path.with_name(f".{self.path.name}.new")
        try:
            write_synced(beside, self._said(0, head).ljust(2 * PLACE), 0, new=True)
            system.replace(beside, self.path)
            sync(self.path.parent)
        except OSError as error:
            raise self._failed(error) from None
        self.head, self._turn = head, 0

    def advance(self, head: Head) -> None:
        """Move on to the newest entry: durable when this returns. `read` comes before."""
        if self._broken:
            raise self._gone()
        try:
            with self._alone() if self.shared else nullcontext():
                said = self.read() if self.shared else None
                if said is not None and said.number >= head.number:  # another process did it
                    sync_file(self.path)
                    self.head = said
                    return
                turn = self._turn + 1
                write_synced(self.path, self._said(turn, head), PLACE * (turn % 2))
        except OSError as error:
            raise self._failed(error) from None
        self.head, self._turn = head, turn

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes from writing it meanwhile; the file itself is what they lock."""
        handle = system.open_file(self.path, write=True)
        try:
            system.lock(handle, wait=True)
            yield
        finally:
            os.close(handle)

    def _said(self, turn: int, head: Head) -> bytes:
        return CounterRecord(self.server, turn, head).to_bytes()

    def _unreadable(self, why: str) -> RolledBackError:
        return RolledBackError(
            f"the counter {str(self.path)!r} cannot be read: {why}",
            hint="put the file back, or remove it and run voile serve recover",
        )

    def _failed(self, error: OSError) -> LedgerError:
        if error.errno in PASSING:
            return LedgerError(
                f"there is no space for the counter {str(self.path)!r}",
                hint="the server's steward must free space",
            )
        self._broken = error.strerror or str(error)
        return self._gone()

    def _gone(self) -> LedgerError:
        return LedgerError(
            f"the counter {str(self.path)!r} cannot be written: {self._broken}",
            hint="the server's steward must look after its disk and start it anew",
            lasting=True,
        )


def sync_file(path: Path) -> None:
    """Wait until what another process wrote is on disk."""
    handle = system.open_file(path, write=True)
    try:
        system.flush(handle)
    finally:
        os.close(handle)


def write_synced(path: Path, content: bytes, offset: int, *, new: bool = False) -> None:
    """Write a few bytes, and wait until they are on disk."""
    handle = system.open_file(path, write=True, create=new, truncate=new)
    try:
        system.write_at(handle, content, offset)
        system.flush(handle)
    finally:
        os.close(handle)
