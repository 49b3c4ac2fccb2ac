"""SQL to a Query, and the sums of a query over the public domain."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voile.query.domain import DomainSums
    from voile.query.parsing import parse
    from voile.query.predicate import Atom, Predicate
    from voile.query.query import Query

__all__ = ["Atom", "DomainSums", "Predicate", "Query", "parse"]

_HOMES = {
    "Atom": "predicate",
    "DomainSums": "domain",
    "Predicate": "predicate",
    "Query": "query",
    "parse": "parsing",
}


def __getattr__(name: str) -> Any:
    # Loaded on first use: engines write SQL for stewards, too, who ask no query.
    if name in _HOMES:
        return getattr(importlib.import_module(f"voile.query.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'voile.query' has no attribute {name!r}")
