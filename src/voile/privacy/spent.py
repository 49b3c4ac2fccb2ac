"""What was spent on looking at a table, in parts that compose: Gaussian, pure, and failures.

Several looks together are (ε, δ)-differentially private with

    ε = Σ ε_pure + ε_gdp(√Σμ², δ − Σδ),

whatever one look shows to the next. Gaussian parts compose by √Σμ² (Dong, Roth, Su, 2022); a part
that is private except with probability δ adds that δ, and is not multiplied by e^ε, for it fails
independently of the noise of the others. Proof: docs/mathematics, section 43.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from voile.privacy.gaussian import composed, epsilon_of, mu_for

__all__ = ["NOTHING", "Spent"]

UP = 1 + 1e-12
"""What sums in floats may lose; an account is never below the true one."""


@dataclass(frozen=True)
class Spent:
    """What some looks at a table cost, for one person's rows."""

    mu: float = 0.0
    """Of Gaussian parts: composed by √Σμ²."""
    epsilon: float = 0.0
    """Of pure parts: added."""
    delta: float = 0.0
    """The probability that a threshold fails: added."""

    def __post_init__(self) -> None:
        parts = (self.mu, self.epsilon, self.delta)
        if not all(math.isfinite(part) and part >= 0 for part in parts):
            raise ValueError(f"nothing can cost {self}")

    def and_(self, other: Spent) -> Spent:
        """Both together, whichever was first."""
        if NOTHING in (self, other):
            return self if other == NOTHING else other
        mu = composed((self.mu, other.mu)) * UP if self.mu and other.mu else self.mu or other.mu
        return Spent(mu, (self.epsilon + other.epsilon) * UP, (self.delta + other.delta) * UP)

    @property
    def rho(self) -> float:
        """ρ of zCDP: μ²/2 of Gaussian parts and ε·tanh(ε/2) of pure ones.

        A threshold's δ stands beside it: what holds is δ-approximate ρ-zCDP.
        """
        return (self.mu**2 / 2 + self.epsilon * math.tanh(self.epsilon / 2)) * UP

    def epsilon_at(self, delta: float) -> float:
        """The least ε that is known at δ; infinite where δ does not cover the thresholds."""
        left = delta - self.delta
        if left < 0 or (self.mu and left <= 0):
            return math.inf
        return self.epsilon + (epsilon_of(self.mu, left) if self.mu else 0.0)

    def mu_left(self, epsilon: float, delta: float) -> float:
        """The μ that may still be spent within (ε, δ); 0 where nothing is left."""
        most = epsilon - self.epsilon
        if most <= 0 or delta - self.delta <= 0:
            return 0.0
        whole = mu_for(most, delta - self.delta)
        return math.sqrt(max(0.0, whole**2 - self.mu**2)) / UP


NOTHING = Spent()
"""Nothing was looked at."""
