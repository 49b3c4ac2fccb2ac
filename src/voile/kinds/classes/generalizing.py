"""A table with coarser values, as a table: for those who want no release around it."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from voile.arrow import arrow_array, numpy_array
from voile.engines import connect
from voile.engines.table import Table
from voile.errors import PromiseError, UsageError, spelled
from voile.files import check_free, write_whole
from voile.formulas import is_formula
from voile.kinds.classes.finding import FoundGrouping, find, units_for
from voile.kinds.classes.options import ClassOptions, GeneralizeKeywords
from voile.kinds.classes.publishing import showing
from voile.kinds.classes.reading import ClassInput, check_roles, prepare, prepared_with
from voile.kinds.classes.recoding_file import Recoding, Texts, read_recoding, recoding_of
from voile.kinds.registration import Departure, Registrar, Registration
from voile.kinds.staging import check_outside
from voile.kinds.table_files import check_file, formula_cells, text_columns, without_formulas
from voile.privacy.requirements import Histograms, Requirement
from voile.progress import Progress, Silent
from voile.recoding.labels import labels
from voile.records import Record
from voile.schema import Keys, TupleIndex
from voile.schema.attribute import value_words
from voile.schema.index import code_type
from voile.units import counted

Codes = npt.NDArray[Any]
RANGES = {"voile": "ranges"}
"""By which columns that were made coarser are known."""


@dataclass(frozen=True, eq=False)
class GeneralizedTable(Record):
    """A table whose quasi-identifiers were made coarser, and what its classes have."""

    table: pa.Table
    """The columns as they were, in their order, but for identifiers; ranges as texts."""
    classes: int
    requirements: dict[str, float]
    """The requirements, as they were measured."""
    rows_in: int
    recoding: Recoding | None
    notes: tuple[str, ...]
    positions: npt.NDArray[np.int64]
    """The row of the table that was given which each row is. Never publish it."""
    in_order: bool
    """Whether rows are in the order that they had."""
    registration: Registration | None = None
    """The entry of the register that is written before the table is."""
    json_keys: ClassVar[tuple[str, ...]] = (
        "rows_in", "rows_out=table.num_rows", "classes", "requirements", "notes=all_notes",
        "registered", "register",
    )  # fmt: skip

    @property
    def all_notes(self) -> list[str]:
        """With what the register says, once the table is written."""
        return [*self.notes, *(self.registration.notes if self.registration else ())]

    @property
    def registered(self) -> bool:
        """Whether the table is in the register when it is written."""
        return self.registration is not None

    @property
    def register(self) -> Mapping[str, Any] | None:
        """What the register says of the data set; None where it has nothing."""
        return None if self.registration is None else self.registration.account

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame; needs pandas."""
        return self.table.to_pandas()

    def like(self, frame: Any) -> Any:
        """The same as a data frame of the library that the table came from, with its types.

        pandas' index is left out, unless rows are in their order: it may name people, or show
        which row is whose. Categories that no row has any more are left out, too.
        """
        library = type(frame).__module__.partition(".")[0]
        changed = [n for n in self.table.column_names if self.table.field(n).metadata]
        if library == "pandas":
            found = frame.iloc[self.positions][self.table.column_names].copy()
            for name in changed:
                found[name] = self.table.column(name).to_numpy(zero_copy_only=False)
            for name in found.columns:
                if found[name].dtype.name == "category":
                    found[name] = found[name].cat.remove_unused_categories()
            return found if self.in_order else found.reset_index(drop=True)
        if library == "polars":
            import polars  # noqa: PLC0415  (an optional package)

            picked = frame[self.positions.tolist()].select(self.table.column_names)
            texts: dict[str, Any] = {n: polars.from_arrow(self.table.column(n)) for n in changed}
            return picked.with_columns(**texts)
        return self.table

    @property
    def formulas(self) -> int:
        """How many of its texts a spreadsheet might compute."""
        columns = [pc.sum(formula_cells(c)).as_py() or 0 for c in text_columns(self.table).values()]
        return sum(columns) + sum(map(is_formula, self.table.column_names))

    def write(self, path: str | Path, *, overwrite: bool = False, csv_safe: bool = False) -> Path:
        """To a CSV or Parquet file, in one step; it is in the register before that.

        With `csv_safe`, texts of a CSV file that a spreadsheet would compute have an apostrophe
        in front.
        """
        target, buffer = Path(path), io.BytesIO()
        plain = self.table.replace_schema_metadata(None)
        check_file(target, overwrite=overwrite)
        if target.suffix.lower() == ".csv":
            pacsv.write_csv(without_formulas(plain) if csv_safe else plain, buffer)
        else:
            pq.write_table(plain, buffer, compression="zstd")
        if self.registration is None:
            return write_whole(target, buffer.getvalue(), overwrite=overwrite)
        self.registration.reserve(self._departure(path, buffer.getvalue()))
        try:
            written = write_whole(target, buffer.getvalue(), overwrite=overwrite)
        except UsageError:  # it is not in its place
            self.registration.stayed()
            raise
        self.registration.left()
        return written

    def _departure(self, path: str | Path, content: bytes) -> Departure:
        """What is written down of the table."""
        names = {name: name.partition(":") for name in self.requirements}
        return Departure(
            kind="a table with coarser values",
            method="generalize",
            name=Path(path).stem,
            digest=hashlib.sha256(content).hexdigest(),
            path=str(path),
            guarantee=[
                {"kind": kind, kind: self.requirements[name]} | ({"attribute": of} if of else {})
                for name, (kind, _, of) in names.items()
            ],
        )


