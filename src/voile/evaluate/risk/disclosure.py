"""A table as risk sees it: its different combinations of values, each with how many rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voile.arrays import Floats
from voile.engines.table import Table
from voile.errors import TableError, UsageError, spelled
from voile.kinds.classes.reading import MOST_HELD
from voile.privacy.requirements import Histograms, L, Requirement, Semantic, T
from voile.recoding.units import Codes, Counts, Units
from voile.records import Record

LARGEST_KEY = 2**62


@dataclass(frozen=True, eq=False)
class RiskRows:
    """The rows in numbers, and where cells are suppressed."""

    units: Units
    suppressed: npt.NDArray[np.bool_]
    """(quasi-identifiers, units): whether the cell is suppressed."""

    @property
    def suppressed_cells(self) -> int:
        """How many cells of rows are suppressed."""
        return int((self.suppressed * self.units.weights).sum())

    @property
    def suppressed_rows(self) -> int:
        """Rows of which no quasi-identifier is shown."""
        return int(self.units.weights[self.suppressed.all(axis=0)].sum())

    def without_suppressed_rows(self) -> RiskRows:
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
        return RiskRows(left, self.suppressed[:, kept])


def read(
    table: Table,
    qi: Sequence[str],
    sensitive: Sequence[str],
    population: Table | None,
    suppressed: Sequence[str],
) -> RiskRows:
    """The table's rows, and those of a population that has the same quasi-identifiers."""
    found = combined(table, [*qi, *sensitive])
    if found.num_rows == 0:
        raise TableError(f"table {table.name!r} has no rows", hint="there is nothing to measure")
    others = None if population is None else combined(population, population.check_columns(qi))
    return coded_rows(found, others, qi, sensitive, suppressed)


def coded_rows(
    found: pa.Table,
    others: pa.Table | None,
    qi: Sequence[str],
    sensitive: Sequence[str],
    suppressed: Sequence[str] = (),
) -> RiskRows:
    """Combinations of a table, and of a population, in numbers: a unit for each, in their order."""
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
    return RiskRows(units, np.stack(stars))


def combined(table: Table, names: Sequence[str]) -> pa.Table:
    """All different combinations of values: the quasi-identifiers are compared with each other."""
    check_held(table, names)
    return pa.Table.from_batches(table.combinations(names))


def check_held(table: Table, names: Sequence[str]) -> None:
    """Refuse a table elsewhere with more combinations than this process holds."""
    if table.at_hand or len(table) <= MOST_HELD:
        return
    if (different := table.different_combinations(names)) > MOST_HELD:
        raise TableError(
            f"risk compares all combinations of {', '.join(names)} in this process, and "
            f"{different:,} different ones of {table.name!r} are more than {MOST_HELD:,}",
            hint=f"name fewer columns with {spelled('qi')}, those that others may know; or declare "
            "a view on the cluster with coarser values",
        )


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


# ----- how likely a row is found again: by someone who knows that a person is in the table, or not


@dataclass(frozen=True, eq=False)
class Reidentification(Record):
    """The chance of each class's rows to be told apart, and what it comes to.

    With `among` as the class sizes of the table itself this is the prosecutor, who knows that the
    person is in the table; with those of the population the journalist, who does not.
    """

    chances: Floats
    """(classes,): 1 divided by the people that a row of the class may be."""
    rows: Counts
    threshold: float

    json_keys = ("largest", "average", "above_threshold=above")

    @property
    def largest(self) -> float:
        """The worst row's chance."""
        return float(self.chances.max())

    @property
    def average(self) -> float:
        """The share of rows that are found again if each is guessed once: the marketer's."""
        return float((self.chances * self.rows).sum() / self.rows.sum())

    @property
    def above(self) -> float:
        """The share of rows whose chance is above the threshold."""
        return self.share_above(self.threshold)

    def share_above(self, threshold: float) -> float:
        """The share of rows whose chance is above this."""
        risky = self.rows[self.chances > threshold * (1 + 1e-12)]
        return float(risky.sum() / self.rows.sum())

    def steps(self) -> list[tuple[float, float]]:
        """Each chance that occurs, with the share of rows that have it or more."""
        chances, place = np.unique(self.chances, return_inverse=True)
        rows = np.bincount(place, self.rows)
        shares = rows[::-1].cumsum()[::-1] / rows.sum()
        return [(float(c), float(s)) for c, s in zip(chances, shares, strict=True)]


