"""δ-semantic privacy: how much more or less frequent a value may be in a class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from voile.arrays import Floats
from voile.privacy.guarantees import classes as guarantees
from voile.privacy.guarantees.classes import Absent
from voile.privacy.guarantees.parameters import LOG_RATIO, Choice
from voile.privacy.requirements.closeness import overall_shares
from voile.privacy.requirements.requirement import SLACK, Histograms, Requirement, Truths, most

ABSENT = ("forbidden", "ignored")


@dataclass(frozen=True)
class Semantic(Requirement):
    """|ln(share in the class / share in the table)| ≤ δ for every value of the table.

    'forbidden' is the literal reading: a value that is absent from a class has ln 0, so every value
    must occur in every class. 'ignored' asks it only of values that occur in the class.
    """

    kind: ClassVar[str] = "semantic"

    delta: float
    absent: Absent = "forbidden"
    attribute: int = 0

    def __post_init__(self) -> None:
        LOG_RATIO.check("delta", self.delta)
        Choice(ABSENT).check("absent", self.absent)

    @property
    def monotone(self) -> bool:
        """Ignored, not: a value at the lower bound, joined with a class without it, falls below."""
        return self.absent == "forbidden"

    @property
    def spelling(self) -> str:
        return f"δ = {self.delta:g} (semantic, absent values {self.absent})"

    def measured(self, classes: Histograms) -> Floats:
        counts = classes.counts[self.attribute]
        expected = self._expected(classes)
        both = (counts > 0) & (expected > 0)
        ratio = np.where(both, counts, 1) / np.where(both, expected, 1)
        wrong = (counts > 0) & (expected == 0)
        if self.absent == "forbidden":
            wrong |= (counts == 0) & (expected > 0)
        found = np.where(wrong, np.inf, np.abs(np.log(ratio))).max(axis=1)
        return np.where(classes.rows > 0, found, np.nan)

    def met(self, classes: Histograms) -> Truths:
        """As the kernel does: bounds on counts, so that both agree to the last bit."""
        counts, expected = classes.counts[self.attribute], self._expected(classes)
        factor = math.exp(min(self.delta + SLACK, 700.0))
        inside: Truths = (counts >= expected / factor) & (counts <= expected * factor)
        if self.absent == "ignored":
            inside |= counts == 0
        else:
            inside &= (counts > 0) | (expected == 0)
        found: Truths = np.all(inside, axis=1)
        return found

    def worst(self, measured: Floats) -> float:
        return most(measured)

    def guarantee(self) -> guarantees.Semantic:
        return guarantees.Semantic(self.delta, self.absent)

    def _expected(self, classes: Histograms) -> Floats:
        """(classes, values): the counts if each class were distributed as the table."""
        return classes.rows[:, None] * overall_shares(classes.overall[self.attribute])
