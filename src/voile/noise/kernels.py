"""Compiled loops of the samplers. The modules that call them say what they compute and why.

Those that also run where there is no Numba have beside them the same in NumPy, bit by bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Words
from voile.compiled import compiled

# ---------------------------------------------------------------------- gaps
# Compiled loops of the gap walk. See gaps.py for what they compute and why.


ONE = np.uint64(1)
HALF = np.uint64(32)
LOW = np.uint64(2**32 - 1)
WORD_DIGITS = 63
"""Digits of a gap that a word can take; a gap with a higher digit leaves any range."""


def read_digit_in_numpy(coins: Words, threshold: np.uint64, digit: int, numbers: Words) -> None:
    """As `read_digit`."""
    numbers |= (coins < threshold).astype(np.uint64) << np.uint64(digit)


@compiled(instead=read_digit_in_numpy)
def read_digit(coins: Words, threshold: np.uint64, digit: int, numbers: Words) -> None:
    """One binary digit of each number, from a coin for each."""
    shift = np.uint64(digit)
    for draw in range(coins.size):
        numbers[draw] |= np.uint64(coins[draw] < threshold) << shift


def walk_in_numpy(
    gaps: Words, beyond: Words, widths: npt.NDArray[np.int64], at: Words, last: int, step: int
) -> tuple[int, bool]:
    """As `walk`; what it leaves in `gaps` after the last place means nothing.

    The place after a draw is the sum of all gaps up to it. A sum of many words may need more than
    64 bits, so that halves of words are summed apart: `high`·2³² + `low`, as if every word were as
    wide as it takes. Then each word keeps what it has room for and hands the rest on.
    """
    words, draws = at.size, gaps.shape[1]
    if not draws:
        return 0, True
    carry = np.arange(draws, dtype=np.uint64) * np.uint64(step)
    for word in range(words - 1, -1, -1):
        low = np.cumsum(gaps[word] & LOW) + ((at[word] & LOW) + carry)
        high = np.cumsum(gaps[word] >> HALF) + ((at[word] >> HALF) + (low >> HALF))
        low &= LOW
        if not word:
            break
        width = int(widths[word])
        wide, narrow = np.uint64(max(width - 32, 0)), np.uint64(max(32 - width, 0))
        carry = (high >> wide << narrow) | (low >> np.uint64(min(width, 32)))
        gaps[word] = ((high << HALF) | low) & ((ONE << np.uint64(width)) - ONE)
    # Places up to the end of the walk are below 2⁶⁴; those beyond must not seem to be small.
    gaps[0] = np.minimum(high, LOW) << HALF | low
    ends = (beyond != 0) | (gaps[0] >= np.uint64(last))
    count = int(ends.argmax()) if ends.any() else draws
    at[:] = gaps[:, min(count, draws - 1)]
    if count == draws:
        at[words - 1] += np.uint64(step)
    return count, count == draws


@compiled(instead=walk_in_numpy)
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


# ---------------------------------------------------------------------- retention replacement


Codes = npt.NDArray[Any]
HalfWords = npt.NDArray[np.uint32]


def keep_or_divide_in_numpy(words: Words, numbers: Words, codes: Codes, out: Codes) -> int:
    """As `keep_or_divide`."""
    shift, kept, limit, share = numbers[:4]
    word = words >> shift
    np.copyto(out, codes, casting="unsafe")
    np.copyto(out, (word - kept) // share, casting="unsafe", where=word >= kept)
    return int(np.count_nonzero(word >= limit))


@compiled(instead=keep_or_divide_in_numpy)
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


def keep_or_multiply_in_numpy(words: HalfWords, numbers: Words, codes: Codes, out: Codes) -> int:
    """As `keep_or_multiply`."""
    shift, kept, limit, factor, places = numbers[:5]
    word = words.astype(np.uint64) >> shift
    fresh = (((word - kept) & LOW) * (factor & LOW)) >> places
    np.copyto(out, codes, casting="unsafe")
    np.copyto(out, fresh, casting="unsafe", where=word >= kept)
    return int(np.count_nonzero(word >= limit))


@compiled(instead=keep_or_multiply_in_numpy)
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


# ---------------------------------------------------------------------- select-a-size
# Compiled loop of select-a-size. See select_a_size.py for what it draws.


Bits = npt.NDArray[np.uint8]

DIGITS = 4
"""Half words of a number that an insertion is decided by: 128 bits."""


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
            # keep/size. Its number below `size` is drawn as in `shuffle`.
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
