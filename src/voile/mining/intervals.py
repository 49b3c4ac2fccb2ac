"""Intervals of shares and of ratios of estimates, many at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.answering.columns import edge
from voile.answering.local.estimator import deviation
from voile.answering.local.joint import JointCounts
from voile.arrays import Floats

Ends = tuple[Floats, Floats]
"""The lower and the upper ends of intervals."""


@dataclass(frozen=True)
class Bounded:
    """An estimate, and the ends of an interval for the truth."""

    estimate: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float | None]:
        """Plain data for JSON, which has no infinity: no upper end is null."""
        high = self.high if math.isfinite(self.high) else None
        return {"estimate": self.estimate, "low": self.low, "high": high}


def bounded(estimates: Floats, ends: Ends) -> list[Bounded]:
    """Estimates with their intervals; one that inversion did not make may lie outside of its."""
    low, high = np.fmin(ends[0], estimates), np.fmax(ends[1], estimates)
    return [Bounded(*map(float, row)) for row in zip(estimates, low, high, strict=True)]


def shares(counts: JointCounts, rows: int, miss: float) -> Ends:
    """Counts as shares of all rows; shares are from 0 to 1, and so are the intervals."""
    off = counts.deviation(miss)
    low, high = (counts.unbiased - off) / rows, (counts.unbiased + off) / rows
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


@np.errstate(all="ignore")
def ratios(part: JointCounts, rest: JointCounts, whole: JointCounts, miss: float) -> Ends:
    """part/whole after Fieller, within [0, 1]; the rest is the whole less the part.

    θ is believable if (1−θ)·part − θ·rest, of which the truth is then 0, may be so far off. Where
    the whole may be 0, all ratios are believable.
    """
    variance, squares = (
        (of_part, of_rest, (of_whole - of_part - of_rest) / 2)
        for of_part, of_rest, of_whole in (
            (part.variance, rest.variance, whole.variance),
            (part.squares, rest.squares, whole.squares),
        )
    )

    def form(theta: Floats, of: tuple[Floats, Floats, Floats]) -> Floats:
        return (1 - theta) ** 2 * of[0] + theta**2 * of[1] - 2 * theta * (1 - theta) * of[2]

    def outside(theta: Floats) -> npt.NDArray[np.bool_]:
        most, widest = (
            np.abs(1 - theta) * of_part + np.abs(theta) * of_rest
            for of_part, of_rest in ((part.part, rest.part), (part.widest, rest.widest))
        )
        second = np.maximum(form(theta, squares), 0.0)
        off = deviation(form(theta, variance), second, most, widest, miss)
        return np.asarray(np.abs(part.unbiased - theta * whole.unbiased) > off)

    middle = part.unbiased / whole.unbiased
    step = np.abs(middle) * 1e-3 + 1e-9
    low, high = -edge(outside, -middle, step, -1.0), edge(outside, middle, step, 1.0)
    anything = whole.unbiased <= whole.deviation(miss)
    return (
        np.where(anything, 0.0, np.clip(low, 0.0, 1.0)),
        np.where(anything, 1.0, np.clip(high, 0.0, 1.0)),
    )


@np.errstate(all="ignore")
def quotients(top: Ends, bottom: Ends) -> Ends:
    """Of what lies in one interval and what lies in another; ∞ where the bottom may be 0."""
    low = np.where(bottom[1] > 0, top[0] / bottom[1], 0.0)
    return low, np.where(bottom[0] > 0, top[1] / bottom[0], math.inf)
