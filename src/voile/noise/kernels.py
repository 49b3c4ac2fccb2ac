"""Compiled loops of the gap walk. See gaps.py for what they compute and why."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from voile.arrays import Words
from voile.compiled import compiled

ONE = np.uint64(1)
WORD_DIGITS = 63
"""Digits of a gap that a word can take; a gap with a higher digit leaves any range."""


@compiled
def read_digits(coins: Words, thresholds: Words, numbers: Words) -> None:
    """Binary digits, one row of coins each, into numbers; row by row so that it vectorises."""
    for digit in range(coins.shape[0]):
        threshold, shift = thresholds[digit], np.uint64(digit)
        for draw in range(coins.shape[1]):
            numbers[draw] |= np.uint64(coins[digit, draw] < threshold) << shift


@compiled
def walk(
    gaps: Words, beyond: Words, widths: npt.NDArray[np.int64], at: Words, last: int, step: int
) -> tuple[int, bool]:
    """Turn gaps into places, in place, starting from `at`; `at` is left where the walk stands.

    Returns how many places lie before `last`, and whether the walk may go on. A place is one
    word, or several of the given widths with carries from the last to the first.
    """
    words, end = at.size, np.uint64(last)
    for draw in range(gaps.shape[1]):
        carry = np.uint64(0)
        for word in range(words - 1, 0, -1):
            width = np.uint64(widths[word])
            total = at[word] + gaps[word, draw] + carry
            carry = total >> width
            at[word] = total & ((ONE << width) - ONE)
            gaps[word, draw] = at[word]
        # at[0] < end ≤ 2⁶² and a gap's word is below 2⁶³, so the sum does not wrap.
        at[0] += gaps[0, draw] + carry
        if beyond[draw] or at[0] >= end:
            return draw, False
        gaps[0, draw] = at[0]
        # A step may leave the last word full: the next addition carries it over.
        at[words - 1] += np.uint64(step)
    return gaps.shape[1], True
