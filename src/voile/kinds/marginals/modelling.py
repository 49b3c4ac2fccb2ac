"""From noisy marginals to a model with the law of its error, by the release alone.

The number of products is chosen by what the second half of a thinning says of models that were
fitted to the first; the law is learnt from the same two halves; the model of the release is then
fitted to all that was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from voile.kinds.marginals.errors import ErrorLaw, Halves, Trial, examined, learnt, thinned
from voile.kinds.marginals.mixture import Mixture, fit, together
from voile.kinds.marginals.residuals import Columns, NoisyMarginals
from voile.progress import Progress, Silent

TILT = 0.5
"""a of the thinning: the first half has 1 + a² times the variance of the whole."""
PRODUCTS = (25, 50, 100, 200)
"""How many products are tried."""
MEMBERS, STEPS = 3, 300
"""How many mixtures are averaged, and the steps of each descent."""
TRIALS = 1
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
    progress.start("fitting the model", (len(PRODUCTS) + MEMBERS) * STEPS)
    halves = thinned(noisy, TILT, rng)
    products, other = chosen(halves, seed, progress)
    members = [
        fit(noisy, products=products, steps=STEPS, seed=seed + place, progress=progress)
        for place in range(MEMBERS)
    ]
    mixture = together(members)
    trials = [Trial(members[0], halves.first, TILT, other)]
    for place in range(1, TRIALS):
        half = thinned(noisy, TILT, rng).first
        other = fit(half, products=products, steps=STEPS, seed=seed + place, progress=progress)
        trials.append(Trial(members[place], half, TILT, other))
    return Model(mixture, law_of(noisy, mixture, trials, rng))


def law_of(
    noisy: NoisyMarginals, mixture: Mixture, trials: Sequence[Trial], rng: np.random.Generator
) -> ErrorLaw:
    """The law of this mixture's error."""
    rows = float(noisy.residuals.get((), np.array(0.0)))
    tables = measured_tables(noisy)
    number = max(LEAST_SELECTIONS, SELECTIONS // max(1, len(tables)))
    error, shared = learnt(examined(noisy, mixture, trials, tables, number, rng), rows)
    cells = [noisy.cell_variance(c) ** 0.5 for c in tables]
    scale = float(np.median(cells)) if cells else 1.0
    return ErrorLaw(rows, max(scale, 1e-9), error, shared, tuple(4 * x for x in error))


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
