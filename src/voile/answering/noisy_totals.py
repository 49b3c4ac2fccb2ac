"""One query being answered from noisy totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Protocol

import numpy as np

from voile.answering.arithmetic import Affine
from voile.answering.columns import APPROXIMATE, EstimatedColumn, Flags, Formulas, largest_count
from voile.answering.evidence import Evidence, distinct, term_sets
from voile.answering.quantiles import has_quantile
from voile.answering.totals import ListedGroups
from voile.answering.walk import AnswerWalk
from voile.arrays import Floats
from voile.errors import QueryError
from voile.query.aggregate import Formula, Quantile
from voile.query.predicate import Term
from voile.query.query import Query

# ----------------------------------------------------------------------
# formulas of totals to which independent noise was added: standard errors and intervals
# A count or a sum has the exact interval of its noise. A formula that is linear in several totals,
# or a ratio of such, has the smaller of two bounds: each total within its own at a share of the
# chance to err, and the normal one of the summed noise, where every part is near normal.


COVERS = (
    "the statistic of the table that the server holds, at the stated confidence or more, over the "
    "noise of its answers"
)
APPROXIMATES = (
    "the statistic of the table that the server holds, at about the stated confidence (delta "
    "method; good where the counts behind it are large), over the noise of its answers"
)
NEAR_NORMAL = 100.0
"""The variance, in whole steps, from which on noise that is added up counts as normal."""


class TotalNoise(Protocol):
    """The law of one total's noise, in whole steps."""

    def __hash__(self) -> int: ...

    @property
    def variance(self) -> float:
        """The variance of a total's noise."""
        ...

    def deviation(self, miss: float) -> int:
        """The smallest h that the noise exceeds with chance at most `miss`, on both sides."""
        ...


@dataclass(frozen=True)
class NoNoise:
    """Of what is public anyway."""

    variance: float = 0.0

    def deviation(self, miss: float) -> int:  # noqa: ARG002
        """Always 0."""
        return 0


@lru_cache(4096)
def deviation_of(noise: TotalNoise, miss: float) -> int:
    """Looking for the end of an interval of a ratio asks this a hundred times."""
    return noise.deviation(miss)


@dataclass(frozen=True)
class NoisyTotal:
    """One total as it was answered, for each group."""

    key: str
    """Which answer it is: totals with one key share their noise."""
    values: Floats
    noise: TotalNoise
    unit: float
    """What a whole step is worth."""
    normal: bool = True
    """Whether the noise has the tails of a normal law."""

    @property
    def variance(self) -> float:
        """The variance of the total."""
        return self.noise.variance * self.unit**2

    def deviation(self, miss: float) -> float:
        """What the total's error exceeds with probability at most `miss`."""
        return deviation_of(self.noise, miss) * self.unit


