"""Rows perturbed by NumPy, and their counts reconstructed: what mining sees of a local release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.mining.counts import ExactCounts, shape_of
from voile.reconstruct import Axis, invert, maximum_likelihood
from voile.reconstruct.stopped import stopped_em
from voile.schema import Schema

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PerturbedCounts:
    """Counts of rows whose columns were kept with these chances, else drawn evenly."""

    seen: ExactCounts
    retention: Mapping[str, float]

    @property
    def schema(self) -> Schema:
        return self.seen.schema

    @property
    def rows(self) -> int:
        return self.seen.rows

    def joint_counts(self, cells: Mapping[str, Whole], method: str = "em") -> tuple[Floats, Floats]:
        shape = shape_of(cells)
        axes = [
            Axis(self.retention[name], np.bincount(bins, minlength=size) / len(bins))
            for size, (name, bins) in zip(shape, cells.items(), strict=True)
        ]
        y, _ = self.seen.joint_counts(cells)
        inverted = invert(y, axes)
        counts = inverted
        if method != "inversion":
            fit = {"em": maximum_likelihood, "stopped": stopped_em}[method]
            counts = fit(y, axes).counts
        # Σ_v y_v·g(v)² − x̂, where g is a column of the inverse: its squares factor as it does.
        second = y
        for place, axis in enumerate(axes):
            squares = axis.inverse() ** 2
            second = np.moveaxis(np.tensordot(second, squares, axes=(place, 0)), -1, place)
        return counts, np.sqrt(np.maximum(second - inverted, 0.0))


def perturbed(
    exact: ExactCounts, retention: float | Mapping[str, float], seed: int
) -> PerturbedCounts:
    """Perturb every column by itself, evenly over its domain."""
    rng = np.random.default_rng(seed)
    chances = (
        dict(retention)
        if isinstance(retention, Mapping)
        else dict.fromkeys(exact.schema.names, retention)
    )
    codes: dict[str, npt.NDArray[Any]] = {}
    for attribute in exact.schema:
        name = attribute.name
        kept = rng.random(exact.rows) < chances[name]
        drawn = rng.integers(0, attribute.size, exact.rows)
        codes[name] = np.where(kept, exact.codes[name], drawn)
    return PerturbedCounts(ExactCounts(exact.schema, codes), chances)
