"""One query being answered from noisy totals: arithmetic, HAVING, ORDER BY and LIMIT."""

from __future__ import annotations

from typing import Any

import numpy as np

from voile.answering.answer import Work, answered, term_sets
from voile.answering.columns import APPROXIMATE, Column
from voile.answering.noisy.estimator import APPROXIMATES, COVERS, NoisyEstimator
from voile.answering.notes import having_notes, query_notes
from voile.answering.totals import Groups
from voile.errors import QueryError
from voile.estimate import Answer
from voile.query.formula import Formula, Quantile, leaves
from voile.query.predicate import Term
from voile.query.query import Query


def terms_needed(query: Query) -> tuple[Term, ...]:
    """The totals that a query is made of, each once; quantiles are made of none."""
    for formula in query.formulas:
        if any(isinstance(leaf, Quantile) for leaf in leaves(formula)):
            raise QueryError(
                "quantiles are not answered: they are no sums over rows",
                hint="ask for a histogram: select floor(age / 5), count(*) … group by 1",
            )
    return tuple(dict.fromkeys(term for some in term_sets(query) for term in some))


def answer_noisy(
    query: Query, groups: Groups, estimator: NoisyEstimator, confidence: float
) -> Answer:
    """The answer to a query whose totals are known."""
    return answered(NoisyWork(query, groups, estimator), confidence, simultaneous=False)


class NoisyWork(Work):
    """Totals that were answered; everything else as for a release."""

    estimator: NoisyEstimator  # type: ignore[assignment]

    def __init__(self, query: Query, groups: Groups, estimator: NoisyEstimator) -> None:
        self.query, self._groups, self.estimator = query, groups, estimator
        self.ranges = estimator.ranges
        self.refiner = None
        self.plain_columns: dict[Formula, Column] = {}
        self.columns: dict[Formula, Column] = {}

    @property
    def groups(self) -> Groups:
        return self._groups

    def column(self, formula: Formula) -> Column:
        return self.plain_column(formula)

    def _plain(self, formula: Formula) -> Column:
        return self.estimator.column(formula)

    @property
    def bound(self) -> None:
        return None

    def _surely_empty(self) -> Any:
        return np.zeros(len(self.groups), dtype=np.bool_)

    def covers(self, *, simultaneous: bool) -> str:  # noqa: ARG002
        told = {self.column(c.source).covers for c in self.query.columns
                if not isinstance(c.source, int)}  # fmt: skip
        return APPROXIMATES if {APPROXIMATE, APPROXIMATES} & told else COVERS

    def notes(self) -> tuple[str, ...]:
        query = self.query
        notes = [*query_notes(query), *having_notes(query)]
        told = [self.column(c.source) for c in query.columns if not isinstance(c.source, int)]
        if any(np.isnan(column.value).any() for column in told):
            notes.append("unknown: the noisy count that it is an average over is 0 or less")
        if any(outside(column) for column in told):
            notes.append(
                "intervals are cut to what is possible, estimates are not, so that they add up"
            )
        return tuple(dict.fromkeys(notes))


@np.errstate(all="ignore")
def outside(column: Column) -> bool:
    low, high = column.interval(0.95)
    return bool(((column.value < low) | (column.value > high)).any())
