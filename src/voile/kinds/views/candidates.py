"""A noisy view under ε, with what counts would be off by: from public numbers alone."""

from __future__ import annotations

import math

from voile.kinds.choosing import (
    Columns,
    EpsilonPromise,
    MethodCandidate,
    PublicSize,
    expected_error,
)
from voile.kinds.views.alphabeta import AlphaBeta
from voile.kinds.views.options import epsilon_promise
from voile.kinds.views.promise import MOST_ROWS
from voile.privacy.planner import plan
from voile.privacy.spent import NOTHING

LEAST, MOST = 1e-3, 30.0
"""The least and the largest ε that a view is considered for: beyond, beliefs round to certainty."""


def view_candidates(public: PublicSize, promise: EpsilonPromise) -> list[MethodCandidate]:
    """One view, which has no account for a look at the table: only where there was none."""
    epsilon = promise.epsilon - promise.spent.epsilon_at(promise.delta)
    if not LEAST < epsilon < MOST:
        return []
    prior, posterior = epsilon_promise(epsilon)
    from voile.privacy import DGamma  # noqa: PLC0415  (candidates are seldom asked for)

    planned = plan(DGamma(prior, posterior), "multiset")
    mechanism, size = AlphaBeta(planned.retention, planned.noise), math.prod(public.sizes)
    if mechanism.expected_noise(size) > MOST_ROWS:
        return []

    def error(columns: Columns, count: float) -> float | None:
        tuples = size // math.prod(public.sizes[i] for i in columns)
        return math.sqrt(float(mechanism.variance(count, float(tuples))))

    options = {"epsilon": epsilon}
    found = expected_error(public, error, modelled=False)
    unseen = promise.spent == NOTHING
    return [MethodCandidate("alphabeta", found, "a noisy view", options, eligible=unseen)]
