"""Sums over rows of buckets, in which it is unknown whose each sensitive record is.

In a bucket of n rows, n_x of them with shown cell x and m_s of its records with open cell s, all
n! ways to hand out the records are alike. So f_xs = n_x·m_s/n rows are expected to have both, and
(Hoeffding's combinatorial variance) two sums of payoffs v and w have the covariance

  n/(n−1) · [Σ f·v·w − Σ_x V_x·W_x/n_x − Σ_s V_s·W_s/m_s + V·W/n]

with V_x, V_s, V the sums of f·v over a line, a column and the whole bucket. Buckets are
independent. Under a fitted model (`fitted_buckets` in answering.py) f is another table with the
same margins, of which the means alone are used.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from voile.arrays import Floats
from voile.errors import QueryError
from voile.kinds.classes.cells import (
    CellQuery,
    ClassFigures,
    Covariances,
    Extremes,
    Moments,
    OpenSums,
    Pairs,
    ratio_ends,
)
from voile.kinds.classes.pairing import (
    Chunk,
    FittedPairs,
    Owners,
    Pairing,
    owners,
    pairs_of,
    units_of,
)

CHUNK = 2**22
"""Pairs of shown and open cells at a time."""
MOST_PAIRS = 2**30
ROUNDING = 1e-12


class Buckets(OpenSums):
    """Totals of rows whose sensitive records are known by bucket only."""

    def __init__(
        self, query: CellQuery, source: ClassFigures, fitted: FittedPairs | None = None
    ) -> None:
        assert source.hidden is not None  # noqa: S101  (a bucketized release has them)
        self.query, self.fitted, self.hidden = query, fitted, source.hidden
        self.classes = source.classes
        number = query.number.shape
        self.sizes = np.bincount(source.of_row, source.weights, source.classes).astype(np.float64)
        rows = np.ones(source.rows) if source.weights is None else source.weights
        self.weights = source.weights
        self.lines = units_of(source.of_row, query.shown, rows, number[0], source.classes)
        self.columns = units_of(source.hidden.of_class, query.records, source.hidden.rows,
                                number[1], source.classes)  # fmt: skip
        self._pairing: Pairing | None = None
        wide = np.diff(self.lines.starts) * np.diff(self.columns.starts)
        if wide.sum() > MOST_PAIRS:
            raise QueryError(
                f"{wide.sum():,} combinations of rows and records of a bucket are too much",
                hint="read fewer columns at once, or group by coarser ones, as in floor(age / 10)",
            )
        self.per_bucket = wide

    # ------------------------------------------------------------------ mean and variance

    def moments(self, pairs: Pairs) -> Moments:
        """Means and covariances, with records handed out at random or by the fitted model."""
        query = self.query
        count = len(query.groups)
        means = np.zeros((count, len(query.payoffs)))
        counted = np.zeros(means.shape)
        zero: list[Covariances] = [{pair: np.zeros(count) for pair in pairs} for _ in range(3)]
        covariances, squares, sizes = zero
        for chunk in self.chunks():
            group = query.number[chunk.shown, chunk.open]
            some = group >= 0
            group = group[some]
            expected = chunk.expected[some]
            payoffs = [w[chunk.shown[some], chunk.open[some]] for w in query.payoffs]
            for t, payoff in enumerate(payoffs):
                means[:, t] += np.bincount(group, expected * payoff, count)
                counted[:, t] += np.bincount(group, expected * (payoff != 0), count)
            if not pairs:
                continue
            scale = self._scale(chunk.buckets.rows)
            lines, columns, buckets = (
                owners.products(scale, owner[some], group, count)
                for owners, owner in (
                    (chunk.lines, chunk.unit),
                    (chunk.columns, chunk.record),
                    (chunk.buckets, chunk.bucket),
                )
            )
            scaled = scale[chunk.bucket[some]] * expected
            for t, u in pairs:
                v, w = expected * payoffs[t], expected * payoffs[u]
                whole = np.bincount(group, scaled * payoffs[t] * payoffs[u], count)
                sizes[t, u] += np.abs(whole)
                squares[t, u] += np.bincount(group, v * payoffs[u], count)
                covariances[t, u] += whole - lines.of(v, w) - columns.of(v, w) + buckets.of(v, w)
        for pair, values in covariances.items():
            values[np.abs(values) <= ROUNDING * sizes[pair]] = 0.0
        return Moments(means, covariances, squares, counted)

    @staticmethod
    def _scale(sizes: Floats) -> Floats:
        """n/(n−1) of every bucket; a bucket of one row is known."""
        return np.where(sizes > 1, sizes / np.maximum(sizes - 1, 1.0), 0.0)

    # ------------------------------------------------------------------ pairs

    def chunks(self) -> Iterator[Chunk]:
        """All pairs of units and records of a bucket, some buckets at a time."""
        if self.fitted is not None:
            yield self._fitted_chunk(self.fitted)
            return
        ends = np.cumsum(self.per_bucket)
        first = 0
        while first < self.classes:
            before = ends[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
            yield self._chunk(first, last)
            first = last

    def _chunk(self, first: int, last: int) -> Chunk:
        lines, columns = self.lines, self.columns
        bucket, unit, record = pairs_of(lines.starts, columns.starts, first, last)
        return Chunk(
            bucket=bucket - first,
            unit=unit - lines.starts[first],
            record=record - columns.starts[first],
            shown=lines.cell[unit],
            open=columns.cell[record],
            expected=lines.rows[unit] * columns.rows[record] / self.sizes[bucket],
            lines=owners(lines, first, last),
            columns=owners(columns, first, last),
            buckets=Owners(self.sizes[first:last], np.arange(last - first)),
        )

    def _fitted_chunk(self, fitted: FittedPairs) -> Chunk:
        units, buckets = len(fitted.unit_bucket), self.hidden.of_class.astype(np.int64)
        shown = np.zeros(units, np.int64)
        shown[fitted.row_unit] = self.query.shown
        rows = np.bincount(fitted.row_unit, self.weights, units).astype(np.float64)
        return Chunk(
            bucket=buckets[fitted.record],
            unit=fitted.unit,
            record=fitted.record,
            shown=shown[fitted.unit],
            open=self.query.records[fitted.record],
            expected=fitted.rows,
            lines=Owners(rows, fitted.unit_bucket),
            columns=Owners(self.hidden.rows.astype(np.float64), buckets),
            buckets=Owners(self.sizes, np.arange(self.classes)),
        )

    # ------------------------------------------------------------------ certain bounds

    @property
    def pairing(self) -> Pairing:
        """What pairs of rows and records can add up to."""
        if self._pairing is None:
            totals = len(self.query.groups) * len(self.query.payoffs)
            self._pairing = Pairing(self.lines, self.columns, self.sizes, totals)
        return self._pairing

    def extremes(self, slope: Floats, *, terms: bool = False) -> Extremes:
        """The least and the most over all ways to hand out the records."""
        query = self.query
        ends, totals = np.zeros((2, len(slope))), np.zeros((2, *slope.shape))
        tight = True
        for group, factors in enumerate(slope):
            inside = query.number == group
            used = np.arange(len(factors)) if terms else np.flatnonzero(factors)
            if not len(used) or not inside.any():
                continue
            payoffs = [np.where(inside, query.payoffs[t], 0.0) for t in used]
            weight = np.sum([factors[t] * w for t, w in zip(used, payoffs, strict=True)], axis=0)
            found = self.pairing.extremes(weight, payoffs)
            ends[:, group] = found.ends
            totals[:, group, used] = found.terms
            tight &= found.tight
        return Extremes(ends[0], ends[1], totals[0], totals[1], tight)

    def row_ratios(self, top: Floats, bottom: Floats) -> tuple[Floats, Floats]:
        """The lowest and highest ratio over all pairs of a row and a record of its bucket."""
        query, count = self.query, len(self.query.groups)
        low, high = np.full(count, np.inf), np.full(count, -np.inf)
        for chunk in self.chunks():
            group = query.number[chunk.shown, chunk.open]
            some = group >= 0
            group = group[some]
            at = chunk.shown[some], chunk.open[some]
            payoffs = np.stack([w[at] for w in query.payoffs], axis=1)
            above, below = ((slope[group] * payoffs).sum(axis=1) for slope in (top, bottom))
            least, most = ratio_ends(above, below, group, count)
            low, high = np.minimum(low, least), np.maximum(high, most)
        return low, high
