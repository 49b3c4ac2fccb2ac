"""SQL to a Query, and the sums of a query over the public domain."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voile.query.domain import DomainSums
    from voile.query.parser import parse
    from voile.query.predicate import Atom, Predicate
    from voile.query.query import Query

_HOMES = {
    "Atom": "voile.query.predicate",
    "DomainSums": "voile.query.domain",
    "Predicate": "voile.query.predicate",
    "Query": "voile.query.query",
    "parse": "voile.query.parser",
}

__all__ = ["Atom", "DomainSums", "Predicate", "Query", "parse"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: publishing needs names and types of this package, not a parser.
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'voile.query' has no attribute {name!r}")
