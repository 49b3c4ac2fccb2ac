"""Whether a view's rows can have come from its mechanism: see voile.kinds.plausibility.

Whatever the table was, every tuple of the domain has noise of its own. In the multiset form it is
shown j times or more with probability q^j at least, in the set form with probability β at least;
records only add to that. So in any part of the domain with N tuples, at least Binomial(N, q)
different tuples are shown. q is the least that a tuple has, where noise differs over time.

Shaped noise has a mean μ(t) of its own for each tuple, and q(t) = μ/(1 + μ). The number of
different tuples is then a sum of independent coins, whose lower tail is bounded as that of a
binomial law with the same mean (Hoeffding, 1956). The mean of a cell needs no list of its tuples:
Σ q ≥ (Σ μ)² / Σ μ(1 + μ) by Cauchy and Schwarz, and both sums are sums over products, less what
the few tuples above the cap have too much. It is exact where noise is even within a cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from voile.arrays import Floats
from voile.errors import ReleaseError
from voile.kinds.looks import REPEATED, TupleCounts
from voile.kinds.plausibility import (
    ColumnParts,
    DomainCells,
    Surprise,
    cells_for,
    judge,
    lower_tail,
)
from voile.kinds.views.deviation import geometric_scale
from voile.kinds.views.series import Series
from voile.kinds.views.shaped import Shaped
from voile.schema.index import Codes

if TYPE_CHECKING:
    from voile.kinds.views.release import ViewRelease

ROUNDED = 1e-9
"""By which sums of floats may be off, at most."""


def check_view(release: ViewRelease, count: Callable[[TupleCounts], None]) -> None:
    """Refuse rows in another order than the domain's, or that the noise cannot have made.

    `count` counts the different tuples that are shown, wherever the rows lie.
    """
    least, most = noise_between(release)
    names, sizes = release.schema.names, release.schema.sizes
    shape = release.mechanism if isinstance(release.mechanism, Shaped) else None
    whole = [DomainCells((), (), (), np.ones(1))]
    (expected,) = expected_tuples(whole, sizes, least, shape)
    cells = cells_for(names, list(sizes), float(expected[0]), release.manifest.rows)
    means = expected_tuples(cells, sizes, least, shape)
    counted = TupleCounts(cells)
    count(counted)
    multiset = release.mechanism.form == "multiset"
    if not multiset and counted.repeated[1]:
        raise ReleaseError(
            f"data/ shows {counted.repeated[1]:,} tuples twice, and the release is of a set"
        )
    judge([
        *rows_surprise(release, most),
        *repetitions(counted, expected_repeated(cells, means, float(release.schema.size), least),
                     float(release.schema.size), multiset=multiset),
        *spread(cells, means, float(release.schema.size)),
    ])  # fmt: skip


def noise_between(release: ViewRelease) -> tuple[float, float]:
    """The least and the largest q, or β, that a tuple has."""
    mechanism = release.mechanism
    if isinstance(mechanism, Series):
        both = (mechanism.on_unseen.noise, mechanism.on_seen.noise)
        return min(both), max(both)
    if isinstance(mechanism, Shaped):
        most = mechanism.floor + mechanism.cap
        return mechanism.floor / (1 + mechanism.floor), most / (1 + most)
    return mechanism.noise, mechanism.noise


# ----------------------------------------------------------------------
# what is compared with it


def rows_surprise(release: ViewRelease, most: float) -> list[Surprise]:
    """The number of rows: at least the noise; with the table's where that is public."""
    mechanism, size = release.mechanism, release.schema.size
    noise, shown = mechanism.expected_noise(size), release.manifest.rows
    records = release.manifest.public_rows
    multiset = mechanism.form == "multiset"
    kept = mechanism.retention * (records or 0)
    # In the set form a record takes the place of a noise row.
    low = noise + kept - (0.0 if multiset else most * (records or 0))
    high = math.inf if records is None else noise + kept
    off = max(low - shown, shown - high, 0.0)
    variance = mechanism.noise_deviation(size) ** 2 + (records or 0) / 4
    scale = geometric_scale(most) if multiset else 1 / 3
    wanted = "so many rows" if shown > high else "so few rows"
    return [Surprise(f"{shown:,} are {wanted}", tail_of(off, variance, scale))]


def tail_of(off: float, variance: float, scale: float) -> float:
    """ln P(|T − E T| ≥ off) at most, by Bernstein's inequality turned round."""
    # off = √(2·L·V) + c·L, solved for √L.
    root = (math.sqrt(2 * variance + 4 * scale * off) - math.sqrt(2 * variance)) / (2 * scale)
    return min(0.0, math.log(2) - root**2)


