"""What is measured of a table, with which noise, and what that costs.

Gaussian noise: for each component c the whole table N_c × centred marginal is measured, each cell
with rounded normal noise of its own (voile.noise.normal). A whole figure plus rounded noise is the
rounded sum of the figure and normal noise, so that the account of the real-valued Gaussian
mechanism holds for what is drawn, exactly: with μ the largest norm of (shift/scale) between
neighbours,
  ρ = μ²/2,   δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)
(Balle and Wang, ICML 2018). A record that is added moves the whole table of c by a squared norm of
N_c²·p_c; one that takes another's place by what `exchanges` bounds, and the number of rows stays.

Geometric noise (`--pure`): the counts of tables s, which cover the wanted ones, get two-sided
geometric noise of scale b_s: ε = Σ 1/b_s for a record that is added, twice that for an exchange.
White noise
on a table is white on each of its centred components, and these are uncorrelated. So several tables
give component c the variance 1/Σ_{s⊇c} 1/(v_s·Π_{i∈s∖c} n_i), and estimates have the same form.

Means within bins: of each number in bins, the rows of a bin add their places in it, from −½ to ½ in
STEPS steps (voile.schema.places). A row that is added moves one of these sums by at most STEPS/2,
an exchange by STEPS in one sum or by STEPS/2 in two: in either norm at most STEPS. They are further
figures with noise of their own, and what they cost is added (docs/mathematics, section 49).

A person with up to c rows does at most c times what one row does: μ and ε are c times as large, and
ρ is c² times (docs/mathematics, section 47).

The account reads scales alone: what chose them need not be trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from voile.arrays import Floats, Ints
from voile.errors import PromiseError, UsageError, spelled
from voile.kinds.marginals.covering import MOST_COLUMNS, covering
from voile.kinds.marginals.place_sums import STEPS
from voile.kinds.marginals.residuals import (
    Columns,
    NoisyMarginals,
    ResidualPlan,
    centred,
    component_weights,
    plan,
    subsets,
    whole_centred,
)
from voile.noise.geometric import geometric_variance, two_sided_geometric
from voile.noise.normal import LARGEST_SCALE, rounded_normal, rounded_variance
from voile.noise.whole import WordSource
from voile.privacy.gaussian import SAFETY, delta_of, mu_for
from voile.privacy.spent import NOTHING, Spent

Noise = Literal["gaussian", "geometric"]
Unit = Literal["add-remove", "exchange"]

MOST_WHOLE_COLUMNS: Mapping[Noise, int] = {"gaussian": MOST_COLUMNS, "geometric": 10}
"""Columns of a table: normal noise needs it centred in whole numbers, which grow with each."""
LARGEST_TABLE = 2**24
"""Cells of a table that is measured: N_c times a count, and its noise, must fit into 64 bits."""
MOST_ROWS = 2**36
"""Rows of a table: with LARGEST_TABLE, centring five columns in whole numbers stays below 2⁶³."""
UP = 1 + 1e-12
"""What sums in floats may lose; an account is never below the true one."""


@dataclass(frozen=True)
class Measurement:
    """One table of whole figures, and the scale of the noise on each."""

    columns: Columns
    scale: float
    """σ·N_c of rounded normal noise, or b of geometric noise; 0 where no neighbour changes it."""


@dataclass(frozen=True)
class PlaceMeasurement:
    """The sums of places of one column, by bin, and the scale of the noise on each."""

    column: int
    bins: int
    scale: float


@dataclass(frozen=True)
class MeasurementPlan:
    """All that is measured. Its account is recomputed from the scales alone."""

    sizes: tuple[int, ...]
    noise: Noise
    unit: Unit
    measurements: tuple[Measurement, ...]
    rows_scale: float | None = None
    """Of the first look at the number of rows, where there was one."""
    selection_rho: float = 0.0
    """What choosing tables cost; 0: nothing was chosen by looking."""
    selection_epsilon: float = 0.0
    """The same where noise is geometric."""
    schema: Spent = NOTHING
    """What learning the domain cost before anything was measured, for a person with all rows."""
    rows_per_person: int = 1
    """c, of the account: a group of c rows has c times the ε and the μ, and c² times the ρ."""
    places: tuple[PlaceMeasurement, ...] = ()
    """Sums of places within bins."""

    def __post_init__(self) -> None:
        _check_sizes(self.sizes)
        _check_places(self)
        for measurement in self.measurements:
            _check_measurement(self, measurement)
        if self.rows_scale is not None and not 0 < self.rows_scale <= LARGEST_SCALE:
            raise ValueError(f"the look at the rows has scale {self.rows_scale:g}")
        if not (math.isfinite(self.selection_rho) and self.selection_rho >= 0):
            raise ValueError(f"choosing tables cannot cost ρ = {self.selection_rho:g}")
        if not (math.isfinite(self.selection_epsilon) and self.selection_epsilon >= 0):
            raise ValueError(f"choosing tables cannot cost ε = {self.selection_epsilon:g}")
        if self.rows_per_person < 1:
            raise ValueError(f"a person with {self.rows_per_person} rows")
        if self.schema.mu if self.noise == "geometric" else self.schema.epsilon:
            raise ValueError(f"a domain learnt with other noise than {self.noise} noise")
        unused = self.selection_epsilon if self.noise == "gaussian" else self.selection_rho
        if unused:
            raise ValueError(f"a choice for {self.noise} noise is not accounted for that way")

    def cells(self, measurement: Measurement) -> int:
        """N_c."""
        return math.prod(self.sizes[i] for i in measurement.columns)

    @property
    def figures(self) -> int:
        """How many there are in all."""
        tables = sum(self.cells(m) for m in self.measurements)
        return tables + sum(p.bins for p in self.places)

    # ------------------------------------------------------------------ the account

    @cached_property
    def measured_rho(self) -> float:
        """ρ of what is measured with Gaussian noise, the choice of tables left out."""
        if self.noise == "geometric":
            raise ValueError("geometric noise has an ε of its own")
        look = 0.5 / self.rows_scale**2 if self.rows_scale and self.unit == "add-remove" else 0.0
        precisions: dict[Columns, float] = {}
        for m in self._noisy:  # a component may be measured more than once
            more = (self.cells(m) / m.scale) ** 2
            precisions[m.columns] = precisions.get(m.columns, 0.0) + more
        ideal = ResidualPlan(self.sizes, {c: 1 / p for c, p in precisions.items()})
        row = look + (ideal.rho if self.unit == "add-remove" else ideal.exchange_rho)
        row += math.fsum((_moved(self.unit) / p.scale) ** 2 / 2 for p in self.places)
        return row * self.rows_per_person**2 * UP

    @property
    def mu(self) -> float | None:
        """μ of the Gaussian mechanism; None where noise is geometric, or tables were chosen."""
        if self.noise == "geometric" or self.selection_rho:
            return None
        if not self.schema.mu:
            return math.sqrt(2 * self.measured_rho)
        return math.hypot(math.sqrt(2 * self.measured_rho), self.schema.mu) * UP

    @cached_property
    def pure_epsilon(self) -> float | None:
        """ε with δ = 0; None where noise is Gaussian."""
        if self.noise == "gaussian":
            return None
        rates = [1 / m.scale for m in self._noisy] + [STEPS / 2 / p.scale for p in self.places]
        if self.rows_scale and self.unit == "add-remove":
            rates.append(1 / self.rows_scale)
        moved = math.fsum(rates) * (1 if self.unit == "add-remove" else 2)
        measured = (moved + self.selection_epsilon) * self.rows_per_person
        return (measured + self.schema.epsilon) * UP

    @property
    def rho(self) -> float:
        """ρ of zCDP."""
        if (pure := self.pure_epsilon) is not None:
            return pure * math.tanh(pure / 2) * UP
        chosen = self.selection_rho * self.rows_per_person**2
        return self.measured_rho + chosen + self.schema.mu**2 / 2 * UP

    def delta_at(self, epsilon: float) -> float:
        """The least δ that is known at ε; what a threshold fails with is part of it."""
        if (pure := self.pure_epsilon) is not None:
            found = 0.0 if epsilon >= pure else _pure_delta(pure, epsilon)
        elif (mu := self.mu) is not None:
            found = delta_of(mu, epsilon) * (1 + SAFETY)
        else:
            found = concentrated_delta(self.rho, epsilon)
        return min(1.0, found + self.schema.delta)

    def epsilon_at(self, delta: float) -> float:
        """The least ε that is known at δ."""
        if delta >= self.delta_at(0.0):
            return 0.0
        if (pure := self.pure_epsilon) is not None and delta <= self.schema.delta:
            return pure if delta == self.schema.delta else math.inf
        if delta <= self.schema.delta:
            return math.inf
        low, high = 0.0, 1.0
        while self.delta_at(high) > delta:
            low, high = high, 2 * high
            if high > 1e12:
                return math.inf
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta_at(middle) > delta else (low, middle)
        return high

    @property
    def _noisy(self) -> Iterator[Measurement]:
        """Those that get noise: the others are what no neighbour changes."""
        return (m for m in self.measurements if m.scale)

    # ------------------------------------------------------------------ estimates

    @cached_property
    def _precisions(self) -> dict[Columns, list[float]]:
        """1/variance that each measurement gives to a component, in the order of measurements."""
        found: dict[Columns, list[float]] = {}
        for m in self.measurements:
            for c in self._parts(m):
                found.setdefault(c, []).append(_inverse(self._part_variance(m, c)))
        if self.rows_scale:
            found.setdefault((), []).append(_inverse(self._variance(self.rows_scale)))
        return found

    def _parts(self, measurement: Measurement) -> Iterator[Columns]:
        """The components that a measurement says something about."""
        if self.noise == "gaussian":
            return iter((measurement.columns,))
        kept = tuple(i for i in measurement.columns if self.sizes[i] > 1)
        return subsets(kept)

    def _variance(self, scale: float) -> float:
        """Of the noise that is drawn at this scale."""
        if not scale:
            return 0.0
        return rounded_variance(scale) if self.noise == "gaussian" else geometric_variance(scale)

    def _part_variance(self, measurement: Measurement, component: Columns) -> float:
        """σ_c² by this measurement alone."""
        if self.noise == "gaussian":
            return self._variance(measurement.scale) / self.cells(measurement) ** 2
        rest = math.prod(self.sizes[i] for i in measurement.columns if i not in component)
        return self._variance(measurement.scale) * rest

    def figure_variance(self, measurement: Measurement) -> float:
        """Of the noise on each of its figures."""
        return self._variance(measurement.scale)

    def place_variance(self, places: PlaceMeasurement) -> float:
        """Of the noise on each of its sums, in places of one row squared."""
        return self._variance(places.scale) / STEPS**2

    def residual_plan(self) -> ResidualPlan:
        """The variances of the components, as the noise that is drawn has them."""
        variances = {c: _inverse(math.fsum(p)) for c, p in self._precisions.items()}
        ordered = sorted(variances, key=lambda c: (len(c), c))
        return ResidualPlan(self.sizes, {c: variances[c] for c in ordered})

    def estimated(self, figures: Sequence[Ints], rows_figure: int | None = None) -> NoisyMarginals:
        """The components, unbiased, from the figures in the order of the measurements."""
        if len(figures) != len(self.measurements):
            raise ValueError(f"{len(figures)} tables of figures for {len(self.measurements)}")
        if (rows_figure is None) != (self.rows_scale is None):
            raise ValueError("a figure of the rows goes with the scale of its noise")
        residuals: dict[Columns, Floats] = {}
        seen: dict[Columns, int] = {}

        def add(component: Columns, found: Floats) -> None:
            precisions = self._precisions[component]
            place = seen.get(component, 0)
            share = _share(precisions, place)
            residuals[component] = residuals.get(component, 0.0) + share * found
            seen[component] = place + 1

        for m, figure in zip(self.measurements, figures, strict=True):
            shaped = figure.reshape([self.sizes[i] for i in m.columns]).astype(np.float64)
            for c in self._parts(m):
                add(c, self._component(m, c, shaped))
        if rows_figure is not None:
            add((), np.asarray(float(rows_figure)))
        plan = self.residual_plan()
        return NoisyMarginals(plan, {c: residuals[c] for c in plan.components})

    def _component(self, measurement: Measurement, component: Columns, figure: Floats) -> Floats:
        """What the figures of a measurement say of a component."""
        if self.noise == "gaussian":
            return centred(figure / self.cells(measurement))
        others = [j for j, i in enumerate(measurement.columns) if i not in component]
        return centred(np.asarray(figure.sum(axis=tuple(others))))


def _moved(unit: Unit) -> float:
    """By how much a row moves the sums of places of one column, in steps."""
    return STEPS / 2 if unit == "add-remove" else float(STEPS)


def place_scale(noise: Noise, unit: Unit, amount: float) -> float:
    """Of the noise on sums of places that cost so much: ρ, or ε."""
    moved = _moved(unit)
    return (moved / math.sqrt(2 * amount) if noise == "gaussian" else moved / amount) * (1 + 1e-11)


def _inverse(value: float) -> float:
    """1/x, where 0 and ∞ are each other's."""
    if value == 0:
        return math.inf
    return 0.0 if math.isinf(value) else 1 / value