Generalized = GeneralizedTable
"""Its name in `voile.publishing`."""


def generalize(
    table: Any,
    qi: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    *,
    apply: Recoding | str | Path | None = None,
    reusable: bool = False,
    keep_order: bool = False,
    progress: Progress | None = None,
    register: Registrar | None = None,
    **options: Unpack[GeneralizeKeywords],
) -> GeneralizedTable:
    """Make the quasi-identifiers of a table coarser until every class meets the requirements.

    Its options are those of `ClassOptions`: k, l, t, …, method, hierarchies, identifiers.
    `apply` is a saved recoding (or its file) that is applied instead; what it promised is checked
    anew on these rows. `reusable` shows the regions between cuts, which new rows can be given to,
    not the smallest ranges. Rows are sorted by class unless `keep_order`: their order
    may disclose something.
    """
    if "error_model" in options:
        raise UsageError(
            f"{spelled('error_model')} is for releases: a table has no place for it",
            hint=f"leave it out, or publish a release with {spelled('method', 'mondrian')}",
        )
    source = connect(table)
    given: dict[str, Any] = {"qi": qi, "sensitive": sensitive, **options}
    if apply is not None:
        recoding = apply if isinstance(apply, Recoding) else read_recoding(apply)
        made = applied(source, recoding, given)
    else:
        made = fitted(source, ClassOptions(**given), progress or Silent(), reusable=reusable)
    found = assembled(made, len(source), keep_order=keep_order)
    if register is None:
        return found
    name = str(given.get("name") or source.name)
    return replace(found, registration=register.begin(source, name))


@dataclass(frozen=True, eq=False)
class RecodedRows:
    """Rows that were given classes."""

    qi: Sequence[str]
    rows: pa.Table
    positions: npt.NDArray[np.int64]
    classes: Codes
    texts: Texts
    kept: npt.NDArray[np.bool_]
    """The rows that are shown."""
    measured: dict[str, float]
    recoding: Recoding | None
    notes: tuple[str, ...]


def fitted(
    source: Table, options: ClassOptions, progress: Progress, *, reusable: bool
) -> RecodedRows:
    """Find classes in the rows, and what each of them shows."""
    if options.recoded == "bucketize":
        raise UsageError(
            "buckets are two tables, and no table with coarser values",
            hint=f"use `voile publish`, which writes both, or {spelled('method', 'mondrian')}",
        )
    check_roles(source, options)
    if reusable and options.cuts_made == "boxes" and options.cuts is None:
        options = options.but(cuts="certainty")  # new rows belong to regions, which boxes leave not
    rows, positions = source.numbered_rows(
        in_order(source, options), drop_nulls=options.nulls == "drop"
    )
    cut = options.but(insensitive=(), identifiers=())  # those need no domain
    prepared = prepare(source.of(rows.select(cut.listed)), cut, progress, as_read=True)
    found = find(prepared, options)
    recoding = recoding_of(prepared, found, options) if reusable else None
    if recoding is None:
        texts = texts_of(source, prepared, found, options)
    else:
        _, texts = recoding.applied(prepared.codes)
    classes = found.classes
    kept = np.ones(len(classes), bool) if found.shown is None else found.shown[classes]
    has = measured(prepared.requirements, showing(found).histograms, options)
    coarse = as_measured(source, prepared, options)
    notes = (*prepared.notes, *(f"{name} is shown as it was measured" for name in coarse))
    shown = {**texts, **coarse}
    return RecodedRows(options.qi, rows, positions, classes, shown, kept, has, recoding, notes)


def in_order(source: Table, options: ClassOptions) -> list[str]:
    """The columns that are shown, in the table's order."""
    return [name for name in source.columns if name in set(options.listed)]


