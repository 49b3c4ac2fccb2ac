"""Large populations: the groups of people that research studies.

A population is the rows that meet a conjunction of at most one item per quasi-identifier, such as
'age 40–59 and education Higher'. It is large where at least a given number of rows meet it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError, spelled
from voile.privacy.divergence import shares
from voile.recoding.population_kernels import mine, spread_over, sums_over
from voile.recoding.units import Codes, Counts
from voile.schema import TupleIndex
from voile.schema.hierarchy import Levels

# ---------------------------------------------------------------------- items
# The items that populations are made of: values of a column and coarser values.
#
# A node that has one child is the same set of values as that child: one item, the finer of the
# two. A node that is the whole column says nothing and is no item.


@dataclass(frozen=True, eq=False)
class Items:
    """The frequent items of one column, from fine to coarse."""

    level: Codes
    node: Codes
    has: npt.NDArray[np.bool_]
    """(items, codes): whether the item has the value."""
    labels: tuple[str, ...]

    @property
    def number(self) -> int:
        """How many items there are."""
        return len(self.level)


def frequent_items(levels: Levels, codes: Codes, weights: Counts, least: int) -> Items:
    """The items that at least so many rows have; cells are given by their codes and weights."""
    found: list[tuple[int, int]] = []
    has = [np.zeros((0, levels.size), dtype=np.bool_)]
    for level in range(levels.height):
        nodes = levels.nodes[level]
        number = int(nodes.max()) + 1
        if number == 1:
            break  # this level, and every coarser one, is everything
        rows = np.bincount(nodes[codes], weights, number)
        wanted = np.flatnonzero((rows >= least) & (children(levels, level) > 1))
        found += [(level, int(node)) for node in wanted]
        has.append(nodes[None, :] == wanted[:, None])
    places = np.array(found, dtype=np.int32).reshape(-1, 2)
    labels = tuple(levels.labels[level][node] for level, node in found)
    return Items(places[:, 0], places[:, 1], np.concatenate(has), labels)


def children(levels: Levels, level: int) -> npt.NDArray[np.int64]:
    """How many nodes of the finer level each node joins; values, the finest, count as two."""
    nodes = levels.nodes[level]
    if level == 0:
        return np.full(int(nodes.max()) + 1, 2)
    finer = levels.nodes[level - 1].astype(np.int64)
    number = int(finer.max()) + 1
    pairs = np.unique(nodes * number + finer)
    return np.bincount(pairs // number, minlength=int(nodes.max()) + 1)


# ---------------------------------------------------------------------- populations


MOST_MEMBERS = 2**27
"""Places in the lists of populations' atoms: half a gigabyte of them."""


