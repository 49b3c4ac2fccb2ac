"""Beliefs before and after, people, and how many of each sort."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from voile.kinds.views.release import ViewRelease
from voile.privacy import DGamma
from voile.records import Record
from voile.units import chance

Kind = Literal["independent", "exclusive", "correlated"]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True)
class Belief(Record):
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

    json_keys = (
        "name", "tuple=values", "adversary", "seen", "prior", "posterior", "gain", "covered",
        "positive_leak", "negative_leak",
    )  # fmt: skip

    @property
    def gain(self) -> float:
        """By which factor the belief has changed."""
        return self.posterior / self.prior if self.prior > 0 else 1.0

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Worst first: positive leaks, then negative ones, then the strongest belief."""
        worst = self.gain if self.negative_leak and not self.positive_leak else -self.posterior
        return not self.positive_leak, not self.negative_leak, worst


@dataclass(frozen=True)
class Guess(Record):
    """The value of one attribute that is now believed most."""

    attribute: str
    value: Any
    words: str
    """The value as people read it."""
    prior: float
    posterior: float

    json_keys = ("attribute", "value", "prior", "posterior")  # fmt: skip


@dataclass(frozen=True)
class Person(Record):
    """Someone of whom not all is known: the candidates, and the best guess among them."""

    name: str
    adversary: Kind
    candidates: int
    best: Belief
    guesses: tuple[Guess, ...]
    positive_leaks: int
    negative_leaks: int

    json_keys = (
        "name", "adversary", "candidates", "best_guess=best.values", "prior=best.prior",
        "posterior=best.posterior", "gain=best.gain", "guesses", "positive_leaks", "negative_leaks",
    )  # fmt: skip


@dataclass(frozen=True)
class Tally(Record):
    """How many beliefs there were of each sort, those that are not listed among them."""

    tuples: int
    covered: int
    above_posterior: int
    """Posteriors above γ, whether the prior was covered or not."""
    positive_leaks: int
    negative_leaks: int
    promise_broken: int

    json_keys = (
        "tuples", "covered", "tuples_above_posterior=above_posterior", "positive_leaks",
        "negative_leaks", "promise_broken",
    )  # fmt: skip

    @property
    def uncovered(self) -> int:
        """Beliefs whose prior is above the promise's."""
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


NOTHING = Tally(0, 0, 0, 0, 0, 0)


def promised(promise: DGamma, kind: Kind) -> tuple[bool, bool]:
    """Whether (positive, negative) leaks to such an adversary are ruled out."""
    if kind == "independent":
        return True, True
    return kind == "exclusive" and promise.adversary == "exclusive", False


# ----------------------------------------------------------------------
# of whom an adversary ends up all but sure, and why the promise did not prevent it


SURE = 0.95
"""The belief from which on an adversary is all but sure."""
SIMULATED = "the release is a simulation and promises nothing"


@dataclass(frozen=True)
class Exposures:
    """How many people there are, and why those are exposed who are."""

    people: int
    reasons: dict[str, str]
    """By the name of the exposed."""

    @property
    def exposed(self) -> int:
        """How many people are exposed."""
        return len(self.reasons)

    def headline(self) -> str:
        """What the adversary ends up knowing: the first that is said of an attack."""
        sure = f"(≥ {100 * SURE:.0f} %)"
        if not self.reasons:
            return (
                f"0 of {self.people:,} {noun(self.people)}: of nobody does the adversary end up "
                f"all but sure {sure} of what it did not know."
            )
        text = (
            f"{self.exposed:,} of {self.people:,} {noun(self.people)}: the adversary ends up all "
            f"but sure {sure} of what it did not know"
        )
        found = Counter(self.reasons.values()).most_common()
        if len(found) == 1:
            return f"{text}; {found[0][0]}."
        return f"{text}. Of {'; of '.join(f'{count:,} {why}' for why, count in found)}."


def noun(count: int) -> str:
    """One person, several people."""
    return "person" if count == 1 else "people"


def exposures(
    beliefs: Sequence[Belief], people: Sequence[Person], promise: DGamma, *, simulated: bool
) -> Exposures:
    """Everyone of whom something became all but sure that was not before."""
    names = {belief.name for belief in beliefs} | {person.name for person in people}
    reasons: dict[str, str] = {}
    for name, belief in sure_of(beliefs, people):
        why = SIMULATED if simulated else reason(promise, belief)
        reasons.setdefault(name, why)
    return Exposures(len(names), reasons)


def sure_of(beliefs: Sequence[Belief], people: Sequence[Person]) -> Iterator[tuple[str, Belief]]:
    """Who is exposed, with the most believed tuple of theirs."""
    several = {person.name for person in people}
    for person in people:
        if became_sure(person.best) or any(map(became_sure, person.guesses)):
            yield person.name, person.best
    for belief in beliefs:
        if belief.name not in several and became_sure(belief):
            yield belief.name, belief


def became_sure(belief: Belief | Guess) -> bool:
    """Whether a belief was below SURE before and is not any more."""
    return belief.prior < SURE <= belief.posterior


def reason(promise: DGamma, belief: Belief) -> str:
    """Why the promise does not rule it out."""
    if not belief.covered:
        return f"the promise does not cover them (their prior was above d = {promise.prior:.3g})"
    if not promised(promise, belief.adversary)[0]:
        return f"the promise is not against {belief.adversary} adversaries"
    if belief.positive_leak:
        return "the promise is broken"
    if became_sure(belief):
        return f"the promise allows beliefs up to γ = {chance(promise.posterior)}"
    return "the promise is about whole records, this about a part of one"


# ----------------------------------------------------------------------
# what an attack on a release found


@dataclass(frozen=True)
class Attack:
    """Everything that the attack found, worst first."""

    release: ViewRelease
    prior: str
    others: int
    beliefs: tuple[Belief, ...]
    people: tuple[Person, ...]
    tally: Tally
    publishable: bool
    """False: a table that may be private went into it, as the adversary's model."""
    since: int | None = None
    """Of a series: the view from which on the records are taken to have been in the table."""

    @property
    def promise(self) -> DGamma:
        """The promise of the release."""
        return self.release.promise

    @cached_property
    def exposures(self) -> Exposures:
        """Of whom the adversary ends up all but sure, and why."""
        simulated = self.release.manifest.simulated
        return exposures(self.beliefs, self.people, self.promise, simulated=simulated)

    @cached_property
    def adversaries(self) -> tuple[str, ...]:
        """The kinds of adversaries that judged someone."""
        found = {belief.adversary for belief in self.beliefs}
        return tuple(kind for kind in KINDS if kind in found)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
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
            "since": self.since,
            "publishable": self.publishable,
            "summary": {
                "people": self.exposures.people,
                "people_exposed": self.exposures.exposed,
                **self.tally.to_dict(),
            },
            "targets": [belief.to_dict() for belief in self.beliefs],
            "people": [person.to_dict() for person in self.people],
        }
