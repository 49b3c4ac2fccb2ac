"""How an answer from published tables comes about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from voile.answering.columns import EstimatedColumn, terms_of
from voile.answering.explanation import (
    ExplainedColumn,
    Explanation,
    Section,
    SectionLine,
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
from voile.arrays import Floats
from voile.estimate import finite
from voile.kinds.counts.answering import ConjunctEvidence
from voile.kinds.counts.joints import Average, ConjunctSource, Margin, Set
from voile.query.aggregate import Formula
from voile.query.query import Query
from voile.records import Record

MOST_LISTED = 12
"""Tables that are named one by one."""


@dataclass(frozen=True)
class ConjunctTotal(Record):
    """A total, and its estimate."""

    of: str
    estimate: float


@dataclass(frozen=True)
class ExplainedSplit(Record):
    """One way to part a condition: the tables of both parts, and its weight in the average."""

    left: tuple[Set, ...]
    right: tuple[Set, ...]
    weight: float


@dataclass(frozen=True)
class ColumnTables(Record):
    """What a formula of totals is made of, and where its error is from."""

    totals: tuple[ConjunctTotal, ...]
    tables: tuple[Set, ...] = ()
    """The tables that it is read from."""
    splits: tuple[ExplainedSplit, ...] = ()
    """The ways to part it, where it is estimated from halves."""
    errors: Mapping[str, float | None] | None = None

    json_keys: ClassVar[tuple[str, ...]] = ("totals", "tables", "splits", "errors=known_errors")

    @property
    def known_errors(self) -> Mapping[str, float | None]:
        """Standard errors from each cause alone, of the first way to part it."""
        return self.errors or {}

    def lines(self) -> list[str]:
        """For reading."""
        found = [f"{total.of}: {total.estimate:,.6g}" for total in self.totals]
        if self.tables:
            found.append(f"from the tables of {listed(self.tables)}")
        found += [
            f"by halves, {split.weight:.0%}: {listed(split.left)} with {listed(split.right)}"
            for split in self.splits
        ]
        errors = [f"{name} {value:,.4g}" for name, value in self.known_errors.items() if value]
        if errors:
            found.append(f"the error of the first: {', '.join(errors)} (squares add up)")
        return found


@dataclass(frozen=True, kw_only=True)
class ConjunctColumn(ExplainedColumn):
    """A column, and the tables that it is from; of quantiles these are not listed."""

    source: ColumnTables | None
    json_keys: ClassVar[tuple[str, ...]] = ("name", "estimate", "stderr", "covers")

    def to_dict(self) -> dict[str, Any]:
        """What it is made of stands beside the estimate."""
        return super().to_dict() | (self.source.to_dict() if self.source else {})


@dataclass(frozen=True, kw_only=True)
class ConjunctExplanation(Explanation):
    """How an answer from published tables comes about."""

    columns: tuple[ConjunctColumn, ...]
    rows: int
    arity: int
    halves: int
    noise_sd: float
    json_keys: ClassVar[tuple[str, ...]] = (
        "name", "rows", "arity", "halves", "noise_sd", "estimate", "stderr", "atoms", "groups",
        "columns",
    )  # fmt: skip

    def own_sections(self) -> list[Section]:
        """The release's numbers and each column's tables, for reading."""
        facts = {"rows": self.rows, "arity": self.arity, "halves": self.halves,
                 "noise_sd": self.noise_sd}  # fmt: skip
        found: list[Section] = [name_values({k: f"{v:,.6g}" for k, v in facts.items()})]
        for column in self.columns:
            found.append(SectionLine(column.name, "bold"))
            lines = column.source.lines() if column.source else []
            found += [SectionLine(f"  {line}") for line in lines]
        return found


def listed(tables: tuple[Set, ...]) -> str:
    """Tables by their columns."""
    return ", ".join(f"({', '.join(some)})" for some in tables)


def explain_conjuncts(query: Query, source: ConjunctSource) -> Explanation:
    """The figures behind a query; with GROUP BY, those of all groups together."""
    return explain_from(ConjunctEvidence, _explanation, query, source)


def _explanation(query: Query, walk: AnswerWalk[ConjunctEvidence]) -> ConjunctExplanation:
    evidence, tables = walk.evidence, walk.evidence.source.tables
    return ConjunctExplanation(
        atoms=conditions_of(query),
        groups=groups_of(query),
        columns=tuple(_column(evidence, *each) for each in estimated_columns(walk)),
        rows=tables.rows,
        arity=tables.arity,
        halves=tables.halves,
        noise_sd=float(np.sqrt(tables.variance)),
    )


def _column(
    evidence: ConjunctEvidence, name: str, formula: Formula, found: EstimatedColumn
) -> ConjunctColumn:
    estimate, stderr = first(found)
    return ConjunctColumn(
        name=name,
        estimate=estimate,
        stderr=stderr,
        covers=found.covers,
        source=None if has_quantile(formula) else _tables(evidence, formula),
    )


def _tables(evidence: ConjunctEvidence, formula: Formula) -> ColumnTables:
    estimator = evidence.estimator_of(formula)
    totals = tuple(
        ConjunctTotal(describe(term), float(estimator.estimates[0, i]))
        for i, term in enumerate(estimator.terms)
    )
    plan = estimator.plan
    if not isinstance(plan, Average):
        return ColumnTables(totals, tables=_named(plan.margin))
    slope = estimator.values({})(formula).slope if terms_of(formula) else np.zeros((1, 1))
    splits = tuple(
        ExplainedSplit(_named(j.left), _named(j.right), float(weight[0]))
        for j, weight in zip(plan.joints, plan.weights, strict=True)
    )
    return ColumnTables(totals, splits=splits, errors=_errors(plan, slope))


def _named(margin: Margin) -> tuple[Set, ...]:
    """The columns of each table that a margin is from."""
    return margin.sources[:MOST_LISTED]


def _errors(plan: Average, slope: Floats) -> dict[str, float | None]:
    """Standard errors from each cause alone, of the first way to part it."""
    part = plan.parts[0]
    causes = {"halves": part.sampling + part.alike, "mixed": part.mixed, "noise": part.noise}
    return {
        name: finite(float(np.sqrt(max(0.0, float(slope[0] @ found[0] @ slope[0])))))
        for name, found in causes.items()
    }
