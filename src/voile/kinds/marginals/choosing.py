"""Which tables are measured: the order, the weights, and a private choice among many columns.

**Order.** The largest order at which a count that holds a hundredth of the rows is not drowned: the
standard error of a cell, in the middle table of the order, is at most ENOUGH[order] of that count.
That is where the next order began to pay on 12 tables with the model on top (docs/decisions, 25).

**Many columns.** From WIDE columns on, all pairs may be too many. Then the number of rows and all
single columns are measured first; every pair is scored by how far its counts are from what the
single columns say if they are independent; and the k best are chosen by the exponential mechanism.
A score is a sum of absolute differences of whole numbers: a record that is added changes it by 1,
an exchange by 2. What was measured in order to choose is part of the release.

A choice makes the account that of zCDP. Whether tables are chosen at all depends on the noisy
number of rows, and a mixture of two mechanisms has the weaker account of both: so from WIDE columns
on the account is zCDP's, even if all pairs are measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median
from typing import Literal

import numpy as np

from voile.arrays import Floats, Ints
from voile.errors import PromiseError, spelled
from voile.kinds.marginals.measuring import (
    LARGEST_TABLE,
    Measurement,
    MeasurementPlan,
    Noise,
    Unit,
    gaussian_plan,
    noise_for,
    noisy_rows,
    pure_plan,
    whole_figures,
)
from voile.kinds.marginals.residuals import Columns, balanced
from voile.noise.gumbel import most_noisy
from voile.noise.whole import WordSource
from voile.privacy.spent import NOTHING, Spent
from voile.progress import Progress, Silent

Counter = Callable[[Columns], Ints]
"""The marginal counts of some columns."""

SHARE = 0.01
"""Of the rows: a count that matters."""
ENOUGH: Mapping[int, float] = {2: 0.9, 3: 0.25}
"""The standard error at which an order is taken, in parts of a count that matters."""
ENOUGH_WIDE: Mapping[int, float] = {2: 0.4, 3: 0.25}
"""The same where pairs may be chosen instead."""
HIGHEST = 3
"""The largest order that is chosen without being asked for."""
LOOK = 0.01
"""The share of the budget that a first look at the number of rows takes."""
WIDE = 20
"""From so many columns on, pairs may be chosen by looking."""
SINGLES, SELECTION = 0.2, 0.1
"""Shares of the budget for single columns and for the choice, where pairs are chosen."""
CLEAR = 0.6
"""The standard error that chosen pairs shall have, in parts of a count that matters."""
MOST_FIGURES: Mapping[int, int] = {2: 2**24, 3: 2**20}
"""Of an order that is chosen: a model of more takes minutes, and tables of pairs serve as well."""
MOST_TABLES = 20_000
"""Of an order that is chosen."""
RESERVED = 1e-6
"""The share that stands for the choice of choosing nothing: it makes the account zCDP's."""


@dataclass(frozen=True)
class MeasuringBudget:
    """What measuring may cost."""

    noise: Noise
    unit: Unit
    whole: float
    """ρ of Gaussian noise, or ε of geometric noise."""
    with_choice: float
    """The same where tables are chosen by looking: ρ by the conversion of zCDP."""
    schema: Spent = NOTHING
    """What learning the domain cost, which is not part of the amounts."""

    def after(self, spent: Spent) -> MeasuringBudget:
        """What is left of it after learning the domain."""
        cost = spent.mu**2 / 2 if self.noise == "gaussian" else spent.epsilon
        if cost >= min(self.whole, self.with_choice):
            raise PromiseError(
                f"learning the domain cost {cost:.3g} of {self.whole:.3g}, and leaves nothing to "
                "measure with",
                hint=f"use a smaller {spelled('schema_share')}, or declare the domain with "
                f"{spelled('schema')}",
            )
        whole, chosen = (x - cost * (1 + 1e-9) for x in (self.whole, self.with_choice))
        return replace(self, whole=whole, with_choice=chosen, schema=spent)

    def times(self, share: float) -> MeasuringBudget:
        """A share of it."""
        return replace(self, whole=self.whole * share, with_choice=self.with_choice * share)


