"""One query being answered from noisy totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from voile.answering.columns import APPROXIMATE, EstimatedColumn, Flags
from voile.answering.evidence import Evidence, distinct, term_sets
from voile.answering.mixed import has_quantile
from voile.answering.noisy.estimator import APPROXIMATES, COVERS, NoisyEstimator
from voile.answering.totals import ListedGroups
from voile.answering.walk import AnswerWalk
from voile.arrays import Floats
from voile.errors import QueryError
from voile.estimate import Answer
from voile.query.formula import Formula, Quantile
from voile.query.predicate import Term
from voile.query.query import Query


def terms_needed(query: Query) -> tuple[Term, ...]:
    """The totals that a query is made of, each once; quantiles are made of none."""
    if any(has_quantile(formula) for formula in query.formulas):
        raise no_quantiles()
    return distinct(term_sets(query))


def no_quantiles() -> QueryError:
    return QueryError(
        "quantiles are not answered: they are no sums over rows",
        hint="ask for a histogram: select floor(age / 5), count(*) … group by 1",
    )


def answer_noisy(
    query: Query, groups: ListedGroups, estimator: NoisyEstimator, confidence: float
) -> Answer:
    """The answer to a query whose totals are known."""
    return AnswerWalk(query, NoisyEvidence(groups, estimator)).answer(confidence)


class NoisyEvidence(Evidence):
    """Totals that were answered."""

    def __init__(self, groups: ListedGroups, estimator: NoisyEstimator) -> None:
        self._groups, self.estimator = groups, estimator

    @property
    def groups(self) -> ListedGroups:
        return self._groups

    def column(self, formula: Formula) -> EstimatedColumn:
        return self.estimator.column(formula)

    def values(self, formula: Formula, quantiles: Mapping[Quantile, Floats]) -> Floats:
        return self.estimator.values(quantiles)(formula).value

    def quantile(self, formula: Quantile) -> EstimatedColumn:  # noqa: ARG002
        raise no_quantiles()

    def empty(self) -> Flags:
        return np.zeros(len(self.groups), dtype=np.bool_)

    def covers(self, estimated: Sequence[EstimatedColumn]) -> str:
        stated = {column.covers for column in estimated}
        return APPROXIMATES if {APPROXIMATE, APPROXIMATES} & stated else COVERS

    def notes(self, estimated: Sequence[EstimatedColumn]) -> list[str]:
        notes = []
        if any(np.isnan(column.value).any() for column in estimated):
            notes.append("unknown: the noisy count that it is an average over is 0 or less")
        if any(outside(column) for column in estimated):
            notes.append(
                "intervals are cut to what is possible, estimates are not, so that they add up"
            )
        return notes


@np.errstate(all="ignore")
def outside(column: EstimatedColumn) -> bool:
    """Whether some estimate is outside of its interval."""
    low, high = column.interval(0.95)
    return bool(((column.value < low) | (column.value > high)).any())
