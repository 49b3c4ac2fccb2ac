"""One query being answered from published tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from voile.answering.answer import MOST_TERMS, Work, answered, helped
from voile.answering.columns import APPROXIMATE, Column, terms_of
from voile.answering.conjuncts.asking import Asked, asked_of
from voile.answering.conjuncts.estimator import COVERS, ConjunctEstimator
from voile.answering.conjuncts.joints import Average
from voile.answering.conjuncts.planning import Planner
from voile.answering.conjuncts.quantiles import quantile_column
from voile.answering.conjuncts.source import ConjunctSource
from voile.answering.mixed import has_quantile, mixed_column
from voile.answering.source import check, parts_of, value_range, weight_range
from voile.answering.totals import Groups, check_lookups
from voile.arrays import Floats
from voile.errors import QueryError
from voile.estimate import Answer
from voile.query.formula import Formula, Quantile, leaves
from voile.query.parse import Query
from voile.query.predicate import Term

MOST_GROUPS = 5_000
BY_HALVES = (
    "it depends on {} columns, more than the {} of a table: estimated from how two tables vary "
    "together over {} random halves of the rows, which is far less exact"
)


def answer_conjuncts(
    query: Query, source: ConjunctSource, confidence: float, *, simultaneous: bool = False
) -> Answer:
    """Estimate what the query would give on the table that was published."""
    check(query, source.engine)
    try:
        return answered(ConjunctWork(query, source), confidence, simultaneous=simultaneous)
    except QueryError as error:
        raise error if error.hint else helped(error) from None


class ConjunctWork(Work):
    """Totals from tables; everything else as for any release."""

    source: ConjunctSource  # type: ignore[assignment]

    def __init__(self, query: Query, source: ConjunctSource) -> None:
        self.query, self.source = query, source
        sets = [terms_of(f) for f in dict.fromkeys(query.formulas)]
        if max(map(len, sets), default=0) > MOST_TERMS:
            raise QueryError(f"one formula combines more than {MOST_TERMS} aggregates",
                             hint="ask for them one by one")  # fmt: skip
        terms = tuple(dict.fromkeys(term for some in sets for term in some))
        check_lookups(terms)
        self.ranges = {
            t: weight_range(t, query.predicate, source, query.sql) for t in (*terms, Term())
        }
        self.base: Asked = asked_of(query, (Term(),), source)
        if len(self.groups) > MOST_GROUPS:
            raise QueryError(
                f"GROUP BY makes {len(self.groups):,} groups, more than {MOST_GROUPS:,}",
                hint="group by fewer columns, or by coarser ones, as in floor(age / 10)",
            )
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
            groups = f"all {len(self.groups):,} groups at once: the statistics"
            covers = covers.replace("the statistic", groups, 1)
        return covers

    def unmodelled(self) -> list[str]:
        return []

    def notes(self) -> tuple[str, ...]:
        query, tables, notes = self.query, self.source.tables, list[str]()
        if not (self.base.number >= 0).any():
            notes.append("no tuple of the public domain satisfies the condition")
        notes += query.remarks
        if query.atoms and not any(atom.attributes for atom in query.atoms):
            notes.append("the condition reads no column; names go in double quotes, text in single")
        plans = [one.plan for one in self.estimators.values() if isinstance(one.plan, Average)]
        if plans:
            read = max(len({*p.joints[0].left.places, *p.joints[0].right.places}) for p in plans)
            notes.append(BY_HALVES.format(read, tables.arity, tables.halves))
        notes += self._bin_notes()
        if query.having:
            notes.append(
                "HAVING compares estimates: a group near the limit may be on its wrong side"
            )
        return tuple(notes)
