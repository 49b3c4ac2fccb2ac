"""Expressions of binned columns on points within the bins, and their means there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voile.answering.bin_shapes import BinShapes
from voile.arrays import Floats
from voile.arrow import arrow_array, numpy_array
from voile.engines.encode import domain_array
from voile.engines.rows import PublicDomain
from voile.query.predicate import ROW, Atom, Expression, Predicate, as_atom, attributes
from voile.query.quoting import literal, quote_identifier
from voile.query.text import read_back
from voile.schema import Attribute, Range, Schema
from voile.schema.attribute import day_of

MOST_TUPLES = 2**19
"""Points on which the parts of a query are tried together."""
MOST_CELLS = 4096
"""Combinations of values of which a part has a number of its own."""
SAME = 1e-12
"""By which numbers differ that are the same but for rounding, relative to the largest."""
POINTS = (64, 32, 16, 8, 4, 2)
"""Within a bin, besides its ends."""


@dataclass(frozen=True, eq=False)
class PointTable:
    """All combinations of some columns' values, with points within the bins of each.

    The ends of bins are among the points, and weigh nothing.
    """

    engine: PublicDomain
    columns: tuple[Attribute, ...]
    shapes: Mapping[str, BinShapes]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each column has."""
        return tuple(a.size for a in self.columns)

    @property
    def cells(self) -> int:
        """How many combinations there are."""
        return math.prod(self.shape)

    @property
    def binned(self) -> tuple[str, ...]:
        """The columns that are known by their bins."""
        return tuple(a.name for a in self.columns if a.name in self.shapes)

    @cached_property
    def count(self) -> int | None:
        """Points of each bin; None where there would be too many."""
        if self.cells > MOST_CELLS:
            return None
        fits = (n for n in POINTS if self.cells * (n + 2) ** len(self.binned) <= MOST_TUPLES)
        return next(fits, None)

    @cached_property
    def weights(self) -> Floats:
        """Of each point of a cell: they add up to 1."""
        assert self.count is not None  # noqa: S101  (asked first)
        one = np.array([0.0, *np.full(self.count, 1 / self.count), 0.0])
        found = np.ones(1)
        for _ in self.binned:
            found = np.outer(found, one).ravel()
        return found

    @cached_property
    def _table(self) -> pa.Table:
        assert self.count is not None  # noqa: S101
        places = (self.count + 2,) * len(self.binned)
        codes = np.unravel_index(np.arange(self.cells), self.shape)
        inside = np.unravel_index(np.arange(math.prod(places)), places) if places else ()
        columns = []
        for attribute, cell in zip(self.columns, codes, strict=True):
            code = np.repeat(cell, len(self.weights))
            if attribute.name not in self.shapes:
                columns.append(domain_array(attribute).take(arrow_array(code)))
                continue
            point = np.tile(inside[self.binned.index(attribute.name)], self.cells)
            columns.append(self._numbers(attribute, code, point))
        return pa.table(columns, names=[a.name for a in self.columns])

    def _numbers(
        self, attribute: Attribute, code: npt.NDArray[Any], point: npt.NDArray[Any]
    ) -> pa.Array:
        found = self.shapes[attribute.name]
        low, high = found.ends
        numbers = np.column_stack([low, found.points(self.count or 0), high])
        missing = code >= found.size
        values = numbers[np.where(missing, 0, code), point]
        if attribute.kind == "date":
            return arrow_array(values.astype(np.int32), missing).view(pa.date32())
        if isinstance(attribute.domain, Range):  # its own values are whole, in SQL as well
            values = values.astype(np.int64)
        return arrow_array(values, missing)

    def numbers(self, part: Expression | Predicate) -> Floats:
        """(cells, points): a value, or 1 where a condition is true; NaN where it is unknown."""
        condition = not isinstance(part, Expression) or isinstance(part, Atom)
        found = self._found(part)
        kind = pa.bool_() if condition else pa.float64()
        values = pc.cast(pc.cast(found, kind), pa.float64())
        numbers: Floats = numpy_array(values, 0.0 if condition else math.nan)
        return numbers.reshape(self.cells, len(self.weights))

    def differs(self, part: Expression | Predicate) -> bool:
        """Whether a value of any type, a text or a date, or a condition differs within a cell."""
        found = self._found(part)
        if pa.types.is_floating(found.type):  # −0 and 0 are one value, and have two codes
            found = pc.add(found, 0.0)
        coded = pc.dictionary_encode(found).indices
        codes = numpy_array(coded, -1).reshape(self.cells, len(self.weights))
        return bool((codes != codes[:, :1]).any())

    def values(self, part: Expression) -> list[Any]:
        """An expression of any type on every point that weighs something."""
        inner = np.tile(self.weights > 0, self.cells)
        found: list[Any] = pc.filter(self._found(part), arrow_array(inner)).to_pylist()
        return found

    def _found(self, part: Expression | Predicate) -> pa.Array:
        expression = part if isinstance(part, Expression) else as_atom(part, self._reads(part))
        (found,) = self.engine.on_tuples([expression], self._table)
        return found

    def _reads(self, part: Predicate) -> list[str]:
        read = attributes(part)
        return [a.name for a in self.columns if a.name in read]

    @cached_property
    def positions(self) -> dict[str, Floats]:
        """(cells, points): where in its bin each point is, in widths."""
        found = {}
        for name in self.binned:
            shape = self.shapes[name]
            code = np.unravel_index(np.arange(self.cells), self.shape)[
                [a.name for a in self.columns].index(name)
            ]
            code = np.minimum(code, shape.size - 1)
            column = self._table.column(name).combine_chunks()
            if pa.types.is_date(column.type):
                column = column.view(pa.int32())
            values = numpy_array(pc.cast(column, pa.float64()), 0.0).reshape(self.cells, -1)
            found[name] = (values - shape.edges[code][:, None]) / shape.widths[code][:, None]
        return found

    def of_bins(self, name: str, numbers: Floats) -> Floats:
        """(cells,): a number of each bin, 0 where the column is NULL."""
        place = [a.name for a in self.columns].index(name)
        code = np.unravel_index(np.arange(self.cells), self.shape)[place]
        return np.asarray(np.append(numbers, 0.0)[np.minimum(code, len(numbers))])

    def mean(self, numbers: Floats) -> Floats:
        """(cells,)"""
        return np.asarray(np.where(np.isnan(numbers), 0.0, numbers) @ self.weights)

    def at_ends(self, numbers: Floats, name: str) -> tuple[Floats, Floats]:
        """(cells,): the means at the lower and at the upper end of a column's bins."""
        assert self.count is not None  # noqa: S101  (asked first)
        size, axis = self.count + 2, self.binned.index(name)
        shape = (size,) * len(self.binned)
        weights = self.weights.reshape(shape).sum(axis=axis).ravel()
        found = np.where(np.isnan(numbers), 0.0, numbers).reshape(self.cells, *shape)
        low, high = (
            found.take(end, axis=axis + 1).reshape(self.cells, -1) @ weights
            for end in (0, size - 1)
        )
        return np.asarray(low), np.asarray(high)

    def covariance(self, left: Floats, right: Floats) -> Floats:
        """(cells,): of two numbers within each cell."""
        return self.mean(left * right) - self.mean(left) * self.mean(right)

    def lookup(self, numbers: Floats, row: str) -> Expression:
        """A number of each combination, as an expression of one row."""
        columns, values = told_apart(self.columns, numbers.reshape(self.shape))
        sql = lookup_sql(columns, values, row)
        return Expression(read_back(sql), tuple(a.name for a in columns))

    def condition(self, flags: Floats, row: str) -> Atom:
        """Whether something holds of each combination, as a condition on one row."""
        columns, values = told_apart(self.columns, flags.reshape(self.shape))
        sql = f"({lookup_sql(columns, values, row)}) > 0"
        return Atom(read_back(sql), tuple(a.name for a in columns))


