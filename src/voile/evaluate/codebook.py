"""What a codebook does to a table: rows that it does not know, values that it moves, noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.arrow import numpy_array
from voile.engines import connect
from voile.engines.encode import ARROW, OUTSIDE, clamped, codes, values_at
from voile.engines.table import Table
from voile.errors import SchemaError
from voile.kinds.choosing import EpsilonPromise
from voile.kinds.marginals.candidates import rho_with_choice
from voile.kinds.marginals.choosing import WIDE, all_tables
from voile.kinds.marginals.measuring import MeasurementPlan, gaussian_plan, pure_plan
from voile.kinds.marginals.residuals import balanced
from voile.records import Record
from voile.schema import Attribute, Schema
from voile.schema.attribute import value_words

__all__ = ["CodebookGroup", "ColumnEffect", "codebook_effects", "single_count_errors"]

EPSILON, DELTA = 1.0, 1e-9
"""What `voile publish` promises if nothing else is said."""
MOST_COUNTED = 2**20
"""Values of a column that are counted one by one."""
SHOWN = 60
"""Groups that are listed for a column: all of them, or those with most rows."""
NUMBERS = ("integer", "numeric")


@dataclass(frozen=True)
class CodebookGroup(Record):
    """A value or bin of a codebook, and its rows."""

    label: str
    rows: int


@dataclass(frozen=True)
class ColumnEffect(Record):
    """What the declared domain of one column does. For the steward only: counts are true."""

    column: str
    kind: str
    size: int
    """Values that it declares, NULL among them."""
    rows: int
    nulls: int
    """Rows without a value."""
    nulls_refused: bool
    """Whether there are such rows, and NULL is not declared: a release would stop."""
    outside: int
    """Rows whose value is not declared."""
    handled: bool
    """Whether those are moved to the nearest value, or to the one that stands for others."""
    examples: tuple[str, ...]
    """Some of the values that are not declared."""
    mean: float | None
    """Of numbers."""
    shown_mean: float | None
    """The mean of what is published instead of them, without noise."""
    groups: tuple[CodebookGroup, ...]
    """In the order of the codebook; where there are many, those with most rows first."""
    left_out: int
    """Groups that are not listed."""
    noise: float
    """The standard error of one of its counts."""
    below_noise: int | None
    """How many of its values or bins have fewer rows than that; None where they are too many."""

    json_keys = (
        "column", "kind", "size", "rows", "nulls", "nulls_refused", "outside", "outside_share",
        "handled", "examples", "mean", "shown_mean", "bias", "groups", "left_out", "noise",
        "below_noise",
    )  # fmt: skip

    @property
    def outside_share(self) -> float:
        """The share of rows whose value is not declared."""
        return self.outside / self.rows if self.rows else 0.0

    @property
    def bias(self) -> float | None:
        """How far the mean is moved."""
        if self.mean is None or self.shown_mean is None:
            return None
        return self.shown_mean - self.mean


def codebook_effects(
    table: object,
    schema: Schema | str | Path,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rows_per_person: int = 1,
) -> tuple[ColumnEffect, ...]:
    """What publishing a table with this codebook would do to each column.

    `noise` is that of counts of one column, if all columns share (ε, δ) and nothing else is
    published: with tables of several columns there is more. Values that a column holds and the
    codebook does not declare stop a release, unless the codebook says `other` or `clamp`.
    """
    private = connect(table)
    declared = Schema.open(schema) if isinstance(schema, str | Path) else schema
    names = private.check_columns(declared.names)
    noise = single_count_errors(
        declared, epsilon=epsilon, delta=delta, rows_per_person=rows_per_person
    )
    tallies = [ColumnTally(attribute) for attribute in declared]
    for batch in private.typed(names):
        for i, tally in enumerate(tallies):
            tally.add(as_kind(batch.column(i), tally.attribute, private))
    return tuple(tally.effect(error) for tally, error in zip(tallies, noise, strict=True))


def single_count_errors(
    schema: Schema,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rows_per_person: int = 1,
) -> list[float]:
    """By column, the standard error of a count of one of its values: all columns share (ε, δ)."""
    promise = EpsilonPromise(epsilon or EPSILON, delta or DELTA, rows_per_person=rows_per_person)
    sizes = tuple(schema.sizes)
    weights = balanced(sizes, all_tables(len(sizes), 1))
    rho = rho_with_choice(promise) if len(sizes) >= WIDE else promise.rho
    plans = [gaussian_plan(sizes, weights, rho=rho, unit="add-remove")]
    if len(sizes) < WIDE:
        plans.append(pure_plan(sizes, weights, epsilon=promise.pure, unit="add-remove"))
    return min((column_errors(plan, sizes) for plan in plans), key=sum)


def column_errors(plan: MeasurementPlan, sizes: Sequence[int]) -> list[float]:
    """The standard error of a cell of each column's table; of a single value that of all rows."""
    found = plan.residual_plan()
    tables = [(i,) if size > 1 else () for i, size in enumerate(sizes)]
    return [math.sqrt(found.cell_variance(table)) for table in tables]


