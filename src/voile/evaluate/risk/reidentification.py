"""How likely a row is found again: by someone who knows that a person is in the table, or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from voile.arrays import Floats
from voile.evaluate.risk.reading import Cells
from voile.recoding.units import Counts


@dataclass(frozen=True, eq=False)
class Reidentification:
    """The chance of each class's rows to be told apart, and what it comes to.

    With `among` as the class sizes of the table itself this is the prosecutor, who knows that the
    person is in the table; with those of the population the journalist, who does not.
    """

    chances: Floats
    """(classes,): 1 divided by the people that a row of the class may be."""
    rows: Counts
    threshold: float

    @property
    def largest(self) -> float:
        return float(self.chances.max())

    @property
    def average(self) -> float:
        """The share of rows that are found again if each is guessed once: the marketer's."""
        return float((self.chances * self.rows).sum() / self.rows.sum())

    @property
    def above(self) -> float:
        """The share of rows whose chance is above the threshold."""
        return self.share_above(self.threshold)

    def share_above(self, threshold: float) -> float:
        risky = self.rows[self.chances > threshold * (1 + 1e-12)]
        return float(risky.sum() / self.rows.sum())

    def steps(self) -> list[tuple[float, float]]:
        """Each chance that occurs, with the share of rows that have it or more."""
        chances, place = np.unique(self.chances, return_inverse=True)
        rows = np.bincount(place, self.rows)
        shares = rows[::-1].cumsum()[::-1] / rows.sum()
        return [(float(c), float(s)) for c, s in zip(chances, shares, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        return {
            "largest": self.largest,
            "average": self.average,
            "above_threshold": self.above,
        }


def prosecutor(cells: Cells, threshold: float) -> Reidentification:
    """Someone who knows that the person is in the table."""
    there = cells.rows > 0
    return Reidentification(1 / cells.rows[there], cells.rows[there], threshold)


def journalist(cells: Cells, threshold: float) -> Reidentification | None:
    """Someone who knows only that the person is in the population."""
    if cells.population is None:
        return None
    there = cells.rows > 0
    people = np.maximum(cells.population, cells.rows)[there]
    return Reidentification(1 / people, cells.rows[there], threshold)


@dataclass(frozen=True)
class Presence:
    """The least and the largest share of the population's people of a class that are in ours."""

    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high}


def presence(cells: Cells) -> Presence | None:
    if cells.population is None:
        return None
    shares = cells.rows / np.maximum(cells.population, cells.rows)
    return Presence(float(shares.min()), float(shares.max()))
