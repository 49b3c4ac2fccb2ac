"""Where in its bin a number lies: the model of what a bin hides.

A release knows of a binned number which bin it is in, and no more. What is assumed of the rest:

  shape     within a bin [a, b) positions (x − a)/(b − a) have the density of a truncated
            exponential, ∝ e^{k·position}: of all with that mean, the one of largest entropy
  mean      measured, where the release has figures of it; else predicted from the densities of the
            neighbouring bins, which are taken to meet at the edges
  error     a mean is off by its noise, or, where it is predicted, by COMMON of the bin's width in
            all bins alike (whole numbers lie at the lower ends) and by OWN in each by itself
  groups    the rows of a group lie TILT standard deviations of the bin off, in all bins alike; and
            they are a sample of the rows in the bin

COMMON, OWN and TILT were chosen on real tables: docs/mathematics, section 44. Whole numbers
have the position (x + ½ − a)/(b − a), and days are whole numbers; their shape is the truncated
exponential rounded down, a truncated geometric law. Where a range lists single whole numbers, an
end that reaches further is taken to hold the number that is listed, if nothing else was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from voile.arrays import Bools, Floats
from voile.schema import Attribute, Range
from voile.schema.places import NumberPlaces, domain_ends, places_of

COMMON, OWN = 0.16, 0.14
"""Standard errors of a predicted mean, as shares of the bin's width: of all bins, and of each."""
OPEN = 1.0
"""The same of an end of a range that reaches further, if all of its rows may lie beyond it."""
TILT = 0.2
"""How far the mean of a group is off that of all rows, in standard deviations within the bin."""
STEEPEST = 1e4
"""The largest rate of a density within a bin."""
NEARLY = 1e-3
"""Rates of densities that are as good as flat."""
HALF_ROW = 0.5
"""What an empty bin is taken to hold, so that its density has a logarithm."""
FINE = 64
"""Whole numbers in a bin from which on they are as good as any numbers."""


@runtime_checkable
class MeasuredBins(Protocol):
    """A source that knows the means within bins, with noise."""

    def bin_positions(self, name: str, counts: Floats) -> MeasuredPositions | None:
        """Of a column with so many rows in its bins, where they were measured."""
        ...


@runtime_checkable
class OpenColumns(Protocol):
    """A source some of whose columns reach nobody knows how far."""

    @property
    def open_columns(self) -> frozenset[str]:
        """Their names."""
        ...


@runtime_checkable
class HiddenRows(Protocol):
    """A source that knows how many rows may lie beyond the ends of learnt columns."""

    @property
    def beyond(self) -> Mapping[str, float]:
        """The deviation of the noise that may have hidden them, by column."""
        ...


@runtime_checkable
class BoundedTotals(Protocol):
    """A source that knows between which numbers totals certainly lie."""

    @property
    def bounds_totals(self) -> bool:
        """Always true."""
        ...


@dataclass(frozen=True, eq=False)
class MeasuredPositions:
    """The mean position within each bin, in widths from its lower edge."""

    mean: Floats
    stderr: Floats
    ends: tuple[float, float] | None = None
    """Where the first bin begins and the last one ends, if not as the schema says."""
    beyond: float = math.inf
    """Rows that may lie beyond the ends of the domain: what noise hid where it was learnt."""


