"""Rows that are alone in their class, and how many of them are alone in the population too.

The population is not seen. Two models guess it from the sizes of the table's classes: Pitman's
(Hoshino 2001), whose two parameters are fitted by maximum likelihood, and Zayatz's (1991), which
takes the population's classes to be as large as the table's. Both take the table for a random
sample of the population. docs/mathematics has the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, gammaln

from voile.arrays import Floats

Counts = npt.NDArray[np.int64]

ASSUMPTION = "the table is a random sample of the population"


@dataclass(frozen=True)
class Uniqueness:
    """Rows that are alone in their class."""

    rows: int
    unique: int
    sampling_fraction: float | None = None
    population_unique: int | None = None
    """Counted in a population table: rows that are alone there too."""
    pitman: float | None = None
    """Estimated: how many of the rows are alone in the population."""
    zayatz: float | None = None

    @property
    def share(self) -> float:
        return self.unique / self.rows

    def to_dict(self) -> dict[str, Any]:
        estimated = None
        if self.sampling_fraction is not None:
            estimated = {
                "sampling_fraction": self.sampling_fraction,
                "assumption": ASSUMPTION,
                "pitman": self.pitman,
                "zayatz": self.zayatz,
            }
        return {
            "sample_unique": self.unique,
            "share": self.share,
            "population_unique": self.population_unique,
            "estimated": estimated,
        }


def uniqueness(
    rows: Counts, population: Counts | None, sampling_fraction: float | None
) -> Uniqueness:
    """Of classes with these rows; the population is counted where it is known."""
    alone = rows == 1
    counted = None if population is None else int((alone & (population <= 1)).sum())
    there = rows[rows > 0]
    n, unique = int(there.sum()), int(alone.sum())
    if sampling_fraction is None:
        return Uniqueness(n, unique, None, counted)
    sizes, classes = np.unique(there, return_counts=True)
    pitman = pitman_unique(sizes, classes, sampling_fraction)
    zayatz = zayatz_unique(sizes, classes, sampling_fraction)
    return Uniqueness(n, unique, sampling_fraction, counted, pitman, zayatz)


def zayatz_unique(sizes: Counts, classes: Counts, fraction: float) -> float:
    """Uniques, times the chance that a class of one row is one of a population class of one."""
    unique = int(classes[sizes == 1].sum())
    if not unique or fraction == 1:
        return float(unique)
    one_seen = sizes * fraction * np.exp((sizes - 1) * np.log1p(-fraction))
    return float(unique * unique * fraction / (classes * one_seen).sum())


def pitman_unique(sizes: Counts, classes: Counts, fraction: float) -> float:
    """How many of the rows are expected to be alone in a population of Pitman's model."""
    unique = int(classes[sizes == 1].sum())
    if not unique or unique == classes.sum() or fraction == 1:  # nothing to fit, or to find
        return float(unique)
    theta, alpha = fitted(sizes, classes)
    people = float((sizes * classes).sum()) / fraction
    return min(float(unique), fraction * expected_unique(theta, alpha, people))


def fitted(sizes: Counts, classes: Counts) -> tuple[float, float]:
    """θ and α of largest likelihood, with α between 0 and 1 and θ above 0."""

    def loss(point: Floats) -> float:
        return -log_likelihood(float(np.exp(point[0])), float(expit(point[1])), sizes, classes)

    starts = [(np.log(max(1.0, classes.sum())), 0.0), (0.0, 0.0)]
    tries = [minimize(loss, np.array(s), method="Nelder-Mead") for s in starts]
    best = min(tries, key=lambda found: float(found.fun))
    return float(np.exp(best.x[0])), float(expit(best.x[1]))


def log_likelihood(theta: float, alpha: float, sizes: Counts, classes: Counts) -> float:
    """Of a partition with `classes[i]` classes of `sizes[i]` rows, up to a constant."""
    n, u = float((sizes * classes).sum()), float(classes.sum())
    new = (u - 1) * np.log(alpha) + gammaln(theta / alpha + u) - gammaln(theta / alpha + 1)
    again = (classes * (gammaln(sizes - alpha) - gammaln(1 - alpha))).sum()
    return float(new + again - gammaln(theta + n) + gammaln(theta + 1))


def expected_unique(theta: float, alpha: float, n: float) -> float:
    """Classes of one among n: n times the chance that nobody joins the first."""
    joined = gammaln(theta + alpha + n - 1) - gammaln(theta + alpha)
    seated = gammaln(theta + n) - gammaln(theta + 1)
    return float(n * np.exp(joined - seated))