@dataclass(frozen=True, eq=False)
class ChosenTables:
    """What is measured, and what of it was measured in order to choose."""

    plan: MeasurementPlan
    order: int
    how: Literal["all", "given", "workload", "selected"]
    rows_figure: int | None = None
    figures: tuple[Ints, ...] = ()
    """Of the first measurements of the plan: these have their noise, and are not drawn again."""
    rows: float | None = None
    """About how many there are, where that is public or was looked at with noise."""
    amount: float = 0.0
    """The whole budget of which the plan is a part, if not all."""


def choose(
    counter: Counter,
    sizes: Sequence[int],
    rows: int,
    budget: MeasuringBudget,
    source: WordSource,
    *,
    order: int | None = None,
    known: int | None = None,
    kept: Callable[[float | None, float], float] = lambda _rows, _amount: 0.0,
    progress: Progress | None = None,
) -> ChosenTables:
    """The tables and their noise, within the budget; `order` is chosen where it is not given.

    `known` is the number of rows as learning the domain has shown it, with noise: then there is no
    look at it, and whether there are many columns is decided by their number, which is public.

    `kept` says for about so many rows which share of the budget is for something else.

    Rows and counts are looked at with noise only, except for the number of rows where records are
    exchanged, which is public.
    """
    if order is not None:
        public = rows if known is None and budget.unit == "exchange" else known
        about = None if public is None else float(max(1, public))
        left = budget.times(1 - kept(about, budget.whole))
        plan = _plan(sizes, all_tables(len(sizes), order), left)
        return ChosenTables(plan, order, "all", rows=about, amount=budget.whole)
    wide = (len(sizes) if known is not None else sum(size > 1 for size in sizes)) >= WIDE
    amount = budget.with_choice if wide else budget.whole
    scale, figure = None, None
    if budget.unit == "add-remove" and known is None:
        scale = _look_scale(budget.noise, amount)
        figure = noisy_rows(rows, budget.noise, scale, source)
    if known is not None:
        about = float(max(1, known))
    else:
        about = float(max(1, rows if figure is None else figure))
    rest = amount * (1 - kept(about, amount))
    make = _Maker(tuple(sizes), budget, rest, scale, wide=wide)
    found = make.order(about)
    if found == 1 and wide and (number := make.pairs(about)):
        chooser = _Chooser(make, counter, about, source, progress or Silent())
        return replace(chooser.chosen(number, figure), rows=about, amount=amount)
    plan = make.all(found)
    return ChosenTables(plan, found, "all", figure, rows=about, amount=amount)


def all_tables(columns: int, order: int) -> list[Columns]:
    """Every set of up to so many columns."""
    sizes = range(1, min(order, columns) + 1)
    return [some for size in sizes for some in combinations(range(columns), size)]


def chosen_order(sizes: Sequence[int], rows: float, budget: MeasuringBudget) -> int:
    """The order that `choose` takes for about so many rows, without a look."""
    return _Maker(tuple(sizes), budget, budget.whole, None, wide=False).order(max(1.0, rows))


def relative_error(plan: MeasurementPlan, order: int, rows: float) -> float:
    """The standard error of a cell in the middle table of the order, of a count that matters."""
    found = plan.residual_plan()
    tables = [c for c in found.variances if len(c) == order]
    if not tables:
        return 0.0
    return median(math.sqrt(found.cell_variance(c)) for c in tables) / (SHARE * rows)


