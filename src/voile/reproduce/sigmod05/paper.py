"""The paper's name, as every figure states it."""

from __future__ import annotations

PAPER = "Agrawal, Srikant, Thomas: Privacy Preserving OLAP. SIGMOD 2005"
