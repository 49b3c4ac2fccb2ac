"""The numbering of tuples, and distributions over them that are products of their attributes'."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats, Ints, Words
from voile.compiled import compiled
from voile.errors import UsageError
from voile.schema.attribute import MAX_SIZE

Keys = npt.NDArray[Any]
"""Numbers of tuples of the domain; as words of 64 bits where the domain has more of them."""

Codes = npt.NDArray[np.signedinteger]

TABLE = 2**16
"""Largest group of attributes decoded by one look-up; its tables stay in the processor's cache."""

FEW = 2**16
"""Rows that NumPy decodes before Numba is loaded."""

PIECE = 2**15
"""Rows decoded at a time: what is found of them is still in the cache when it is read again."""
LONG = 8
"""Rows of a run, on average, from which on runs are decoded and not rows."""


@dataclass(frozen=True)
class Limb:
    """Consecutive attributes [first, last) coded in one word."""

    first: int
    last: int
    sizes: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        """How many combinations of codes there are."""
        return math.prod(self.sizes)

    @property
    def bits(self) -> int:
        """Width of the word when a more significant limb stands before it."""
        return (self.size - 1).bit_length()

    def encode(self, codes: Sequence[Codes]) -> Words:
        """The word of each row's codes."""
        word = np.zeros(len(codes[0]), dtype=np.uint64)
        for size, code in zip(self.sizes, codes, strict=True):
            word *= np.uint64(size)
            word += code.astype(np.uint64)
        return word

    def decode(self, words: Sequence[Words]) -> list[Codes]:
        """Divide once per group of attributes, then look each attribute's code up.

        The words are those of one run of rows, cut anywhere.
        """
        rows = sum(map(len, words))
        found = [
            np.empty((len(group.sizes), rows), dtype=code_type(max(group.sizes)))
            for group in self._groups
        ]
        start = 0
        for word in words:
            for at in range(0, len(word), PIECE):
                rest = word[at : at + PIECE].astype(np.uint64)  # a copy; places have a sign
                for group, codes in zip(reversed(self._groups), reversed(found), strict=True):
                    group.take(rest, codes[:, start : start + len(rest)], few=rows <= FEW)
                start += len(rest)
        return [
            code.astype(code_type(size), copy=False)
            for group, codes in zip(self._groups, found, strict=True)
            for code, size in zip(codes, group.sizes, strict=True)
        ]

    @cached_property
    def _groups(self) -> list[AttributeGroup]:
        return [AttributeGroup(tuple(sizes)) for sizes in grouped(self.sizes, TABLE)]


@dataclass(frozen=True)
class AttributeGroup:
    """Attributes whose codes are found by one division and one look-up."""

    sizes: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        """How many combinations of codes there are."""
        return math.prod(self.sizes)

    @cached_property
    def tables(self) -> Codes:
        """Each attribute's code at every place of the group; empty for a single attribute."""
        kind = code_type(max(self.sizes))
        if len(self.sizes) == 1:
            return np.empty((0, 0), dtype=kind)
        return np.stack(np.unravel_index(np.arange(self.size), self.sizes)).astype(kind)

    def take(self, rest: Words, found: Codes, *, few: bool) -> None:
        """Take the group off each number, and write its codes; of few rows, without Numba."""
        if len(self.sizes) == 1:
            digits = take_digit_in_numpy if few else take_digit
            digits(rest, np.uint64(self.size), found[0])
        else:
            find = look_up_in_numpy if few else look_up
            find(rest, np.uint64(self.size), self.tables, found)


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
        """The keys of tuples, given the codes of each attribute."""
        return self.keys([limb.encode(codes[limb.first : limb.last]) for limb in self.limbs])

    def decode(self, keys: Keys) -> list[Codes]:
        """The codes of each attribute, given keys."""
        return self.decode_parts([keys])

    def decode_parts(self, parts: Sequence[Keys]) -> list[Codes]:
        """The codes of each attribute, given keys in several arrays; sorted ones are quicker."""
        words = [self.words(keys) for keys in parts]
        return [
            code
            for i, limb in enumerate(self.limbs)
            for code in limb.decode([word[i] for word in words])
        ]

    def keys(self, words: Sequence[Words]) -> Keys:
        """Keys made of the words of all limbs."""
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

    def words(self, keys: Keys) -> list[Words]:
        """The words of all limbs, given keys."""
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


def look_up_in_numpy(rest: Words, size: np.uint64, tables: Codes, found: Codes) -> None:
    """As `look_up`, for few rows and where there is no Numba."""
    quotient = rest // size
    found[:] = tables[:, rest - quotient * size]
    rest[:] = quotient


def take_digit_in_numpy(rest: Words, size: np.uint64, digits: Codes) -> None:
    """As `take_digit`, for few rows and where there is no Numba."""
    quotient = rest // size
    digits[:] = rest - quotient * size
    rest[:] = quotient


