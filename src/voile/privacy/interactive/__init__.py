"""What noisy answers tell: confidence, the noise that (δ,T)-privacy needs, and its accounts."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voile.privacy.interactive.confidence import variance_needed
    from voile.privacy.interactive.promise import account, needed

_HOMES = {
    "account": "voile.privacy.interactive.promise",
    "needed": "voile.privacy.interactive.promise",
    "variance_needed": "voile.privacy.interactive.confidence",
}

__all__ = ["account", "needed", "variance_needed"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:  # loaded on first use: the laws of noise alone need less
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'voile.privacy.interactive' has no attribute {name!r}")
