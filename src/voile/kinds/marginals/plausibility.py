"""Whether figures have the noise that is stated.

Gaussian noise: the true whole table of a component is centred, every line along every axis sums to
0. So what is left of the figures when their centred part is taken away is noise alone, whatever the
table was: in D = N_c − Π (n_i − 1) dimensions, and its squared norm over σ² has the law of χ² with
D degrees of freedom, up to the rounding of each figure. Too small a norm had no noise, too large a
one is something else.

Geometric noise: tables that share columns count the same people by them, and what they say differs
by noise of a known variance, as for tables of counts. Its tails are longer than normal ones; sums
over many cells are compared with twice their variance. And cells that hold nobody have figures
below 0 as often as the noise is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from voile.arrays import Floats, Ints
from voile.kinds.agreement import TableAgreement, comparison, tails
from voile.kinds.marginals.measuring import Measurement, MeasurementPlan
from voile.kinds.marginals.residuals import centred
from voile.kinds.plausibility import Surprise, judge, lower_tail, upper_tail

if TYPE_CHECKING:
    from voile.kinds.marginals.release import MarginalRelease

LONG_TAILS = 2.0
"""By how much the variance is enlarged that bounds the tails of sums of geometric noise."""
FAR_OUT = 10.0
"""Standard deviations by which a total of 64 cells or more is off once in 10¹¹ (Bernstein)."""
FEWEST_CELLS = 64
"""Cells whose geometric noise is summed where sums are compared."""


def check_noise(release: MarginalRelease) -> bool:
    """Refuse figures with too little noise or too much; False where none can be seen."""
    plan, figures, names = release.manifest.plan, release.figures, release.schema.names
    found = surprises(plan, figures, names)
    judge(found)
    return bool(found)


def surprises(plan: MeasurementPlan, figures: list[Ints], names: list[str]) -> list[Surprise]:
    """All that is looked at, with its chance."""
    if plan.noise == "gaussian":
        return [tails(one) for one in of_components(plan, figures, names)]
    agreeing = [tails(one) for one in of_tables(plan, figures, names)]
    return [*agreeing, *below_zero(plan, figures, names)]


def below_zero(plan: MeasurementPlan, figures: list[Ints], names: list[str]) -> Iterator[Surprise]:
    """Figures below 0: only noise puts them there, and it does so in cells that hold nobody.

    No more cells hold somebody than there are rows, of which the table's own total says how many
    there are, at most.
    """
    for m, figure in zip(plan.measurements, figures, strict=True):
        if not m.scale:
            continue
        rows = float(figure.sum()) + FAR_OUT * math.sqrt(plan.figure_variance(m) * figure.size)
        empty = figure.size - math.ceil(max(rows, 0.0))
        alpha = math.exp(-1 / m.scale)
        chance = np.array([alpha / (1 + alpha)])
        seen = np.array([float((figure < 0).sum())])
        if empty < FEWEST_CELLS:
            continue
        what = f"{int(seen[0]):,} figures of {', '.join(names[i] for i in m.columns)} are below 0"
        few = float(lower_tail(seen, np.array([float(empty)]), chance)[0])
        many = float(upper_tail(seen, np.array([float(figure.size)]), chance)[0])
        yield Surprise(what, min(few, many) + math.log(2))


def of_components(
    plan: MeasurementPlan, figures: list[Ints], names: list[str]
) -> Iterator[TableAgreement]:
    """For each component, and for all together, what its figures have that no table has."""
    q, degrees, rounding = 0.0, 0, 0.0
    for m, figure in zip(plan.measurements, figures, strict=True):
        shape = [plan.sizes[i] for i in m.columns]
        if not m.columns or not m.scale or min(shape) < 2:
            continue
        table = figure.reshape(shape).astype(np.float64)
        rest = table - centred(table)
        one = TableAgreement(
            f"the figures of {', '.join(names[i] for i in m.columns)}",
            float((rest**2).sum()) / m.scale**2,
            table.size - math.prod(n - 1 for n in shape),
            rounded := math.sqrt(table.size / 4) / m.scale,
            excess=rounded,
        )
        yield one
        q, degrees = q + one.q, degrees + one.degrees
        rounding = math.hypot(rounding, one.rounding)
    if degrees:
        yield TableAgreement("all figures", q, degrees, rounding, excess=rounding)


def of_tables(
    plan: MeasurementPlan, figures: list[Ints], names: list[str]
) -> Iterator[TableAgreement]:
    """What tables count by each column, and in all, against each other."""
    totals: list[tuple[Floats, float]] = []
    by_column: dict[int, list[tuple[Floats, float]]] = {i: [] for i in range(len(plan.sizes))}
    for m, figure in zip(plan.measurements, figures, strict=True):
        if m.scale:
            add_sums(plan, m, figure, totals, by_column)
    if len(totals) > 1:
        yield replace(comparison("their totals", totals), proxy=LONG_TAILS)
    for i, listed in by_column.items():
        if len(listed) > 1:
            yield replace(comparison(f"what they count by {names[i]}", listed), proxy=LONG_TAILS)


def add_sums(
    plan: MeasurementPlan,
    measurement: Measurement,
    figure: Ints,
    totals: list[tuple[Floats, float]],
    by_column: dict[int, list[tuple[Floats, float]]],
) -> None:
    """A table's total, and its sums by each column, where enough cells are summed."""
    shape = [plan.sizes[i] for i in measurement.columns]
    table = figure.reshape(shape).astype(np.float64)
    variance = plan.figure_variance(measurement)
    if table.size >= FEWEST_CELLS:
        totals.append((table.sum(keepdims=True).ravel(), variance * table.size))
    for axis, i in enumerate(measurement.columns):
        summed = table.size // shape[axis]
        if summed >= FEWEST_CELLS and shape[axis] > 1:
            others = tuple(j for j in range(table.ndim) if j != axis)
            by_column[i].append((table.sum(axis=others), variance * summed))
