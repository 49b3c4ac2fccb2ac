"""How an answer comes about: what is counted, how the domain is summed, where the error is from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from voile.answering.answer import Work
from voile.answering.columns import terms_of
from voile.answering.estimator import Mechanism
from voile.answering.mixed import has_quantile
from voile.answering.source import Source, check
from voile.estimate import finite
from voile.query.formula import Formula
from voile.query.predicate import Term, in_words, wording
from voile.query.query import Column, Query


class Explained(Mechanism, Protocol):
    def facts(self) -> dict[str, float]:
        """The numbers that the arithmetic uses, by name."""
        ...

    def arithmetic(self, view: float, domain: float, *, whole: bool) -> str:
        """The estimate of a total, spelled out."""
        ...


def explain(query: Query, source: Source, mechanism: Explained) -> dict[str, Any]:
    """The figures behind a query; with GROUP BY, those of all groups together."""
    check(query, source.engine)
    whole = ungrouped(query)
    work = Work(whole, source)
    columns = [_column(work, mechanism, column) for column in whole.columns]
    everyone = work.totals.column(Term())
    plan = source.domain.explain(Term(query.predicate), query.groups)
    return {
        "name": columns[0]["name"],
        "n_view": whole_if_so(float(work.totals.view[0, everyone])),
        "n_domain": work.totals.plain[everyone].total,
        **mechanism.facts(),
        "estimate": columns[0]["estimate"],
        "stderr": columns[0]["stderr"],
        "arithmetic": columns[0]["totals"][0]["arithmetic"] if columns[0]["totals"] else "",
        "atoms": [{"condition": wording(a), "reads": list(a.attributes)} for a in query.conditions],
        "groups": [g.canonical for g in query.groups],
        "plan": plan.to_dict(),
        "columns": columns,
    }


def ungrouped(query: Query) -> Query:
    """The same of all groups together."""
    return replace(
        query,
        groups=(),
        columns=tuple(c for c in query.columns if not isinstance(c.source, int)),
        having=None,
        order=(),
        limit=None,
        offset=0,
    )


def _column(work: Work, mechanism: Explained, column: Column) -> dict[str, Any]:
    assert not isinstance(column.source, int)  # noqa: S101  (group columns were left out)
    found = work.column(column.source)
    return {
        "name": column.name,
        "estimate": finite(float(found.value[0])),
        "stderr": finite(float(found.stderr[0])),
        "covers": found.covers,
        "totals": [_total(work, mechanism, term) for term in terms_of(column.source)],
        "errors": _errors(work, mechanism, column.source),
    }


def _total(work: Work, mechanism: Explained, term: Term) -> dict[str, Any]:
    i = work.totals.column(term)
    view, domain = float(work.totals.view[0, i]), float(work.totals.domain[0, i])
    return {
        "of": describe(term),
        "n_view": view,
        "n_domain": domain,
        "arithmetic": mechanism.arithmetic(view, domain, whole=not term.values),
    }


def whole_if_so(number: float) -> int | float:
    """Rows of a view are counted; rows with scores are summed."""
    return int(number) if number.is_integer() else number


def describe(term: Term) -> str:
    what = f"sum of {' * '.join(wording(v) for v in term.values)}" if term.values else "rows"
    return f"{what} where {in_words(term.predicate)}" if term.predicate else what


def _errors(work: Work, mechanism: Mechanism, formula: Formula) -> dict[str, float | None]:
    """Standard errors from each source alone, whose squares add up; quantiles have no such."""
    if has_quantile(formula):
        return {}
    members, spread, sampled = work.estimator.spread(formula)
    nothing = np.zeros(1)
    parts = {
        "records": np.sqrt(mechanism.variance(members, nothing)),
        "noise": np.sqrt(mechanism.variance(nothing, spread)),
        "sampling": sampled,
    }
    return {name: finite(float(part[0])) for name, part in parts.items()}
