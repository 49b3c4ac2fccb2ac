"""Compiled loop of select-a-size. See select_a_size.py for what it draws."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from voile.compiled import compiled

Bits = npt.NDArray[np.uint8]
HalfWords = npt.NDArray[np.uint32]

DIGITS = 4
"""Half words of a number that an insertion is decided by: 128 bits."""
HALF = np.uint64(32)
LOW = np.uint64(2**32 - 1)


@compiled
def below(words: HalfWords, at: int, bound: HalfWords) -> tuple[bool, int]:
    """Whether the number that starts at a word is below a bound, and where the next one starts.

    Words are read only as far as they are needed: after the first digit that differs, the rest
    would not matter.
    """
    for digit in range(DIGITS):
        word = words[at]
        at += 1
        if word != bound[digit]:
            return word < bound[digit], at
    return False, at


@compiled
def kept_number(words: HalfWords, at: int, bounds: HalfWords, last: int) -> int:
    """How many items to keep: the first number whose bound is above the digits, at most `last`."""
    for number in range(last):
        for digit in range(bounds.shape[1]):
            word = words[at + digit]
            if word < bounds[number, digit]:
                return number
            if word > bounds[number, digit]:
                break
    return last


@compiled
def perturb_baskets(
    baskets: Bits,
    out: Bits,
    row: int,
    bounds: HalfWords,
    last: npt.NDArray[np.int64],
    insert: HalfWords,
    words: HalfWords,
) -> tuple[int, int]:
    """Perturb baskets from a row on; returns the first that is not done, and the words used.

    When the words end within a basket, it is to be done again from its first word on, with more
    words behind: so it tosses the same coins.
    """
    at = 0
    many = bounds.shape[2]
    while row < baskets.shape[0]:
        start = at
        size = 0
        for item in range(baskets.shape[1]):
            size += int(baskets[row, item])
        if at + many > words.size:
            return row, start
        keep = kept_number(words, at, bounds[size], last[size])
        at += many
        for item in range(baskets.shape[1]):
            if at + DIGITS > words.size:
                return row, start
            if baskets[row, item] == 0:
                inserted, at = below(words, at, insert)
                out[row, item] = inserted
                continue
            # Of `size` items that are left, `keep` are still to be kept: this one with chance
            # keep/size. Its number below `size` is drawn as in replacement_kernels.shuffle.
            bound = np.uint64(size)
            product = np.uint64(words[at]) * bound
            at += 1
            while product & LOW < bound and product & LOW < (LOW - bound + np.uint64(1)) % bound:
                if at == words.size:
                    return row, start
                product = np.uint64(words[at]) * bound
                at += 1
            kept = int(np.int64(product >> HALF) < keep)
            out[row, item] = kept
            keep -= kept
            size -= 1
        row += 1
    return row, at