@compiled(instead=look_up_in_numpy)
def look_up(rest: Words, size: np.uint64, tables: Codes, found: Codes) -> None:
    """Take the last mixed-radix digit off each number and look up what it stands for.

    Numbers that are sorted repeat their first digits: those are looked up once for a run of equal
    ones. And a number is divided only where its quotient is not that of the one before.
    """
    runs = np.uint64(1)
    for i in range(1, rest.size):
        runs += np.uint64(rest[i] != rest[i - 1])
    if runs * np.uint64(LONG) < np.uint64(rest.size):
        start = 0
        while start < rest.size:
            word, stop = rest[start], start + 1
            while stop < rest.size and rest[stop] == word:
                stop += 1
            quotient = word // size
            rest[start:stop] = quotient
            for j in range(tables.shape[0]):
                found[j, start:stop] = tables[j, word - quotient * size]
            start = stop
        return
    places = np.empty(rest.size, dtype=np.uint16)
    quotient = base = np.uint64(0)
    for i in range(rest.size):
        place = rest[i] - base
        if place >= size:  # also below the base, where it wraps
            quotient = rest[i] // size
            base = quotient * size
            place = rest[i] - base
        rest[i] = quotient
        places[i] = place
    for j in range(tables.shape[0]):
        table, codes = tables[j], found[j]
        for i in range(rest.size):
            codes[i] = table[places[i]]


@compiled(instead=take_digit_in_numpy)
def take_digit(rest: Words, size: np.uint64, digits: Codes) -> None:
    """Take the last mixed-radix digit off each number; divided as `look_up` does it."""
    quotient = base = np.uint64(0)
    for i in range(rest.size):
        place = rest[i] - base
        if place >= size:
            quotient = rest[i] // size
            base = quotient * size
            place = rest[i] - base
        rest[i] = quotient
        digits[i] = place


def code_type(size: int) -> type[np.signedinteger]:
    """The narrowest signed type that holds the codes 0 … size − 1."""
    for kind in (np.int8, np.int16, np.int32):
        if size - 1 <= np.iinfo(kind).max:
            return kind
    return np.int64


# ---------------------------------------------------------------------- product
# A product distribution over the domain: one distribution per attribute.


PARTS = 2**32
"""Chances of a value are whole parts of this, so that they are exact, and half a word decides."""


@dataclass(frozen=True)
class Product:
    """For each attribute, the chances of its values as parts of 2³²; None where all are alike."""

    parts: tuple[tuple[int, ...] | None, ...]

    def __post_init__(self) -> None:
        for parts in self.parts:
            if parts is not None and (min(parts) < 0 or sum(parts) != PARTS):
                raise UsageError("the parts of a distribution do not add up to 2³²")

    def chances(self, sizes: Sequence[int]) -> list[Floats]:
        """p_j of every value; a single number where all are alike."""
        return [
            np.array([1 / size]) if parts is None else np.array(parts) / PARTS
            for parts, size in zip(self.parts, sizes, strict=True)
        ]

    def least(self, sizes: Sequence[int]) -> Fraction:
        """The smallest s(t)."""
        return self._extreme(sizes, min)

    def most(self, sizes: Sequence[int]) -> Fraction:
        """The largest s(t)."""
        return self._extreme(sizes, max)

    def _extreme(self, sizes: Sequence[int], choose: Callable[[Iterable[int]], int]) -> Fraction:
        chosen = [
            Fraction(1, size) if parts is None else Fraction(choose(parts), PARTS)
            for parts, size in zip(self.parts, sizes, strict=True)
        ]
        return math.prod(chosen, start=Fraction(1))

    def above(self, sizes: Sequence[int], least: float, limit: int) -> list[Ints] | None:
        """The codes of the tuples with s(t) > least; None if there are more than `limit`.

        Attributes whose values are all alike come last and are not searched: either all of a
        tuple's values there will do, or none.
        """
        listed = [j for j, parts in enumerate(self.parts) if parts is not None]
        alike = [j for j, parts in enumerate(self.parts) if parts is None]
        chances = self.chances(sizes)
        rest = float(np.prod([chances[j].max() for j in range(len(sizes))], initial=1.0))
        product, found = np.ones(1), dict[int, Ints]()
        for j in listed:
            rest /= float(chances[j].max())
            before, value = products_above(product, chances[j], least / rest, limit)
            if len(value) > limit:
                return None
            found = {i: code[before] for i, code in found.items()}
            found[j] = value
            product = product[before] * chances[j][value]
        if not (product * rest > least).any():
            return [np.empty(0, np.int64) for _ in sizes]
        if len(product) * math.prod(sizes[j] for j in alike) > limit:
            return None
        for j in alike:
            repeated = np.repeat(np.arange(len(product)), sizes[j])
            found = {i: code[repeated] for i, code in found.items()}
            found[j] = np.tile(np.arange(sizes[j]), len(product))
            product = product[repeated]
        return [found[j] for j in range(len(sizes))]


def products_above(left: Floats, right: Floats, least: float, limit: int) -> tuple[Ints, Ints]:
    """The pairs whose product exceeds `least`; not all of them where there are more than `limit`.

    The right ones are taken from the largest down, so that only pairs that count are made.
    """
    order = np.argsort(-right, kind="stable")
    with np.errstate(divide="ignore"):
        counts = np.searchsorted(-right[order], -(least / left), side="left")
    upto = int(np.searchsorted(np.cumsum(counts), limit, side="right")) + 1
    counts = counts[:upto]
    before = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    return before, order[np.arange(len(before)) - np.repeat(starts, counts)]


def whole_parts(weights: Sequence[float]) -> tuple[int, ...]:
    """Weights as parts of 2³² that add up: rounded down, the rest to the largest remainders."""
    numbers = np.asarray(weights, dtype=np.float64)
    exact = numbers / numbers.sum() * PARTS
    parts = np.floor(exact).astype(np.int64)
    missing = int(PARTS - parts.sum())
    parts[np.argsort(parts - exact, kind="stable")[:missing]] += 1
    return tuple(parts.tolist())
