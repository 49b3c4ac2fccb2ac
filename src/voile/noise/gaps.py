"""The β-step without enumerating D: jump from one chosen tuple to the next.

Walk the tuples of D in order and toss a coin of probability p at each. The number of tails
before the next heads is geometric, P(G = g) = (1 − p)^g p, so draw G and jump. After heads,
  * the *set* walk moves on to the next tuple: each tuple is taken at most once, with chance p;
  * the *multiset* walk stays: each tuple is taken N times, P(N = j) = (1 − p) p^j.
The two differ by one step. Both come out sorted, need O(1) memory and O(rows) time, and are
memoryless: D may be cut into ranges that are walked independently.

Exactness. r = 1 − p. Since r^g = Π_b (r^{2^b})^{g_b} over the binary digits g_b of g, the digits
of G are *independent* coins with P(g_b = 1) = r^{2^b} / (1 + r^{2^b}). Each is a comparison with
a 128-bit threshold that is right to 2⁻¹²⁷ (see `digit_thresholds`, and `Thresholds` for the
comparison), so a gap of B digits is within total variation B·2⁻¹²⁷ of the geometric law; digits
above B, all of whose thresholds are 0, carry less than 2⁻¹²⁷ together. B ≤ 8 + log₂(1/p) < 1100
even for the smallest p that a float can hold, hence at most 2⁻¹¹⁶ for each tuple taken, and
2⁻⁹² for a whole batch of them; the requirement was 2⁻⁶⁰ per tuple.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Literal

import numpy as np

from voile.arrays import Bools, Words
from voile.noise.kernels import WORD_DIGITS, read_digit, walk
from voile.noise.keyed import Stream

# ---------------------------------------------------------------------- coins
# Biased coins, compared as integers.


class Thresholds:
    """Chances p as words to compare uniform words with: below is heads.

    p·2¹²⁸ rounded down has a high and a low word. For each batch of coins the high word is
    rounded up by one with the chance (low word)/2⁶⁴. So a single coin shows heads with chance
    ⌊p·2¹²⁸⌋/2¹²⁸, off by less than 2⁻¹²⁸. Two coins of one batch share the rounding; it matters
    only where both words equal the high word, so that a batch of k coins of one threshold is
    within total variation k²·2⁻¹²⁸ of independent ones.
    """

    def __init__(self, scaled: list[int]) -> None:
        """`scaled` are the ⌊p·2¹²⁸⌋, each at most 2¹²⁸ − 2⁶⁴ (no float but 1 is above)."""
        self._high = np.array([s >> 64 for s in scaled], dtype=np.uint64)
        self._low = np.array([s & (2**64 - 1) for s in scaled], dtype=np.uint64)

    def __len__(self) -> int:
        return len(self._high)

    def for_batch(self, stream: Stream) -> Words:
        """The high words for one batch of coins, each rounded up or not."""
        return self._high + (stream.words(len(self._low)) < self._low)


class Bernoulli:
    """Coins that show heads with probability p."""

    def __init__(self, probability: float | Fraction) -> None:
        self.probability = Fraction(probability)
        if not 0 <= self.probability <= 1:
            raise ValueError(f"a probability lies in [0, 1], not {float(probability)}")
        self._thresholds = Thresholds([int(self.probability * 2**128) % 2**128])

    def draw(self, stream: Stream, count: int) -> Bools:
        """So many coins; True is heads."""
        if self.probability == 1:
            return np.ones(count, dtype=np.bool_)
        threshold = self._thresholds.for_batch(stream)[0]
        heads: Bools = stream.words(count) < threshold
        return heads


# ---------------------------------------------------------------------- the walk


BATCH_WORDS = 2**18
"""Random words of a batch of draws, 2 MiB. Those of one digit are drawn and compared at a time,
which stay in the processor's own cache."""

DIGITS = 70
"""Decimal digits of working precision; thresholds need 39."""


def digit_thresholds(probability: Fraction) -> list[int]:
    """⌊2¹²⁸ · r^{2^b}/(1 + r^{2^b})⌋ for b = 0, 1, …, up to where it is 0.

    ln r for p < 10⁻³⁰ comes from its series, −p − p²/2, which is off by less than a relative
    p²/3: subtracting p from 1 in decimal would lose it.
    """
    context = Context(prec=DIGITS)
    p = context.divide(Decimal(probability.numerator), Decimal(probability.denominator))
    if p < Decimal("1e-30"):
        log_r = -context.add(p, context.divide(context.multiply(p, p), Decimal(2)))
    else:
        log_r = context.ln(context.subtract(Decimal(1), p))
    thresholds: list[int] = []
    while True:
        power = context.exp(context.multiply(log_r, Decimal(2 ** len(thresholds))))
        share = context.divide(power, context.add(Decimal(1), power))
        threshold = int(context.multiply(share, Decimal(2**128)))
        if threshold == 0:
            return thresholds
        thresholds.append(threshold)


class Gaps:
    """Takes tuples of a range of D, each with the chance p, in order and without a list of D."""

    def __init__(
        self, probability: float | Fraction, form: Literal["set", "multiset"], bits: Sequence[int]
    ) -> None:
        """`bits` are the widths of the words after the first (see schema/index.py)."""
        self.probability = Fraction(probability)
        if not 0 <= self.probability < 1:
            raise ValueError(f"the chance of a tuple lies in [0, 1), not {float(probability)}")
        self.step = 1 if form == "set" else 0
        self.widths = np.array([WORD_DIGITS, *bits], dtype=np.int64)
        self._thresholds = Thresholds(
            digit_thresholds(self.probability) if self.probability else []
        )

    def walk(self, stream: Stream, first: int, last: int) -> Iterator[list[Words]]:
        """Batches of taken places whose first word lies in [first, last), one array per word.

        The words after the first run over powers of two; places that no tuple has are taken too
        and are for the caller to drop.
        """
        at = np.zeros(len(self.widths), dtype=np.uint64)
        at[0] = first
        more = self.probability > 0
        while more:
            gaps, beyond = self._draw(stream)
            count, more = walk(gaps, beyond, self.widths, at, last, self.step)
            yield list(gaps[:, :count])

    def _draw(self, stream: Stream) -> tuple[Words, Words]:
        """Gaps, one array per word, and which of them are too long for any range."""
        digits = len(self._thresholds)
        draws = max(1, BATCH_WORDS // digits)
        thresholds = self._thresholds.for_batch(stream)
        gaps = np.zeros((len(self.widths), draws), dtype=np.uint64)
        start = 0
        for word in reversed(range(len(self.widths))):
            stop = start + int(self.widths[word])
            for digit in range(start, min(stop, digits)):
                read_digit(stream.words(draws), thresholds[digit], digit - start, gaps[word])
            start = min(stop, digits)
        beyond = np.zeros(draws, dtype=np.uint64)
        for digit in range(start, digits):
            beyond |= stream.words(draws) < thresholds[digit]
        return gaps, beyond
