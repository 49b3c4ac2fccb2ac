"""Rastogi, Suciu, Hong: The Boundary Between Privacy and Utility in Data Publishing, VLDB 2007."""

from __future__ import annotations

from voile.reproduce.figure import Figure

PAPER = (
    "Rastogi, Suciu, Hong: The Boundary Between Privacy and Utility in Data Publishing. VLDB 2007"
)

FIGURES: tuple[Figure, ...] = ()