def workload_weights(
    sizes: Sequence[int], workload: Mapping[Columns, float]
) -> dict[Columns, float]:
    """Weights for the tables that a workload asks about, and small ones for all single columns.

    What is made small is the sum over the workload of weight times the mean variance of a cell. All
    single columns together weigh a tenth of it, so that the model knows every column.
    """
    asked = {s: w for s, w in workload.items() if s and w > 0}
    singles: list[Columns] = [(i,) for i in range(len(sizes))]
    found = dict.fromkeys(singles, 0.1 * (math.fsum(asked.values()) or 1.0) / max(1, len(sizes)))
    for s, w in asked.items():
        found[s] = found.get(s, 0.0) + w
    return {s: w / math.prod(sizes[i] for i in s) for s, w in found.items()}


def _look_scale(noise: Noise, amount: float) -> float:
    """Of the noise on the number of rows."""
    return math.sqrt(0.5 / (LOOK * amount)) if noise == "gaussian" else 1 / (LOOK * amount)


def _plan(
    sizes: Sequence[int], tables: Sequence[Columns], budget: MeasuringBudget
) -> MeasurementPlan:
    weights = balanced(sizes, tables)
    if budget.noise == "gaussian":
        return gaussian_plan(sizes, weights, rho=budget.whole, unit=budget.unit)
    return pure_plan(sizes, weights, epsilon=budget.whole, unit=budget.unit)


@dataclass(frozen=True)
class _Maker:
    """Plans within one budget."""

    sizes: tuple[int, ...]
    budget: MeasuringBudget
    amount: float
    rows_scale: float | None
    wide: bool

    def all(self, order: int) -> MeasurementPlan:
        """All tables up to an order."""
        reserved = RESERVED if self.wide and self.budget.noise == "gaussian" else 0.0
        return self.plan(all_tables(len(self.sizes), order), reserved)

    def plan(
        self,
        tables: Sequence[Columns],
        selection: float,
        before: Sequence[Measurement] = (),
        share: float = 1.0,
    ) -> MeasurementPlan:
        """Tables with balanced weights; `selection` is the share that choosing takes."""
        weights, cost = balanced(self.sizes, tables), selection * self.amount
        unit, scale = self.budget.unit, self.rows_scale
        if self.budget.noise == "gaussian":
            return gaussian_plan(
                self.sizes, weights, rho=share * self.amount, unit=unit, rows_scale=scale,
                selection_rho=cost, before=before,
            )  # fmt: skip
        return pure_plan(
            self.sizes, weights, epsilon=share * self.amount, unit=unit, rows_scale=scale,
            selection_epsilon=cost, before=before,
        )  # fmt: skip

    def order(self, rows: float) -> int:
        """The largest order whose tables are clear enough."""
        columns = sum(size > 1 for size in self.sizes)
        for order in range(min(HIGHEST, columns), 1, -1):
            if self._fits(order) and self._clear(order, rows):
                return order
        return 1

    def _fits(self, order: int) -> bool:
        """Whether all tables of the order can be measured and stored."""
        if sum(math.comb(len(self.sizes), k) for k in range(order + 1)) > MOST_TABLES:
            return False
        if figures(self.sizes, order) > MOST_FIGURES[order]:
            return False
        return math.prod(sorted(self.sizes)[-order:]) <= LARGEST_TABLE

    def _clear(self, order: int, rows: float) -> bool:
        enough = (ENOUGH_WIDE if self.wide else ENOUGH)[order]
        if self._least_error(order, rows) > enough:
            return False
        return relative_error(self.all(order), order, rows) <= enough

    def _least_error(self, order: int, rows: float) -> float:
        """About a fourth of the error that a plan of the order has: saves planning many tables.

        The m components of the order share ρ: their variances are about m·p_c/(2ρ), of which a cell
        has a part p_c, and p_c is at least 2^−order.
        """
        if self.budget.noise != "gaussian":
            return 0.0
        number = math.comb(sum(size > 1 for size in self.sizes), order)
        return math.sqrt(number / (2 * self.amount) / 4**order) / (4 * SHARE * rows)

    # ------------------------------------------------------------------ where pairs are chosen

    def pairs(self, rows: float) -> int:
        """How many pairs can be chosen so that each is clear; 0 if it is not worth choosing."""
        columns = [i for i, size in enumerate(self.sizes) if size > 1]
        error = math.sqrt(self._pair_variance()) / (SHARE * rows)  # of one pair alone
        steps = 2 if self.budget.noise == "gaussian" else 1  # noise grows with √k, or with k
        number = math.floor((CLEAR / error) ** steps)
        return min(number, math.comb(len(columns), 2)) if number >= len(columns) // 4 else 0

    def _pair_variance(self) -> float:
        """Of a cell, if one pair had all that pairs may take."""
        left = (1 - SINGLES - SELECTION - (LOOK if self.rows_scale else 0)) * self.amount
        times = 1 if self.budget.unit == "add-remove" else 2
        return times / (2 * left) if self.budget.noise == "gaussian" else 2 * (times / left) ** 2


