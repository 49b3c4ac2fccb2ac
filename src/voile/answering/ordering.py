"""ORDER BY, as SQL has it: ties keep the order that they had, NULL is first or last."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from voile.arrays import Ints
from voile.query.query import Order


def places_in_order(keys: list[Any], order: Order) -> Ints:
    """Where each key was, in the order asked for; unknown numbers are NULL."""
    null = [k is None or (isinstance(k, float) and math.isnan(k)) for k in keys]
    known = [i for i in range(len(keys)) if not null[i]]
    known.sort(key=lambda i: keys[i], reverse=order.descending)
    if order.descending:  # keep the earlier order of equal keys
        known = stable_descending(known, keys)
    missing = [i for i in range(len(keys)) if null[i]]
    places = [*missing, *known] if order.nulls_first else [*known, *missing]
    return np.array(places, dtype=np.int64)


def stable_descending(places: list[int], keys: list[Any]) -> list[int]:
    """Sorting in reverse turns ties around; put each tie back in its order."""
    result: list[int] = []
    tie: list[int] = []
    for place in places:
        if tie and keys[tie[0]] != keys[place]:
            result += sorted(tie)
            tie = []
        tie.append(place)
    return [*result, *sorted(tie)]