def _share(precisions: Sequence[float], place: int) -> float:
    """The weight of one of several measurements of the same; exact ones take all."""
    exact = sum(map(math.isinf, precisions))
    if exact:
        return float(math.isinf(precisions[place])) / exact
    return precisions[place] / math.fsum(precisions)


def _check_sizes(sizes: Sequence[int]) -> None:
    for place, size in enumerate(sizes):
        if size < 1:
            raise ValueError(f"column {place} has {size} values")


def _check_places(plan: MeasurementPlan) -> None:
    """Refuse sums of places that cannot be measured."""
    columns = [p.column for p in plan.places]
    if len(set(columns)) < len(columns):
        raise ValueError("the places of a column are measured twice")
    for one in plan.places:
        if not (0 <= one.column < len(plan.sizes) and 0 < one.bins <= plan.sizes[one.column]):
            raise ValueError(f"{one.bins} bins of column {one.column}")
        if not 0 < one.scale <= LARGEST_SCALE:
            raise PromiseError(
                f"noise of scale {one.scale:g} on places within bins cannot be drawn",
                hint=f"raise the budget, or say {spelled('bin_means', False)}",
            )


def _check_measurement(plan: MeasurementPlan, measurement: Measurement) -> None:
    """Refuse what cannot be measured, or not within the account."""
    c = measurement.columns
    if list(c) != sorted(set(c)) or not all(0 <= i < len(plan.sizes) for i in c):
        raise ValueError(f"{c} are not columns in ascending order")
    most = MOST_WHOLE_COLUMNS[plan.noise]
    if plan.cells(measurement) > LARGEST_TABLE or len(c) > most:
        sizes = " × ".join(str(plan.sizes[i]) for i in c)
        raise UsageError(
            f"a table of {sizes} cells is too large to be measured: at most {LARGEST_TABLE:,} "
            f"cells and {most} columns",
            hint="group values into fewer, or ask for tables of fewer columns",
        )
    if not 0 <= measurement.scale <= LARGEST_SCALE:
        raise PromiseError(
            f"noise of scale {measurement.scale:g} on the table of columns {c} cannot be drawn",
            hint="raise the budget, or ask for fewer and smaller tables",
        )
    constant = plan.unit == "exchange" and all(plan.sizes[i] == 1 for i in c)
    if not measurement.scale and not constant:
        raise ValueError(f"the table of columns {c} would be shown without noise")


