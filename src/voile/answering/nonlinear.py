"""Intervals of what is neither a sum nor a ratio: variances, and formulas that bend.

**A variance** s² of n values with mean m: at the true s², U = Σ (x − m)² − s²·(n − 1) is 0, and its
estimate is off by no more than its bound, as Fieller's ratio is. m is estimated as well. What is
computed with m̂ is U less n·(m̂ − m)², whose mean is n·Var(m̂) and whose standard deviation is √2
times that; both are taken into account.

**Anything else** f(T), with T̂ − T of covariance C, slopes g and curvature H at T̂: to second order,

  f̂ − f has the mean b = tr(HC)/2 and the variance s² = gᵀCg + tr(HCHC)/2,

and where f̂ is large so is its stated error, if Q = gᵀCHCg > 0. Cornish and Fisher's expansion of
the studentized error gives f̂ − b + Q·(z² + 1)/(2s²) ± z·s. For f = T² it is (T̂ ± z)².
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from voile.arrays import Floats
from voile.query.aggregate import Call, Constant, Formula, Total, divided, minus, times
from voile.query.predicate import Term

STEP = 0.1
"""Standard errors by which a total is moved, to see how much the slopes change."""

RISING: dict[str, tuple[Callable[[Floats], Floats], float]] = {
    "sqrt": (np.sqrt, 0.0),
    "ln": (np.log, 0.0),
    "exp": (np.exp, -np.inf),
}
"""Functions that rise, and from where on: their interval is that of their argument."""


# ---------------------------------------------------------------------- variances


@dataclass(frozen=True)
class VarianceForm:
    """(Σx² − (Σx)²/n) / (n − less)."""

    square: Term
    mean: Term
    size: Term
    less: float

    @property
    def terms(self) -> tuple[Term, Term, Term]:
        """Σx², Σx and n."""
        return self.square, self.mean, self.size

    @property
    def average(self) -> Formula:
        """m."""
        return divided(Total(self.mean), Total(self.size))


def as_variance(formula: Formula) -> VarianceForm | None:
    """The formula as the variance of one value, if it is one."""
    if not isinstance(formula, Call) or formula.name != "/":
        return None
    top, bottom = formula.args
    less = 0.0
    if isinstance(bottom, Call) and bottom.name == "-" and bottom.args[1] == Constant(1):
        bottom, less = bottom.args[0], 1.0
    if not isinstance(bottom, Total) or not isinstance(top, Call) or top.name != "-":
        return None
    square, product = top.args
    if not isinstance(square, Total) or len(square.term.values) != 2:
        return None
    first, second = square.term.values
    mean = Total(Term(square.term.predicate, (first,)))
    same = first == second and minus(square, divided(times(mean, mean), bottom)) == top
    return VarianceForm(square.term, mean.term, bottom.term, less) if same and product else None


# ---------------------------------------------------------------------- formulas that bend


@dataclass(frozen=True)
class Bent:
    """What second order says of a formula, for each group."""

    value: Floats
    bias: Floats
    spread: Floats
    lean: Floats
    """Q/(2s²)."""

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        """Cornish and Fisher's, of the studentized error."""
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        middle = self.value - self.bias + self.lean * (z**2 + 1)
        off = z * self.spread
        return np.fmin(middle - off, self.value), np.fmax(middle + off, self.value)


def bent(
    slopes: Callable[[Floats], Floats],
    value: Floats,
    totals: Floats,
    covariances: Floats,
    stderr: Floats,
) -> Bent:
    """The formula with these slopes, (groups, terms), at the totals.

    Covariances of totals whose errors are learnt one by one need not agree with each other: what
    they make of the formula is no less than its standard error.
    """
    slope = slopes(totals)
    curvature = np.zeros_like(covariances)
    for i in range(totals.shape[1]):
        step = np.zeros_like(totals)
        step[:, i] = STEP * np.sqrt(np.maximum(covariances[:, i, i], 0.0))
        size = np.where(step[:, i] > 0, 2 * step[:, i], 1.0)
        curvature[:, i] = (slopes(totals + step) - slopes(totals - step)) / size[:, None]
    curvature = np.nan_to_num((curvature + curvature.swapaxes(1, 2)) / 2, posinf=0.0, neginf=0.0)
    spread_by = np.einsum("gij,gj->gi", covariances, slope)
    turned = np.einsum("gij,gjk->gik", curvature, covariances)
    first = np.fmax(np.einsum("gi,gi->g", slope, spread_by), stderr**2)
    second = np.einsum("gij,gji->g", turned, turned) / 2
    variance = np.maximum(first, 0.0) + np.maximum(second, 0.0)
    lean = np.einsum("gi,gij,gj->g", spread_by, curvature, spread_by)
    return Bent(
        value=value,
        bias=np.einsum("gii->g", turned) / 2,
        spread=np.sqrt(variance),
        lean=np.divide(lean, 2 * variance, out=np.zeros_like(lean), where=variance > 0),
    )
