"""Rows that were grouped into classes, and what can be counted from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.arrow import numpy_array
from voile.engines import open_domain, open_rows
from voile.errors import ReleaseError, UsageError, spelled
from voile.kinds.classes.manifest import (
    CLASS_FILES,
    SENSITIVE_FILES,
    UNIT,
    ClassManifest,
    ClassParameters,
    grouped_disclosed,
)
from voile.kinds.classes.tally import ClassTally, ShownColumns, check_cells, tally_of
from voile.kinds.parquet import (
    arrow_schema,
    codes_beside,
    one_array,
    read_beside,
    read_parquet,
)
from voile.kinds.release import QueryOptions, Release, Roles
from voile.options.choices import Cuts
from voile.privacy.requirements import Histograms, Requirement
from voile.privacy.requirements.requirement import class_statements, classes_not_promised
from voile.recoding import Shown
from voile.recoding.grouping import cells_by_class
from voile.recoding.labels import RangeWords, agrees
from voile.schema import Attribute, Schema, Values

if TYPE_CHECKING:
    from voile.answering.explanation import Explanation
    from voile.engines.rows import PublicDomain, ReleaseRows
    from voile.engines.table import Table
    from voile.estimate import Answer
    from voile.kinds.classes.cells import ClassSource
    from voile.kinds.evaluation import LossEvidence, Truth
    from voile.kinds.exported import ExportChoice, ExportTable
    from voile.privacy.guarantees.statements import Statement
    from voile.query.query import Query

# ----------------------------------------------------------------------
# the files of a release of classes: which columns each has


Codes = npt.NDArray[np.int32]
Method = Literal["uniform", "entropy"]


@dataclass(frozen=True, eq=False)
class Ranges:
    """What one generalized column shows of each class."""

    texts: tuple[str, ...]
    text: Codes
    """(classes,): the number of the class's text."""
    low: Codes
    high: Codes


@dataclass(frozen=True, eq=False)
class ClassBox:
    """What is shown of one generalized column: an interval of positions for each class."""

    order: Codes
    """(size,): the code of the schema's domain at each position."""
    low: Codes
    """(classes,): the first position of the class."""
    high: Codes
    """(classes,): the last position, which belongs to it."""


@dataclass(frozen=True, eq=False)
class HiddenRecords:
    """The sensitive records of every bucket: how many of its rows have each, not which."""

    of_class: Codes
    """(records,): ascending."""
    codes: Mapping[str, Codes]
    """For each sensitive column, the code of every record."""
    rows: npt.NDArray[np.int64]
    """(records,): how many rows of the class have this record."""


def class_columns(manifest: ClassManifest) -> Any:
    """The columns of classes/."""
    fields = [pa.field(manifest.rows_column, pa.int64(), nullable=False)]
    if manifest.parameters.population:
        fields.append(pa.field(manifest.population_column, pa.int64(), nullable=False))
    for name in manifest.generalized:
        fields.append(pa.field(name, pa.string(), nullable=False))
        fields += [pa.field(end, pa.int32(), nullable=False) for end in manifest.end_columns(name)]
    return pa.schema([*arrow_schema(Schema((manifest.class_attribute,))), *fields])


def shown_schema(manifest: ClassManifest, texts: Mapping[str, tuple[str, ...]]) -> Schema:
    """The columns that data/ has: ranges are texts."""
    schema, p = manifest.schema_, manifest.parameters
    names = [*p.qi, *p.insensitive, *(p.sensitive if p.recode == "generalize" else ())]
    shown = [
        Attribute(name, "categorical", Values(texts[name])) if name in texts else schema[name]
        for name in names
    ]
    return Schema((manifest.class_attribute, *shown))


# ----------------------------------------------------------------------
# rows that were grouped into classes, and what can be counted from them


BYTES_BESIDE = 16
"""Of memory for classes/ or sensitive/, for each byte of a large release."""
METHODS: tuple[str, ...] = get_args(Method)


