"""How far a model is from the table, learnt from the noisy marginals alone.

Gaussian thinning: with z of the noise's own law, y + a·z and y − z/a are independent, and both are
unbiased. The model is fitted to the first; the second examines it. With m the model's answer to a
question, y₂ that of the second half and v₂ its variance,
  e = E (y₂ − m)² − v₂                  the mean square error of the model
  c = E (m − y₂)(y − y₂) − v/a²         the covariance of its error with that of the whole y
without bias. Both are smoothed over questions of like size. The best answer is y·w + m·(1 − w),
w = (e − c)/(e + v − 2c); its mean square error is (e·v − c²)/(e + v − 2c).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import nnls

from voile.arrays import Floats
from voile.kinds.marginals.mixture import Mixture
from voile.kinds.marginals.residuals import Columns, NoisyMarginals, ResidualPlan, centred

TURNS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
"""Where the law of the error bends, in standard deviations of the unbiased estimate."""
FAR = 4.0
"""A model that is so many standard deviations from the unbiased estimate is wrong there."""
LEAST = 1e-9


@dataclass(frozen=True)
class Halves:
    """Two independent, unbiased versions of the same measurements."""

    first: NoisyMarginals
    second: NoisyMarginals
    tilt: float
    """a."""


def thinned(noisy: NoisyMarginals, tilt: float, rng: np.random.Generator) -> Halves:
    """y + a·z and y − z/a."""
    variances = noisy.plan.variances
    drawn = {
        c: centred(math.sqrt(variances.get(c, 0.0)) * rng.standard_normal(r.shape))
        for c, r in noisy.residuals.items()
    }

    def half(share: float) -> NoisyMarginals:
        plan = ResidualPlan(noisy.plan.sizes, {c: v * (1 + share**2) for c, v in variances.items()})
        return NoisyMarginals(plan, {c: r + share * drawn[c] for c, r in noisy.residuals.items()})

    return Halves(half(tilt), half(-1 / tilt), tilt)


# ----------------------------------------------------------------------
# questions on which a law is learnt


@dataclass(frozen=True, eq=False)
class Selections:
    """Questions on one table: for each column, (questions, values) of what is selected."""

    columns: Columns
    chosen: tuple[Floats, ...]

    def of(self, table: Floats) -> Floats:
        """The sum over each selection."""
        number = len(self.chosen[0])
        found = self.chosen[0] @ table.reshape(table.shape[0], -1)
        for axis in range(1, table.ndim):
            found = found.reshape(number, table.shape[axis], -1)
            found = (self.chosen[axis][:, None, :] @ found)[:, 0, :]
        return np.asarray(found.reshape(number))

    def variances(self, plan: ResidualPlan) -> Floats:
        """Of the unbiased estimates."""
        sums = [chosen.sum(axis=1) for chosen in self.chosen]
        sizes = [plan.sizes[i] for i in self.columns]
        within = [k * (1 - k / n) for k, n in zip(sums, sizes, strict=True)]
        spread = [(k / n) ** 2 for k, n in zip(sums, sizes, strict=True)]
        total = np.zeros(len(sums[0]))
        for number in range(len(self.columns) + 1):
            for places in combinations(range(len(self.columns)), number):
                variance = plan.variances.get(tuple(self.columns[j] for j in places), 0.0)
                parts = [within[j] if j in places else spread[j] for j in range(len(sums))]
                total += variance * np.prod(parts, axis=0)
        return total


def drawn_selections(
    sizes: Sequence[int], columns: Columns, number: int, rng: np.random.Generator
) -> Selections:
    """Single values, ranges and sets of values, at random."""
    chosen = []
    for i in columns:
        n = sizes[i]
        kind = rng.integers(3, size=number)[:, None]
        ends = np.sort(rng.integers(0, n, (number, 2)), axis=1)
        place = np.arange(n)[None, :]
        single = place == ends[:, :1]
        between = (place >= ends[:, :1]) & (place <= ends[:, 1:])
        some = (rng.random((number, n)) < rng.random((number, 1))) | single
        chosen.append(np.where(kind == 0, single, np.where(kind == 1, between, some)) * 1.0)
    return Selections(columns, tuple(chosen))


# ----------------------------------------------------------------------
# the law


def rising(counts: Floats, deviations: Floats) -> Floats:
    """What a mean square error is made of: linear in small counts, bending at turns; squares."""
    x, s = np.maximum(counts, 0)[..., None], deviations[..., None]
    bends = s * x / (1 + x / (np.array(TURNS) * s))
    return np.concatenate([bends, s * x, x * x], axis=-1)


def saturating(counts: Floats, deviations: Floats) -> Floats:
    """What a covariance is made of, as a share of the variance."""
    x = (np.maximum(counts, 0) / deviations)[..., None]
    return np.asarray(x / (np.array(TURNS) + x))


@dataclass(frozen=True)
class ErrorLaw:
    """The mean square error of a model's answers, by their size."""

    rows: float
    scale: float
    """A usual standard deviation of an unbiased cell, for questions that have no such estimate."""
    error: tuple[float, ...]
    shared: tuple[float, ...]
    unmeasured: tuple[float, ...]
    """The same as `error`, for tables that were not measured."""

    def model(self, counts: Floats, variances: Floats) -> tuple[Floats, Floats]:
        """(e, c) of questions within measured tables; `variances` are the unbiased estimates'."""
        deviations = np.sqrt(np.maximum(variances, LEAST))
        x = self._sided(counts)
        e = np.maximum(rising(x, deviations) @ np.array(self.error), LEAST)
        c = variances * np.minimum(saturating(x, deviations) @ np.array(self.shared), 1.0)
        return e, np.minimum(c, np.minimum(e, variances))

    def beyond(self, counts: Floats, columns: int) -> Floats:
        """The mean square error of the model where this many columns were not measured together."""
        x = self._sided(counts)
        scale = np.full(x.shape, self.scale)
        return np.maximum(rising(x, scale) @ np.array(self.unmeasured), LEAST)

    def weighed(self, unbiased: Floats, counts: Floats, variances: Floats) -> tuple[Floats, Floats]:
        """The best answer and its mean square error, from the tables' answer and the model's."""
        e, c = self.model(counts, variances)
        apart = e + variances - 2 * c
        e = e + np.maximum((unbiased - counts) ** 2 - FAR**2 * apart, 0)
        apart = np.maximum(e + variances - 2 * c, LEAST)
        w = (e - c) / apart
        error = np.maximum(e * variances - c * c, 0) / apart
        return counts + w * (unbiased - counts), error

    def _sided(self, counts: Floats) -> Floats:
        """Few rows outside a selection are as easy as few rows inside."""
        x = np.clip(counts, 0, max(self.rows, 0))
        return np.asarray(x * (1 - x / max(self.rows, 1.0)))


