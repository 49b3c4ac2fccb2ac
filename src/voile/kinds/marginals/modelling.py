"""From noisy marginals to a model with the law of its error, by the release alone.

The number of products is chosen by what the second half of a thinning says of models that were
fitted to the first; the law is learnt from the same two halves; the model of the release is then
fitted to all that was measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from voile.kinds.marginals.errors import (
    CAUTION,
    FAR,
    FAR_GEOMETRIC,
    FEW,
    LEAST,
    NUMBER,
    ErrorLaw,
    Halves,
    Trial,
    drawn_selections,
    examined,
    learnt,
    left_out,
    thinned,
)
from voile.kinds.marginals.independence import with_independence
from voile.kinds.marginals.mixture import ProductMixture, fit, shrunk, together
from voile.kinds.marginals.residuals import Columns, NoisyMarginals, ResidualPlan
from voile.progress import Progress, Silent

TILT = 0.5
"""a of the thinning: the first half has 1 + a² times the variance of the whole."""
PRODUCTS, SURE = (6, 12, 25, 50, 100, 200, 400), 12
"""How many products are tried: up to `SURE` all, and then more for as long as it helps."""
MOST_STEPS, LEAST_STEPS = 300, 220
"""The steps of a descent: many where products times cells are few."""
WORK, LEAST_WORK, MOST_WORK = 1.4e10, 45_000, 9e10
"""Products times steps times cells, as a rule; products times steps that are allowed beyond the
rule; and products times steps times cells at most."""
MEMBERS = 2
"""How many mixtures are averaged."""
LEFT, MOST_LEFT, MOST_TABLES = 0.2, 50, 300
"""The share of the largest components that are left out to learn the law of others."""
SELECTIONS, LEAST_SELECTIONS, MOST_CELLS = 4000, 10, 1_000_000
"""On how many selections a law is learnt, on how many of each table, and on how many cells."""


@dataclass(frozen=True, eq=False)
class Model:
    """A mixture, and how far it is from the table."""

    mixture: ProductMixture
    law: ErrorLaw


@dataclass(frozen=True)
class Descent:
    """How a mixture is fitted."""

    products: int
    steps: int

    def fit(self, noisy: NoisyMarginals, seed: int, progress: Progress) -> ProductMixture:
        """From a beginning that depends on the seed."""
        supposed = with_independence(noisy)
        return fit(supposed, products=self.products, steps=self.steps, seed=seed, progress=progress)


def model_of(
    noisy: NoisyMarginals,
    *,
    noise: Literal["gaussian", "geometric"] = "gaussian",
    seed: int = 0,
    progress: Progress | None = None,
) -> Model:
    """The model of these marginals."""
    progress = progress or Silent()
    rng = np.random.default_rng((seed, 1))
    descents = tried(noisy)
    progress.start("fitting the model", sum(d.steps for d in descents) + 4 * descents[-1].steps)
    halves = thinned(noisy, TILT, rng)
    choice = chosen(halves, descents, seed, progress)
    members = [
        shrunk(choice.descent.fit(noisy, seed + place, progress), choice.share)
        for place in range(MEMBERS)
    ]
    mixture = together(members)
    trial = Trial(members[0], halves.first, TILT, choice.mixture)
    law = law_of(noisy, mixture, trial, halves, choice.descent, rng, progress)
    if not all(np.isfinite(part).all() for part in (mixture.weights, *mixture.parts)):
        raise RuntimeError("the model of the marginals is not finite")
    return Model(mixture, replace(law, far=FAR if noise == "gaussian" else FAR_GEOMETRIC))


def tried(noisy: NoisyMarginals) -> list[Descent]:
    """Mixtures of ever more products, as far as the work is bounded."""
    cells = max(1, sum(r.size for r in noisy.residuals.values()))
    work = max(WORK / cells, min(LEAST_WORK, MOST_WORK / cells))
    found: list[Descent] = []
    for products in PRODUCTS:
        steps = min(MOST_STEPS, int(work / products))
        if not found or steps >= LEAST_STEPS:
            found.append(Descent(products, max(steps, LEAST_STEPS)))
    return found


@dataclass(frozen=True, eq=False)
class Choice:
    """A descent, its model of the first half, and how that is shrunk to be nearest the second."""

    descent: Descent
    share: float
    mixture: ProductMixture
    distance: float


def chosen(halves: Halves, descents: Sequence[Descent], seed: int, progress: Progress) -> Choice:
    """The descent whose model of the first half is nearest to the second."""
    best: Choice | None = None
    for descent in descents:
        mixture = descent.fit(halves.first, seed, progress)
        share = independent_share(mixture, halves.second)
        mixture = shrunk(mixture, share)
        found = Choice(descent, share, mixture, distance(mixture, halves.second))
        if best is None or found.distance < best.distance:
            best = found
        elif descent.products > SURE:
            break
    assert best is not None  # noqa: S101  (one is always tried)
    return best


def law_of(
    noisy: NoisyMarginals,
    mixture: ProductMixture,
    trial: Trial,
    halves: Halves,
    descent: Descent,
    rng: np.random.Generator,
    progress: Progress,
) -> ErrorLaw:
    """The law of the mixture's error, within what was measured and beyond."""
    tables = some_tables(noisy, rng)
    number = max(LEAST_SELECTIONS, SELECTIONS // max(1, len(tables)))
    seen = examined(noisy, mixture, [trial], tables, number, rng)
    cells = [math.sqrt(noisy.cell_variance(c)) for c in tables]
    unit = max(float(np.median(cells)), LEAST) if cells else 1.0
    error, shared = learnt(seen, mixture.rows, unit)
    lesser = Descent(min(descent.products, MOST_LEFT), LEAST_STEPS)
    return ErrorLaw(
        rows=mixture.rows,
        rows_variance=noisy.plan.variances.get((), 0.0),
        unit=unit,
        scale=usual_deviation(noisy, tables, rng),
        error=error,
        shared=shared,
        unmeasured=beyond(noisy, halves, lesser, unit, error, rng, progress),
        order=max((len(c) for c in tables), default=0),
        caution=CAUTION * (1 + FEW / math.sqrt(max(1, sum(noisy.plan.cells(c) for c in tables)))),
    )


def some_tables(noisy: NoisyMarginals, rng: np.random.Generator) -> list[Columns]:
    """The measured tables; where their cells are very many, some of them."""
    tables = [c for c in noisy.plan.components if c]
    cells = np.array([noisy.plan.cells(c) for c in tables], np.float64)
    if cells.sum() <= MOST_CELLS:
        return tables
    order = rng.permutation(len(tables))
    kept = order[np.cumsum(cells[order]) <= MOST_CELLS]
    return [tables[i] for i in sorted(kept)] or [tables[int(np.argmin(cells))]]


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
    descent: Descent,
    unit: float,
    least: tuple[float, ...],
    rng: np.random.Generator,
    progress: Progress,
) -> tuple[float, ...]:
    """The law for tables that were not measured, from components that are left out of a fit."""
    order = max((len(c) for c in noisy.plan.components), default=0)
    top = [c for c in noisy.plan.components if len(c) == order]
    if order < 2:  # nothing was measured that tells how columns hang together
        return (*(0.0 for _ in range(NUMBER - 1)), 1.0)
    number = min(MOST_TABLES, max(1, round(LEFT * len(top))))
    without = [top[i] for i in sorted(rng.choice(len(top), number, replace=False))]
    mixture = descent.fit(reduced(halves.first, without), 0, progress)
    each = max(LEAST_SELECTIONS, SELECTIONS // number)
    seen = left_out(halves, noisy, mixture, without, each, rng)
    return learnt(seen, mixture.rows, unit, least)[0]


def reduced(noisy: NoisyMarginals, without: Sequence[Columns]) -> NoisyMarginals:
    """The same without these components."""
    gone = set(without)
    variances = {c: v for c, v in noisy.plan.variances.items() if c not in gone}
    residuals = {c: r for c, r in noisy.residuals.items() if c not in gone}
    return NoisyMarginals(ResidualPlan(noisy.plan.sizes, variances), residuals)


def independent_share(mixture: ProductMixture, noisy: NoisyMarginals) -> float:
    """How much of independent columns in a mixture brings it nearest to these marginals."""
    apart = step = 0.0
    independent = shrunk(mixture, 1.0)
    for c, residual in noisy.residuals.items():
        if len(c) > 1:
            model = mixture.component(c)
            way = (independent.component(c) - model) / noisy.plan.variances[c]
            apart += float((way * (residual - model)).sum())
            step += float((way * way).sum()) * noisy.plan.variances[c]
    return min(max(apart / step, 0.0), 1.0) if step > 0 else 0.0


def distance(mixture: ProductMixture, noisy: NoisyMarginals) -> float:
    """The weighted square distance of the model from measured components."""
    total = 0.0
    for c, residual in noisy.residuals.items():
        if c:
            off = mixture.component(c) - residual
            total += float((off * off).sum()) / noisy.plan.variances[c]
    return total
