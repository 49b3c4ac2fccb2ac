"""A server that answers a bounded number of noisy counts about a table, and never one more."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voile.serve.creation import begin
    from voile.serve.self_audit import audit_folder
    from voile.serve.server import serve
    from voile.serve.simulation import SimulatedServer, simulated
    from voile.serve.steward import (
        begun_data,
        issue_token,
        ledger_of,
        log,
        planned,
        revoke,
        set_group,
        status,
    )

_HOMES = {
    "SimulatedServer": "voile.serve.simulation",
    "audit_folder": "voile.serve.self_audit",
    "begin": "voile.serve.creation",
    "begun_data": "voile.serve.steward",
    "issue_token": "voile.serve.steward",
    "ledger_of": "voile.serve.steward",
    "log": "voile.serve.steward",
    "planned": "voile.serve.steward",
    "revoke": "voile.serve.steward",
    "serve": "voile.serve.server",
    "set_group": "voile.serve.steward",
    "simulated": "voile.serve.simulation",
    "status": "voile.serve.steward",
}

__all__ = [
    "SimulatedServer",
    "audit_folder",
    "begin",
    "begun_data",
    "issue_token",
    "ledger_of",
    "log",
    "planned",
    "revoke",
    "serve",
    "set_group",
    "simulated",
    "status",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:  # loaded on first use: the table's engine and the ledger take a while
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'voile.serve' has no attribute {name!r}")
