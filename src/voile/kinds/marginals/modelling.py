"""From noisy marginals to a model with the law of its error, by the release alone.

The number of products is chosen by what the second half of a thinning says of models that were
fitted to the first; the law is learnt from the same two halves; the model of the release is then
fitted to all that was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from voile.kinds.marginals.errors import (
    LEAST,
    TURNS,
    ErrorLaw,
    Halves,
    Trial,
    drawn_selections,
    examined,
    learnt,
    left_out,
    thinned,
)
from voile.kinds.marginals.mixture import Mixture, fit, together
from voile.kinds.marginals.residuals import Columns, NoisyMarginals, ResidualPlan
from voile.progress import Progress, Silent

TILT = 0.5
"""a of the thinning: the first half has 1 + a² times the variance of the whole."""
PRODUCTS = (25, 50, 100, 200)
"""How many products are tried."""
MEMBERS, STEPS = 2, 300
"""How many mixtures are averaged, and the steps of each descent."""
LEFT, MOST_LEFT, MOST_TABLES = 0.2, 100, 300
"""The share of the largest components that are left out to learn the law of others."""
SELECTIONS, LEAST_SELECTIONS = 4000, 10
"""On how many selections of values a law is learnt, and on how many of each table."""


@dataclass(frozen=True, eq=False)
class Model:
    """A mixture, and how far it is from the table."""

    mixture: Mixture
    law: ErrorLaw


def model_of(noisy: NoisyMarginals, *, seed: int = 0, progress: Progress | None = None) -> Model:
    """The model of these marginals."""
    progress = progress or Silent()
    rng = np.random.default_rng((seed, 1))
    progress.start("fitting the model", (len(PRODUCTS) + MEMBERS + 1) * STEPS)
    halves = thinned(noisy, TILT, rng)
    products, other = chosen(halves, seed, progress)
    members = [
        fit(noisy, products=products, steps=STEPS, seed=seed + place, progress=progress)
        for place in range(MEMBERS)
    ]
    mixture = together(members)
    trial = Trial(members[0], halves.first, TILT, other)
    rows = float(noisy.residuals.get((), np.array(0.0)))
    tables = measured_tables(noisy)
    number = max(LEAST_SELECTIONS, SELECTIONS // max(1, len(tables)))
    error, shared = learnt(examined(noisy, mixture, [trial], tables, number, rng), rows)
    scale = usual_deviation(noisy, tables, rng)
    fitter = partial(fit, products=min(products, MOST_LEFT), steps=STEPS, progress=progress)
    unmeasured = beyond(noisy, halves, fitter, error, rng)
    order = max((len(c) for c in tables), default=0)
    return Model(mixture, ErrorLaw(rows, scale, error, shared, unmeasured, order))


def usual_deviation(
    noisy: NoisyMarginals, tables: Sequence[Columns], rng: np.random.Generator
) -> float:
    """The median standard deviation of a selection on the largest tables."""
    order = max((len(c) for c in tables), default=0)
    top = [c for c in tables if len(c) == order]
    if not top:
        return 1.0
    some = [top[i] for i in rng.choice(len(top), min(len(top), MOST_TABLES), replace=False)]
    sizes = noisy.plan.sizes
    found = [drawn_selections(sizes, c, 10, rng).variances(noisy.plan) for c in some]
    return max(math.sqrt(float(np.median(np.concatenate(found)))), LEAST)


def beyond(
    noisy: NoisyMarginals,
    halves: Halves,
    fitter: Callable[[NoisyMarginals], Mixture],
    least: tuple[float, ...],
    rng: np.random.Generator,
) -> tuple[float, ...]:
    """The law for tables that were not measured, from components that are left out of a fit."""
    order = max((len(c) for c in noisy.plan.components), default=0)
    top = [c for c in noisy.plan.components if len(c) == order]
    if order < 2:  # nothing was measured that tells how columns hang together
        return (*(0.0 for _ in TURNS), 1.0, 1.0)
    number = min(MOST_TABLES, max(1, round(LEFT * len(top))))
    without = [top[i] for i in sorted(rng.choice(len(top), number, replace=False))]
    mixture = fitter(reduced(halves.first, without))
    rows = float(noisy.residuals.get((), np.array(0.0)))
    each = max(LEAST_SELECTIONS, SELECTIONS // number)
    return learnt(left_out(halves, noisy, mixture, without, each, rng), rows, least)[0]


def reduced(noisy: NoisyMarginals, without: Sequence[Columns]) -> NoisyMarginals:
    """The same without these components."""
    gone = set(without)
    variances = {c: v for c, v in noisy.plan.variances.items() if c not in gone}
    residuals = {c: r for c, r in noisy.residuals.items() if c not in gone}
    return NoisyMarginals(ResidualPlan(noisy.plan.sizes, variances), residuals)


def chosen(halves: Halves, seed: int, progress: Progress) -> tuple[int, Mixture]:
    """The number of products whose model of the first half is nearest to the second."""
    best: tuple[float, int, Mixture] | None = None
    for products in PRODUCTS:
        mixture = fit(halves.first, products=products, steps=STEPS, seed=seed, progress=progress)
        far = distance(mixture, halves.second)
        if best is not None and far >= best[0]:
            break
        best = far, products, mixture
    assert best is not None  # noqa: S101  (PRODUCTS is not empty)
    return best[1], best[2]


def distance(mixture: Mixture, noisy: NoisyMarginals) -> float:
    """The weighted square distance of the model from measured components."""
    total = 0.0
    for c, residual in noisy.residuals.items():
        if c:
            off = mixture.component(c) - residual
            total += float((off * off).sum()) / noisy.plan.variances[c]
    return total


def measured_tables(noisy: NoisyMarginals) -> list[Columns]:
    """All tables that the measured components rebuild."""
    return [c for c in noisy.plan.components if c]
