"""Retention replacement: a code is kept with chance p, else replaced by a drawn one.

All samplers are exact (see `WordShares`): the chance to keep is at most p and off by less than
2⁻¹²⁸, and what replaces a code has exactly the stated distribution. They read a stream in order,
so that the same stream and codes give the same result. Codes keep their type.

    perturb        one column; replaced uniformly, or in proportion to whole numbers
    perturb_rows   one coin for the whole row; replaced by a uniform tuple of the domain
    resample       replaced by the column's value in a row drawn uniformly, its own included
    swap           the codes that are not kept change places among themselves
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Bools, Words
from voile.noise.gaps import Bernoulli
from voile.noise.kernels import keep_or_divide, keep_or_multiply, shuffle
from voile.noise.keyed import Stream
from voile.noise.poisson import even

# ---------------------------------------------------------------------- shares of a word
# How the values of one random word are shared between keeping and replacing.
#
# A row keeps its code with chance p, else gets a number below `size`, all with the same chance. One
# word of w bits decides both: of its 2ʷ values,
#
#     kept = ⌊p·2ʷ⌋            keep the code,
#     share for each number    replace it,   share = ⌊(2ʷ − kept − 1) / size⌋,
#     the rest, at least one,  are undecided.
#
# An undecided row tosses another coin, of chance (p·2ʷ − kept)/rest, and draws a number anew if
# it is not kept. So a row is kept with chance kept/2ʷ + (rest/2ʷ)·(p·2ʷ − kept)/rest = p exactly,
# and whatever is not kept is uniform. The other coin is off by less than 2⁻¹²⁸ and to the side of
# replacing (see `Thresholds`), so that the chance to keep is at most p and off by less than 2⁻¹²⁸.
#
# Which number a word means is ⌊x/share⌋ for x = word − kept. With 31 bits this is a multiplication
# and a shift: let X be the largest x, 2^places > X·(share − 1), and factor = ⌈2^places/share⌉, so
# that factor·share = 2^places + e with 0 ≤ e < share. Then x·factor/2^places exceeds x/share by
# x·e/(share·2^places) < 1/share, too little to reach the next whole number. And 2^places is at most
# 2·X·(share − 1) < 2³²·share, hence factor ≤ 2³² − 1 and x·factor < 2⁶³: nothing overflows.


Codes = npt.NDArray[Any]

NARROW_BITS, WIDE_BITS = 31, 64
OFTEN = Fraction(1, 64)
"""The chance to be undecided from which on wider words are cheaper."""


@dataclass(frozen=True)
class WordShares:
    """One word's values: `kept` of them keep, `share` of them give each number below `size`."""

    size: int
    retention: Fraction
    bits: int

    @property
    def kept(self) -> int:
        """How many words keep the code: ⌊retention·2ᵇ⌋."""
        return int(self.retention * (1 << self.bits))

    @property
    def share(self) -> int:
        """How many words give each number below `size`."""
        return ((1 << self.bits) - self.kept - 1) // self.size

    @property
    def limit(self) -> int:
        """The first word that is undecided."""
        return self.kept + self.share * self.size

    @property
    def undecided(self) -> int:
        """How many words decide nothing, so that another one is drawn."""
        return (1 << self.bits) - self.limit

    @property
    def undecided_retention(self) -> Fraction:
        """The retention after an undecided word, which makes the whole exact."""
        return (self.retention * (1 << self.bits) - self.kept) / self.undecided

    @property
    def is_narrow(self) -> bool:
        """Whether words of 32 bits are wide enough."""
        return self.bits <= NARROW_BITS

    @property
    def division(self) -> tuple[int, int]:
        """The factor and the places that divide by `share`; no matter what, where it is 0."""
        if not self.share:
            return 0, 0
        places = (((1 << self.bits) - 1 - self.kept) * (self.share - 1)).bit_length()
        return -(-(1 << places) // self.share), places

    def numbers(self) -> Words:
        """The numbers that the compiled loop of this width reads."""
        by = self.division if self.is_narrow else (max(1, self.share),)
        shift = (32 if self.is_narrow else 64) - self.bits
        return np.array([shift, self.kept, self.limit, *by], dtype=np.uint64)


def cheapest_shares(size: int, retention: Fraction) -> WordShares:
    """Of words as narrow as leave few rows undecided."""
    narrow = WordShares(size, retention, NARROW_BITS)
    if narrow.undecided <= OFTEN * (1 << NARROW_BITS):
        return narrow
    return WordShares(size, retention, WIDE_BITS)


class Drawer:
    """Keeps or replaces codes, a word for each; retention is below 1."""

    def __init__(self, shares: WordShares) -> None:
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


# ---------------------------------------------------------------------- columns


Tickets = npt.NDArray[np.int64]

PIECE = 2**15
"""Rows at a time: their words are still in the cache when they are used."""
TABLE = 2**20
"""The longest list of all tickets; where there are more, a ticket is looked up in steps."""
NO_TICKET = -1


@dataclass(frozen=True)
class Replacement:
    """How one column is perturbed: domain size, chance to keep, and what replaces.

    `parts`: a code v replaces with chance parts[v]/Σ parts; None replaces uniformly.
    """

    size: int
    retention: float | Fraction
    parts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"a domain has at least one value, not {self.size}")
        exact(self.retention)
        if self.parts is None:
            return
        if len(self.parts) != self.size:
            raise ValueError(f"{len(self.parts)} parts for a domain of {self.size} values")
        if min(self.parts) < 0 or not 0 < sum(self.parts) < 2**62:
            raise ValueError(f"parts are not negative and sum to 1 … 2⁶², not to {sum(self.parts)}")


