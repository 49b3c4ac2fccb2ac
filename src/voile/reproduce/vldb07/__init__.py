"""Rastogi, Suciu, Hong: The Boundary Between Privacy and Utility in Data Publishing, VLDB 2007."""

from __future__ import annotations

from voile.reproduce.figure import Figure
from voile.reproduce.vldb07 import fig2, fig3
from voile.reproduce.vldb07.paper import PAPER

__all__ = ["FIGURES", "PAPER"]

FIGURES: tuple[Figure, ...] = (fig2.FIGURE, fig3.FIGURE)
