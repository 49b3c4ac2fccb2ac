"""What an attack found: beliefs before and after, people, and how many of each sort."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from voile.privacy import DGamma
from voile.release import Release

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
    guessed: tuple[str, ...] = ()
    """The attributes that were not known of the person."""

    @property
    def words(self) -> str:
        """The tuple as a line of text: what was guessed of it, or all its values."""
        if self.guessed:
            return ", ".join(f"{name} {self.values[name]}" for name in self.guessed)
        return ", ".join(map(str, self.values.values()))

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
    positive_leaks: int
    negative_leaks: int
    promise_broken: int

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.tuples + other.tuples,
            self.covered + other.covered,
            self.positive_leaks + other.positive_leaks,
            self.negative_leaks + other.negative_leaks,
            self.promise_broken + other.promise_broken,
        )

    def to_dict(self) -> dict[str, int]:
        return dict(vars(self))


NOTHING = Tally(0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Attack:
    """Everything that the attack found, worst first."""

    release: Release
    prior: str
    others: int
    beliefs: tuple[Belief, ...]
    people: tuple[Person, ...]
    tally: Tally
    publishable: bool
    """False: a table that may be private went into it, as the adversary's model."""

    @property
    def promise(self) -> DGamma:
        return self.release.promise

    @cached_property
    def adversaries(self) -> tuple[str, ...]:
        found = {belief.adversary for belief in self.beliefs}
        return tuple(kind for kind in KINDS if kind in found)

    def to_dict(self) -> dict[str, Any]:
        promise = self.promise
        return {
            "release": self.release.name,
            "promise": {
                "prior": promise.prior,
                "posterior": promise.posterior,
                "adversary": promise.adversary,
            },
            "simulated": self.release.manifest.simulated,
            "adversaries": list(self.adversaries),
            "believes": self.prior,
            "others": self.others,
            "publishable": self.publishable,
            "summary": self.tally.to_dict(),
            "targets": [belief.to_dict() for belief in self.beliefs],
            "people": [person.to_dict() for person in self.people],
        }


def promised(promise: DGamma, kind: Kind) -> tuple[bool, bool]:
    """Whether (positive, negative) leaks to such an adversary are ruled out."""
    if kind == "independent":
        return True, True
    return kind == "exclusive" and promise.adversary == "exclusive", False