# ---------------------------------------------------------------------- figures and noise


def whole_figures(plan: MeasurementPlan, measurement: Measurement, counts: Ints) -> Ints:
    """The true whole table of a measurement, from its marginal counts."""
    shape = tuple(plan.sizes[i] for i in measurement.columns)
    counts = np.asarray(counts, dtype=np.int64).reshape(shape)
    if int(counts.sum()) > MOST_ROWS:
        raise UsageError(f"a table of more than {MOST_ROWS:,} rows cannot be measured")
    return whole_centred(counts) if plan.noise == "gaussian" else counts


def noise_for(plan: MeasurementPlan, source: WordSource, start: int = 0) -> Iterator[Ints]:
    """The noise of each measurement from `start` on, in the shape of its table."""
    for m in plan.measurements[start:]:
        shape = [plan.sizes[i] for i in m.columns]
        yield _noise(plan.noise, m.scale, plan.cells(m), source).reshape(shape)


def place_noise(plan: MeasurementPlan, source: WordSource) -> Iterator[Ints]:
    """The noise of each column's sums of places."""
    for one in plan.places:
        yield _noise(plan.noise, one.scale, one.bins, source)


def noisy_rows(rows: int, noise: Noise, scale: float, source: WordSource) -> int:
    """The first look at the number of rows."""
    return rows + int(_noise(noise, scale, 1, source)[0])


