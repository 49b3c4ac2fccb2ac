"""How an answer from perturbed rows comes about."""

from __future__ import annotations

import math
from typing import Any

from voile.answering.columns import terms_of
from voile.answering.explain import describe, ungrouped
from voile.answering.local.source import LocalSource
from voile.answering.local.tensors import shape_of
from voile.answering.local.work import LocalWork
from voile.answering.mixed import has_quantile
from voile.answering.source import check
from voile.estimate import finite
from voile.query.predicate import Term, wording
from voile.query.query import Column, Query


def explain_local(query: Query, source: LocalSource) -> dict[str, Any]:
    """The figures behind a query; with GROUP BY, those of all groups together."""
    check(query, source.engine)
    whole = ungrouped(query)
    work = LocalWork(whole, source)
    columns = [_column(work, column) for column in whole.columns]
    everyone = work.totals.column(Term())
    return {
        "name": columns[0]["name"],
        "rows": source.rows,
        "n_seen": float(work.totals.seen[0, everyone]),
        "estimate": columns[0]["estimate"],
        "stderr": columns[0]["stderr"],
        "atoms": [{"condition": wording(a), "reads": list(a.attributes)} for a in query.conditions],
        "groups": [g.canonical for g in query.groups],
        "axes": _axes(work),
        "states": _states(work),
        "columns": columns,
    }


def _axes(work: LocalWork) -> list[dict[str, Any]]:
    """Each column that is read: its classes, and what perturbing does to them."""
    if work.source.joint is not None:
        return [{"column": "the whole row", "retention": work.source.joint, "classes": 2,
                 "masses": None}]  # fmt: skip
    return [
        {
            "column": axis.attribute,
            "retention": axis.retention,
            "classes": axis.classes,
            "masses": axis.moments[:, 0].tolist() if axis.classes <= 20 else None,
        }
        for axis in work.asked().axes
    ]


def _states(work: LocalWork) -> int:
    return 2 if work.source.joint is not None else math.prod(shape_of(work.asked().axes))


def _column(work: LocalWork, column: Column) -> dict[str, Any]:
    assert not isinstance(column.source, int)  # noqa: S101  (group columns were left out)
    found = work.column(column.source)
    terms = () if has_quantile(column.source) else terms_of(column.source)
    return {
        "name": column.name,
        "estimate": finite(float(found.value[0])),
        "stderr": finite(float(found.stderr[0])),
        "covers": found.covers,
        "totals": [
            {
                "of": describe(term),
                "n_seen": float(work.totals.seen[0, work.totals.column(term)]),
                "estimate": float(work.totals.estimates[0, work.totals.column(term)]),
            }
            for term in terms
        ],
    }
