"""Classes of rows that differ too much to be held here: they are counted where they lie.

Mondrian's first cuts follow from counts of single columns (`recoding/first_cuts.py`), one job for
each level of the tree. The regions between them come one after the other, each combination of
values once, and are cut here. When all classes are known the regions come again, to be written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.arrays import Bools, Ints
from voile.arrow import numpy_array
from voile.engines.jobs import SUM, CellCounts, CodedJob, DealtRows, KeyCounts, keys_in
from voile.errors import TableError, spelled
from voile.kinds.classes import reading
from voile.kinds.classes.finding import ClassRows, places
from voile.kinds.classes.options import ClassOptions
from voile.kinds.classes.reading import ClassInput, RowsAfar
from voile.privacy.requirements import Histograms, Requirement
from voile.privacy.requirements.rules import Rules
from voile.recoding.first_cuts import ColumnCounts, CutBox, FirstCuts, Leaf, first_cuts
from voile.recoding.grouping import Recode
from voile.recoding.growing import CutTree
from voile.recoding.mondrian import breaks_of, cut_further, located, reads_sensitive
from voile.recoding.units import Counts, Units
from voile.schema import TupleIndex

Codes = npt.NDArray[Any]
LARGEST_CELL = 2**62
"""Nodes times positions times sensitive values: cells are numbered."""


# ---------------------------------------------------------------------- classes by region


class CutRegion(NamedTuple):
    """The classes of a region."""

    tree: CutTree | None
    """The cuts between them; None where it is one class."""
    low: Codes
    """(classes, quasi-identifiers): the first position of each."""
    high: Codes
    rows: Counts
    counts: tuple[Counts, ...]
    """For each sensitive attribute that a requirement reads (classes, values)."""


@dataclass(frozen=True, eq=False)
class RegionGrouping:
    """Classes by region, of rows that are counted where they lie."""

    columns: CutColumns
    first: FirstCuts
    regions: list[CutRegion]
    recoded: Recode
    names: tuple[str, ...]
    """All columns, in the order in which rows are written."""

    @cached_property
    def low(self) -> Codes:
        """(classes, quasi-identifiers): the first position of each class."""
        return np.concatenate([region.low for region in self.regions])

    @cached_property
    def high(self) -> Codes:
        """(classes, quasi-identifiers): the last position."""
        return np.concatenate([region.high for region in self.regions])

    @cached_property
    def histograms(self) -> Histograms:
        """The rows and, where a requirement reads them, the sensitive values of each class."""
        rows = np.concatenate([region.rows for region in self.regions])
        counts = zip(*(region.counts for region in self.regions), strict=True)
        return Histograms(rows, tuple(map(np.concatenate, counts)), self.first.overall)

    def parts(self) -> Iterator[ClassRows]:
        """All rows in the order of the classes.

        Regions come as a whole. Undivided classes come in pieces, in the order in which they are
        written.
        """
        columns, names = self.columns, self.names
        starts = np.cumsum([0, *(len(region.low) for region in self.regions)])
        whole = np.array([region.tree is None for region in self.regions])
        wide = np.flatnonzero((self.low < self.high).any(axis=0))
        # Where ranges are shown, what a row of an undivided class has there is not asked for.
        hidden = [columns.names[j] for j in wide] if self.recoded == "generalize" else []
        for number, codes, weights in columns.fetched(
            self.first.tree, self.first.leaves, names, hidden, whole
        ):
            named = dict(zip(names, codes, strict=True))
            tree = self.regions[number].tree
            classes = (
                np.zeros(len(weights), np.int32)
                if tree is None
                else located(tree, columns.positions(named))
            )
            yield ClassRows(classes + np.int32(starts[number]), named, weights)


def cut_afar(prepared: ClassInput, options: ClassOptions) -> RegionGrouping:
    """Mondrian's classes of rows that are counted where they lie."""
    assert prepared.afar is not None  # noqa: S101
    schema, requirements = prepared.schema, prepared.requirements
    sensitive = tuple(options.sensitive) if reads_sensitive(requirements) else ()
    orders = tuple(prepared.orders.get(name) for name in options.qi)
    columns = CutColumns(prepared.afar, tuple(options.qi), orders)
    sizes, sensitive_sizes = (
        tuple(schema[name].size for name in names) for names in (options.qi, sensitive)
    )
    nested = options.cuts == "hierarchy"
    levels = [prepared.levels.get(name) for name in options.qi] if nested else None
    breaks = breaks_of(sizes, levels)
    first = first_cuts(
        lambda tree, nodes: columns.counted(tree, nodes, sensitive),
        prepared.used, sizes, sensitive_sizes, requirements, breaks, fitting(prepared, options),
    )  # fmt: skip
    left = [leaf for leaf in first.leaves if leaf.counts is None]
    given = (*options.qi, *sensitive)
    fetched = columns.fetched(first.tree, left, given) if left else ()
    regions = list[CutRegion]()
    for _, codes, weights in fetched:
        values = np.array(codes[len(sizes) :], dtype=np.int32).reshape(-1, len(weights))
        positions = columns.positions(dict(zip(given, codes, strict=True)))
        units = Units(positions, sizes, values, sensitive_sizes, weights)
        regions.append(cut_region(units, requirements, first.rules, breaks))
    cut = iter(regions)
    return RegionGrouping(
        columns,
        first,
        [
            next(cut) if leaf.counts is None else undivided(leaf, leaf.counts, sensitive_sizes)
            for leaf in first.leaves
        ],
        options.recoded,
        (*options.qi, *options.insensitive, *options.sensitive),
    )


