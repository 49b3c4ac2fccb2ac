"""What a model may suppose where little or nothing was measured: that columns are independent.

A mixture that is fitted to measured components alone has, on other pairs of columns, whatever it
began with; on measured pairs it follows their noise. Both are mended before the fit, from the noisy
figures alone:

- a pair that was not measured becomes that of independent columns, with a deviation of SUPPOSED of
  the rows, spread over its cells;
- a measured pair is drawn towards independent columns as far as its own noise warrants (James and
  Stein): with s² the variance of its noise and t² that of the pair about independence, as the
  figures show it, the part s²/(s² + t²) of the way.

Unbiased tables stay what they are: this is for the fit only. Where three columns were measured
together pairs are left alone: there it did not help (docs/decisions, 25).
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from voile.arrays import Floats
from voile.kinds.marginals.residuals import Columns, NoisyMarginals, ResidualPlan

SUPPOSED = 0.02
"""How far, in parts of the rows, a pair that was not measured is from independent columns."""
LEAST = 0.1
"""Of the noise's variance: no pair is supposed to be nearer to independent columns."""
LEAST_VARIANCE = 1e-2
"""Of a component: counts are whole, and a descent that weighs by 1/variance must not overflow."""


def with_independence(noisy: NoisyMarginals) -> NoisyMarginals:
    """The components that a model is fitted to."""
    plan = noisy.plan
    rows = max(1.0, float(noisy.residuals.get((), np.array(1.0))))
    singles = {i: _single(noisy, i, rows) for i, size in enumerate(plan.sizes) if size > 1}
    variances, residuals = dict(plan.variances), dict(noisy.residuals)
    shrinks = max(map(len, variances), default=0) <= 2
    for pair in combinations(singles, 2):
        supposed = np.outer(singles[pair[0]], singles[pair[1]]) / rows
        if pair not in variances:
            variances[pair] = (SUPPOSED * rows) ** 2 / plan.cells(pair)
            residuals[pair] = supposed
        elif shrinks:
            residuals[pair], variances[pair] = _drawn(noisy, pair, supposed)
    floored = {c: max(v, LEAST_VARIANCE) for c, v in variances.items()}
    return NoisyMarginals(ResidualPlan(plan.sizes, floored), residuals)


def _single(noisy: NoisyMarginals, column: int, rows: float) -> Floats:
    """A column's counts, none below 0, less their mean."""
    counts = np.maximum(noisy.table((column,)), 0)
    total = float(counts.sum())
    share = counts / total if total > 0 else np.full(len(counts), 1 / len(counts))
    return np.asarray(rows * (share - 1 / len(counts)))


def _drawn(noisy: NoisyMarginals, pair: Columns, supposed: Floats) -> tuple[Floats, float]:
    """A measured pair and its variance, drawn towards independent columns."""
    free = math.prod(noisy.plan.sizes[i] - 1 for i in pair)
    measured, noise = noisy.residuals[pair], noisy.plan.variances[pair]
    if not noise:
        return measured, noise
    off = float(((measured - supposed) ** 2).sum()) / free
    true = max(off - noise, LEAST * noise)
    kept = true / (true + noise)
    return kept * measured + (1 - kept) * supposed, kept * noise