class ClassRelease(Release):
    """A table of which rows that are alike were made a class."""

    kind = "a table of classes"
    has_losses = True
    rows_are = (
        "rows of classes: what could identify a person is coarser, or apart from what is "
        "sensitive, so that it fits every person of a class"
    )
    ways = METHODS
    instead = "`voile risk` and `voile loss` measure it; `voile query` counts from it"
    manifest: ClassManifest

    @property
    def rows(self) -> int:
        """The number of rows that are shown."""
        return self.manifest.rows

    @property
    def qi(self) -> list[str]:
        """The quasi-identifiers."""
        return self.manifest.parameters.qi

    @property
    def sensitive(self) -> list[str]:
        """The sensitive attributes."""
        return self.manifest.parameters.sensitive

    @property
    def requirements(self) -> list[Requirement]:
        """What every class meets."""
        return self.manifest.requirements

    def promised(self) -> list[Statement]:
        """The requirements, as statements."""
        return class_statements(
            self.requirements,
            self.sensitive,
            bucketized=self._bucketized,
            simulated=self.manifest.simulated,
        )

    def not_promised(self) -> list[Statement]:
        """What classes must not be taken to promise."""
        return classes_not_promised(bucketized=self._bucketized)

    @property
    def _bucketized(self) -> bool:
        return self.manifest.parameters.recode == "bucketize"

    @property
    def unprotected(self) -> list[str]:
        """Columns that every row shows as they are, which no requirement is about."""
        return [*(self.qi if self._bucketized else ()), *self.manifest.parameters.insensitive]

    # ------------------------------------------------------------------ measuring it

    @property
    def roles(self) -> Roles:
        """The roles that the manifest states."""
        return Roles(self.qi, self.sensitive, stated=True)

    @property
    def rows_behind(self) -> int:
        """The rows that are shown, and those that were left out."""
        return self.rows + self.manifest.parameters.removed

    def domain_behind(self, table: Table) -> Schema:
        """The domain of the table, with the values of rows that were left out."""

        from voile.kinds.classes.options import ClassOptions  # noqa: PLC0415
        from voile.kinds.classes.reading import grouping_schema  # noqa: PLC0415  (for measuring)

        p = self.manifest.parameters
        if not p.removed:
            return self.schema
        options = ClassOptions(
            qi=p.qi, sensitive=p.sensitive, insensitive=p.insensitive, nulls=self.manifest.nulls
        )
        whole, _ = grouping_schema(table, options)
        return Schema(tuple(whole[a.name] if a.public == "active" else a for a in self.schema))

    def loss_evidence(self, truth: Truth) -> LossEvidence:
        """Its classes, and what they show about people."""

        from voile.kinds.classes.losses import class_evidence  # noqa: PLC0415  (of this class)

        return class_evidence(self, truth)

    # ------------------------------------------------------------------ its files

    def columns_of(self, path: str) -> Any:
        """The Arrow schema of a file of data/, classes/ or sensitive/."""
        if path.startswith(CLASS_FILES):
            return class_columns(self.manifest)
        if path.startswith(SENSITIVE_FILES):
            names = self.manifest.parameters.sensitive
            listed = arrow_schema(
                Schema((self.manifest.class_attribute, *self.schema.select(names)))
            )
            rows = pa.field(self.manifest.rows_column, pa.int64(), nullable=False)
            return pa.schema([*listed, rows])
        return arrow_schema(self.shown_schema)

    def counts_rows(self, path: str) -> bool:
        """Whether a file is one of data/."""
        return not path.startswith((CLASS_FILES, SENSITIVE_FILES))

    @cached_property
    def shown_schema(self) -> Schema:
        """The columns of data/: the class, and what is shown of the table's columns."""
        return shown_schema(self.manifest, {n: r.texts for n, r in self.ranges.items()})

    @cached_property
    def ranges(self) -> dict[str, Ranges]:
        """What is shown of generalized columns, by name."""
        if not self.manifest.generalized:
            return {}
        table = self._class_table
        numbers = numpy_array(table.column(0))
        if not np.array_equal(numbers, np.arange(self.manifest.parameters.classes)):
            raise ReleaseError("classes/ does not list every class once, in order")
        found = {}
        for name in self.manifest.generalized:
            shown = one_array(table.column(name))
            low, high = (numpy_array(table.column(n)) for n in self.manifest.end_columns(name))
            texts = tuple(shown.dictionary.to_pylist())
            found[name] = Ranges(texts, numpy_array(shown.indices), low, high)
        return found

    @cached_property
    def _class_table(self) -> Any:
        """Every class of a generalized release: its rows, its ranges in words and in places."""
        return complete(self._read_beside(CLASS_FILES), CLASS_FILES)

    def _read_beside(self, where: str) -> Any:
        """The one file of classes/ or sensitive/."""
        files = self._parquet(where)
        if len(files) != 1:
            raise ReleaseError(f"{where} has {len(files)} files, not one")
        on_disk = sum(file.bytes for file in self.manifest.files)
        return read_beside(files[0], size_on_disk=on_disk, per_byte=BYTES_BESIDE)

    @property
    def stated_rows(self) -> npt.NDArray[np.int64]:
        """Rows of every class, as classes/ says."""
        return numpy_array(self._class_table.column(self.manifest.rows_column))

    @cached_property
    def shown_codes(self) -> dict[str, Codes]:
        """Every row's class, and its place in what each column shows."""
        return dict(zip(self.shown_schema.names, self._rows.codes(), strict=True))

    @cached_property
    def _rows(self) -> ReleaseRows:
        """The rows with the columns that they show."""
        return open_rows(self._parts, self.shown_schema)

    @property
    def of_row(self) -> Codes:
        """The class of every row."""
        return self.shown_codes[self.manifest.parameters.class_column]

    @cached_property
    def known(self) -> dict[str, Codes]:
        """Columns that are shown as they are, as codes of the schema."""
        coded = self.shown_codes
        column, hidden = self.manifest.parameters.class_column, self.manifest.generalized
        return {name: code for name, code in coded.items() if name != column and name not in hidden}

    @cached_property
    def hidden(self) -> HiddenRecords | None:
        """The sensitive records of every class, where it is hidden whose they are."""
        p = self.manifest.parameters
        if p.recode == "generalize":
            return None
        table = complete(self._read_beside(SENSITIVE_FILES), SENSITIVE_FILES, p.sensitive)
        of_class = numpy_array(table.column(p.class_column))
        if of_class.min(initial=0) < 0 or of_class.max(initial=0) >= p.classes:
            raise ReleaseError("sensitive/ names a class that is not there")
        return HiddenRecords(
            of_class=of_class.astype(np.int32),
            codes={
                name: codes_beside(table.column(name), self.schema[name]).astype(np.int32)
                for name in p.sensitive
            },
            rows=numpy_array(table.column(self.manifest.rows_column)),
        )

    def order(self, name: str) -> Codes:
        """The codes of a column in its order: position → code."""
        listed = self.manifest.parameters.orders.get(name)
        return np.array(
            np.arange(self.schema[name].size) if listed is None else listed, dtype=np.int32
        )

    # ------------------------------------------------------------------ what it shows, as numbers

    @cached_property
    def tally(self) -> ClassTally:
        """What the rows show of each class, counted as a stream."""
        p = self.manifest.parameters
        shown = self.shown_schema
        return tally_of(
            self._rows.coded(),
            ShownColumns(
                shown.names,
                p.class_column,
                p.exact,
                {name: ranges.text for name, ranges in self.ranges.items()},
                [(n, self.schema[n].size) for n in p.sensitive if n in shown.names],
            ),
            p.classes,
        )

    @cached_property
    def histograms(self) -> Histograms:
        """Rows and sensitive values of every class."""
        p, number = self.manifest.parameters, self.manifest.parameters.classes
        sizes = [self.schema[name].size for name in p.sensitive]
        check_cells(number, sizes, sum(file.bytes for file in self.manifest.files))
        rows, hidden = self.tally.rows, self.hidden
        if hidden is None:
            counted = self.tally.counts
        else:
            keys = [
                hidden.of_class.astype(np.int64) * size + hidden.codes[name]
                for name, size in zip(p.sensitive, sizes, strict=True)
            ]
            counted = [
                np.bincount(key, hidden.rows, number * size).astype(np.int64)
                for key, size in zip(keys, sizes, strict=True)
            ]
        counts = tuple(c.reshape(number, size) for c, size in zip(counted, sizes, strict=True))
        population = None
        if p.population:
            population = numpy_array(self._class_table.column(self.manifest.population_column))
        return Histograms(rows, counts, tuple(c.sum(axis=0) for c in counts), population)

    @cached_property
    def places(self) -> dict[str, Codes]:
        """Quasi-identifiers that are shown as they are, as positions in their order, by row."""
        found = {}
        for name in self.qi:
            if name in self.known:
                place = np.empty(self.schema[name].size, dtype=np.int32)
                place[self.order(name)] = np.arange(len(place), dtype=np.int32)
                found[name] = place[self.known[name]]
        return found

    def boxes(self) -> tuple[Codes, Codes]:
        """(classes, quasi-identifiers): the first and last position of every class."""
        number = self.manifest.parameters.classes
        low = np.empty((number, len(self.qi)), dtype=np.int32)
        high = np.empty_like(low)
        starts = np.searchsorted(self.of_row, np.arange(number))  # rows are in order of class
        for j, name in enumerate(self.qi):
            if name in self.ranges:
                low[:, j], high[:, j] = self.ranges[name].low, self.ranges[name].high
            else:
                low[:, j] = np.minimum.reduceat(self.places[name], starts)
                high[:, j] = np.maximum.reduceat(self.places[name], starts)
        return low, high

    def shown(self) -> Shown:
        """For measuring losses: positions are those of `order`."""
        p = self.manifest.parameters
        low, high = self.boxes()
        sizes = tuple(self.schema[name].size for name in p.qi)
        if p.recode == "generalize":
            return Shown(p.recode, sizes, low, high, self.histograms)
        places = np.stack([self.places[name] for name in p.qi])
        return Shown(
            p.recode, sizes, low, high, self.histograms,
            *cells_by_class(self.of_row, places, np.ones(self.rows, dtype=np.int64)),
        )  # fmt: skip

    # ------------------------------------------------------------------ checking it

    def foreign_attribute(self) -> str | None:
        """A column of data/ with values outside its domain."""
        return self._rows.outside()

    def check_terms(self) -> None:
        """Measure again all that is promised."""
        check_grouped(self)

    # ------------------------------------------------------------------ counting from it

    def _check_options(self, options: QueryOptions) -> None:
        if options.refine:
            raise UsageError(
                "a table of classes is not refined",
                hint=f"try {spelled('method', 'entropy')}",
            )
        checked_method(options.method)

    def _answer(self, query: Query, view: PublicDomain, options: QueryOptions) -> Answer:
        from voile.kinds.classes.answering import answer_classes  # noqa: PLC0415

        return answer_classes(
            query,
            self._source(view, options),
            options.confidence,
            simultaneous=options.simultaneous,
        )

    def _explain(self, query: Query, view: PublicDomain, options: QueryOptions) -> Explanation:
        from voile.kinds.classes.explanation import explain_classes  # noqa: PLC0415

        return explain_classes(query, self._source(view, options))

    def _opened_view(self, which: str = "current") -> PublicDomain:  # noqa: ARG002
        return open_domain(self.schema)  # its rows are ranges, on which no condition is evaluated

    def _source(self, view: PublicDomain, options: QueryOptions) -> ClassSource:
        from voile.kinds.classes.cells import ClassSource  # noqa: PLC0415

        p = self.manifest.parameters
        return ClassSource(
            engine=view,
            domain=self._sums(view, options.memory, exact=True),
            schema=self.schema,
            rows=self.rows,
            recode=p.recode,
            classes=p.classes,
            of_row=self.of_row,
            known=self.known,
            boxes={n: ClassBox(self.order(n), r.low, r.high) for n, r in self.ranges.items()},
            hidden=self.hidden,
            removed=p.removed,
            method=checked_method(options.method),
            error_model=p.error_model,
            kept=self._kept,
        )

    @cached_property
    def _kept(self) -> dict[str, Any]:
        """What was fitted once is kept as long as the release is open."""
        return {}

    # ------------------------------------------------------------------ its rows

    def to_arrow(self) -> Any:
        """The rows as they are shown; if bucketized, with their class, by which `hidden_to_arrow`
        has the sensitive values."""
        wanted, p = arrow_schema(self.shown_schema), self.manifest.parameters
        tables = [read_parquet(part).cast(wanted) for part in self._parts]
        rows = pa.concat_tables(tables)
        return rows if p.recode == "bucketize" else rows.drop_columns([p.class_column])

    def hidden_to_arrow(self) -> Any:
        """Bucketized: how many rows of each class have which sensitive values."""
        if self.hidden is None:
            raise UsageError("rows are generalized: nothing is hidden", hint="use to_arrow()")
        tables = [read_parquet(f) for f in self._parquet(SENSITIVE_FILES)]
        return pa.concat_tables(tables)

    def exported(self, choice: ExportChoice) -> Sequence[ExportTable]:
        """The rows as they are shown; if bucketized, the sensitive values of the classes beside."""
        from voile.kinds.exported import ExportTable, attributes_of  # noqa: PLC0415

        self.refuse_choice(choice)
        rows, p = self.to_arrow(), self.manifest.parameters
        about = f"Rows in classes, as the release shows them. {self.counting_hint}"
        known = attributes_of(rows.schema, self.schema)
        shown = ExportTable(self.name, rows.schema, [rows], about, known)
        if p.recode != "bucketize":
            return [shown]
        hidden = self.hidden_to_arrow()
        beside = (
            f"How many rows of each class ({p.class_column}) have which sensitive values. Which "
            f"row has which is not shown. {self.counting_hint}"
        )
        known = attributes_of(hidden.schema, self.schema)
        return [
            shown,
            ExportTable(f"{self.name}_sensitive", hidden.schema, [hidden], beside, known),
        ]

    @property
    def files(self) -> list[Path]:
        """The files of data/."""
        return self._parts


