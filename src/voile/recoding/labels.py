"""Ranges of values in words: what a generalized cell shows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from voile.schema import Attribute, Bins, Range
from voile.schema.attribute import NULL, edges_in_words, ordinal, value_words
from voile.schema.hierarchy import EVERYTHING, Levels

Places = npt.NDArray[np.int32]

LISTED = 12
"""Longer sets of unordered values are shown by their first and last."""


@dataclass(frozen=True, eq=False)
class Labels:
    """The distinct ranges of a column, each with a text of its own."""

    texts: tuple[str, ...]
    of_class: Places
    """(classes,): which of the texts each class shows."""
    groups: dict[str, tuple[int, int]]
    """The texts that are names of a hierarchy, with their first and last place."""


def labels(
    attribute: Attribute,
    levels: Levels | None,
    order: Places | None,
    low: Places,
    high: Places,
) -> Labels:
    """Words for the range of each class; `order` where it is not that of the domain."""
    keys = low.astype(np.int64) * attribute.size + high
    unique, of_class = np.unique(keys, return_inverse=True)
    words, plain = RangeWords(attribute, levels, order), RangeWords(attribute, None, order)
    ends = [(int(key // attribute.size), int(key % attribute.size)) for key in unique]
    texts: dict[str, tuple[int, int]] = {}
    for low_end, high_end in ends:
        text = words(low_end, high_end)
        if text in texts:  # two ranges with the same words, as where a value has a group's name
            text = plain(low_end, high_end)
        if text in texts:
            text += f" (places {low_end} to {high_end})"
        texts[text] = (low_end, high_end)
    named = {text: found for text, found in texts.items() if text in words.groups}
    return Labels(tuple(texts), of_class.astype(np.int32), named)


def agrees(
    text: str,
    ends: tuple[int, int],
    plain: RangeWords,
    groups: Mapping[str, Sequence[int]],
) -> bool:
    """Whether a text is the words for a range, or a name that stands for it.

    `plain` are the words of the column's ranges without a hierarchy.
    """
    low, high = ends
    words = plain(low, high)
    if text in (words, f"{words} (places {low} to {high})"):
        return True
    return text in groups and tuple(groups[text]) == ends and plain.may_name(text, low, high)


class RangeWords:
    """One column's ranges in words."""

    def __init__(self, attribute: Attribute, levels: Levels | None, order: Places | None) -> None:
        self._attribute = attribute
        self._order = order
        self._words = value_words(attribute)
        nodes = {} if levels is None else intervals_of(levels, order)
        self._nodes = {ends: name for ends, name in nodes.items() if self.may_name(name, *ends)}
        self.groups = frozenset(self._nodes.values())

    def __call__(self, low: int, high: int) -> str:
        attribute = self._attribute
        if low == high:
            return self._words[self._code(low)]
        if high - low + 1 == attribute.size:
            return EVERYTHING
        if (node := self._nodes.get((low, high))) is not None:
            return node
        if self._order is None and attribute.ordered:
            return self._interval(low, high)
        codes = [self._code(place) for place in range(low, high + 1)]
        if len(codes) <= LISTED:
            return " | ".join(self._words[code] for code in codes)
        return f"{self._words[codes[0]]} … {self._words[codes[-1]]} ({len(codes):,} values)"

    def may_name(self, name: str, low: int, high: int) -> bool:
        """Whether a name of a group does not read as other values than those from low to high.

        A group of 19 to 23 must not be called 94. 20-30 may stand for 20 to 29: it says less. And
        a group of categories may have the name of one of them, as in many hierarchies.
        """
        if (read := self._read(name)) is None:
            return name not in ("", NULL)
        first, last = read
        if self._attribute.kind == "categorical" and first == last:
            return low <= first <= high
        return first <= low and high <= last

    def _read(self, text: str) -> tuple[int, int] | None:
        """The first and last place that a text reads as; None where it is no words of values."""
        text = text.removesuffix(f" or {NULL}")
        if (place := self._places.get(text)) is not None:
            return place, place
        for parts in split_words(text):
            found = [self._places.get(part) for part in parts]
            known = [place for place in found if place is not None]
            if len(known) == len(found):
                return min(known), max(known)
        return self._read_edges(text)

    def _read_edges(self, text: str) -> tuple[int, int] | None:
        """As `_read`, of [20, 40) where values lie in bins."""
        if not isinstance(self._attribute.domain, Bins) or not text.startswith(("[", "(")):
            return None
        edges = edges_in_words(self._attribute.domain)
        first, _, last = text[1:-1].partition(", ")
        return (edges.index(first), edges.index(last) - 1) if {first, last} <= {*edges} else None

    @cached_property
    def _places(self) -> WordPlaces:
        return WordPlaces(self._attribute, self._order)

    def _code(self, place: int) -> int:
        return place if self._order is None else int(self._order[place])

    def _interval(self, low: int, high: int) -> str:
        """A range of an ordered column: from … to …, as its kind is written."""
        attribute = self._attribute
        ending = ""
        if attribute.null and high == attribute.size - 1:
            high, ending = high - 1, f" or {NULL}"
            if low == high:
                return self._words[low] + ending
        if isinstance(attribute.domain, Bins):
            edges = edges_in_words(attribute.domain)
            close = "]" if high + 2 == len(edges) else ")"
            first, last = edges[low], edges[high + 1]
            return f"[{first}, {last}{close}{ending}"
        first, last = self._words[low], self._words[high]
        short = attribute.kind == "integer" and not first.startswith("-")
        return f"{first}-{last}{ending}" if short else f"{first} to {last}{ending}"


