"""The toy table of test scores, its published forms as printed, and Example 4.1's parameters."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import voile
from voile.mechanisms import AlphaBeta
from voile.release import ViewRelease
from voile.schema import Attribute, Range, Schema, Values

__all__ = [
    "ALPHA", "BETA", "DOMAIN", "FRAPP_KEEPS", "POSTERIOR", "PRINTED_ALPHABETA", "PRINTED_CLASSES",
    "PRINTED_FRAPP", "SCORES", "SIMPLE_PRIOR", "TABLE", "alphabeta", "published", "rows_of",
]  # fmt: skip

Row = tuple[Any, ...]
TABLE = "dataset:scores"
DOMAIN = Schema(
    (
        Attribute("age", "integer", Range(20, 39)),
        Attribute("nationality", "categorical", Values(("American", "British", "Indian"))),
        Attribute("score", "integer", Range(81, 100)),
    )
)
"""Of Example 4.1: m = 20 · 3 · 20 = 1200."""
SCORES: tuple[Row, ...] = (
    (25, "British", 99), (27, "British", 97), (21, "Indian", 82),
    (32, "Indian", 90), (33, "American", 94), (36, "American", 94),
)  # fmt: skip
PRINTED_CLASSES: tuple[Row, ...] = (
    ("21-30", "*", 99), ("21-30", "*", 97), ("21-30", "*", 82),
    ("31-40", "*", 90), ("31-40", "*", 94), ("31-40", "*", 94),
)  # fmt: skip
PRINTED_FRAPP: tuple[Row, ...] = (
    (25, "British", 99), (28, "Indian", 99), (29, "American", 81),
    (32, "Indian", 90), (39, "American", 84), (32, "Indian", 89),
)  # fmt: skip
PRINTED_ALPHABETA: tuple[Row, ...] = (
    (25, "British", 99), (21, "British", 99), (22, "Indian", 89), (32, "Indian", 90),
    (28, "Indian", 99), (29, "American", 81), (33, "American", 94), (27, "American", 94),
    (32, "British", 83), (36, "American", 94), (26, "American", 99), (39, "Indian", 94),
)  # fmt: skip

FRAPP_KEEPS = Fraction(1, 3)
ALPHA = Fraction(2, 3)
BETA = 2 * ALPHA * len(SCORES) / Fraction(DOMAIN.size)
SIMPLE_PRIOR = Fraction(len(SCORES), DOMAIN.size)
"""n/m: who knows nothing but how many records there are."""
POSTERIOR = float((ALPHA + BETA) / (ALPHA + BETA + BETA * (1 / SIMPLE_PRIOR - 1)))


def alphabeta() -> AlphaBeta:
    """α = 2/3 and β = 1/150."""
    return AlphaBeta(float(ALPHA + BETA), float(BETA), "set")


def published(seed: int) -> ViewRelease:
    """The toy table as a release with these parameters: asked for by what they promise."""
    return voile.publish(
        TABLE,
        rows="set",
        schema=DOMAIN,
        prior=float(SIMPLE_PRIOR),
        posterior=POSTERIOR,
        retention=float(ALPHA + BETA),
        simulate_seed=seed,
    )


def rows_of(release: Any) -> list[list[Any]]:
    """What a release shows, row by row, as plain values."""
    shown = release.to_arrow().select(DOMAIN.names)
    return [list(row.values()) for row in shown.to_pylist()]
