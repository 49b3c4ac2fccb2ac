"""Ways to publish noisy tables, with what counts would be off by: from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from voile.kinds.choosing import (
    Columns,
    EpsilonPromise,
    MethodCandidate,
    PublicSize,
    expected_error,
)
from voile.kinds.marginals.beliefs import concentrated_eta
from voile.kinds.marginals.choosing import (
    SINGLES,
    WIDE,
    MeasuringBudget,
    all_tables,
    chosen_order,
    workload_weights,
)
from voile.kinds.marginals.measuring import (
    LARGEST_TABLE,
    MOST_WHOLE_COLUMNS,
    MeasurementPlan,
    Noise,
    gaussian_plan,
    pure_plan,
    rho_for,
)
from voile.kinds.marginals.places import PlaceBudget
from voile.kinds.marginals.residuals import balanced

FULL_TABLE = 2**16
"""Cells of a full table that is considered: larger ones lose against smaller tables."""
SHARP = 0.05
"""The expected error below which larger tables are taken, though smaller ones err less."""
LEAST = 1e-6
"""Of a budget: with less left, there is no candidate."""


def marginal_candidates(public: PublicSize, promise: EpsilonPromise) -> list[MethodCandidate]:
    """Tables of every few columns with a model, and the full table of counts."""
    wide = len(public.sizes) >= WIDE  # then tables may be chosen, and all ways have that account
    normal = min(promise.rho, rho_with_choice(promise)) if wide else promise.rho
    found: list[MethodCandidate] = []
    if normal > LEAST:
        eta = _eta_of_choice(promise) if wide else None
        found += (replace(one, eta=eta) for one in _candidates(public, "gaussian", normal))
    if promise.pure > LEAST:
        found += _candidates(public, "geometric", promise.pure)
    return found


def rho_with_choice(promise: EpsilonPromise) -> float:
    """What is left for one row by the account of zCDP, which holds where tables may be chosen."""
    spent = promise.spent
    if spent.epsilon or promise.delta <= spent.delta:
        return 0.0
    whole = rho_for(promise.epsilon, promise.delta - spent.delta, chosen=True)
    return max(0.0, whole - spent.mu**2 / 2) / promise.rows_per_person**2


def _candidates(public: PublicSize, noise: Noise, amount: float) -> Iterator[MethodCandidate]:
    """With one noise, and what means within bins leave of the budget."""
    sizes = public.sizes
    amount *= 1 - PlaceBudget(noise, "add-remove", amount).share(public.bins, public.rows)
    budget = MeasuringBudget(noise, "add-remove", amount, amount)
    if public.asked:
        weights = workload_weights(sizes, dict.fromkeys(public.asked, 1.0))
        yield _of(public, noise, _plan(sizes, weights, noise, amount), {"workload": True},
                  "tables of the columns that the questions read, with a model")  # fmt: skip
    highest = chosen_order(sizes, public.rows, budget)
    for order in range(highest, 0, -1):
        plan = _plan(sizes, balanced(sizes, all_tables(len(sizes), order)), noise, amount)
        upto = "each column" if order == 1 else f"up to {order} columns"
        found = _of(public, noise, plan, {"order": order}, f"noisy tables of {upto} with a model")
        yield found
        if order > 1 and found.expected_error <= SHARP:
            return  # smaller tables would be sharper still, and say less
    if highest == 1 and sum(size > 1 for size in sizes) >= WIDE:
        weights = balanced(sizes, all_tables(len(sizes), 1))
        plan = _plan(sizes, weights, noise, SINGLES * amount)
        about = "noisy tables of each column and of pairs that are chosen privately, with a model"
        yield _of(public, noise, plan, {}, about)
    columns = [i for i, size in enumerate(sizes) if size > 1]
    most = MOST_WHOLE_COLUMNS[noise]
    if 1 < len(columns) <= most and math.prod(sizes) <= min(FULL_TABLE, LARGEST_TABLE):
        whole = tuple(range(len(sizes)))
        plan = _plan(sizes, balanced(sizes, [whole]), noise, amount)
        yield _of(public, noise, plan, {}, "the full table of counts, with noise", "full-table")


def _eta_of_choice(promise: EpsilonPromise) -> float:
    """The probability that a belief rises further, where tables may be chosen privately: by ρ."""
    rho = rho_for(promise.epsilon, promise.delta - promise.spent.delta, chosen=True)
    return concentrated_eta(4 * rho, 2 * promise.epsilon) + promise.spent.delta


def _plan(
    sizes: Sequence[int], weights: Mapping[Columns, float], noise: Noise, amount: float
) -> MeasurementPlan:
    if noise == "gaussian":
        return gaussian_plan(sizes, weights, rho=amount, unit="add-remove")
    return pure_plan(sizes, weights, epsilon=amount, unit="add-remove")


def _of(
    public: PublicSize,
    noise: Noise,
    plan: MeasurementPlan,
    options: Mapping[str, Any],
    about: str,
    method: str = "marginals",
) -> MethodCandidate:
    """The candidate with this plan."""
    found = plan.residual_plan()

    def error(columns: Columns, count: float) -> float | None:
        del count  # noise does not depend on it
        kept = tuple(i for i in columns if public.sizes[i] > 1)
        return math.sqrt(found.cell_variance(kept)) if kept in found.variances else None

    return MethodCandidate(
        method, expected_error(public, error, modelled=True), about, {**options, "noise": noise}
    )
