"""From rows to a release of classes: read, group, write, verify, put in place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voile.engines import connect
from voile.errors import spelled
from voile.kinds.classes.finding import find
from voile.kinds.classes.options import ClassOptions
from voile.kinds.classes.reading import prepare
from voile.kinds.classes.release import ClassRelease
from voile.kinds.classes.writing import write_classes
from voile.kinds.done import Done
from voile.kinds.staging import place_for, removed_with
from voile.progress import Progress, Silent
from voile.units import counted


@dataclass(frozen=True)
class Grouped(Done):
    """A table of classes that was published."""

    release: ClassRelease

    def to_dict(self) -> dict[str, Any]:
        manifest = self.release.manifest
        return {
            **super().to_dict(),
            "classes": manifest.parameters.classes,
            "requirements": {
                manifest.named(entry): entry.measured for entry in manifest.guarantee.requirements
            },
        }


def group_table(
    table: Any,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Grouped:
    """Group rows, publish the classes, and tell the steward about it. `to` names the folder."""
    asked = ClassOptions(**options)
    with place_for(to, overwrite=overwrite) as target:
        source = connect(table)
        prepared = prepare(source, asked, progress or Silent())
        found = find(prepared, asked)
        release = write_classes(prepared, found, asked, target, overwrite=overwrite)
    if to is None:
        removed_with(release)
    removed = release.manifest.parameters.removed
    notes = prepared.notes
    if removed:
        notes = (
            *notes,
            f"{counted(removed, 'row', 'were')} left out, for no class could hold them",
        )
    if asked.recoded == "bucketize" and all(r.attribute is None for r in prepared.requirements):
        notes = (*notes, "quasi-identifiers are shown as they are: k alone hides nothing; ask for "
                         f"{spelled('l')}, {spelled('t')} or {spelled('semantic')}")  # fmt: skip
    return Grouped(release, prepared.rows, prepared.rows - release.rows, notes)
