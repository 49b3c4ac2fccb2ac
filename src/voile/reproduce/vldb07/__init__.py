"""Rastogi, Suciu, Hong: The Boundary Between Privacy and Utility in Data Publishing, VLDB 2007."""

from __future__ import annotations

from voile.reproduce.figure import Figure
from voile.reproduce.vldb07 import (
    example41,
    example42,
    fig2,
    fig3,
    table1,
    table2,
    table3,
)

FIGURES: tuple[Figure, ...] = (
    table1.FIGURE,
    table2.FIGURE,
    table3.FIGURE,
    example41.FIGURE,
    example42.FIGURE,
    fig2.FIGURE,
    fig3.FIGURE,
)
