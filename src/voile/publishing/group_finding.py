"""Finding classes: the rows of a table as units, and the method that groups them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.engines.table import Table
from voile.errors import PromiseError
from voile.hierarchies import default_levels
from voile.noise import Key
from voile.privacy.requirements import L
from voile.publishing.group_reading import Prepared
from voile.publishing.group_wish import GroupWish
from voile.recoding import Grouping, Units
from voile.recoding.anatomy import anatomy
from voile.recoding.fulldomain import full_domain
from voile.recoding.mondrian import Cuts, mondrian
from voile.recoding.partition import Partition
from voile.recoding.units import units_of_rows
from voile.schema import Schema

Codes = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Found:
    """Classes of rows."""

    units: Units
    of_row: Codes
    """The unit of each row."""
    grouping: Grouping
    partition: Partition | None = None
    """mondrian: the cuts, by which new rows find their class."""
    chosen: dict[str, int] | None = None
    """fulldomain: the level of each column."""
    shown: npt.NDArray[np.bool_] | None = None
    """(classes,): those that are shown; all where it is None."""

    @property
    def classes(self) -> Codes:
        """The class of each row."""
        return self.grouping.classes[self.of_row]


def find(prepared: Prepared, wish: GroupWish) -> Found:
    """Classes that meet every requirement, by the method that was asked for."""
    method = {"fulldomain": by_level, "anatomy": by_anatomy, "trivial": by_nothing}
    return method.get(wish.method, by_cuts)(prepared, wish)


def by_cuts(prepared: Prepared, wish: GroupWish) -> Found:
    units, of_row = units_for(prepared, wish, each=wish.relaxed)
    if wish.presence is not None:
        units = with_population(units, prepared.schema, prepared.orders, wish)
    tree = wish.cuts == "hierarchy"
    levels = [prepared.levels.get(name) for name in wish.qi] if tree else None
    cuts: Cuts = "median"
    if wish.cuts == "information" or wish.cuts == "certainty":
        cuts = wish.cuts
    cut = mondrian(units, prepared.requirements, relaxed=wish.relaxed, cuts=cuts, levels=levels)
    return Found(units, of_row, cut.grouping, partition=cut)


def places(order: Codes | None, codes: Codes) -> Codes:
    """Codes of the schema as positions in a column's order."""
    if order is None:
        return codes
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place[codes]


def units_for(prepared: Prepared, wish: GroupWish, *, each: bool = False) -> tuple[Units, Codes]:
    """The rows as units, `each` on its own or those that are alike as one; and which is whose."""
    schema, codes = prepared.schema, prepared.codes
    qi = [places(prepared.orders.get(name), codes[name]) for name in wish.qi]
    sizes = [schema[name].size for name in wish.qi]
    sensitive = [codes[name] for name in wish.sensitive]
    sensitive_sizes = [schema[name].size for name in wish.sensitive]
    if not each:
        return units_of_rows(qi, sizes, sensitive, sensitive_sizes)
    rows = prepared.used
    units = Units(
        codes=np.array(qi, dtype=np.int32).reshape(len(qi), rows),
        sizes=tuple(sizes),
        sensitive=np.array(sensitive, dtype=np.int32).reshape(len(sensitive), rows),
        sensitive_sizes=tuple(sensitive_sizes),
        weights=np.ones(rows, dtype=np.int64),
    )
    return units, np.arange(rows, dtype=np.int32)


def with_population(
    units: Units, schema: Schema, orders: Mapping[str, Codes], wish: GroupWish
) -> Units:
    """The same units, and those of a public table, which count as population only."""
    table = wish.population if isinstance(wish.population, Table) else Table(wish.population)
    table.check_columns(list(wish.qi))
    coded, _ = table.columns_of_codes(schema.select(wish.qi), drop_nulls=wish.nulls == "drop")
    qi = [places(orders.get(name), code) for name, code in zip(wish.qi, coded, strict=True)]
    public, _ = units_of_rows(qi, units.sizes, [], [])
    if public.rows < units.rows:
        raise PromiseError(
            f"the public table has {public.rows:,} rows, fewer than the {units.rows:,} that are "
            "to be published",
            hint="--population names a table that holds everybody, also those of the table",
        )
    number = len(public.weights)
    nobody = np.zeros(number, dtype=np.int64)
    return replace(
        units,
        codes=np.ascontiguousarray(np.hstack([units.codes, public.codes])),
        sensitive=np.ascontiguousarray(
            np.hstack([units.sensitive, np.zeros((len(units.sensitive), number), np.int32)])
        ),
        weights=np.concatenate([units.weights, nobody]),
        population=np.concatenate([np.zeros(len(units.weights), np.int64), public.weights]),
    )