def complete(table: Any, where: str, nullable: Sequence[str] = ()) -> Any:
    """The table, refused where it lacks a figure."""
    for name in table.column_names:
        if name not in nullable and table.column(name).null_count:
            raise ReleaseError(f"{where} has no value of {name!r} in some row")
    return table


def checked_method(method: str | None) -> Method:
    """A method of answering; refused where it is not known."""
    for known in get_args(Method):
        if method == known:
            return known  # type: ignore[no-any-return]
    if method is None:
        return "uniform"
    raise UsageError(f"method {method!r} is not known", hint=f"use {' or '.join(METHODS)}")


# ----------------------------------------------------------------------
# checking classes of rows: on what is shown, as anyone who opens the files sees it


TOLERANCE = 1e-9
"""By which what is measured again may differ: sums of floats in another order."""


def check_grouped(release: ClassRelease) -> None:
    """Everything that is promised, measured again."""
    manifest = release.manifest
    check_method(manifest)
    check_sensitive(release)
    check_order(release)
    for name, ranges in release.ranges.items():
        check_ranges(release, name, ranges)
    check_levels(release)
    check_rows(release)
    check_requirements(release)
    if manifest.disclosed != grouped_disclosed(release.schema, manifest.parameters, manifest.nulls):
        raise ReleaseError("manifest.json does not say all that the release discloses")
    if manifest.public_rows != manifest.rows:
        raise ReleaseError("manifest.json: every row that is shown is one of the table's")


