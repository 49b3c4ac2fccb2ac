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
    held: list[npt.NDArray[Any]] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += len(batch)
        if count < size:
            continue
        joined = np.concatenate(held)
        whole = count - count % size
        yield from (joined[start : start + size] for start in range(0, whole, size))
        held, count = [joined[whole:]], count - whole
    if count:
        yield np.concatenate(held)
