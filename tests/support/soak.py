"""How much of a long proof runs: a seeded sample with `make test`, all of it with `make soak`."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
SOAK = os.environ.get("VOILE_SOAK", "") not in ("", "0")


def rounds(sample: int, full: int) -> int:
    """How often a random experiment is repeated."""
    return full if SOAK else sample


def some(cases: Sequence[T], sample: int, seed: int = 1) -> list[T]:
    """All cases in a soak; otherwise a seeded sample, in the order in which they are listed."""
    if SOAK or sample >= len(cases):
        return list(cases)
    kept = sorted(random.Random(seed).sample(range(len(cases)), sample))  # noqa: S311
    return [cases[place] for place in kept]
