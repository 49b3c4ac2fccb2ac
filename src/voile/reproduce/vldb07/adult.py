"""Adult by every method of Figures 2 and 3: all selections of up to three attributes, estimated.

The paper applies an algorithm for sets to a table in which a third of the rows repeat another row.
So does `on_rows`, which is how its numbers come out; `voile.publish` refuses that, for a tuple that
is seen twice would be certain to be real. Ours are the multiset form that it uses instead.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

import voile
from voile.evaluate.selecting import selection_estimates, true_selections
from voile.evaluate.workload import Selections, cumulative_error, selection_counts
from voile.mechanisms import AlphaBeta
from voile.noise import Key
from voile.privacy import DGamma, plan
from voile.privacy.local import retention_for_ratio
from voile.schema import Schema, TupleIndex

Floats = npt.NDArray[np.float64]

PRIOR_FACTOR, POSTERIOR = 10, 0.2
"""k and γ of the experiments."""
MISS = 0.05
"""ε of (ρ, ε)-usefulness: the paper names none; 95 % is usual."""
TABLE = "dataset:adult/boundary"
FRAPP, LOOSE, TIGHT = "FRAPP", "αβ, loose β = d/γ", "αβ, tight β"
BETTER, MULTISET = "αβ, largest retention", "ours: multiset"
REFINED = "ours: retention ½, refined"
MARGINALS, MARGINALS_1 = "2026: marginals, the same ε", "2026: marginals, ε = 1"
"""Noisy marginals with a model, at the ε of the view's likelihood ratio, and at the default one."""
REPORT, REPORT_BETA = "αβ, β = 0.00095", 9.5e-4
"""The technical report's choice."""
THRESHOLDS = (
    0, 1, 50, 70, 100, 140, 200, 300, 400, 500, 600, 700, 850, 1000, 1400, 2000, 3000, 4000, 5000,
)  # fmt: skip
CELL = 100
"""Counts are drawn as squares of this side."""
BAND = 500
"""Half of the band of width 1000 that the technical report draws."""


@lru_cache(1)
def adult() -> tuple[Any, Schema]:
    """The table and its active domain."""
    table = voile.read(TABLE)
    return table, table.infer(list(table.columns), "error")


@lru_cache(1)
def truth() -> Selections:
    """The true counts of all selections."""
    return true_selections(*adult())


def promise(factor: Fraction = Fraction(PRIOR_FACTOR), posterior: float = POSTERIOR) -> DGamma:
    """d = k·n/m, and γ."""
    table, schema = adult()
    return DGamma(float(factor * Fraction(len(table), schema.size)), posterior)


def alphabeta(method: str) -> AlphaBeta:
    """The paper's algorithm with the parameters that each reading of it has."""
    promised = promise()
    if method == LOOSE:
        return AlphaBeta(0.5, float(promised.ratio_low), "set")
    if method == REPORT:
        return AlphaBeta(0.5, REPORT_BETA, "set")
    planned = plan(promised, "set", retention=0.5 if method == TIGHT else None)
    return AlphaBeta(planned.retention, planned.noise, "set")


def frapp_retention() -> float:
    """FRAPP at 'the same (d, γ)': what one record is believed to be has a prior of d/n."""
    table, schema = adult()
    record = DGamma(promise().prior / len(table), POSTERIOR)
    return retention_for_ratio(record.ratio_high, Fraction(1, schema.size))


def on_rows(mechanism: AlphaBeta, seed: int) -> Floats:
    """The set algorithm applied to rows, as the paper's experiments must have done."""
    table, schema = adult()
    members, index, key = table.keys(schema, drop_nulls=False), TupleIndex(schema.sizes), _key(seed)
    noise = mechanism.noise_rows(index, key, 0, 0, index.limbs[0].size)
    view = np.concatenate(list(mechanism.view(members, noise, key, 0)))
    counted = selection_counts(index.decode(view), schema.sizes)
    return np.asarray(mechanism.total(counted.counts, counted.domain))


def _key(seed: int) -> Key:
    return Key.from_seed(seed)


def likelihood_epsilon() -> float:
    """ε such that no record becomes more likely by a factor above e^ε: what (d, γ) allows."""
    return math.log(promise().ratio_high)


def marginals(epsilon: float, seed: int) -> Floats:
    """The estimate of every selection from noisy marginals with a model."""
    release = voile.publish(
        adult()[0], method="marginals", schema="active", epsilon=epsilon, simulate_seed=seed
    )
    return selection_estimates(release, refine=True)


def estimates(method: str, seed: int) -> Floats:
    """The estimate of every selection, by one run of a method."""
    table, _ = adult()
    if method in (MARGINALS, MARGINALS_1):
        return marginals(likelihood_epsilon() if method == MARGINALS else 1.0, seed)
    if method == FRAPP:
        retention = frapp_retention()
        rows = voile.perturb(table, retention, whole_rows=True, simulate_seed=seed)
        return np.asarray(selection_estimates(rows))
    if method in (LOOSE, TIGHT, BETTER, REPORT):
        return on_rows(alphabeta(method), seed)
    options: dict[str, Any] = {
        "prior_factor": PRIOR_FACTOR,
        "posterior": POSTERIOR,
        "simulate_seed": seed,
    }
    if method == REFINED:
        return selection_estimates(voile.publish(table, retention=0.5, **options), refine=True)
    return selection_estimates(voile.publish(table, **options))


def measured(method: str, seed: int) -> dict[str, Any]:
    """One run of a method: its errors, and where its estimates lie."""
    return summary(truth().counts, estimates(method, seed), len(adult()[0]))


def summary(true: npt.NDArray[Any], estimate: Floats, rows: int) -> dict[str, Any]:
    """The errors of one run: by threshold, in cells of the plane, and in a few numbers."""
    error = np.abs(estimate - true)
    large = true >= 1000
    squares = np.stack([true // CELL, np.floor(estimate / CELL)], axis=1).astype(np.int64)
    cells, queries = np.unique(squares, axis=0, return_counts=True)
    return {
        "cumulative": cumulative_error(true, estimate, THRESHOLDS).tolist(),
        "cells": cells.tolist(),
        "queries": queries.tolist(),
        "in_band": float((error <= BAND).mean()),
        "in_band_large": float((error[large] <= BAND).mean()),
        "negative_small": float((estimate[true < 100] < 0).mean()),
        "off_small": relative(error, true, 1, 100),
        "off_large": relative(error, true, 5000, np.inf),
        "rho": float(np.quantile(error, 0.95) / np.sqrt(rows)),
        "rho_largest": float(error.max() / np.sqrt(rows)),
    }


def relative(error: Floats, true: npt.NDArray[Any], low: float, high: float) -> float:
    """The median of |error| / Q(I) over the queries with low ≤ Q(I) < high."""
    here = (true >= low) & (true < high)
    return float(np.median(error[here] / true[here]))