def check_method(manifest: ClassManifest) -> None:
    """What is stated of how rows were grouped is something that the method does."""
    from voile.kinds.classes.options import BUCKETS  # noqa: PLC0415  (for verifying)

    method, p = manifest.method, manifest.parameters
    cutting, levelling = method == "mondrian", method in ("fulldomain", "suppress")
    contradicted = {
        "cuts": p.cuts not in (get_args(Cuts) if cutting else (None,)),
        "relaxed": p.relaxed and not (cutting and p.cuts == "median" and not p.population),
        "levels": not levelled(p) if levelling else p.levels is not None,
        "recode": method in BUCKETS and p.recode != "bucketize",
        "classes": method == "trivial" and p.classes != 1,
        "removed": p.removed > 0 and not levelling,
        "population": p.population and p.recode == "bucketize",
        "exact": p.exact != [n for n in p.qi if n in p.exact]
        or (p.recode == "bucketize" and bool(p.exact)),
        "groups": not set(p.groups) <= set(manifest.generalized),
    }
    for name, wrong in contradicted.items():
        if wrong:
            raise ReleaseError(
                f"manifest.json: {name} = {getattr(p, name)!r} is not what the method {method!r} "
                "does"
            )


def levelled(parameters: ClassParameters) -> bool:
    """Whether every quasi-identifier has a level."""
    levels = parameters.levels or {}
    return list(levels) == parameters.qi and min(levels.values(), default=0) >= 0


