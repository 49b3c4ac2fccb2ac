"""What publishing asks of the steward's register: to write down what leaves, before it does.

Kinds know the register by these protocols alone; `voile.register` is one that keeps them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from voile.errors import VoileError
from voile.records import Record

if TYPE_CHECKING:
    from voile.engines.table import Table
    from voile.kinds.release import Release
    from voile.signing import SigningKey

DepartureUnit = Literal["record", "person"]
"""Whom promises are about."""


@dataclass(frozen=True)
class Departure(Record):
    """Something that is about to leave: what it is, and what is promised about it."""

    kind: str
    """In words: 'a view', 'a server'."""
    method: str
    name: str
    digest: str
    path: str
    guarantee: Sequence[Mapping[str, Any]]
    """Guarantees as `voile.privacy.guarantees` reads them, each with its condition."""
    unit: DepartureUnit = "record"
    """Whom the guarantees are about: one record, or one person with all of their records."""
    group: str = ""
    """Departures of one group keep their guarantee together; where it is empty, each its own."""
    member: str = ""
    """Which of the group it is. Two different ones that claim the same place count twice."""
    adds: bool = True
    """False where it is made of releases that the register has: it discloses nothing more."""


def departure_of(release: Release, path: str) -> Departure:
    """A release that is about to be put in place."""
    manifest = release.manifest
    group, member = release.counted_with
    return Departure(
        kind=release.kind,
        method=manifest.method,
        name=manifest.name,
        digest=manifest.digest,
        path=path,
        guarantee=[
            {**one.data, "condition": one.condition} for one in release.promised() if one.holds
        ],
        unit=release.protects,
        group=group,
        member=member,
    )


class Registration(Protocol):
    """The entry of one departure."""

    def reserve(self, departure: Departure) -> None:
        """Write it down, durably, or refuse it; from now on it may have left."""

    def left(self) -> None:
        """Note that it has left."""

    def stayed(self) -> None:
        """Note that it has not left, and never will: nobody has seen it."""

    @property
    def notes(self) -> Sequence[str]:
        """What the steward is shown: what has left before, and what all of it adds up to."""

    @property
    def account(self) -> Mapping[str, Any]:
        """The same as plain data."""


@dataclass(frozen=True)
class NoRegistration:
    """A registration that could not be begun, and why: nothing leaves by it."""

    why: VoileError
    notes: Sequence[str] = ()
    account: Mapping[str, Any] = field(default_factory=dict)

    def reserve(self, departure: Departure) -> None:
        """Refuse the departure."""
        del departure
        raise copy(self.why)  # what is raised keeps all frames that it passes

    def left(self) -> None:
        """Never."""

    def stayed(self) -> None:
        """It did."""


class Registrar(Protocol):
    """Who keeps the register."""

    def begin(self, table: Table, name: str) -> Registration:
        """Recognise the data set of a table that is about to be published."""

    def begin_from(self, name: str, parts: Sequence[str], draw: str) -> Registration:
        """What is made of rows that were perturbed before: of releases with these digests.

        All that has the same `draw` is made of the same perturbed rows, and counts once.
        """


# ---------------------------------------------------------------------- temporary releases


@dataclass(frozen=True)
class PendingEntry:
    """What is to be done when a temporary release is saved: register it, and sign it anew."""

    registration: Registration | None
    key: SigningKey | None = None


class PendingEntries:
    """The entries of temporary releases, by their folder and by their digest.

    A program may open the folder of a temporary release again, or a copy of it, and save that: it
    leaves by this as well.
    """

    MOST = 64
    """Releases that are known by their digest after their folder is gone."""

    def __init__(self) -> None:
        self._by_path: dict[Path, PendingEntry] = {}
        self._by_digest: OrderedDict[str, PendingEntry] = OrderedDict()

    def add(self, release: Release, entry: PendingEntry) -> None:
        """Remember the entry of a temporary release."""
        self._by_path[release.path.resolve()] = entry
        self._by_digest[release.manifest.digest] = entry
        while len(self._by_digest) > self.MOST:
            self._by_digest.popitem(last=False)

    def of(self, release: Release) -> PendingEntry:
        """The entry of a release; an empty one where it is not a temporary one of this program."""
        found = self._by_path.get(release.path.resolve())
        known = found or self._by_digest.get(release.manifest.digest)
        return known or PendingEntry(None)

    def forget(self, folder: Path) -> None:
        """The folder is gone."""
        self._by_path.pop(folder, None)


PENDING = PendingEntries()
