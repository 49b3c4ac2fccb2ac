"""What `local` runs, each in a process of its own: perturb a column, estimate all frequencies."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.compiled import compiled
from voile.noise import Key
from voile.noise.replacement import Replacement, perturb
from voile.reconstruct import Axis, invert

Codes = npt.NDArray[Any]
Counts = npt.NDArray[np.int64]

RETENTION = 0.3
PIECE = 2**16


def rate(rows: int, seconds: float, **more: Any) -> dict[str, Any]:
    """Rows a second of processor time."""
    return {"rows": rows, "cpu_seconds": seconds, "rate": rows / seconds} | more


def column(rows: int, size: int) -> Codes:
    """Codes with frequent and rare values, in the narrowest type that holds them."""
    chances = 1 / np.arange(1, size + 1)
    drawn = np.random.default_rng(1).choice(size, rows, p=chances / chances.sum())
    return drawn.astype(np.uint8 if size <= 256 else np.int16)


def epsilon(size: int) -> float:
    """The peers' parameter for the same retention: e^ε = 1 + pD/(1 − p)."""
    return math.log1p(RETENTION * size / (1 - RETENTION))


def measured(
    work: Callable[[Any], Floats], rows: float, size: int, *, one_by_one: bool = False
) -> dict[str, Any]:
    """CPU seconds of all threads; and how far the estimates are off, in standard errors."""
    codes = column(int(rows), size)
    given = codes.tolist() if one_by_one else codes
    work(given[:1000])  # compile and load
    start = time.process_time()
    estimates = work(given)
    seconds = time.process_time() - start
    off = worst_error(estimates, codes, size)
    return rate(len(codes), seconds, worst_error=off)


def worst_error(estimates: Floats, codes: Codes, size: int) -> float:
    """The largest |estimate − truth| in standard errors; of so few numbers none is above 6."""
    truth = np.bincount(codes, minlength=size)
    seen = RETENTION * truth / len(codes) + (1 - RETENTION) / size
    error = np.sqrt(len(codes) * seen * (1 - seen)) / RETENTION
    worst = float((np.abs(estimates - truth) / error).max())
    assert worst < 6, f"the estimates are {worst:.1f} standard errors off"
    return worst


def counted(codes: Codes, size: int) -> Floats:
    """By np.bincount, in pieces: it makes wide integers of all that it is given."""
    parts = range(0, len(codes), PIECE)
    counts = [np.bincount(codes[at : at + PIECE], minlength=size) for at in parts]
    return np.asarray(np.sum(counts, axis=0), dtype=np.float64)


def inverted(counts: Floats) -> Floats:
    """The unbiased estimate of the true counts."""
    return invert(counts, [Axis(RETENTION, np.full(len(counts), 1 / len(counts)))])


def ours(rows: float, size: int) -> dict[str, Any]:
    """Perturb, count and invert."""
    how, key = Replacement(size, RETENTION), Key.fresh()

    def work(codes: Codes) -> Floats:
        return inverted(counted(perturb(codes, how, key.stream("bench", len(codes))), size))

    return measured(work, rows, size)


def ours_perturbing(rows: float, size: int) -> dict[str, Any]:
    """Without counting and inverting."""
    codes, how = column(int(rows), size), Replacement(size, RETENTION)
    stream = Key.fresh().stream("bench")
    perturb(codes[:1000], how, stream)
    start = time.process_time()
    perturb(codes, how, stream)
    return rate(len(codes), time.process_time() - start)


def plain_numpy(rows: float, size: int) -> dict[str, Any]:
    """The same with NumPy's own generator."""
    generator = np.random.default_rng()

    def work(codes: Codes) -> Floats:
        kept = generator.random(len(codes)) < RETENTION
        fresh = generator.integers(0, size, len(codes), dtype=codes.dtype)
        return inverted(counted(np.where(kept, codes, fresh), size))

    return measured(work, rows, size)


@compiled
def guessable(codes: Codes, out: Codes, below: int, size: int) -> Counts:
    """Perturb and count in one loop, with SplitMix64 from a fixed state."""
    counts = np.zeros(size, dtype=np.int64)
    state, threshold, bound = np.uint64(1), np.uint64(below), np.uint64(size)
    for row in range(codes.size):
        state += np.uint64(0x9E3779B97F4A7C15)
        word = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
        value = np.int64(codes[row])
        if word >> np.uint64(32) >= threshold:
            value = np.int64(((word & np.uint64(0xFFFFFFFF)) * bound) >> np.uint64(32))
        out[row] = value
        counts[value] += 1
    return counts


def compiled_loop(rows: float, size: int) -> dict[str, Any]:
    """Quick, slightly uneven, and anybody can guess its coins."""

    def work(codes: Codes) -> Floats:
        counts = guessable(codes, np.empty_like(codes), int(RETENTION * 2**32), size)
        return inverted(counts.astype(np.float64))

    return measured(work, rows, size)


def multi_freq_ldpy(rows: float, size: int) -> dict[str, Any]:
    """GRR, value by value, as the library's users do; its aggregator sets negative ones to 0."""
    oracle = import_module("multi_freq_ldpy.pure_frequency_oracles.GRR")
    promise = epsilon(size)

    def work(values: list[int]) -> Floats:
        reports = [oracle.GRR_Client(value, size, promise) for value in values]
        return np.asarray(oracle.GRR_Aggregator_MI(reports, size, promise)) * len(values)

    return measured(work, rows, size, one_by_one=True)


def pure_ldp(rows: float, size: int) -> dict[str, Any]:
    """Direct encoding, client and server, value by value.

    Its package imports statsmodels, for RAPPOR only; an empty module in its place will do.
    """
    if find_spec("statsmodels") is None:
        sys.modules |= {name: ModuleType(name) for name in ("statsmodels", "statsmodels.api")}
        sys.modules["statsmodels"].__dict__["api"] = sys.modules["statsmodels.api"]
    oracle = import_module("pure_ldp.frequency_oracles.direct_encoding")

    def work(values: list[int]) -> Floats:
        client = oracle.DEClient(epsilon(size), size, index_mapper=lambda value: value)
        server = oracle.DEServer(epsilon(size), size, index_mapper=lambda value: value)
        for value in values:
            server.aggregate(client.privatise(value))
        return np.asarray(server.estimate_all(range(size), suppress_warnings=True))

    return measured(work, rows, size, one_by_one=True)