def cut_region(
    units: Units, requirements: Sequence[Requirement], rules: Rules, breaks: Codes
) -> CutRegion:
    """The classes of a region that is held here; rules are those of the whole table."""
    found = cut_further(units, requirements, rules, breaks)
    has = found.grouping.histograms(units)
    return CutRegion(found.tree, found.grouping.low, found.grouping.high, has.rows, has.counts)


def undivided(leaf: Leaf, counts: Counts, sizes: Sequence[int]) -> CutRegion:
    """A class that the first cuts left."""
    low, high = (end[None].astype(np.int32) for end in leaf.box)
    each = np.split(counts[None], np.cumsum(sizes), axis=1)[:-1]
    return CutRegion(None, low, high, np.array([leaf.rows]), tuple(each))


def fitting(prepared: ClassInput, options: ClassOptions) -> Callable[[int, CutBox], bool]:
    """Whether a region certainly has few enough combinations to be held here."""
    schema = prepared.schema
    others = math.prod(schema[name].size for name in schema.names if name not in options.qi)

    def fits(rows: int, box: CutBox) -> bool:
        widths: list[int] = (box.high - box.low + 1).tolist()
        return min(rows, math.prod(widths) * others) <= reading.MOST_HELD

    return fits


# ---------------------------------------------------------------------- rows where they lie


