"""Numbers in promises as people read them."""

from __future__ import annotations

import math

NEARLY_SURE = 0.99
"""Above this a bound on a belief says next to nothing."""


def chance(value: float, digits: int = 3) -> str:
    """A probability with so many digits, or more: what is below 1 is never written as 1."""
    if not NEARLY_SURE < value < 1:
        return f"{value:.{digits}g}"
    places = max(digits, math.ceil(-math.log10(1 - value)) + 1)
    return f"{value:.{places}f}".rstrip("0")


def after(prior: float, epsilon: float) -> float:
    """What a belief may become within ε: odds rise by e^ε at most."""
    return 0.0 if prior == 0 else 1 / (1 + (1 - prior) / prior * math.exp(-epsilon))
