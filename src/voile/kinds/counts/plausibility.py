"""Whether noisy tables agree as closely as their noise lets them, and no closer.

Tables that share a column count the same people by it. What they say of one value differs by noise
of a known variance, since every figure has noise of its own. Where the number of rows is public,
each table's total is compared with it as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from voile.arrays import Floats
from voile.kinds.agreement import TableAgreement, comparison, tails
from voile.kinds.plausibility import judge

if TYPE_CHECKING:
    from voile.kinds.counts.release import ConjunctRelease


def check_tables_agree(release: ConjunctRelease) -> bool:
    """Refuse tables that agree too well or too badly; False where there is nothing to compare."""
    law = release.manifest.law
    # Discrete Gaussian noise has the tails of σ², and where σ is small far less variance.
    above = float(law.parameter) ** 2 / float(law.variance) if law.kind == "gaussian" else 1.0
    found = [replace(one, proxy=max(1.0, above)) for one in comparisons(release)]
    judge([tails(one) for one in found])
    return bool(found)


def comparisons(release: ConjunctRelease) -> Iterator[TableAgreement]:
    """Of the totals, and for each column of what tables count by it."""
    sides = 2 if release.manifest.parameters.halves else 1
    noise = float(release.manifest.law.variance) * sides
    totals: list[tuple[Floats, float]] = []
    marginals: dict[str, list[tuple[Floats, float]]] = {name: [] for name in release.schema.names}
    for some in release.manifest.sets:
        counts = release.counts(some)
        shape = [release.schema[name].size for name in some]
        for whole in counts.sum(axis=1) if sides > 1 else counts:
            table = whole.reshape(shape).astype(np.float64)
            totals.append((table.sum(keepdims=True).ravel(), noise * table.size))
            for axis, name in enumerate(some):
                others = tuple(i for i in range(len(some)) if i != axis)
                marginals[name].append((table.sum(axis=others), noise * table.size / shape[axis]))
    yield comparison("their totals", totals, np.array([float(release.rows)]))
    for name, listed in marginals.items():
        if len(listed) > 1:
            yield comparison(f"what they count by {name}", listed)
