"""Of whom an adversary ends up all but sure, and why the promise did not prevent it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from voile.evaluate.attack.beliefs import Belief, Guess, Person, promised
from voile.privacy import DGamma
from voile.privacy.guarantee import chance

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
