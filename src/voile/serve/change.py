"""What one person can do to a total, in whole steps: what its noise is made for.

Neighbours are tables in which one person's rows are replaced by others, at most `per_person` each.
Proofs: docs/mathematics.md, section 37.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.errors import QueryError
from voile.privacy.interactive.laws import Change
from voile.query.predicate import Expression, Term, guarded, to_sql

FINE = 2**20
"""Steps that numbers which are not whole are summed in, over their range."""
MOST_STEPS = 2.0**46
"""Of one row; sums of them are exact in floating point for a hundred million rows."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Summed:
    """How a term is summed in whole steps."""

    aggregate: str
    """In SQL."""
    scale: float
    """Steps to one unit of what is summed."""
    low: int
    high: int
    """Between which a row's part lies, in steps, if it counts."""


def summed(term: Term, numbers: dict[Expression, Floats], ends: tuple[float, float]) -> Summed:
    """The sum of a term over rows whose parts lie between `ends`.

    A row's part is made whole before it is added: a sum of whole numbers is the same in any order.
    """
    only = f" FILTER (WHERE {to_sql(term.predicate)})" if term.predicate else ""
    if not term.values:
        return Summed(f"count(*){only}", 1.0, 1, 1)
    scale = 1.0
    if not all((n[~np.isnan(n)] % 1 == 0).all() for n in numbers.values()):
        width = max(ends[1], 0.0) - min(ends[0], 0.0)
        scale = 2.0 ** math.ceil(math.log2(FINE / width)) if width > 0 else 1.0
    if max(map(abs, ends)) * scale >= MOST_STEPS:
        raise QueryError(
            f"what is summed reaches {max(map(abs, ends)):g}", hint="divide it by a million, say"
        )
    product = " * ".join(f"CAST({guarded(v.sql)} AS DOUBLE)" for v in term.values)
    low, high = (half_away(end * scale) for end in ends)
    # Least and most again, for products of numbers are rounded; what overflows does not count.
    step = f"greatest(least(TRY_CAST(round(({product}) * {scale!r}) AS BIGINT), {high}), {low})"
    value = f"CASE WHEN ({product}) IS NOT NULL THEN {step} END"
    return Summed(f"coalesce(sum({value}){only}, 0)", scale, low, high)


def half_away(x: float) -> int:
    """As SQL rounds."""
    return int(math.copysign(math.floor(abs(x) + 0.5), x))


def change_of(total: Summed, cells: int, *, always: bool, per_person: int) -> Change:
    """What replacing one person's rows does at most, in steps.

    A row's part lies between low and high if it counts, and is 0 if not: so 0 is among them, unless
    all rows `always` count. Who changes group takes a part from one and gives a part to another.
    """
    low, high = total.low, total.high
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
