"""What a steward's table owes: it is looked at, checked, and turned into codes, in batches.

An engine implements the abstract methods; the others are made of them. Knows nothing of privacy.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Unpack, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.arrays import Ints
from voile.arrow import arrow_array, numpy_array
from voile.engines.findings import ColumnFinding, refuse_undecided
from voile.engines.registry import connect, engine_for
from voile.errors import UsageError, did_you_mean, spelled
from voile.options import choices
from voile.options.reading import ReadingKeywords, ReadingOptions
from voile.progress import Progress
from voile.schema import Attribute, Keys, Kind, Range, Schema, TupleIndex, Values
from voile.schema.index import code_type
from voile.schema.infer import ColumnProfile, infer_attribute

if TYPE_CHECKING:
    from voile.engines.jobs import CodedJob, RowJob, TypedJob
    from voile.engines.members import Members
    from voile.noise.subkeys import Subkeys

Nulls = choices.Nulls
NULLS: tuple[Nulls, ...] = get_args(Nulls)


def checked_nulls(text: str) -> Nulls:
    """What to do with NULLs, as it was typed; refused if it is not known."""
    for known in NULLS:
        if text == known:
            return known
    raise UsageError(f"{spelled('nulls', text)} is not known", hint=f"use {', '.join(NULLS)}")


class CodedBatch(NamedTuple):
    """Some rows, by the places of their values in the domain of each attribute."""

    codes: list[Ints]
    row_keys: Any
    """The column that is the key of the rows, as Arrow texts; None where none is named."""
    first: int
    """The number of the first of these rows among all that are read; the others follow it."""


class LimitedRows(NamedTuple):
    """A table of which at most so many rows were kept for each value of a column."""

    table: Table
    """Without that column."""
    values: int
    """How many different values the column has."""


class RowBatch(NamedTuple):
    """Some rows as the table has them."""

    rows: pa.Table
    places: npt.NDArray[np.int64]
    """The number of each row in the table."""


@runtime_checkable
class Table(Protocol):
    """A table that someone wants to publish: read any number of times, never held in memory.

    `voile.read(source)` gives the table of the engine that reads the source. `Table(source)` does
    the same, as `pathlib.Path(…)` gives the path of the system: whoever takes a table names this
    protocol and no engine, so a table of any engine fits.

    Rows may lie in many places, and batches may come in any order. But a row has the same number
    in every scan, also where a task runs twice: what is drawn for a row may depend on its number
    or its tuple, and on nothing else.
    """

    name: str
    """A short name that needs no quotes in SQL."""
    dataset: str
    """dataset:NAME of a shipped table, whose hierarchies are shipped too; else empty."""
    columns: Mapping[str, str]
    """The columns in order, with the engine's word for the type of each."""

    reading: ReadingOptions = ReadingOptions()
    """How its text is read, as the caller said."""
    notes: Sequence[str] = ()
    """What reading it did that may not be expected."""
    labels: Mapping[str, str] = MappingProxyType({})
    """What columns are about, where the file of another program says so."""
    categories: Mapping[str, Sequence[str]] = MappingProxyType({})
    """All labels of columns that are shown by them, in order, whether or not they occur."""
    at_hand: bool = True
    """Whether its rows may be taken into this process; else only what jobs make of them."""

    def __new__(cls, source: object, **how: Unpack[ReadingKeywords]) -> Table:  # noqa: ARG004
        """The table of the engine that reads `source`; its own `__init__` attaches the rows."""
        return super().__new__(engine_for(source).table_type() if cls is Table else cls)

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {len(self.columns)} columns)"

    # ------------------------------------------------------------------ its columns

    @property
    @abstractmethod
    def with_time_of_day(self) -> list[str]:
        """Columns of which only the day is kept."""

    @abstractmethod
    def kind(self, name: str) -> Kind | None:
        """The kind of attribute that a column makes, if any."""

    def holds(self, attribute: Attribute) -> bool:
        """Whether the column's own values are the attribute's, not rounded or read as others."""
        name = attribute.name
        exact = isinstance(attribute.domain, Values | Range)
        return exact and self.kind(name) == attribute.kind and name not in self.with_time_of_day

    def check_columns(self, names: Sequence[str]) -> list[str]:
        """The names themselves, refused where one is unknown or stands twice."""
        for name in names:
            if name not in self.columns:
                raise UsageError(
                    f"table {self.name!r} has no column {name!r}",
                    hint=did_you_mean(name, list(self.columns)),
                )
        if len(set(names)) < len(names):
            raise UsageError(
                f"a column is named twice: {', '.join(names)}", hint="name each column once"
            )
        if not names:
            raise UsageError("no columns were chosen", hint="name at least one")
        return list(names)

    # ------------------------------------------------------------------ looking at it

    @abstractmethod
    def profiles(self, names: Sequence[str], *, drop_nulls: bool = False) -> list[ColumnProfile]:
        """What each column holds.

        Of the rows that will be published only: what is dropped must not show in a domain.
        """

    def findings(self) -> Sequence[ColumnFinding]:
        """What a steward should decide about its columns, or know of; only text files have such."""
        return ()

    def check_meaning(self, names: Sequence[str]) -> None:
        """Refuse a column that would be taken for categories and may hold something else.

        Whoever makes a domain of what the columns hold asks for this first. A codebook says itself
        what a column is.
        """
        refuse_undecided(self.findings(), names)

    def infer(self, names: Sequence[str], nulls: Nulls) -> Schema:
        """The schema of what the columns hold, the 'active' domain."""
        self.check_meaning(names)
        profiles = self.profiles(names, drop_nulls=nulls == "drop")
        found = [infer_attribute(p, null=nulls == "as-value") for p in profiles]
        return Schema(tuple(self._with_labels(attribute) for attribute in found))

    def _with_labels(self, attribute: Attribute) -> Attribute:
        """The attribute with all labels that its column has, in their order."""
        listed = [
            t for t in self.categories.get(attribute.name, ()) if t not in self.reading.null_text
        ]
        values = attribute.domain.values if isinstance(attribute.domain, Values) else ()
        if not listed or not set(values) <= set(listed):
            return attribute
        return replace(attribute, domain=Values(tuple(listed)))

    @abstractmethod
    def check_kinds(self, schema: Schema) -> None:
        """Refuse a value that is not of its attribute's kind: it would be read as NULL."""

    @abstractmethod
    def rounded(self, schema: Schema) -> dict[str, int]:
        """Columns with numbers between an interval's steps, with how many rows."""

    # ------------------------------------------------------------------ counting it

    @abstractmethod
    def __len__(self) -> int:
        """How many rows it has."""

    @abstractmethod
    def complete_rows(self, names: Sequence[str]) -> int:
        """How many rows have no NULL in these columns."""

    @abstractmethod
    def null_counts(self, names: Sequence[str]) -> dict[str, int]:
        """Columns that have NULLs, with how many rows."""

    @abstractmethod
    def duplicates(self, names: Sequence[str]) -> int:
        """Rows that repeat another row in these columns."""

    @abstractmethod
    def combinations(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The different combinations of values, as texts; the last column says how many rows.

        Each is there once. NULL is a value of its own. Columns are c0, c1, … and n: a name of
        ours could be one of the table's.
        """

    def different_combinations(self, names: Sequence[str]) -> int:
        """How many different combinations of values there are, counted where the rows lie."""
        return sum(batch.num_rows for batch in self.combinations(names))

    @abstractmethod
    def count(self, condition: str) -> int:
        """The truth, for evaluation: rows for which a condition holds."""

    @abstractmethod
    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The truth, for evaluation: what SQL gives on the table, by whatever name it calls it."""

    # ------------------------------------------------------------------ reading it

    @abstractmethod
    def coded(
        self,
        schema: Schema,
        *,
        drop_nulls: bool,
        row_key: str | None = None,
        clamp: bool = False,
        progress: Progress | None = None,
    ) -> Iterator[CodedBatch]:
        """The codes of all rows, a batch at a time; and their keys, where a column is named.

        A value outside its domain is refused; `clamp` moves numbers and dates that lie outside a
        range to its nearer end, as an attribute's own `clamp` does; where an attribute has a value
        for all others, a text that is not listed is that. `drop_nulls` leaves out rows that have
        a NULL.
        """

    @abstractmethod
    def batches(self, names: Sequence[str], *, drop_nulls: bool = False) -> Iterator[RowBatch]:
        """The columns as they are, a batch at a time; at least one, if without rows."""

    def unordered(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """The columns as they are, some rows at a time, in no order that stays."""
        return (batch.rows for batch in self.batches(names))

    @abstractmethod
    def typed(self, names: Sequence[str], *, drop_nulls: bool = False) -> Iterator[pa.RecordBatch]:
        """Each column as its kind's type, a batch at a time; NaN is NULL, a time of day dropped."""

    def of(self, rows: object) -> Table:
        """The same table with these rows."""
        found = connect(rows)
        found.name, found.dataset = self.name, self.dataset
        return found

    def at_most(self, column: str, rows: int, salt: str) -> LimitedRows:
        """At most so many rows for each value of a column, without that column.

        Which rows, and in what order they are read, follows from hashes of all their values with
        the salt: not from the order of the table. Of rows that are equal in every column each is a
        row of its own, numbered in any order. Engines that need not hold all rows do it themselves.
        """
        return self.of(self.rows(list(self.columns))[0]).at_most(column, rows, salt)

    def used_rows(self, schema: Schema, *, drop_nulls: bool) -> int:
        """How many rows `coded` reads."""
        return self.complete_rows(schema.names) if drop_nulls else len(self)

    def key_batches(
        self, schema: Schema, *, drop_nulls: bool, progress: Progress | None = None
    ) -> Iterator[Keys]:
        """The key of every row, a batch at a time, in no order."""
        index = TupleIndex(schema.sizes)
        for batch in self.coded(schema, drop_nulls=drop_nulls, progress=progress):
            yield index.encode(batch.codes)

    def keys(self, schema: Schema, *, drop_nulls: bool, progress: Progress | None = None) -> Keys:
        """The key of every row, sorted: the whole table in eight bytes a row.

        Sorted in place, so the peak is that one array and a batch. For what needs them all at
        once, as perturbing D in order does; `key_batches` gives them without holding them.
        """
        size = self.used_rows(schema, drop_nulls=drop_nulls)
        keys = np.empty(size, dtype=TupleIndex(schema.sizes).key_type)
        done = 0
        for batch in self.key_batches(schema, drop_nulls=drop_nulls, progress=progress):
            keys[done : done + len(batch)] = batch
            done += len(batch)
        keys = keys[:done]
        keys.sort()
        return keys

    def tuple_counts(
        self, schema: Schema, *, drop_nulls: bool, progress: Progress | None = None
    ) -> tuple[Keys, Ints]:
        """The different tuples of the rows in the order of D, and how many rows each has."""
        from voile.engines.jobs import SUM, KeyCounts, keys_in  # noqa: PLC0415  (as below)

        found = self.coded_sums(
            schema, KeyCounts(tuple(schema.sizes)), drop_nulls=drop_nulls, progress=progress
        )
        return keys_in(TupleIndex(schema.sizes), found), numpy_array(found.column(SUM))

    def different_tuples(self, schema: Schema, *, drop_nulls: bool) -> int:
        """How many different tuples the rows have."""
        return len(self.tuple_counts(schema, drop_nulls=drop_nulls)[0])

    def ordered_codes(
        self, schema: Schema, *, drop_nulls: bool, progress: Progress | None = None
    ) -> list[npt.NDArray[Any]]:
        """As `columns_of_codes`, rows in the order of D: the same in every engine."""
        keys = self.keys(schema, drop_nulls=drop_nulls, progress=progress)
        return [*TupleIndex(schema.sizes).decode(keys)]

    def members(
        self, schema: Schema, *, drop_nulls: bool, progress: Progress | None = None
    ) -> Members:
        """The rows by key, wherever the engine leaves them."""
        from voile.engines.members import LocalMembers  # noqa: PLC0415  (answering needs none)

        keys = self.keys(schema, drop_nulls=drop_nulls, progress=progress)
        return LocalMembers(schema.sizes, keys)

    def coded_sums(
        self,
        schema: Schema,
        job: CodedJob,
        *,
        drop_nulls: bool,
        clamp: bool = False,
        progress: Progress | None = None,
    ) -> pa.Table:
        """What a job sums of the rows' codes, wherever the rows lie."""
        from voile.engines.jobs import added_up  # noqa: PLC0415  (answering needs none)

        batches = self.coded(schema, drop_nulls=drop_nulls, clamp=clamp, progress=progress)
        return added_up(job(batch.codes for batch in batches), job.output)

    def ordered_sums(
        self, schema: Schema, job: CodedJob, *, drop_nulls: bool
    ) -> Iterator[pa.Table]:
        """As `coded_sums`, some at a time in the order of the keys: they may be many."""
        yield self.coded_sums(schema, job, drop_nulls=drop_nulls)

    def typed_sums(
        self, names: Sequence[str], job: TypedJob, *, drop_nulls: bool = False
    ) -> pa.Table:
        """What a job sums of the rows' values, wherever the rows lie."""
        from voile.engines.jobs import added_up  # noqa: PLC0415  (answering needs none)

        return added_up(job(self.typed(names, drop_nulls=drop_nulls)), job.output)

    def ordered_typed_sums(
        self, names: Sequence[str], job: TypedJob, *, drop_nulls: bool = False
    ) -> Iterator[pa.Table]:
        """As `typed_sums`, some at a time in the order of the keys: they may be many."""
        yield self.typed_sums(names, job, drop_nulls=drop_nulls)

    def gathered(self, names: Sequence[str], job: RowJob, secrets: Subkeys) -> bytes:
        """What a job gathers of the columns as they are, wherever the rows lie."""
        return job(self.unordered(names), secrets)

    def columns_of_codes(
        self,
        schema: Schema,
        *,
        drop_nulls: bool,
        row_key: str | None = None,
        progress: Progress | None = None,
    ) -> tuple[list[npt.NDArray[Any]], pa.Array | None]:
        """Every row's place in each attribute's domain, a column at a time, in narrow numbers.

        And, where it is named, the column that is the key of the rows, as text. For what looks at
        all rows at once, as grouping them does.
        """
        size = self.used_rows(schema, drop_nulls=drop_nulls)
        columns = [np.empty(size, dtype=code_type(a.size)) for a in schema]
        keys: dict[int, Any] = {}
        for batch in self.coded(schema, drop_nulls=drop_nulls, row_key=row_key,
                                progress=progress):  # fmt: skip
            for column, code in zip(columns, batch.codes, strict=True):
                column[batch.first : batch.first + len(code)] = code
            keys[batch.first] = batch.row_keys
        if row_key is None:
            return columns, None
        ordered = [keys[first] for first in sorted(keys)]
        return columns, pa.chunked_array(ordered, pa.string()).combine_chunks()

    def counts(self, schema: Schema, *, drop_nulls: bool) -> Ints:
        """How many rows each tuple of the domain has, over a domain small enough to list."""
        found = np.zeros(schema.sizes, dtype=np.int64).reshape(-1)
        for batch in self.coded(schema, drop_nulls=drop_nulls):
            np.add.at(found, np.ravel_multi_index(tuple(batch.codes), schema.sizes), 1)
        return found.reshape(schema.sizes)

    def numbered_rows(
        self, names: Sequence[str], *, drop_nulls: bool = False
    ) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """As `rows`; columns of texts may be dictionaries in which each text is once."""
        return self.rows(names, drop_nulls=drop_nulls)

    def rows(
        self, names: Sequence[str], *, drop_nulls: bool = False
    ) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """All rows as they are, in order, and the number of each: for a table shown whole."""
        parts = list(self.batches(names, drop_nulls=drop_nulls))
        rows = pa.concat_tables([part.rows for part in parts])
        places = np.concatenate([part.places for part in parts])
        if (places[1:] > places[:-1]).all():
            return rows, places
        order = np.argsort(places)
        return rows.take(arrow_array(order)), places[order]
