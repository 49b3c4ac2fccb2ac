"""How far a model is from the table, learnt from the noisy marginals alone.

Let y be the unbiased answer to a question, v its variance, m the model's answer, and x the truth.
  e = E (m − x)²                 the mean square error of the model
  c = E (m − x)(y − x)           what its error shares with the noise that it was fitted to
The best answer is m + w·(y − m), w = (e − c)/(e + v − 2c); its mean square error is
(e·v − c²)/(e + v − 2c). Both are learnt by Stein's identity: with z of the noise's own law and m′
the model that is fitted to y + a·z,
  c = E z·(m′ − m)/a,   e = E (y − m)² − v + 2c.
Both are smoothed over questions of like size.

Gaussian thinning chooses between models: y + a·z and y − z/a are independent and unbiased, so
that the second examines what was fitted to the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from voile.arrays import Floats
from voile.kinds.marginals.mixture import ProductMixture, quietly
from voile.kinds.marginals.residuals import Columns, NoisyMarginals, ResidualPlan, centred

TURNS = (0.1, 0.5, 2.0, 10.0, 50.0, 500.0)
"""Where the law of the error bends, in standard deviations of the unbiased estimate."""
FAR, FAR_GEOMETRIC = 4.0, 8.0
"""A model that is so many standard deviations from the unbiased estimate is wrong there.

Noise alone is so far once in ten thousand times; for the longer tails of geometric noise, too."""
LEAST = 1e-9
CAUTION, FEW = 1.15, 30.0
"""A learnt mean square error is raised by this, and by more where it was learnt from few cells."""


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
class ValueSelections:
    """Questions on one table: for each column, (questions, values) of what is selected."""

    columns: Columns
    chosen: tuple[Floats, ...]

    @quietly
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
) -> ValueSelections:
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
    return ValueSelections(columns, tuple(chosen))


# ----------------------------------------------------------------------
# the law


def rising(counts: Floats, variances: Floats, unit: float) -> Floats:
    """What a mean square error is made of: linear in small counts, bending at turns; squares.

    Once for its own sake, and once in proportion to the variance of the unbiased answer.
    """
    x = np.maximum(counts, 0)[..., None] / unit
    bends = x / (1 + x / np.array((*TURNS, np.inf)))
    share = variances[..., None] / unit**2
    return np.concatenate([bends, bends * share, x * x], axis=-1) * unit**2


NUMBER = 2 * (len(TURNS) + 1) + 1
"""Of the coefficients of a mean square error."""


def whole(counts: Floats) -> Floats:
    """The least mean square error that a whole number has from an unbiased guess."""
    x = np.minimum(counts, 0.5)
    return np.asarray(np.maximum(x * (1 - x), LEAST))


def saturating(counts: Floats, variances: Floats, unit: float) -> Floats:
    """What a covariance is made of: likewise."""
    x = np.maximum(counts, 0)[..., None] / unit
    bends = x / (np.array(TURNS) + x)
    share = variances[..., None] / unit**2
    return np.concatenate([bends, bends * share], axis=-1) * unit**2


@dataclass(frozen=True)
class ErrorLaw:
    """The mean square error of a model's answers, by their size."""

    rows: float
    rows_variance: float
    """Of the number of rows, which the model shares with the unbiased answers."""
    unit: float
    """A usual standard deviation of an unbiased cell."""
    scale: float
    """A usual standard deviation of an unbiased answer, for questions that have none."""
    error: tuple[float, ...]
    shared: tuple[float, ...]
    unmeasured: tuple[float, ...]
    """The same as `error`, for tables of one column more than those that were measured."""
    order: int
    """The most columns that were measured together."""
    caution: float
    """By what a learnt mean square error is raised."""
    far: float = FAR
    """How many standard deviations apart model and unbiased answer are where the model is wrong."""

    @quietly
    def model(
        self, counts: Floats, variances: Floats, *, single: bool = False
    ) -> tuple[Floats, Floats]:
        """(e, c) of questions within measured tables; `variances` are the unbiased estimates'.

        `single`: of one column. Nothing but its own noisy table tells a model whether a value is
        rare or missing; where that fell below 0 the model has 0, and knows no more than the table.
        """
        x = sided(counts, self.rows)
        e = np.maximum(rising(x, variances, self.unit) @ np.array(self.error), whole(x))
        e = e + self._unlearnt(x, variances)
        if single:
            deviations = np.sqrt(np.maximum(variances, LEAST))
            e = np.maximum(e, variances * deviations / (deviations + x))
        c = np.asarray(saturating(x, variances, self.unit) @ np.array(self.shared))
        total = of_total(counts, self.rows, self.rows_variance)
        return e + total, np.minimum(np.minimum(c, e) + total, variances)

    @property
    def _hidden(self) -> float:
        """How much noise hides of the number of rows."""
        return min(1.0, self.rows_variance / max(self.rows, LEAST) ** 2)

    def _unlearnt(self, counts: Floats, variances: Floats) -> Floats:
        """What is added so that the tables weigh more.

        That is where a law was learnt from few cells, and where noise hides how many rows there
        are: then a model's small counts say little.
        """
        few = self.caution / CAUTION - 1
        deviations = np.sqrt(np.maximum(variances, LEAST))
        share = few**2 / 9 * counts / (counts + deviations) + self._hidden
        return np.asarray(share * variances)

    @quietly
    def beyond(self, counts: Floats, columns: int) -> Floats:
        """The mean square error of the model for columns that were not measured together."""
        x = sided(counts, self.rows)
        usual = np.full(x.shape, self.scale**2)
        more = self.caution * max(1, columns - self.order)
        own = np.maximum(more * (rising(x, usual, self.unit) @ np.array(self.unmeasured)), whole(x))
        hidden = self._hidden * usual
        return np.asarray(own + hidden + of_total(counts, self.rows, self.rows_variance))

    @quietly
    def weighed(
        self, unbiased: Floats, counts: Floats, variances: Floats, *, single: bool = False
    ) -> tuple[Floats, Floats]:
        """The best answer and its mean square error, from the tables' answer and the model's."""
        e, c = self.model(counts, variances, single=single)
        apart = e + variances - 2 * c
        e = e + np.maximum((unbiased - counts) ** 2 - self.far**2 * apart, 0)
        apart = np.maximum(e + variances - 2 * c, LEAST)
        w = (e - c) / apart
        error = np.maximum(e * variances - c * c, 0) / apart
        raised = np.minimum(self.caution * error, np.maximum(variances, error))
        return counts + w * (unbiased - counts), raised


