"""What noisy answers reveal: confidence, the noise that a promise needs, and its accounts."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voile.privacy.interactive.promise import account, needed, needed_for_epsilon

__all__ = ["account", "needed", "needed_for_epsilon"]


def __getattr__(name: str) -> Any:
    if name in __all__:  # loaded on first use: the laws of noise alone need less
        return getattr(importlib.import_module("voile.privacy.interactive.promise"), name)
    raise AttributeError(f"module 'voile.privacy.interactive' has no attribute {name!r}")