@dataclass(frozen=True)
class NoisyEstimator(Formulas):
    """Estimates of formulas from noisy totals."""

    totals: dict[Term, NoisyTotal]
    most_rows: int
    """No count exceeds it."""

    @property
    def order(self) -> tuple[Term, ...]:
        """The terms, in the order of the totals."""
        return tuple(self.totals)

    @property
    def estimates(self) -> Floats:
        """(groups, terms): the totals as they were answered."""
        return np.stack([total.values for total in self.totals.values()], axis=1)

    @property
    def covers(self) -> str:
        """What an interval from the noise's law covers."""
        return COVERS

    @property
    def approximates(self) -> str:
        """What an interval from the normal approximation covers."""
        return APPROXIMATES

    @property
    def is_exact(self) -> bool:
        """Never: every total has noise."""
        return False

    def most(self, form: Affine) -> float:
        """The largest value that an affine form of counts can have."""
        return largest_count(form, self.most_rows)

    def surely_nothing(self, used: tuple[Term, ...], slope: Floats) -> Flags:  # noqa: ARG002
        """Groups in which a term certainly sums to nothing: none, for noise hides that."""
        return np.zeros(len(slope), dtype=np.bool_)

    @np.errstate(all="ignore")
    def stderr(self, formula: Formula) -> Floats:
        """The standard errors of a formula, by group."""
        shared, totals = self._shared(*self.slopes(formula))
        return np.asarray(np.sqrt(shared**2 @ np.array([total.variance for total in totals])))

    def _shared(self, used: Sequence[Term], slope: Floats) -> tuple[Floats, list[NoisyTotal]]:
        """Slopes by answer: terms that have one answer have one noise."""
        totals: dict[str, NoisyTotal] = {}
        slopes: dict[str, Floats] = {}
        for place, term in enumerate(used):
            total = self.totals[term]
            totals[total.key] = total
            slopes[total.key] = slopes.get(total.key, 0.0) + slope[:, place]
        if not totals:
            return np.zeros((len(slope), 0)), []
        return np.stack(list(slopes.values()), axis=1), list(totals.values())

    @np.errstate(all="ignore")
    def deviation(self, used: tuple[Term, ...], slope: Floats, miss: float) -> Floats:
        """What the error of Σ slope·total exceeds with probability at most `miss`."""
        shared, totals = self._shared(used, slope)
        if not totals:
            return np.zeros(len(slope))
        share = miss / max(1, sum(t.noise.variance > 0 for t in totals))
        each = np.abs(shared) @ np.array([total.deviation(share) for total in totals])
        noisy = [t for t in totals if t.noise.variance > 0]
        if len(noisy) < 2 or not all(t.normal and t.noise.variance >= NEAR_NORMAL for t in noisy):
            return np.asarray(each)
        z = -NormalDist().inv_cdf(miss / 2)
        # Half a step each, for totals move in steps.
        units = [total.unit if total.noise.variance > 0 else 0.0 for total in totals]
        steps = np.abs(shared) @ np.array(units) / 2
        together = z * np.sqrt(shared**2 @ np.array([t.variance for t in totals])) + steps
        return np.asarray(np.minimum(each, together))


# ----------------------------------------------------------------------
# one query being answered from noisy totals


def terms_needed(query: Query) -> tuple[Term, ...]:
    """The totals that a query is made of, each once; quantiles are made of none."""
    if any(has_quantile(formula) for formula in query.formulas):
        raise no_quantiles()
    return distinct(term_sets(query))


def no_quantiles() -> QueryError:
    """The error for a quantile, which totals do not give."""
    return QueryError(
        "quantiles are not answered: they are no sums over rows",
        hint="ask for a histogram: select floor(age / 5), count(*) … group by 1",
    )


def noisy_walk(
    query: Query, groups: ListedGroups, estimator: NoisyEstimator
) -> AnswerWalk[Evidence]:
    """A query whose totals are known, on its way to its answer."""
    return AnswerWalk(query, NoisyEvidence(groups, estimator))


class NoisyEvidence(Evidence):
    """Totals that were answered."""

    def __init__(self, groups: ListedGroups, estimator: NoisyEstimator) -> None:
        self._groups, self.estimator = groups, estimator

    @property
    def groups(self) -> ListedGroups:
        """The groups of the totals."""
        return self._groups

    def column(self, formula: Formula) -> EstimatedColumn:
        """Estimates of a formula for all groups."""
        return self.estimator.column(formula)

    def values(self, formula: Formula, quantiles: Mapping[Quantile, Floats]) -> Floats:
        """The formula's estimates."""
        return self.estimator.values(quantiles)(formula).value

    def quantile(self, formula: Quantile) -> EstimatedColumn:  # noqa: ARG002
        """Refused: totals give no quantiles."""
        raise no_quantiles()

    def empty(self) -> Flags:
        """Groups that certainly have no row: none, for noise hides that."""
        return np.zeros(len(self.groups), dtype=np.bool_)

    def covers(self, estimated: Sequence[EstimatedColumn]) -> str:
        """What the intervals of these columns cover."""
        stated = {column.covers for column in estimated}
        return APPROXIMATES if {APPROXIMATE, APPROXIMATES} & stated else COVERS

    def notes(self, estimated: Sequence[EstimatedColumn]) -> list[str]:
        """What an analyst should know about the answer."""
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
