"""The classes of each perturbed column that a query reads, and what perturbing does to them.

A value that is summed (phi) does not cut the domain any finer: within a class its mean and the
mean of its square are enough, for every sum, covariance and unbiased square is a polynomial in
phi. So the states of a column are pairs of a class and a power of phi.
Where that is not enough (two values of one column, or an expression of several columns) classes
are the values of the column themselves, as far as they differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voile.answering.axes import (
    MOST_ATOMS,
    ClassAxis,
    DomainArrays,
    QueryParts,
    check_states,
    classes,
    packed,
    shape_of,
    slices,
)
from voile.arrays import Floats, Ints
from voile.arrow import arrow_array, numpy_array
from voile.engines.encode import codes
from voile.engines.rows import ReleaseRows
from voile.errors import QueryError, ReleaseError
from voile.query.domain import DomainSums
from voile.query.predicate import column as column_of
from voile.query.rows import Flags, Key, ShiftedValue
from voile.schema import Schema


@dataclass(frozen=True, kw_only=True)
class PerturbedAxis(ClassAxis):
    """The classes of one column, and what perturbing does to them."""

    retention: float
    own: bool
    """Whether replacements come from the column itself; then `moments` are those of the rows."""
    permuted: bool
    """Whether they are its own values permuted, so that one-column answers stay exact."""
    moments: Floats
    """(classes, powers): the replacing distribution's Σ m·phi^e over each class."""
    ends: Floats
    """(classes, 2): the smallest and the largest phi of each class."""
    keys: tuple[Key, ...]
    """What gives the class of a row; none where the column itself does."""
    key_values: tuple[pa.Array, ...]
    """For each of them its value on each class."""
    centre: float = 0.0
    """phi is counted from here, so that squares of values far from 0 lose no digits."""

    @property
    def public(self) -> bool:
        """Whether the column was left as it is."""
        return self.retention == 1

    def cut(self, keep: Ints) -> PerturbedAxis:
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
class AxisNoise:
    """What the classes need to know about how a column was perturbed."""

    retention: float
    masses: Floats | None = None
    """None: uniform."""
    own: bool = False
    permuted: bool = False


def build_axes(
    parts: QueryParts,
    schema: Schema,
    noise: Mapping[str, AxisNoise],
    domain: DomainArrays,
) -> list[PerturbedAxis]:
    """The axis of every column that is read."""
    return [
        build_axis(name, parts, schema, noise[name], domain) for name in parts.attributes(schema)
    ]


