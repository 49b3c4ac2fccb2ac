"""Reconstruction of k binary columns, beside the matrix of 2^k × 2^k chances."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from voile.arrays import Floats
from voile.reconstruct import (
    Axis,
    Transition,
    em_steps,
    expectation,
    expected,
    maximum_likelihood,
)

SEED = 20050614
COMPONENTS = 6
REPLACED = 0.5
"""The chance that a replaced value satisfies its condition."""


def seconds(call: Callable[[], object], times: int) -> float:
    """Of the fastest of several calls."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def example(k: int, rows: int, retention: float) -> tuple[Floats, list[Transition]]:
    """Seen counts of correlated columns: a mixture of product distributions, perturbed."""
    rng = np.random.default_rng(SEED)
    chances = rng.beta(0.7, 0.7, (COMPONENTS, k))
    kinds = rng.integers(0, COMPONENTS, rows)
    cells = np.zeros(rows, np.int64)
    for j in range(k):
        true = rng.random(rows) < chances[kinds, j]
        kept = rng.random(rows) < retention
        cells = 2 * cells + np.where(kept, true, rng.random(rows) < REPLACED)
    axes: list[Transition] = [Axis(retention, np.array([1 - REPLACED, REPLACED]))] * k
    return np.bincount(cells, minlength=2**k).astype(float), axes


def step(k: int, rows: int, dense: bool, times: int) -> dict[str, Any]:
    """Milliseconds of one step of EM, ours and with the whole matrix."""
    y, axes = example(k, rows, 0.3)
    few = max(1, 2**21 >> k)
    em_steps(y, axes, 1)
    ours = seconds(lambda: em_steps(y, axes, few), times) / few
    found: dict[str, Any] = {"k": k, "ours": 1000 * ours, "rate": 1 / ours}
    if dense:
        matrix = whole_matrix(axes)
        x = y.copy()
        found["dense"] = 1000 * seconds(lambda: x * (matrix @ (y / (x @ matrix + (y == 0)))), times)
    return found


def whole_matrix(axes: list[Transition]) -> Floats:
    """The Kronecker product of all axes, as a matrix."""
    matrix: Floats = np.ones((1, 1))
    for axis in axes:
        matrix = np.kron(matrix, axis.matrix()).astype(np.float64, copy=False)
    return matrix


def converge(k: int, rows: int, retention: float, times: int) -> dict[str, Any]:
    """Seconds to the maximum within 1e-8 per row, and how far plain EM is after as long a way."""
    y, axes = example(k, rows, retention)
    maximum_likelihood(y, axes, gap=1.0)
    fit = maximum_likelihood(y, axes)
    needed = seconds(lambda: maximum_likelihood(y, axes), times)
    plain = em_steps(y, axes, fit.steps, np.full(y.size, y.sum() / y.size))
    return {
        "k": k,
        "rows": rows,
        "retention": retention,
        "seconds": needed,
        "rate": 1 / needed,
        "steps": fit.steps,
        "gap": fit.gap,
        "cells_above_0": int((fit.counts > 0).sum()),
        "gap_of_plain_em": gap(plain, y, axes),
    }


def gap(x: Floats, y: Floats, axes: list[Transition]) -> float:
    """By how much the log-likelihood per row may be below the best: max A(y/xA) − 1."""
    ratio = y / (expected(x, axes).reshape(-1) + (y == 0))
    return float(expectation(ratio, axes).max()) - 1
