"""Whether figures have the noise that is stated: sound ones pass, others do not."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest
from scipy import stats

from tests.support.soak import rounds
from voile.errors import ReleaseError
from voile.kinds.marginals.measuring import (
    MeasurementPlan,
    gaussian_plan,
    noise_for,
    pure_plan,
    whole_figures,
)
from voile.kinds.marginals.plausibility import surprises
from voile.kinds.marginals.residuals import balanced
from voile.kinds.plausibility import FALSE_ALARM, judge
from voile.noise import Key

SIZES = (14, 12, 6, 2)
NAMES = list("abcd")
ROWS = 100
TABLES = [(0,), (1,), (2,), (3,), (0, 1), (0, 2), (1, 2), (0, 1, 2), (1, 2, 3)]


def a_plan(noise: Literal["gaussian", "geometric"]) -> MeasurementPlan:
    weights = balanced(SIZES, TABLES)
    if noise == "gaussian":
        return gaussian_plan(SIZES, weights, rho=0.5, unit="add-remove")
    return pure_plan(SIZES, weights, epsilon=1.0, unit="add-remove")


def figures_of(plan: MeasurementPlan, seed: int, times: float = 1.0) -> list[Any]:
    """Figures of one random table, with noise that is so many times the stated one."""
    rng = np.random.default_rng(7)
    codes = [rng.integers(0, size, ROWS) for size in SIZES]
    noise = noise_for(plan, Key.from_seed(seed).stream("test"))
    found = []
    for m, drawn in zip(plan.measurements, noise, strict=True):
        shape = [SIZES[i] for i in m.columns]
        counts = np.zeros(shape, np.int64)
        np.add.at(counts, tuple(codes[i] for i in m.columns) or (), 1 if m.columns else ROWS)
        found.append(whole_figures(plan, m, counts) + np.rint(times * drawn).astype(np.int64))
    return found


def surprise(plan: MeasurementPlan, figures: list[Any]) -> float:
    """ln of the least chance, corrected for how much was looked at."""
    found = [one.log_chance for one in surprises(plan, figures, NAMES)]
    return min(found) + math.log(len(found))


@pytest.mark.parametrize("noise", ["gaussian", "geometric"])
def test_sound_figures_are_not_suspected(noise: Literal["gaussian", "geometric"]) -> None:
    """Nor is the chance that is found smaller than it should be: below 1 % in 1 % of them."""
    plan, number = a_plan(noise), rounds(60, 2000)
    chances = np.array([surprise(plan, figures_of(plan, seed)) for seed in range(number)])
    assert chances.min() > math.log(FALSE_ALARM)
    assert (chances < math.log(0.01)).sum() <= stats.binom.ppf(1 - 1e-6, number, 0.01)


@pytest.mark.parametrize(
    ("noise", "times"),
    [("gaussian", 0.0), ("gaussian", 0.5), ("gaussian", 2.0), ("geometric", 0.0)],
)
def test_figures_with_other_noise_are_refused(
    noise: Literal["gaussian", "geometric"], times: float
) -> None:
    """None, half as much and twice as much; each time, in twenty tries.

    Of geometric noise there is less to compare: only its absence is found each time.
    """
    plan = a_plan(noise)
    for seed in range(20):
        with pytest.raises(ReleaseError, match="not what the stated noise makes"):
            judge(surprises(plan, figures_of(plan, seed, times), NAMES))
