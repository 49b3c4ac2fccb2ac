"""From a published view to its refinement: how many components, the fit, and its error.

All of it is post-processing of what is public anyway: it costs no privacy, and its seed is no
secret. The same view and seed give the same refinement on any machine's number of cores.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.refine.choice import Choice, choose, ensemble
from voile.refine.coins import Coins
from voile.refine.em import CHUNKS, Fitter, Known
from voile.refine.error import ErrorModel
from voile.refine.examine import CAUTION, Noise, Residuals, law, residuals
from voile.refine.mixture import Mixture
from voile.refine.rows import Layout, Rows, checked

MOST_ROWS = 2_000_000
"""Rows that are fitted to; of a larger view, a sample."""

Tell = Callable[[str, float], None]

LEAST_WEIGHTS = np.array([1.0, 0.0, 0.0])
"""κ is at least 1: a table is one draw, and its counts scatter around any smooth model by their own
size. Where there is little noise, halves of the view cannot tell that from what thinning does."""


@dataclass(frozen=True)
class Refinement:
    """The fitted model, the error of counts from it, and how both came about."""

    mixture: Mixture
    error: ErrorModel
    halves: tuple[Mixture, Mixture]
    report: dict[str, Any]


def refine(
    codes: Sequence[npt.NDArray[Any]],
    sizes: Sequence[int],
    *,
    noise_mean: float,
    excess: float,
    retention: float,
    noise_variance: float,
    rows: float | None,
    domain: int,
    seed: int = 0,
    progress: Tell | None = None,
    threads: int | None = None,
) -> Refinement:
    """Fit a mixture to a view. `codes` has one column per attribute, a code for every row.

    `rows` is the number of records where that is public; otherwise it is estimated. `domain` is
    the size of D, however large.
    """
    began = time.monotonic()
    columns, widths = checked(codes, sizes)
    seen = len(columns[0])
    layout = Layout.suited(widths, seen)
    noise = Noise(
        retention=retention,
        excess=excess,
        rows=times(noise_mean, domain),
        dispersion=noise_variance / noise_mean if noise_mean > 0 else 1.0,
    )
    total = max(1.0, (seen - noise.rows) / excess if rows is None else float(rows))
    known = Known(total, excess, times(noise_mean, layout.uniform_tuples))
    view = sampled(layout, columns, seed)
    with ThreadPoolExecutor(threads or CHUNKS) as pool:
        fitter = Fitter(layout, known, pool)
        choice, mixture, halves, found = fitted(fitter, noise, view, seed, progress or silent)
    report = {
        **choice.to_dict(),
        "rows": seen,
        "fitted_rows": len(view),
        "left_out": list(mixture.left_out),
        "queries": len(found.x),
        "seed": seed,
        "seconds": time.monotonic() - began,
    }
    error = error_model(found, noise, total, public=rows is not None)
    return Refinement(mixture, error, halves, report)


def fitted(
    fitter: Fitter, noise: Noise, view: Rows, seed: int, tell: Tell
) -> tuple[Choice, Mixture, tuple[Mixture, Mixture], Residuals]:
    """Choose, fit all of it and each half, and let the halves examine each other."""
    choice = choose(fitter, view, seed, lambda done: tell("choosing the model", done))
    tell("fitting", 0.0)
    mixture = ensemble(fitter, view, choice, seed)
    tell("fitting", 0.5)
    a, b = split(view, seed)
    halves = ensemble(fitter, a, choice, seed), ensemble(fitter, b, choice, seed)
    tell("examining", 0.0)
    found = residuals(fitter, noise, (a, b), halves, seed)
    tell("examining", 1.0)
    return choice, mixture, halves, found


def error_model(found: Residuals, noise: Noise, total: float, *, public: bool) -> ErrorModel:
    weights, errors = law(found)
    whole = float(noise.variance(np.array(total), np.array(1.0)))
    return ErrorModel(
        weights=np.maximum(weights + CAUTION * errors, LEAST_WEIGHTS),
        follows=float(found.follows.max(initial=0.0)),
        rows=total,
        whole=whole,
        unsure=0.0 if public else math.sqrt(whole) / total,
    )


def sampled(layout: Layout, columns: Sequence[npt.NDArray[Any]], seed: int) -> Rows:
    """The view's rows, or of a very large view each row with the same chance."""
    seen = len(columns[0])
    share = min(1.0, MOST_ROWS / max(1, seen))
    if share < 1:
        chosen = np.flatnonzero(Coins.SAMPLE.thrown(seed).random(seen) < share)
        columns = [column[chosen] for column in columns]
    return Rows(layout, layout.pack(columns), share)


def split(view: Rows, seed: int) -> tuple[Rows, Rows]:
    """Two halves by coin."""
    heads = Coins.HALVES.thrown(seed).random(len(view)) < 0.5
    return view.where(heads, 0.5), view.where(~heads, 0.5)


def times(mean: float, count: int) -> float:
    """mean · count, where the count may be too large for a float64."""
    if mean <= 0:
        return 0.0
    exponent = math.log(mean) + math.log(count)
    return math.exp(exponent) if exponent < 700 else math.inf


def silent(_what: str, _done: float) -> None:
    """Nobody is watching."""