@dataclass(frozen=True, eq=False)
class BinShapes:
    """What is assumed of the numbers in each bin of one column."""

    name: str
    places: NumberPlaces
    share: Floats
    """Of all rows, by bin."""
    mean: Floats
    """Positions, in widths from the lower edge."""
    common: Floats
    own: Floats
    """Standard errors of the means, in widths: of all bins alike, and of each by itself."""

    @property
    def size(self) -> int:
        """How many bins there are."""
        return self.places.size

    @property
    def whole(self) -> bool:
        """Whether they are whole numbers."""
        return self.places.whole

    @cached_property
    def edges(self) -> Floats:
        """Of the bins; the first and the last may lie beyond those of the schema."""
        return np.array(self.places.edges)

    @property
    def widths(self) -> Floats:
        """From edge to edge; of whole numbers, how many there are."""
        return self.places.widths

    @property
    def means(self) -> Floats:
        """The mean of the numbers in each bin."""
        return np.asarray(self.edges[:-1] + self.mean * self.widths - (0.5 if self.whole else 0.0))

    def points(self, count: int) -> Floats:
        """(bins, count): numbers that stand for equal shares of each bin, in increasing order."""
        shares = (np.arange(count) + 0.5) / count
        found = positions(self._rates[:, None], shares[None, :])
        moved = np.where(self._few, 0.0, self.mean - found.mean(axis=1))
        return self._numbers(np.clip(found + moved[:, None], 0.0, 1.0))

    def knots(self, shares: Floats) -> Floats:
        """(bins, shares): the numbers below which these shares of each bin lie."""
        return self._numbers(positions(self._rates[:, None], shares[None, :]))

    @property
    def _few(self) -> Bools:
        """Bins of so few whole numbers that their shape is that of whole numbers."""
        return np.asarray(self.widths <= FINE) & self.whole

    @cached_property
    def _rates(self) -> Floats:
        found = rates(self.mean, mean_of)
        if not self.whole:
            return found
        widths = self.widths
        return np.where(self._few, rates(self.mean, lambda k: whole_mean_of(k, widths)), found)

    def _numbers(self, found: Floats) -> Floats:
        numbers = self.edges[:-1, None] + found * self.widths[:, None]
        low, high = self.ends
        if self.whole:
            numbers = np.floor(numbers)
        if self.places.zero is not None:
            numbers[self.places.zero] = 0.0
        return np.asarray(np.clip(numbers, low[:, None], high[:, None]))

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """The lowest and the highest number of each bin; upper edges belong to the next one."""
        low, high = self.edges[:-1].copy(), np.nextafter(self.edges[1:], -math.inf)
        if self.whole:
            low, high = np.ceil(low), np.ceil(self.edges[1:]) - 1
        high[-1] = self.edges[-1]
        if self.places.zero is not None:
            high[self.places.zero] = 0.0
        return low, np.maximum(low, high)


def shapes_of(
    attribute: Attribute, counts: Floats, measured: MeasuredPositions | None
) -> BinShapes:
    """The shapes of a column's bins, from how many rows are in each and what was measured."""
    places = places_of(attribute, measured.ends if measured is not None else None)
    assert places is not None  # noqa: S101  (asked of binned columns only)
    whole = places.whole
    counts = np.maximum(counts, 0.0)
    share = counts / max(counts.sum(), 1.0)
    mean = predicted_means(counts, places)
    common, own = np.full_like(share, COMMON), np.full_like(share, OWN)
    least = least_place(places)
    if isinstance(attribute.domain, Range):
        mean[0], mean[-1] = 1 - least[0], least[-1]
        hidden = (measured.beyond if measured is not None else math.inf) / np.maximum(counts, 1.0)
        common[[0, -1]], own[[0, -1]] = 0.0, OPEN * np.minimum(hidden, 1.0)[[0, -1]]
    if measured is not None:
        mean, common, own = weighed(mean, common, own, measured)
        mean = np.clip(mean, least, 1 - least)
        own = with_open_ends(own, mean, places, domain_ends(attribute))
    if places.zero is not None:
        mean[places.zero] = common[places.zero] = own[places.zero] = 0.0
    found = BinShapes(attribute.name, places, share, mean, common, own)
    if not whole:
        return found
    single = found.widths <= 1  # a bin of one number hides nothing
    return replace(
        found,
        mean=np.where(single, 0.5, mean),
        common=np.where(single, 0.0, common),
        own=np.where(single, 0.0, own),
    )


def least_place(places: NumberPlaces) -> Floats:
    """The lowest mean position of each bin: that of its first whole number, or 0."""
    return np.asarray(0.5 / places.widths if places.whole else np.zeros(places.size))


def weighed(
    predicted: Floats, common: Floats, own: Floats, measured: MeasuredPositions
) -> tuple[Floats, Floats, Floats]:
    """Means by precision: a measured one, of a bin of few rows, gives way to the predicted one."""
    prior, noise = common**2 + own**2, np.maximum(measured.stderr, 1e-9) ** 2
    trust = np.where(np.isfinite(measured.mean), prior / (prior + noise), 0.0)
    known = np.where(np.isfinite(measured.mean), measured.mean, 0.5)
    mean = np.clip(trust * known + (1 - trust) * predicted, 0.0, 1.0)
    noise = np.where(trust > 0, noise, 0.0)
    return mean, (1 - trust) * common, np.sqrt(trust**2 * noise + (1 - trust) ** 2 * own**2)


