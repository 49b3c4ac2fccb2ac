"""The counts of published tables: of some columns, and of two parts together, with their errors.

For parts with contrasts D_u and D_v of their classes u and v, and counts N_u and N_v,

  estimate of the rows in u and v = (m·mean(D_u·D_v) + N_u·N_v) / (m + 1)

is unbiased, whatever the table. A total of a query is Σ F[u,v]·count[u,v]; with contrasts that
are about normal, of covariances X = sampling + noise on either side, mean(Dᵀ·F·E) has the variance
(tr(F·Y·Fᵀ·X) + tr(F·Cᵀ·F·Cᵀ)) / t, where C are the covariances of the two parts
(docs/mathematics, section 35).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from voile.answering.table_query import TableCells, crossed, part_index
from voile.arrays import Floats, Ints

if TYPE_CHECKING:
    from voile.answering.axes import ClassAxis
    from voile.engines.rows import PublicDomain
    from voile.query.domain import DomainSums
    from voile.schema import Schema

# ----------------------------------------------------------------------
# what an answer from published tables is computed from


Counts = npt.NDArray[np.int64]
Set = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Tables:
    """Every d-way table of a schema, of all rows or of both sides of every half."""

    schema: Schema
    arity: int
    halves: int
    """0: there is one table of each set of columns, of all rows."""
    rows: int
    variance: float
    """Of the noise on every figure."""
    load: Callable[[Set], Counts]
    """(sides, cells) without halves, where the only side is all rows; else (halves, 2, cells)."""

    @property
    def sets(self) -> list[Set]:
        """The columns of each table."""
        return list(combinations(self.schema.names, self.arity))

    def shape(self, some: Set) -> tuple[int, ...]:
        """The sizes of some columns' domains."""
        return tuple(self.schema[name].size for name in some)

    @property
    def leaning(self) -> int:
        """By how many rows the first side of every half is larger."""
        return self.rows % 2

    @property
    def apart(self) -> int:
        """m: two different rows are on the same side with E[s·s'] = −1/m."""
        return self.rows - 1 + self.leaning

    @property
    def total_variance(self) -> float:
        """Of the noise on the count of a cell, from all halves together."""
        return self.variance if not self.halves else 2 * self.variance / self.halves

    def totals(self, some: Set) -> Floats:
        """The counts of all rows, made to sum to the number of rows, which is public."""
        found = self.load(some).astype(np.float64)
        found = found.sum(axis=1).mean(axis=0) if self.halves else found.reshape(-1)
        return np.asarray(found - (found.sum() - self.rows) / found.size)

    def contrasts(self, some: Set) -> Floats:
        """(halves, cells): one side less the other, made to sum to what is public."""
        found = self.load(some)
        apart = (found[:, 0] - found[:, 1]).astype(np.float64)
        return np.asarray(
            apart - (apart.sum(axis=1, keepdims=True) - self.leaning) / apart.shape[1]
        )


@dataclass(frozen=True, eq=False)
class ConjunctSource:
    """The tables of a release, and the engine that knows its domain."""

    engine: PublicDomain
    domain: DomainSums
    schema: Schema
    tables: Tables

    @property
    def rows(self) -> int:
        """Rows of the table that was published."""
        return self.tables.rows


# ----------------------------------------------------------------------
# the counts of some columns, cut into a query's classes, from all tables that have them
# A class of a column has the values that the query does not distinguish. Noise on the cells of one
# table is independent, except for the sum over all cells, which is known: on classes of g cells
# each, of m in all, it has the covariance s·(diag(g) − g·gᵀ/m). A table with more columns
# is summed over them, which makes s larger by the number of their cells, and leaves the rest as it
# is; so the best average of several tables weighs each by the inverse of that number.


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
    """Columns with the sizes of their domains."""
    return list(zip(some, tables.shape(some), strict=True))


