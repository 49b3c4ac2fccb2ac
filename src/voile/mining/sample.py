"""Arrays of numbers as a table with a schema of its own, for the estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.arrays import Floats
from voile.mining.binning import binning
from voile.schema import Attribute, Bins, Schema, Values


@dataclass(frozen=True, eq=False)
class Sample:
    """How the columns of an array are cut, and which classes its rows have."""

    schema: Schema
    target: str
    classes: npt.NDArray[Any]
    bins: int

    @classmethod
    def of_arrays(
        cls,
        rows: Floats,
        labels: npt.NDArray[Any],
        names: Sequence[Any] | None,
        target: str | None,
        bins: int,
    ) -> Sample:
        """Cut every column between its smallest and its largest number."""
        known = (
            [f"x{at}" for at in range(rows.shape[1])] if names is None else list(map(str, names))
        )
        called = target or "class"
        while called.casefold() in {name.casefold() for name in known}:
            called += "_"
        columns = [numbers(name, rows[:, at], bins) for at, name in enumerate(known)]
        classes = np.unique(labels)
        listed = Values(tuple(str(label) for label in classes))
        own = Attribute(called, "categorical", listed, ordered=False)
        return cls(Schema((*columns, own)), called, classes, bins)

    def table(self, rows: Floats) -> Any:
        """The rows as Arrow, without classes."""
        names = self.schema.names[:-1]
        return pa.table({name: pa.array(rows[:, at]) for at, name in enumerate(names)})

    def codes(self, rows: Floats, labels: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """The codes of all columns: there are no more of them than bins."""
        table = self.table(rows)
        found = {
            a.name: binning(a, self.bins).places(table.column(a.name))
            for a in self.schema.attributes[:-1]
        }
        return {**found, self.target: np.searchsorted(self.classes, labels)}


def numbers(name: str, column: Floats, bins: int) -> Attribute:
    """All values of a column of few, else equal parts of its range."""
    values = np.unique(column + 0.0)  # one zero of the two that floats have
    if len(values) <= bins:
        return Attribute(name, "numeric", Values(tuple(values.tolist())))
    edges = np.unique(np.linspace(values[0], values[-1], bins + 1))
    return Attribute(name, "numeric", Bins(tuple(edges.tolist())))
