"""How an answer from published tables comes about."""

from __future__ import annotations

from typing import Any

import numpy as np

from voile.answering.columns import terms_of
from voile.answering.conjuncts.joints import Average
from voile.answering.conjuncts.margins import Margin
from voile.answering.conjuncts.source import ConjunctSource
from voile.answering.conjuncts.work import ConjunctWork
from voile.answering.explain import describe, ungrouped
from voile.answering.mixed import has_quantile
from voile.answering.source import check
from voile.arrays import Floats
from voile.estimate import finite
from voile.query.formula import Formula
from voile.query.predicate import wording
from voile.query.query import Column, Query

MOST_LISTED = 12
"""Tables that are named one by one."""


def explain_conjuncts(query: Query, source: ConjunctSource) -> dict[str, Any]:
    """The figures behind a query; with GROUP BY, those of all groups together."""
    check(query, source.engine)
    whole = ungrouped(query)
    work = ConjunctWork(whole, source)
    columns = [_column(work, column) for column in whole.columns]
    return {
        "name": columns[0]["name"],
        "rows": source.tables.rows,
        "arity": source.tables.arity,
        "halves": source.tables.halves,
        "noise_sd": float(np.sqrt(source.tables.variance)),
        "estimate": columns[0]["estimate"],
        "stderr": columns[0]["stderr"],
        "atoms": [{"condition": wording(a), "reads": list(a.attributes)} for a in query.conditions],
        "groups": [g.canonical for g in query.groups],
        "columns": columns,
    }


def _column(work: ConjunctWork, column: Column) -> dict[str, Any]:
    assert not isinstance(column.source, int)  # noqa: S101  (group columns were left out)
    formula, found = column.source, work.column(column.source)
    return {
        "name": column.name,
        "estimate": finite(float(found.value[0])),
        "stderr": finite(float(found.stderr[0])),
        "covers": found.covers,
        **({} if has_quantile(formula) else _tables(work, formula)),
    }


def _tables(work: ConjunctWork, formula: Formula) -> dict[str, Any]:
    estimator = work.estimator_of(formula)
    totals = [
        {"of": describe(term), "estimate": float(estimator.estimates[0, i])}
        for i, term in enumerate(estimator.terms)
    ]
    plan = estimator.plan
    if not isinstance(plan, Average):
        return {"totals": totals, "tables": _named(plan.margin), "splits": [], "errors": {}}
    slope = estimator.values({})(formula).slope if terms_of(formula) else np.zeros((1, 1))
    return {
        "totals": totals,
        "tables": [],
        "splits": [
            {"left": _named(j.left), "right": _named(j.right), "weight": float(weight[0])}
            for j, weight in zip(plan.joints, plan.weights, strict=True)
        ],
        "errors": _errors(plan, slope),
    }


def _named(margin: Margin) -> list[list[str]]:
    """The columns of each table that a margin is from."""
    return [list(some) for some in margin.sources[:MOST_LISTED]]


def _errors(plan: Average, slope: Floats) -> dict[str, float | None]:
    """Standard errors from each cause alone, of the first way to part it."""
    part = plan.parts[0]
    causes = {"halves": part.sampling + part.alike, "mixed": part.mixed, "noise": part.noise}
    return {
        name: finite(float(np.sqrt(max(0.0, float(slope[0] @ found[0] @ slope[0])))))
        for name, found in causes.items()
    }
