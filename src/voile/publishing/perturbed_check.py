"""Before perturbed rows leave: were as many values kept as the promise supposes, and no more?

The manifest's ε follows from its parameters; that the coins fell accordingly is seen here only,
where the true rows still are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.errors import ReleaseError
from voile.mechanisms.retention import OWN_VALUES, ColumnNoise, Local, WholeRows
from voile.schema import Schema

Codes = npt.NDArray[Any]
DEVIATIONS = 10
"""A sound sampler is further off less than once in 10²⁰ releases."""
SLACK = 50
PIECE = 2**22


def check_perturbed(
    mechanism: Local, schema: Schema, before: Sequence[Codes], after: Sequence[Codes]
) -> None:
    """Refuse to release what does not look perturbed as stated."""
    if isinstance(mechanism, WholeRows):
        same = np.logical_and.reduce([a == b for a, b in zip(before, after, strict=True)])
        chance = mechanism.retention + (1 - mechanism.retention) / mechanism.size
        compare("whole rows", int(same.sum()), np.full(1, chance), np.full(1, len(same)))
        return
    columns = zip(schema.names, mechanism.columns, before, after, strict=True)
    for name, noise, true, seen in columns:
        counts = counted(true, noise.size)
        same = int(np.count_nonzero(true == seen))
        compare(f"column {name!r}", same, unchanged(noise, counts), counts)


def counted(codes: Codes, size: int) -> npt.NDArray[np.int64]:
    """How often each value occurs, piece by piece: NumPy counts in wide numbers."""
    found = np.zeros(size, dtype=np.int64)
    for start in range(0, len(codes), PIECE):
        found += np.bincount(codes[start : start + PIECE], minlength=size)
    return found


def unchanged(noise: ColumnNoise, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """For every value, the chance that it is seen where it was: kept, or drawn again."""
    own = noise.replace in OWN_VALUES
    masses = counts / max(1, counts.sum()) if own else noise.masses()
    return np.asarray(noise.retention + (1 - noise.retention) * masses)


def compare(
    what: str, same: int, chances: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]
) -> None:
    mean = float(chances @ counts)
    # Swapped values are drawn without replacement, from a random number of them.
    spread = math.sqrt(float((chances * (1 - chances)) @ counts))
    if abs(same - mean) > DEVIATIONS * spread + SLACK:
        raise ReleaseError(
            f"{what}: {same:,} are as they were, where {mean:,.0f} ± {spread:,.0f} should be",
            hint="nothing was released; please report this",
        )
