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
from voile.kinds.marginals.place_sums import STEPS
from voile.kinds.marginals.residuals import centred
from voile.kinds.plausibility import Surprise, judge, lower_tail, upper_tail

if TYPE_CHECKING:
    from voile.kinds.marginals.release import MarginalRelease

LONG_TAILS = 2.0
"""By how much the variance is enlarged that bounds the tails of sums of geometric noise."""
FAR_OUT = 10.0
"""Standard deviations by which a total of 64 cells or more is off once in 10¹¹ (Bernstein)."""
LOOK_TAILS = 8.0
"""The same of a few draws that are not summed: e^(−x/b) of geometric noise falls slowly."""
FEWEST_CELLS = 64
"""Cells whose geometric noise is summed where sums are compared."""


def check_noise(release: MarginalRelease) -> bool:
    """Refuse figures with too little noise or too much; False where none can be seen."""
    plan, figures, names = release.manifest.plan, release.figures, release.schema.names
    found = surprises(plan, figures, names, release.manifest.parameters.rows_figure)
    found += of_places(release)
    judge(found)
    return bool(found)


def surprises(
    plan: MeasurementPlan, figures: list[Ints], names: list[str], look: int | None = None
) -> list[Surprise]:
    """All that is looked at, with its chance."""
    looked = of_components if plan.noise == "gaussian" else of_tables
    found = [tails(one) for one in looked(plan, figures, names)]
    found += [tails(one) for one in of_rows(plan, figures, look)]
    if plan.noise == "geometric":
        found += below_zero(plan, figures, names)
    return found


def of_places(release: MarginalRelease) -> list[Surprise]:
    """Sums of places: none is beyond what all rows of its bin could add, but for noise.

    Bins of one whole number add nothing: there the figure is noise alone.
    """
    plan, manifest = release.manifest.plan, release.manifest
    found = []
    for one, sums in zip(plan.places, release.place_sums, strict=True):
        name = release.schema.names[one.column]
        noise = math.sqrt(plan.place_variance(one))
        table = (one.column,)
        known = table in release.noisy.plan.variances
        counts = release.noisy.table(table)[: one.bins] if known else np.full(one.bins, np.inf)
        spread = math.sqrt(release.noisy.cell_variance(table)) if known else 0.0
        most = (np.maximum(counts, 0.0) + FAR_OUT * spread) / 2
        places = manifest.places[name]
        if places.whole:
            most = np.where(places.widths <= 1, 0.0, most)
        excess = np.maximum(np.abs(sums / STEPS) - most, 0.0) / noise
        found.append(far_out(f"the means within bins of {name}", excess, plan.noise))
        alone = sums[most == 0] / STEPS
        if len(alone) and plan.noise == "gaussian":
            words = f"the sums of places in bins of one number of {name}"
            q = float((alone**2).sum()) / noise**2
            found.append(tails(TableAgreement(words, q, len(alone), 0.0)))
    return found


def far_out(what: str, excess: Floats, noise: str) -> Surprise:
    """The chance of the largest of some draws, in standard deviations."""
    largest = float(excess.max(initial=0.0))
    each = -(largest**2) / 2 if noise == "gaussian" else -math.sqrt(2) * largest
    chance = min(0.0, each + math.log(2 * max(1, len(excess))))
    return Surprise(f"{what} are larger than their rows allow", chance)


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


def of_rows(
    plan: MeasurementPlan, figures: list[Ints], look: int | None
) -> Iterator[TableAgreement]:
    """The first look at the number of rows, against the mean of the tables' totals."""
    if look is None or plan.rows_scale is None:
        return
    listed = [
        (float(figure.sum()), plan.figure_variance(m) * figure.size)
        for m, figure in zip(plan.measurements, figures, strict=True)
        if plan.noise == "geometric" or not m.columns
    ]
    own = plan.figure_variance(Measurement((), plan.rows_scale))
    if not listed or own == 0 or not all(variance for _, variance in listed):
        return
    known = math.fsum(1 / variance for _, variance in listed)
    mean = math.fsum(total / variance for total, variance in listed) / known
    pair = [(np.array([float(look)]), own), (np.array([mean]), 1 / known)]
    yield replace(comparison("the look at the rows and the totals", pair), proxy=LOOK_TAILS)


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
