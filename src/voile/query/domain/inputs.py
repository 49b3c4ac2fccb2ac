"""What sums over the domain need from outside: an engine, and perhaps weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.arrays import Bools, Floats, Ints
from voile.query.predicate import Expression

Array = npt.NDArray[Any]


class DomainEngine(Protocol):
    """Evaluates expressions on values of the domain: what sums over it ask of an engine."""

    def evaluate(self, requests: Sequence[Expression]) -> list[pa.Array]:
        """Each expression on the product of its attributes' domains, row-major in their order.

        What cannot be computed is NULL.
        """
        ...

    def sample(
        self, attributes: Sequence[str], requests: Sequence[Expression], codes: Sequence[Ints]
    ) -> list[pa.Array]:
        """Each expression on tuples of the product, given by one array of codes each."""
        ...


@dataclass(frozen=True, eq=False)
class Weights:
    """A mixture of K products over D: tuple t weighs Σ_k mix[k] · Π_j tables[j][k, t_j].

    An attribute that is left out weighs 1 on each of its values.
    """

    mix: Floats
    tables: Mapping[str, Floats]


def numbers(column: pa.Array) -> Floats:
    """A value on each tuple, 0 where it is NULL or not a finite number: that adds nothing."""
    filled = column.cast(pa.float64(), safe=False).fill_null(0.0)
    result: Floats = filled.to_numpy(zero_copy_only=False)
    return result if np.isfinite(result).all() else np.where(np.isfinite(result), result, 0.0)


def all_hold(parts: Iterable[Any]) -> Any:
    """Where all are true; shapes are broadcast."""
    return reduce(np.logical_and, parts, np.True_)


def some_hold(parts: Iterable[Any]) -> Any:
    """Where any is true."""
    return reduce(np.logical_or, parts, np.False_)


def added(cells: Ints, weights: Floats, size: int) -> Floats:
    """The weights added up by cell."""
    sums: Floats = np.bincount(cells, weights, size).astype(np.float64, copy=False)
    return sums


def truths(column: pa.Array) -> Bools:
    """Where a condition is true; NULL is not."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.bool_)
    filled = column.cast(pa.bool_()).fill_null(False)
    result: Bools = filled.to_numpy(zero_copy_only=False)
    return result
