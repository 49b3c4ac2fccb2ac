"""Rastogi, Suciu and Hong: the technical report of VLDB 2007, with what the paper left out."""

from __future__ import annotations

from voile.reproduce.figure import Figure
from voile.reproduce.tr07 import fig1, fig2, thm41, thm42

FIGURES: tuple[Figure, ...] = (fig1.FIGURE, fig2.FIGURE, thm41.FIGURE, thm42.FIGURE)
