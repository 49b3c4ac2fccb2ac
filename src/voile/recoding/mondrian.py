"""Mondrian: cut the table in two, again and again, as long as both sides meet the requirements.

LeFevre, DeWitt and Ramakrishnan, *Mondrian Multidimensional K-Anonymity*, ICDE 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from voile.compiled import compiled
from voile.errors import UsageError, spelled
from voile.privacy.requirements import AlphaK, K, Requirement
from voile.privacy.requirements.rules import Rules, rules_of
from voile.recoding.grouping import Grouping, alike_as_one, check_classes, check_whole
from voile.recoding.growing import BOXES, CERTAINTY, INFORMATION, CutTree, boxes, grow
from voile.recoding.nodes import Lines
from voile.recoding.regrouping import regrouped
from voile.recoding.units import Codes, Counts, Units
from voile.schema.hierarchy import Levels

# ---------------------------------------------------------------------- partitions
# Classes, the cuts that made them, and where new rows belong. Cuts are kept as a tree, so that rows
# which were not there when the table was cut find their class too.


@dataclass(frozen=True, eq=False)
class Regions:
    """Boxes of positions, one for each class: disjoint, and together the whole domain.

    A box whose first position is above its last is empty; only relaxed cuts leave such.
    """

    low: Codes
    """(classes, quasi-identifiers)"""
    high: Codes


@dataclass(frozen=True, eq=False)
class MondrianPartition:
    """A grouping by cuts.

    The boxes of `grouping` bound the units of each class. `regions` are what the cuts leave, and
    hold those boxes, unless cuts are relaxed: then rows at a cut may be on either side of it.
    """

    grouping: Grouping
    tree: CutTree | None
    """None where boxes were taken out, or rows moved: no tree says where new rows belong."""
    sizes: tuple[int, ...]

    @property
    def known_tree(self) -> CutTree:
        """The tree, where there is one."""
        if self.tree is None:
            raise UsageError(
                f"{spelled('cuts', 'boxes')} leaves no regions: boxes may overlap",
                hint=f"use {spelled('cuts', 'certainty')}",
            )
        return self.tree

    @cached_property
    def regions(self) -> Regions:
        """The region of each class, as the cuts leave it."""
        tree = self.known_tree
        low, high = regions_of(tree, np.array(self.sizes, dtype=np.int32))
        here = tree.column < 0
        order = np.argsort(tree.child[here])
        return Regions(low[here][order], high[here][order])

    def locate(self, codes: Codes) -> Codes:
        """The class in whose region each row lies; codes are (quasi-identifiers, rows)."""
        return located(self.known_tree, np.ascontiguousarray(codes, dtype=np.int32))


@compiled
def regions_of(tree: CutTree, sizes: Codes) -> tuple[Codes, Codes]:
    """(nodes, columns): the box of every node. A node comes before its children."""
    low = np.zeros((tree.column.size, sizes.size), dtype=np.int32)
    high = np.empty_like(low)
    for j in range(sizes.size):
        high[0, j] = sizes[j] - 1
    for node in range(tree.column.size):
        column = tree.column[node]
        if column < 0:
            continue
        left, right = tree.child[node], tree.child[node] + 1
        for j in range(sizes.size):
            low[left, j] = low[right, j] = low[node, j]
            high[left, j] = high[right, j] = high[node, j]
        high[left, column] = min(high[node, column], tree.cut[node])
        low[right, column] = max(low[node, column], tree.cut[node] + 1)
    return low, high


@compiled
def located(tree: CutTree, codes: Codes) -> Codes:
    """The class of each row, found by walking down the tree."""
    out = np.empty(codes.shape[1], dtype=np.int32)
    for i in range(codes.shape[1]):
        node = 0
        while tree.column[node] >= 0:
            below = codes[tree.column[node], i] <= tree.cut[node]
            node = tree.child[node] if below else tree.child[node] + 1
        out[i] = tree.child[node]
    return out


# ---------------------------------------------------------------------- Mondrian


Cuts = Literal["median", "information", "certainty", "boxes"]
BEST = {"median": None, "information": INFORMATION, "certainty": CERTAINTY, "boxes": BOXES}


def mondrian(
    units: Units,
    requirements: Sequence[Requirement],
    *,
    relaxed: bool = False,
    cuts: Cuts = "median",
    levels: Sequence[Levels | None] | None = None,
) -> MondrianPartition:
    """Group units into classes that all meet the requirements and that no further cut can divide.

    'median' cuts the column that is widest, as a share of its domain, at its lower median; if a
    side would fail, the next widest. Ties are cut in the order of the columns. 'information' and
    'certainty' take the best of all allowed cuts: that with the largest information gain about the
    sensitive attributes, or with the narrowest boxes. 'boxes' is 'certainty' where nothing is
    required of sensitive values. Else, where no cut is allowed it takes out a box, several columns
    at once; cuts the widest classes anew; and moves rows to narrower classes.

    `relaxed` divides the rows at the median so that both sides have as many; it needs one unit for
    each row. A column with levels is cut into the children of its current node; its positions are
    in nested order, and boxes are whole nodes.

    Raises PromiseError if the class of all rows does not meet the requirements.
    """
    if not units.sizes:
        raise UsageError("there is no quasi-identifier to cut", hint="name one or more")
    if relaxed and ((units.weights != 1).any() or units.population is not None):
        raise UsageError(
            "relaxed cuts divide rows that are alike, and some units stand for several or none",
            hint="give one unit for each row, and no public table",
        )
    if (relaxed or levels is not None) and cuts != "median":
        which = "relaxed" if relaxed else "hierarchy"
        raise UsageError(
            f"{which} cuts are made at medians, not by {cuts}", hint="leave one of the two out"
        )
    if relaxed and levels is not None:
        raise UsageError(
            "a node of a hierarchy cannot be halved", hint="leave relaxed or the hierarchies out"
        )
    check_whole(units, requirements)
    rules = rules_of(requirements, units.overall)
    if cuts == "boxes" and units.population is not None:
        raise UsageError(
            "a share of a public table is counted in whole regions, and boxes may overlap",
            hint=f"use {spelled('cuts', 'certainty')}",
        )
    breaks = breaks_of(units.sizes, levels)
    found = cut_further(units, requirements, rules, breaks, relaxed=relaxed, cuts=cuts)
    if cuts != "boxes" or not reads_sensitive(requirements):
        return found

    def cut(pool: Units) -> Codes:
        return cut_further(pool, requirements, rules, breaks, cuts=cuts).grouping.classes

    better = alike_as_one(regrouped(units, found.grouping, requirements, rules, cut))
    check_classes(units, better, requirements)
    return MondrianPartition(better, None, units.sizes)


def cut_further(
    units: Units,
    requirements: Sequence[Requirement],
    rules: Rules,
    breaks: Codes,
    *,
    relaxed: bool = False,
    cuts: Cuts = "median",
) -> MondrianPartition:
    """Cut units that meet the rules, which may be a part of the table that these are for."""
    lines = _lines(units, requirements, cuts)
    best = BEST[cuts if reads_sensitive(requirements) or cuts != "boxes" else "certainty"]
    nodes, stops = grow(lines, rules, best, relaxed, least_rows(requirements), breaks)
    low, high = boxes(lines, stops)
    widen(low, high, breaks)
    classes = np.empty(len(lines.unit), dtype=np.int32)
    classes[lines.unit] = np.repeat(
        np.arange(len(stops), dtype=np.int32), np.diff(stops, prepend=0)
    )
    tree = CutTree(*nodes.astype(np.int32))
    return MondrianPartition(Grouping(classes, low, high), tree, units.sizes)


def least_rows(requirements: Sequence[Requirement]) -> int:
    """The least rows of a class: smaller nodes need not be tried."""
    return max([1, *(int(r.k) for r in requirements if isinstance(r, K | AlphaK))])


def reads_sensitive(requirements: Sequence[Requirement]) -> bool:
    """Whether any requirement is on sensitive values."""
    return any(r.attribute is not None for r in requirements)


def _lines(units: Units, requirements: Sequence[Requirement], cuts: Cuts) -> Lines:
    """A copy of the units in narrow numbers; sensitive codes only where something reads them."""
    used = cuts == "information" or reads_sensitive(requirements)
    sensitive, sensitive_sizes = (
        (units.sensitive, units.sensitive_sizes) if used else (units.sensitive[:0], ())
    )
    narrow = max([1, *units.sizes, *sensitive_sizes]) <= 1 << 16
    columns = np.empty(
        (len(units.sizes) + len(sensitive), len(units.weights)), np.uint16 if narrow else np.int32
    )
    for column, codes in zip(columns, (*units.codes, *sensitive), strict=True):
        column[:] = codes
    alike = bool((units.weights == 1).all())
    population = units.population
    if population is None:
        population = np.zeros(0 if units.weights.all() else len(units.weights), dtype=np.int64)
    return Lines(
        columns,
        np.arange(len(units.weights), dtype=np.int32),
        np.empty(0, dtype=np.int64) if alike and not len(population) else units.weights.copy(),
        population.copy(),
        np.array(units.sizes, dtype=np.int64),
        np.cumsum([0, *sensitive_sizes], dtype=np.int64),
    )


def breaks_of(sizes: Sequence[int], levels: Sequence[Levels | None] | None) -> Codes:
    """(columns, positions): the coarsest level on which a position and the one before differ."""
    if levels is None or not any(levels):
        return np.empty((len(sizes), 0), dtype=np.int32)
    out = np.full((len(sizes), max(sizes)), -1, dtype=np.int32)
    for line, hierarchy in zip(out, levels, strict=True):
        if hierarchy is None:
            continue
        line[0] = hierarchy.height
        for level, nodes in enumerate(hierarchy.nodes):
            apart = np.diff(nodes[hierarchy.nested]) != 0
            line[1 : len(nodes)][apart] = level
    return out


def widen(low: Codes, high: Codes, breaks: Codes) -> None:
    """Widen boxes, in place, to the lowest nodes of hierarchies that hold them."""
    for column in np.flatnonzero(breaks[:, :1] >= 0):
        _widen(low[:, column], high[:, column], breaks[column])


def _widen(low: Codes, high: Codes, breaks: Codes) -> None:
    """The same, of one column."""
    size = int((breaks >= 0).sum())
    reach: Counts = np.array(
        [breaks[a + 1 : b + 1].max(initial=-1) for a, b in zip(low, high, strict=True)]
    )
    for level in np.unique(reach):
        edges = np.flatnonzero(np.append(breaks[:size] > level, True))
        here = reach == level
        low[here] = edges[np.searchsorted(edges, low[here], side="right") - 1]
        high[here] = edges[np.searchsorted(edges, high[here], side="right")] - 1
