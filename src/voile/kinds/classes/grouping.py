"""From rows to a release of classes: read, group, write, verify, put in place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from voile.errors import spelled
from voile.kinds.classes.finding import Found
from voile.kinds.classes.manifest import ClassManifest
from voile.kinds.classes.options import ClassOptions
from voile.kinds.classes.reading import Prepared
from voile.kinds.classes.release import ClassRelease
from voile.kinds.classes.writing import write_classes
from voile.kinds.done import Done
from voile.kinds.publishing import WrittenDraft, publish
from voile.kinds.registry import kind_of
from voile.progress import Progress
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

    def facts(self) -> list[tuple[str, str]]:
        manifest = self.release.manifest
        p = manifest.parameters
        kept = zip(manifest.guarantee.requirements, manifest.requirements, strict=True)
        levels = ", ".join(f"{name} {level}" for name, level in (p.levels or {}).items())
        return [
            ("rows", f"{self.rows_in:,} in, {manifest.rows:,} out"),
            ("classes", f"{p.classes:,} ({manifest.method}, {p.recode}), of "
                        f"{manifest.rows / p.classes:,.1f} rows on average"),
            *[("promise", f"{r.spelling}{of(entry.attribute)}: the worst class has "
                          f"{entry.measured:.4g}") for entry, r in kept],
            *([("levels", levels)] if levels else []),
        ]  # fmt: skip


def of(attribute: str | None) -> str:
    return "" if attribute is None else f" of {attribute}"


@dataclass(frozen=True, eq=False)
class ClassDraft(WrittenDraft):
    """Classes that were found, and are ready to be written."""

    prepared: Prepared
    found: Found
    options: ClassOptions

    def write(self, folder: Path) -> ClassManifest:
        return write_classes(folder, self.prepared, self.found, self.options)

    def done(self, release: ClassRelease) -> Grouped:
        prepared, removed = self.prepared, release.manifest.parameters.removed
        notes = list(prepared.notes)
        if removed:
            left_out = counted(removed, "row", "were")
            notes.append(f"{left_out} left out, for no class could hold them")
        shown = self.options.recoded == "bucketize"
        if shown and all(r.attribute is None for r in prepared.requirements):
            notes.append("quasi-identifiers are shown as they are: k alone hides nothing; ask for "
                         f"{spelled('l')}, {spelled('t')} or {spelled('semantic')}")  # fmt: skip
        return Grouped(release, prepared.rows, prepared.rows - release.rows, tuple(notes))


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
    kind = kind_of(asked.method)
    done = publish(kind, table, asked, to=to, overwrite=overwrite, progress=progress)
    return cast("Grouped", done)
