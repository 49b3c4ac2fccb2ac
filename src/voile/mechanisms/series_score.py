"""What an estimator from the histories of a series is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from voile.arrays import Floats
from voile.mechanisms.series import Counts

Scoring = Callable[[Counts], tuple[Floats, Floats]]
"""Histories to g, and to by how much the variance of a tuple with this history is above that of
an unseen one, in units of the latter."""


@dataclass(frozen=True)
class Scores:
    """An estimator, and what bounds its error: all for one tuple, in units of records."""

    name: str
    of: Scoring
    empty: float
    """g of a tuple that was never shown."""
    noise_variance: float
    kept_variance: float
    """The most by which a record raises the variance, and the least."""
    least_kept_variance: float
    scale: float
    noise_third: float
    kept_third: float
    drift: float = 0.0
    """The most that the coming or going of a record biases the estimate by."""
    changed_variance: float = 0.0
    """The most that it raises the variance by, beyond what the record counts for now."""
