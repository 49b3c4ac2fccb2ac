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
        same = int(np.count_nonzero(true == seen))
        compare(f"column {name!r}", same, *unchanged(noise, true))


def unchanged(noise: ColumnNoise, true: Codes) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The chances that values are seen where they were, kept or drawn again; of how many each.

    Never of the size of the domain, which may be far larger than the table.
    """
    if noise.replace == "uniform":
        masses, counts = np.full(1, 1 / noise.size), np.full(1, len(true))
    else:
        values, counts = np.unique(true, return_counts=True)
        own = noise.replace in OWN_VALUES
        masses = counts / max(1, len(true)) if own else noise.masses()[values]
    return noise.retention + (1 - noise.retention) * masses, counts


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
