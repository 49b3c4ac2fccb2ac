"""Reading a table that is to be grouped: columns as codes, and what classes must have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.engines import connect
from voile.engines.jobs import CellCounts, CodedJob
from voile.engines.table import Table
from voile.errors import TableError, UsageError, spelled
from voile.hierarchies import default_levels, read_hierarchies
from voile.hierarchies.stacking import stacked
from voile.kinds.classes.options import ClassOptions
from voile.kinds.domain import (
    NarrowedDomain,
    check_name,
    check_nulls,
    choose_schema,
    dropped_times,
    narrowed_domain,
)
from voile.privacy.requirements import Requirement, requirements_of
from voile.progress import Progress
from voile.schema import Attribute, Range, Schema, TupleIndex, Values
from voile.schema.attribute import interval, ordinal, value_words
from voile.schema.hierarchy import Levels
from voile.schema.infer import ColumnProfile, infer_attribute

# ----------------------------------------------------------------------
# the domain of a table that is to be grouped: fine where values are cut, lists where counted


LARGEST_QI = 2**31 - 1
MOST_SENSITIVE = 10_000
FINE = 4
"""Decimal digits of a column's range that are kept where numbers are cut."""


def grouping_schema(table: Table, options: ClassOptions) -> tuple[Schema, list[str]]:
    """The declared domain, or one that suits what each column is for."""
    names = table.check_columns(options.listed)
    if options.schema_ is not None:
        schema, notes = choose_schema(table, names, options.schema_, options.nulls)
    else:
        drop = options.nulls == "drop"
        if drop and not table.complete_rows(names):
            raise TableError(
                "no row is without NULLs",
                hint=f"use {spelled('nulls', 'as-value')}, or leave columns out",
            )
        null = options.nulls == "as-value"
        profiles = {p.name: p for p in table.profiles(names, drop_nulls=drop)}
        if options.population is not None:  # a public table: its domain discloses nothing
            public = as_table(options.population)
            public.check_columns(list(options.qi))
            profiles |= {p.name: p for p in public.profiles(list(options.qi), drop_nulls=drop)}
        schema = Schema(tuple(attribute_for(profiles[n], options, null=null) for n in names))
        notes = dropped_times(table, names)
        if not any(profiles[name].nulls for name in names):
            check_sizes(schema, options)
            return schema, notes
    check_nulls(table, schema, options.nulls)
    check_sizes(schema, options)
    return schema, notes


def attribute_for(profile: ColumnProfile, options: ClassOptions, *, null: bool) -> Attribute:
    """The inferred domain of a column, as its role needs it."""
    name = profile.name
    if name in options.qi and profile.kind == "categorical" and profile.looks_like_identifier:
        raise TableError(
            f"quasi-identifier {name!r} looks like an identifier ({profile.distinct:,} different "
            f"values in {profile.rows:,} rows): the release would list them all",
            hint=f"{spelled('identifiers', [name])} leaves it out; or declare its domain "
            f"with {spelled('schema')}",
        )
    try:
        found = infer_attribute(profile, null=null)
    except TableError as error:
        raise TableError(
            error.message, hint=f"{spelled('identifiers', [name])} leaves it out"
        ) from None
    if name in (options.hierarchies or {}) and profile.values is not None:
        return replace(found, domain=Values(profile.values))  # the hierarchy says what lies between
    if name in options.qi:
        return cuttable(found, profile)
    many = not isinstance(found.domain, Values)
    if name in options.insensitive and found.kind == "numeric" and many:
        if profile.values is None:
            raise TableError(
                f"column {profile.name!r} has too many different numbers to be shown as they are",
                hint=f"round them, or declare bins or an interval for it with {spelled('schema')}",
            )
        return replace(found, domain=Values(profile.values))
    return found


