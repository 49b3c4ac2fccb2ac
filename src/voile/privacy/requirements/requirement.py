"""A requirement: one small object that says which histograms a class may have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

SLACK = 1e-12
"""By which a computed number may miss its bound."""


@dataclass(frozen=True, eq=False)
class Histograms:
    """What requirements look at: for each class its rows and its sensitive values."""

    rows: Counts
    """(classes,): how many rows each class has."""
    counts: tuple[Counts, ...]
    """For each sensitive attribute (classes, values): how many rows of the class have the value."""
    overall: tuple[Counts, ...]
    """For each sensitive attribute (values,): the same in the whole table."""
    population: Counts | None = None
    """(classes,): rows of a public table that lie in the class, where one is given."""


class Requirement(ABC):
    """What every class must have. Immutable; a check is one pass over all classes at once."""

    kind: ClassVar[str]
    """As in `voile guarantees`: k, l, t, semantic, …"""

    attribute: int | None = None
    """The number of the sensitive attribute that it is about; None where it is about none."""

    @property
    @abstractmethod
    def monotone(self) -> bool:
        """Whether a class that is joined of classes that meet it meets it too."""

    @property
    @abstractmethod
    def spelling(self) -> str:
        """As a person writes it: 'k = 10', 't = 0.2 (Jensen–Shannon)'."""

    @abstractmethod
    def measured(self, classes: Histograms) -> Floats:
        """(classes,): what each class has: its size, its largest share, its distance."""

    @abstractmethod
    def met(self, classes: Histograms) -> Truths:
        """(classes,): whether each class meets it."""

    @abstractmethod
    def worst(self, measured: Floats) -> float:
        """What the whole release has: the least size, the largest share or distance."""
