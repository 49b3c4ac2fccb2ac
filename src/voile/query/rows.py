"""What is counted on the rows of a release, and what an engine gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.query.predicate import Atom, Expression, Term

HISTORY, SCORE, SPREAD = "voile_history", "voile_score", "voile_spread"
"""Columns of scored rows: a tuple's counts in all views of a series, and what they score."""


@dataclass(frozen=True)
class WeightedTerm:
    """A term to be summed over rows, each row times a column that weighs it: SCORE or SPREAD."""

    term: Term
    weight: str = ""
    """No column: each row counts once."""


@dataclass(frozen=True)
class Flags:
    """Which conditions are true of a row, and whether a value is finite there: bits of a number.

    The first condition is the lowest bit, the value comes after all of them.
    """

    conditions: tuple[Atom, ...]
    value: Expression | None = None


Key = Expression | Flags
"""What rows are grouped by."""


@dataclass(frozen=True)
class ShiftedValue:
    """A value of a row less a constant."""

    value: Expression
    centre: float


@dataclass(frozen=True)
class RowSums:
    """Sums over the rows of a view: one row for each group that has rows."""

    keys: tuple[list[Any], ...]
    sums: npt.NDArray[np.float64]
    """(groups, sums)"""
