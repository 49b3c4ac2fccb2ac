"""Estimates from the histories of a series, as answering asks for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from voile.arrays import Floats
from voile.mechanisms.deviation import SPENT_ON_VARIANCE, Coins, bernstein_bound, normal_bound
from voile.mechanisms.series_score import Scores


@dataclass(frozen=True)
class ScoredCoins(Coins):
    """Coins of which some fell for records that were there once and are not now, or the reverse."""

    least_kept_variance: float = 0.0
    drift: float = 0.0
    """The most that the estimate of Σ w is off on average, for |w| ≤ 1."""
    changed: float = 0.0
    """Records that came or went, at most."""
    changed_variance: float = 0.0

    def deviation(
        self, view: Floats, domain: Floats, spread: Floats, largest: Floats, miss: float
    ) -> Floats:
        """|estimate − Σ_I w| is at most this, but for a chance of `miss`."""
        spent = SPENT_ON_VARIANCE * miss
        least, most = self._members(view, domain, spread, largest, math.log(2 / spent))
        square = largest**2
        least = np.maximum(least - self.drift * square, 0.0)
        most = most + self.drift * square
        noise, changed = self.noise_variance * spread, self.changed * square
        up, down = self.kept_variance, self.least_kept_variance
        high = noise + up * (most if up > 0 else least) + changed * self.changed_variance
        low = noise - changed * self.noise_variance + down * (least if down > 0 else most)
        third = largest * (self.kept_third * (most + changed) + self.noise_third * spread)
        left = miss - spent
        found = np.minimum(
            bernstein_bound(np.maximum(high, 0.0), self.scale * largest, math.log(2 / left)),
            normal_bound(np.maximum(low, 0.0), np.maximum(high, 0.0), third, left),
        )
        return np.where(spread <= 0, 0.0, found + self.drift * largest)


@dataclass(frozen=True)
class Scored:
    """An estimator of a series, where at most `changes` records came or went since its start."""

    scores: Scores
    retention: float
    changes: int = 0

    @property
    def name(self) -> str:
        return self.scores.name

    @property
    def drift(self) -> float:
        """The most that a count is off on average, because of what changed between views."""
        return self.scores.drift * self.changes

    @cached_property
    def coins(self) -> ScoredCoins:
        s = self.scores
        return ScoredCoins(
            excess=1.0,
            noise_mean=-s.empty,
            kept_variance=s.kept_variance,
            noise_variance=s.noise_variance,
            scale=s.scale,
            kept_third=s.kept_third,
            noise_third=s.noise_third,
            least_kept_variance=s.least_kept_variance,
            drift=self.drift,
            changed=self.changes,
            changed_variance=s.changed_variance,
        )

    def total(self, view: Floats, domain: Floats) -> Floats:
        """Σ w over the table, from Σ score·w over shown tuples and Σ w over the domain."""
        return view + self.scores.empty * domain

    def variance(self, members: Floats | float, spread: Floats | float) -> Floats:
        return self.coins.variance(members, spread)

    def deviation(
        self, view: Floats, domain: Floats, spread: Floats, largest: Floats, miss: float
    ) -> Floats:
        return self.coins.deviation(view, domain, spread, largest, miss)

    def domain_share(self, error: Floats) -> Floats:
        return abs(self.scores.empty) * error

    def facts(self) -> dict[str, float]:
        return {"retention": self.retention, "noise_mean": -self.scores.empty, "excess": 1.0}

    def arithmetic(self, view: float, domain: float, *, whole: bool) -> str:
        d = f"{domain:,.0f}" if whole else f"{domain:,.6g}"
        return (
            f"(sum of scores of the histories) - noise_mean * n_domain = {view:,.6g} - "
            f"{-self.scores.empty:.6g} * {d} = {view + self.scores.empty * domain:,.2f}"
        )
