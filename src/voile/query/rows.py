"""What an engine tells about the rows of a view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

HISTORY, SCORE, SPREAD = "voile_history", "voile_score", "voile_spread"
"""Columns of scored rows: a tuple's counts in all views of a series, and what they score."""


@dataclass(frozen=True)
class RowSums:
    """Sums over the rows of a view: one row for each group that has rows."""

    keys: tuple[list[Any], ...]
    sums: npt.NDArray[np.float64]
    """(groups, sums)"""


class Rows(Protocol):
    """The rows of a view, as an engine counts them.

    Rows may have a score: then a row counts as so many, and adds its spread to the variance of
    its tuple's noise (see SCORE and SPREAD).
    """

    @property
    def scored(self) -> bool: ...

    def sums(self, where: str, keys: Sequence[str], sums: Sequence[str]) -> RowSums:
        """SQL aggregates of the rows that pass, for each combination of keys that occurs."""
        ...