def figures(sizes: Sequence[int], order: int) -> int:
    """The cells of all components up to an order: the elementary symmetric sums of the sizes."""
    sums = [1] + [0] * order
    for size in sizes:
        for k in range(order, 0, -1):
            sums[k] += sums[k - 1] * size
    return sum(sums)


@dataclass(frozen=True)
class _Chooser:
    """The private choice of pairs."""

    make: _Maker
    counter: Counter
    rows: float
    source: WordSource
    progress: Progress

    def chosen(self, number: int, rows_figure: int | None) -> ChosenTables:
        """Single columns, the choice, and the plan of what was chosen."""
        singles, drawn = self._singles()
        known = singles.estimated(drawn, rows_figure)
        expected = [np.maximum(known.table((i,)), 0) for i in range(len(self.make.sizes))]
        pairs = self._pairs()
        scores = self._scores(pairs, expected, number)
        each = SELECTION * self.make.amount / number
        change = 1 if self.make.budget.unit == "add-remove" else 2
        gaussian = self.make.budget.noise == "gaussian"
        epsilon = math.sqrt(8 * each) if gaussian else each
        places = most_noisy(scores, epsilon / (2 * change), number, self.source)
        tables = [pairs[k] for k in places]
        plan = self.make.plan(tables, SELECTION, singles.measurements)
        return ChosenTables(plan, 2, "selected", rows_figure, tuple(drawn))

    def _singles(self) -> tuple[MeasurementPlan, list[Ints]]:
        """All single columns, measured."""
        share = SINGLES + (LOOK if self.make.rows_scale else 0.0)
        plan = self.make.plan(all_tables(len(self.make.sizes), 1), 0.0, share=share)
        noise = noise_for(plan, self.source)
        drawn = [
            whole_figures(plan, m, self.counter(m.columns)) + z
            for m, z in zip(plan.measurements, noise, strict=True)
        ]
        return plan, drawn

    def _pairs(self) -> list[Columns]:
        """Those that can be measured, and say more than their columns."""
        sizes = self.make.sizes
        columns = [i for i, size in enumerate(sizes) if size > 1]
        return [(i, j) for i, j in combinations(columns, 2) if sizes[i] * sizes[j] <= LARGEST_TABLE]

    def _scores(self, pairs: Sequence[Columns], expected: Sequence[Floats], number: int) -> Ints:
        """How many rows each pair has elsewhere than independent columns, less what noise adds."""
        self.progress.start("choosing tables", len(pairs))
        deviation = math.sqrt(number * self.make._pair_variance())
        found = np.empty(len(pairs), dtype=np.int64)
        for k, (i, j) in enumerate(pairs):
            whole = max(1.0, float(expected[i].sum()))
            independent = np.rint(np.outer(expected[i], expected[j]) / whole).astype(np.int64)
            off = int(np.abs(self.counter((i, j)) - independent).sum())
            found[k] = off - round(math.sqrt(2 / math.pi) * deviation * independent.size)
            self.progress.advance(1)
        return found
