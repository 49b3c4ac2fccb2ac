"""Classes in the domain of the rows that are shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.kinds.classes.reading import Prepared
from voile.kinds.narrowing import Narrowed, narrowed
from voile.schema import Schema
from voile.schema.attribute import value_words
from voile.schema.hierarchy import Levels

Codes = npt.NDArray[Any]


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
