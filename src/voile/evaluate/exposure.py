"""What someone may come to believe about a row of a perturbed table, measured on the release alone.

The distribution of the true rows is reconstructed from the perturbed ones, as the paper's attacker
does, and Bayes' rule gives what seeing a cell, or a single value, tells about whose it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from voile.arrays import Floats
from voile.errors import UsageError
from voile.evaluate.planning.local_measure import (
    LISTED,
    USUAL_PRIOR,
    BinCut,
    MeasuredSet,
    measured_set,
)
from voile.kinds.perturbed.release import LocalRelease
from voile.kinds.perturbed.retention import ColumnNoise
from voile.privacy.guarantees import Breach
from voile.privacy.local import cell_beliefs, worst_breach
from voile.records import Record

MOST_VALUES = 2000
"""Columns with more values are not measured value by value."""
MOST_TOGETHER = 3


@dataclass(frozen=True)
class PerturbedCut(BinCut):
    """A column in cells, with the replacing distribution that it was perturbed by."""

    noise: ColumnNoise

    @property
    def masses(self) -> Floats:
        """The chance that a replaced value falls in each cell."""
        if self.noise.parts is None:
            return super().masses
        found = np.bincount(self.classes, self.noise.masses(), len(self.edges) - 1)
        return np.asarray(found, dtype=np.float64)

    @property
    def classes(self) -> Any:
        """The cell of each code."""
        return self.cells(np.arange(self.attribute.size))


@dataclass(frozen=True)
class SeenValue(Record):
    """The value of a column that discloses most where it is seen: P[X=y | Y=y]."""

    column: str
    value: str
    before: float
    after: float


@dataclass(frozen=True)
class Exposure(Record):
    """What is measured, over cells of up to three columns and over single values."""

    release: str
    rho1: float
    sets: tuple[MeasuredSet, ...]
    values: tuple[SeenValue, ...]
    left_out: tuple[str, ...]
    """Columns without a promise: public ones, and those that keep their own values."""


def exposure(release: LocalRelease, breach: Breach | None = None) -> Exposure:
    """Measure a release; cells believed in with more than ρ₁ beforehand are no secret."""
    noise = release.column_noise()
    if noise is None:
        raise UsageError(
            f"{release.name!r} was perturbed by whole rows",
            hint="its ε bounds every belief; columns are measured where they are perturbed apart",
        )
    cuts = [PerturbedCut(a, noise[a.name]) for a in release.schema if measurable(noise[a.name])]
    if not cuts:
        raise UsageError(
            "no column of this release is perturbed by a public distribution",
            hint="nothing is promised about public columns, and about those that are swapped",
        )
    names = {cut.attribute.name for cut in cuts}
    return Exposure(
        release=str(release.path),
        rho1=breach.rho1 if breach else USUAL_PRIOR,
        sets=tuple(measured_sets(release, cuts, breach)),
        values=tuple(seen_value(release, cut) for cut in cuts if cut.attribute.size <= MOST_VALUES),
        left_out=tuple(name for name in release.schema.names if name not in names),
    )


def measurable(noise: ColumnNoise) -> bool:
    """Whether a column is secret, perturbed by a public distribution, and has several values."""
    return noise.local and not noise.public and noise.size > 1


def measured_sets(
    release: LocalRelease, cuts: Sequence[PerturbedCut], breach: Breach | None
) -> Iterator[MeasuredSet]:
    """Every column; then the pairs and the triples with the highest beliefs."""
    rho1 = breach.rho1 if breach else USUAL_PRIOR
    for size in range(1, MOST_TOGETHER + 1):
        ranked = []
        for these in combinations(cuts, size):
            prior = maximum_likelihood(release, these)
            masses, kept = [c.masses for c in these], [c.noise.retention for c in these]
            ranked.append((prior, these, worst_breach(prior, masses, kept, rho1)))
        if size > 1:
            ranked = sorted(ranked, key=lambda one: -one[2].after if one[2] else 0.0)[:LISTED]
        yield from (measured_set(*one, breach) for one in ranked)


def maximum_likelihood(release: LocalRelease, cuts: Sequence[PerturbedCut]) -> Floats:
    """The distribution of the true rows over cells, by maximum likelihood."""
    counts = release.joint_counts({c.attribute.name: c.classes for c in cuts}, "em").counts
    return np.asarray(counts / counts.sum())


def seen_value(release: LocalRelease, cut: PerturbedCut) -> SeenValue:
    """The single value whose sight raises a belief highest."""
    attribute, noise = cut.attribute, cut.noise
    counts = release.joint_counts({attribute.name: np.arange(attribute.size)}, "em").counts
    prior = counts / counts.sum()
    beliefs = cell_beliefs(prior, [noise.masses()], [noise.retention])
    place = int(np.argmax(beliefs))
    value = next(str(v) for i, v in enumerate(attribute) if i == place)
    return SeenValue(attribute.name, value, float(prior[place]), float(beliefs[place]))