def check_levels(release: ClassRelease) -> None:
    """A column at level 0 is shown as it is, but for the one class of suppressed rows."""
    levels = release.manifest.parameters.levels or {}
    for name, ranges in release.ranges.items():
        if levels.get(name) == 0 and (ranges.low < ranges.high).sum() > 1:
            raise ReleaseError(f"classes/ shows ranges of {name!r}, which is stated at level 0")


def check_requirements(release: ClassRelease) -> None:
    """Every class meets every requirement, and the worst has what is stated."""
    found = release.histograms
    entries = release.manifest.guarantee.requirements
    if release.manifest.guarantee.unit != UNIT:
        raise ReleaseError("manifest.json: the guarantee is about something else than classes")
    sensitive = release.manifest.parameters.sensitive
    for entry, requirement in zip(entries, release.requirements, strict=True):
        place = requirement.attribute
        if place is not None and not 0 <= place < len(sensitive):
            raise ReleaseError("manifest.json: a requirement is about no sensitive column")
        if entry.attribute != (None if place is None else sensitive[place]):
            raise ReleaseError(f"manifest.json: {requirement.spelling} names another column")
        if not requirement.met(found).all():
            worst = int(np.flatnonzero(~requirement.met(found))[0])
            raise ReleaseError(f"class {worst} does not meet {requirement.spelling}")
        measured = requirement.worst(requirement.measured(found))
        if not abs(measured - entry.measured) <= TOLERANCE:  # as NaN is not
            raise ReleaseError(
                f"manifest.json: {requirement.spelling}: the classes have {measured:.6g}, not "
                f"{entry.measured:.6g}"
            )


