"""One query being answered from published tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from voile.answering.answer import Work, answer_by, check_groups, term_sets
from voile.answering.columns import APPROXIMATE, Column, terms_of
from voile.answering.conjuncts.asking import Asked, asked_of
from voile.answering.conjuncts.estimator import COVERS, ConjunctEstimator
from voile.answering.conjuncts.joints import Average
from voile.answering.conjuncts.planning import Planner
from voile.answering.conjuncts.quantiles import quantile_column
from voile.answering.conjuncts.source import ConjunctSource
from voile.answering.mixed import has_quantile, mixed_column
from voile.answering.notes import NO_TUPLE, at_once, having_notes, query_notes
from voile.answering.source import parts_of, value_range, weight_range
from voile.answering.totals import Groups, check_lookups
from voile.arrays import Floats
from voile.estimate import Answer
from voile.query.formula import Formula, Quantile, leaves
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
    return answer_by(ConjunctWork, query, source, confidence, simultaneous=simultaneous)


class ConjunctWork(Work):
    """Totals from tables; everything else as for any release."""

    source: ConjunctSource  # type: ignore[assignment]

    def __init__(self, query: Query, source: ConjunctSource) -> None:
        self.query, self.source = query, source
        sets = term_sets(query)
        terms = tuple(dict.fromkeys(term for some in sets for term in some))
        check_lookups(terms)
        self.ranges = {
            t: weight_range(t, query.predicate, source, query.sql) for t in (*terms, Term())
        }
        self.base: Asked = asked_of(query, (Term(),), source)
        check_groups(len(self.groups))
        self.refiner = None
        self.plain_columns: dict[Formula, Column] = {}
        self.columns: dict[Formula, Column] = {}
        self.estimators: dict[tuple[Term, ...], ConjunctEstimator] = {}

    @property
    def groups(self) -> Groups:
        return self.base.groups

    def estimator_of(self, formula: Formula) -> ConjunctEstimator:
        """All terms of one formula are from the same tables, so that their errors cancel."""
        terms = terms_of(formula) or (Term(),)
        if terms not in self.estimators:
            asked = asked_of(self.query, terms, self.source)
            tables = self.source.tables
            read, cells = asked.cells(asked.payoffs)
            plan = Planner(tables, asked.axes).plan(read, cells)
            ranges = {term: self.ranges[term] for term in terms}
            self.estimators[terms] = ConjunctEstimator(
                ranges, terms, cells, plan, plan.estimates(cells), tables.rows, tables.halves
            )
        return self.estimators[terms]

    def _plain(self, formula: Formula) -> Column:
        if isinstance(formula, Quantile):
            parts = [*parts_of(self.query.predicate), *parts_of(formula.predicate)]
            value_range(formula.value, parts, self.source, self.query.sql)  # all must be finite
            return quantile_column(self.query, formula, self.source)
        if has_quantile(formula):
            return mixed_column(formula, self._raw(formula), self.plain_column)
        return self.estimator_of(formula).column(formula)

    def _raw(self, formula: Formula) -> Floats:
        inner = {x: self.column(x).value for x in leaves(formula) if isinstance(x, Quantile)}
        return self.estimator_of(formula).values(inner)(formula).value

    def _surely_empty(self) -> Any:
        return np.zeros(len(self.groups), np.bool_)  # noise hides which groups are

    def covers(self, *, simultaneous: bool) -> str:
        told = [self.column(c.source) for c in self.query.columns if not isinstance(c.source, int)]
        covers = APPROXIMATE if any(c.covers == APPROXIMATE for c in told) else COVERS
        if simultaneous:
            covers = at_once(covers, f"{len(self.groups):,} groups")
        return covers

    def unmodelled(self) -> list[str]:
        return []

    def notes(self) -> tuple[str, ...]:
        query, tables, notes = self.query, self.source.tables, list[str]()
        if not (self.base.number >= 0).any():
            notes.append(NO_TUPLE)
        notes += query_notes(query)
        plans = [one.plan for one in self.estimators.values() if isinstance(one.plan, Average)]
        if plans:
            read = max(len({*p.joints[0].left.places, *p.joints[0].right.places}) for p in plans)
            notes.append(BY_HALVES.format(read, tables.arity, tables.halves))
        notes += self._bin_notes()
        return (*notes, *having_notes(query))
