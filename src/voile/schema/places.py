"""Where in its bin a number lies: the places between 0 and 1 that means within bins are made of.

A column of numbers has one stretch for each value of its domain: its bins, or the whole numbers of
a range. Where numbers beyond the ends count as the ends, the first and the last stretch reach
further, to a public number on either side, so that what is beyond has a place as well.

Whole numbers have the place (x + ½ − a)/(b − a) in [a, b); the last stretch has its upper end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from voile.arrays import Floats, Ints
from voile.client.domains import Bins
from voile.schema.attribute import Attribute, Range

REACH = 1.0
"""By how much of the way from the middle bin to an end the domain is taken to reach beyond it."""
MOST_SINGLES = 128
"""Whole numbers of a range whose ends reach further."""

ZERO_ENDS = 500
"""How far below the next edge a bin of zeros ends, at least."""
RANGE_ENDS = 2
"""Of a range only the ends hide numbers."""


@dataclass(frozen=True)
class NumberPlaces:
    """The stretches of one column of numbers, and the places in them."""

    edges: tuple[float, ...]
    whole: bool
    """Whether the numbers are whole."""
    zero: int | None = None
    """The stretch that holds zeros alone, where there is one."""

    @property
    def size(self) -> int:
        """How many stretches there are."""
        return len(self.edges) - 1

    @cached_property
    def widths(self) -> Floats:
        """From edge to edge; of whole numbers, how many there are."""
        found = np.diff(np.asarray(self.edges))
        if self.whole:
            found[-1] += 1  # the last stretch has its upper edge
        return np.asarray(found)

    @property
    def hides(self) -> bool:
        """Whether some stretch has more than one number."""
        return not self.whole or bool((self.widths > 1).any())

    def stretches(self, numbers: Floats) -> Ints:
        """The stretch of each number; beyond the ends, the first or the last."""
        found = np.searchsorted(np.asarray(self.edges), numbers, side="right") - 1
        return np.clip(found, 0, self.size - 1).astype(np.int64)

    def places(self, numbers: Floats, stretches: Ints) -> Floats:
        """Of each number in its stretch, from 0 to 1."""
        start = np.asarray(self.edges)[stretches]
        half = 0.5 if self.whole else 0.0
        return np.asarray(np.clip((numbers + half - start) / self.widths[stretches], 0.0, 1.0))


def places_of(attribute: Attribute, ends: tuple[float, float] | None = None) -> NumberPlaces | None:
    """The stretches of a column, from the first to the last of `ends`; None if it has none.

    Columns that have some are numbers and days in bins, and ranges of whole numbers whose ends
    stand for what is beyond. Days do not reach further.
    """
    edges = _edges(attribute)
    if edges is None:
        return None
    low, high = reached(attribute) if ends is None else ends
    zero = zero_stretch(attribute)
    return NumberPlaces((low, *edges[1:-1], high), attribute.kind != "numeric", zero)


def zero_stretch(attribute: Attribute) -> int | None:
    """The bin of a learnt domain that was made for zeros alone: it begins at 0, and ends at a
    power of ten far below what follows."""
    edges = _edges(attribute)
    learnt = attribute.public == "learnt" and attribute.kind == "numeric"
    if edges is None or not learnt or 0.0 not in edges[:-2]:
        return None
    place = edges.index(0.0)
    return place if edges[place + 1] * ZERO_ENDS <= edges[place + 2] else None


def _edges(attribute: Attribute) -> tuple[float, ...] | None:
    domain = attribute.domain
    if isinstance(domain, Bins):
        return domain.edges
    if attribute.kind != "integer" or not isinstance(domain, Range):
        return None
    if not attribute.clamp or domain.size > MOST_SINGLES:
        return None
    first = domain.grid.low
    inner = range(first + 1, first + domain.size)
    return (float(first), *map(float, inner), float(first + domain.size - 1))


def domain_ends(attribute: Attribute) -> tuple[float, float]:
    """The least and the largest number of a column that has stretches."""
    edges = _edges(attribute)
    if edges is None:
        raise ValueError(f"{attribute.name!r} has no bins")
    return edges[0], edges[-1]


def reached(attribute: Attribute, times: float = REACH) -> tuple[float, float]:
    """The ends of a column's stretches; where numbers are moved to the ends, these lie beyond.

    By public rule: as far again as from the middle edge to the end, `times`; but a domain without
    numbers below 0 has none there, nor one without numbers above 0 there.
    """
    low, high = domain_ends(attribute)
    edges = _edges(attribute) or (low, high)
    if not attribute.clamp or attribute.kind == "date":
        return low, high
    listed = isinstance(attribute.domain, Range) or len(edges) < 3
    middle = (low + high) / 2 if listed else edges[len(edges) // 2]
    below, above = low - times * (middle - low), high + times * (high - middle)
    if attribute.kind == "integer":
        below, above = math.floor(below), math.ceil(above)
    return (max(below, 0.0) if low >= 0 else below), (min(above, 0.0) if high <= 0 else above)


def hidden_bins(attribute: Attribute) -> int:
    """How many bins of a column hide numbers, by the domain alone; of a range, its two ends."""
    places = places_of(attribute)
    if places is None or not places.hides:
        return 0
    return RANGE_ENDS if isinstance(attribute.domain, Range) else places.size