@dataclass(frozen=True, eq=False)
class Populations:
    """All large populations of a table, in the order of a depth-first search.

    Cells whose values have the same items are alike for every population: they are one *atom*.
    Sums over populations are sums over atoms.
    """

    items: tuple[Items, ...]
    kind_of: tuple[Codes, ...]
    """For each quasi-identifier (codes,): values that have the same items are of one kind."""
    atoms: Codes
    """(quasi-identifiers, atoms): the kinds that an atom is made of, in lexicographic order."""
    column: Codes
    """(populations,): the last quasi-identifier that the population has a condition on …"""
    item: Codes
    """… the item there …"""
    size: Codes
    """… and how many conditions it has. Without the last, it is the nearest one before that has
    one condition less."""
    support: Counts
    """(populations,): rows."""
    starts: Counts
    members: Codes
    """The atoms of population y are members[starts[y]:starts[y + 1]]."""
    counts: Counts
    """(atoms, sensitive values): rows."""
    true_counts: Counts
    """(populations, sensitive values): rows."""

    @property
    def number(self) -> int:
        """How many populations there are."""
        return len(self.column)

    @cached_property
    def overall(self) -> Floats:
        """Q: the distribution of sensitive values in the whole table."""
        return shares(self.counts.sum(axis=0))

    @cached_property
    def true(self) -> Floats:
        """(populations, sensitive values): the distribution in each population."""
        return shares(self.true_counts)

    @cached_property
    def choices(self) -> Codes:
        """(populations, quasi-identifiers): the item of each condition, −1 where there is none."""
        found = np.full((self.number, len(self.items)), -1, dtype=np.int32)
        path = np.full(len(self.items), -1, dtype=np.int32)
        columns: list[int] = []
        for y, (column, item, size) in enumerate(
            zip(self.column, self.item, self.size, strict=True)
        ):
            path[columns[size - 1 :]] = -1
            columns[size - 1 :] = [int(column)]
            path[column] = item
            found[y] = path
        return found

    def words(self, y: int, names: Sequence[str]) -> str:
        """A population in words: 'sex = Male and education = Higher education'."""
        return " and ".join(
            f"{name} = {items.labels[item]}"
            for name, items, item in zip(names, self.items, self.choices[y], strict=True)
            if item >= 0
        )

    def atoms_of(self, cells: Codes) -> Codes:
        """Which atom each cell is in; cells by (quasi-identifiers, cells) codes.

        A cell that matches none of the table's is refused.
        """
        kinds = [kind[codes] for kind, codes in zip(self.kind_of, cells, strict=True)]
        index = TupleIndex([int(kind.max()) + 1 for kind in self.kind_of])
        keys, known = index.encode(kinds), index.encode(list(self.atoms))
        found: Codes = np.minimum(np.searchsorted(known, keys), len(known) - 1).astype(np.int32)
        if (known[found] != keys).any():
            raise UsageError(
                "the release has a combination of values that the table does not have",
                hint="give the table that the release was made of",
            )
        return found

    def sums(self, values: Floats) -> Floats:
        """(atoms, any) → (populations, any): the sum over each population's atoms."""
        found = np.zeros((self.number, values.shape[1]))
        sums_over(self.starts, self.members, np.ascontiguousarray(values, np.float64), found)
        return found

    def spread(self, values: Floats) -> Floats:
        """(populations, any) → (atoms, any): the transpose of `sums`."""
        found = np.zeros((self.atoms.shape[1], values.shape[1]))
        spread_over(self.starts, self.members, np.ascontiguousarray(values, np.float64), found)
        return found


def populations(
    cells: Codes, levels: Sequence[Levels], least: int, sensitive: Counts
) -> Populations:
    """All populations of at least `least` rows.

    Cells are given by (quasi-identifiers, cells) codes of the schema, not positions, and by their
    (cells, sensitive values) rows. A cell may be given more than once.
    """
    weights = sensitive.sum(axis=1)
    items = tuple(
        frequent_items(of, codes, weights, max(least, 1))
        for of, codes in zip(levels, cells, strict=True)
    )
    kind_of, tables = [], []
    for of in items:
        table, kind = np.unique(of.has, axis=1, return_inverse=True)
        kind_of.append(kind.ravel().astype(np.int32))
        tables.append(table)
    index = TupleIndex([table.shape[1] for table in tables])
    kinds = [kind[codes] for kind, codes in zip(kind_of, cells, strict=True)]
    keys, atom = np.unique(index.encode(kinds), return_inverse=True)
    counts = np.zeros((len(keys), sensitive.shape[1]), dtype=np.int64)
    np.add.at(counts, atom, sensitive)
    atoms = np.stack(index.decode(keys)).astype(np.int32)
    has, numbers = stacked(tables)
    found = mine(atoms, counts.sum(axis=1), has, numbers, max(least, 1), MOST_MEMBERS)
    column, item, size, support, starts, members = found
    if len(members) > MOST_MEMBERS:
        raise UsageError(
            f"too many populations have at least {least} rows to be held in memory",
            hint=f"raise {spelled('min_support')}, or name fewer quasi-identifiers",
        )
    true_counts = np.zeros((len(column), counts.shape[1]))
    sums_over(starts, members, counts.astype(np.float64), true_counts)
    return Populations(
        items, tuple(kind_of), atoms, column, item, size, support, starts, members, counts,
        np.rint(true_counts).astype(np.int64),
    )  # fmt: skip


def stacked(tables: Sequence[npt.NDArray[np.bool_]]) -> tuple[npt.NDArray[np.bool_], Counts]:
    """All tables as one (columns, items, kinds) array, and how many items each has."""
    items, kinds = (max(table.shape[axis] for table in tables) for axis in (0, 1))
    found = np.zeros((len(tables), items, kinds), dtype=np.bool_)
    for j, table in enumerate(tables):
        found[j, : table.shape[0], : table.shape[1]] = table
    return found, np.array([table.shape[0] for table in tables], dtype=np.int64)
