"""Dwork and Nissim: Datamining on Vertically Partitioned Databases, CRYPTO 2004 (the slides)."""

from __future__ import annotations

from voile.reproduce.figure import Figure

PAPER = (
    "Dwork, Nissim: Privacy-Preserving Datamining on Vertically Partitioned Databases. "
    "CRYPTO 2004 (slides)"
)

FIGURES: tuple[Figure, ...] = ()
