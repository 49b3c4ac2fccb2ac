"""How an answer from a generalized or bucketized release comes about."""

from __future__ import annotations

from typing import Any

import numpy as np

from voile.answering.classes.source import ClassSource
from voile.answering.classes.work import ClassWork
from voile.answering.columns import terms_of
from voile.answering.explain import describe, ungrouped
from voile.answering.mixed import has_quantile
from voile.answering.source import check
from voile.estimate import finite
from voile.query.predicate import Atom, Expression, Term, wording
from voile.query.query import Column, Query


def explain_classes(query: Query, source: ClassSource) -> dict[str, Any]:
    """The figures behind a query; with GROUP BY, those of all groups together."""
    check(query, source.engine)
    whole = ungrouped(query)
    work = ClassWork(whole, source)
    columns = [_column(work, column) for column in whole.columns]
    parts: list[Atom | Expression] = [*query.conditions, *query.values, *query.groups]
    read = [n for n in source.schema.names if any(n in part.attributes for part in parts)]
    return {
        "name": columns[0]["name"],
        "recode": source.recode,
        "rows": source.rows,
        "classes": source.classes,
        **{key: columns[0][key] for key in ("estimate", "stderr", "certain_low", "certain_high")},
        "assumption": work.assumption,
        "shown": [name for name in read if name in source.known],
        "open": [name for name in read if name not in source.known],
        "cells": list(work.asked.number.shape),
        "atoms": [{"condition": wording(a), "reads": list(a.attributes)} for a in query.conditions],
        "groups": [g.canonical for g in query.groups],
        "columns": columns,
    }


def _column(work: ClassWork, column: Column) -> dict[str, Any]:
    assert not isinstance(column.source, int)  # noqa: S101  (group columns were left out)
    found = work.column(column.source)
    assert found.certain is not None  # noqa: S101  (classes always bound what they leave open)
    terms = () if has_quantile(column.source) else terms_of(column.source)
    return {
        "name": column.name,
        "estimate": finite(float(found.value[0])),
        "stderr": finite(float(found.stderr[0])),
        "certain_low": finite(float(found.certain[0][0])),
        "certain_high": finite(float(found.certain[1][0])),
        "covers": work.about(found.covers),
        "totals": [_total(work, term) for term in terms],
    }


def _total(work: ClassWork, term: Term) -> dict[str, Any]:
    place = work.terms.index(term)
    slope = np.zeros((1, len(work.terms)))
    slope[0, place] = 1.0
    ends = work.estimator.extremes(slope)
    return {
        "of": describe(term),
        "estimate": float(work.estimator.estimates[0, place]),
        "certain_low": float(ends.low[0]),
        "certain_high": float(ends.high[0]),
    }
