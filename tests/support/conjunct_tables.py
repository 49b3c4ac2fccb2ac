"""Tables of counts without a release: true ones, and ones with noise of a seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.answering.axes import ClassAxis
from voile.answering.table_query import TableCells
from voile.engines import open_domain
from voile.kinds.counts.joints import ConjunctSource, Tables
from voile.query import DomainSums
from voile.schema import Schema

Ints = npt.NDArray[Any]


def boolean_schema(names: str) -> Schema:
    return Schema.from_dict({"attributes": [{"name": n, "kind": "boolean"} for n in names]})


def axes_of(schema: Schema) -> list[ClassAxis]:
    """Every value is a class of its own."""
    return [ClassAxis(a.name, np.arange(a.size), np.arange(a.size)) for a in schema]


def counts_of(codes: Sequence[Ints], schema: Schema, some: Sequence[str], rows: Ints) -> Ints:
    """The table of some columns on some rows."""
    places = [schema.names.index(name) for name in some]
    shape = [schema.sizes[j] for j in places]
    flat = np.ravel_multi_index([codes[j][rows] for j in places], shape)
    return np.bincount(flat, minlength=math.prod(shape))


def tables_of(
    codes: Sequence[Ints],
    schema: Schema,
    arity: int,
    sides: Sequence[Ints],
    variance: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Tables:
    """From the rows of the first side of each half; without sides, of all rows."""
    rows = len(codes[0])
    everyone = np.arange(rows)
    data = {}
    for some in combinations(schema.names, arity):
        whole = counts_of(codes, schema, some, everyone)
        first = [counts_of(codes, schema, some, side) for side in sides]
        found = np.array([[one, whole - one] for one in first]) if sides else whole[None]
        if variance:
            assert rng is not None
            found = found + np.rint(rng.normal(0, math.sqrt(variance), found.shape)).astype(int)
        data[some] = found
    return Tables(schema, arity, len(sides), rows, variance, data.__getitem__)


def source_of(tables: Tables) -> ConjunctSource:
    view = open_domain(tables.schema)
    return ConjunctSource(view, DomainSums(tables.schema, view.domain), tables.schema, tables)


def all_cells(read: Sequence[int], schema: Schema) -> TableCells:
    """Every combination of values of some columns is a group of its own."""
    shape = [schema.sizes[j] for j in read]
    count = math.prod(shape)
    places = np.unravel_index(np.arange(count), shape)
    nothing = np.zeros(count, np.int64)
    coordinates = [nothing] * len(schema.sizes)
    for place, j in zip(places, read, strict=True):
        coordinates[j] = place
    return TableCells(tuple(coordinates), np.arange(count), count, np.ones((1, count)))


def random_half(rng: np.random.Generator, rows: int) -> Ints:
    return rng.permutation(rows)[: -(-rows // 2)]