class WordPlaces:
    """Where the value with some words stands in a column's order."""

    def __init__(self, attribute: Attribute, order: Places | None) -> None:
        self._attribute = attribute
        self._words = value_words(attribute)
        self._listed: dict[str, int] | None = None
        if isinstance(attribute.domain, Range) and order is None:
            self._first = ordinal(attribute.domain.low)
        else:
            codes = range(attribute.size) if order is None else order.tolist()
            self._listed = {self._words[code]: place for place, code in enumerate(codes)}

    def get(self, word: str) -> int | None:
        """The place of a value; None for words of no value."""
        if self._listed is not None:
            return self._listed.get(word)
        size = self._attribute.size
        if word == self._words[size - 1]:
            return size - 1
        try:
            value = dt.date.fromisoformat(word) if self._attribute.kind == "date" else int(word)
        except ValueError:
            return None
        place = ordinal(value) - self._first
        return place if 0 <= place < size and self._words[place] == word else None


def split_words(text: str) -> Iterator[list[str]]:
    """The ways in which a text may be made of words of values, as ranges and lists are."""
    yield text.split(" | ")
    first, _, rest = text.partition(" … ")
    yield [first, rest.rpartition(" (")[0]]
    yield text.split(" to ")
    for place in (i for i, sign in enumerate(text) if sign in "-–"):
        yield [text[:place].strip(), text[place + 1 :].strip()]


def intervals_of(levels: Levels, order: Places | None) -> dict[tuple[int, int], str]:
    """The inner nodes of a hierarchy that are intervals of places; finer levels come first."""
    place = np.arange(levels.size)
    if order is not None:
        place[order] = np.arange(levels.size)
    found: dict[tuple[int, int], str] = {}
    for nodes, texts in zip(levels.nodes[1:-1], levels.labels[1:-1], strict=True):
        first, last = np.full(len(texts), levels.size), np.full(len(texts), -1)
        np.minimum.at(first, nodes, place)
        np.maximum.at(last, nodes, place)
        whole = last - first + 1 == np.bincount(nodes, minlength=len(texts))
        for node in np.flatnonzero(whole & (last > first)):
            found.setdefault((int(first[node]), int(last[node])), texts[int(node)])
    return found