@dataclass(frozen=True, eq=False)
class Trial:
    """A mixture that was fitted to the measurements, and the same with more noise."""

    mixture: ProductMixture
    disturbed: NoisyMarginals
    """y + a·z."""
    tilt: float
    other: ProductMixture
    """As fitted to what is disturbed, from the same beginning."""


@dataclass(frozen=True, eq=False)
class Examined:
    """What is learnt of a model, question by question."""

    counts: Floats
    variances: Floats
    noise: Floats
    """The variance of what examines."""
    error: Floats
    shared: Floats


def examined(
    noisy: NoisyMarginals,
    mixture: ProductMixture,
    trials: Sequence[Trial],
    tables: Iterable[Columns],
    number: int,
    rng: np.random.Generator,
) -> Examined:
    """Every cell of these tables, and so many selections of each."""
    found: list[Floats] = [np.zeros((4, 0))]
    for columns in tables:
        y, m = noisy.table(columns), mixture.table(columns)
        moved = [
            (t.disturbed.table(columns) - y, t.other.table(columns) - t.mixture.table(columns))
            for t in trials
        ]
        some = drawn_selections(noisy.plan.sizes, columns, number, rng)
        variance = np.full(y.size, noisy.cell_variance(columns))
        found.append(_questions(np.ravel, y, m, variance, moved, trials))
        found.append(_questions(some.of, y, m, some.variances(noisy.plan), moved, trials))
    y, m, v, c = np.concatenate(found, axis=1)
    c -= of_total(m, mixture.rows, noisy.plan.variances.get((), 0.0))
    total = of_total(m, mixture.rows, noisy.plan.variances.get((), 0.0))
    return Examined(m, v, v, (y - m) ** 2 - v + 2 * c + total, c)


def _questions(
    asked: Callable[[Floats], Floats],
    y: Floats,
    m: Floats,
    variance: Floats,
    moved: Sequence[tuple[Floats, Floats]],
    trials: Sequence[Trial],
) -> Floats:
    shared = [
        asked(noise) * asked(model) / t.tilt**2
        for t, (noise, model) in zip(trials, moved, strict=True)
    ]
    return np.stack([asked(y), asked(m), variance, np.mean(shared, axis=0)])


