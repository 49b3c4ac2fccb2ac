"""From rows to a release of classes: read, group, write, verify, put in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from voile import __version__
from voile.arrays import in_groups
from voile.engines.table import Table
from voile.errors import spelled
from voile.kinds.classes.afar import RegionGrouping, cut_afar
from voile.kinds.classes.cells import ClassFigures
from voile.kinds.classes.errors import measured
from voile.kinds.classes.finding import ClassRows, FoundGrouping, find
from voile.kinds.classes.manifest import (
    CLASS_FILES,
    SENSITIVE_FILES,
    UNIT,
    ClassErrorModel,
    ClassGuarantee,
    ClassManifest,
    ClassParameters,
    Required,
    class_column,
    grouped_disclosed,
)
from voile.kinds.classes.options import ClassOptions, GroupTableKeywords, is_vacuous
from voile.kinds.classes.reading import (
    ClassInput,
    by_frequency,
    moved_box,
    prepare,
    without_removed,
)
from voile.kinds.classes.release import (
    ClassBox,
    ClassRelease,
    HiddenRecords,
    class_columns,
    shown_schema,
)
from voile.kinds.manifest import File, file_entry
from voile.kinds.parquet import arrow_schema, tuples, write_part
from voile.kinds.publishing import PublishResult, WrittenDraft, publish
from voile.kinds.registration import Registrar
from voile.kinds.registry import kind_of
from voile.noise import Key
from voile.privacy.requirements import Histograms, Requirement
from voile.progress import Progress
from voile.recoding.grouping import cells_by_class
from voile.recoding.labels import Labels, labels
from voile.signing import KeySource
from voile.units import counted

# ----------------------------------------------------------------------
# writing classes: what is shown of each row, the boxes, and the sensitive values


Codes = npt.NDArray[Any]
FILE_ROWS = 2**22


@dataclass(frozen=True, eq=False)
class ShownTable:
    """The classes that are shown, numbered anew, and the rows that are in them."""

    of_row: Codes
    """The class of each shown row."""
    kept: npt.NDArray[np.bool_] | None
    """Which rows are shown; all where it is None."""
    low: Codes
    high: Codes
    histograms: Histograms

    @property
    def rows(self) -> int:
        """How many rows are shown."""
        return int(self.histograms.rows.sum())

    def parts(self, prepared: ClassInput) -> Iterator[ClassRows]:
        """The rows that are shown, some classes at a time."""
        yield ClassRows(self.of_row, prepared.codes, prepared.weights)


@dataclass(frozen=True, eq=False)
class TableAfar(ShownTable):
    """The same of rows that are counted where they lie."""

    found: RegionGrouping

    def parts(self, prepared: ClassInput) -> Iterator[ClassRows]:  # noqa: ARG002
        """The rows, a region at a time."""
        return self.found.parts()


def showing(found: FoundGrouping | RegionGrouping) -> ShownTable:
    """The classes that are shown of a grouping, and their histograms."""
    if isinstance(found, RegionGrouping):
        nobody = np.empty(0, np.int32)
        return TableAfar(nobody, None, found.low, found.high, found.histograms, found)
    grouping, histograms = found.grouping, found.grouping.histograms(found.units)
    if found.shown is None:
        return ShownTable(found.classes, None, grouping.low, grouping.high, histograms)
    kept = found.shown
    number = np.cumsum(kept) - 1
    rows = kept[found.classes]
    counts = tuple(c[kept] for c in histograms.counts)
    population = histograms.population
    return ShownTable(
        number[found.classes[rows]].astype(np.int32),
        rows,
        grouping.low[kept],
        grouping.high[kept],
        Histograms(
            histograms.rows[kept],
            counts,
            tuple(c.sum(axis=0) for c in counts),
            None if population is None else population[kept],
        ),
    )


def write_classes(
    folder: Path, prepared: ClassInput, found: FoundGrouping | RegionGrouping, options: ClassOptions
) -> ClassManifest:
    """The files of a release. Rows are sorted: their order discloses nothing."""
    shown, removed = showing(found), 0
    weak = options.weak and is_vacuous(options)
    if shown.kept is not None:
        removed = prepared.used - shown.rows
        prepared, shown = in_what_is_shown(prepared, shown, options)
    ranges = {} if options.recoded == "bucketize" else ranges_of(prepared, shown, options)
    parameters = parameters_of(prepared, found, shown, options, ranges, removed)
    errors = error_model_of(prepared, shown, options) if options.error_model else None
    parameters = parameters.model_copy(update={"error_model": errors, "weak": weak})
    manifest = manifest_of(prepared, shown, options, parameters)
    files = [*write_rows(folder, manifest, prepared, shown, ranges)]
    if options.recoded == "bucketize":
        files.append(write_sensitive(folder, manifest, prepared, shown))
    else:
        files.append(write_boxes(folder, manifest, shown, ranges, options))
    return manifest.model_copy(update={"files": files})


def error_model_of(
    prepared: ClassInput, shown: ShownTable, options: ClassOptions
) -> ClassErrorModel | None:
    """What is measured of real errors, on questions that nobody can predict."""
    order = np.argsort(shown.of_row, kind="stable")
    rows = ClassRows(
        shown.of_row[order].astype(np.int32),
        {name: code[order].astype(np.int32) for name, code in prepared.codes.items()},
        None if prepared.weights is None else prepared.weights[order],
    )
    seed = options.simulate_seed
    key = Key.fresh() if seed is None else Key.from_seed(seed)
    return measured(figures_of(prepared, shown, options, rows), rows.codes, key)


def figures_of(
    prepared: ClassInput, shown: ShownTable, options: ClassOptions, of: ClassRows
) -> ClassFigures:
    """The classes as whoever opens the release will see them; rows in the order of classes."""
    boxes, hidden = dict[str, ClassBox](), None
    if options.recoded == "bucketize":
        names = list(options.sensitive)
        found, classes, rows = of.cells(names)
        listed = dict(zip(names, found, strict=True))
        hidden = HiddenRecords(classes.astype(np.int32), listed, rows)
        open_ = set(names)
    else:
        for j, name in enumerate(options.qi):
            if (shown.low[:, j] < shown.high[:, j]).any():
                order = prepared.orders.get(name)
                every = np.arange(prepared.schema[name].size, dtype=np.int32)
                places = every if order is None else order
                boxes[name] = ClassBox(places, shown.low[:, j], shown.high[:, j])
        open_ = set(boxes)
    return ClassFigures(
        schema=prepared.schema,
        rows=shown.rows,
        recode=options.recoded,
        classes=len(shown.low),
        of_row=of.classes,
        weights=of.weights,
        known={name: code for name, code in of.codes.items() if name not in open_},
        boxes=boxes,
        hidden=hidden,
    )


def in_what_is_shown(
    prepared: ClassInput, shown: ShownTable, options: ClassOptions
) -> tuple[ClassInput, ShownTable]:
    """The same without values that only the rows that were left out have."""
    assert shown.kept is not None  # noqa: S101
    less, found = without_removed(prepared, shown.kept)
    low, high = shown.low.copy(), shown.high.copy()
    for j, name in enumerate(options.qi):
        order = prepared.orders.get(name)
        low[:, j], high[:, j] = moved_box(found[name], order, low[:, j], high[:, j])
    of = shown.histograms
    kept = [found[name].kept for name in options.sensitive]
    counts = tuple(c if k.all() else c[:, k] for c, k in zip(of.counts, kept, strict=True))
    overall = tuple(c if k.all() else c[k] for c, k in zip(of.overall, kept, strict=True))
    histograms = replace(of, counts=counts, overall=overall)
    return less, ShownTable(shown.of_row, None, low, high, histograms)


def ranges_of(prepared: ClassInput, shown: ShownTable, options: ClassOptions) -> dict[str, Labels]:
    """What is shown of the quasi-identifiers that some class has a range of."""
    return {
        name: labels(
            prepared.schema[name],
            prepared.levels.get(name),
            prepared.orders.get(name),
            shown.low[:, j],
            shown.high[:, j],
        )
        for j, name in enumerate(options.qi)
        if (shown.low[:, j] < shown.high[:, j]).any()
    }


def parameters_of(
    prepared: ClassInput,
    found: FoundGrouping | RegionGrouping,
    shown: ShownTable,
    options: ClassOptions,
    ranges: Mapping[str, Labels],
    removed: int,
) -> ClassParameters:
    """How rows were grouped and are shown, for the manifest."""
    generalized = options.recoded == "generalize"
    return ClassParameters(
        recode=options.recoded,
        qi=list(options.qi),
        sensitive=list(options.sensitive),
        insensitive=list(options.insensitive),
        exact=[name for name in options.qi if generalized and name not in ranges],
        classes=len(shown.low),
        class_column=class_column(prepared.schema.names),
        orders={name: order.tolist() for name, order in prepared.orders.items()},
        by_frequency=by_frequency(prepared.schema, prepared.levels, options),
        groups={
            name: {text: list(ends) for text, ends in range_.groups.items()}
            for name, range_ in ranges.items()
            if range_.groups
        },
        cuts=options.cuts_made,
        relaxed=options.relaxed,
        levels=found.chosen if isinstance(found, FoundGrouping) else None,
        population=shown.histograms.population is not None,
        removed=removed,
    )


def manifest_of(
    prepared: ClassInput, shown: ShownTable, options: ClassOptions, parameters: ClassParameters
) -> ClassManifest:
    """The manifest of a release whose files are still to be written."""
    schema = prepared.schema
    return ClassManifest(
        voile=__version__,
        name=prepared.name,
        method=options.method,
        parameters=parameters,
        guarantee=ClassGuarantee(
            requirements=[
                required(requirement, shown.histograms, options)
                for requirement in prepared.requirements
            ],
            unit=UNIT,
        ),
        simulated=options.simulate_seed is not None,
        nulls=options.nulls,
        disclosed=grouped_disclosed(schema, parameters, options.nulls),
        public_rows=shown.rows,
        rows=shown.rows,
        domain_size=str(schema.size),
        attributes=schema.to_dict()["attributes"],
        files=[],
    )


def required(requirement: Requirement, histograms: Histograms, options: ClassOptions) -> Required:
    """A requirement with its worst value over the classes."""
    number = requirement.attribute
    return Required(
        requirement=requirement.to_dict(),
        attribute=None if number is None else options.sensitive[number],
        measured=requirement.worst(requirement.measured(histograms)),
    )


def write_rows(
    folder: Path,
    manifest: ClassManifest,
    prepared: ClassInput,
    shown: ShownTable,
    ranges: Mapping[str, Labels],
) -> list[File]:
    """The rows in the order of their classes, in files of a few million."""
    schema = shown_schema(manifest, {name: found.texts for name, found in ranges.items()})
    (folder / "data").mkdir()
    files = []
    texts = {name: found.of_class for name, found in ranges.items()}
    keys = (some for part in shown.parts(prepared) for some in part.keys(schema, texts, FILE_ROWS))
    for number, some in enumerate(in_groups(keys, FILE_ROWS)):
        path = folder / "data" / f"part-{number:05d}.parquet"
        files.append(file_entry(folder, path, write_part(path, schema, iter([some]))))
    return files


def write_boxes(
    folder: Path,
    manifest: ClassManifest,
    shown: ShownTable,
    ranges: Mapping[str, Labels],
    options: ClassOptions,
) -> File:
    """Each class with its rows and, of every generalized column, its range in words and places."""
    columns: list[Any] = [np.arange(len(shown.low), dtype=np.int64), shown.histograms.rows]
    if shown.histograms.population is not None:
        columns.append(shown.histograms.population)
    for name, found in ranges.items():
        j = list(options.qi).index(name)
        columns.append(pa.array(found.texts).take(pa.array(found.of_class)))
        columns += [shown.low[:, j], shown.high[:, j]]
    table = pa.table(columns, schema=class_columns(manifest))
    return written(folder, CLASS_FILES, table)


def write_sensitive(
    folder: Path, manifest: ClassManifest, prepared: ClassInput, shown: ShownTable
) -> File:
    """How many rows of each class have which sensitive values."""
    names = manifest.parameters.sensitive
    parts = zip(*(part.cells(names) for part in shown.parts(prepared)), strict=True)
    listed, of_class, counts = (np.concatenate(found, axis=-1) for found in parts)
    found, classes, rows = cells_by_class(of_class, listed, counts)
    part = prepared.schema.select(names)
    table = tuples(part, list(found)).add_column(
        0,
        pa.field(manifest.parameters.class_column, pa.int64(), nullable=False),
        [classes.astype(np.int64)],
    )
    counted = pa.field(manifest.rows_column, pa.int64(), nullable=False)
    table = table.append_column(counted, [rows])
    wanted = [table.schema.field(0), *arrow_schema(part), counted]
    return written(folder, SENSITIVE_FILES, table.cast(pa.schema(wanted)))


def written(folder: Path, where: str, table: pa.Table) -> File:
    """Write a table as the one file of a folder."""
    (folder / where).mkdir()
    path = folder / where / "part-00000.parquet"
    pq.write_table(table, path, compression="zstd", store_schema=False, write_statistics=False)
    return file_entry(folder, path, int(table.num_rows))


# ----------------------------------------------------------------------
# from classes that were found to a release, and what the steward is shown of it


@dataclass(frozen=True)
class ClassPublication(PublishResult):
    """A table of classes that was published."""

    release: ClassRelease

    @property
    def dropped(self) -> int:
        """Rows that were left out for a NULL."""
        return self.rows_in - self.release.rows_behind

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, with the classes and what they have."""
        manifest = self.release.manifest
        return {
            **super().to_dict(),
            "classes": manifest.parameters.classes,
            "left_out": {"nulls": self.dropped, "suppressed": manifest.parameters.removed},
            "requirements": {
                manifest.named(entry): entry.measured for entry in manifest.guarantee.requirements
            },
        }

    def facts(self) -> list[tuple[str, str]]:
        """Rows, classes, promises and levels, by name."""
        manifest = self.release.manifest
        p = manifest.parameters
        kept = zip(manifest.guarantee.requirements, manifest.requirements, strict=True)
        levels = ", ".join(f"{name} {level}" for name, level in (p.levels or {}).items())
        return [
            ("rows", f"{self.rows_in:,} in, {manifest.rows:,} out"),
            *([("left out", self._left_out)] if self.rows_in > manifest.rows else []),
            ("classes", f"{p.classes:,} ({manifest.method}, {p.recode}), of "
                        f"{manifest.rows / p.classes:,.1f} rows on average"),
            *[("promise", f"{r.spelling}{of(entry.attribute)}: the worst class has "
                          f"{entry.measured:.4g}") for entry, r in kept],
            *([("levels", levels)] if levels else []),
        ]  # fmt: skip

    @property
    def _left_out(self) -> str:
        """How many rows are not in the release, by why, with their share."""
        removed = self.release.manifest.parameters.removed
        why = {"no class could hold them": removed, "a value is missing": self.dropped}
        share = (self.rows_in - self.release.rows) / self.rows_in
        parts = [f"{rows:,} ({reason})" for reason, rows in why.items() if rows]
        return f"{' and '.join(parts)}, {share:.2g} of the rows"


