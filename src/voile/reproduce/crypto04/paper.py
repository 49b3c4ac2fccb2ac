"""How the slides are cited."""

from __future__ import annotations

PAPER = (
    "Dwork, Nissim: Privacy-Preserving Datamining on Vertically Partitioned Databases. "
    "CRYPTO 2004 (slides)"
)
