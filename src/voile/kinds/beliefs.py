"""What anyone can come to believe from a release: a bound over all who attack."""

from __future__ import annotations

import math
from dataclasses import dataclass

from voile.records import Record


@dataclass(frozen=True)
class BeliefBound(Record):
    """How far a belief can rise, except with probability η."""

    prior: float
    eta: float
    posterior: float


@dataclass(frozen=True)
class BeliefBounds(Record):
    """What anyone can come to believe of one row."""

    release: str
    unit: str
    bounds: tuple[BeliefBound, ...]
    about: str

    @property
    def chances(self) -> list[float]:
        """The η that are stated, each once."""
        return list(dict.fromkeys(one.eta for one in self.bounds))

    @property
    def priors(self) -> list[float]:
        """The priors, each once."""
        return list(dict.fromkeys(one.prior for one in self.bounds))


def risen(prior: float, rise: float) -> float:
    """A belief whose log-odds rise by so much."""
    if rise > 700:
        return 1.0
    odds = prior / (1 - prior) * math.exp(rise)
    return odds / (1 + odds)
