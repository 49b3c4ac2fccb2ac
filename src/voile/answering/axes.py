"""The classes of each column that a query reads, from the public domain.

A query cuts the domain of each column into classes, within which none of its conditions and groups
differs. A query is a function of the classes, and lives on tensors with one axis for each
column (cells.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voile.arrays import Floats, Ints
from voile.arrow import numpy_array
from voile.errors import QueryError
from voile.query.predicate import Atom, Expression, wording
from voile.schema import Schema

MOST_ATOMS = 60
"""Conditions on one column: their truth values are the bits of one number."""
MOST_VALUES = 2**24
"""Values of one column on which a condition is computed."""
MOST_LISTED = 2**22
"""Combinations of values on which an expression of several columns is computed."""
MOST_STATES = 2**24


@dataclass(frozen=True)
class ClassAxis:
    """One column's part of a query: the classes of its values."""

    attribute: str
    class_of: Ints
    """The class of every value of the domain."""
    representative: Ints
    """A value of each class."""
    value: Expression | None = None
    """What is summed of it (phi), where classes hold several values of that."""
    present: npt.NDArray[np.bool_] = field(default_factory=lambda: np.ones(0, np.bool_))
    """Whether phi is not NULL on each class."""
    powers: int = 1
    """1, and the powers of phi that are kept apart."""

    @property
    def classes(self) -> int:
        """How many classes the column has."""
        return len(self.representative)

    @property
    def states(self) -> int:
        """Pairs of a class and a power of phi."""
        return self.classes * self.powers

    def cut(self, keep: Ints) -> ClassAxis:
        """Only some of its classes."""
        return replace(self, representative=self.representative[keep])


class DomainArrays:
    """Expressions on the domain, with what was computed kept as plain arrays."""

    def __init__(self, domain: Any, schema: Schema) -> None:
        self._domain, self._schema = domain, schema

    def on(self, part: Atom | Expression) -> pa.Array:
        """An expression on the domain of the columns that it reads."""
        size = math.prod(self._schema[name].size for name in part.attributes)
        several = len(part.attributes) > 1
        if size > (most := MOST_LISTED if several else MOST_VALUES):
            raise QueryError(
                f"{wording(part)} has to be computed on {size:,} "
                f"{'combinations of ' if several else ''}values, more than {most:,}",
                hint="declare coarser domains: bins, or a larger step",
            )
        (found,) = self._domain.evaluate([part])
        return found

    def truth(self, atom: Atom) -> npt.NDArray[np.bool_]:
        """Where a condition is true; NULL is not."""
        return numpy_array(pc.cast(self.on(atom), pa.bool_()))

    def numbers(self, value: Expression) -> Floats:
        """NaN where it is NULL."""
        found = pc.cast(self.on(value), pa.float64())
        return numpy_array(found, math.nan)

    def labels(self, part: Expression) -> tuple[Ints, list[Any]]:
        """A number for each different value, and the values."""
        coded = pc.dictionary_encode(self.on(part), null_encoding="encode")
        return numpy_array(coded.indices).astype(np.int64), coded.dictionary.to_pylist()


@dataclass(frozen=True)
class QueryParts:
    """All that a query reads, once each."""

    atoms: tuple[Atom, ...]
    groups: tuple[Expression, ...]
    values: tuple[Expression, ...]
    degree: int = 1
    """How often one value may be a factor of one term."""

    def everything(self) -> tuple[Atom | Expression, ...]:
        """All conditions, groups and values."""
        return (*self.atoms, *self.groups, *self.values)

    def attributes(self, schema: Schema) -> list[str]:
        """The attributes that they read."""
        read = {name for part in self.everything() for name in part.attributes}
        return [name for name in schema.names if name in read]


def packed(truths: Sequence[npt.NDArray[np.bool_]], size: int) -> Ints:
    """Truth values as the bits of one number, the first one lowest."""
    found = np.zeros(size, dtype=np.int64)
    for i, truth in enumerate(truths):
        found |= truth.astype(np.int64) << i
    return found


def slices(part: Atom | Expression, name: str, schema: Schema, domain: DomainArrays) -> Ints:
    """A number for each different behaviour of a part, as one of its columns varies."""
    shape = tuple(schema[a].size for a in part.attributes)
    if isinstance(part, Atom):
        found = domain.truth(part).astype(np.int64)
    else:
        found = domain.labels(part)[0]
    axis = part.attributes.index(name)
    rows = np.moveaxis(found.reshape(shape), axis, 0).reshape(shape[axis], -1)
    narrow = np.ascontiguousarray(rows, np.int8 if isinstance(part, Atom) else np.int32)
    whole = narrow.view(np.dtype((np.void, narrow.itemsize * narrow.shape[1])))
    return np.unique(whole, return_inverse=True)[1].reshape(-1).astype(np.int64)


def classes(columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Classes by equal entries in all columns, and the first place of each."""
    class_of = columns[0]
    for column in columns[1:]:  # two at a time, so that numbers stay small
        class_of = np.unique(class_of, return_inverse=True)[1] * (int(column.max()) + 1) + column
    _, first, inverse = np.unique(class_of, return_index=True, return_inverse=True)
    return inverse.astype(np.int64), first.astype(np.int64)


def whole_axis(name: str, parts: QueryParts, schema: Schema, domain: DomainArrays) -> ClassAxis:
    """A column's domain, cut wherever a condition, a group or a value tells two values apart."""
    alone = [a for a in parts.atoms if a.attributes == (name,)]
    groups = [g for g in parts.groups if g.attributes == (name,)]
    values = [v for v in parts.values if v.attributes == (name,)]
    shared = [p for p in parts.everything() if len(p.attributes) > 1 and name in p.attributes]
    columns = [
        packed([domain.truth(a) for a in alone], schema[name].size),
        *(domain.labels(g)[0] for g in groups),
        *(np.unique(domain.numbers(v), return_inverse=True)[1] for v in values),
        *(slices(part, name, schema, domain) for part in shared),
    ]
    class_of, representative = classes(columns)
    return ClassAxis(name, class_of, representative)


def shape_of(axes: Sequence[ClassAxis]) -> tuple[int, ...]:
    """The shape of a tensor of states."""
    return tuple(axis.states for axis in axes)


def check_states(axes: Sequence[ClassAxis]) -> None:
    """Refuse tensors that are too large."""
    if (states := math.prod(shape_of(axes))) > MOST_STATES:
        wide = max(axes, key=lambda axis: axis.states)
        raise QueryError(
            f"the query tells {states:,} combinations of classes apart, more than {MOST_STATES:,}; "
            f"{wide.attribute} alone has {wide.classes:,}",
            hint="read fewer columns at once, or group by coarser ones, as in floor(age / 10)",
        )
