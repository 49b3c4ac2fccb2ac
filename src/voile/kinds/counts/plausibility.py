"""Whether noisy tables agree as closely as their noise lets them, and no closer.

Tables that share a column count the same people by it. What they say of one value differs by noise
of a known variance, since every figure has noise of its own. With x_i the tables' counts of a
column's values, v_i the variances of these sums, and x̄ their weighted mean,
Q = Σ_i Σ_v (x_iv − x̄_v)²/v_i has the law of χ² with (tables − 1)·values degrees of freedom. Where
the number of rows is public, each table's total is compared with it as well.

From above the bound holds for every noise whose tails a variance bounds: the binomial law's own, σ²
of the discrete Gaussian law (Hsu, Kakade and Zhang, 2012). From below it is Chernoff's for normal
noise, of which every sum is taken to be rounded to the nearest whole number. Tables that agree too
well had no noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from voile.arrays import Floats
from voile.kinds.plausibility import Surprise, judge

if TYPE_CHECKING:
    from voile.kinds.counts.release import ConjunctRelease


def check_tables_agree(release: ConjunctRelease) -> bool:
    """Refuse tables that agree too well or too badly; False where there is nothing to compare."""
    law = release.manifest.law
    # Discrete Gaussian noise has the tails of σ², and where σ is small far less variance.
    above = float(law.parameter) ** 2 / float(law.variance) if law.kind == "gaussian" else 1.0
    found = [replace(one, proxy=max(1.0, above)) for one in comparisons(release)]
    judge([tails(one) for one in found])
    return bool(found)


@dataclass(frozen=True)
class TableAgreement:
    """What is compared: Q, its degrees of freedom, and what rounding by 1 adds to √Q at most."""

    what: str
    q: float
    degrees: int
    rounding: float
    proxy: float = 1.0
    """By how much the variance that bounds the noise's tails exceeds its own."""


def comparisons(release: ConjunctRelease) -> Iterator[TableAgreement]:
    """Of the totals, and for each column of what tables count by it."""
    sides = 2 if release.manifest.parameters.halves else 1
    noise = float(release.manifest.law.variance) * sides
    totals: list[tuple[Floats, float]] = []
    marginals: dict[str, list[tuple[Floats, float]]] = {name: [] for name in release.schema.names}
    for some in release.manifest.sets:
        counts = release.counts(some)
        shape = [release.schema[name].size for name in some]
        for whole in counts.sum(axis=1) if sides > 1 else counts:
            table = whole.reshape(shape).astype(np.float64)
            totals.append((table.sum(keepdims=True).ravel(), noise * table.size))
            for axis, name in enumerate(some):
                others = tuple(i for i in range(len(some)) if i != axis)
                marginals[name].append((table.sum(axis=others), noise * table.size / shape[axis]))
    yield comparison("their totals", totals, np.array([float(release.rows)]))
    for name, listed in marginals.items():
        if len(listed) > 1:
            yield comparison(f"what they count by {name}", listed)


def comparison(
    what: str, listed: list[tuple[Floats, float]], truth: Floats | None = None
) -> TableAgreement:
    """Counts of the same values with their variances, against the truth or their weighted mean."""
    counts = np.stack([x for x, _ in listed])
    weights = np.array([1 / v for _, v in listed])[:, None]
    mean = (weights * counts).sum(axis=0) / weights.sum() if truth is None else truth
    q = float((weights * (counts - mean) ** 2).sum())
    degrees = counts.size - (counts.shape[1] if truth is None else 0)
    return TableAgreement(what, q, degrees, math.sqrt(float(weights.sum()) * counts.shape[1]))


def tails(one: TableAgreement) -> Surprise:
    """ln P of a Q so small or so large, at most."""
    share = (math.sqrt(one.q) + one.rounding) ** 2 / one.degrees
    if share < 1:  # P(χ² ≤ k·x) ≤ (x·e^(1−x))^(k/2)
        chance = one.degrees / 2 * (math.log(share) + 1 - share)
        return Surprise(f"{one.what} agree too well", chance + math.log(2))
    q = one.q / one.proxy
    if q <= one.degrees:
        return Surprise(f"{one.what} agree", 0.0)
    # P(Q ≥ k + 2√(kt) + 2t) ≤ e^−t
    root = (math.sqrt(2 * q - one.degrees) - math.sqrt(one.degrees)) / 2
    return Surprise(f"{one.what} differ too much", math.log(2) - root**2)
