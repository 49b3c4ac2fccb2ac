"""How far one record that takes another's place can move all components together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from voile.kinds.marginals.residuals import Columns

MOST_SEARCHED = 12
"""Columns of which every set of changes is tried."""


def worst_exchange(sizes: Sequence[int], precisions: Mapping[Columns, float]) -> float:
    """At least max over changes of Σ_c ‖shift of c‖²/(2σ_c²), given 1/σ_c²."""
    return max(_exchanged(sizes, precisions, d) for d in _changes(len(sizes)))


def _changes(number: int) -> Iterable[Columns]:
    if number <= MOST_SEARCHED:
        for size in range(1, number + 1):
            yield from combinations(range(number), size)
    else:
        yield ()
    if not number:
        yield ()


def _exchanged(
    sizes: Sequence[int], precisions: Mapping[Columns, float], changed: Columns
) -> float:
    total = 0.0
    for c, precision in precisions.items():
        own = math.prod(1 - 1 / sizes[i] for i in c)
        if changed:
            other = math.prod(-1 / sizes[i] if i in changed else 1 - 1 / sizes[i] for i in c)
            moved = own - other
        else:
            moved = own + max(1 / sizes[i] for i in c)
        total += moved * precision
    return total