def prosecutor(cells: Cells, threshold: float) -> Reidentification:
    """Someone who knows that the person is in the table."""
    there = cells.rows > 0
    return Reidentification(1 / cells.rows[there], cells.rows[there], threshold)


def journalist(cells: Cells, threshold: float) -> Reidentification | None:
    """Someone who knows only that the person is in the population."""
    if cells.population is None:
        return None
    there = cells.rows > 0
    people = np.maximum(cells.population, cells.rows)[there]
    return Reidentification(1 / people, cells.rows[there], threshold)


@dataclass(frozen=True)
class PresenceRisk(Record):
    """The least and the largest share of the population's people of a class that are in ours."""

    low: float
    high: float


def presence(cells: Cells) -> PresenceRisk | None:
    """The shares of the population that are in the table; None without a population."""
    if cells.population is None:
        return None
    shares = cells.rows / np.maximum(cells.population, cells.rows)
    return PresenceRisk(float(shares.min()), float(shares.max()))


# ------------------------- what classes tell about sensitive values: ℓ, t and δ of the worst class


PART = 2**22
"""Counts of classes by values that are held at a time."""

MEASURES: dict[str, Requirement] = {
    "l_distinct": L(1, "distinct"),
    "l_frequency": L(1, "frequency"),
    "l_entropy": L(1, "entropy"),
    "t": T(0, "js"),
    "t_emd_equal": T(0, "emd-equal"),
    "semantic": Semantic(0, "forbidden"),
    "semantic_ignored": Semantic(0, "ignored"),
}
"""What is measured of a sensitive attribute, by its key; the bounds do not matter here."""

LARGER_IS_SAFER = ("l_distinct", "l_frequency", "l_entropy")


@dataclass(frozen=True)
class Disclosure:
    """The worst of all classes, for one sensitive attribute."""

    attribute: str
    values: int
    measured: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        found = {key: as_json(key, value) for key, value in self.measured.items()}
        return {"attribute": self.attribute, "values": self.values, **found}


def as_json(key: str, value: float) -> float | None:
    """JSON has no infinity; and how many values there are is a whole number."""
    if not np.isfinite(value):
        return None
    return int(value) if key == "l_distinct" else float(value)


def disclosures(units: Units, cells: Cells, names: tuple[str, ...]) -> tuple[Disclosure, ...]:
    """For each sensitive attribute what the classes tell about it."""
    return tuple(disclosure(units, cells, number, name) for number, name in enumerate(names))


def disclosure(units: Units, cells: Cells, number: int, name: str) -> Disclosure:
    """What the classes show of one sensitive attribute."""
    found: dict[str, list[float]] = {key: [] for key in MEASURES}
    for part in histograms(units, cells, number):
        for key, requirement in MEASURES.items():
            found[key].append(requirement.worst(requirement.measured(part)))
    measured = {
        key: min(worst) if key in LARGER_IS_SAFER else max(worst) for key, worst in found.items()
    }
    return Disclosure(name, int((units.overall[number] > 0).sum()), measured)


def histograms(units: Units, cells: Cells, number: int) -> Iterator[Histograms]:
    """The classes' sensitive values, some classes at a time."""
    size, overall = units.sensitive_sizes[number], units.overall[number]
    order = np.argsort(cells.classes, kind="stable")
    ordered = cells.classes[order]
    many, step = len(cells.rows), max(1, PART // max(1, size))
    for first in range(0, many, step):
        last = min(first + step, many)
        here = order[np.searchsorted(ordered, first) : np.searchsorted(ordered, last)]
        places = (cells.classes[here] - first) * size + units.sensitive[number, here]
        flat = np.bincount(places, units.weights[here], (last - first) * size)
        counts = flat.astype(np.int64).reshape(last - first, size)
        yield Histograms(cells.rows[first:last], (counts,), (overall,))


def over_all(found: tuple[Disclosure, ...], key: str) -> float | None:
    """The worst of all sensitive attributes; None where there is none."""
    if not found:
        return None
    values = [d.measured[key] for d in found]
    return as_json(key, min(values) if key in LARGER_IS_SAFER else max(values))
