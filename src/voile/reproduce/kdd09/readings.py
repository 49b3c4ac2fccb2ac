"""What the paper leaves open about Mondrian: which of equally wide columns is cut, and in which
order the values of a column stand that have none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from voile.evaluate.losses import p_loss, u_loss
from voile.privacy.requirements import K, L, Requirement, Semantic
from voile.recoding import Units, bounding, mondrian, shown
from voile.reproduce.kdd09.study import QI, subject

ORDERED = (QI.index("age"), QI.index("sex"))
"""Numbers have an order, and the order of two values does not matter."""


def readings(seed: int, number: int) -> list[dict[str, Any]]:
    """So many readings at random: what k = 5000, ℓ = 3.5 and δ = 0.99 give in each."""
    coins = np.random.default_rng(seed)
    return [one_reading(coins) for _ in range(number)]


def one_reading(coins: np.random.Generator) -> dict[str, Any]:
    of = subject()
    orders = [
        np.arange(size, dtype=np.int32)
        if j in ORDERED
        else coins.permutation(size).astype(np.int32)
        for j, size in enumerate(of.units.sizes)
    ]
    places = [np.argsort(order)[codes] for order, codes in zip(orders, of.units.codes, strict=True)]
    units = replace(of.units, codes=np.stack(places).astype(np.int32))
    columns = coins.permutation(len(QI))
    large, diverse, semantic = (
        grouped(units, columns, requirement)
        for requirement in (K(5000), L(3.5), Semantic(0.99))
    )  # fmt: skip
    return {
        "p_loss": p_loss(large),
        "u_loss": u_loss(large, of.populations, orders),
        "diverse_p_loss": p_loss(diverse),
        "semantic_classes": len(semantic.histograms.rows),
    }


def grouped(units: Units, columns: Any, requirement: Requirement) -> Any:
    """Generalized classes; of equally wide columns the first of these is cut."""
    turned = replace(
        units,
        codes=np.ascontiguousarray(units.codes[columns]),
        sizes=tuple(units.sizes[j] for j in columns),
    )
    found = mondrian(turned, [requirement]).grouping
    return shown(units, bounding(units, found.classes, found.number), "generalize")
