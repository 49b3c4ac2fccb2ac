"""Bounds and bins of numbers from noisy histograms, each on cells that the one before chose.

The first histogram is on a public grid over all magnitudes. Cells that hold many rows are cut at
round places, more finely the more they hold; ends that hold nothing are left off. After the last
histogram neighbouring cells are joined into bins: half of the bins by how many rows they hold,
which medians need, and half by how much they spread, which averages need. All of this reads noisy
figures alone, and is post-processing.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from voile.arrays import Floats
from voile.client.domains import EPOCH, Kind
from voile.learning.grids import LARGEST, SMALLEST, PublicGrid, decimal, digits, grid_of
from voile.schema import Bins
from voile.schema.attribute import DayBins, Domain, Range, WholeBins, day_of

STAGES = (0.3, 0.25, 0.45)
"""Shares of a column's budget for its histograms."""
CLEAR = 1.0
"""By how many deviations a cell must exceed what the largest of so many draws has."""
PARTS = 50
"""Into which a cell is cut at once."""
MASS = 2.0
"""Deviations of the next histogram's noise that each part of a cell shall hold."""
TINY = 1000
"""Numbers so many times smaller than the largest are told apart only where many rows have them."""
FEW = 0.001
"""Of the rows: so few may be left off at an end although noise does not explain them."""
NEAR = 0.3
"""Of a bin's weight: how far a cut may be from where it should be, for a rounder number."""
SEEN = 4.0
"""Deviations that a bin holds at least."""
USUAL = (0.01, 1e6)
"""Magnitudes that most columns have: where nothing is clear, numbers are looked for there."""
UNLIKELY = 3.0
"""Deviations that what is left off at an end may have where it alone makes a domain wide."""
WIDE = 8
"""Times as wide as the numbers that surely occur: so wide a domain of whole numbers is doubted."""
TAIL = 6
"""Neighbouring cells that may be clear together."""


@dataclass(frozen=True, eq=False)
class NoisyCells:
    """Cells of one column, and how many rows are in each, with noise."""

    edges: tuple[float, ...]
    counts: Floats
    scale: float
    """The standard deviation of the noise on each."""
    heavy: bool = False
    """Whether the noise is geometric: many deviations are far likelier than of normal noise."""

    @property
    def clear(self) -> Any:
        """Which cells surely hold rows."""
        return self.counts >= self.level(len(self.counts) + 1, 1) * self.scale

    def level(self, draws: int, length: int) -> float:
        """What so many sums of noise on `length` cells exceed with the same small probability.

        In deviations of such a sum.
        """
        normal = math.sqrt(2 * math.log(draws)) + CLEAR
        return heavy_level(normal, length) if self.heavy else normal


@lru_cache
def heavy_level(normal: float, length: int) -> float:
    """The deviations that a sum of Laplace noise exceeds as seldom as normal noise exceeds these.

    The sum of k draws of scale b exceeds x·b with probability Σ_{j<k} C(k−1+j, j)/2^(k+j) · e^−x ·
    Σ_{i<k−j} xⁱ/i!, and its deviation is b·√2k.
    """
    wanted = math.erfc(normal / math.sqrt(2)) / 2

    def exceeds(deviations: float) -> float:
        x = deviations * math.sqrt(2 * length)
        terms: list[float] = [x**i / math.factorial(i) for i in range(length)]
        weights = [math.comb(length - 1 + j, j) / 2.0 ** (length + j) for j in range(length)]
        whole = sum(w * sum(terms[: length - j]) for j, w in enumerate(weights))
        return math.exp(-x) * whole

    low, high = normal, normal + 1.0
    while exceeds(high) > wanted:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if exceeds(middle) > wanted else (low, middle)
    return high


