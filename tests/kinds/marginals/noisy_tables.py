"""Noisy marginals of small tables, simulated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from voile.arrays import Floats, Ints
from voile.kinds.marginals.residuals import (
    Columns,
    NoisyMarginals,
    ResidualPlan,
    balanced,
    centred,
    plan,
)


def tables_up_to(number: int, order: int) -> list[Columns]:
    """All sets of so many columns at most."""
    return [s for k in range(1, order + 1) for s in combinations(range(number), k)]


def planned(sizes: Sequence[int], order: int, rho: float) -> ResidualPlan:
    """All tables up to this order, balanced."""
    return plan(sizes, balanced(sizes, tables_up_to(len(sizes), order)), rho)


def marginal(codes: Sequence[Ints], sizes: Sequence[int], columns: Columns) -> Floats:
    """The true counts."""
    key = np.zeros(len(codes[0]), np.int64)
    for i in columns:
        key = key * sizes[i] + codes[i]
    shape = [sizes[i] for i in columns]
    return np.bincount(key, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


def measured(codes: Sequence[Ints], chosen: ResidualPlan, seed: int) -> NoisyMarginals:
    """The components with continuous noise."""
    rng = np.random.default_rng(seed)
    residuals = {}
    for c in chosen.components:
        true = marginal(codes, chosen.sizes, c)
        noise = math.sqrt(chosen.variances[c]) * rng.standard_normal(true.shape)
        residuals[c] = centred(true + noise)
    return NoisyMarginals(chosen, residuals)


def related_columns(rows: int, sizes: Sequence[int], seed: int) -> list[Ints]:
    """Columns that hang together through four hidden classes."""
    rng = np.random.default_rng(seed)
    hidden = rng.choice(4, rows, p=[0.5, 0.3, 0.15, 0.05])
    found = []
    for size in sizes:
        shares = rng.dirichlet(np.full(size, 0.5), 4)
        below = np.cumsum(shares, axis=1)
        drawn = (rng.random(rows)[:, None] > below[hidden]).sum(axis=1)
        found.append(np.minimum(drawn, size - 1).astype(np.int64))
    return found
