"""The on-disk format of releases: opening, checking, describing and querying them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from voile.kinds.release import Release
from voile.kinds.signatures import SignedRelease, sign
from voile.kinds.verification import Verification, examine, verify

if TYPE_CHECKING:
    from voile.kinds.classes.release import ClassRelease
    from voile.kinds.counts.release import ConjunctRelease
    from voile.kinds.marginals.release import MarginalRelease
    from voile.kinds.perturbed.release import LocalRelease
    from voile.kinds.views.release import ViewRelease

__all__ = [
    "ClassRelease", "ConjunctRelease", "LocalRelease", "MarginalRelease", "Release",
    "SignedRelease", "Verification", "ViewRelease", "examine", "sign", "verify",
]  # fmt: skip

_HOMES = {
    "ClassRelease": "classes",
    "ConjunctRelease": "counts",
    "LocalRelease": "perturbed",
    "MarginalRelease": "marginals",
    "ViewRelease": "views",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:  # loaded on first use: a release of one kind needs no other
        return getattr(importlib.import_module(f"voile.kinds.{_HOMES[name]}.release"), name)
    raise AttributeError(f"module 'voile.release' has no attribute {name!r}")
