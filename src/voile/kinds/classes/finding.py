"""Finding classes: the rows of a table as units, and the method that groups them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.errors import PromiseError, UsageError, spelled
from voile.hierarchies import default_levels
from voile.kinds.classes.options import ClassOptions
from voile.kinds.classes.reading import ClassInput, as_table, read_codes
from voile.noise import Key
from voile.privacy.requirements import L
from voile.progress import Silent
from voile.recoding import Grouping, Units
from voile.recoding.anatomy import anatomy
from voile.recoding.free_shape import Questions, free_shape
from voile.recoding.fulldomain import full_domain
from voile.recoding.grouping import alike_as_one, cells_by_class, check_classes, trivial
from voile.recoding.mondrian import MondrianPartition, mondrian
from voile.recoding.populations import populations
from voile.recoding.units import DENSE, units_of_rows
from voile.schema import Keys, Schema, TupleIndex
from voile.schema.attribute import value_words

Codes = npt.NDArray[Any]
Counts = npt.NDArray[np.int64]
LARGE = 0.05
"""The share of the rows from which on a population is one that free shapes care for."""


@dataclass(frozen=True, eq=False)
class FoundGrouping:
    """Classes of rows."""

    units: Units
    of_row: Codes
    """The unit of each row, or of each combination where rows that are alike were read as one."""
    grouping: Grouping
    partition: MondrianPartition | None = None
    """mondrian: the cuts, by which new rows find their class."""
    chosen: dict[str, int] | None = None
    """fulldomain: the level of each column."""
    shown: npt.NDArray[np.bool_] | None = None
    """(classes,): those that are shown; all where it is None."""

    @property
    def classes(self) -> Codes:
        """The class of each row."""
        return self.grouping.classes[self.of_row]


@dataclass(frozen=True, eq=False)
class ClassRows:
    """The rows of some classes."""

    classes: Codes
    """Of each row."""
    codes: Mapping[str, Codes]
    weights: Counts | None
    """How many each stands for; one where it is None."""

    def cells(self, names: Sequence[str]) -> tuple[Codes, Codes, Counts]:
        """The combinations of some columns in each class, their class and their rows."""
        weights = np.ones(len(self.classes), np.int64) if self.weights is None else self.weights
        codes = np.stack([self.codes[name].astype(np.int32) for name in names])
        return cells_by_class(self.classes, codes, weights)

    def keys(self, schema: Schema, texts: Mapping[str, Codes], size: int) -> Iterator[Keys]:
        """What is shown of the rows, sorted, so many at a time.

        The schema begins with the class; `texts` has what each class shows of generalized columns.
        """
        shown = [
            texts[name][self.classes] if name in texts else self.codes[name]
            for name in schema.names[1:]
        ]
        keys = TupleIndex(schema.sizes).encode([self.classes, *shown])
        if self.weights is None:
            keys.sort()
            return (keys[start : start + size] for start in range(0, len(keys), size))
        order = np.argsort(keys, kind="stable")
        return repeated(keys[order], self.weights[order], size)


def repeated(keys: Keys, weights: Counts, size: int) -> Iterator[Keys]:
    """Each key as often as its weight says, so many at a time."""
    ends = np.cumsum(weights)
    for start in range(0, int(ends[-1]) if len(ends) else 0, size):
        stop = min(start + size, int(ends[-1]))
        first = int(np.searchsorted(ends, start, side="right"))
        last = int(np.searchsorted(ends, stop, side="left"))
        some = np.minimum(ends[first : last + 1], stop)
        yield np.repeat(keys[first : last + 1], np.diff(some, prepend=start))


def find(prepared: ClassInput, options: ClassOptions) -> FoundGrouping:
    """Classes that meet every requirement, by the method of the options."""
    methods: dict[str, Callable[[ClassInput, ClassOptions], FoundGrouping]] = {
        "mondrian": by_cuts,
        "anatomy": by_dealing,
        "fulldomain": by_levels,
        "suppress": by_levels,
        "freeshape": by_shape,
        "trivial": in_one,
    }
    check_mixture(prepared, options)
    return methods[options.method](prepared, options)


def check_mixture(prepared: ClassInput, options: ClassOptions) -> None:
    """People with equal quasi-identifiers may lie in several buckets: theirs is the mixture."""
    divided = options.relaxed or options.method in ("anatomy", "freeshape")
    open_ = [r.spelling for r in prepared.requirements if not r.monotone]
    if divided and options.recoded == "bucketize" and open_:
        raise PromiseError(
            f"{open_[0]} may hold in every bucket and not in a mixture of buckets, which is what "
            "is shown of people with equal quasi-identifiers",
            hint=f"use strict cuts ({spelled('method', 'mondrian')}), or "
            f"{spelled('absent', 'forbidden')}",
        )


def by_cuts(prepared: ClassInput, options: ClassOptions) -> FoundGrouping:
    """Mondrian's classes; with δ-presence they show whole regions between cuts."""
    cuts = options.cuts_made or "median"
    single = too_many(prepared, options) and cuts != "boxes"  # which compares rows that are alike
    units, of_row = units_for(prepared, options, each=options.relaxed or single)
    if options.presence is not None:
        units = with_population(units, prepared.schema, prepared.orders, options)
    levels = None
    if cuts == "hierarchy":
        cuts, levels = "median", [prepared.levels.get(name) for name in options.qi]
    cut = mondrian(units, prepared.requirements, relaxed=options.relaxed, cuts=cuts, levels=levels)
    if cut.tree is None:
        return FoundGrouping(units, of_row, cut.grouping)
    if options.relaxed and options.recoded == "generalize":
        together = alike_as_one(cut.grouping)
        check_classes(units, together, prepared.requirements)
        return FoundGrouping(units, of_row, together, partition=cut)
    if options.presence is None:
        return FoundGrouping(units, of_row, cut.grouping, partition=cut)
    # Whoever has the public table counts its rows in the range that is shown: it must be the whole
    # region, in which they were counted here, and not the smallest range around the rows.
    regions = cut.regions
    shown = Grouping(cut.grouping.classes, regions.low, regions.high)
    return FoundGrouping(units, of_row, shown, partition=cut)


