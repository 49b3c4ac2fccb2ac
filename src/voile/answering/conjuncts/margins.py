"""The counts of some columns, cut into a query's classes, from all tables that have them.

A column has a class for each way in which the query can tell its values apart. Noise on the cells
of one table is independent, but for the sum over all cells, which is known: on classes of g cells
each, of m in all, it has the covariance s·(diag(g) − g·gᵀ/m). A table with more columns
is summed over them, which makes s larger by the number of their cells, and leaves the rest as it
is; so the best average of several tables weighs each by the inverse of that number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from voile.answering.axes import ClassAxis
from voile.answering.conjuncts.source import Set, Tables
from voile.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Spread:
    """A covariance of classes: diag(own) − rate·along·alongᵀ."""

    own: Floats
    rate: float
    along: Floats


@dataclass(frozen=True, eq=False)
class Margin:
    """Counts of all classes of some of the query's columns."""

    places: tuple[int, ...]
    """Which of the query's axes."""
    shape: tuple[int, ...]
    totals: Floats
    """(classes,)"""
    contrasts: Floats | None
    """(halves, classes): one side of every half less the other."""
    total_noise: Spread
    contrast_noise: Spread
    sampling: Spread
    """Of the contrasts, over how rows fall into halves."""
    sources: tuple[Set, ...]


def margin_of(places: Sequence[int], axes: Sequence[ClassAxis], tables: Tables) -> Margin:
    """The best average of all tables that have these columns."""
    if not places:
        return everyone(tables)
    names = {axes[j].attribute for j in places}
    sources = tuple(some for some in tables.sets if names <= set(some))
    weights = np.array([1 / prod(n for name, n in sized(s, tables) if name not in names)
                        for s in sources])  # fmt: skip
    shares = weights / weights.sum()
    totals = sum(w * folded(tables.totals(s), s, places, axes, tables)
                 for w, s in zip(shares, sources, strict=True))  # fmt: skip
    contrasts = None
    if tables.halves:
        contrasts = sum(w * folded(tables.contrasts(s), s, places, axes, tables)
                        for w, s in zip(shares, sources, strict=True))  # fmt: skip
    cells = class_sizes(places, axes)
    return Margin(
        places=tuple(places),
        shape=tuple(axes[j].classes for j in places),
        totals=np.asarray(totals),
        contrasts=contrasts,
        total_noise=noise(tables.total_variance / weights.sum(), cells),
        contrast_noise=noise(2 * tables.variance / weights.sum(), cells),
        sampling=sampling(np.asarray(totals), tables.rows),
        sources=sources,
    )


def everyone(tables: Tables) -> Margin:
    """All rows, whose number is public."""
    known = Spread(np.zeros(1), 0.0, np.zeros(1))
    return Margin((), (), np.full(1, float(tables.rows)), None, known, known, known, ())


def sized(some: Set, tables: Tables) -> list[tuple[str, int]]:
    return list(zip(some, tables.shape(some), strict=True))


def class_sizes(places: Sequence[int], axes: Sequence[ClassAxis]) -> Floats:
    """How many cells of the columns' domain each combination of classes has."""
    found = np.ones(1)
    for j in places:
        found = np.outer(found, np.bincount(axes[j].class_of, minlength=axes[j].classes)).ravel()
    return found


def noise(variance: float, cells: Floats) -> Spread:
    return Spread(variance * cells, variance / float(cells.sum()), cells)


def sampling(totals: Floats, rows: int) -> Spread:
    """n·(diag(p) − p·pᵀ), with shares that are shares."""
    shares = np.clip(totals, 0.0, None)
    shares = shares / max(float(shares.sum()), 1.0)
    return Spread(rows * shares, float(rows), shares)


def folded(
    cells: Floats, some: Set, places: Sequence[int], axes: Sequence[ClassAxis], tables: Tables
) -> Floats:
    """The last axis of an array of cells, summed into classes of some of its columns."""
    place = {axes[j].attribute: j for j in places}
    number: Ints = np.zeros((1,) * len(some), np.int64)
    for i, (name, size) in enumerate(sized(some, tables)):
        if name not in place:
            continue
        line = [1] * len(some)
        line[i] = size
        axis = axes[place[name]]
        number = number * axis.classes + axis.class_of.reshape(line)
    flat = np.broadcast_to(number, tables.shape(some)).ravel()
    classes = prod(axes[j].classes for j in places)
    order = np.argsort(flat, kind="stable")
    starts = np.searchsorted(flat[order], np.arange(classes))
    return np.asarray(np.add.reduceat(cells[..., order], starts, axis=-1))
