"""How far a register has come, kept beside its key: an old copy that is put back is noticed.

Every change of a register has a number and a random token, and the last of them that this machine
has seen is in a small file. A register that lacks that change is an older copy, or another branch
of its history: it would have forgotten what left since. The file is written when the change is on
disk, so that a program that is killed leaves a register that is ahead of it, and never behind.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voile.files import sync
from voile.records import Record
from voile.register.store import RegisterError, Run, new_id
from voile.system import here as system

FORMAT = "voile-register-counter"


@dataclass(frozen=True)
class RegisterChange(Record):
    """One change of a register: the last one that was seen."""

    register: str
    """The id of the register."""
    number: int
    token: str
    place: str
    """Where the register was."""


def last_change(run: Run, place: str) -> RegisterChange:
    """The last change that a register has."""
    ((register,),) = run("SELECT id FROM about")
    found = run("SELECT number, token FROM changes ORDER BY number DESC LIMIT 1")
    number, token = found[0] if found else (0, "")
    return RegisterChange(register, number, token, place)


def add_change(run: Run, place: str, note: str = "") -> RegisterChange:
    """Number a change, in the transaction that makes it."""
    before = last_change(run, place)
    change = RegisterChange(before.register, before.number + 1, new_id(), place)
    run("INSERT INTO changes (number, token, at, note) VALUES (?, ?, ?, ?)",
        change.number, change.token, time.time(), note)  # fmt: skip
    return change


def has_change(run: Run, change: RegisterChange) -> bool:
    """Whether this change is in the register's history."""
    return bool(
        run("SELECT 1 FROM changes WHERE number = ? AND token = ?", change.number, change.token)
    )


@dataclass(frozen=True)
class RegisterCounter:
    """The files beside a key that say how far registers of that key have come."""

    key: Path

    def path(self, register: str) -> Path:
        """The file of one register."""
        return self.key.with_name(f"{self.key.name}.{register[:8]}.counter")

    def known(self) -> Iterator[RegisterChange]:
        """All that is known of registers with this key."""
        with suppress(OSError):
            for path in sorted(self.key.absolute().parent.iterdir()):
                if path.name.startswith(f"{self.key.name}.") and path.name.endswith(".counter"):
                    yield self._read(path)

    def of(self, register: str) -> RegisterChange | None:
        """The last change of a register that was seen here; None where none was."""
        path = self.path(register)
        return self._read(path) if path.exists() else None

    def at(self, place: str) -> RegisterChange | None:
        """The last change that was seen of the register at a place."""
        return next((one for one in self.known() if one.place == place), None)

    def _read(self, path: Path) -> RegisterChange:
        try:
            found: dict[str, Any] = json.loads(path.read_bytes())
            if found.pop("format") != FORMAT:
                raise ValueError
            change = RegisterChange(**found)
            return RegisterChange(
                str(change.register), int(change.number), str(change.token), str(change.place)
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise RegisterError(
                f"{str(path)!r} does not say how far the register has come",
                hint="restore it from a backup; without it an old copy of the register would pass",
            ) from None

    def keep(self, change: RegisterChange) -> None:
        """Write down, durably, that the register has come so far; a later change stays."""
        known = self.of(change.register)
        if known is None or known.number < change.number or known.place != change.place:
            self.replace(change)

    def replace(self, change: RegisterChange) -> None:
        """Start from this change, whatever was known."""
        path = self.path(change.register)
        content = json.dumps({"format": FORMAT} | change.to_dict()).encode() + b"\n"
        beside = path.with_name(f".{path.name}.{new_id()[:8]}")
        try:
            handle = system.open_file(beside, new=True)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                system.flush(file.fileno())
            system.replace(beside, path)
            sync(path.absolute().parent)
        except OSError as error:
            raise RegisterError(
                f"cannot write {str(path)!r}, which says how far the register has come: "
                f"{error.strerror}",
                hint="give its owner the right to write there",
            ) from None
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)

    def forget(self, place: str, but: str) -> None:
        """Drop what is known of other registers that were at a place."""
        for one in list(self.known()):
            if one.place == place and one.register != but:
                self.path(one.register).unlink(missing_ok=True)
