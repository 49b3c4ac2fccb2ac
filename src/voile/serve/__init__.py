"""A server that answers a bounded number of noisy counts about a table, and never one more."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voile.serve.creation import begin
    from voile.serve.simulation import simulated
    from voile.serve.steward import ledger_of

_HOMES = {
    "begin": "voile.serve.creation",
    "ledger_of": "voile.serve.steward",
    "simulated": "voile.serve.simulation",
}

__all__ = ["begin", "ledger_of", "simulated"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:  # loaded on first use: the table's engine and the ledger take a while
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'voile.serve' has no attribute {name!r}")
