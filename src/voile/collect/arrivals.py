"""Rows that are on disk and wait for their place among all others.

A row's place is by its id, which is random: to put a thousand rows into their places touches a
thousand pages of the file. So what a commit takes is written as one piece, an *arrival*, and many
of them are put into their places together, in the order of their ids. That is how long it is
remembered which rows came in one commit; and when a store is closed, none are left.

Whether a row came before is asked of each. `SeenIds` answers no for certain or perhaps: only for
these few the file is read.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.arrays import Bools, Words

ID = 16
"""Bytes of an id."""
TABLE = """CREATE TABLE arrivals (
      number INTEGER PRIMARY KEY,
      ids BLOB NOT NULL CHECK (typeof(ids) = 'blob' AND length(ids) % 16 = 0),
      codes BLOB NOT NULL
        CHECK (typeof(codes) = 'blob' AND length(codes) * 16 = length(ids) * {width})
    )"""
TOGETHER, SLICE = 2**17, 2**14
"""Rows from which on they are put into their places, and how many of them at a time."""


@dataclass(frozen=True)
class Arrival:
    """Rows as they are kept: ids and codes one after the other, in the order of the ids."""

    ids: bytes
    codes: bytes

    def __len__(self) -> int:
        return len(self.ids) // ID

    @classmethod
    def of(cls, ids: Sequence[bytes], codes: Sequence[bytes]) -> Arrival:
        """Some rows, sorted: nothing is left of the order in which they came."""
        together, packed = b"".join(ids), b"".join(codes)
        if not together:
            return cls(b"", b"")
        order, width = order_of(together), ID * len(packed) // len(together)
        keys = np.frombuffer(together, f"V{ID}")[order]
        return cls(keys.tobytes(), np.frombuffer(packed, f"V{width}")[order].tobytes())

    def cut(self, count: int) -> tuple[Arrival, Arrival]:
        """The first rows by their ids, and the rest."""
        at = len(self.codes) // max(1, len(self)) * count
        return (
            Arrival(self.ids[: ID * count], self.codes[:at]),
            Arrival(self.ids[ID * count :], self.codes[at:]),
        )

    def keys(self) -> list[bytes]:
        """The id of each row."""
        return [self.ids[at : at + ID] for at in range(0, len(self.ids), ID)]

    def rows(self) -> Iterator[tuple[bytes, bytes]]:
        """Each row's id and codes."""
        width = len(self.codes) // max(1, len(self))
        for place in range(len(self)):
            key = self.ids[ID * place : ID * (place + 1)]
            yield key, self.codes[width * place : width * (place + 1)]


def order_of(ids: bytes) -> npt.NDArray[np.intp]:
    """The order that sorts ids."""
    halves = np.frombuffer(ids, ">u8").reshape(-1, 2)
    return np.lexsort((halves[:, 1], halves[:, 0]))


class SeenIds:
    """Which ids a store certainly does not have: a Bloom filter with secret coefficients.

    Clients choose ids. Without the coefficients nobody can choose one that is taken for another.
    """

    HASHES, BITS = 3, 16
    """Of each id, and in all for each id that there is room for."""
    LEAST = 2**16

    def __init__(self, room: int) -> None:
        self.room = max(self.LEAST, room)
        self.count = 0
        self._shift = np.uint64(64 - max(1, (self.room * self.BITS - 1).bit_length()))
        self._bytes = np.zeros(max(1, 1 << (64 - int(self._shift)) >> 3), dtype=np.uint8)
        drawn = [secrets.randbits(64) | 1 for _ in range(2 * self.HASHES)]
        self._coefficients = np.array(drawn, dtype=np.uint64).reshape(self.HASHES, 2)

    def add(self, ids: bytes) -> None:
        """These are there."""
        self.count += len(ids) // ID
        for place, bit in self._places(ids):
            np.bitwise_or.at(self._bytes, place, bit)

    def perhaps(self, ids: bytes) -> Bools:
        """For each id, False if it certainly is not there."""
        found = np.ones(len(ids) // ID, dtype=np.bool_)
        for place, bit in self._places(ids):
            found &= (self._bytes[place] & bit) != 0
        return found

    def _places(self, ids: bytes) -> Iterator[tuple[Words, npt.NDArray[np.uint8]]]:
        """By each hash: the bytes of the ids, and the bit in each."""
        halves = np.frombuffer(ids, "<u8").reshape(-1, 2)
        for first, second in self._coefficients:
            mixed = halves[:, 0] * first
            place = ((mixed ^ (mixed >> np.uint64(32))) + halves[:, 1]) * second >> self._shift
            bit = np.uint64(1) << (place & np.uint64(7))
            yield place >> np.uint64(3), bit.astype(np.uint8)