def cuttable(attribute: Attribute, profile: ColumnProfile) -> Attribute:
    """An ordered column with every number between its ends, so that ranges mean what they say."""
    low, high = profile.low, profile.high
    if low is None or high is None or profile.kind not in ("integer", "date", "numeric"):
        return attribute
    if profile.kind == "numeric":
        if isinstance(attribute.domain, Values):
            return attribute
        assert isinstance(low, float) and isinstance(high, float)  # noqa: S101
        step = Decimal(10) ** (math.ceil(math.log10(high - low)) - FINE)
        first = float(Decimal(repr(low)) // step * step - (step if low < 0 else 0))
        last = float(-(-Decimal(repr(high)) // step) * step + (step if high > 0 else 0))
        return replace(attribute, domain=interval(attribute.name, first, last, float(step)))
    assert not isinstance(low, str | float) and not isinstance(high, str | float)  # noqa: S101
    if ordinal(high) - ordinal(low) >= LARGEST_QI:
        return attribute
    return replace(attribute, domain=Range(low, high))


def as_table(given: Any) -> Table:
    """The public table of the options."""
    return connect(given)


def check_sizes(schema: Schema, options: ClassOptions) -> None:
    """Refuse domains that are too large to be cut, or to be counted in every class."""
    for name in options.qi:
        if schema[name].size > LARGEST_QI:
            raise TableError(
                f"column {name!r} has {schema[name].size:,} possible values, too many to be cut",
                hint=f"declare bins or a smaller range for it with {spelled('schema')}",
            )
    for name in options.sensitive:
        if schema[name].size > MOST_SENSITIVE:
            raise TableError(
                f"sensitive column {name!r} has {schema[name].size:,} possible values: each would "
                "be rare in every class",
                hint=f"group its values, or declare bins for it with {spelled('schema')}",
            )


# ----------------------------------------------------------------------
# reading a table that is to be grouped: columns as codes, and what classes must have


Codes = npt.NDArray[Any]
Counts = npt.NDArray[np.int64]


MOST_HELD = 2**25
"""Different combinations of values that this process holds: a hundred bytes each, about 3 GB."""
MOST_SINGLE = 2**29
"""Rows that are held one by one, in some twenty bytes each."""


@dataclass(frozen=True)
class RowsAfar:
    """Rows that are counted where they lie."""

    table: Table
    schema: Schema
    drop_nulls: bool
    rows: int

    def sums(self, job: CodedJob) -> pa.Table:
        """What a job sums of all rows."""
        return self.table.coded_sums(self.schema, job, drop_nulls=self.drop_nulls)

    def ordered_sums(self, job: CodedJob) -> Iterator[pa.Table]:
        """The same, some at a time in the order of the keys."""
        return self.table.ordered_sums(self.schema, job, drop_nulls=self.drop_nulls)

    def frequencies(self, names: Sequence[str]) -> dict[str, Counts]:
        """How many rows have each value of some columns."""
        if not names:
            return {}
        sets = tuple((self.schema.names.index(name),) for name in names)
        job = CellCounts(tuple(self.schema.sizes), sets)
        return dict(zip(names, job.tables(self.sums(job)), strict=True))


@dataclass(frozen=True)
class ClassInput:
    """A table that has been read: its columns as codes, and what its classes must have."""

    name: str
    rows: int
    schema: Schema
    codes: dict[str, Codes]
    """Codes of the schema, by column."""
    levels: dict[str, Levels]
    orders: dict[str, Codes]
    """The order of a quasi-identifier's codes, where it is not the schema's."""
    requirements: list[Requirement]
    notes: tuple[str, ...]
    weights: Counts | None = None
    """How many rows each of the codes stands for, where those that are alike are one."""
    afar: RowsAfar | None = None
    """Rows that differ too much to be held here; then there are no codes."""

    @property
    def used(self) -> int:
        """The number of rows that were read, without those that have a NULL and are left out."""
        if self.afar is not None:
            return self.afar.rows
        if self.weights is not None:
            return int(self.weights.sum())
        return len(next(iter(self.codes.values())))


def prepare(
    table: Table, options: ClassOptions, progress: Progress, *, as_read: bool = False
) -> ClassInput:
    """Read and check the table; rows in the order of D, or `as_read`."""
    rows = len(table)
    if not rows:
        raise TableError("the table has no rows to publish", hint="see `voile inspect TABLE`")
    check_roles(table, options)
    name = options.name or table.name
    check_name(name)
    schema, notes = grouping_schema(table, options)
    levels = levels_for(table, schema, options)
    check_ordered(schema, options)
    requirements = requirements_of(
        options.sensitive,
        [schema[s].size for s in options.sensitive],
        levels=levels,
        **options.requires,
    )
    if not requirements and options.method != "trivial":
        such = ", ".join(spelled(name, some) for name, some in (("k", 10), ("l", 3), ("t", 0.2)))
        raise UsageError("no requirement was given for the classes", hint=f"such as {such}")
    progress.start("reading", rows)
    afar = None if as_read or table.at_hand else beyond_memory(table, schema, options)
    if afar is None:
        coded, weights = read_codes(table, schema, options, progress, as_read=as_read)
    else:
        coded, weights = [], None
        progress.advance(rows)
    codes = dict(zip(schema.names, coded, strict=afar is None))
    listed = by_frequency(schema, levels, options)
    counts = (
        frequencies(schema, listed, codes, weights) if afar is None else afar.frequencies(listed)
    )
    return ClassInput(
        name, rows, schema, codes, levels, orders_for(schema, levels, options, counts),
        requirements, (*notes, *derived(levels)), weights, afar,
    )  # fmt: skip


def beyond_memory(table: Table, schema: Schema, options: ClassOptions) -> RowsAfar | None:
    """Rows elsewhere that cannot be held here; refused where classes need that they are."""
    drop = options.nulls == "drop"
    rows = table.used_rows(schema, drop_nulls=drop)
    if options.of_single_rows:
        if rows > MOST_SINGLE:
            how = ("relaxed", True) if options.relaxed else ("method", options.method)
            raise TableError(
                f"{spelled(*how)} deals out single rows, which are held in this process: "
                f"{rows:,} are more than {MOST_SINGLE:,}",
                hint=f"use {spelled('method', 'mondrian')} with strict cuts, for which rows are "
                "counted where they lie",
            )
        return None
    if min(rows, schema.size) <= MOST_HELD:
        return None
    different = table.different_tuples(schema, drop_nulls=drop)
    if different <= MOST_HELD:
        return None
    check_afar(different, options)
    return RowsAfar(table, schema, drop, rows)


def check_afar(different: int, options: ClassOptions) -> None:
    """Refuse what cannot be found by counts of single columns."""
    strict = spelled("method", "mondrian")
    needs = {
        spelled("method", options.method): options.method != "mondrian",
        spelled("cuts", options.cuts_made): options.cuts_made
        in ("information", "certainty", "boxes"),
        spelled("presence"): options.presence is not None,
        spelled("error_model", True): options.error_model,
    }
    for how, needed in needs.items():
        if needed:
            without = spelled("error_model", False)
            raise TableError(
                f"{how} needs every combination of values in this process, and {different:,} "
                f"different ones are more than {MOST_HELD:,}",
                hint=f"{strict} with {spelled('cuts', 'median')} (or 'hierarchy') and {without} "
                f"counts rows where they lie; or make them fewer: bins in {spelled('schema')}, "
                "fewer columns",
            )


def read_codes(
    table: Table,
    schema: Schema,
    options: ClassOptions,
    progress: Progress,
    *,
    as_read: bool = False,
) -> tuple[list[Codes], Counts | None]:
    """The codes of all rows; of rows that lie elsewhere each combination once, with its rows."""
    drop = options.nulls == "drop"
    if as_read:
        return table.columns_of_codes(schema, drop_nulls=drop, progress=progress)[0], None
    if table.at_hand or options.of_single_rows:
        return table.ordered_codes(schema, drop_nulls=drop, progress=progress), None
    keys, weights = table.tuple_counts(schema, drop_nulls=drop, progress=progress)
    return [*TupleIndex(schema.sizes).decode(keys)], weights


def check_roles(table: Table, options: ClassOptions) -> None:
    """Every column of the table has been given its part: none is published unawares."""
    table.check_columns([*options.listed, *options.identifiers])
    named = {*options.listed, *options.identifiers}
    if left := [name for name in table.columns if name not in named]:
        raise UsageError(
            f"it was not said what these columns are: {', '.join(left)}",
            hint=f"{spelled('identifiers', left)} leaves them out, {spelled('insensitive')} shows "
            f"them as they are; what others may know of a person belongs to {spelled('qi')}",
        )


def check_ordered(schema: Schema, options: ClassOptions) -> None:
    """A distance between values in order needs values that have one."""
    if options.t_distance != "emd-ordered":
        return
    for name in options.t if isinstance(options.t, Mapping) else options.sensitive:
        if name in schema.names and not schema[name].ordered:
            raise UsageError(
                f"the values of {name!r} have no order, and emd-ordered needs one",
                hint=f"use {spelled('t_distance', 'emd-equal')}, or declare it ordered in a "
                "codebook "
                f"({spelled('schema')})",
            )


def prepared_with(
    table: Table, schema: Schema, requirements: list[Requirement], options: ClassOptions
) -> ClassInput:
    """A table read by a domain that is known, for requirements that are."""
    if not len(table):
        raise TableError("the table has no rows", hint="see `voile inspect TABLE`")
    table.check_kinds(schema)
    check_nulls(table, schema, options.nulls)
    coded, _ = table.columns_of_codes(schema, drop_nulls=options.nulls == "drop")
    codes = dict(zip(schema.names, coded, strict=True))
    return ClassInput(table.name, len(table), schema, codes, {}, {}, requirements, ())


def levels_for(table: Table, schema: Schema, options: ClassOptions) -> dict[str, Levels]:
    """Hierarchies that are given or shipped; for full-domain generalization, of every column."""
    if options.method == "suppress":
        return {name: stacked(schema[name], ()) for name in options.qi}
    found = read_hierarchies(options.hierarchies or {}, schema, table.dataset)
    if options.method == "fulldomain":
        for name in options.qi:
            found.setdefault(name, default_levels(schema[name]))
    return found


def derived(levels: Mapping[str, Levels]) -> list[str]:
    """Notes on hierarchies that were computed from the rows themselves."""
    names = [name for name, found in levels.items() if found.derived]
    return [f"the hierarchy of {name} was computed from the rows themselves" for name in names]


def orders_for(
    schema: Schema,
    levels: Mapping[str, Levels],
    options: ClassOptions,
    counts: Mapping[str, Counts],
) -> dict[str, Codes]:
    """Along which order each quasi-identifier is cut: its hierarchy's, else its domain's.

    Values that have no order are cut from the most frequent on: rare ones then share ranges, and
    ranges are about half as wide as in the order of the alphabet: `counts` has their rows.
    """
    nested = options.method in ("fulldomain", "suppress") or options.cuts == "hierarchy"
    found = {}
    for name in options.qi:
        size = schema[name].size
        order = np.arange(size, dtype=np.int32)
        if name in levels:
            order = levels[name].nested if nested else levels[name].leaves
        elif name in by_frequency(schema, levels, options):
            order = np.argsort(-counts[name], kind="stable").astype(np.int32)
        if not np.array_equal(order, np.arange(size)):
            found[name] = order
    return found


def frequencies(
    schema: Schema, names: Sequence[str], codes: Mapping[str, Codes], weights: Counts | None
) -> dict[str, Counts]:
    """How many rows have each value of some columns."""
    return {
        name: np.bincount(codes[name], weights, schema[name].size).astype(np.int64)
        for name in names
    }


def by_frequency(schema: Schema, levels: Mapping[str, Levels], options: ClassOptions) -> list[str]:
    """The quasi-identifiers whose values have no order of their own."""
    return [name for name in options.qi if name not in levels and not schema[name].ordered]


# ----------------------------------------------------------------------
# classes in the domain of the rows that are shown


def without_removed(
    prepared: ClassInput, shown: npt.NDArray[np.bool_]
) -> tuple[ClassInput, dict[str, NarrowedDomain]]:
    """The table of the shown rows alone, in the domain that they have."""
    codes = {name: code[shown] for name, code in prepared.codes.items()}
    found = {a.name: narrowed_domain(a, codes[a.name]) for a in prepared.schema}
    moved = {
        name: code if found[name].kept.all() else found[name].places[code]
        for name, code in codes.items()
    }
    orders = {}
    for name, order in prepared.orders.items():
        of = found[name]
        left = order[of.kept[order]] if len(of.kept) > 1 else order
        orders[name] = of.places[left].astype(np.int32) if not of.kept.all() else left
    schema = Schema(tuple(of.attribute for of in found.values()))
    kept = {name: order for name, order in orders.items() if (np.diff(order) != 1).any()}
    levels = {name: cut_levels(of, found[name]) for name, of in prepared.levels.items()}
    weights = None if prepared.weights is None else prepared.weights[shown]
    less = replace(
        prepared, schema=schema, codes=moved, orders=kept, levels=levels, weights=weights
    )
    return less, found


def cut_levels(levels: Levels, of: NarrowedDomain) -> Levels:
    """A hierarchy of the codes that are left; its names stay."""
    if of.kept.all():
        return levels
    codes = np.arange(of.attribute.size, dtype=np.int32)
    leaves = levels.leaves[of.kept[levels.leaves]]
    return replace(
        levels,
        nodes=(codes, *(nodes[of.kept] for nodes in levels.nodes[1:])),
        labels=(value_words(of.attribute), *levels.labels[1:]),
        leaves=of.places[leaves].astype(np.int32),
    )


def moved_box(
    of: NarrowedDomain, order: Codes | None, low: Codes, high: Codes
) -> tuple[Codes, Codes]:
    """Ranges of places in the old domain's order as ranges in the new one's."""
    if of.kept.all():
        return low, high
    kept = of.kept if order is None else of.kept[order]
    before = np.concatenate([[0], np.cumsum(kept)])
    return before[low].astype(np.int32), (before[high + 1] - 1).astype(np.int32)
