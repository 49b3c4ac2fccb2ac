"""Compiled loops of retention replacement. See shares.py and replacement.py for the why."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Words
from voile.compiled import compiled

Codes = npt.NDArray[Any]
HalfWords = npt.NDArray[np.uint32]

HALF = np.uint64(32)
LOW = np.uint64(2**32 - 1)


@compiled
def keep_or_divide(words: Words, numbers: Words, codes: Codes, out: Codes) -> int:
    """Codes where a word is below `kept`, else the number of its share; how many are undecided.

    `numbers` are by how much words are shifted, kept, limit, share. Words from `limit` on are
    undecided; what is written for them is to be written over.
    """
    undecided = 0
    shift, kept, limit, share = numbers[0], numbers[1], numbers[2], numbers[3]
    for row in range(codes.size):
        word = words[row] >> shift
        if word < kept:
            out[row] = codes[row]
        else:
            out[row] = (word - kept) // share
        if word >= limit:
            undecided += 1
    return undecided


@compiled
def keep_or_multiply(words: HalfWords, numbers: Words, codes: Codes, out: Codes) -> int:
    """The same for 32-bit words without a branch, so that it runs on vectors.

    `numbers` are by how much words are shifted, kept, limit, factor, places.
    """
    undecided = np.uint64(0)
    shift, kept, limit = numbers[0], numbers[1], numbers[2]
    factor, places = numbers[3] & LOW, numbers[4]
    for row in range(codes.size):
        word = np.uint64(words[row]) >> shift
        fresh = (((word - kept) & LOW) * factor) >> places
        out[row] = np.uint64(codes[row]) if word < kept else fresh
        undecided += np.uint64(word >= limit)
    return int(undecided)


@compiled
def shuffle(values: Codes, left: int, words: HalfWords) -> int:
    """Fisher and Yates, in place, on the first `left` values; how many are left at the end.

    A place below `left` is the upper half of word·left. Those words whose lower half is below
    2³² mod left are passed over: then each place has ⌊2³²/left⌋ words. It ends when all but one
    value have their place, or when the words do.
    """
    for at in range(words.size):
        if left <= 1:
            break
        bound = np.uint64(left)
        product = np.uint64(words[at]) * bound
        low = product & LOW
        if low < bound and low < (LOW - bound + np.uint64(1)) % bound:
            continue
        place = product >> HALF
        left -= 1
        values[left], values[place] = values[place], values[left]
    return left