def check_order(release: ClassRelease) -> None:
    """Classes are in order, all there, and look different."""
    if not release.tally.in_order or not release.histograms.rows.all():
        raise ReleaseError("data/ is not in the order of the classes, or leaves one out")
    p = release.manifest.parameters
    if p.recode == "generalize":
        check_alike(release)
        shown = [end for r in release.ranges.values() for end in (r.low, r.high)]
        if distinct_rows([*shown, *release.tally.exact.values()]) < p.classes:
            raise ReleaseError("two classes show the same ranges, and so are one")


def check_alike(release: ClassRelease) -> None:
    """Rows of a class show one value of every column that is shown as it is.

    With ranges that differ between classes, those who look alike are then those of a class.
    """
    for name, number in release.tally.several.items():
        raise ReleaseError(
            f"class {number} shows several values of {name!r}: its rows do not look alike",
            hint="do not use it: fewer people than it says are alike",
        )


def distinct_rows(columns: Sequence[npt.NDArray[Any]]) -> int:
    """How many different rows these columns have; one where there is none."""
    if not columns:
        return 1
    order = np.lexsort(columns)
    new = np.zeros(len(order) - 1, np.bool_)
    for column in columns:
        new |= np.diff(column[order]) != 0
    return 1 + int(new.sum())


def check_sensitive(release: ClassRelease) -> None:
    """sensitive/ lists values of the domain, each once in a class, with at least one row."""
    hidden = release.hidden
    if hidden is None:
        return
    for name, codes in hidden.codes.items():
        if (codes < 0).any():
            raise ReleaseError(f"sensitive/: {name!r} has values outside the domain of the schema")
    if (hidden.rows < 1).any():
        raise ReleaseError("sensitive/ has a value that no row has")
    listed = np.stack([hidden.of_class, *hidden.codes.values()], axis=1)
    if len(np.unique(listed, axis=0)) < len(listed):
        raise ReleaseError("sensitive/ lists a value of a class twice")


def check_ranges(release: ClassRelease, name: str, ranges: Ranges) -> None:
    """A class shows one range of the column, and every text says which one that is."""
    if name in release.tally.misshown:
        raise ReleaseError(f"data/: {name!r} does not show what classes/ says")
    attribute, p = release.schema[name], release.manifest.parameters
    inside = (ranges.low >= 0) & (ranges.low <= ranges.high) & (ranges.high < attribute.size)
    if not inside.all():
        raise ReleaseError(f"classes/: a range of {name!r} is not one of its domain")
    pairs = np.unique(np.stack([ranges.text, ranges.low, ranges.high]), axis=1)
    if pairs.shape[1] != len(ranges.texts):
        raise ReleaseError(f"classes/: a text of {name!r} stands for several ranges")
    order = release.order(name) if name in p.orders else None
    words = RangeWords(attribute, None, order)
    for number, low, high in pairs.T.tolist():
        text = ranges.texts[number]
        if not agrees(text, (low, high), words, p.groups.get(name, {})):
            raise ReleaseError(f"classes/: {text!r} of {name!r} is not the range {low} … {high}")


def check_rows(release: ClassRelease) -> None:
    """What stands beside the rows counts as many of them."""
    p, rows, hidden = release.manifest.parameters, release.histograms.rows, release.hidden
    if p.recode == "generalize" and not np.array_equal(release.stated_rows, rows):
        raise ReleaseError("classes/ does not agree with the rows in data/")
    if hidden is not None:
        stated = np.bincount(hidden.of_class, hidden.rows, p.classes)
        if len(stated) != p.classes or not np.array_equal(stated, rows):
            raise ReleaseError("sensitive/ does not agree with the rows in data/")
