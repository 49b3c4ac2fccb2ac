"""What local perturbation leaves of a table's privacy, measured on the table itself.

For the steward: the numbers are made from the private table. An attacker is taken to know how its
values are distributed, which a good estimate of the table tells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from voile.arrays import Floats
from voile.engines.encode import values_at
from voile.privacy.guarantees import Breach
from voile.privacy.local import (
    WorstBreach,
    known_prior_retention,
    relative_priors,
    worst_breach,
)
from voile.records import Record
from voile.schema import Attribute, Keys, Schema, TupleIndex
from voile.schema.index import Codes

INTERVALS = 10
"""Equal intervals into which an ordered column is cut, as in the paper's experiments."""
MOST_VALUES = 100
"""Columns without an order are measured value by value up to so many."""
LISTED = 3
"""Pairs and triples of columns that are listed, those with the highest beliefs."""
USUAL_PRIOR = 0.1
"""Cells believed in with more than this beforehand are no secret, if nothing else is asked for."""
MOST_WORK = 3 * 10**7
"""Groupings of rows, times rows, beyond which beliefs in whole rows are not measured."""


@dataclass(frozen=True)
class BinCut:
    """A column cut into cells: equal intervals of its order, or single values."""

    attribute: Attribute

    @cached_property
    def edges(self) -> list[int]:
        """The first code of every cell, and the end; NULL has a cell of its own."""
        size = self.attribute.domain.size
        listed = not self.attribute.ordered and size <= MOST_VALUES
        cells = size if listed else min(size, INTERVALS)
        ends = [size * i // cells for i in range(cells + 1)]
        return [*ends, size + 1] if self.attribute.null else ends

    def cells(self, codes: Codes) -> Codes:
        """The cell of each code."""
        return np.searchsorted(np.array(self.edges), codes, side="right") - 1

    @property
    def masses(self) -> Floats:
        """The share of the domain in each cell."""
        return np.diff(np.array(self.edges, dtype=np.float64)) / self.attribute.size

    def name(self, cell: int) -> str:
        """A cell in words."""
        first, last = self.edges[cell], self.edges[cell + 1] - 1
        low, high = values_at(self.attribute, np.array([first, last])).to_pylist()
        return str(low) if first == last else f"{low} … {high}"


@dataclass(frozen=True)
class MeasuredSet(Record):
    """One, two or three columns: how uneven they are, and what of them can be found out."""

    columns: tuple[str, ...]
    cells: int
    largest_relative: float
    median_relative: float
    cell: tuple[str, ...]
    """Where the belief rises highest, among cells with at most ρ₁ before."""
    before: float
    after: float
    breached: bool | None
    """Whether that is above the requested ρ₂; None where none was requested."""
    exact_retention: float | None
    """The largest retention, alike for these columns, that prevents the requested breach here."""


@dataclass(frozen=True)
class ValueBelief(Record):
    """P[X=y | Y=y] of the table's own values: what is believed on seeing the value itself."""

    columns: tuple[str, ...]
    largest: float
    mean: float
    """Over the rows of the table."""


@dataclass(frozen=True)
class TableMeasures(Record):
    """All that is measured on the table."""

    rho1: float
    sets: tuple[MeasuredSet, ...]
    values: tuple[ValueBelief, ...]
    """Of every column, and last of whole rows where that could be afforded."""


@dataclass(frozen=True)
class RowSample:
    """A table's different rows, as codes, with the share of the table that each makes up."""

    schema: Schema
    codes: tuple[Codes, ...]
    shares: Floats

    @classmethod
    def of(cls, keys: Keys, schema: Schema) -> RowSample:
        """The sample of a table, given by its rows' keys."""
        different, counts = np.unique(keys, return_counts=True)
        codes = TupleIndex(schema.sizes).decode(different)
        return cls(schema, tuple(codes), counts / counts.sum())


def measure(sample: RowSample, retentions: Sequence[float], breach: Breach | None) -> TableMeasures:
    """What these retentions leave, over cells of up to three columns, and over values."""
    sets = tuple(measured_sets(sample, retentions, breach))
    values = [value_belief(sample, (j,), retentions) for j in range(len(sample.codes))]
    if len(sample.codes) > 1 and len(sample.shares) << len(sample.codes) <= MOST_WORK:
        values.append(value_belief(sample, tuple(range(len(sample.codes))), retentions))
    return TableMeasures(breach.rho1 if breach else USUAL_PRIOR, sets, tuple(values))


# ---------------------------------------------------------------------- cells


def measured_sets(
    sample: RowSample, retentions: Sequence[float], breach: Breach | None
) -> Iterator[MeasuredSet]:
    """Every column; then the pairs and the triples with the highest beliefs."""
    cuts = [BinCut(attribute) for attribute in sample.schema]
    cells = [cut.cells(codes) for cut, codes in zip(cuts, sample.codes, strict=True)]
    rho1 = breach.rho1 if breach else USUAL_PRIOR
    for size in (1, 2, 3):
        ranked = []
        for places in combinations(range(len(cuts)), size):
            these = [cuts[j] for j in places]
            prior = histogram([cells[j] for j in places], these, sample.shares)
            kept = [retentions[j] for j in places]
            worst = worst_breach(prior, [cut.masses for cut in these], kept, rho1)
            ranked.append((prior, these, worst))
        if size > 1:
            ranked = sorted(ranked, key=lambda one: -one[2].after if one[2] else 0.0)[:LISTED]
        yield from (measured_set(*one, breach) for one in ranked)


def histogram(cells: Sequence[Codes], cuts: Sequence[BinCut], shares: Floats) -> Floats:
    """The share of the table in every cell."""
    shape = tuple(len(cut.masses) for cut in cuts)
    place = np.ravel_multi_index(tuple(cells), shape)
    found: Any = np.bincount(place, weights=shares, minlength=math.prod(shape))
    return np.asarray(found, dtype=np.float64).reshape(shape)


def measured_set(
    prior: Floats, cuts: Sequence[BinCut], worst: WorstBreach | None, breach: Breach | None
) -> MeasuredSet:
    """What was measured on one set of columns."""
    masses = [cut.masses for cut in cuts]
    relative = relative_priors(prior, masses)
    return MeasuredSet(
        columns=tuple(cut.attribute.name for cut in cuts),
        cells=relative.cells,
        largest_relative=relative.largest,
        median_relative=relative.median,
        cell=tuple(c.name(i) for c, i in zip(cuts, worst.cell, strict=True)) if worst else (),
        before=worst.before if worst else 0.0,
        after=worst.after if worst else 0.0,
        breached=None if breach is None else worst is not None and worst.after > breach.rho2,
        exact_retention=None
        if breach is None
        else min(known_prior_retention(prior, masses, breach)),
    )


# ---------------------------------------------------------------------- values


def value_belief(
    sample: RowSample, places: tuple[int, ...], retentions: Sequence[float]
) -> ValueBelief:
    """Of some columns of every row."""
    ordered = sorted(places, key=lambda j: -sample.schema.sizes[j])
    beliefs = tuple_beliefs(
        [sample.codes[j] for j in ordered],
        sample.shares,
        [1 / sample.schema.sizes[j] for j in ordered],
        [retentions[j] for j in ordered],
    )
    names = tuple(sample.schema.names[j] for j in places)
    return ValueBelief(names, float(beliefs.max()), float(beliefs @ sample.shares))


def tuple_beliefs(
    codes: Sequence[Codes], shares: Floats, masses: Sequence[float], retentions: Sequence[float]
) -> Floats:
    """P[X=y | Y=y] for the tuple y of every row; `masses` are those of single values.

    P[Y=y] sums, over every set A of columns that were retained, the chance of A times the share
    of rows that agree with y on A. As soon as the columns of A tell all tuples apart, the
    other columns need no more grouping.
    """
    whole = grouped(codes)
    own = shares_of_groups(whole, shares)
    tuples = int(whole.max()) + 1

    def seen(column: int, labels: Codes, chance: float) -> Floats:
        if int(labels.max()) + 1 == tuples:
            rest = zip(masses[column:], retentions[column:], strict=True)
            return own * chance * float(np.prod([p + (1 - p) * m for m, p in rest]))
        if column == len(codes):
            return shares_of_groups(labels, shares) * chance
        p, m = retentions[column], masses[column]
        finer = grouped([labels, codes[column]])
        replaced = seen(column + 1, labels, chance * (1 - p) * m)
        return replaced + seen(column + 1, finer, chance * p)

    stays = np.prod([p + (1 - p) * m for m, p in zip(masses, retentions, strict=True)])
    nothing = np.zeros(len(shares), dtype=np.int64)
    return own * float(stays) / seen(0, nothing, 1.0)


def shares_of_groups(labels: Codes, shares: Floats) -> Floats:
    """For each row, the share of all rows with its label."""
    return np.asarray(np.bincount(labels, weights=shares)[labels], dtype=np.float64)


def grouped(columns: Sequence[Codes]) -> Codes:
    """A number for each different combination of values, from 0."""
    labels = np.unique(columns[0], return_inverse=True)[1]
    for column in columns[1:]:
        finer = np.unique(column, return_inverse=True)[1]
        labels = labels * (int(finer.max()) + 1) + finer
        labels = np.unique(labels, return_inverse=True)[1]
    return labels
