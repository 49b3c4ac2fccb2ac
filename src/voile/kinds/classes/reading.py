"""Reading a table that is to be grouped: columns as codes, and what classes must have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.engines.table import Table
from voile.errors import TableError, UsageError
from voile.hierarchies import default_levels, read_hierarchies
from voile.hierarchies.stacking import stacked
from voile.kinds.classes.schema import grouping_schema
from voile.kinds.classes.wish import GroupWish, check_roles
from voile.kinds.views.wish import check_name, check_nulls
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


def prepare(table: Table, wish: GroupWish, progress: Progress) -> Prepared:
    """Read and check the table."""
    rows = len(table)
    if not rows:
        raise TableError("the table has no rows to publish", hint="see `voile inspect TABLE`")
    check_roles(table, wish)
    name = wish.name or table.name
    check_name(name)
    schema, notes = grouping_schema(table, wish)
    levels = levels_for(table, schema, wish)
    check_ordered(schema, wish)
    requirements = requirements_of(
        wish.sensitive, [schema[s].size for s in wish.sensitive], levels=levels, **wish.requires
    )
    if not requirements and wish.method != "trivial":
        raise UsageError("nothing was asked of the classes", hint="such as --k 10, --l 3, --t 0.2")
    progress.start("reading", rows)
    coded, _ = table.columns_of_codes(schema, drop_nulls=wish.nulls == "drop", progress=progress)
    codes = dict(zip(schema.names, coded, strict=True))
    return Prepared(
        name, rows, schema, codes, levels, orders_for(schema, levels, wish, codes),
        requirements,
        (*notes, *derived(levels)),
    )  # fmt: skip


def check_ordered(schema: Schema, wish: GroupWish) -> None:
    """A distance between values in order needs values that have one."""
    if wish.t_distance != "emd-ordered":
        return
    for name in wish.t if isinstance(wish.t, Mapping) else wish.sensitive:
        if name in schema.names and not schema[name].ordered:
            raise UsageError(
                f"the values of {name!r} have no order, and emd-ordered needs one",
                hint="use --t-distance emd-equal, or declare it ordered in a codebook (--schema)",
            )


def prepared_with(
    table: Table, schema: Schema, requirements: list[Requirement], wish: GroupWish
) -> Prepared:
    """A table read by a domain that is known, for requirements that are."""
    if not len(table):
        raise TableError("the table has no rows", hint="see `voile inspect TABLE`")
    table.check_kinds(schema)
    check_nulls(table, schema, wish.nulls)
    coded, _ = table.columns_of_codes(schema, drop_nulls=wish.nulls == "drop")
    codes = dict(zip(schema.names, coded, strict=True))
    return Prepared(table.name, len(table), schema, codes, {}, {}, requirements, ())


def levels_for(table: Table, schema: Schema, wish: GroupWish) -> dict[str, Levels]:
    """Hierarchies that are given or shipped; for full-domain generalization, of every column."""
    if wish.method == "suppress":
        return {name: stacked(schema[name], ()) for name in wish.qi}
    found = read_hierarchies(wish.hierarchies or {}, schema, table.dataset)
    if wish.method == "fulldomain":
        for name in wish.qi:
            found.setdefault(name, default_levels(schema[name]))
    return found


def derived(levels: Mapping[str, Levels]) -> list[str]:
    """Hierarchies that tell about the rows that they were computed from."""
    names = [name for name, found in levels.items() if found.derived]
    return [f"the hierarchy of {name} was computed from the rows themselves" for name in names]


def orders_for(
    schema: Schema, levels: Mapping[str, Levels], wish: GroupWish, codes: Mapping[str, Codes]
) -> dict[str, Codes]:
    """Along which order each quasi-identifier is cut: its hierarchy's, else its domain's.

    Values that have no order are cut from the most frequent on: rare ones then share ranges, and
    ranges are about half as wide as in the order of the alphabet.
    """
    nested = wish.method in ("fulldomain", "suppress") or wish.cuts == "hierarchy"
    found = {}
    for name in wish.qi:
        size = schema[name].size
        order = np.arange(size, dtype=np.int32)
        if name in levels:
            order = levels[name].nested if nested else levels[name].leaves
        elif name in by_frequency(schema, levels, wish):
            counts = np.bincount(codes[name], minlength=size)
            order = np.argsort(-counts, kind="stable").astype(np.int32)
        if not np.array_equal(order, np.arange(size)):
            found[name] = order
    return found


def by_frequency(schema: Schema, levels: Mapping[str, Levels], wish: GroupWish) -> list[str]:
    """The quasi-identifiers whose values have no order of their own."""
    return [name for name in wish.qi if name not in levels and not schema[name].ordered]