def shows_numbers(cells: NoisyCells, *, ends: bool) -> bool:
    """Whether some cells surely hold rows; end cells hold all that lies beyond, and may not count.

    Only the first histogram has cells for all numbers: the ends of others are full wherever they
    are.
    """
    if not ends and len(cells.counts) < 3:
        return False
    inner = cells if ends else cells_between(cells, 1, len(cells.counts) - 1)
    return bool(sure_cells(inner)[0].any())


def cells_between(cells: NoisyCells, first: int, last: int) -> NoisyCells:
    """The cells from one up to, and without, another."""
    return replace(cells, edges=cells.edges[first : last + 1], counts=cells.counts[first:last])


def bounded(cells: NoisyCells) -> NoisyCells:
    """Without the ends of all magnitudes that hold nothing, but for one cell at either end.

    What is there counts in the new end cells. No cell beyond 0 is added.
    """
    held = np.flatnonzero(held_cells(cells))
    first, last = int(held[0]), int(held[-1])
    near = (0.0, *(sign * decimal(1, SMALLEST) for sign in (-1, 1)))
    first -= first > 0 and cells.edges[first] not in near
    last += last + 1 < len(cells.counts) and cells.edges[last + 1] not in near
    return cells_between(cells, first, last + 1)


def held_cells(cells: NoisyCells) -> Any:
    """Cells that surely hold rows, alone or a few neighbours together; else the likeliest."""
    found, likeliest = sure_cells(cells)
    if not found.any():
        found[likeliest] = True
    return found


def sure_cells(cells: NoisyCells) -> tuple[Any, slice]:
    """Cells that surely hold rows, and the likeliest of the others."""
    found = cells.clear.copy()
    draws = TAIL * len(cells.counts)
    best, where = -math.inf, slice(0, 1)
    usual = usual_cells(cells.edges)
    for length in range(1, min(TAIL, len(cells.counts)) + 1):
        level = cells.level(draws, length)
        for start in range(len(cells.counts) - length + 1):
            window = slice(start, start + length)
            if cells.clear[window].any():
                continue
            height = float(cells.counts[window].sum()) / (cells.scale * math.sqrt(length))
            if height >= level:
                found[window] = True
            if height > best and usual[window].all():
                best, where = height, window
    return found, where


def usual_cells(edges: Sequence[float]) -> Any:
    """Cells of numbers that columns often have: 0, and from a hundredth to a million."""
    ends = np.abs(np.array(edges))
    ends = np.minimum(ends[1:], ends[:-1]), np.maximum(ends[1:], ends[:-1])
    return (ends[1] <= USUAL[1]) & ((ends[0] >= USUAL[0]) | (ends[1] <= decimal(1, SMALLEST)))


def trimmed(cells: NoisyCells, least: float = 1.0) -> NoisyCells:
    """Without the cells at either end that hold next to nothing together.

    What is left off moves to the end of the domain: it must be too few rows to move an average.
    At most `least` deviations are left off in any case.
    """
    clear = np.flatnonzero(cells.clear)
    if not len(clear):
        clear = np.array([int(np.argmax(cells.counts))])
    rows = float(cells.counts.sum())
    first = empty_cells(cells.counts[: clear[0]], cells.scale, rows, least)
    last = len(cells.counts) - empty_cells(cells.counts[: clear[-1] : -1], cells.scale, rows, least)
    return cells_between(cells, first, last)


def empty_cells(counts: Floats, scale: float, rows: float, least: float = 1.0) -> int:
    """How many of the first of these cells have a noisy sum that nothing may have."""
    sums = np.cumsum(counts)
    deviation = scale * np.sqrt(np.arange(len(sums)) + 1)
    most = np.maximum(least * deviation, np.minimum(2 * deviation, FEW * rows))
    empty = np.flatnonzero(sums <= most)
    return int(empty[-1]) + 1 if len(empty) else 0


def refined(cells: NoisyCells, grid: PublicGrid, scale: float) -> tuple[float, ...]:
    """The cells of the next histogram, whose noise has this deviation."""
    kept = without_tiny(cells)
    edges = [kept.edges[0]]
    for low, high, count in zip(kept.edges, kept.edges[1:], kept.counts, strict=False):
        parts = min(PARTS, math.floor(max(float(count), 0.0) / (MASS * scale)))
        edges += [*grid.inside(low, high, parts), high]
    return tuple(edges)