def with_open_ends(
    own: Floats, mean: Floats, places: NumberPlaces, listed: tuple[float, float]
) -> Floats:
    """Errors of means that include what may lie still further out than places were measured.

    With q the mean place of an end bin, from its innermost number on, numbers further out add about
    q²/(1 − q) of its width: next to nothing where q is small, and without bound as it goes to 1.
    """
    found, edges, least = own.copy(), places.edges, least_place(places)
    for end, reaches, place in (
        (0, edges[0] < listed[0], 1 - mean[0]),
        (-1, edges[-1] > listed[1], mean[-1]),
    ):
        if reaches:
            q = (place - least[end]) / max(1 - 2 * least[end], 1e-9)
            found[end] = math.hypot(found[end], q * q / max(1 - q, 1e-3))
    return found


# ---------------------------------------------------------------------- truncated exponentials


def rates(means: Floats, of: Callable[[Floats], Floats]) -> Floats:
    """The rate k of the density e^{k·x} on [0, 1] that has this mean, by how means follow rates."""
    low, high = np.full_like(means, -STEEPEST), np.full_like(means, STEEPEST)
    for _ in range(60):
        middle = (low + high) / 2
        below = of(middle) < means
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


def mean_of(rate: Floats) -> Floats:
    """1/(1 − e^{−k}) − 1/k."""
    k = np.maximum(np.abs(rate), NEARLY)
    above = -1 / np.expm1(-k) - 1 / k
    found = np.where(rate > 0, above, 1 - above)
    return np.where(np.abs(rate) < NEARLY, 0.5 + rate / 12, found)


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def whole_mean_of(rate: Floats, widths: Floats) -> Floats:
    """The same of numbers that are rounded down to whole ones: (1/(e^{−a} − 1) − w/(e^{−aw} − 1) +
    ½)/w, with a = k/w."""
    a = rate / widths
    found = 1 / np.expm1(-a) - widths / np.expm1(-a * widths)
    flat = (widths - 1) / 2 + a * (widths * widths - 1) / 12
    return np.asarray((np.where(np.abs(a) * widths < NEARLY, flat, found) + 0.5) / widths)


def positions(rate: Floats, shares: Floats) -> Floats:
    """The positions below which these shares lie."""
    k = np.maximum(np.abs(rate), NEARLY)
    upper = np.where(rate > 0, shares, 1 - shares)  # the density of −k is that of k, turned around
    with np.errstate(divide="ignore"):
        found = 1 + np.log(upper + (1 - upper) * np.exp(-k)) / k
    found = np.clip(np.where(rate > 0, found, 1 - found), 0.0, 1.0)
    return np.where(np.abs(rate) < NEARLY, shares, found)


# ---------------------------------------------------------------------- means from densities


def predicted_means(counts: Floats, places: NumberPlaces) -> Floats:
    """Mean positions, from densities that meet at the edges.

    The density at an edge is between those of the two bins, nearer to the narrower one's (in
    logarithms). A bin between two edges falls or rises as these say; the first and the last bin
    have one edge, and fall off so that it and the rows in the bin agree.
    """
    widths = places.widths
    density = np.maximum(counts, HALF_ROW) / widths
    size = len(density)
    if size < 2:
        return np.full(size, 0.5)
    nearer = widths[1:] / (widths[:-1] + widths[1:])
    edge = nearer * np.log(density[:-1]) + (1 - nearer) * np.log(density[1:])
    rate = np.empty(size)
    rate[1:-1] = np.clip(np.diff(edge), -STEEPEST, STEEPEST)
    rate[-1] = falling(math.exp(edge[-1]) / density[-1])
    rate[0] = -falling(math.exp(edge[0]) / density[0])
    return whole_mean_of(rate, widths) if places.whole else mean_of(rate)


def falling(ratio: float) -> float:
    """The rate of a density that begins at `ratio` times its mean: k/(e^k − 1) = ratio."""
    low, high = -STEEPEST, STEEPEST
    for _ in range(80):
        k = (low + high) / 2
        start = 1 - k / 2 if abs(k) < NEARLY else k / math.expm1(min(k, 700.0))
        low, high = (k, high) if start > ratio else (low, k)
    return (low + high) / 2


def read_bins(names: Sequence[str], attributes: Sequence[Attribute]) -> list[Attribute]:
    """Those of some columns whose numbers are known by their bins only.

    So are ranges whose ends stand for what is beyond.
    """
    found = [(a, places_of(a)) for a in attributes if a.name in names]
    return [a for a, places in found if places is not None and places.hides]
