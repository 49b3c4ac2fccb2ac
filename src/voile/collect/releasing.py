"""A release of what has been collected so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voile.client import Spec
from voile.collect.store import snapshot
from voile.errors import TableError, UsageError
from voile.files import lies_within
from voile.kinds.perturbed.publishing import collected_name, warnings, write_collected
from voile.kinds.perturbed.release import LocalRelease
from voile.kinds.publishing import key_of
from voile.kinds.registration import Registrar, Registration
from voile.kinds.signatures import lost_signatures
from voile.records import Record
from voile.signing import KeySource


@dataclass(frozen=True)
class CollectedRelease(Record):
    """A release of a store: of so many rows, perturbed by the spec of this digest."""

    json_keys = (
        "release=release.path", "store", "rows", "spec", "guarantee=release.manifest.guarantee",
        "notes", "registered=release.manifest.registered", "register",
    )  # fmt: skip

    release: LocalRelease
    store: Path
    rows: int
    spec: str
    entry: Registration | None = None
    """Of the register, if it has one."""
    remarks: tuple[str, ...] = ()
    """What its owner should know of how it came into its place."""

    @property
    def notes(self) -> list[str]:
        """What its owner should know before it is published."""
        said = warnings(self.release.manifest.mechanism, self.release.schema, None)
        said += self.remarks
        return said if self.entry is None else [*said, *self.entry.notes]

    @property
    def register(self) -> Mapping[str, Any] | None:
        """What the register says of it; None where it has nothing."""
        return None if self.entry is None else self.entry.account


def release_collected(
    folder: Path,
    target: Path,
    *,
    spec: Spec | None = None,
    overwrite: bool = False,
    sign: KeySource | None = None,
    register: Registrar | None = None,
) -> CollectedRelease:
    """Write a release of the rows that a store has at this moment.

    The rows were perturbed before they were sent: nothing is added here, and a store may be
    released as often as one likes. A collector may be running on it meanwhile. `register` writes
    each release down, with the local guarantee of its rows, and counts all of one store once.
    """
    signing = key_of(sign)
    if lies_within(target, folder):
        raise UsageError(f"{str(target)!r} is inside the store", hint="write it elsewhere")
    with snapshot(folder, spec) as taken:
        if not taken.count:
            raise TableError(
                f"nothing has been collected in {str(folder)!r} yet",
                hint="release when rows have come in",
            )
        entry = None
        if register is not None:
            draw = f"collected {taken.spec.digest} {folder.resolve()}"
            entry = register.begin_from(collected_name(taken.spec), (), draw)
        remarks = lost_signatures(target, signing)
        release = write_collected(
            taken.batches(), taken.spec, target, overwrite=overwrite, sign=signing, entry=entry
        )
        return CollectedRelease(release, folder, taken.count, taken.spec.digest, entry, remarks)