def build_axis(
    name: str, parts: QueryParts, schema: Schema, noise: AxisNoise, domain: DomainArrays
) -> PerturbedAxis:
    """The axis of one column: its classes, and what noise does to them."""
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
            arrow_array(bits[representative]),
            *(domain.on(g).take(arrow_array(representative)) for g in groups),
        )
    replaced = moments(class_of, len(representative), noise.masses, numbers, parts.degree)
    return PerturbedAxis(
        attribute=name,
        retention=noise.retention,
        own=noise.own and noise.retention < 1,
        permuted=noise.permuted and noise.retention < 1,
        class_of=class_of,
        representative=representative,
        moments=replaced,
        powers=replaced.shape[1],
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


# ----------------------------------------------------------------------
# the rows of the release by their classes, in one pass over them


class HistogramRows(Protocol):
    """Rows that can be counted by expressions of theirs."""

    def histogram(
        self, keys: Sequence[Key], products: Sequence[Sequence[ShiftedValue]]
    ) -> pa.Table:
        """The keys that occur, as k0, k1, …, and the sums of products of each, as s0, s1, …"""
        ...


def seen_sums(axes: Sequence[PerturbedAxis], rows: HistogramRows, schema: Schema) -> Floats:
    """For every combination of states, the sum over the rows there of the powers of each phi."""
    check_states(axes)
    keys = [key for axis in axes for key in keys_of(axis)]
    valued = [axis for axis in axes if axis.powers > 1]
    powers = list(product(*(range(axis.powers) for axis in valued)))
    found = rows.histogram(keys, [factors(valued, some) for some in powers])
    found_classes, column = [], 0
    for axis in axes:
        width = len(keys_of(axis))
        columns = [found[f"k{column + i}"].combine_chunks() for i in range(width)]
        found_classes.append(class_codes(axis, columns, schema))
        column += width
    result = np.zeros(math.prod(shape_of(axes)))
    for i, some in enumerate(powers):
        degrees = iter(some)
        sums = numpy_array(found[f"s{i}"])
        states = []
        for axis, code in zip(axes, found_classes, strict=True):
            power = next(degrees) if axis.powers > 1 else 0
            states.append(code * axis.powers + power)
            if power:  # no phi there, or none that is finite
                sums = np.where(axis.present[code], sums, 0.0)
        flat = np.ravel_multi_index(states, shape_of(axes)) if axes else np.zeros(1, np.int64)
        result += np.bincount(flat, sums, len(result))
    return result.reshape(shape_of(axes))


def keys_of(axis: PerturbedAxis) -> tuple[Key, ...]:
    """What rows are grouped by to find their classes on an axis."""
    return axis.keys or (column_of(axis.attribute),)


def factors(valued: Sequence[PerturbedAxis], powers: Sequence[int]) -> list[ShiftedValue]:
    """What is multiplied on a row: each value of an axis, as often as its power says."""
    return [
        ShiftedValue(axis.value, axis.centre)
        for axis, power in zip(valued, powers, strict=True)
        for _ in range(power)
        if axis.value is not None
    ]


def class_codes(axis: PerturbedAxis, columns: Sequence[pa.Array], schema: Schema) -> Ints:
    """The class of each row that was found, from its keys."""
    if not axis.keys:
        places = codes(columns[0], schema[axis.attribute])
        if len(places) and places.min() < 0:
            raise outside(axis)
        return axis.class_of[places]
    wanted, found = np.zeros(axis.classes, np.int64), np.zeros(len(columns[0]), np.int64)
    for column, values in zip(columns, axis.key_values, strict=True):
        different = pc.unique(values)
        wanted = wanted * (len(different) + 1) + index_in(values, different)
        found = found * (len(different) + 1) + index_in(column, different)
    order = np.argsort(wanted)
    at = order[np.minimum(np.searchsorted(wanted, found, sorter=order), len(order) - 1)]
    if (wanted[at] != found).any():
        raise outside(axis)
    return at


def index_in(column: pa.Array, values: pa.Array) -> Ints:
    """The place of each value in a list; the list's length where it is not there."""
    found = pc.index_in(column.cast(values.type), value_set=values)
    return np.asarray(numpy_array(found, len(values)), np.int64)


def outside(axis: PerturbedAxis) -> ReleaseError:
    """The error for rows with values outside the domain."""
    return ReleaseError(
        f"column {axis.attribute!r} has values outside the domain of the schema",
        hint="try `voile verify`",
    )


def with_own_values(
    axes: Sequence[PerturbedAxis], seen: Floats, rows: float
) -> list[PerturbedAxis]:
    """Columns that replace by their own values: what they hold is the replacing distribution."""
    found = []
    for j, axis in enumerate(axes):
        if axis.own and rows:
            marginal: Any = seen
            for i in reversed(range(len(axes))):
                if i != j:
                    marginal = np.take(
                        marginal, np.arange(0, axes[i].states, axes[i].powers), axis=i
                    ).sum(axis=i)
            found.append(replace(axis, moments=(marginal / rows).reshape(axis.moments.shape)))
        else:
            found.append(axis)
    return found


# ----------------------------------------------------------------------
# what an answer from perturbed rows is computed from


Method = Literal["inversion", "em"]


@dataclass(frozen=True)
class LocalSource:
    """The rows, and how they were perturbed: their columns one by one, or as a whole."""

    engine: ReleaseRows
    domain: DomainSums
    schema: Schema
    rows: int
    noise: Mapping[str, AxisNoise] = field(default_factory=dict)
    joint: float | None = None
    """The chance that a whole row was kept, where rows were perturbed as a whole."""
    method: Method = "inversion"
    remarks: Mapping[str, str] = field(default_factory=dict)
    """What an analyst should know about a column."""
