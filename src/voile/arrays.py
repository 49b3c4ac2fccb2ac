"""What the arrays hold, in words that signatures have room for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]


def in_groups(batches: Iterable[npt.NDArray[Any]], size: int) -> Iterator[npt.NDArray[Any]]:
    """The same sequence, cut after every `size` keys."""
    return (np.concatenate(parts) for parts in parts_of_groups(batches, size))


def parts_of_groups(
    batches: Iterable[npt.NDArray[Any]], size: int
) -> Iterator[list[npt.NDArray[Any]]]:
    """As `in_groups`, each group as the parts of batches that it is made of."""
    held: list[npt.NDArray[Any]] = []
    count = 0
    for batch in batches:
        start = 0
        while count + len(batch) - start >= size:
            stop = start + size - count
            yield [*held, batch[start:stop]]
            held, count, start = [], 0, stop
        if start < len(batch):
            held.append(batch[start:])
            count += len(batch) - start
    if count:
        yield held


def gathered(
    batches: Iterable[npt.NDArray[Any]], room: int, kind: np.dtype[Any]
) -> npt.NDArray[Any]:
    """Batches as one array, in which there is room for so many from the start.

    Unlike with `np.concatenate`, a batch may be forgotten before the next one is made.
    """
    out, count = np.empty(room, kind), 0
    for batch in batches:
        if (stop := count + len(batch)) > len(out):
            out = np.concatenate([out[:count], np.empty(stop, kind)])
        out[count:stop] = batch
        count = stop
    return out[:count]