def too_many(prepared: ClassInput, options: ClassOptions) -> bool:
    """Whether finding rows that are alike would take longer than cutting them one by one."""
    names = [*options.qi, *options.sensitive]
    return math.prod(prepared.schema[name].size for name in names) > DENSE


def by_dealing(prepared: ClassInput, options: ClassOptions) -> FoundGrouping:
    """Anatomy's buckets, for the strictest ℓ-diversity by frequency that is required."""
    diversities = [
        r for r in prepared.requirements if isinstance(r, L) and r.measure == "frequency"
    ]
    if not diversities:
        raise UsageError("Anatomy makes buckets of ℓ rows", hint=f"say {spelled('l', 4)}")
    strictest = max(diversities, key=lambda r: r.l)
    units, of_row = units_for(prepared, options, each=True)
    key = Key.fresh() if options.simulate_seed is None else Key.from_seed(options.simulate_seed)
    sensitive = prepared.schema[options.sensitive[strictest.attribute]]
    buckets = anatomy(
        units,
        strictest.l,
        key.stream("anatomy"),
        attribute=strictest.attribute,
        requirements=prepared.requirements,
        labels=value_words(sensitive),
    )
    return FoundGrouping(units, of_row, buckets)


def by_shape(prepared: ClassInput, options: ClassOptions) -> FoundGrouping:
    """Buckets that show as much as they can of the large populations of the table."""
    units, of_row = units_for(prepared, options, each=True)
    return FoundGrouping(
        units, of_row, free_shape(units, prepared.requirements, large(prepared, options))
    )


