"""Li and Li: On the Tradeoff Between Privacy and Utility in Data Publishing, KDD 2009."""

from __future__ import annotations

from voile.reproduce.figure import Figure

PAPER = "Li, Li: On the Tradeoff Between Privacy and Utility in Data Publishing. KDD 2009"

FIGURES: tuple[Figure, ...] = ()
