"""Asking servers: a client, and statistics of people whose columns lie on several servers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voile.remote.across import mine
    from voile.remote.implication import Tester, best_halves, covariance_error

_HOMES = {
    "Tester": "voile.remote.implication",
    "best_halves": "voile.remote.implication",
    "covariance_error": "voile.remote.implication",
    "mine": "voile.remote.across",
}

__all__ = ["Tester", "best_halves", "covariance_error", "mine"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:  # loaded on first use: a client that only asks needs no SciPy
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'voile.asking' has no attribute {name!r}")
