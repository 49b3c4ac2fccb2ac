"""Whether perturbed rows can have come from their mechanism: see voile.kinds.plausibility.

Whatever a row was, each of its values is replaced with probability 1 − p by one that is drawn from
a public distribution m. So a cell of several columns is hit by each row with probability
Π (1 − p_c)·m_c at least, and of n rows at least Binomial(n, that) are in it. Columns that are
public, or take replacements from their own values, have no such law and are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from voile.arrays import Floats
from voile.kinds.perturbed.retention import Local, WholeRows
from voile.kinds.plausibility import DomainCells, Surprise, cells_for, judge, lower_tail

if TYPE_CHECKING:
    from voile.kinds.perturbed.release import LocalRelease


def check_perturbed(release: LocalRelease, count: Callable[[Sequence[DomainCells]], None]) -> bool:
    """Refuse rows that the noise cannot have made; False where no column can be looked at.

    `count` counts the rows of cells, wherever they lie.
    """
    replaced = replaced_shares(release.mechanism)
    masses = [m for m, _ in replaced]
    # A cell of several columns is reached with all their chances to be replaced.
    share = math.prod(sorted(s for m, s in replaced if m is not None)[:3])
    cells = cells_for(release.schema.names, masses, release.rows * share, release.rows)
    if not cells:
        return False
    count(cells)
    shares = [share for _, share in replaced]
    whole = isinstance(release.mechanism, WholeRows)
    judge([surprise(some, shares, release.rows, whole=whole) for some in cells])
    return True


def replaced_shares(mechanism: Local) -> list[tuple[Floats | int | None, float]]:
    """For each column, what replaces its values, and the chance that one is replaced."""
    if isinstance(mechanism, WholeRows):
        return [(size, 1 - mechanism.retention) for size in mechanism.sizes]
    return [
        (column.masses() if column.parts else column.size, 1 - column.retention)
        if column.local and not column.public
        else (None, 1.0)
        for column in mechanism.columns
    ]


def surprise(cells: DomainCells, shares: list[float], rows: int, *, whole: bool) -> Surprise:
    """How unlikely it is that so few rows are in the emptiest cells."""
    replaced = [shares[i] for i in cells.columns]
    chance = replaced[0] if whole else math.prod(replaced)
    trials = np.full(len(cells.shares), float(rows))
    tails = lower_tail(cells.seen.astype(float), trials, cells.shares * chance)
    what = f"values of {' × '.join(cells.names)} are rarer than replacing makes them"
    return Surprise(what, cells.least_chance(tails))
