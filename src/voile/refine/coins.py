"""Coins of the refinement. They hide nothing: the same seed gives the same refinement."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Coins(IntEnum):
    """What coins are thrown for; each purpose has its own."""

    HELD_OUT = 0
    PROBES = 1
    HALVES = 2
    SAMPLE = 3
    STARTS = 4

    def thrown(self, seed: int, *which: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(self, *which)))
