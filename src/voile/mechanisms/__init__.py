"""One file per mechanism: how it publishes beside how it estimates."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from voile.mechanisms.alphabeta import AlphaBeta, Publishing
from voile.mechanisms.series import Series
from voile.mechanisms.shaped import Shaped

if TYPE_CHECKING:
    from voile.mechanisms.select_a_size import SelectASize

__all__ = ["AlphaBeta", "Publishing", "SelectASize", "Series", "Shaped"]


def __getattr__(name: str) -> Any:
    if name == "SelectASize":  # loaded on first use: few have baskets
        return importlib.import_module("voile.mechanisms.select_a_size").SelectASize
    raise AttributeError(f"module 'voile.mechanisms' has no attribute {name!r}")
