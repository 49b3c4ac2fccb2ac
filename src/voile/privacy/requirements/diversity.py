"""ℓ-diversity: how many sensitive values are well represented in a class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np

from voile.arrays import Floats
from voile.errors import UsageError
from voile.options.choices import Measure
from voile.privacy.guarantees.classes import Diversity
from voile.privacy.guarantees.parameters import Choice, Number
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

MEASURES: tuple[str, ...] = get_args(Measure)


@dataclass(frozen=True)
class L(Requirement):
    """ℓ-diversity by one of four measures.

    'frequency': the most frequent value has a share of at most 1/ℓ. 'distinct': at least ℓ values
    occur. 'entropy': the entropy is at least ln ℓ. 'recursive', with c: the most frequent value is
    rarer than c times all from the ℓ-th on together.

    What is measured is the ℓ that a class has; of 'recursive' it is the c that it does not meet.
    """

    kind: ClassVar[str] = "l"

    l: float  # noqa: E741  (the requirement's name)
    measure: Measure = "frequency"
    c: float | None = None
    attribute: int = 0

    def __post_init__(self) -> None:
        Choice(MEASURES).check("measure", self.measure)
        recursive = self.measure == "recursive"
        Number(1, with_low=True, whole=recursive).check("l", self.l)
        if recursive and self.c is None:
            raise UsageError("recursive ℓ-diversity lacks c", hint="give c, e.g. c = 2")
        if self.c is not None:
            if not recursive:
                raise UsageError(
                    f"c = {self.c:g} belongs to recursive ℓ-diversity, not to {self.measure!r}",
                    hint="leave c out, or take the measure 'recursive'",
                )
            Number(0).check("c", self.c)

    @property
    def monotone(self) -> bool:
        return True

    @property
    def spelling(self) -> str:
        if self.measure == "recursive":
            return f"(c, ℓ) = ({self.c:g}, {self.l:g}) (recursive)"
        return f"ℓ = {self.l:g} ({self.measure})"

    def measured(self, classes: Histograms) -> Floats:
        counts, rows = classes.counts[self.attribute], classes.rows
        return {
            "frequency": frequency_diversity,
            "distinct": distinct_diversity,
            "entropy": entropy_diversity,
            "recursive": self._ratio,
        }[self.measure](counts, rows)

    def met(self, classes: Histograms) -> Truths:
        counts, rows = classes.counts[self.attribute], classes.rows
        found: Truths
        if self.measure == "frequency":
            found = counts.max(axis=1) * self.l <= rows * (1 + SLACK)
        elif self.measure == "recursive":
            first, rest = _first_and_rest(counts, int(self.l))
            found = first < self._strictly * rest
        elif self.measure == "distinct":
            found = (counts > 0).sum(axis=1) >= self.l
        else:
            found = np.log(self.measured(classes)) >= math.log(self.l) - SLACK
        found |= rows == 0
        return found

    def worst(self, measured: Floats) -> float:
        return most(measured) if self.measure == "recursive" else least(measured)

    def guarantee(self) -> Diversity | None:
        return None if self.measure == "recursive" else Diversity(self.l, self.measure)

    @property
    def _strictly(self) -> float:
        """c, a little less: the bound is strict, and rounding must not meet it."""
        return float(self.c or 0) * (1 - SLACK)

    def _ratio(self, counts: Counts, rows: Counts) -> Floats:
        first, rest = _first_and_rest(counts, int(self.l))
        nothing = np.where(rows > 0, np.inf, np.nan)
        return np.where(rest > 0, first / np.maximum(rest, 1), nothing)


def frequency_diversity(counts: Counts, rows: Counts) -> Floats:
    """One divided by the largest share."""
    return 1 / divided(counts.max(axis=1), rows)


def distinct_diversity(counts: Counts, rows: Counts) -> Floats:
    """How many values occur."""
    return np.where(rows > 0, (counts > 0).sum(axis=1), np.nan)


def entropy_diversity(counts: Counts, rows: Counts) -> Floats:
    """e to the entropy: how many equally frequent values would be as uncertain."""
    shares = divided(counts, rows)
    found: Floats = np.exp(-(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=1))
    return np.where(rows > 0, found, np.nan)


def _first_and_rest(counts: Counts, l: int) -> tuple[Counts, Counts]:  # noqa: E741
    """The largest count, and the sum of those from the ℓ-th largest on."""
    ordered = -np.sort(-counts, axis=1)
    return ordered[:, 0], ordered[:, l - 1 :].sum(axis=1)
