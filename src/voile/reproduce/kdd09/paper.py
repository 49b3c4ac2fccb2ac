"""The paper's name."""

from __future__ import annotations

PAPER = "Li, Li: On the Tradeoff Between Privacy and Utility in Data Publishing. KDD 2009"
