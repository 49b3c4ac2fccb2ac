"""The rows of the release by their classes, in one pass over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voile.answering.axes import check_states, shape_of
from voile.answering.local.axes import PerturbedAxis
from voile.arrays import Floats, Ints
from voile.engines.encode import codes
from voile.errors import ReleaseError
from voile.query.predicate import column as column_of
from voile.query.rows import Key, Shifted
from voile.schema import Schema


class HistogramRows(Protocol):
    """Rows that can be counted by expressions of theirs."""

    def histogram(self, keys: Sequence[Key], products: Sequence[Sequence[Shifted]]) -> pa.Table:
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
        sums = found[f"s{i}"].to_numpy()
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
    return axis.keys or (column_of(axis.attribute),)


def factors(valued: Sequence[PerturbedAxis], powers: Sequence[int]) -> list[Shifted]:
    """What is multiplied on a row: each value of an axis, as often as its power says."""
    return [
        Shifted(axis.value, axis.centre)
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
    found = pc.index_in(column.cast(values.type), value_set=values)
    return np.asarray(found.fill_null(len(values)).to_numpy(zero_copy_only=False), np.int64)


def outside(axis: PerturbedAxis) -> ReleaseError:
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
