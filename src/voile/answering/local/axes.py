"""The classes of each column that a query reads, from the public domain.

A value that is summed (phi) does not cut the domain any finer: within a class its mean and the
mean of its square are enough, for every sum, covariance and unbiased square is a polynomial in
phi. So the states of a column are pairs of a class and a power of phi.
Where that is not enough (two values of one column, or an expression of several columns) classes
are the values of the column themselves, as far as they differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voile.arrays import Floats, Ints
from voile.errors import QueryError
from voile.query.predicate import Atom, Expression, wording
from voile.query.rows import Flags, Key
from voile.schema import Schema

MOST_ATOMS = 60
"""Conditions on one column: their truth values are the bits of one number."""
MOST_VALUES = 2**24
"""Values of one column on which a condition is computed."""
MOST_LISTED = 2**22
"""Combinations of values on which an expression of several columns is computed."""


@dataclass(frozen=True)
class Axis:
    """One column's part of a query."""

    attribute: str
    retention: float
    own: bool
    """Whether replacements come from the column itself; then `moments` are those of the rows."""
    permuted: bool
    """Whether they are its own values permuted, so that one-column answers stay exact."""
    class_of: Ints
    """The class of every value of the domain."""
    representative: Ints
    """A value of each class."""
    moments: Floats
    """(classes, powers): the replacing distribution's Σ m·phi^e over each class."""
    ends: Floats
    """(classes, 2): the smallest and the largest phi of each class."""
    present: npt.NDArray[np.bool_]
    """Whether phi is not NULL there."""
    keys: tuple[Key, ...]
    """What tells the class of a row; none where the column itself does."""
    key_values: tuple[pa.Array, ...]
    """For each of them its value on each class."""
    value: Expression | None
    centre: float = 0.0
    """phi is counted from here, so that squares of values far from 0 lose no digits."""

    @property
    def classes(self) -> int:
        return len(self.representative)

    @property
    def powers(self) -> int:
        return int(self.moments.shape[1])

    @property
    def states(self) -> int:
        return self.classes * self.powers

    @property
    def public(self) -> bool:
        return self.retention == 1

    def cut(self, keep: Ints) -> Axis:
        """Only some of its classes; of a public column, whose rows stay in theirs."""
        if len(keep) == self.classes:
            return self
        return replace(
            self,
            representative=self.representative[keep],
            moments=self.moments[keep],
            ends=self.ends[keep],
            present=self.present[keep],
        )


@dataclass(frozen=True)
class Noise:
    """What the classes need to know about how a column was perturbed."""

    retention: float
    masses: Floats | None = None
    """None: uniform."""
    own: bool = False
    permuted: bool = False


class Evaluator:
    """Expressions on the domain, with what was computed kept as plain arrays."""

    def __init__(self, domain: Any, schema: Schema) -> None:
        self._domain, self._schema = domain, schema

    def on(self, part: Atom | Expression) -> pa.Array:
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
        found = pc.fill_null(pc.cast(self.on(atom), pa.bool_()), False)
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_)

    def numbers(self, value: Expression) -> Floats:
        """NaN where it is NULL."""
        found = pc.cast(self.on(value), pa.float64())
        return np.asarray(pc.fill_null(found, math.nan).to_numpy(zero_copy_only=False))

    def labels(self, part: Expression) -> tuple[Ints, list[Any]]:
        """A number for each different value, and the values."""
        coded = pc.dictionary_encode(self.on(part), null_encoding="encode")
        return coded.indices.to_numpy().astype(np.int64), coded.dictionary.to_pylist()


@dataclass(frozen=True)
class Parts:
    """All that a query reads, once each."""

    atoms: tuple[Atom, ...]
    groups: tuple[Expression, ...]
    values: tuple[Expression, ...]
    degree: int = 1
    """How often one value may be a factor of one term."""

    def everything(self) -> tuple[Atom | Expression, ...]:
        return (*self.atoms, *self.groups, *self.values)

    def attributes(self, schema: Schema) -> list[str]:
        read = {name for part in self.everything() for name in part.attributes}
        return [name for name in schema.names if name in read]


