"""Mechanisms by their names: how each publishes and estimates stands in its kind's folder."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voile.kinds.perturbed.select_a_size import SelectASize
    from voile.kinds.views.alphabeta import AlphaBeta, Publishing
    from voile.kinds.views.series import Series
    from voile.kinds.views.shaped import Shaped

__all__ = ["AlphaBeta", "Publishing", "SelectASize", "Series", "Shaped"]

_HOMES = {
    "AlphaBeta": "voile.kinds.views.alphabeta",
    "Publishing": "voile.kinds.views.alphabeta",
    "SelectASize": "voile.kinds.perturbed.select_a_size",
    "Series": "voile.kinds.views.series",
    "Shaped": "voile.kinds.views.shaped",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'voile.mechanisms' has no attribute {name!r}")
