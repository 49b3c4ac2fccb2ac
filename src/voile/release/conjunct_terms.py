"""What tables of counts promise: (δ,T)-privacy, and the same in other words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from scipy.special import ndtri

from voile.errors import PromiseError, UsageError
from voile.privacy.interactive.laws import Change
from voile.privacy.interactive.promise import account, breaches, needed

CHANGE = Change(l1=2, l2_squared=2)
"""A row that is replaced leaves one cell of a table and enters another, on the same side of a
half, whatever side that is: the tables of both sides are one histogram."""
AT = 1e-6
"""δ of the (ε, δ) that is told."""
UNIT = "one row, replaced by any other; a person with c rows has c² times the ρ"
STEP, STEPS = 1.0005, 2000


@dataclass(frozen=True)
class Promise:
    """The noise, and all that is said of it."""

    unit_variance: float
    delta: float
    eta: float
    breach: float
    rho: float
    rho_holds: bool
    epsilon: float | None
    epsilon_delta: float
    unit: str = UNIT


def promise_for_delta(kind: str, delta: float, eta: float, tables: int) -> Promise:
    """The least noise that keeps (δ,T)-privacy over all tables."""
    variance = needed(kind, delta, eta, tables).variance
    for _ in range(STEPS):
        if breaches(kind, variance, tables, delta, CHANGE).end <= eta:
            return promised(kind, variance, delta, eta, tables)
        variance *= STEP
    raise PromiseError(f"no {kind} noise keeps δ = {delta:g} with η = {eta:g}",
                       hint="ask for a larger δ or η")  # fmt: skip


def promise_for_rho(kind: str, rho: float, eta: float, tables: int) -> Promise:
    """Noise that amounts to ρ over all tables, and the δ that it keeps."""
    if not (math.isfinite(rho) and rho > 0):
        raise UsageError(f"ρ = {rho} is not above 0", hint="0.5 is a usual promise; less is more")
    if not 0 < eta < 0.5:
        raise UsageError(f"η = {eta} is not between 0 and .5", hint="1e-6 is usual")
    variance = tables / (2 * rho)
    delta = rho - float(ndtri(eta)) * math.sqrt(2 * rho)
    for _ in range(STEPS):
        if breaches(kind, variance, tables, delta, CHANGE).end <= eta:
            return promised(kind, variance, delta, eta, tables)
        delta *= STEP
    raise PromiseError(f"{kind} noise of ρ = {rho:g} keeps no δ with η = {eta:g}",
                       hint="ask for a smaller ρ or a larger η")  # fmt: skip


@lru_cache(maxsize=64)
def promised(kind: str, variance: float, delta: float, eta: float, tables: int) -> Promise:
    """All that is said of noise of that variance."""
    spent = account(kind, variance, tables, at=AT, change=CHANGE)
    return Promise(
        unit_variance=variance,
        delta=delta,
        eta=eta,
        breach=breaches(kind, variance, tables, delta, CHANGE).end,
        rho=spent.rho,
        rho_holds=spent.rho_holds,
        epsilon=spent.epsilon if math.isfinite(spent.epsilon) else None,
        epsilon_delta=AT,
    )
