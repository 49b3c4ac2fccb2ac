"""A requirement: one small object that says which histograms a class may have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.privacy.guarantees.kinds import Guarantee

Counts = npt.NDArray[np.int64]
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
    """What every class must have. Immutable; a check is one pass over all classes at once.

    A class without rows shows no sensitive value: it meets whatever is asked of those, and what is
    measured of it is NaN.
    """

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

    def guarantee(self) -> Guarantee | None:
        """The same as one of `voile guarantees`, where there is a kind for it."""
        return None

    def to_dict(self, names: Sequence[str] = ()) -> dict[str, Any]:
        """Its parameters, with stable keys; the attribute by its name where names are given."""
        found: dict[str, Any] = {"kind": self.kind}
        if self.attribute is not None:
            found["attribute"] = names[self.attribute] if names else self.attribute
        for field in fields(cast(Any, self)):
            value = getattr(self, field.name)
            if field.name != "attribute" and value is not None:
                found[field.name] = _listed(value)
        return found


def _listed(value: Any) -> Any:
    """Tuples as lists, as JSON has them."""
    return [_listed(part) for part in value] if isinstance(value, tuple) else value


def least(measured: Floats) -> float:
    """The smallest of what the classes with rows have; infinite where there are none."""
    there = measured[~np.isnan(measured)]
    return float(there.min()) if len(there) else float("inf")


def most(measured: Floats) -> float:
    """The largest of what the classes with rows have; 0 where there are none."""
    there = measured[~np.isnan(measured)]
    return float(there.max()) if len(there) else 0.0


def divided(counts: Counts, rows: Counts) -> Floats:
    """Counts as shares of their class; NaN in a class without rows."""
    whole = np.where(rows == 0, np.nan, rows.astype(np.float64))
    shares: Floats = counts / (whole[:, None] if counts.ndim == 2 else whole)
    return shares