def point_table(
    names: set[str], schema: Schema, shapes: Mapping[str, BinShapes], engine: PublicDomain
) -> PointTable:
    """The points of some columns."""
    return PointTable(engine, tuple(a for a in schema if a.name in names), shapes)


def told_apart(
    columns: tuple[Attribute, ...], values: Floats
) -> tuple[tuple[Attribute, ...], Floats]:
    """The columns on which numbers depend, at least one: of the others they are the same."""
    scale = float(np.abs(values).max(initial=0.0))
    for axis in reversed(range(len(columns))):
        first = values.take([0], axis=axis)
        if len(columns) > 1 and bool((np.abs(values - first) <= SAME * scale).all()):
            columns = columns[:axis] + columns[axis + 1 :]
            values = np.asarray(values.take(0, axis=axis))
    return columns, values


def lookup_sql(columns: Sequence[Attribute], values: Floats, row: str) -> str:
    """Nested CASE: which number each combination of values has."""
    if not columns:
        return f"CAST({float(values)!r} AS DOUBLE)"
    attribute, rest = columns[0], columns[1:]
    name = f"{row}{quote_identifier(attribute.name)}"
    inner = [lookup_sql(rest, values[code], row) for code in range(attribute.size)]
    if len(set(inner)) == 1 and not attribute.null:
        return inner[0]
    cases = []
    if attribute.null:
        cases.append(f"WHEN {name} IS NULL THEN {inner.pop()}")
    edges = getattr(attribute.domain, "edges", None)
    if edges is None:
        words = [literal_of(attribute, code) for code in range(len(inner))]
        cases += [f"WHEN {name} = {w} THEN {v}" for w, v in zip(words, inner, strict=True)]
        return f"CASE {' '.join(cases)} END"
    cases += [
        f"WHEN {name} < {edge_literal(attribute, edge)} THEN {v}"
        for edge, v in zip(edges[1:-1], inner, strict=False)
    ]
    return f"CASE {' '.join(cases)} ELSE {inner[-1]} END" if cases else inner[-1]


def edge_literal(attribute: Attribute, edge: float) -> str:
    """An edge of bins in SQL."""
    if attribute.kind == "date":
        return f"CAST({literal(day_of(edge))} AS DATE)"
    return f"CAST({edge!r} AS DOUBLE)"


def literal_of(attribute: Attribute, code: int) -> str:
    """A value of a domain in SQL."""
    value = attribute.domain.at(code)
    if attribute.kind == "date":
        return f"CAST({literal(value)} AS DATE)"
    if attribute.kind == "numeric":
        return f"CAST({value!r} AS DOUBLE)"
    return literal(value)


def row_prefix(tables: Sequence[str]) -> str:
    """Beside other tables a bare name could mean one of theirs."""
    return f'"{ROW}".' if tables else ""
