"""Biased coins, compared as integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from voile.arrays import Bools, Words
from voile.noise.keyed import Stream


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
        return self._high + (stream.words(len(self._low)) < self._low)


class Bernoulli:
    """Coins that show heads with probability p."""

    def __init__(self, probability: float | Fraction) -> None:
        self.probability = Fraction(probability)
        if not 0 <= self.probability <= 1:
            raise ValueError(f"a probability lies in [0, 1], not {float(probability)}")
        self._thresholds = Thresholds([int(self.probability * 2**128) % 2**128])

    def draw(self, stream: Stream, count: int) -> Bools:
        if self.probability == 1:
            return np.ones(count, dtype=np.bool_)
        threshold = self._thresholds.for_batch(stream)[0]
        heads: Bools = stream.words(count) < threshold
        return heads
