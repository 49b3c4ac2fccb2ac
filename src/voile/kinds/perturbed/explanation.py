"""How an answer from perturbed rows comes about."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from voile.answering.axes import shape_of
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
from voile.kinds.perturbed.answering import LocalEvidence
from voile.kinds.perturbed.axes import LocalSource
from voile.query.predicate import Term
from voile.query.query import Query
from voile.records import Record

MOST_MASSES = 20
"""Classes of a column whose chances are listed."""


@dataclass(frozen=True)
class LocalTotal(Record):
    """A total: as it is seen, and reconstructed."""

    of: str
    n_seen: float
    estimate: float


@dataclass(frozen=True, kw_only=True)
class LocalColumn(ExplainedColumn):
    """A column, with the totals that it is made of."""

    totals: tuple[LocalTotal, ...]


@dataclass(frozen=True)
class ExplainedAxis(Record):
    """A column that is read: its classes, and what perturbing does to them."""

    column: str
    retention: float
    classes: int
    masses: tuple[float, ...] | None
    """The chance with which each class is drawn; none where there are many."""


@dataclass(frozen=True, kw_only=True)
class LocalExplanation(Explanation):
    """How an answer from perturbed rows comes about."""

    columns: tuple[LocalColumn, ...]
    rows: int
    n_seen: float
    axes: tuple[ExplainedAxis, ...]
    states: int
    json_keys: ClassVar[tuple[str, ...]] = (
        "name", "rows", "n_seen", "estimate", "stderr", "atoms", "groups", "axes", "states",
        "columns",
    )  # fmt: skip

    def own_sections(self) -> list[Section]:
        """The columns that the query reads, and the numbers of the first estimate."""
        found = list[Section]()
        if self.axes:
            rows = tuple(
                (axis.column, f"{axis.retention:g}", f"{axis.classes:,}",
                 ", ".join(f"{m:.3g}" for m in axis.masses or ()))
                for axis in self.axes
            )  # fmt: skip
            found.append(SectionTable(("column", "kept", "classes", "drawn with chance"), rows))
        facts = {"rows": self.rows, "states": self.states, "n_seen": self.n_seen,
                 "estimate": self.estimate, "stderr": self.stderr}  # fmt: skip
        known = {k: v for k, v in facts.items() if v is not None}
        found.append(
            name_values({k: f"{v:,.6g}" if v % 1 else f"{v:,.0f}" for k, v in known.items()})
        )
        for column in self.columns:
            found.append(SectionLine(column.name, "bold"))
            found += [
                SectionLine(f"  {t.of}: {t.n_seen:,.6g} seen, {t.estimate:,.6g} reconstructed")
                for t in column.totals
            ]
        return found


def explain_local(query: Query, source: LocalSource) -> Explanation:
    """The figures behind a query; with GROUP BY, those of all groups together."""
    return explain_from(LocalEvidence, _explanation, query, source)


def _explanation(query: Query, walk: AnswerWalk[LocalEvidence]) -> LocalExplanation:
    evidence, columns = walk.evidence, []
    for name, formula, found in estimated_columns(walk):
        estimate, stderr = first(found)
        terms = () if has_quantile(formula) else terms_of(formula)
        columns.append(
            LocalColumn(
                name=name,
                estimate=estimate,
                stderr=stderr,
                covers=found.covers,
                totals=tuple(_total(evidence, term) for term in terms),
            )
        )
    axes, states = _axes(evidence)
    return LocalExplanation(
        atoms=conditions_of(query),
        groups=groups_of(query),
        columns=tuple(columns),
        rows=evidence.source.rows,
        n_seen=float(evidence.totals.seen[0, evidence.totals.column(Term())]),
        axes=axes,
        states=states,
    )


def _total(evidence: LocalEvidence, term: Term) -> LocalTotal:
    totals, place = evidence.totals, evidence.totals.column(term)
    seen, estimate = float(totals.seen[0, place]), float(totals.estimates[0, place])
    return LocalTotal(describe(term), seen, estimate)


def _axes(evidence: LocalEvidence) -> tuple[tuple[ExplainedAxis, ...], int]:
    """Each column that is read, and the number of all combinations of their classes."""
    if evidence.source.joint is not None:
        return (ExplainedAxis("the whole row", evidence.source.joint, 2, None),), 2
    axes = evidence.request().axes
    shown = tuple(
        ExplainedAxis(
            axis.attribute,
            axis.retention,
            axis.classes,
            tuple(axis.moments[:, 0].tolist()) if axis.classes <= MOST_MASSES else None,
        )
        for axis in axes
    )
    return shown, math.prod(shape_of(axes))
