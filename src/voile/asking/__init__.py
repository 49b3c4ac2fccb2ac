"""Asking servers: a client, and statistics of people whose columns lie on several servers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voile.asking.across import mine

__all__ = ["mine"]


def __getattr__(name: str) -> Any:
    if name == "mine":  # loaded on first use: a client that only asks needs no SciPy
        return importlib.import_module("voile.asking.across").mine
    raise AttributeError(f"module 'voile.asking' has no attribute {name!r}")
