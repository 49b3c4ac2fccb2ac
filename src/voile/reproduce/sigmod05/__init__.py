"""Agrawal, Srikant and Thomas: Privacy Preserving OLAP, SIGMOD 2005."""

from __future__ import annotations

from voile.reproduce.figure import Figure
from voile.reproduce.sigmod05.columns import FIGURE_7, FIGURE_8
from voile.reproduce.sigmod05.condition import FIGURE_6
from voile.reproduce.sigmod05.conjunctions import FIGURE_4, FIGURE_5
from voile.reproduce.sigmod05.retentions import FIGURE_13, FIGURE_14
from voile.reproduce.sigmod05.theorems import THEOREM_4, THEOREM_5
from voile.reproduce.sigmod05.tree import TREE
from voile.reproduce.sigmod05.widths import FIGURE_11, FIGURE_12
from voile.reproduce.sigmod05.zipf import FIGURE_10
from voile.reproduce.sigmod05.zipf_columns import FIGURE_9

FIGURES: tuple[Figure, ...] = (
    FIGURE_4, FIGURE_5, FIGURE_6, FIGURE_7, FIGURE_8, FIGURE_9, FIGURE_10, FIGURE_11, FIGURE_12,
    FIGURE_13, FIGURE_14, THEOREM_4, THEOREM_5, TREE,
)  # fmt: skip
