"""How frequent values are, against the replacing distribution, and which are rare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.privacy.local.posteriors import along

RARE = 5
"""Values that occur less often are rare, if nothing else is asked for."""


@dataclass(frozen=True)
class RelativePriors:
    """s = p_c/m_c over all cells c: how much likelier they are than by replacement."""

    largest: float
    median: float
    place: tuple[int, ...]
    """The cell with the largest s, and its prior."""
    share: float
    cells: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "largest": self.largest,
            "median": self.median,
            "place": list(self.place),
            "share": self.share,
            "cells": self.cells,
        }


def relative_priors(histogram: npt.NDArray[Any], masses: Sequence[Floats]) -> RelativePriors:
    """Measured on a histogram with one axis for each column: true or reconstructed counts.

    Reconstructed counts may be negative; these count as none.
    """
    counts = np.maximum(np.asarray(histogram, dtype=np.float64), 0.0)
    total = counts.sum()
    prior = counts / total if total > 0 else counts
    mass = np.ones_like(prior)
    for axis, column in enumerate(masses):
        mass = mass * along(np.asarray(column), axis, prior.ndim)
    possible = (mass > 0) | (prior > 0)
    relative = np.divide(prior, mass, out=np.full_like(prior, np.inf), where=mass > 0)
    found = np.where(possible, relative, -1.0)
    place = np.unravel_index(int(np.argmax(found)), prior.shape)
    return RelativePriors(
        largest=float(found[place]),
        median=float(np.median(relative[possible])),
        place=tuple(map(int, place)),
        share=float(prior[place]),
        cells=int(possible.sum()),
    )


@dataclass(frozen=True)
class RareValues:
    """Values of a column that so few people have that seeing one is nearly seeing the person.

    Identity and swapping show only values that occur; who knows that a value is rare, such as the
    largest, knows whose it is.
    """

    codes: tuple[int, ...]
    rows: int
    """How many rows have one of them."""
    at_least: int

    def in_words(self, column: str) -> str:
        return (
            f"{column!r}: {len(self.codes):,} values occur fewer than {self.at_least} times, in "
            f"{self.rows:,} rows; identity and swapping show them as they are, and whoever knows "
            "who has such a value finds that person"
        )


def rare_values(counts: npt.NDArray[Any], at_least: int = RARE) -> RareValues | None:
    """Those values that occur, but fewer than `at_least` times; None if there are none."""
    codes = np.flatnonzero((counts > 0) & (counts < at_least))
    if not len(codes):
        return None
    return RareValues(tuple(codes.tolist()), int(counts[codes].sum()), at_least)
