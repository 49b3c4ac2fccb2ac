"""What anyone can come to believe from a release: a bound over all who attack."""

from __future__ import annotations

from dataclasses import dataclass

from voile.privacy.gaussian import any_rise_chance
from voile.privacy.guarantee import after
from voile.records import Record

PRESENCE, VALUE = (0.01, 0.1), (0.1,)
"""Beliefs for which a promise is put into words: of presence, and of a value."""


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


# ----------------------------------------------------------------------
# a promise of ε in beliefs, which need no ε


@dataclass(frozen=True)
class StatedBeliefs:
    """What beliefs can become, of presence and of a value, except with probability η."""

    presence: float | None
    """What log-odds that someone is there rise by; None where the number of rows is public."""
    value: float
    """What log-odds of a value of someone known to be there rise by."""
    eta: float
    """The probability that either rises further."""

    def in_words(self) -> str:
        """In beliefs, as a clause."""
        about = f"a belief about a value of someone known to be there: {risen(VALUE, self.value)}"
        if self.presence is not None:
            there = risen(PRESENCE, self.presence)
            about = f"a belief that someone is in the table: {there}; {about}"
        return about + (f" (except with probability {self.eta:.2g})" if self.eta else "")


def normal_eta(mu: float, exchanged: float, epsilon: float) -> float:
    """η of normal noise: that log-odds of presence rise by more than ε, or of a value by 2ε.

    It is the tail of the privacy loss, whatever is computed from the figures; δ is smaller, since
    it weighs an excess by how large it is.
    """
    return max(any_rise_chance(mu, epsilon), any_rise_chance(exchanged, 2 * epsilon))


def risen(priors: tuple[float, ...], rise: float) -> str:
    """What each belief becomes at most where its log-odds rise by so much, in words."""
    return ", ".join(f"{per_cent(p)} becomes at most {per_cent(after(p, rise))}" for p in priors)


def per_cent(share: float) -> str:
    """A belief as people read it."""
    return f"{100 * share:.2g} %" if share < 0.99 else f"{100 * min(share, 0.999999):.6g} %"
