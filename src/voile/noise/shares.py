"""How the values of one random word are shared between keeping and replacing.

A row keeps its code with chance p, else gets a number below `size`, all with the same chance. One
word of w bits decides both: of its 2ʷ values,

    kept = ⌊p·2ʷ⌋            keep the code,
    share for each number    replace it,   share = ⌊(2ʷ − kept − 1) / size⌋,
    the rest, at least one,  are undecided.

An undecided row tosses another coin, of chance (p·2ʷ − kept)/rest, and draws a number anew if
it is not kept. So a row is kept with chance kept/2ʷ + (rest/2ʷ)·(p·2ʷ − kept)/rest = p exactly,
and whatever is not kept is uniform. The other coin is off by less than 2⁻¹²⁸ and to the side of
replacing (see bernoulli.py), so that the chance to keep is at most p and off by less than 2⁻¹²⁸.

Which number a word means is ⌊x/share⌋ for x = word − kept. With 31 bits this is a multiplication
and a shift: let X be the largest x, 2^places > X·(share − 1), and factor = ⌈2^places/share⌉, so
that factor·share = 2^places + e with 0 ≤ e < share. Then x·factor/2^places exceeds x/share by
x·e/(share·2^places) < 1/share, too little to reach the next whole number. And 2^places is at most
2·X·(share − 1) < 2³²·share, hence factor ≤ 2³² − 1 and x·factor < 2⁶³: nothing overflows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Words
from voile.noise.bernoulli import Bernoulli
from voile.noise.keyed import Stream
from voile.noise.poisson import even
from voile.noise.replacement_kernels import keep_or_divide, keep_or_multiply

Codes = npt.NDArray[Any]

NARROW_BITS, WIDE_BITS = 31, 64
OFTEN = Fraction(1, 64)
"""The chance to be undecided from which on wider words are cheaper."""


@dataclass(frozen=True)
class Shares:
    """One word's values: `kept` of them keep, `share` of them give each number below `size`."""

    size: int
    retention: Fraction
    bits: int

    @property
    def kept(self) -> int:
        return int(self.retention * (1 << self.bits))

    @property
    def share(self) -> int:
        return ((1 << self.bits) - self.kept - 1) // self.size

    @property
    def limit(self) -> int:
        """The first word that is undecided."""
        return self.kept + self.share * self.size

    @property
    def undecided(self) -> int:
        return (1 << self.bits) - self.limit

    @property
    def undecided_retention(self) -> Fraction:
        return (self.retention * (1 << self.bits) - self.kept) / self.undecided

    @property
    def is_narrow(self) -> bool:
        return self.bits <= NARROW_BITS

    @property
    def division(self) -> tuple[int, int]:
        """The factor and the places that divide by `share`; no matter what, where it is 0."""
        if not self.share:
            return 0, 0
        places = (((1 << self.bits) - 1 - self.kept) * (self.share - 1)).bit_length()
        return -(-(1 << places) // self.share), places

    def numbers(self) -> Words:
        """What the compiled loop of this width asks for."""
        by = self.division if self.is_narrow else (max(1, self.share),)
        shift = (32 if self.is_narrow else 64) - self.bits
        return np.array([shift, self.kept, self.limit, *by], dtype=np.uint64)


def cheapest_shares(size: int, retention: Fraction) -> Shares:
    """Of words as narrow as leave few rows undecided."""
    narrow = Shares(size, retention, NARROW_BITS)
    if narrow.undecided <= OFTEN * (1 << NARROW_BITS):
        return narrow
    return Shares(size, retention, WIDE_BITS)


class Drawer:
    """Keeps or replaces codes, a word for each; retention is below 1."""

    def __init__(self, shares: Shares) -> None:
        self.shares = shares
        self._numbers = shares.numbers()
        self._coin = Bernoulli(shares.undecided_retention)

    def draw(self, codes: Codes, out: Codes, stream: Stream) -> None:
        """Codes kept or replaced, into `out`; as many as fit into the cache are best."""
        words: npt.NDArray[Any]
        if self.shares.is_narrow:
            words = stream.words((len(codes) + 1) // 2).view(np.uint32)[: len(codes)]
            undecided = keep_or_multiply(words, self._numbers, codes, out)
        else:
            words = stream.words(len(codes))
            undecided = keep_or_divide(words, self._numbers, codes, out)
        if undecided:
            shift, _, limit = self._numbers[:3]
            rows = np.flatnonzero(words >> shift >= limit)
            out[rows] = self._settle(codes[rows], stream)

    def _settle(self, codes: Codes, stream: Stream) -> Codes:
        """What the undecided rows get: the other coin, and a number of its own for each."""
        kept = self._coin.draw(stream, len(codes))
        fresh = even(stream, self.shares.size, len(codes)).astype(codes.dtype)
        return np.where(kept, codes, fresh)