def large(prepared: ClassInput, options: ClassOptions) -> Questions:
    """The populations of `voile loss`: those of a twentieth of the rows or more."""
    schema = prepared.schema
    levels = [prepared.levels.get(name) or default_levels(schema[name]) for name in options.qi]
    codes = np.stack([prepared.codes[name].astype(np.int32) for name in options.qi])
    found = populations(codes, levels, math.ceil(LARGE * prepared.used), one_value(codes))
    return Questions(found.atoms_of(codes), found.starts, found.members)


def one_value(codes: Codes) -> npt.NDArray[np.int64]:
    """Which populations are large does not depend on what is sensitive."""
    return np.ones((codes.shape[1], 1), dtype=np.int64)


def by_levels(prepared: ClassInput, options: ClassOptions) -> FoundGrouping:
    """Every column at one level of its hierarchy; rows that would fail are left out."""
    units, of_row = units_for(replace(prepared, orders={}), options)
    if options.presence is not None:
        units = with_population(units, prepared.schema, {}, options)
    best = full_domain(
        units,
        [prepared.levels[name] for name in options.qi],
        prepared.requirements,
        suppression=options.suppression,
        loss=options.loss or "ncp",
        suppressed=options.suppressed or "removed",
    )
    shown = None if best.shown.all() else best.shown
    chosen = dict(zip(options.qi, map(int, best.levels), strict=True))
    return FoundGrouping(best.units, of_row, best.grouping, chosen=chosen, shown=shown)


def in_one(prepared: ClassInput, options: ClassOptions) -> FoundGrouping:
    """All rows as one class, whose quasi-identifiers disclose nothing."""
    units, of_row = units_for(prepared, options)
    if options.presence is not None:
        units = with_population(units, prepared.schema, prepared.orders, options)
    return FoundGrouping(units, of_row, trivial(units, prepared.requirements))


def places(order: Codes | None, codes: Codes) -> Codes:
    """Codes of the schema as positions in a column's order."""
    if order is None:
        return codes
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place[codes]


def units_for(
    prepared: ClassInput, options: ClassOptions, *, each: bool = False
) -> tuple[Units, Codes]:
    """The rows as units, `each` on its own or those that are alike as one; and which is whose."""
    schema, codes = prepared.schema, prepared.codes
    qi = [places(prepared.orders.get(name), codes[name]) for name in options.qi]
    sizes = [schema[name].size for name in options.qi]
    sensitive = [codes[name] for name in options.sensitive]
    sensitive_sizes = [schema[name].size for name in options.sensitive]
    if not each:
        return units_of_rows(qi, sizes, sensitive, sensitive_sizes, prepared.weights)
    rows, weights = len(qi[0]), prepared.weights
    units = Units(
        codes=np.array(qi, dtype=np.int32).reshape(len(qi), rows),
        sizes=tuple(sizes),
        sensitive=np.array(sensitive, dtype=np.int32).reshape(len(sensitive), rows),
        sensitive_sizes=tuple(sensitive_sizes),
        weights=np.ones(rows, dtype=np.int64) if weights is None else weights,
    )
    return units, np.arange(rows, dtype=np.int32)


def with_population(
    units: Units, schema: Schema, orders: Mapping[str, Codes], options: ClassOptions
) -> Units:
    """The same units, and those of a public table, which count as population only."""
    table = as_table(options.population)
    table.check_columns(list(options.qi))
    coded, weights = read_codes(table, schema.select(options.qi), options, Silent())
    qi = [places(orders.get(name), code) for name, code in zip(options.qi, coded, strict=True)]
    public, _ = units_of_rows(qi, units.sizes, [], [], weights)
    if public.rows < units.rows:
        raise PromiseError(
            f"the public table has {public.rows:,} rows, fewer than the {units.rows:,} that are "
            "to be "
            "published",
            hint=f"{spelled('population')} names a table that holds everybody, also those of the "
            "table",
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
