"""Rastogi, Suciu and Hong: the technical report of VLDB 2007, with what the paper left out."""

from __future__ import annotations

from voile.reproduce.figure import Figure

PAPER = (
    "Rastogi, Suciu, Hong: The Boundary Between Privacy and Utility in Data Publishing. "
    "Technical report"
)

FIGURES: tuple[Figure, ...] = ()