def _noise(noise: Noise, scale: float, count: int, source: WordSource) -> Ints:
    if not scale:
        return np.zeros(count, dtype=np.int64)
    draw = rounded_normal if noise == "gaussian" else two_sided_geometric
    return draw(scale, count, source)


# ---------------------------------------------------------------------- (ε, δ)


def _pure_delta(pure: float, epsilon: float) -> float:
    """δ at a smaller ε of what is ε₀-differentially private: that of randomized response."""
    return -math.expm1(epsilon - pure) / (1 + math.exp(-pure)) * UP


def concentrated_delta(rho: float, epsilon: float) -> float:
    """The least known δ at ε of ρ-zCDP (Canonne, Kamath, Steinke, 2020, Corollary 13).

    δ = exp((α − 1)(α·ρ − ε))/(α − 1)·(1 − 1/α)^α at the best order α > 1; every order is sound.
    """
    if rho == 0:
        return 0.0

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)
        return (
            excess * ((1 + excess) * rho - epsilon)
            + excess * log_excess
            - (1 + excess) * math.log1p(excess)
        )

    low, high = math.log(1e-9), math.log(1e9)
    for _ in range(150):  # the bound falls and then rises
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if at(left) < at(right) else (left, high)
    return math.exp(min(0.0, at((low + high) / 2))) * (1 + 1e-9)


