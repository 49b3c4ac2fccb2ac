"""Points scattered over a product domain: how many, and where.

A Poisson process with mean Λ is walked by exponential gaps, and each point's coordinates are
drawn independently. Exponential numbers are right to a relative 2⁻⁴⁷ in their whole tail, so that
rare numbers of copies have their chances too; planning adds 10⁻⁹ to the noise to be on the safe
side of that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.noise.keyed import Stream

Codes = npt.NDArray[np.int64]

BATCH = 2**20


TAIL_BITS = 16
"""A word whose first bits are all 0 stands for a rare event, and is drawn more finely."""


def exponentials(stream: Stream, count: int) -> Floats:
    """Exponential numbers, with their whole tail: −ln U for U as fine as it is small."""
    words = stream.words(count)
    found: Floats = -np.log((words.astype(np.float64) + 0.5) * 2.0**-64)
    rare = np.flatnonzero(words < np.uint64(2 ** (64 - TAIL_BITS)))
    # Given that U is below 2⁻¹⁶, 2¹⁶·U is uniform again.
    if len(rare):
        found[rare] = TAIL_BITS * math.log(2) + exponentials(stream, len(rare))
    return found


def uniforms(stream: Stream, count: int) -> Floats:
    """Uniform numbers strictly between 0 and 1."""
    numbers: Floats = ((stream.words(count) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return numbers


def poisson(stream: Stream, mean: float) -> int:
    """A Poisson number: how many exponential gaps fit into the mean."""
    count, left = 0, mean
    while True:
        gaps = exponentials(stream, min(BATCH, 64 + int(left + 8 * math.sqrt(left))))
        reached = np.cumsum(gaps)
        inside = int(np.searchsorted(reached, left))
        count += inside
        if inside < len(gaps):
            return count
        left -= float(reached[-1])


def geometric(stream: Stream, chance: Floats) -> Codes:
    """Numbers N with P(N ≥ j) = chance^j, one for each chance."""
    with np.errstate(divide="ignore"):
        ratio = exponentials(stream, len(chance)) / -np.log(chance)
    return np.floor(ratio).astype(np.int64)


def choice(stream: Stream, parts: Sequence[int], count: int) -> Codes:
    """Values 0, 1, … with chances in proportion to these whole numbers."""
    below = np.cumsum(np.array(parts, dtype=np.int64))
    return np.searchsorted(below, even(stream, int(below[-1]), count), side="right")


def even(stream: Stream, size: int, count: int) -> Codes:
    """Values below `size`, all with the same chance: what would favour some is drawn again."""
    if not count:
        return np.empty(0, dtype=np.int64)
    usable = 2**64 - 2**64 % size
    words = stream.words(count)
    while (over := words > np.uint64(usable - 1)).any():
        words[over] = stream.words(int(over.sum()))
    return (words % np.uint64(size)).astype(np.int64)
