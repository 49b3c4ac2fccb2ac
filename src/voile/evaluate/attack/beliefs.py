"""Beliefs before and after, people, and how many of each sort."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from voile.privacy import DGamma

Kind = Literal["independent", "exclusive", "correlated"]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True)
class Belief:
    """What is believed of one tuple, before and after."""

    name: str
    adversary: Kind
    values: dict[str, Any]
    seen: Any
    """How often the view shows the tuple; a list where there are several views."""
    prior: float
    posterior: float
    covered: bool
    positive_leak: bool
    negative_leak: bool
    words: str
    """The tuple as a line of text: what was guessed of it, or all its values."""

    @property
    def gain(self) -> float:
        """By which factor the belief has changed."""
        return self.posterior / self.prior if self.prior > 0 else 1.0

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Worst first: positive leaks, then negative ones, then the strongest belief."""
        worst = self.gain if self.negative_leak and not self.positive_leak else -self.posterior
        return not self.positive_leak, not self.negative_leak, worst

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "tuple": self.values,
            "adversary": self.adversary,
            "seen": self.seen,
            "prior": self.prior,
            "posterior": self.posterior,
            "gain": self.gain,
            "covered": self.covered,
            "positive_leak": self.positive_leak,
            "negative_leak": self.negative_leak,
        }


@dataclass(frozen=True)
class Guess:
    """The value of one attribute that is now believed most."""

    attribute: str
    value: Any
    words: str
    """The value as people read it."""
    prior: float
    posterior: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "attribute": self.attribute,
            "value": self.value,
            "prior": self.prior,
            "posterior": self.posterior,
        }


@dataclass(frozen=True)
class Person:
    """Someone of whom not all is known: the candidates, and the best guess among them."""

    name: str
    adversary: Kind
    candidates: int
    best: Belief
    guesses: tuple[Guess, ...]
    positive_leaks: int
    negative_leaks: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "adversary": self.adversary,
            "candidates": self.candidates,
            "best_guess": self.best.values,
            "prior": self.best.prior,
            "posterior": self.best.posterior,
            "gain": self.best.gain,
            "guesses": [guess.to_dict() for guess in self.guesses],
            "positive_leaks": self.positive_leaks,
            "negative_leaks": self.negative_leaks,
        }


@dataclass(frozen=True)
class Tally:
    """How many beliefs there were of each sort, those that are not listed among them."""

    tuples: int
    covered: int
    above_posterior: int
    """Posteriors above γ, whether the prior was covered or not."""
    positive_leaks: int
    negative_leaks: int
    promise_broken: int

    @property
    def uncovered(self) -> int:
        return self.tuples - self.covered

    @property
    def uncovered_above(self) -> int:
        """Posteriors above γ of which the promise says nothing."""
        return self.above_posterior - self.positive_leaks

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.tuples + other.tuples,
            self.covered + other.covered,
            self.above_posterior + other.above_posterior,
            self.positive_leaks + other.positive_leaks,
            self.negative_leaks + other.negative_leaks,
            self.promise_broken + other.promise_broken,
        )

    def to_dict(self) -> dict[str, int]:
        return {
            "tuples": self.tuples,
            "covered": self.covered,
            "tuples_above_posterior": self.above_posterior,
            "positive_leaks": self.positive_leaks,
            "negative_leaks": self.negative_leaks,
            "promise_broken": self.promise_broken,
        }


NOTHING = Tally(0, 0, 0, 0, 0, 0)


def promised(promise: DGamma, kind: Kind) -> tuple[bool, bool]:
    """Whether (positive, negative) leaks to such an adversary are ruled out."""
    if kind == "independent":
        return True, True
    return kind == "exclusive" and promise.adversary == "exclusive", False