def rho_for(epsilon: float, delta: float, *, chosen: bool = False) -> float:
    """The largest ρ within (ε, δ): of Gaussian noise alone, exactly, or with a choice of tables."""
    if not (epsilon >= 0 and math.isfinite(epsilon)) or not 0 < delta < 1:
        raise PromiseError(
            f"Gaussian noise gives no ({epsilon:g}, {delta:g})-differential privacy",
            hint="give ε of 0 or more and δ between 0 and 1, such as 1e-9",
        )

    if not chosen:
        return mu_for(epsilon, delta) ** 2 / 2 / (1 + 1e-9)
    low, high = 1e-30, 1.0
    while concentrated_delta(high, epsilon) <= delta:
        low, high = high, 2 * high
    for _ in range(200):
        middle = math.sqrt(low * high)
        enough = concentrated_delta(middle, epsilon) <= delta
        low, high = (middle, high) if enough else (low, middle)
    return low / (1 + 1e-9)


# ---------------------------------------------------------------------- plans


def gaussian_plan(
    sizes: Sequence[int],
    weights: Mapping[Columns, float],
    *,
    rho: float,
    unit: Unit,
    rows_scale: float | None = None,
    selection_rho: float = 0.0,
    before: Sequence[Measurement] = (),
) -> MeasurementPlan:
    """The components of the tables, with the noise that is best for the weights, within ρ.

    `before` was measured in order to choose: its components are not measured again.
    """
    _check_sizes(sizes)
    look = 0.5 / rows_scale**2 if rows_scale and unit == "add-remove" else 0.0
    left = _left(rho, selection_rho + look, "ρ")
    exact = [Measurement((), 0.0)] if unit == "exchange" and not before else []
    given = MeasurementPlan(
        tuple(sizes), "gaussian", unit, (*before, *exact), rows_scale, selection_rho
    )
    known = {m.columns for m in given.measurements}
    shape = plan(sizes, weights or {(): 1.0}, left).variances
    deviations = {
        c: math.sqrt(v) * math.prod(sizes[i] for i in c) for c, v in shape.items() if c not in known
    }

    def scaled(factor: float) -> MeasurementPlan:
        more = (Measurement(c, factor * s) for c, s in deviations.items())
        return replace(given, measurements=(*given.measurements, *more))

    if not deviations:
        return given
    return scaled(_factor(lambda factor: scaled(factor).rho, given.rho, rho))


def _factor(cost: Callable[[float], float], before: float, budget: float) -> float:
    """A factor of all scales at which the cost is within the budget, and nearly all of it.

    With u = 1/factor² the cost is the largest of several linear functions of u, all at most
    `before` at 0. So (cost − before)/u grows with u: a step from above the budget ends within it.
    Where an exchange is bounded only, it nearly does, and scales are widened a little more.
    """
    left = _left(budget, before, "ρ")
    factor, within = 1.0, math.inf
    for _ in range(6):
        found = cost(factor)
        if found <= budget:
            within = min(within, factor)
            if found >= budget * (1 - 1e-10):
                break
        factor *= math.sqrt((found - before) / left) * (1 + 1e-11)
    while math.isinf(within):
        within = factor if cost(factor) <= budget else within
        factor *= 1.001
    return within