@dataclass(frozen=True, eq=False)
class CutColumns:
    """The columns that are cut, of rows that are dealt out where they lie."""

    rows: RowsAfar
    names: tuple[str, ...]
    orders: tuple[Codes | None, ...]
    """Position → code, where a column's order is not that of its domain."""

    def positions(self, codes: Mapping[str, Codes]) -> npt.NDArray[np.int32]:
        """(columns, rows): codes as positions."""
        found = [
            places(order, codes[name]) for name, order in zip(self.names, self.orders, strict=True)
        ]
        return np.array(found, dtype=np.int32)

    def counted(
        self, tree: CutTree, nodes: Mapping[int, int], sensitive: Sequence[str]
    ) -> list[list[ColumnCounts]]:
        """Every column of some nodes: how many rows lie where, by their sensitive values."""
        given, count = (*self.names, *sensitive), len(self.names)
        sizes = (len(nodes), *(self.rows.schema[name].size for name in given))
        read = tuple(range(1 + count, len(sizes)))
        sets = tuple((0, 1 + j, *read) for j in range(count))
        largest = max(math.prod(sizes[i] for i in one) for one in sets)
        if largest > LARGEST_CELL:
            raise TableError(
                f"{largest:,} combinations of a quasi-identifier and sensitive values are too many "
                "to be counted",
                hint=f"declare bins for them with {spelled('schema')}",
            )
        job = CellCounts(sizes, sets)
        found = self.rows.sums(self._dealt(job, tree, list(nodes), given))
        table, cell, rows = (numpy_array(found.column(name)) for name in job.output.names)
        each = [
            by_node(cell[table == j], rows[table == j], [sizes[i] for i in one], self.orders[j])
            for j, one in enumerate(sets)
        ]
        for have, *columns in zip(nodes.values(), *each, strict=True):
            for of in columns:
                check_rows(self.rows, have, int(of.rows.sum()))
        return [list(columns) for columns in zip(*each, strict=True)]

    def fetched(
        self,
        tree: CutTree,
        leaves: Sequence[Leaf],
        given: Sequence[str],
        hidden: Sequence[str] = (),
        whole: Bools | None = None,
    ) -> Iterator[tuple[int, list[Codes], Counts]]:
        """The different rows of each leaf, one leaf after the other: its number, codes, weights.

        Those that are `whole` come in pieces, in the order of the codes.
        """
        sizes = (len(leaves), *(self.rows.schema[name].size for name in given))
        nodes = [leaf.node for leaf in leaves]
        job = self._dealt(KeyCounts(sizes), tree, nodes, given, hidden, whole)
        in_pieces = np.zeros(len(leaves), np.bool_) if whole is None else whole
        rows = np.zeros(len(leaves), np.int64)
        for number, codes, weights in by_number(self.rows.ordered_sums(job), sizes, in_pieces):
            rows[number] += weights.sum()
            yield number, codes, weights
        for leaf, found in zip(leaves, rows.tolist(), strict=True):
            check_rows(self.rows, leaf.rows, found)

    def _dealt(
        self,
        job: CodedJob,
        tree: CutTree,
        nodes: Sequence[int],
        given: Sequence[str],
        hidden: Sequence[str] = (),
        whole: Bools | None = None,
    ) -> DealtRows:
        """The job on rows of some leaves, which are numbered as they come."""
        at = self.rows.schema.names.index
        column, cut, child = (part.astype(np.int64) for part in tree)
        numbers = np.full(len(column), -1, np.int64)
        numbers[list(nodes)] = np.arange(len(nodes))
        cuts = tuple(
            (at(name), None if order is None else np.argsort(order))
            for name, order in zip(self.names, self.orders, strict=True)
        )
        return DealtRows(
            job, column, cut, child, numbers, cuts, tuple(map(at, given)), tuple(map(at, hidden)),
            whole,
        )  # fmt: skip


def by_node(
    cells: Ints, rows: Ints, sizes: Sequence[int], order: Codes | None
) -> list[ColumnCounts]:
    """Counted cells of (node, code, sensitive values …), by node."""
    node, code, *sensitive = np.unravel_index(cells, sizes)
    values = np.array(sensitive, dtype=np.int32).reshape(len(sensitive), len(cells))
    parts = (places(order, code).astype(np.int32), values, rows)
    stops = np.searchsorted(node, np.arange(1, sizes[0]))
    split = (np.split(part, stops, axis=-1) for part in parts)
    return [ColumnCounts(*one) for one in zip(*split, strict=True)]


def by_number(
    sums: Iterable[pa.Table], sizes: tuple[int, ...], in_pieces: Bools
) -> Iterator[tuple[int, list[Codes], Counts]]:
    """Keys that come in order, by their first code: the other codes, and how many rows."""
    index, last = TupleIndex(sizes), 0
    held: list[list[Codes]] = []
    for some in sums:
        codes = [*index.decode(keys_in(index, some)), numpy_array(some.column(SUM))]
        steps = np.diff(codes[0].astype(np.int64), prepend=last)
        if (steps < 0).any():
            raise TableError(
                "the cluster sent rows in another order than it was asked for",
                hint="nothing was released; please report which server it is",
            )
        stops = np.flatnonzero(steps)
        for start, stop in zip((0, *stops), (*stops, len(steps)), strict=True):
            if start in stops and held:
                yield together(last, held)
                held = []
            if start < stop:
                last = int(codes[0][start])
                held.append([part[start:stop] for part in codes[1:]])
        if held and in_pieces[last]:
            yield together(last, held)
            held = []
    if held:
        yield together(last, held)


def together(number: int, held: list[list[Codes]]) -> tuple[int, list[Codes], Counts]:
    """Pieces of one leaf as one."""
    *codes, weights = (np.concatenate(parts) for parts in zip(*held, strict=True))
    return number, codes, weights


def check_rows(of: RowsAfar, rows: int, found: int) -> None:
    """Refuse rows that are not those that were counted before."""
    if rows != found:
        raise TableError(
            f"table {of.table.name!r} had {rows:,} rows where it has {found:,} later",
            hint="nothing was released; publish a table or snapshot that does not change",
        )
