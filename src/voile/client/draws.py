"""Uniform words from a source of bytes, and what is made of them, in whole numbers only."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from voile.client.domains import Codes
from voile.errors import UsageError

Words = npt.NDArray[np.uint64]
WORDS = 2**64
"""How many words there are."""


class Draws:
    """Draws from a source of bytes: a function that gives as many as it is asked for.

    Clients use `Draws.secure()`, and nothing else protects anybody.
    """

    def __init__(self, source: Callable[[int], bytes]) -> None:
        self._source = source

    @classmethod
    def secure(cls) -> Draws:
        """From the operating system."""
        return cls(os.urandom)

    @classmethod
    def fixed(cls, data: bytes) -> Draws:
        """From the given bytes, in order: for test vectors only."""
        left = bytearray(data)

        def take(count: int) -> bytes:
            if count > len(left):
                raise UsageError(
                    f"the draws need {count} bytes, and {len(left)} are left",
                    hint="fixed bytes are for test vectors; Draws.secure() never ends",
                )
            taken = bytes(left[:count])
            del left[:count]
            return taken

        return cls(take)

    def words(self, count: int) -> Words:
        """Uniform 64-bit words, eight bytes each, the most significant first."""
        return np.frombuffer(self._source(8 * count), dtype=">u8").astype(np.uint64)

    def below(self, bound: int, count: int) -> Codes:
        """Uniform whole numbers in [0, bound): a word modulo the bound.

        Words above the largest multiple of the bound are drawn again; they would make small
        numbers more likely.
        """
        last = np.uint64(WORDS // bound * bound - 1)
        words = self.words(count)
        again = np.flatnonzero(words > last)
        while len(again):
            words[again] = self.words(len(again))
            again = again[words[again] > last]
        return (words % np.uint64(bound)).astype(np.int64)


def threshold(retention: float) -> np.uint64:
    """⌊p·2⁶⁴⌋ of a retention below 1: a word below it says that the value is kept.

    Rounded down, so that no value is kept with a larger chance than p. Doubles are scaled by a
    power of two without rounding.
    """
    return np.uint64(int(retention * float(WORDS)))
