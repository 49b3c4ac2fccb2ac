"""The error to expect of noisy marginals, from public numbers alone: before and after publishing.

What is computed is the noise of the unbiased tables. The model makes small counts far more exact;
by how much depends on the table, and is learnt once there is a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from voile.kinds.marginals.measuring import MeasurementPlan
from voile.kinds.marginals.residuals import NoisyMarginals
from voile.records import Record

if TYPE_CHECKING:
    from voile.kinds.marginals.errors import ErrorLaw

MATTERS = 0.01
"""The share of the rows that a count has which matters."""


@dataclass(frozen=True)
class ExpectedNoise(Record):
    """How far the counts of tables of so many columns are off."""

    columns: int
    noise: float
    """The standard error of a cell, in the middle table."""
    relative: float | None
    """The same, of a count that holds a hundredth of the rows; None where there are none."""
    weighed: float | None = None
    """The standard error of such a count from tables and model, once there is a model."""


def expected_noise(
    plan: MeasurementPlan, rows: float, law: ErrorLaw | None = None
) -> list[ExpectedNoise]:
    """For tables of one column, of two, and so on."""
    found = plan.residual_plan()
    empty = NoisyMarginals(found, {})
    sizes = sorted({len(c) for c in found.variances if c})
    return [of_size(empty, columns, rows, law) for columns in sizes]


def of_size(
    noisy: NoisyMarginals, columns: int, rows: float, law: ErrorLaw | None
) -> ExpectedNoise:
    """The middle of all tables of so many columns."""
    tables = [c for c in noisy.plan.variances if len(c) == columns]
    noise = median(noisy.cell_variance(c) ** 0.5 for c in tables)
    if rows <= 0:
        return ExpectedNoise(columns, noise, None)
    weighed = None
    if law is not None:
        count = np.array([MATTERS * rows])
        weighed = float(law.weighed(count, count, np.array([noise**2]))[1][0] ** 0.5)
    return ExpectedNoise(columns, noise, noise / (MATTERS * rows), weighed)


def worst(found: Sequence[ExpectedNoise]) -> float | None:
    """The largest relative error of those that are known."""
    return max((one.relative for one in found if one.relative is not None), default=None)