def without_tiny(cells: NoisyCells) -> NoisyCells:
    """Join cells of numbers that are far smaller than the largest, except where many rows are."""
    largest = max(abs(cells.edges[0]), abs(cells.edges[-1]))
    tiny = decimal(1, math.floor(math.log10(largest))) / TINY if largest else 0.0
    clear = cells.clear
    kept, counts = [cells.edges[0]], [0.0]
    for i, count in enumerate(cells.counts):
        counts[-1] += float(count)
        edge = cells.edges[i + 1]
        beside = clear[i] or (i + 1 < len(clear) and clear[i + 1])
        if edge == 0 or abs(edge) >= tiny or beside or i + 1 == len(cells.counts):
            kept.append(edge)
            counts.append(0.0)
    return replace(cells, edges=tuple(kept), counts=np.array(counts[:-1]))


# ---------------------------------------------------------------------- bins


@dataclass(frozen=True)
class BinLimits:
    """How many bins and single numbers a column may have, by public numbers."""

    bins: int
    singles: int


def limits(rows: int, scale: float) -> BinLimits:
    """For about so many rows, and this noise on the last histogram."""
    bins = max(4, min(32, math.floor(rows / (5 * scale))))
    return BinLimits(bins, max(12, min(128, 2 * bins, rows // 50)))


NOTHING: Mapping[Kind, Domain] = {
    "integer": WholeBins((-USUAL[1], USUAL[1])),
    "numeric": Bins((-USUAL[1], USUAL[1])),
    "date": DayBins((float(dt.date(1900, 1, 1).toordinal() - EPOCH),
                     float(dt.date(2100, 1, 1).toordinal() - EPOCH))),
}  # fmt: skip
"""Of a column of which noise hid everything: one bin."""


@dataclass(frozen=True)
class NumberDomain:
    """What was learnt of a column of numbers."""

    domain: Domain
    open: bool = False
    """Whether noise hid how far the numbers reach."""


def domain_of_cells(kind: Kind, cells: NoisyCells, rows: int) -> NumberDomain:
    """The domain of a column from its last histogram."""
    kept = trimmed(cells)
    most = limits(rows, cells.scale)
    if kind != "numeric":
        # Years 1979 to 1988 and a noisy cell from 1650 on would make bins of them.
        surely = trimmed(cells, UNLIKELY)
        if span(surely) <= most.singles and span(kept) > WIDE * span(surely):
            kept = surely
    low, high = kept.edges[0], kept.edges[-1]
    alone = kind != "numeric" and high - low <= 1
    if alone:
        low, high = with_neighbour(kept, cells)
    if kind == "integer" and high - low <= most.singles:
        return NumberDomain(Range(int(low), int(high) - 1), alone)
    if kind == "date" and high - low <= most.singles:
        return NumberDomain(Range(day_of(low), day_of(high - 1)), alone)
    edges = joined(kept, most.bins)
    if zeros := kept.edges == (0.0, decimal(1, SMALLEST)):
        edges = (*kept.edges, 1.0)  # and whatever else there is
    elif len(edges) < 3:
        edges = halved(kept, grid_of(kind))
    if kind != "numeric":
        # The last bin is closed: of a single number it is with the one that follows.
        last = edges[-1] - 1 if edges[-1] - 1 > edges[-2] else edges[-1]
        if kind == "integer":
            return NumberDomain(WholeBins(exact((*edges[:-1], last))))
        return NumberDomain(DayBins((*edges[:-1], last)))
    return NumberDomain(Bins(zero_bin(edges)), zeros)


def exact(edges: tuple[float, ...]) -> tuple[float, ...]:
    """Edges that are whole in doubles: what lies beyond is with the last ones."""
    most = decimal(1, LARGEST)
    within = tuple(sorted({min(max(edge, -most), most) for edge in edges}))
    if len(within) > 1:
        return within
    return (within[0] / 2, within[0]) if within[0] > 0 else (within[0], within[0] / 2)


def with_neighbour(kept: NoisyCells, cells: NoisyCells) -> tuple[float, float]:
    """The ends of one whole number and the next, on the side that holds more rows.

    One number alone would say nothing: the next one stands for all others.
    """
    low, high = kept.edges[0], kept.edges[-1]
    below = sum(c for c, e in zip(cells.counts, cells.edges, strict=False) if e < low)
    above = sum(c for c, e in zip(cells.counts, cells.edges, strict=False) if e >= high)
    return (low - 1, high) if low != 0 and below > above else (low, high + 1)


def halved(cells: NoisyCells, grid: PublicGrid) -> tuple[float, ...]:
    """Two bins where noise leaves one: one alone would say nothing."""
    low, high = cells.edges[0], cells.edges[-1]
    if len(cells.counts) > 1:
        below = np.cumsum(np.maximum(cells.counts, 0.0))
        inner = below[:-1] / max(float(below[-1]), 1.0)
        return low, cells.edges[int(np.argmin(np.abs(inner - 0.5))) + 1], high
    whole = low == math.floor(low) and high - low >= 2
    middle = float(math.floor((low + high) / 2)) if whole else (low + high) / 2
    inside = grid.inside(low, high, 3) or [middle]
    return low, inside[len(inside) // 2], high


def span(cells: NoisyCells) -> float:
    """How wide the cells are together."""
    return cells.edges[-1] - cells.edges[0]


def joined(cells: NoisyCells, bins: int) -> tuple[float, ...]:
    """Edges of bins that are unions of cells: at equal steps of weight, where numbers are round."""
    counts = np.maximum(cells.counts, 0.0)
    widths = np.diff(np.asarray(cells.edges))
    solid = np.where(cells.counts >= 2 * cells.scale, counts, 0.0)
    weight = np.zeros(len(counts))
    for part in (counts, np.cbrt(solid * widths * widths)):
        if part.sum() > 0:
            weight += part / part.sum() / 2
    below = np.concatenate([[0.0], np.cumsum(weight)])
    wanted = np.arange(1, bins) / bins
    cuts = sorted({roundest(cells.edges, below, float(at), NEAR / bins) for at in wanted})
    return with_mass(cells, [cut for cut in cuts if 0 < cut < len(counts)])


def roundest(edges: Sequence[float], below: Floats, at: float, near: float) -> int:
    """The edge of fewest digits among those whose weight is near; else the nearest one."""
    places = np.flatnonzero(np.abs(below - at) <= near)
    if not len(places):
        return int(np.argmin(np.abs(below - at)))
    return min(map(int, places), key=lambda i: (digits(edges[i]), abs(below[i] - at)))


def with_mass(cells: NoisyCells, cuts: Sequence[int]) -> tuple[float, ...]:
    """The edges at these cuts, without those of bins that hold too few rows to be seen."""
    kept: list[int] = []
    for cut in cuts:
        if cells.counts[kept[-1] if kept else 0 : cut].sum() >= SEEN * cells.scale:
            kept.append(cut)
    while kept and cells.counts[kept[-1] :].sum() < SEEN * cells.scale:
        kept.pop()
    places = [0, *kept, len(cells.counts)]
    return tuple(cells.edges[place] for place in places)


def zero_bin(edges: tuple[float, ...]) -> tuple[float, ...]:
    """A bin of zeros alone ends well below the next numbers, at a power of ten."""
    least = decimal(1, -9)
    if least not in edges[1:-1]:
        return edges
    place = edges.index(least)
    following = edges[place + 1]
    moved = max(least, decimal(1, math.floor(math.log10(following))) / TINY)
    return (*edges[:place], moved, *edges[place + 1 :])
