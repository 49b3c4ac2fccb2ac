"""The most that anyone can recover: the best guess of one value by someone who knows all others."""

from __future__ import annotations

import math
from typing import Literal, get_args

from voile.privacy.interactive.laws import geometric_rate

Law = Literal["normal", "uniform"]
LAWS: tuple[str, ...] = get_args(Law)


def ceiling(law: str, size: float, counting: float, share: float = 0.5) -> float:
    """The chance to guess a row's value right, knowing every other row.

    `counting` questions count the row, with noise of `size`: its standard deviation if normal, the
    largest that it can be if uniform. `share` of the rows have the value 1.
    """
    if size == 0:
        return 1.0
    if law == "uniform":
        # An answer outside of what both values allow gives the value away, all others tell nothing.
        hidden = math.pow(max(0.0, 1 - 1 / (2 * size)), counting)
        return 1 - hidden * min(share, 1 - share)
    return normal_ceiling(math.sqrt(counting) / size, share)


def normal_ceiling(distance: float, share: float = 0.5) -> float:
    """The chance to tell N(0, 1) from N(distance, 1), which is there with chance `share`."""
    if distance == 0 or share in (0.0, 1.0):
        return max(share, 1 - share)
    lean = math.log(share / (1 - share)) / distance
    return share * below(distance / 2 + lean) + (1 - share) * below(distance / 2 - lean)


def below(z: float) -> float:
    """Φ(z)."""
    return math.erfc(-z / math.sqrt(2)) / 2


def distance_squared(kind: str, variance: float) -> float:
    """How far one answer tells two counts apart that differ by 1: the variance of its log ratio.

    For the server's laws of noise, with V of a unit change.
    """
    return geometric_rate(variance) ** 2 if kind == "geometric" else 1 / variance
