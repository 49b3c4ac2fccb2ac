"""A release of what has been collected so far."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from voile.client import Spec
from voile.collect.store import snapshot
from voile.errors import TableError, UsageError
from voile.kinds.perturbed.publishing import warnings, write_collected
from voile.kinds.perturbed.release import LocalRelease
from voile.kinds.publishing import key_of
from voile.kinds.signatures import lost_signatures
from voile.records import Record
from voile.signing import KeySource


@dataclass(frozen=True)
class CollectedRelease(Record):
    """A release of a store: of so many rows, perturbed by the spec of this digest."""

    json_keys = (
        "release=release.path", "store", "rows", "spec", "guarantee=release.manifest.guarantee",
        "notes",
    )  # fmt: skip

    release: LocalRelease
    store: Path
    rows: int
    spec: str
    remarks: tuple[str, ...] = ()
    """What its owner should know of how it came into its place."""

    @property
    def notes(self) -> list[str]:
        """What its owner should know before it is published."""
        own = warnings(self.release.manifest.mechanism, self.release.schema, None)
        return [*own, *self.remarks]


def release_collected(
    folder: Path,
    target: Path,
    *,
    spec: Spec | None = None,
    overwrite: bool = False,
    sign: KeySource | None = None,
) -> CollectedRelease:
    """Write a release of the rows that a store has at this moment.

    The rows were perturbed before they were sent: nothing is added here, and a store may be
    released as often as one likes. A collector may be running on it meanwhile.
    """
    signing = key_of(sign)
    if target.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"{str(target)!r} is inside the store", hint="write it elsewhere")
    with snapshot(folder, spec) as taken:
        if not taken.count:
            raise TableError(
                f"nothing has been collected in {str(folder)!r} yet",
                hint="release when rows have come in",
            )
        remarks = lost_signatures(target, signing)
        release = write_collected(
            taken.batches(), taken.spec, target, overwrite=overwrite, sign=signing
        )
        return CollectedRelease(release, folder, taken.count, taken.spec.digest, remarks)
