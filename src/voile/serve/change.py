"""What one person can do to a total, in whole steps: what its noise is made for.

Neighbours are tables in which one person's rows are replaced by others, at most `per_person` each.
Proofs: docs/mathematics, section 37.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from voile.arrays import Floats
from voile.engines.lookups import half_away
from voile.errors import QueryError
from voile.privacy.interactive.laws import Change

FINE = 2**20
"""Steps that numbers which are not whole are summed in, over their range."""
EXACT = 2.0**53
"""Whole numbers below are exact in floating point."""


def steps(
    numbers: Sequence[Floats], ends: tuple[float, float], rows: int
) -> tuple[float, int, int]:
    """Steps to a unit of what is summed, and between how many steps a row's part lies.

    A row's part is made whole before it is added: a sum of whole numbers is the same in any order.
    It is exact, too, if all rows together stay below what floating point holds.
    """
    if not numbers:
        return 1.0, 1, 1
    scale = 1.0
    if not all((n[~np.isnan(n)] % 1 == 0).all() for n in numbers):
        width = max(ends[1], 0.0) - min(ends[0], 0.0)
        scale = 2.0 ** math.ceil(math.log2(FINE / width)) if width > 0 else 1.0
    most = max(map(abs, ends))
    if rows * (most * scale + 1) >= EXACT:
        raise QueryError(
            f"what is summed reaches {most:g} in a row, and with {rows:,} rows more than can be "
            "added exactly",
            hint="sum it divided by a thousand, or cut it, as in least(x, 1000)",
        )
    low, high = half_away(np.array(ends) * scale).tolist()
    return scale, low, high


def change_of(ends: tuple[int, int], cells: int, *, always: bool, per_person: int) -> Change:
    """What replacing one person's rows does at most, in steps.

    A row's part lies between `ends` if it counts, and is 0 if not: so 0 is among them, unless
    all rows `always` count. Who changes group takes a part from one and gives a part to another.
    """
    low, high = ends
    if not always or cells > 1 or per_person > 1:
        low, high = min(low, 0), max(high, 0)
    within, most = per_person * (high - low), per_person * max(-low, high)
    if cells == 1:
        return Change(max(within, 1), max(within, 1) ** 2)
    # Two groups by so much each; that also covers one group by `within`.
    each = max(most, -(-math.isqrt(2 * within**2) // 2), 1)
    while 2 * each**2 < within**2:
        each += 1
    return Change(2 * each, 2 * each**2)