Grouped = ClassPublication
"""Its name in `voile.publishing`."""


def of(attribute: str | None) -> str:
    """' of ATTRIBUTE', or nothing."""
    return "" if attribute is None else f" of {attribute}"


@dataclass(frozen=True, eq=False)
class ClassDraft(WrittenDraft):
    """Classes that were found, and are ready to be written."""

    prepared: ClassInput
    found: FoundGrouping | RegionGrouping
    options: ClassOptions

    def write(self, folder: Path) -> ClassManifest:
        """Write the files of the classes."""
        return write_classes(folder, self.prepared, self.found, self.options)

    def done(self, release: ClassRelease) -> ClassPublication:
        """The release, with notes on rows that were left out and on promises that hide nothing."""
        prepared, removed = self.prepared, release.manifest.parameters.removed
        notes = list(prepared.notes)
        if removed:
            left_out = counted(removed, "row", "were")
            notes.append(f"{left_out} left out, for no class could hold them")
        shown = self.options.recoded == "bucketize"
        if shown and all(r.attribute is None for r in prepared.requirements):
            notes.append("quasi-identifiers are shown as they are: k alone hides nothing; ask for "
                         f"{spelled('l')}, {spelled('t')} or {spelled('semantic')}")  # fmt: skip
        return ClassPublication(release, prepared.rows, prepared.rows - release.rows, tuple(notes))


def class_draft(
    table: Table, options: ClassOptions, _target: Path, progress: Progress
) -> ClassDraft:
    """Read the table and find its classes."""
    prepared = prepare(table, options, progress)
    found = find(prepared, options) if prepared.afar is None else cut_afar(prepared, options)
    return ClassDraft(prepared, found, options)


def group_table(
    table: Any,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    sign: KeySource | None = None,
    register: Registrar | None = None,
    **options: Unpack[GroupTableKeywords],
) -> ClassPublication:
    """Group rows and publish the classes, with notes for the steward. `to` names the folder."""
    checked = ClassOptions(**options)
    kind = kind_of(checked.method)
    done = publish(
        kind,
        table,
        checked,
        to=to,
        overwrite=overwrite,
        progress=progress,
        register=register,
        sign=sign,
    )
    return cast("ClassPublication", done)