def as_kind(column: Any, attribute: Attribute, table: Table) -> Any:
    """A column as the kind that the codebook says, where that can be done."""
    wanted = ARROW[attribute.kind]
    if column.type == wanted:
        return column
    try:
        return column.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        found = table.kind(attribute.name) or table.columns[attribute.name]
        raise SchemaError(
            f"column {attribute.name!r} is {found} in the table, and {attribute.kind} in the "
            "codebook: some of its values are not of that kind",
            hint=f"declare it as {found}, or read the table in another way",
        ) from None


class ColumnTally:
    """What has been counted of one column."""

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute
        counted = attribute.size <= MOST_COUNTED
        self._counts: npt.NDArray[np.int64] | None = (
            np.zeros(attribute.size, np.int64) if counted else None
        )
        self._rows = self._nulls = self._outside = 0
        self._examples: dict[str, None] = {}
        self._sum = self._shown_sum = 0.0
        self._filled = self._shown = 0

    def add(self, column: Any) -> None:
        """Count some rows."""
        attribute = self.attribute
        missing = numpy_array(column.is_null())
        own = codes(column, replace(attribute, other=None))
        beyond = (own == OUTSIDE) & ~missing
        moved = clamped(column, attribute) if attribute.clamp else column
        placed = codes(moved, attribute)
        inside = placed != OUTSIDE
        self._rows += len(own)
        self._nulls += int(missing.sum())
        self._outside += int(beyond.sum())
        self._note_examples(column, beyond)
        if self._counts is not None:
            self._counts += np.bincount(placed[inside], minlength=attribute.size)
        if attribute.kind in NUMBERS:
            self._add_numbers(column, missing, placed, inside & ~missing)

    def _note_examples(self, column: Any, beyond: npt.NDArray[np.bool_]) -> None:
        for place in np.flatnonzero(beyond)[: 3 - len(self._examples)].tolist():
            self._examples[str(column[place].as_py())] = None

    def _add_numbers(
        self,
        column: Any,
        missing: npt.NDArray[np.bool_],
        placed: npt.NDArray[np.int64],
        kept: npt.NDArray[np.bool_],
    ) -> None:
        given = numpy_array(column, 0).astype(np.float64)
        self._sum += float(given[~missing].sum())
        self._filled += int((~missing).sum())
        shown = numpy_array(values_at(self.attribute, placed[kept])).astype(np.float64)
        self._shown_sum += float(shown.sum())
        self._shown += len(shown)

    def effect(self, noise: float) -> ColumnEffect:
        """All that was counted."""
        attribute = self.attribute
        groups, left_out = self._groups()
        return ColumnEffect(
            column=attribute.name,
            kind=attribute.kind,
            size=attribute.size,
            rows=self._rows,
            nulls=self._nulls,
            nulls_refused=bool(self._nulls) and not attribute.null,
            outside=self._outside,
            handled=attribute.clamp or attribute.other is not None,
            examples=tuple(self._examples),
            mean=self._sum / self._filled if self._filled else None,
            shown_mean=self._shown_sum / self._shown if self._shown else None,
            groups=groups,
            left_out=left_out,
            noise=noise,
            below_noise=None if self._counts is None else int((self._counts < noise).sum()),
        )

    def _groups(self) -> tuple[tuple[CodebookGroup, ...], int]:
        counts, size = self._counts, self.attribute.size
        if counts is None:
            return (), size
        words = value_words(self.attribute)
        places = np.arange(size) if size <= SHOWN else np.argsort(-counts, kind="stable")[:SHOWN]
        found = [CodebookGroup(words[code], int(counts[code])) for code in places.tolist()]
        return tuple(found), size - len(found)
