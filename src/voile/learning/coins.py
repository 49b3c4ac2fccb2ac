"""Noise keyed by value: what a value gets depends on the column, the value and the key alone.

So neither the order of rows nor how a table is cut into files changes what is learnt, and a value
that one person brings does not move the noise of the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from voile.arrays import Ints, Words
from voile.learning.budget import Noise, drawn
from voile.noise.keyed import Key, value_words
from voile.noise.whole import WordSource

AT_ONCE = 2**18
"""Values whose noise is drawn together."""


class ValueSource:
    """The first words of each of some values, and further ones where these leave a draw open."""

    def __init__(self, key: Key, column: str, values: Sequence[bytes], part: int = 0) -> None:
        self._key, self._column, self._values = key, column, values
        self._round = 0
        self._further = key.stream(f"schema {column}/further", part)

    def words(self, count: int) -> Words:
        """A word for each value; a single one is a further word for a draw that is open."""
        if count != len(self._values) or self._round == 2:
            return self._further.words(count)
        self._round += 1
        return value_words(self._key, f"schema {self._column}/{self._round}", self._values)


def noise_by_value(
    noise: Noise, scale: float, key: Key, column: str, values: Sequence[bytes]
) -> Ints:
    """Noise for each value, in their order."""
    found = [
        noise_of_part(noise, scale, key, column, values[start : start + AT_ONCE], part)
        for part, start in enumerate(range(0, len(values), AT_ONCE))
    ]
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def noise_of_part(
    noise: Noise, scale: float, key: Key, column: str, values: Sequence[bytes], part: int
) -> Ints:
    """Noise for the values of one part: AT_ONCE of them in their order, or those that are left."""
    return drawn(noise, scale, len(values), ValueSource(key, column, values, part))


def key_of(source: WordSource | Key) -> Key:
    """The key itself, or one made of words of a source."""
    if isinstance(source, Key):
        return source
    return Key(source.words(4).astype("<u8").tobytes(), simulated=False)
