"""Agrawal, Srikant and Thomas: Privacy Preserving OLAP, SIGMOD 2005."""

from __future__ import annotations

from voile.reproduce.figure import Figure

PAPER = "Agrawal, Srikant, Thomas: Privacy Preserving OLAP. SIGMOD 2005"

FIGURES: tuple[Figure, ...] = ()
