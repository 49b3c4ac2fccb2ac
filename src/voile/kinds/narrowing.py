"""Domains without what only rows that were left out have.

A domain that was read off the table lists what occurs in it. Where rows are left out of a release
because they stand out, their values must not stand in its manifest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.errors import TableError
from voile.kinds.classes.reading import Prepared
from voile.schema import Attribute, Bins, Interval, Range, Schema, Values
from voile.schema.attribute import interval
from voile.schema.hierarchy import Levels
from voile.schema.words import value_at, value_words

Codes = npt.NDArray[Any]
LARGEST = 2**27


@dataclass(frozen=True, eq=False)
class Narrowed:
    """A column's domain cut to what is shown, and where each old code went."""

    attribute: Attribute
    kept: npt.NDArray[np.bool_]
    """(old codes,)"""

    @property
    def places(self) -> npt.NDArray[np.int64]:
        """(old codes + 1,): how many codes before each one are kept."""
        return np.concatenate([[0], np.cumsum(self.kept)])


def narrowed(attribute: Attribute, codes: Codes) -> Narrowed:
    """The domain of these codes; one that was declared tells nothing, and stays."""
    size = attribute.size
    if attribute.public != "active":
        return Narrowed(attribute, np.ones(1 if size > LARGEST else size, dtype=bool))
    if size > LARGEST:
        raise TableError(
            f"column {attribute.name!r} has {size:,} possible values, too many to leave out those "
            "of rows that are left out",
            hint="declare its domain with --schema",
        )
    used = np.bincount(codes, minlength=size) > 0
    values = used[: attribute.domain.size]
    null = attribute.null and bool(used[-1])
    if not isinstance(attribute.domain, Values) and values.any():
        first, last = np.flatnonzero(values)[[0, -1]]
        values[first : last + 1] = True
    found = replace(attribute, domain=cut(attribute, np.flatnonzero(values)), null=null)
    return Narrowed(found, np.concatenate([values, [null]]) if attribute.null else values)


def cut(attribute: Attribute, codes: npt.NDArray[np.int64]) -> Any:
    """The part of a domain with these codes, which for all but lists is a stretch of it."""
    domain = attribute.domain
    first, last = int(codes[0]), int(codes[-1])
    low, high = value_at(domain, first), value_at(domain, last)
    match domain:
        case Values(values):
            return Values(tuple(values[code] for code in codes))
        case Bins(edges):
            return Bins(edges[first : last + 2])
        case Range():
            return Range(low, high)  # type: ignore[arg-type]
        case Interval():
            if first == last:
                return Values((low,))
            return interval(attribute.name, float(low), float(high), domain.step)  # type: ignore[arg-type]


def without_removed(
    prepared: Prepared, shown: npt.NDArray[np.bool_]
) -> tuple[Prepared, dict[str, Narrowed]]:
    """The table of the shown rows alone, in the domain that they have."""
    codes = {name: code[shown] for name, code in prepared.codes.items()}
    found = {a.name: narrowed(a, codes[a.name]) for a in prepared.schema}
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
    less = replace(prepared, schema=schema, codes=moved, orders=kept, levels=levels)
    return less, found


def cut_levels(levels: Levels, of: Narrowed) -> Levels:
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


def moved_box(of: Narrowed, order: Codes | None, low: Codes, high: Codes) -> tuple[Codes, Codes]:
    """Ranges of places in the old domain's order as ranges in the new one's."""
    if of.kept.all():
        return low, high
    kept = of.kept if order is None else of.kept[order]
    before = np.concatenate([[0], np.cumsum(kept)])
    return before[low].astype(np.int32), (before[high + 1] - 1).astype(np.int32)