def applied(source: Table, recoding: Recoding, given: Mapping[str, Any]) -> RecodedRows:
    """A saved recoding on new rows. Those whose class fails are left out, if that is allowed."""
    file, allowed = recoding.file, {"insensitive", "identifiers", "suppression", "name"}
    if other := [name for name, value in given.items() if value and name not in allowed]:
        raise UsageError(
            f"{other[0]!r} is part of the saved recoding",
            hint=f"with {spelled('apply')} only {spelled('insensitive')}, "
            f"{spelled('identifiers')} and {spelled('suppression')} may be given",
        )
    most = float(given.get("suppression") or 0)
    roles = ClassOptions(
        qi=file.qi,
        sensitive=file.sensitive,
        insensitive=given.get("insensitive") or file.insensitive,
        identifiers=given.get("identifiers")
        or [name for name in file.identifiers if name in source.columns],
        nulls=file.nulls,
    )
    check_roles(source, roles)
    rows, positions = source.rows(in_order(source, roles), drop_nulls=roles.nulls == "drop")
    prepared = prepared_with(source.of(rows), recoding.schema, recoding.requirements, roles)
    classes, texts = recoding.applied(prepared.codes)
    kept, histograms = without_failing(prepared, classes, roles, most)
    has = measured(prepared.requirements, histograms, roles)
    texts |= as_measured(source, prepared, roles)
    return RecodedRows(roles.qi, rows, positions, classes, texts, kept, has, recoding, ())


def without_failing(
    prepared: ClassInput, classes: Codes, options: ClassOptions, most: float
) -> tuple[npt.NDArray[np.bool_], Histograms]:
    """Which rows may be shown: again and again without the classes that fail, as those count."""
    units, _ = units_for(prepared, options, each=True)
    number = int(classes.max(initial=-1)) + 1
    kept = np.ones(len(classes), dtype=bool)
    while True:
        histograms = replace(units, weights=kept.astype(np.int64)).histograms(classes, number)
        failing = np.zeros(number, dtype=bool)
        for requirement in prepared.requirements:
            failing |= ~requirement.met(histograms) & (histograms.rows > 0)
        gone = len(kept) - int(kept.sum()) + int(histograms.rows[failing].sum())
        if failing.any() and gone > most * len(kept):
            required = " and ".join(requirement.spelling for requirement in prepared.requirements)
            raise PromiseError(
                f"{gone:,} of the {len(kept):,} rows are in classes that do not meet {required}, "
                f"and at most {most:.3g} of them may be left out",
                hint=f"{spelled('suppression', round(min(gone / len(kept) + 0.005, 0.99), 2))} "
                "would do; "
                "or fit a recoding to these rows",
            )
        if not failing.any():
            there = histograms.rows > 0
            counts = tuple(c[there] for c in histograms.counts)
            return kept, Histograms(histograms.rows[there], counts, histograms.overall)
        kept &= ~failing[classes]


def measured(
    requirements: Sequence[Requirement], histograms: Histograms, options: ClassOptions
) -> dict[str, float]:
    """The worst value of each requirement; refused where a class does not meet one."""
    found = {}
    for requirement in requirements:
        if not requirement.met(histograms).all():
            raise PromiseError(
                f"a class does not meet {requirement.spelling}",
                hint="nothing was written; please report it",
            )
        number = requirement.attribute
        several = number is not None and len(options.sensitive) > 1
        name = (
            f"{requirement.kind}:{options.sensitive[number or 0]}" if several else requirement.kind
        )
        found[name] = requirement.worst(requirement.measured(histograms))
    return found


def texts_of(
    table: Table, prepared: ClassInput, found: FoundGrouping, options: ClassOptions
) -> Texts:
    """What each class shows of quasi-identifiers, but for those that are shown as they are.

    A column is, where no class has a range of it and its values were not rounded or cut before: a
    class is then of one value. In bins, it would be of one bin.
    """
    grouping, texts = found.grouping, {}
    for j, name in enumerate(options.qi):
        open_ = (grouping.low[:, j] < grouping.high[:, j]).any()
        if open_ or not table.holds(prepared.schema[name]):
            shown = labels(
                prepared.schema[name],
                prepared.levels.get(name),
                prepared.orders.get(name),
                grouping.low[:, j],
                grouping.high[:, j],
            )
            narrow = shown.of_class.astype(code_type(len(shown.texts)))
            texts[name] = (shown.texts, narrow[found.classes])
    return texts


def as_measured(table: Table, prepared: ClassInput, options: ClassOptions) -> Texts:
    """Sensitive attributes with a requirement, where coarser values were measured."""
    required = {r.attribute for r in prepared.requirements if r.attribute is not None}
    texts = {}
    for name in (options.sensitive[number] for number in sorted(required)):
        attribute = prepared.schema[name]
        if not table.holds(attribute):
            used, which = np.unique(prepared.codes[name], return_inverse=True)
            words = value_words(attribute)
            texts[name] = (tuple(words[int(code)] for code in used), which.astype(np.int32))
    return texts