def class_sizes(places: Sequence[int], axes: Sequence[ClassAxis]) -> Floats:
    """How many cells of the columns' domain each combination of classes has."""
    found = np.ones(1)
    for j in places:
        found = np.outer(found, np.bincount(axes[j].class_of, minlength=axes[j].classes)).ravel()
    return found


def noise(variance: float, cells: Floats) -> Spread:
    """The covariance of noise on classes of so many cells each, whose sum is known."""
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


# ----------------------------------------------------------------------
# the counts of two parts of a query together, from how they vary over halves, and their errors


MOST_PRODUCTS = 2**27
"""Multiplications for the smaller part of an error; where it takes more, it is bounded."""


@dataclass(frozen=True, eq=False)
class Variances:
    """(groups, terms, terms): covariances of the terms of a query, from each cause."""

    sampling: Floats
    """Rows fall into halves at random."""
    alike: Floats
    """More of that, for the two parts are of the same rows."""
    mixed: Floats
    """Noise of one part, and how the other falls into halves."""
    noise: Floats
    """Noise of both parts, and that of their counts."""

    @property
    def expected(self) -> Floats:
        """What ways to part a question are chosen and weighed by: of totals and noise alone.

        `alike` is from the products, as the estimate is; choosing by it would prefer the way whose
        estimate happens to be near that of independent parts: a bias.
        """
        return self.sampling + self.mixed + self.noise


@dataclass(frozen=True, eq=False)
class JointMargins:
    """Two parts that together have all columns of a query."""

    left: Margin
    right: Margin
    tables: Tables

    def counts(self, cells: TableCells) -> Floats:
        """The estimate for each combination of classes."""
        u, v, m = cells.along(self.left), cells.along(self.right), self.tables.apart
        both = self.left.totals[u] * self.right.totals[v]
        return (m * self.products[u, v] + both) / (m + 1)

    @cached_property
    def products(self) -> Floats:
        """mean(D_u·D_v), for all classes of the two parts."""
        left, right = self.left.contrasts, self.right.contrasts
        assert left is not None and right is not None  # noqa: S101  (there are halves)
        return np.asarray(left.T @ right / self.tables.halves)

    def variances(self, cells: TableCells) -> Variances:
        """The covariances of the terms' estimates, by cause."""
        forms, t = Forms(cells, self.left, self.right), self.tables.halves
        x, y = self.left, self.right
        sampled = forms.trace(x.sampling, y.sampling)
        noise = forms.trace(x.contrast_noise, y.contrast_noise)
        mixed = forms.trace(x.contrast_noise, y.sampling)
        mixed += forms.trace(x.sampling, y.contrast_noise)
        found = forms.turned(self.products)
        # Squares of estimates are too large by their variance; where it is not known, the bound.
        whole = sampled + mixed + noise
        alike = sampled if found is None else (t * found - whole) / (t + 1)
        rows = self.tables.rows
        linear = forms.lines(x.total_noise, y.totals / rows, left=True)
        linear += forms.lines(y.total_noise, x.totals / rows, left=False)
        return Variances(sampled / t, alike / t, mixed / t, noise / t + linear)


