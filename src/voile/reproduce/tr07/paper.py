"""What the paper is called."""

from __future__ import annotations

PAPER = (
    "Rastogi, Suciu, Hong: The Boundary Between Privacy and Utility in Data Publishing. "
    "Technical report"
)
