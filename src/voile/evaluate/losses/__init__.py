"""What a release costs: privacy lost, utility lost, on the same axes for every kind of release."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from voile.evaluate.losses.queries import Queries, estimated, relative_error, u_loss, workload
from voile.kinds.blocks import Told, told_by
from voile.kinds.evaluation import class_losses, p_loss
from voile.privacy.divergence import jensen_shannon, kullback_leibler
from voile.recoding.populations import Populations, populations

if TYPE_CHECKING:
    from voile.evaluate.losses.measure import losses
    from voile.evaluate.losses.measured import Losses

_HOMES = {"Losses": "voile.evaluate.losses.measured", "losses": "voile.evaluate.losses.measure"}

__all__ = [
    "Losses", "Populations", "Queries", "Told", "class_losses", "estimated", "jensen_shannon",
    "kullback_leibler", "losses", "p_loss", "populations", "relative_error", "told_by", "u_loss",
    "workload",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:  # loaded on first use: they need tables and releases of every kind
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'voile.evaluate.losses' has no attribute {name!r}")
