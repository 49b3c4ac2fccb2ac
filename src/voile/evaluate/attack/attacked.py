"""What an attack on a release found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from voile.evaluate.attack.beliefs import KINDS, Belief, Person, Tally
from voile.evaluate.attack.exposure import Exposures, exposures
from voile.kinds.views.release import ViewRelease
from voile.privacy import DGamma


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
        return self.release.promise

    @cached_property
    def exposures(self) -> Exposures:
        """Of whom the adversary ends up all but sure, and why."""
        simulated = self.release.manifest.simulated
        return exposures(self.beliefs, self.people, self.promise, simulated=simulated)

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