@dataclass(frozen=True, eq=False)
class Examined:
    """What the second half says of a model, question by question."""

    counts: Floats
    variances: Floats
    second: Floats
    """The variance of what examines."""
    error: Floats
    shared: Floats


def examined(
    noisy: NoisyMarginals,
    halves: Halves,
    mixture: Mixture,
    tables: Iterable[Columns],
    number: int,
    rng: np.random.Generator,
) -> Examined:
    """Every cell of these tables, and so many selections of each."""
    found: list[Floats] = []
    for columns in tables:
        whole, other, model = (t.table(columns) for t in (noisy, halves.second, mixture))
        variance = np.full(whole.size, noisy.cell_variance(columns))
        found.append(np.stack([whole.ravel(), other.ravel(), model.ravel(), variance]))
        some = drawn_selections(noisy.plan.sizes, columns, number, rng)
        sums = [some.of(t) for t in (whole, other, model)]
        found.append(np.stack([*sums, some.variances(noisy.plan)]))
    y, other, m, v = np.concatenate(found, axis=1)
    share = 1 / halves.tilt**2
    return Examined(
        m, v, v * (1 + share), (other - m) ** 2 - v * (1 + share),
        (m - other) * (y - other) - v * share,
    )  # fmt: skip


def learnt(seen: Examined, rows: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The coefficients of e and c."""
    x = np.clip(seen.counts, 0, max(rows, 0))
    x = x * (1 - x / max(rows, 1.0))
    deviations = np.sqrt(np.maximum(seen.variances, LEAST))
    size = np.floor(3 * np.log2(np.maximum(x, 1e-3)))
    spread = np.floor(2 * np.log2(deviations))
    _, key = np.unique(np.stack([size, spread]), axis=1, return_inverse=True)
    count = np.bincount(key)

    def mean(values: Floats) -> Floats:
        return np.asarray(np.bincount(key, values) / count)

    bends = np.stack([mean(b) for b in rising(x, deviations).T], axis=1)
    shares = np.stack(
        [mean(b) for b in (saturating(x, deviations) * seen.variances[:, None]).T], axis=1
    )
    e, c, second = mean(seen.error), mean(seen.shared), mean(seen.second)
    error = np.zeros(bends.shape[1])
    for _ in range(4):
        weight = np.sqrt(count) / (second + 2 * (bends @ error))
        error = nnls(bends * weight[:, None], e * weight)[0]
    weight = np.sqrt(count) / (second + bends @ error)
    shared = nnls(shares * weight[:, None], c * weight)[0]
    return tuple(map(float, error)), tuple(map(float, shared))