def perturb(codes: Codes, how: Replacement, stream: Stream) -> Codes:
    """A column with each code kept or replaced on its own."""
    if len(codes) and how.size - 1 > np.iinfo(codes.dtype).max:
        raise ValueError(f"{how.size} values do not fit into codes of type {codes.dtype}")
    retention = exact(how.retention)
    if how.parts is None or how.size == 1:
        return mixed(codes, how.size, retention, stream)
    fresh = TicketLookup(how.parts, codes.dtype)
    return replaced_by(codes, fresh.tickets, fresh, retention, stream)


def perturb_rows(
    codes: Sequence[Codes], sizes: Sequence[int], retention: float | Fraction, stream: Stream
) -> list[Codes]:
    """Columns of which each row is kept whole, or replaced whole by a uniform tuple."""
    kept = coins(len(codes[0]) if codes else 0, retention, stream)
    return [
        np.where(kept, column, perturb(column, Replacement(size, 0), stream))
        for column, size in zip(codes, sizes, strict=True)
    ]


def resample(codes: Codes, retention: float | Fraction, stream: Stream) -> Codes:
    """A column with each code kept, or replaced by that of a row drawn uniformly from all."""
    return replaced_by(codes, max(1, len(codes)), codes.take, exact(retention), stream)


def swap(codes: Codes, retention: float | Fraction, stream: Stream) -> Codes:
    """A column with each code kept, or moved: all that move are permuted uniformly."""
    moved = ~coins(len(codes), retention, stream)
    values = codes[moved]
    if len(values) > 2**32:
        raise ValueError(f"{len(values)} values are too many to swap; at most 2³² at a time")
    left = len(values)
    while left > 1:
        words = stream.words(min(left + 1, PIECE) // 2).view(np.uint32)
        left = shuffle(values, left, words)
    out = codes.copy()
    out[moved] = values
    return out


def coins(count: int, chance: float | Fraction, stream: Stream) -> Bools:
    """Heads with this chance, off by less than 2⁻¹²⁸ and never more likely than that."""
    return mixed(np.ones(count, dtype=np.uint8), 1, exact(chance), stream).view(np.bool_)


def exact(chance: float | Fraction) -> Fraction:
    """The very number that a float is."""
    if not 0 <= chance <= 1:
        raise ValueError(f"the chance to keep lies in [0, 1], not {float(chance)}")
    return Fraction(chance)


def pieces(count: int) -> Iterator[slice]:
    """Slices of so many rows, each small enough for the cache."""
    return (slice(start, min(start + PIECE, count)) for start in range(0, count, PIECE))


def mixed(codes: Codes, size: int, retention: Fraction, stream: Stream) -> Codes:
    """Each code, or a uniform number below `size`."""
    if retention == 1:
        return codes.copy()
    codes = np.ascontiguousarray(codes)
    out = np.empty_like(codes)
    drawer = Drawer(cheapest_shares(size, retention))
    for piece in pieces(len(codes)):
        drawer.draw(codes[piece], out[piece], stream)
    return out


def replaced_by(
    codes: Codes,
    tickets: int,
    fresh: Callable[[Tickets], Codes],
    retention: Fraction,
    stream: Stream,
) -> Codes:
    """Each code, or fresh(t) of a uniform ticket t."""
    out = codes.copy()
    if retention == 1:
        return out
    drawer = Drawer(cheapest_shares(tickets, retention))
    none = np.full(min(PIECE, len(codes)), NO_TICKET, dtype=np.int64)
    drawn = np.empty_like(none)
    for piece in pieces(len(codes)):
        now = drawn[: piece.stop - piece.start]
        drawer.draw(none[: len(now)], now, stream)
        # NO_TICKET is a valid place from the end: what is found there is not taken.
        np.copyto(out[piece], fresh(now), where=now != NO_TICKET)
    return out


class TicketLookup:
    """The code of a ticket: a code has as many consecutive tickets as it has parts."""

    def __init__(self, parts: Sequence[int], kind: np.dtype[Any]) -> None:
        self.tickets = sum(parts)
        self._codes = np.arange(len(parts), dtype=kind)
        self._ends = np.array(list(accumulate(parts)), dtype=np.int64)
        self._table = np.repeat(self._codes, parts) if self.tickets <= TABLE else None

    def __call__(self, tickets: Tickets) -> Codes:
        if self._table is not None:
            return self._table[tickets]
        return self._codes[np.searchsorted(self._ends, tickets, side="right")]
