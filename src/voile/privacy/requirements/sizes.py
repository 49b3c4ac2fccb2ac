"""Requirements on how many rows a class has: k, (α,k), and δ-presence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from voile.arrays import Floats
from voile.errors import UsageError
from voile.privacy.guarantees.classes import Anonymity
from voile.privacy.guarantees.parameters import Number
from voile.privacy.requirements.requirement import (
    SLACK,
    Counts,
    Histograms,
    Requirement,
    Truths,
    divided,
    least,
    most,
)

WHOLE = Number(1, with_low=True, whole=True)
SHARE = Number(0, 1, with_high=True)


@dataclass(frozen=True)
class K(Requirement):
    """k-anonymity: every class has at least k rows."""

    kind: ClassVar[str] = "k"

    k: int

    def __post_init__(self) -> None:
        WHOLE.check("k", self.k)

    @property
    def monotone(self) -> bool:
        return True

    @property
    def spelling(self) -> str:
        return f"k = {self.k}"

    def measured(self, classes: Histograms) -> Floats:
        return classes.rows.astype(np.float64)

    def met(self, classes: Histograms) -> Truths:
        return classes.rows >= self.k

    def worst(self, measured: Floats) -> float:
        return least(measured)

    def guarantee(self) -> Anonymity:
        return Anonymity(int(self.k))


@dataclass(frozen=True)
class AlphaK(Requirement):
    """(α,k)-anonymity: at least k rows, and no sensitive value has a share above α.

    With `values`, only the shares of those (codes of the sensitive attribute) are limited.
    """

    kind: ClassVar[str] = "alpha-k"

    alpha: float
    k: int = 1
    attribute: int = 0
    values: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        SHARE.check("alpha", self.alpha)
        WHOLE.check("k", self.k)
        if self.values == ():
            raise UsageError("no value is limited by α", hint="list some values, or none for all")

    @property
    def monotone(self) -> bool:
        return True

    @property
    def spelling(self) -> str:
        limited = "" if self.values is None else f" for {len(self.values)} listed values"
        return f"(α, k) = ({self.alpha:g}, {self.k}){limited}"

    def measured(self, classes: Histograms) -> Floats:
        return divided(self._largest(classes), classes.rows)

    def met(self, classes: Histograms) -> Truths:
        within = self._largest(classes) <= (self.alpha + SLACK) * classes.rows
        return within & (classes.rows >= self.k)

    def worst(self, measured: Floats) -> float:
        return most(measured)

    def _largest(self, classes: Histograms) -> Counts:
        counts = classes.counts[self.attribute]
        limited = counts if self.values is None else counts[:, list(self.values)]
        largest: Counts = limited.max(axis=1)
        return largest


@dataclass(frozen=True)
class Presence(Requirement):
    """δ-presence: of the people of a public table that a class covers, a share is in ours.

    The share lies between `low` and `high` in every class, so that neither presence nor absence of
    someone whose public values are known is all but certain.
    """

    kind: ClassVar[str] = "presence"

    low: float
    high: float

    def __post_init__(self) -> None:
        ends = Number(0, 1, with_low=True, with_high=True)
        ends.check("least presence", self.low)
        ends.check("largest presence", self.high)
        if self.low > self.high:
            raise UsageError(
                f"presence from {self.low:g} to {self.high:g} is empty",
                hint="give the smaller share first",
            )

    @property
    def monotone(self) -> bool:
        return True

    @property
    def spelling(self) -> str:
        return f"presence from {self.low:g} to {self.high:g}"

    def measured(self, classes: Histograms) -> Floats:
        """Rows for each row of the public table; infinite where that has none, NaN of 0/0."""
        population = _population(classes)
        nobody = np.where(classes.rows > 0, np.inf, np.nan)
        return np.where(population > 0, classes.rows / np.maximum(population, 1), nobody)

    def met(self, classes: Histograms) -> Truths:
        population = _population(classes)
        enough = classes.rows >= (self.low - SLACK) * population
        return enough & (classes.rows <= (self.high + SLACK) * population)

    def worst(self, measured: Floats) -> float:
        """The share that lies furthest outside, or nearest to an end."""
        there = measured[~np.isnan(measured)]
        if not len(there):
            return self.low
        return float(there[np.argmax(np.maximum(self.low - there, there - self.high))])


def _population(classes: Histograms) -> Counts:
    if classes.population is None:
        raise UsageError(
            "presence is a share of a public table, and none is given",
            hint="give the table of everyone that rows may be about",
        )
    return classes.population
