"""Views refined and compared with the truth: Adult, and a table that nothing was tuned on."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.adult import NAME
from voile.arrays import Floats
from voile.engines import connect
from voile.engines.encode import codes
from voile.evaluate.workload import selection_counts
from voile.kinds.views.refinement.fit import Refinement, refine
from voile.mechanisms import AlphaBeta
from voile.privacy import DGamma, plan
from voile.publishing import publish
from voile.schema import TupleIndex

SIZES = (5, 5, 10, 30, 2, 2, 16, 30, 3, 3, 16, 4, 3, 16, 3, 4, 7, 5, 2, 2)
"""Of the made-up table: m = 6.7·10¹⁴."""
EDGES = (0, 1, 3, 10, 30, 100, 300, 1000, 5000, math.inf)
"""Sizes of refined counts between which coverage is taken apart."""


@dataclass(frozen=True)
class Case:
    """A view with its truth."""

    truth: list[npt.NDArray[Any]]
    view: list[npt.NDArray[Any]]
    sizes: tuple[int, ...]
    mechanism: AlphaBeta

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return len(self.truth[0])

    def refine(self) -> Refinement:
        """The view refined, knowing the mechanism and the number of rows."""
        mechanism = self.mechanism
        return refine(
            [self.view],
            self.sizes,
            seen=len(self.view[0]),
            noise_mean=mechanism.noise_mean,
            excess=mechanism.excess,
            retention=mechanism.retention,
            noise_variance=mechanism.noise_variance,
            rows=self.rows,
            domain=math.prod(self.sizes),
        )

    def compare(self) -> dict[str, Any]:
        """Errors of refined and plain counts of every selection of up to three attributes."""
        began, busy = time.perf_counter(), time.process_time()
        refined = self.refine()
        seconds, busy = time.perf_counter() - began, time.process_time() - busy
        true = selection_counts(self.truth, self.sizes)
        seen = selection_counts(self.view, self.sizes).counts
        m = self.mechanism
        plain = (seen - m.noise_mean * true.domain) / m.excess
        likely = np.clip(plain, 0, self.rows)
        kept = likely * m.retention * (1 - m.retention)
        variance = (kept + true.domain * m.noise_variance) / m.excess**2
        model = np.concatenate([refined.mixture.marginal(s).ravel() for s in true.subsets])
        value, stderr = refined.error.combine(plain, variance, model)
        return {
            "queries": len(true),
            "seconds": seconds,
            "processor": busy,
            "components": refined.report["components"],
            "steps": refined.report["steps"],
            "view": refined.report["rows"],
            "fitted": refined.report["fitted_rows"],
            "coverage_by_size": coverage(true.counts, value, stderr),
            **mean_errors("refined", value, true.counts),
            **mean_errors("model", model, true.counts),
            **mean_errors("plain", plain, true.counts),
        }


def mean_errors(name: str, value: Floats, truth: npt.NDArray[Any]) -> dict[str, float]:
    """The mean error of all counts, and of the large ones."""
    wrong, large = np.abs(value - truth), truth >= 1000
    return {
        name: float(wrong.mean()),
        f"{name}_large": float(wrong[large].mean()) if large.any() else 0.0,
    }


def coverage(truth: npt.NDArray[Any], value: Floats, stderr: Floats) -> list[float]:
    """How often ± 1.96 standard errors cover the truth, for small and large refined counts."""
    covered = np.abs(value - truth) <= 1.96 * stderr
    place = np.digitize(value, EDGES)
    return [float(covered[place == i].mean()) for i in range(1, len(EDGES)) if (place == i).any()]


def together(cases: Iterator[Case]) -> dict[str, Any]:
    """Means over the seeds."""
    each = [case.compare() for case in cases]
    names = [name + size for name in ("refined", "model", "plain") for size in ("", "_large")]
    return {
        "queries": each[0]["queries"],
        "view": each[0]["view"],
        "fitted": each[0]["fitted"],
        **{name: float(np.mean([one[name] for one in each])) for name in names},
        "coverage": float(np.mean([np.mean(one["coverage_by_size"]) for one in each])),
        "seconds": [one["seconds"] for one in each],
        "processor": [one["processor"] for one in each],
        "seeds": each,
    }


def adult(
    retention: float | None, seeds: Sequence[int], prior_factor: float = 10.0
) -> dict[str, Any]:
    """The paper's table at γ = 0.2."""
    return together(adult_case(retention, seed, prior_factor) for seed in seeds)


def adult_case(retention: float | None, seed: int, prior_factor: float) -> Case:
    """A view of Adult with its truth."""
    table = connect(NAME)
    release = publish(
        table,
        prior_factor=prior_factor,
        posterior=0.2,
        retention=retention,
        simulate_seed=seed,
    )
    schema = release.schema
    arrow = release.to_arrow().combine_chunks()
    view = [codes(arrow.column(a.name).combine_chunks(), a) for a in schema]
    truth = TupleIndex(schema.sizes).decode(table.keys(schema, drop_nulls=False))
    assert isinstance(release.mechanism, AlphaBeta)
    return Case(list(truth), view, tuple(schema.sizes), release.mechanism)


def correlated(seeds: Sequence[int], rows: int = 20_000) -> dict[str, Any]:
    """Twenty attributes, cuts of correlated normal numbers: no mixture of few products."""
    return together(correlated_case(seed, rows) for seed in seeds)


def correlated_case(seed: int, rows: int) -> Case:
    """A view of the made-up table with its truth."""
    rng = np.random.default_rng(seed)
    width = len(SIZES)
    loads = rng.normal(0, 1, (4, width)) * (rng.random((4, width)) < 0.5)
    values = rng.normal(0, 1, (rows, 4)) @ loads + rng.normal(0, 0.7, (rows, width))
    truth = []
    for j, size in enumerate(SIZES):
        cuts = np.quantile(values[:, j], np.cumsum(rng.dirichlet(np.ones(size)))[:-1])
        truth.append(rng.permutation(size)[np.searchsorted(cuts, values[:, j])])
    planned = plan(DGamma(10 * rows / math.prod(SIZES), 0.2), "multiset", retention=0.5)
    mechanism = AlphaBeta(planned.retention, planned.noise)
    # The domain is so sparse that geometric copies of noise are as good as Poisson's.
    noise = rng.poisson(mechanism.noise_mean * math.prod(SIZES))
    kept = rng.random(rows) < mechanism.retention
    view = [
        np.concatenate([column[kept], rng.integers(0, size, noise)])
        for column, size in zip(truth, SIZES, strict=True)
    ]
    return Case(truth, view, SIZES, mechanism)
