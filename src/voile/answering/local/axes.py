"""The classes of each perturbed column that a query reads, and what perturbing does to them.

A value that is summed (phi) does not cut the domain any finer: within a class its mean and the
mean of its square are enough, for every sum, covariance and unbiased square is a polynomial in
phi. So the states of a column are pairs of a class and a power of phi.
Where that is not enough (two values of one column, or an expression of several columns) classes
are the values of the column themselves, as far as they differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from voile.answering.axes import (
    MOST_ATOMS,
    ClassAxis,
    DomainArrays,
    QueryParts,
    classes,
    packed,
    slices,
)
from voile.arrays import Floats, Ints
from voile.errors import QueryError
from voile.query.rows import Flags, Key
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
    """What tells the class of a row; none where the column itself does."""
    key_values: tuple[pa.Array, ...]
    """For each of them its value on each class."""
    centre: float = 0.0
    """phi is counted from here, so that squares of values far from 0 lose no digits."""

    @property
    def public(self) -> bool:
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
