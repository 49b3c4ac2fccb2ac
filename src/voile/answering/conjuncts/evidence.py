"""One query being answered from published tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from voile.answering.columns import APPROXIMATE, EstimatedColumn, Flags, terms_of
from voile.answering.conjuncts.asked import asked_of
from voile.answering.conjuncts.estimator import COVERS, ConjunctEstimator
from voile.answering.conjuncts.joints import Average
from voile.answering.conjuncts.planning import Planner
from voile.answering.conjuncts.quantiles import conjunct_quantiles
from voile.answering.conjuncts.source import ConjunctSource
from voile.answering.evidence import (
    Evidence,
    check_groups,
    checked_ranges,
    distinct,
    term_sets,
)
from voile.answering.notes import NO_TUPLE, bin_notes
from voile.answering.source import parts_of, value_range
from voile.answering.totals import ListedGroups
from voile.answering.walk import answer_from
from voile.arrays import Floats
from voile.estimate import Answer
from voile.query.formula import Formula, Quantile
from voile.query.predicate import Term
from voile.query.query import Query

BY_HALVES = (
    "it depends on {} columns, more than the {} of a table: estimated from how two tables vary "
    "together over {} random halves of the rows, which is far less exact"
)


def answer_conjuncts(
    query: Query, source: ConjunctSource, confidence: float, *, simultaneous: bool = False
) -> Answer:
    """Estimate what the query would give on the table that was published."""
    return answer_from(ConjunctEvidence, query, source, confidence, simultaneous=simultaneous)


class ConjunctEvidence(Evidence):
    """Totals from tables."""

    def __init__(self, query: Query, source: ConjunctSource) -> None:
        self.query, self.source = query, source
        self._ranges = checked_ranges(query, distinct([*term_sets(query), (Term(),)]), source)
        self._base = asked_of(query, (Term(),), source)
        check_groups(len(self.groups))
        self._estimators: dict[tuple[Term, ...], ConjunctEstimator] = {}

    @property
    def groups(self) -> ListedGroups:
        return self._base.groups

    def estimator_of(self, formula: Formula) -> ConjunctEstimator:
        """All terms of one formula are from the same tables, so that their errors cancel."""
        terms = terms_of(formula) or (Term(),)
        if terms not in self._estimators:
            asked = asked_of(self.query, terms, self.source)
            tables = self.source.tables
            read, cells = asked.cells(asked.payoffs)
            plan = Planner(tables, asked.axes).plan(read, cells)
            ranges = {term: self._ranges[term] for term in terms}
            self._estimators[terms] = ConjunctEstimator(
                ranges, terms, cells, plan, plan.estimates(cells), tables.rows, tables.halves
            )
        return self._estimators[terms]

    def column(self, formula: Formula) -> EstimatedColumn:
        return self.estimator_of(formula).column(formula)

    def values(self, formula: Formula, quantiles: Mapping[Quantile, Floats]) -> Floats:
        return self.estimator_of(formula).values(quantiles)(formula).value

    def quantile(self, formula: Quantile) -> EstimatedColumn:
        parts = [*parts_of(self.query.predicate), *parts_of(formula.predicate)]
        value_range(formula.value, parts, self.source, self.query.sql)  # all must be finite
        return conjunct_quantiles(self.query, formula, self.source)

    def empty(self) -> Flags:
        return np.zeros(len(self.groups), np.bool_)  # noise hides which groups are

    # ------------------------------------------------------------------ in words

    def covers(self, estimated: Sequence[EstimatedColumn]) -> str:
        return APPROXIMATE if any(c.covers == APPROXIMATE for c in estimated) else COVERS

    @property
    def nothing(self) -> str:
        return "" if (self._base.number >= 0).any() else NO_TUPLE

    def notes(self, estimated: Sequence[EstimatedColumn]) -> list[str]:  # noqa: ARG002
        tables, notes = self.source.tables, list[str]()
        plans = [one.plan for one in self._estimators.values() if isinstance(one.plan, Average)]
        if plans:
            read = max(len({*p.joints[0].left.places, *p.joints[0].right.places}) for p in plans)
            notes.append(BY_HALVES.format(read, tables.arity, tables.halves))
        return [*notes, *bin_notes(self.query, self.source.engine)]
