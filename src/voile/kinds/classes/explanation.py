"""How an answer from a generalized or bucketized release comes about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from voile.answering.columns import EstimatedColumn, terms_of
from voile.answering.evidence import columns_read
from voile.answering.explanation import (
    ExplainedColumn,
    Explanation,
    Section,
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
from voile.estimate import finite, number
from voile.kinds.classes.answering import ClassEvidence
from voile.kinds.classes.cells import ClassSource
from voile.query.aggregate import Formula
from voile.query.predicate import Term
from voile.query.query import Query
from voile.records import Record


@dataclass(frozen=True)
class ClassTotal(Record):
    """A total: what is expected of it, and between which numbers it lies for certain."""

    of: str
    estimate: float
    certain_low: float
    certain_high: float


@dataclass(frozen=True, kw_only=True)
class ClassColumn(ExplainedColumn):
    """A column, with its certain bounds and the totals that it is made of."""

    certain_low: float | None
    certain_high: float | None
    totals: tuple[ClassTotal, ...]
    json_keys: ClassVar[tuple[str, ...]] = (
        "name", "estimate", "stderr", "certain_low", "certain_high", "covers", "totals",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ClassExplanation(Explanation):
    """How an answer from classes comes about."""

    columns: tuple[ClassColumn, ...]
    recode: str
    rows: int
    classes: int
    assumption: str
    shown: tuple[str, ...]
    """The columns that the query reads and the release shows."""
    open: tuple[str, ...]
    """Those that it leaves open."""
    cells: tuple[int, ...]
    """How many shown and open cells the query tells apart."""
    json_keys: ClassVar[tuple[str, ...]] = (
        "name", "recode", "rows", "classes", "estimate", "stderr", "certain_low", "certain_high",
        "assumption", "shown", "open", "cells", "atoms", "groups", "columns",
    )  # fmt: skip

    @property
    def certain_low(self) -> float | None:
        """The certain lower bound of the first column."""
        return self.columns[0].certain_low

    @property
    def certain_high(self) -> float | None:
        """The certain upper bound of the first column."""
        return self.columns[0].certain_high

    def own_sections(self) -> list[Section]:
        """Rows, columns, the assumption and the totals, for reading."""
        facts = {
            "rows": f"{self.rows:,} in {self.classes:,} classes, {self.recode}d",
            "shown exactly": ", ".join(self.shown) or "nothing",
            "left open": ", ".join(self.open) or "nothing",
            "assumed": self.assumption,
        }
        rows = tuple(
            (t.of, number(t.estimate), number(t.certain_low), number(t.certain_high))
            for column in self.columns
            for t in column.totals
        )
        totals = SectionTable(("total", "expected", "at least", "at most"), rows)
        return [name_values(facts), *([totals] if rows else [])]


def explain_classes(query: Query, source: ClassSource) -> Explanation:
    """The figures behind a query; with GROUP BY, those of all groups together."""
    return explain_from(ClassEvidence, _explanation, query, source)


def _explanation(query: Query, walk: AnswerWalk[ClassEvidence]) -> ClassExplanation:
    evidence, source = walk.evidence, walk.evidence.source
    columns = [_column(evidence, *each) for each in estimated_columns(walk)]
    parts = columns_read(query)
    read = [name for name in source.schema.names if name in parts]
    return ClassExplanation(
        atoms=conditions_of(query),
        groups=groups_of(query),
        columns=tuple(columns),
        recode=source.recode,
        rows=source.rows,
        classes=source.classes,
        assumption=evidence.assumption(walk.estimated),
        shown=tuple(name for name in read if name in source.known),
        open=tuple(name for name in read if name not in source.known),
        cells=evidence.cell_query.number.shape,
    )


def _column(
    evidence: ClassEvidence, name: str, formula: Formula, found: EstimatedColumn
) -> ClassColumn:
    assert found.certain is not None  # noqa: S101  (classes always bound what they leave open)
    estimate, stderr = first(found)
    if not (found.stated or found.known[0]):
        stderr = None
    terms = () if has_quantile(formula) else terms_of(formula)
    return ClassColumn(
        name=name,
        estimate=estimate,
        stderr=stderr,
        certain_low=finite(float(found.certain.low[0])),
        certain_high=finite(float(found.certain.high[0])),
        covers=found.covers,
        totals=tuple(_total(evidence, term) for term in terms),
    )


def _total(evidence: ClassEvidence, term: Term) -> ClassTotal:
    place = evidence.terms.index(term)
    slope = np.zeros((1, len(evidence.terms)))
    slope[0, place] = 1.0
    ends = evidence.estimator.extremes(slope)
    estimate = float(evidence.estimator.estimates[0, place])
    return ClassTotal(describe(term), estimate, float(ends.low[0]), float(ends.high[0]))
