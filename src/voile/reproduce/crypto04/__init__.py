"""Dwork and Nissim: Datamining on Vertically Partitioned Databases, CRYPTO 2004 (the slides)."""

from __future__ import annotations

from voile.reproduce.crypto04 import published, reconstruction, split, tester, walk
from voile.reproduce.figure import Figure

FIGURES: tuple[Figure, ...] = (
    walk.FIGURE, tester.FIGURE, split.FIGURE, published.FIGURE, reconstruction.FIGURE,
)  # fmt: skip
