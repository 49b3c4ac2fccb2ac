"""What tables of counts promise: (δ,T)-privacy, and the same in other words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from voile.errors import PromiseError, spelled
from voile.privacy.interactive.laws import Change
from voile.privacy.interactive.promise import account, breaches, needed

CHANGE = Change(l1=2, l2_squared=2)
"""A row that is replaced leaves one cell of a table and enters another, on the same side of a
half, whatever side that is: the tables of both sides are one histogram."""
AT = 1e-6
"""δ of the (ε, δ) that is told."""
UNIT = "one row, replaced by any other; a person with c rows has c² times the ρ"
CLOSE, MOST = 5e-4, 8.0
"""Of the factor by which exact laws need more than the normal one, or keep a larger δ."""


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
    least = needed(kind, delta, eta, tables).variance

    def kept(more: float) -> bool:
        return breaches(kind, least * more, tables, delta, CHANGE).end <= eta

    return promised(kind, least * raised(kept), delta, eta, tables)


def promise_for_rho(kind: str, rho: float, eta: float, tables: int) -> Promise:
    """Noise that amounts to ρ over all tables, and the δ that it keeps."""
    from scipy.special import ndtri  # noqa: PLC0415  (slow to import)

    variance = tables / (2 * rho)
    least = rho - float(ndtri(eta)) * math.sqrt(2 * rho)

    def kept(more: float) -> bool:
        return breaches(kind, variance, tables, least * more, CHANGE).end <= eta

    if not kept(MOST):
        raise PromiseError(
            f"{kind} noise of ρ = {rho:g} over {tables:,} tables is so little that it excludes "
            f"what is not true with a chance above η = {eta:g}",
            hint=f"ask for a smaller {spelled('rho')}, a larger {spelled('eta')}, or "
            f"{spelled('noise', 'gaussian')}",
        )
    return promised(kind, variance, least * raised(kept), eta, tables)


def raised(kept: Callable[[float], bool]) -> float:
    """The least factor, 1 or a little more, with which a promise is kept."""
    if kept(1.0):
        return 1.0
    low, high = 1.0, 1.0 + CLOSE
    while not kept(high) and high < MOST:
        low, high = high, 1.0 + 2 * (high - 1.0)
    while high - low > CLOSE:
        middle = (low + high) / 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high


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
