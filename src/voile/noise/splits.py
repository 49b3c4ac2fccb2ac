"""Secret halves of rows: which rows are on which side nobody learns, only counts of both sides."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from voile.noise.keyed import Key

Rows = npt.NDArray[np.int64]


def first_side(key: Key, half: int, rows: int) -> Rows:
    """The rows of the first side of a half: ⌈n/2⌉ of them, any such set equally likely.

    They are those with the smallest of n random words; that two words are the same, where the
    order would decide, has a chance of n²·2⁻⁶⁵.
    """
    words = key.stream("half", half).words(rows)
    count = -(-rows // 2)
    if count == rows:
        return np.arange(rows)
    return np.argpartition(words, count)[:count]