class Forms:
    """Bilinear forms of a query's terms, for each group and each two terms.

    F has an entry at (u, v) for each combination of classes that counts, and no other.
    """

    def __init__(self, cells: TableCells, left: Margin, right: Margin) -> None:
        self._cells, self._u, self._v = cells, cells.along(left), cells.along(right)
        self._by_left = part_index(cells, self._u, len(left.totals))
        self._by_right = part_index(cells, self._v, len(right.totals))

    def trace(self, x: Spread, y: Spread) -> Floats:
        """tr(F·Y·Gᵀ·X)"""
        payoffs, group, groups = self._cells.payoffs, self._cells.group, self._cells.groups
        cell = x.own[self._u] * y.own[self._v]
        rows = self._by_left.sums(payoffs * y.along[self._v])
        columns = self._by_right.sums(payoffs * x.along[self._u])
        ends = self._cells.summed(x.along[self._u] * y.along[self._v])
        found = crossed(payoffs, cell, group, groups)
        found -= y.rate * self._by_left.crossed(rows, x.own)
        found -= x.rate * self._by_right.crossed(columns, y.own)
        return found + x.rate * y.rate * ends[:, :, None] * ends[:, None, :]

    def lines(self, spread: Spread, other: Floats, *, left: bool) -> Floats:
        """The covariance of F·other, or of Fᵀ·other, where the noise of one part is `spread`."""
        by, at = (self._by_left, self._v) if left else (self._by_right, self._u)
        sums = by.sums(self._cells.payoffs * other[at])
        along = by.grouped(sums * spread.along[by.place])
        return by.crossed(sums, spread.own) - spread.rate * along[:, :, None] * along[:, None, :]

    def turned(self, covariance: Floats) -> Floats | None:
        """tr(F·Cᵀ·G·Cᵀ), or None where that is too much."""
        cells = self._cells
        order = np.argsort(cells.group, kind="stable")
        starts = np.searchsorted(cells.group[order], np.arange(cells.groups + 1))
        found = np.zeros((cells.groups, len(cells.payoffs), len(cells.payoffs)))
        work = 0
        for group in range(cells.groups):
            mine = order[starts[group] : starts[group + 1]]
            lines, u = np.unique(self._u[mine], return_inverse=True)
            columns, v = np.unique(self._v[mine], return_inverse=True)
            work += len(cells.payoffs) * len(lines) ** 2 * len(columns)
            if work > MOST_PRODUCTS:
                return None
            part = covariance[np.ix_(lines, columns)]
            products = []
            for payoff in cells.payoffs[:, mine]:
                form = np.zeros((len(lines), len(columns)))
                form[u, v] = payoff
                products.append(form @ part.T)
            found[group] = [[(a * b.T).sum() for b in products] for a in products]
        return found


@dataclass(frozen=True, eq=False)
class Average:
    """Several joints without a table in common, weighed by their errors."""

    joints: tuple[JointMargins, ...]
    weights: Floats
    """(joints, groups)"""
    parts: tuple[Variances, ...]

    def variance(self, slope: Floats) -> Floats:
        """Of Σ slope·term of each group, or more: how rows fall may move all joints alike."""
        alike, alone = np.zeros(len(slope)), np.zeros(len(slope))
        for weight, part in zip(self.weights, self.parts, strict=True):
            chance = np.maximum(formed(part.sampling, slope), 0.0)
            alike += weight * np.sqrt(chance + np.clip(formed(part.alike, slope), 0.0, chance))
            rest = formed(part.mixed + part.noise, slope)
            alone += weight**2 * np.maximum(rest, 0.0)
        return np.asarray(alike**2 + alone)

    def estimates(self, cells: TableCells) -> Floats:
        """The totals, (groups, terms)."""
        found = [joint.counts(cells) for joint in self.joints]
        weighed = sum(w[cells.group] * one for w, one in zip(self.weights, found, strict=True))
        return cells.summed(np.asarray(weighed))


def formed(covariance: Floats, slope: Floats) -> Floats:
    """slopeᵀ · covariance · slope, for each group."""
    return np.asarray(np.einsum("gi,gij,gj->g", slope, covariance, slope))


def averaged(joints: Sequence[JointMargins], cells: TableCells) -> Average:
    """Weighed by the inverse of the variance of the first term that is expected."""
    parts = tuple(joint.variances(cells) for joint in joints)
    firsts = np.stack([np.maximum(part.expected[:, 0, 0], 0.0) for part in parts])
    inverse = np.where(firsts > 0, 1 / np.where(firsts > 0, firsts, 1.0), 0.0)
    inverse = np.where(inverse.sum(axis=0) > 0, inverse, 1.0)
    return Average(tuple(joints), inverse / inverse.sum(axis=0), parts)
