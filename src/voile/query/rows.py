"""What an engine tells about the rows of a view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class RowSums:
    """Sums over the rows of a view: one row for each group that has rows."""

    keys: tuple[list[Any], ...]
    sums: npt.NDArray[np.float64]
    """(groups, sums)"""


class Rows(Protocol):
    """The rows of a view, as an engine counts them."""

    def sums(self, where: str, keys: Sequence[str], sums: Sequence[str]) -> RowSums:
        """SQL aggregates of the rows that pass, for each combination of keys that occurs."""
        ...
