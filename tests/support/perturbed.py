"""Rows perturbed by NumPy, and their counts reconstructed: what mining sees of a local release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from voile.kinds.perturbed.axes import AxisNoise
from voile.kinds.perturbed.joint import JointCounts, joint_counts
from voile.mining.counts import ExactCounts
from voile.schema import Schema

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

    def joint_counts(self, cells: Mapping[str, Whole], method: str = "em") -> JointCounts:
        noise = {name: AxisNoise(kept) for name, kept in self.retention.items()}
        asked = cast("Literal['inversion', 'em', 'stopped']", method)
        return joint_counts(self.seen.codes, cells, noise, self.rows, asked)


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
