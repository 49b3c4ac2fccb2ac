"""Ranges of values in words: what a generalized cell shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.schema import Attribute, Bins
from voile.schema.attribute import NULL, number_in_words, value_words
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
    words = RangeWords(attribute, levels, order)
    ends = [(int(key // attribute.size), int(key % attribute.size)) for key in unique]
    texts: dict[str, tuple[int, int]] = {}
    for low_end, high_end in ends:
        text = words(low_end, high_end)
        if text in texts:  # two ranges with the same words, as where a value has a group's name
            text += f" (places {low_end} to {high_end})"
        texts[text] = (low_end, high_end)
    named = {text: found for text, found in texts.items() if text in words.groups}
    return Labels(tuple(texts), of_class.astype(np.int32), named)


def agrees(
    text: str,
    ends: tuple[int, int],
    attribute: Attribute,
    order: Places | None,
    groups: Mapping[str, Sequence[int]],
) -> bool:
    """Whether a text is the words for a range, or a name that stands for it."""
    if text in groups:
        return tuple(groups[text]) == ends
    low, high = ends
    plain = RangeWords(attribute, None, order)(low, high)
    return text in (plain, f"{plain} (places {low} to {high})")


class RangeWords:
    """One column's ranges in words."""

    def __init__(self, attribute: Attribute, levels: Levels | None, order: Places | None) -> None:
        self._attribute = attribute
        self._order = order
        self._words = value_words(attribute)
        self._nodes = {} if levels is None else intervals_of(levels, order)
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
            edges = attribute.domain.edges
            close = "]" if high + 2 == len(edges) else ")"
            first, last = number_in_words(edges[low]), number_in_words(edges[high + 1])
            return f"[{first}, {last}{close}{ending}"
        first, last = self._words[low], self._words[high]
        short = attribute.kind == "integer" and not first.startswith("-")
        return f"{first}-{last}{ending}" if short else f"{first} to {last}{ending}"


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
