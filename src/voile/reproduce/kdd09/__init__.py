"""Li and Li: On the Tradeoff Between Privacy and Utility in Data Publishing, KDD 2009."""

from __future__ import annotations

from voile.reproduce.figure import Figure
from voile.reproduce.kdd09.answers import FIG3A
from voile.reproduce.kdd09.frontier import FRONTIER
from voile.reproduce.kdd09.interpretation import INTERPRETATION
from voile.reproduce.kdd09.losses import FIG2A
from voile.reproduce.kdd09.query_size import FIG3B, FIG3C
from voile.reproduce.kdd09.showing import FIG2B
from voile.reproduce.kdd09.table1 import TABLE1

FIGURES: tuple[Figure, ...] = (
    TABLE1, FIG2A, FIG2B, FIG3A, FIG3B, FIG3C, INTERPRETATION, FRONTIER,
)  # fmt: skip
