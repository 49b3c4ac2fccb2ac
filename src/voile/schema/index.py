"""Coding of tuples: every tuple of D as one number in mixed radix, for any size of D.

A tuple's codes (c₁, …, c_l), cᵢ < |Dᵢ|, read in mixed radix are its place in the order of D.
Up to 2⁶² that is one machine word. A larger D is cut into *limbs*: consecutive attributes whose
product fits a word. A tuple is then one word per limb, and its key is their bytes in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Words
from voile.compiled import compiled
from voile.schema.attribute import MAX_SIZE

Keys = npt.NDArray[Any]
"""Numbers of tuples of the domain; as words of 64 bits where the domain has more of them."""

Codes = npt.NDArray[np.signedinteger]

TABLE = 2**16
"""Largest group of attributes decoded by one look-up; its tables stay in the processor's cache."""


@dataclass(frozen=True)
class Limb:
    """Consecutive attributes [first, last) coded in one word."""

    first: int
    last: int
    sizes: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        return math.prod(self.sizes)

    @property
    def bits(self) -> int:
        """Width of the word when a more significant limb stands before it."""
        return (self.size - 1).bit_length()

    def encode(self, codes: Sequence[Codes]) -> Words:
        word = np.zeros(len(codes[0]), dtype=np.uint64)
        for size, code in zip(self.sizes, codes, strict=True):
            word *= np.uint64(size)
            word += code.astype(np.uint64)
        return word

    def decode(self, word: Words) -> list[Codes]:
        """Divide once per group of attributes, then look each attribute's code up."""
        codes: list[Codes] = []
        rest = word.copy()
        for group in reversed(self._groups):
            found = np.empty((len(group.sizes), len(word)), dtype=group.tables.dtype)
            if len(group.sizes) == 1:
                take_digit(rest, np.uint64(group.size), found[0])
            else:
                look_up(rest, np.uint64(group.size), group.tables, found)
            codes[:0] = [
                code.astype(code_type(size), copy=False)
                for code, size in zip(found, group.sizes, strict=True)
            ]
        return codes

    @cached_property
    def _groups(self) -> list[Group]:
        return [Group(tuple(sizes)) for sizes in grouped(self.sizes, TABLE)]


@dataclass(frozen=True)
class Group:
    sizes: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        return math.prod(self.sizes)

    @cached_property
    def tables(self) -> Codes:
        """Each attribute's code at every place of the group; empty for a single attribute."""
        kind = code_type(max(self.sizes))
        if len(self.sizes) == 1:
            return np.empty((0, 0), dtype=kind)
        return np.stack(np.unravel_index(np.arange(self.size), self.sizes)).astype(kind)


class TupleIndex:
    """The order of D: codes of attributes to sortable keys and back."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        first = 0
        limbs: list[Limb] = []
        for group in grouped(self.sizes, MAX_SIZE):
            limbs.append(Limb(first, first + len(group), tuple(group)))
            first += len(group)
        self.limbs = tuple(limbs)

    @property
    def key_type(self) -> np.dtype[Any]:
        """One word, or the bytes of several, first word first: NumPy orders both as D is."""
        return np.dtype(np.uint64 if len(self.limbs) == 1 else f"V{8 * len(self.limbs)}")

    def encode(self, codes: Sequence[Codes]) -> Keys:
        return self.keys([limb.encode(codes[limb.first : limb.last]) for limb in self.limbs])

    def decode(self, keys: Keys) -> list[Codes]:
        return [
            code
            for limb, word in zip(self.limbs, self._words(keys), strict=True)
            for code in limb.decode(word)
        ]

    def keys(self, words: Sequence[Words]) -> Keys:
        if len(self.limbs) == 1:
            return words[0]
        return np.stack(words, axis=1).astype(">u8").view(self.key_type).reshape(-1)

    def existing(self, words: Sequence[Words]) -> Keys:
        """Keys of the places that a tuple has: words after the first run over powers of two."""
        if len(self.limbs) == 1:
            return words[0]
        real = np.logical_and.reduce(
            [word < np.uint64(limb.size) for limb, word in zip(self.limbs, words, strict=True)]
        )
        return self.keys([word[real] for word in words])

    def _words(self, keys: Keys) -> list[Words]:
        if len(self.limbs) == 1:
            return [keys]
        columns = keys.view(">u8").reshape(-1, len(self.limbs))
        return [columns[:, i].astype(np.uint64) for i in range(len(self.limbs))]

    def first_key(self, word: int) -> Keys:
        """The key of the first place whose first word is the given one."""
        rest = [np.zeros(1, dtype=np.uint64)] * (len(self.limbs) - 1)
        return self.keys([np.array([word], dtype=np.uint64), *rest])


def grouped(sizes: Sequence[int], limit: int) -> list[list[int]]:
    """Consecutive sizes, as many together as have a product within the limit."""
    groups: list[list[int]] = []
    product = limit + 1
    for size in sizes:
        if product * size > limit:
            groups.append([])
            product = 1
        groups[-1].append(size)
        product *= size
    return groups


@compiled
def look_up(rest: Words, size: np.uint64, tables: Codes, found: Codes) -> None:
    """Take the last mixed-radix digit off each number and look up what it stands for."""
    for i in range(rest.size):
        quotient = rest[i] // size
        place = rest[i] - quotient * size
        rest[i] = quotient
        for j in range(tables.shape[0]):
            found[j, i] = tables[j, place]


@compiled
def take_digit(rest: Words, size: np.uint64, digits: Codes) -> None:
    """Take the last mixed-radix digit off each number."""
    for i in range(rest.size):
        quotient = rest[i] // size
        digits[i] = rest[i] - quotient * size
        rest[i] = quotient


def code_type(size: int) -> type[np.signedinteger]:
    """The narrowest signed type that holds the codes 0 … size − 1."""
    for kind in (np.int8, np.int16, np.int32):
        if size - 1 <= np.iinfo(kind).max:
            return kind
    return np.int64
