"""A table as risk sees it: its different combinations of values, each with how many rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voile.engines.table import Table
from voile.errors import TableError, UsageError
from voile.recoding.units import Codes, Counts, Units

LARGEST_KEY = 2**62


@dataclass(frozen=True, eq=False)
class Read:
    """The rows in numbers, and where cells are suppressed."""

    units: Units
    suppressed: npt.NDArray[np.bool_]
    """(quasi-identifiers, units): whether the cell is suppressed."""

    @property
    def suppressed_cells(self) -> int:
        return int((self.suppressed * self.units.weights).sum())

    @property
    def suppressed_rows(self) -> int:
        """Rows of which no quasi-identifier is shown."""
        return int(self.units.weights[self.suppressed.all(axis=0)].sum())

    def without_suppressed_rows(self) -> Read:
        """The rows of which something is shown."""
        kept = ~self.suppressed.all(axis=0)
        units = self.units
        if not units.weights[kept].any():
            raise TableError(
                "every row is suppressed", hint="count suppressed rows, or choose other columns"
            )
        left = Units(
            units.codes[:, kept],
            units.sizes,
            units.sensitive[:, kept],
            units.sensitive_sizes,
            units.weights[kept],
            None if units.population is None else units.population[kept],
        )
        return Read(left, self.suppressed[:, kept])


def read(
    table: Table,
    qi: Sequence[str],
    sensitive: Sequence[str],
    population: Table | None,
    suppressed: Sequence[str],
) -> Read:
    """The table's rows, and those of a population that has the same quasi-identifiers."""
    found = combined(table, [*qi, *sensitive])
    if found.num_rows == 0:
        raise TableError(f"table {table.name!r} has no rows", hint="there is nothing to measure")
    others = None if population is None else combined(population, population.check_columns(qi))
    parts = [found] if others is None else [found, others]
    coded = [_coded([part.column(i) for part in parts]) for i in range(len(qi))]
    own = [_coded([found.column(len(qi) + i)]) for i in range(len(sensitive))]
    weights = _count(found)
    people = None
    if others is not None:
        people = np.concatenate([np.zeros_like(weights), _count(others)])
        weights = np.concatenate([weights, np.zeros(others.num_rows, dtype=np.int64)])
    units = Units(
        np.stack([codes for codes, _ in coded]),
        tuple(len(values) for _, values in coded),
        _padded([codes for codes, _ in own], len(weights)),
        tuple(len(values) for _, values in own),
        weights,
        people,
    )
    stars = [
        np.array([value in suppressed for value in values.to_pylist()])[codes]
        for codes, values in coded
    ]
    return Read(units, np.stack(stars))


def combined(table: Table, names: Sequence[str]) -> pa.Table:
    """All different combinations of values: the quasi-identifiers are compared with each other."""
    return pa.Table.from_batches(table.combinations(names))


def _coded(parts: list[pa.ChunkedArray]) -> tuple[Codes, pa.Array]:
    """A number for each different text, NULL among them, and the texts in their order."""
    chunks = [chunk for part in parts for chunk in part.chunks]
    whole = pa.chunked_array(chunks, pa.string()).combine_chunks()
    encoded = pc.dictionary_encode(whole, null_encoding="encode")
    order = pc.sort_indices(encoded.dictionary).to_numpy()  # sums must not depend on the scan
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    codes: Codes = place[encoded.indices.to_numpy(zero_copy_only=False)]
    return codes, encoded.dictionary.take(pa.array(order))


def _count(found: pa.Table) -> Counts:
    counts: Counts = found.column(found.num_columns - 1).to_numpy().astype(np.int64)
    return counts


def _padded(own: list[Codes], length: int) -> Codes:
    """Sensitive values, with any value where only the population has rows: those weigh nothing."""
    padded = np.zeros((len(own), length), dtype=np.int32)
    for row, codes in zip(padded, own, strict=True):
        row[: len(codes)] = codes
    return padded


@dataclass(frozen=True, eq=False)
class Cells:
    """The classes: different combinations of quasi-identifiers, each with its rows."""

    classes: npt.NDArray[np.int64]
    """(units,): the class of each unit."""
    codes: Codes
    """(quasi-identifiers, classes)"""
    sizes: tuple[int, ...]
    rows: Counts
    """(classes,): rows of the table; 0 where only the population has rows."""
    population: Counts | None


def cells_of(units: Units) -> Cells:
    """Units that are alike in all quasi-identifiers together."""
    keys = keys_of(units.codes, units.sizes)
    _, first, classes = np.unique(keys, return_index=True, return_inverse=True)
    rows = np.bincount(classes, units.weights).astype(np.int64)
    population = None
    if units.population is not None:
        population = np.bincount(classes, units.population).astype(np.int64)
    return Cells(classes, units.codes[:, first], units.sizes, rows, population)


def keys_of(codes: Codes, sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    """One number for each combination of codes, ranked anew where numbers would grow too large."""
    if not len(sizes):
        raise UsageError("no columns were chosen", hint="name at least one")
    keys: npt.NDArray[np.int64] = codes[0].astype(np.int64)
    largest = sizes[0]
    for column, size in zip(codes[1:], sizes[1:], strict=True):
        if largest * size > LARGEST_KEY:
            known, keys = np.unique(keys, return_inverse=True)
            largest = len(known)
        keys = keys * size + column
        largest *= size
    return keys
