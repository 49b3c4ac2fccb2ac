"""What the paper is called, and its numbers."""

from __future__ import annotations

PAPER = (
    "Rastogi, Suciu, Hong: The Boundary Between Privacy and Utility in Data Publishing. VLDB 2007"
)
PRIOR_FACTOR, POSTERIOR = 10, 0.2
"""k and γ of the experiments."""
MISS = 0.05
"""ε of (ρ, ε)-usefulness: the paper names none; 95 % is usual."""
