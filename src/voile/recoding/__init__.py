"""Grouping rows into classes, and what is then shown of each class.

Works on numbers only: codes of quasi-identifiers and of sensitive values. A generalized value is
an interval of positions in its column's order.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from voile.recoding.grouping import Grouping, Recode, Shown, bounding, shown
from voile.recoding.mondrian import mondrian
from voile.recoding.units import Units, units_of_rows

if TYPE_CHECKING:
    from voile.recoding.fulldomain import FullDomain, full_domain

__all__ = [
    "FullDomain", "Grouping", "Recode", "Shown", "Units",
    "bounding", "full_domain", "mondrian", "shown", "units_of_rows",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("FullDomain", "full_domain"):  # loaded on first use: a search of its own
        return getattr(importlib.import_module("voile.recoding.fulldomain"), name)
    raise AttributeError(f"module 'voile.recoding' has no attribute {name!r}")