def build_axes(
    parts: Parts,
    schema: Schema,
    noise: Mapping[str, Noise],
    domain: Evaluator,
) -> list[Axis]:
    """The axis of every column that is read."""
    return [
        build_axis(name, parts, schema, noise[name], domain) for name in parts.attributes(schema)
    ]


def build_axis(name: str, parts: Parts, schema: Schema, noise: Noise, domain: Evaluator) -> Axis:
    alone = [a for a in parts.atoms if a.attributes == (name,)]
    groups = [g for g in parts.groups if g.attributes == (name,)]
    values = [v for v in parts.values if v.attributes == (name,)]
    shared = [p for p in parts.everything() if len(p.attributes) > 1 and name in p.attributes]
    if len(alone) >= MOST_ATOMS:
        raise QueryError(f"more than {MOST_ATOMS} conditions on {name}", hint="ask for less")
    whole = bool(shared) or len(values) > 1
    value = values[0] if values and not whole else None
    bits = packed([domain.truth(a) for a in alone], schema[name].size)
    numbers, centre = (None, 0.0) if value is None else centred(domain.numbers(value))
    if numbers is not None:
        bits |= np.isfinite(numbers).astype(np.int64) << len(alone)
    labelled = [domain.labels(g) for g in groups]
    columns = [bits, *(codes for codes, _ in labelled)]
    if whole:
        columns += [np.unique(domain.numbers(v), return_inverse=True)[1] for v in values]
        columns += [slices(part, name, schema, domain) for part in shared]
    class_of, representative = classes(columns)
    keys: tuple[Key, ...] = ()
    key_values: tuple[pa.Array, ...] = ()
    if not whole:
        keys = (Flags(tuple(alone), value), *groups)
        key_values = (
            pa.array(bits[representative]),
            *(domain.on(g).take(pa.array(representative)) for g in groups),
        )
    return Axis(
        attribute=name,
        retention=noise.retention,
        own=noise.own and noise.retention < 1,
        permuted=noise.permuted and noise.retention < 1,
        class_of=class_of,
        representative=representative,
        moments=moments(class_of, len(representative), noise.masses, numbers, parts.degree),
        present=np.ones(len(representative), np.bool_)
        if numbers is None
        else np.isfinite(numbers[representative]),
        ends=ends(class_of, len(representative), numbers),
        keys=keys,
        key_values=key_values,
        value=value,
        centre=centre,
    )


def centred(numbers: Floats) -> tuple[Floats, float]:
    """Values less the middle of them, and that."""
    known = numbers[np.isfinite(numbers)]
    centre = float(known.min() / 2 + known.max() / 2) if len(known) else 0.0
    return numbers - centre, centre


def packed(truths: Sequence[npt.NDArray[np.bool_]], size: int) -> Ints:
    found = np.zeros(size, dtype=np.int64)
    for i, truth in enumerate(truths):
        found |= truth.astype(np.int64) << i
    return found


def slices(part: Atom | Expression, name: str, schema: Schema, domain: Evaluator) -> Ints:
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


def moments(
    class_of: Ints, count: int, masses: Floats | None, numbers: Floats | None, degree: int
) -> Floats:
    """The replacing distribution's Σ m·phi^e over each class, up to the square of a term."""
    weights = np.full(len(class_of), 1 / len(class_of)) if masses is None else masses
    powers = [np.bincount(class_of, weights, count)]
    if numbers is not None:
        phi = np.where(np.isfinite(numbers), numbers, 0.0)
        powers += [np.bincount(class_of, weights * phi**e, count) for e in range(1, 2 * degree + 1)]
    return np.stack(powers, axis=1)


def ends(class_of: Ints, count: int, numbers: Floats | None) -> Floats:
    """The smallest and the largest phi of each class; 0 where it has none."""
    if numbers is None:
        return np.zeros((count, 2))
    phi = np.where(np.isfinite(numbers), numbers, 0.0)
    order = np.lexsort((phi, class_of))
    first = np.searchsorted(class_of[order], np.arange(count))
    last = np.append(first[1:], len(order)) - 1
    return np.stack([phi[order[first]], phi[order[last]]], axis=1)
