"""What is measured is kept at once, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from voile.errors import UsageError, spelled
from voile.system import here as system


class OtherJournalError(UsageError):
    """What is kept is about something else."""


class Journal:
    """Lines of JSON, each durable when `keep` returns; the first says what they are about.

    A line that was cut off by a crash is dropped. Two runs cannot write to one file.
    """

    def __init__(
        self, path: Path, digest: str, *, overwrite: bool = False, other: str = "another run"
    ) -> None:
        self.path, self.digest, self.overwrite, self.other = path, digest, overwrite, other
        self.known: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._file: IO[bytes]

    def __enter__(self) -> Journal:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a+b")
        except OSError as error:
            raise UsageError(
                f"cannot write {str(self.path)!r}: {error.strerror}", hint="choose another folder"
            ) from None
        try:
            self._open()
        except BaseException:
            self._file.close()
            raise
        return self

    def _open(self) -> None:
        try:
            system.lock(self._file.fileno(), wait=False)
        except OSError:
            raise UsageError(
                f"another run writes to {str(self.path.parent)!r}", hint="choose another folder"
            ) from None
        self._file.seek(0)
        content = self._file.read()
        if self.overwrite:
            content = b""
        lines = content[: content.rfind(b"\n") + 1].splitlines(keepends=True)
        if lines and head_of(lines[0]) != self.digest:
            raise OtherJournalError(
                f"{str(self.path)!r} holds {self.other}",
                hint=f"choose another folder, or pass {spelled('overwrite', True)} to start anew",
            )
        self._file.truncate(sum(map(len, lines)))
        for line in lines[1:]:
            entry = json.loads(line)
            self.known[entry["key"]] = entry["found"]
        if not lines:
            self._write({"about": self.digest})

    def keep(self, key: str, found: Any) -> None:
        """Write an entry; it is durable when this returns."""
        with self._lock:
            self._write({"key": key, "found": found})
            self.known[key] = found

    def _write(self, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        system.flush(self._file.fileno())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        with self._lock:  # a line that is being written is written
            self._file.close()


def head_of(line: bytes) -> str:
    """What a journal's first line says that it is about; empty if nothing."""
    try:
        return str(json.loads(line)["about"])
    except (ValueError, KeyError, TypeError):
        return ""


class MemoryJournal:
    """The journal of a run that keeps nothing."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {}

    def keep(self, key: str, found: Any) -> None:
        """Remember an entry in memory."""
        self.known[key] = found
