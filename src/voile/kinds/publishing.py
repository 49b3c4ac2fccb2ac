"""From a private table to a release, the same for every kind.

The table is read and what to publish is planned (a kind's `draft`); the release is written beside
its place, described and sealed, verified as a stranger would, and only then renamed into place.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voile.engines import connect
from voile.kinds.kind import Kind
from voile.kinds.manifest import DATA_PACKAGE, MANIFEST, Manifest, file_entry
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
        }


# ----------------------------------------------------------------------
# from a private table to a release, the same for every kind


class Draft(AbstractContextManager["Draft"], ABC):
    """A release that has been planned: what will be written, and what the steward is shown.

    A draft fills a folder; `put` verifies the folder and renames it, which no draft can skip.
    """

    def __exit__(self, *_: object) -> None:
        """Nothing is held open, unless a kind says otherwise."""

    @abstractmethod
    def fill(self, folder: Path) -> None:
        """Write the release into this folder: the data, the descriptions and the manifest."""

    def placing(self, written: Release) -> AbstractContextManager[None]:  # noqa: ARG002
        """What goes on while the verified folder is renamed, such as an entry into a ledger."""
        return nullcontext()

    @abstractmethod
    def done(self, release: Any) -> PublishResult:
        """What the steward is shown of the release, once it is in place."""


class WrittenDraft(Draft):
    """A draft that writes its data, which is described and sealed for it."""

    @abstractmethod
    def write(self, folder: Path) -> Manifest:
        """Write the data into this folder; the manifest lists these files and no others."""

    def fill(self, folder: Path) -> None:
        """Write the data, and its descriptions beside it."""
        write_descriptions(folder, self.write(folder))


def put(draft: Draft, target: Path, *, overwrite: bool) -> Release:
    """Fill a folder beside the place, verify it as a stranger would, and rename it."""
    with Staging(target, overwrite=overwrite) as staging:
        draft.fill(staging.folder)
        staging.commit(draft.placing)
    return Release.open(target)


def publish(
    kind: Kind[Any],
    table: Any,
    options: Any,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> PublishResult:
    """Publish a table as a release of this kind. `to` names its folder, else it is temporary."""
    kind.check_place(options, to)
    with (
        place_for(to, overwrite=overwrite) as target,
        kind.draft(connect(table), options, target, progress or Silent()) as draft,
    ):
        done = draft.done(put(draft, target, overwrite=overwrite))
    if to is None:
        removed_with(done.release)
    return done


def write_descriptions(folder: Path, manifest: Manifest) -> None:
    """README.md and datapackage.json beside the data, then the manifest that seals them all."""
    kind = kind_of(manifest.method)
    package = json.dumps(kind.data_package(manifest), ensure_ascii=False, indent=1)
    texts = {"README.md": kind.describe(manifest) + "\n", DATA_PACKAGE: package + "\n"}
    files = list(manifest.files)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        files.append(file_entry(folder, folder / name))
    sealed = manifest.model_copy(update={"files": files}).sealed()
    (folder / MANIFEST).write_text(sealed.text(), encoding="utf-8")