def pure_plan(
    sizes: Sequence[int],
    weights: Mapping[Columns, float],
    *,
    epsilon: float,
    unit: Unit,
    rows_scale: float | None = None,
    selection_epsilon: float = 0.0,
    before: Sequence[Measurement] = (),
) -> MeasurementPlan:
    """Tables of counts with geometric noise, within ε and with the best rates for the weights.

    They are those of the weights, or larger ones that cover several of them (`covering`).
    `before` was measured in order to choose; its tables may be within those that follow.
    """
    _check_sizes(sizes)
    exact = [Measurement((), 0.0)] if unit == "exchange" and not before else []
    given = MeasurementPlan(
        tuple(sizes), "geometric", unit, (*before, *exact), rows_scale,
        selection_epsilon=selection_epsilon,
    )  # fmt: skip
    left = _left(epsilon, given.pure_epsilon or 0.0, "ε") / (1 if unit == "add-remove" else 2)
    weights = weights or {(): 1.0}
    known = {m.columns for m in given.measurements}
    tables = [s for s in maximal(sizes, weights) if s not in known]
    tables = covering(sizes, weights, tables)
    rates = _best_rates(sizes, weights, tables, left)
    noisy = (Measurement(s, (1 + 1e-11) / r) for s, r in rates.items())
    return replace(given, measurements=(*given.measurements, *noisy))


def maximal(sizes: Sequence[int], tables: Mapping[Columns, float]) -> list[Columns]:
    """The tables that are in no other, without columns of one value; the total if there is none."""
    kept = {tuple(i for i in s if sizes[i] > 1) for s in tables} or {()}
    smaller = {c for s in kept for c in subsets(s) if len(c) < len(s)}
    return sorted(kept - smaller, key=lambda c: (len(c), c))


def _best_rates(
    sizes: Sequence[int], weights: Mapping[Columns, float], tables: Sequence[Columns], total: float
) -> dict[Columns, float]:
    """Rates 1/b_s of this total that make Σ_s w_s·Σ_cells Var small.

    With k_s = 2·sinh²(r_s/2) the inverse of a table's variance, Σ_c v_c/Σ_{s⊇c} k_s/Π_{s∖c} n_i is
    brought to where r_s times its derivative is the same for all tables. Smaller tables beside the
    maximal ones were tried, and got a rate of 0: k grows like the square of r. So do some of
    those that others cover: these are left out.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415  (slow to import)

    covered = {c for s in tables for c in subsets(s)}
    values = {c: v for c, v in component_weights(sizes, weights).items() if c in covered}
    place = {c: k for k, c in enumerate(values)}
    entries = [
        (place[c], k, 1 / math.prod(sizes[i] for i in s if i not in c))
        for k, s in enumerate(tables)
        for c in subsets(s)
        if c in place
    ]
    if not entries:
        return {}
    rows, columns, parts = zip(*entries, strict=True)
    spread = csr_array((parts, (rows, columns)), shape=(len(values), len(tables)))
    worth = np.array(list(values.values()))
    rates = np.full(len(tables), total / len(tables))
    for _ in range(RATE_STEPS):
        known = spread @ _precision(rates)
        gain = (spread.T @ (worth / known**2)) * _precision_slope(rates)
        rates = rates * (gain / (gain @ rates)) ** 0.3
        rates *= total / rates.sum()
    kept = {s: float(r) for s, r in zip(tables, rates, strict=True) if r > LEAST_RATE * total}
    whole = math.fsum(kept.values())
    return {s: r * (total / whole) for s, r in kept.items()}


def _precision(rates: Floats) -> Floats:
    """1/variance of geometric noise; beyond a rate of 60 nothing is left of it."""
    return np.asarray(2 * np.sinh(np.minimum(rates, 60) / 2) ** 2)


def _precision_slope(rates: Floats) -> Floats:
    return np.asarray(np.sinh(np.minimum(rates, 60)))


RATE_STEPS = 60
"""Steps in which rates come within 1 % of where they end."""
LEAST_RATE = 1e-6
"""Of all rates together: a table that gets less is not measured."""


def _left(budget: float, spent: float, name: str) -> float:
    if not (math.isfinite(budget) and budget - spent > 0):
        raise PromiseError(
            f"{name} = {budget:g} leaves nothing to measure with after {spent:g}",
            hint="raise the budget",
        )
    return budget - spent
