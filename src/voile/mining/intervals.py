"""Intervals of shares and of ratios of estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass


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


def share(count: float, stderr: float, rows: int, deviations: float) -> Bounded:
    """A count as a share of all rows; shares are from 0 to 1, and so is the interval."""
    off = deviations * stderr
    low, high = ((count - off) / rows, (count + off) / rows)
    return Bounded(count / rows, min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0))


def ratio(
    part: float, whole: float, errors: tuple[float, float, float], deviations: float
) -> Bounded:
    """part/whole after Fieller, within [0, 1]; `errors` are of the part, of the rest, of the whole.

    θ is believable if part − θ·whole is within so many standard errors of 0. As the rest is the
    whole less the part, the covariance of part and whole is (s² + t² − r²)/2 with their errors
    s and t and the error r of the rest. Where the whole may be 0 all ratios are believable.
    """
    own, rest, of_whole = (error**2 for error in errors)
    covariance = (own + of_whole - rest) / 2
    z = deviations**2
    # (whole² − z·t²)·θ² − 2·(part·whole − z·cov)·θ + (part² − z·s²) ≤ 0
    a = whole**2 - z * of_whole
    b = part * whole - z * covariance
    c = part**2 - z * own
    estimate = min(max(part / whole, 0.0), 1.0) if whole > 0 else 0.0
    if a <= 0 or whole <= 0:
        return Bounded(estimate, 0.0, 1.0)
    root = math.sqrt(max(b * b - a * c, 0.0))
    low, high = (b - root) / a, (b + root) / a
    return Bounded(estimate, min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0))