def repetitions(
    counted: TupleCounts, expected: Floats, size: float, *, multiset: bool
) -> list[Surprise]:
    """Different tuples, and those that are shown twice, three times …"""
    times = np.arange(1, REPEATED + 1 if multiset else 2)
    seen, wanted = counted.repeated[: len(times)], expected[: len(times)]
    tails = lower_tail(seen.astype(float), np.full(len(times), size), wanted / size)
    often = ["different tuples", *(f"tuples that are shown {j} times or more" for j in times[1:])]
    return [
        Surprise(f"it shows only {n:,} {what}, and about {most:,.0f} are expected", tail)
        for n, what, most, tail in zip(
            seen.tolist(), often, wanted.tolist(), tails.tolist(), strict=True
        )
    ]


def spread(cells: Sequence[DomainCells], means: Sequence[Floats], size: float) -> list[Surprise]:
    """Noise reaches every part of the domain."""
    found = []
    for some, mean in zip(cells, means, strict=True):
        trials = some.shares * size
        tails = lower_tail(some.seen.astype(float), trials, mean / trials)
        what = f"the values of {' × '.join(some.names)} are not spread over the domain as noise is"
        found.append(Surprise(what, some.least_chance(tails)))
    return found


# ----------------------------------------------------------------------
# how many tuples noise alone shows, at least


def expected_repeated(
    cells: Sequence[DomainCells], means: Sequence[Floats], size: float, least: float
) -> Floats:
    """At place j, how many tuples noise shows more than j times, at least.

    Σ q^j is at least what it would be with even noise within cells, for powers are convex.
    """
    times = range(1, REPEATED + 1)
    found: Floats = np.array([size * least**j for j in times])
    for some, mean in zip(cells, means, strict=True):
        trials = some.shares * size
        even = [float((trials * (mean / trials) ** j).sum()) for j in times]
        found = np.maximum(found, np.array(even))
    return found


def expected_tuples(
    cells: Sequence[DomainCells], sizes: Sequence[int], least: float, shape: Shaped | None
) -> list[Floats]:
    """For each cell, how many different tuples noise shows, at least: Σ q."""
    size = float(math.prod(sizes))
    if shape is None:
        return [some.shares * (size * least) for some in cells]
    above, excess = shape.above_cap, shape.scores_above()
    return [
        np.maximum(some.shares * (size * least), shaped_tuples(some, shape, above, excess))
        for some in cells
    ]


def shaped_tuples(
    cells: DomainCells,
    shape: Shaped,
    above: Sequence[Codes],
    excess: tuple[Floats, Floats],
) -> Floats:
    """(Σ μ)² / Σ μ(1 + μ) of every cell, both rounded to the safe side."""
    tuples, first, second = cell_sums(cells, shape)
    floor, strength = shape.floor, shape.strength
    drawn = floor * tuples + strength * first
    spread = drawn + floor**2 * tuples + 2 * floor * strength * first + strength**2 * second
    place = cells.places(above)
    less, less_spread = (np.bincount(place, x, len(tuples)) for x in excess)
    mean = drawn * (1 - ROUNDED) - less
    # Whatever was lost to rounding, no tuple has more noise than the cap lets it.
    most = mean * (1 + floor + shape.cap)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = mean**2 / np.minimum(spread * (1 + ROUNDED) + less_spread, most)
    return np.where(mean > 0, np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0), 0.0)


def cell_sums(cells: DomainCells, shape: Shaped) -> tuple[Floats, Floats, Floats]:
    """For each cell: its tuples, and Σ s and Σ s² over them."""
    found = [np.ones(1), np.ones(1), np.ones(1)]
    widths = dict(zip(cells.columns, cells.parts, strict=True))
    for i, (size, p) in enumerate(zip(shape.sizes, shape.prior.chances(shape.sizes), strict=True)):
        if i in widths:
            sums = part_sums(widths[i], size, p)
        elif len(p) == 1:
            sums = np.array([[size], [1.0], [1 / size]])
        else:
            sums = np.array([[size], [p.sum()], [(p**2).sum()]])
        found = [np.multiply.outer(a, b).ravel() for a, b in zip(found, sums, strict=True)]
    return found[0], found[1], found[2]


def part_sums(parts: ColumnParts, size: int, chances: Floats) -> Floats:
    """For each part of a column: its values, and Σ p and Σ p² over them."""
    if len(chances) == 1:  # all alike
        values = parts.shares * size
        return np.stack([values, parts.shares, parts.shares / size])
    starts = np.arange(0, size, parts.width)
    return np.stack([np.add.reduceat(x, starts) for x in (np.ones(size), chances, chances**2)])