def left_out(
    halves: Halves,
    noisy: NoisyMarginals,
    mixture: ProductMixture,
    without: Sequence[Columns],
    number: int,
    rng: np.random.Generator,
) -> Examined:
    """Tables whose own components the mixture of the first half has not seen.

    They are examined by the second half, and by all that was measured of what was left out.
    """
    residuals = {**halves.second.residuals, **{c: noisy.residuals[c] for c in without}}
    variances = {**halves.second.plan.variances, **{c: noisy.plan.variances[c] for c in without}}
    other = NoisyMarginals(ResidualPlan(noisy.plan.sizes, variances), residuals)
    found: list[Floats] = []
    for columns in without:
        y, m = other.table(columns), mixture.table(columns)
        variance, noise = noisy.cell_variance(columns), other.cell_variance(columns)
        ones = np.ones(y.size)
        found.append(np.stack([y.ravel(), m.ravel(), variance * ones, noise * ones]))
        some = drawn_selections(noisy.plan.sizes, columns, number, rng)
        between = some.variances(noisy.plan), some.variances(other.plan)
        found.append(np.stack([some.of(y), some.of(m), *between]))
    y, m, v, noise = np.concatenate(found, axis=1)
    return Examined(m, v, noise, (y - m) ** 2 - noise, np.zeros(m.shape))


@quietly
def learnt(
    seen: Examined, rows: float, unit: float, least: tuple[float, ...] = ()
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The coefficients of e, none of them below `least`, and of c.

    What is shrunk as well as can be has e = c, and a model that is shrunk more has e > c. So e is
    not taken to be less than c, nor than 2c − e = v − E (y − m)², which owes nothing to the draw of
    z: an unlucky one makes c too small, and e by twice that.
    """
    if not seen.counts.size:
        return (0.0,) * NUMBER, (0.0,) * (2 * len(TURNS))
    x = sided(seen.counts, rows)
    size = np.floor(3 * np.log2(np.maximum(x, 1e-3)))
    spread = np.floor(np.log2(np.maximum(seen.variances, LEAST)))
    _, key = np.unique(np.stack([size, spread]), axis=1, return_inverse=True)
    key = key.ravel()
    count = np.bincount(key)

    def mean(values: Floats) -> Floats:
        return np.asarray(np.bincount(key, values) / count)

    bends = np.stack([mean(b) for b in rising(x, seen.variances, unit).T], axis=1)
    shares = np.stack([mean(b) for b in saturating(x, seen.variances, unit).T], axis=1)
    e, c, noise = mean(seen.error), mean(seen.shared), mean(seen.noise)
    begun = np.array(least) if least else np.zeros(bends.shape[1])
    error = begun
    for _ in range(4):
        weight = np.sqrt(count) / np.maximum(noise + 2 * (bends @ error), LEAST)
        error = begun + nonnegative(bends, e - bends @ begun, weight)
    weight = np.sqrt(count) / np.maximum(noise + bends @ error, LEAST)
    shared = nonnegative(shares, c, weight)
    if shared.any():
        fewest = nonnegative(bends, 2 * c - e, weight)
        wanted = np.maximum(np.maximum(bends @ error, bends @ fewest), shares @ shared)
        error = nonnegative(bends, wanted, weight)
    return tuple(map(float, error)), tuple(map(float, shared))


def nonnegative(basis: Floats, target: Floats, weight: Floats) -> Floats:
    """The coefficients, none below 0, that bring a basis nearest to a target."""
    from scipy.optimize import lsq_linear, nnls  # noqa: PLC0415  (slow to import)

    matrix, wanted = basis * weight[:, None], target * weight
    try:
        return np.asarray(nnls(matrix, wanted)[0])
    except RuntimeError:  # it goes in circles where columns are nearly alike
        return np.asarray(np.maximum(lsq_linear(matrix, wanted, (0, np.inf)).x, 0.0))


def of_total(counts: Floats, rows: float, variance: float) -> Floats:
    """What the noise of the number of rows adds to the error of an answer."""
    return np.asarray(variance * np.clip(counts / max(rows, 1.0), 0, 1) ** 2)


def sided(counts: Floats, rows: float) -> Floats:
    """Few rows outside a selection are as easy as few rows inside."""
    x = np.clip(counts, 0, max(rows, 0))
    return np.asarray(x * (1 - x / max(rows, 1.0)))
