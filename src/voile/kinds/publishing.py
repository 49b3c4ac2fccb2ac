"""From a private table to a release, the same for every kind.

The table is read and what to publish is planned (a kind's `draft`); the release is written beside
its place, described and sealed, verified as a stranger would, and only then renamed into place.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from voile.engines import connect
from voile.kinds.kind import Kind
from voile.kinds.manifest import DATA_PACKAGE, MANIFEST, Manifest, file_entry
from voile.kinds.registration import Registrar, Registration
from voile.kinds.registry import kind_of
from voile.kinds.release import Release
from voile.kinds.staging import Staging, place_for, removed_with
from voile.progress import Progress, Silent

# ----------------------------------------------------------------------
# what the steward is shown once a release is published


@dataclass(frozen=True)
class PublishResult:
    """A release that was published, with notes for its steward; it may hold true counts."""

    release: Release
    rows_in: int
    rows_dropped: int
    notes: tuple[str, ...]
    account: Mapping[str, Any] | None = field(default=None, kw_only=True)
    """What the register says of the data set, this release included; None where it has none."""

    def facts(self) -> list[tuple[str, str]]:
        """What the steward is shown of it, by name, besides what every release has."""
        rows = f"{self.rows_in:,} in, {self.release.manifest.rows:,} out"
        return [("rows", rows), ("promise", self.release.promise_in_short)]

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, for `--json`."""
        manifest = self.release.manifest
        return {
            "release": str(self.release.path),
            "method": manifest.method,
            "rows_in": self.rows_in,
            "rows_dropped": self.rows_dropped,
            "rows_out": manifest.rows,
            "domain_size": manifest.domain_size,
            "parameters": manifest.parameters.model_dump(),
            "guarantee": manifest.guarantee.model_dump(),
            "simulated": manifest.simulated,
            "nulls": manifest.nulls,
            "disclosed": [d.model_dump() for d in manifest.disclosed],
            "notes": list(self.notes),
            "registered": manifest.registered,
            "register": self.account,
        }


# ----------------------------------------------------------------------
# from a private table to a release, the same for every kind


class Draft(AbstractContextManager["Draft"], ABC):
    """A release that has been planned: what will be written, and what the steward is shown."""

    def __exit__(self, *_: object) -> None:
        """Nothing is held open, unless a kind says otherwise."""

    @abstractmethod
    def put(self, target: Path, *, overwrite: bool, entry: Registration | None = None) -> Release:
        """Make the release, whole and verified, in this place; `entry` is its registration."""

    @abstractmethod
    def done(self, release: Any) -> PublishResult:
        """What the steward is shown of the release, once it is in place."""


class WrittenDraft(Draft):
    """A draft whose files are written: beside the place, described, verified, then renamed."""

    @abstractmethod
    def write(self, folder: Path) -> Manifest:
        """Write the data into this folder; the manifest lists these files and no others."""

    def put(self, target: Path, *, overwrite: bool, entry: Registration | None = None) -> Release:
        """Write the files beside the place, verify them, and rename the folder into place."""
        with Staging(target, overwrite=overwrite, entry=entry) as staging:
            write_descriptions(
                staging.folder, self.write(staging.folder), registered=entry is not None
            )
            self.commit(staging)
        return Release.open(target)

    def commit(self, staging: Staging) -> None:
        """Verify what was written and rename it."""
        staging.commit()


def publish(
    kind: Kind[Any],
    table: Any,
    options: Any,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    register: Registrar | None = None,
) -> PublishResult:
    """Publish a table as a release of this kind. `to` names its folder, else it is temporary.

    `register` writes down what is put in a place by name, before it is there. A temporary release
    has not left: it is registered when it is saved. One made from a chosen seed never is.
    """
    source = connect(table)
    simulated = getattr(options, "simulate_seed", None) is not None
    with (
        place_for(to, overwrite=overwrite) as target,
        kind.draft(source, options, target, progress or Silent()) as draft,
    ):
        entry = None
        if register is not None and not simulated:
            entry = register.begin(source, getattr(options, "name", None) or source.name)
        if to is not None:
            return registered(
                draft.done(draft.put(target, overwrite=overwrite, entry=entry)), entry
            )
        done = draft.done(draft.put(target, overwrite=overwrite))
    removed_with(done.release)
    done.release.registration = entry
    return done


def registered(done: PublishResult, entry: Registration | None) -> PublishResult:
    """The result with what the register says."""
    if entry is None:
        return done
    return replace(done, notes=(*done.notes, *entry.notes), account=entry.account)


def write_descriptions(folder: Path, manifest: Manifest, *, registered: bool | None = None) -> None:
    """README.md and datapackage.json beside the data, then the manifest that seals them all."""
    kind = kind_of(manifest.method)
    package = json.dumps(kind.data_package(manifest), ensure_ascii=False, indent=1)
    texts = {"README.md": kind.describe(manifest) + "\n", DATA_PACKAGE: package + "\n"}
    files = list(manifest.files)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        files.append(file_entry(folder, folder / name))
    sealed = manifest.model_copy(update={"files": files, "registered": registered}).sealed()
    (folder / MANIFEST).write_text(sealed.text(), encoding="utf-8")
