"""How an answer from a noisy view comes about: what is counted, how the domain is summed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np

from voile.answering.columns import terms_of
from voile.answering.explanation import (
    ExplainedColumn,
    Explanation,
    Section,
    SectionLine,
    SectionTable,
    conditions_of,
    describe,
    estimated_columns,
    explain_from,
    first,
    groups_of,
    name_values,
)
from voile.answering.quantiles import has_quantile
from voile.answering.walk import AnswerWalk
from voile.estimate import finite
from voile.kinds.views.answering import ViewEvidence
from voile.kinds.views.estimator import ViewMechanism, ViewSource
from voile.query.aggregate import Formula
from voile.query.domain.network import SumPlan
from voile.query.predicate import Term
from voile.query.query import Query
from voile.records import Record


class ExplainedMechanism(ViewMechanism, Protocol):
    """A mechanism that can spell its arithmetic out."""

    def facts(self) -> dict[str, float]:
        """The numbers that the arithmetic uses, by name."""
        ...

    def arithmetic(self, view: float, domain: float, *, whole: bool) -> str:
        """The estimate of a total, spelled out."""
        ...


@dataclass(frozen=True)
class ViewTotal(Record):
    """A total: its sums over the view and over the domain, and the estimate spelled out."""

    of: str
    n_view: float
    n_domain: float
    arithmetic: str


@dataclass(frozen=True, kw_only=True)
class ViewColumn(ExplainedColumn):
    """A column, with the totals that it is made of and the sources of its error."""

    totals: tuple[ViewTotal, ...]
    errors: Mapping[str, float | None]
    """Standard errors from each source alone, whose squares add up."""


@dataclass(frozen=True, kw_only=True)
class ViewExplanation(Explanation):
    """How an answer from a noisy view comes about."""

    columns: tuple[ViewColumn, ...]
    n_view: float
    n_domain: float
    facts: Mapping[str, float]
    """The numbers of the mechanism."""
    plan: SumPlan
    """How the domain is summed."""
    json_keys: ClassVar[tuple[str, ...]] = (
        "name", "n_view", "n_domain", "facts", "estimate", "stderr", "arithmetic", "atoms",
        "groups", "plan", "columns",
    )  # fmt: skip

    @property
    def arithmetic(self) -> str:
        """The arithmetic of the first total."""
        totals = self.columns[0].totals
        return totals[0].arithmetic if totals else ""

    def to_dict(self) -> dict[str, Any]:
        """The numbers of the mechanism stand among the others."""
        found: dict[str, Any] = {}
        for key, value in super().to_dict().items():
            found |= value if key == "facts" else {key: value}
        return found

    def own_sections(self) -> list[Section]:
        """How the domain is summed, and the model that refines the answer."""
        found = list[Section]()
        rows = tuple(
            (", ".join(p.attributes), p.method, f"{p.width:,}", f"{p.cost:,.0f}",
             "\n".join(p.steps))
            for p in self.plan.parts
        )  # fmt: skip
        if rows:
            headings = ("the domain over", "summed by", "width", "cost", "steps")
            found.append(SectionTable(headings, rows))
        if self.plan.free:
            found.append(SectionLine(f"any value of {', '.join(self.plan.free)}"))
        found.append(name_values(self._numbers()))
        for column in self.columns:
            found.append(SectionLine(column.name, "bold"))
            found += [SectionLine(f"  {t.of}: {t.arithmetic}") for t in column.totals]
            errors = [f"{name} {value:,.4g}" for name, value in column.errors.items() if value]
            if errors:
                line = f"  its error comes from: {', '.join(errors)} (squares add up)"
                found.append(SectionLine(line))
        return found

    def _numbers(self) -> dict[str, str]:
        numbers = {"n_view": self.n_view, "n_domain": self.n_domain, **self.facts}
        numbers |= {
            name: value
            for name, value in (("estimate", self.estimate), ("stderr", self.stderr))
            if value is not None
        }
        return {k: f"{v:,}" if v == int(v) else f"{v:,.6g}" for k, v in numbers.items()}


def explain(query: Query, source: ViewSource, mechanism: ExplainedMechanism) -> Explanation:
    """The figures behind a query; with GROUP BY, those of all groups together."""
    return explain_from(ViewEvidence, partial(_explanation, mechanism), query, source)


def _explanation(
    mechanism: ExplainedMechanism, query: Query, walk: AnswerWalk[ViewEvidence]
) -> ViewExplanation:
    evidence = walk.evidence
    everyone = evidence.totals.column(Term())
    columns = []
    for name, formula, found in estimated_columns(walk):
        estimate, stderr = first(found)
        columns.append(
            ViewColumn(
                name=name,
                estimate=estimate,
                stderr=stderr,
                covers=found.covers,
                totals=tuple(_total(evidence, mechanism, t) for t in terms_of(formula)),
                errors=_errors(evidence, mechanism, formula),
            )
        )
    return ViewExplanation(
        atoms=conditions_of(query),
        groups=groups_of(query),
        columns=tuple(columns),
        n_view=whole_if_so(float(evidence.totals.view[0, everyone])),
        n_domain=evidence.totals.plain[everyone].total,
        facts=mechanism.facts(),
        plan=evidence.source.domain.explain(Term(query.predicate), query.groups),
    )


def _total(evidence: ViewEvidence, mechanism: ExplainedMechanism, term: Term) -> ViewTotal:
    i = evidence.totals.column(term)
    view, domain = float(evidence.totals.view[0, i]), float(evidence.totals.domain[0, i])
    arithmetic = mechanism.arithmetic(view, domain, whole=not term.values)
    return ViewTotal(describe(term), view, domain, arithmetic)


def whole_if_so(number: float) -> int | float:
    """Rows of a view are counted; rows with scores are summed."""
    return int(number) if number.is_integer() else number


def _errors(
    evidence: ViewEvidence, mechanism: ViewMechanism, formula: Formula
) -> dict[str, float | None]:
    """Standard errors from each source alone, whose squares add up; quantiles have no such."""
    if has_quantile(formula):
        return {}
    members, spread, sampled = evidence.estimator.spread(formula)
    nothing = np.zeros(1)
    parts = {
        "records": np.sqrt(mechanism.variance(members, nothing)),
        "noise": np.sqrt(mechanism.variance(nothing, spread)),
        "sampling": sampled,
    }
    return {name: finite(float(part[0])) for name, part in parts.items()}