def assembled(made: RecodedRows, rows_in: int, *, keep_order: bool) -> GeneralizedTable:
    """The table with its ranges, in the order of the classes or of the rows."""
    coded: dict[str, pa.DictionaryArray] = {}
    fields = []
    for field in made.rows.schema:
        if field.name in made.texts:
            texts, which = made.texts[field.name]
            values = pa.array(texts, pa.string())
            coded[field.name] = pa.DictionaryArray.from_arrays(arrow_array(which), values)
            fields.append(pa.field(field.name, pa.string(), metadata=RANGES))
        else:  # moved about as numbers, which is quicker than as texts
            coded[field.name] = encoded(made.rows.column(field.name))
            plain = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            fields.append(pa.field(field.name, plain))
    check_shown(made, coded)
    order = np.flatnonzero(made.kept) if keep_order else order_by_class(made, coded)
    picked, shown = arrow_array(order), []
    for field in fields:  # what was read is forgotten as soon as it is written
        column = coded.pop(field.name).take(picked)
        shown.append(column.dictionary.take(column.indices).cast(field.type))
    table = pa.table(shown, schema=pa.schema(fields))
    left = int(len(made.kept) - made.kept.sum())
    notes = made.notes
    if left:
        notes = (
            *notes,
            f"{counted(left, 'row', 'were')} left out, for no class could hold them",
        )
    return GeneralizedTable(
        table,
        int(np.count_nonzero(np.bincount(made.classes[made.kept]))),
        made.measured,
        rows_in,
        made.recoding,
        notes,
        made.positions[order],
        keep_order,
    )


def order_by_class(
    made: RecodedRows, coded: Mapping[str, pa.DictionaryArray]
) -> npt.NDArray[np.int64]:
    """The rows that are shown by their class, and in each class by their values."""
    order = np.flatnonzero(made.kept)
    others = [ranks(column) for name, column in coded.items() if name not in made.texts]
    columns = [made.classes, *others]
    if len(order) < len(made.kept):
        columns = [c[order] for c in columns]
    keys = TupleIndex([int(c.max(initial=0)) + 1 for c in columns]).encode(columns)
    return order[stable_order(keys)]


def check_shown(made: RecodedRows, coded: Mapping[str, pa.DictionaryArray]) -> None:
    """Requirements were measured on classes: what is written must not distinguish more than those.

    Every quasi-identifier shows one value in each class, and no two classes look alike.
    """
    number = int(made.classes.max(initial=-1)) + 1
    shows = np.empty((len(made.qi), number), dtype=np.int64)
    for shown, name in zip(shows, made.qi, strict=True):
        values = numpy_array(coded[name].indices, -1)
        shown[made.classes] = values
        if not np.array_equal(shown[made.classes], values):
            raise PromiseError(
                f"column {name!r} would show several values in one class",
                hint="nothing was written; please report it",
            )
    there = shows[:, np.bincount(made.classes[made.kept], minlength=number) > 0].T
    if len(np.unique(there, axis=0)) < len(there):
        raise PromiseError(
            "two classes would look alike", hint="nothing was written; please report it"
        )


def encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """A column as a dictionary and indices into it."""
    whole = column.combine_chunks()
    return whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()


def ranks(coded: pa.DictionaryArray) -> Codes:
    """The place of each value among the different ones of a column, NULL first."""
    place = np.empty(len(coded.dictionary) + 1, dtype=np.int64)
    place[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(1, len(place))
    place[-1] = 0
    found: Codes = place[numpy_array(coded.indices, len(coded.dictionary))]
    return found


def stable_order(keys: Keys) -> npt.NDArray[np.int64]:
    """The order that sorts keys, equal ones as they stand: numbers are sorted, not places."""
    bits = len(keys).bit_length()
    if keys.dtype != np.uint64 or int(keys.max(initial=0)) >> (64 - bits):
        return np.argsort(keys, kind="stable").astype(np.int64, copy=False)
    both = keys << np.uint64(bits)
    both |= np.arange(len(keys), dtype=np.uint64)
    both.sort()
    both &= np.uint64(2**bits - 1)
    return both.view(np.int64)


def check_places(table: str, output: Path, save: Path | None, *, overwrite: bool) -> None:
    """The table itself is never written to, nor a release, nor one file twice."""
    for path in filter(None, (output, save)):
        source = Path(table)
        if path.exists() and source.exists() and path.samefile(source):
            raise UsageError(f"{str(path)!r} is the table itself", hint="name another file")
        check_outside(path)
    if save is None:
        return
    if save.resolve() == output.resolve():
        raise UsageError(
            f"{str(save)!r} is to hold the table and the recoding", hint="name two files"
        )
    check_free(save, overwrite=overwrite)
