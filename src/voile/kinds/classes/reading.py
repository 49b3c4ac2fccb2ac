"""Reading a table that is to be grouped: columns as codes, and what classes must have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.engines.table import Table
from voile.errors import TableError, UsageError, spelled
from voile.hierarchies import default_levels, read_hierarchies
from voile.hierarchies.stacking import stacked
from voile.kinds.classes.options import ClassOptions
from voile.kinds.classes.schema import grouping_schema
from voile.kinds.domain import check_name, check_nulls
from voile.privacy.requirements import Requirement, requirements_of
from voile.progress import Progress
from voile.schema import Schema
from voile.schema.hierarchy import Levels

Codes = npt.NDArray[Any]


@dataclass(frozen=True)
class Prepared:
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

    @property
    def used(self) -> int:
        return len(next(iter(self.codes.values())))


def prepare(table: Table, options: ClassOptions, progress: Progress) -> Prepared:
    """Read and check the table."""
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
        raise UsageError("nothing was asked of the classes", hint=f"such as {such}")
    progress.start("reading", rows)
    coded, _ = table.columns_of_codes(schema, drop_nulls=options.nulls == "drop", progress=progress)
    codes = dict(zip(schema.names, coded, strict=True))
    return Prepared(
        name, rows, schema, codes, levels, orders_for(schema, levels, options, codes),
        requirements,
        (*notes, *derived(levels)),
    )  # fmt: skip


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
) -> Prepared:
    """A table read by a domain that is known, for requirements that are."""
    if not len(table):
        raise TableError("the table has no rows", hint="see `voile inspect TABLE`")
    table.check_kinds(schema)
    check_nulls(table, schema, options.nulls)
    coded, _ = table.columns_of_codes(schema, drop_nulls=options.nulls == "drop")
    codes = dict(zip(schema.names, coded, strict=True))
    return Prepared(table.name, len(table), schema, codes, {}, {}, requirements, ())


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
    """Hierarchies that tell about the rows that they were computed from."""
    names = [name for name, found in levels.items() if found.derived]
    return [f"the hierarchy of {name} was computed from the rows themselves" for name in names]


def orders_for(
    schema: Schema, levels: Mapping[str, Levels], options: ClassOptions, codes: Mapping[str, Codes]
) -> dict[str, Codes]:
    """Along which order each quasi-identifier is cut: its hierarchy's, else its domain's.

    Values that have no order are cut from the most frequent on: rare ones then share ranges, and
    ranges are about half as wide as in the order of the alphabet.
    """
    nested = options.method in ("fulldomain", "suppress") or options.cuts == "hierarchy"
    found = {}
    for name in options.qi:
        size = schema[name].size
        order = np.arange(size, dtype=np.int32)
        if name in levels:
            order = levels[name].nested if nested else levels[name].leaves
        elif name in by_frequency(schema, levels, options):
            counts = np.bincount(codes[name], minlength=size)
            order = np.argsort(-counts, kind="stable").astype(np.int32)
        if not np.array_equal(order, np.arange(size)):
            found[name] = order
    return found


def by_frequency(schema: Schema, levels: Mapping[str, Levels], options: ClassOptions) -> list[str]:
    """The quasi-identifiers whose values have no order of their own."""
    return [name for name in options.qi if name not in levels and not schema[name].ordered]
