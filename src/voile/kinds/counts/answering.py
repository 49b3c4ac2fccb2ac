"""Answers to queries from published tables: which tables, their totals, intervals, quantiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import NormalDist

import numpy as np

from voile.answering.arithmetic import Affine
from voile.answering.axes import ClassAxis
from voile.answering.columns import APPROXIMATE, EstimatedColumn, Flags, Formulas, terms_of
from voile.answering.quantiles import (
    CumulativeCounts,
    check_values,
    quantile_column,
    unknown_quantiles,
)
from voile.answering.table_query import (
    Places,
    TableCells,
    TableEvidence,
    crossed,
    table_query_of,
)
from voile.answering.walk import answer_from
from voile.arrays import Floats
from voile.errors import QueryError, spelled
from voile.estimate import Answer
from voile.kinds.counts.joints import (
    Average,
    ConjunctSource,
    JointMargins,
    Margin,
    Tables,
    Variances,
    averaged,
    margin_of,
)
from voile.query.aggregate import Formula, Quantile
from voile.query.predicate import Term
from voile.query.query import Query

# ----------------------------------------------------------------------
# which tables answer a query: one margin of at most d columns, or two of them together


MOST_PAIRS = 2**22
"""Classes of one part times classes of the other."""


@dataclass(frozen=True, eq=False)
class DirectPlan:
    """All that is read is in one margin."""

    margin: Margin
    parts: Variances

    def variance(self, slope: Floats) -> Floats:
        """The variance of Σ slope·term, for each group."""
        found = np.einsum("gi,gij,gj->g", slope, self.parts.noise, slope)
        return np.asarray(np.maximum(found, 0.0))

    def estimates(self, cells: TableCells) -> Floats:
        """The totals, (groups, terms)."""
        return cells.summed(self.margin.totals[cells.along(self.margin)])


Plan = DirectPlan | Average


@dataclass(frozen=True, eq=False)
class Planner:
    """Finds the plan with the least error."""

    tables: Tables
    axes: Sequence[ClassAxis]
    _margins: dict[Places, Margin] = field(default_factory=dict)

    def plan(self, read: Places, cells: TableCells) -> Plan:
        """`read` are the axes that the query depends on."""
        if len(read) <= self.tables.arity:
            return self._direct(read, cells)
        self._check(read)
        found = [self._joint(a, b) for a, b in splits(read, self.tables.arity)]
        if len(read) == 2 * self.tables.arity:
            return averaged(found, cells)  # no two of them have a table in common
        return min((averaged([one], cells) for one in found), key=error)

    def _direct(self, read: Places, cells: TableCells) -> DirectPlan:
        margin = self.margin(read)
        noise, at = margin.total_noise, cells.along(margin)
        ends = cells.summed(noise.along[at])
        own = crossed(cells.payoffs, noise.own[at], cells.group, cells.groups)
        found = own - noise.rate * ends[:, :, None] * ends[:, None, :]
        nothing = np.zeros_like(found)
        return DirectPlan(margin, Variances(nothing, nothing, nothing, found))

    def margin(self, places: Places) -> Margin:
        """The counts of these axes, computed once."""
        if places not in self._margins:
            self._margins[places] = margin_of(places, self.axes, self.tables)
        return self._margins[places]

    def _joint(self, left: Places, right: Places) -> JointMargins:
        found = self.margin(left), self.margin(right)
        if len(found[0].totals) * len(found[1].totals) > MOST_PAIRS:
            raise QueryError(
                f"the query distinguishes {len(found[0].totals):,} classes of "
                f"{self._names(left)} and {len(found[1].totals):,} of {self._names(right)}, "
                "which is too much together",
                hint="group by coarser values, as in floor(age / 10) * 10",
            )
        return JointMargins(*found, self.tables)

    def _check(self, read: Places) -> None:
        arity, halves = self.tables.arity, self.tables.halves
        most = 2 * arity if halves else arity
        if len(read) <= most:
            return
        more = "" if halves else ", and of all rows together only"
        raise QueryError(
            f"it depends on {len(read)} columns at once ({self._names(read)}); the release has "
            f"tables of {arity}{more}, which answer questions about up to {most}",
            hint=f"ask about {most} columns or fewer; whoever holds the table can publish with "
            f"{spelled('direct', True)} {spelled('arity', len(read))}",
        )

    def _names(self, places: Places) -> str:
        return ", ".join(self.axes[j].attribute for j in places)


def splits(read: Places, arity: int) -> Iterator[tuple[Places, Places]]:
    """Pairs of parts of at most d columns that have all of them, each pair once.

    Parts overlap only where both are as large as can be: the smaller of two parts is known from
    several tables, and needs no more columns.
    """
    whole = set(read)
    for size in range(1, arity + 1):
        for left in combinations(read, size):
            rest = tuple(j for j in read if j not in left)
            if len(rest) <= arity and (len(left), left) <= (len(rest), rest):
                yield left, rest
            if size == arity:
                for right in combinations(read, arity):
                    overlap = set(left) & set(right)
                    if left < right and overlap and set(left) | set(right) == whole:
                        yield left, right


def error(plan: Average) -> float:
    """How large the errors of the first term are expected to be, of one way to part it."""
    return float(np.maximum(plan.parts[0].expected[:, 0, 0], 0.0).sum())


# ----------------------------------------------------------------------
# formulas of totals from published tables: standard errors and intervals
# A total from one table is a sum of independent noise, which is normal but for its steps. One from
# two parts is a mean of t products, whose tails are longer: its interval is Student's, with as many
# degrees of freedom as there are halves.


COVERS = (
    "the statistic of the table that was published, at about the stated confidence, over the "
    "randomness of the release"
)


@dataclass(frozen=True)
class ConjunctEstimator(Formulas):
    """The totals of one formula, and what is made of them."""

    terms: tuple[Term, ...]
    cells: TableCells
    plan: Plan
    found: Floats
    """(groups, terms)"""
    rows: int
    halves: int

    @property
    def order(self) -> tuple[Term, ...]:
        """The terms, in the order of the totals."""
        return self.terms

    @property
    def estimates(self) -> Floats:
        """The estimated totals, (groups, terms)."""
        return self.found

    @property
    def covers(self) -> str:
        """What an interval covers."""
        return COVERS

    @property
    def is_exact(self) -> bool:
        """Whether no total has a variance."""
        return not self.plan.variance(np.ones_like(self.found)).any() and not any(
            self.plan.variance(self._only(i)).any() for i in range(len(self.terms))
        )

    def _only(self, place: int) -> Floats:
        slope = np.zeros_like(self.found)
        slope[:, place] = 1.0
        return slope

    @np.errstate(all="ignore")
    def stderr(self, formula: Formula) -> Floats:
        """The standard error of a formula, for each group."""
        return np.sqrt(self.plan.variance(self.spread_out(*self.slopes(formula))))

    def deviation(self, used: tuple[Term, ...], slope: Floats, miss: float) -> Floats:
        """How far a sum of totals may be off, except with probability `miss`."""
        whole = self.spread_out(used, slope)
        spread = np.sqrt(self.plan.variance(whole))
        step = self.largest_weight(used, slope) / 2
        return np.asarray(np.where(spread > 0, self.factor(miss) * spread + step, 0.0))

    def factor(self, miss: float) -> float:
        """How many standard errors are exceeded, on either side, with chance `miss`."""
        return factor(self.plan, self.halves, miss)

    def surely_nothing(self, used: tuple[Term, ...], slope: Floats) -> Flags:
        """The groups in which no combination of classes counts."""
        whole = self.spread_out(used, slope)
        weight = np.einsum("cg,gc->c", whole[self.cells.group], self.cells.payoffs)
        return np.asarray(np.bincount(self.cells.group, weight != 0, self.cells.groups) == 0)

    def most(self, form: Affine) -> float:
        """No more rows count than there are."""
        if any(factor < 0 for _, factor in form.parts):
            return math.inf
        largest = sum(factor * max(self.ranges[term][1], 0.0) for term, factor in form.parts)
        return form.constant + self.rows * largest


def factor(plan: Plan, halves: int, miss: float) -> float:
    """The quantile of a plan's errors: Student's with halves, else the normal one."""
    if isinstance(plan, Average):
        return student_quantile(halves, miss / 2)
    return -NormalDist().inv_cdf(miss / 2)


def student_quantile(freedom: int, tail: float) -> float:
    """What Student's t exceeds with this probability, below ½: without SciPy, slow to import."""
    low, high = 0.0, 1.0
    while student_tail(freedom, high) > tail:
        low, high = high, 2 * high
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(freedom, middle) > tail else (low, middle)
    return high


def student_tail(freedom: int, t: float) -> float:
    """Pr[T > t] for t ≥ 0: half the incomplete beta function I(ν/(ν + t²); ν/2, ½)."""
    below, above = t * t / (freedom + t * t), freedom / (freedom + t * t)
    if t * t > 3:  # where the fraction converges fast
        return incomplete_beta(freedom / 2, 0.5, above, below) / 2
    return (1 - incomplete_beta(0.5, freedom / 2, below, above)) / 2


def incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """I(x; a, b) with rest = 1 − x, by its continued fraction (Lentz's method)."""
    if not x:
        return 0.0
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    scale += a * math.log(x) + b * math.log(rest)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, 10_000):
        before = found
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            c, d = 1 + step / c, 1 / (1 + step * d)
            found *= c * d
        if abs(found - before) <= 1e-16 * found:
            break
    return math.exp(scale) * found / a


# ----------------------------------------------------------------------
# quantiles from published tables: the distribution of a value is more terms of the query


MOST_VALUES = 256


def conjunct_quantiles(query: Query, formula: Quantile, source: ConjunctSource) -> EstimatedColumn:
    """The values are cut as groups are; Z of each value is one more term."""
    table_query = table_query_of(query, (Term(formula.predicate),), source, more=(formula.value,))
    shape = table_query.number.shape
    at = np.broadcast_to(table_query.functions.numbers(formula.value), shape)
    counted = np.broadcast_to(table_query.payoffs[0], shape) * np.isfinite(at)
    values = np.unique(at[(counted > 0) & (table_query.number >= 0)])
    check_values(len(values), MOST_VALUES, formula, "published tables")
    groups = len(table_query.groups)
    if not len(values):
        return unknown_quantiles(groups, COVERS)
    below = [counted * (at <= value) for value in values]
    read, cells = table_query.cells([counted, *below])
    plan = Planner(source.tables, table_query.axes).plan(read, cells)
    found = plan.estimates(cells)
    slopes = np.tile(np.eye(len(values) + 1)[1:], (groups, 1, 1))
    slopes[:, :, 0] = -formula.share
    z = np.einsum("gvt,gt->gv", slopes, found)
    spread = np.sqrt(np.stack([plan.variance(slopes[:, i]) for i in range(len(values))], axis=1))
    here = np.diff(found[:, 1:], axis=1, prepend=0.0)

    def deviation(miss: float) -> Floats:
        times = factor(plan, source.tables.halves, miss)
        return np.where(spread > 0, times * spread + 0.5, 0.0)

    return quantile_column(formula, [CumulativeCounts(values, here, z, deviation)], COVERS)


# ----------------------------------------------------------------------
# one query, answered from published tables


BY_HALVES = (
    "it depends on {} columns, more than the {} of a table: estimated from how two tables vary "
    "together over {} random halves of the rows, which is far less exact"
)


def answer_conjuncts(
    query: Query, source: ConjunctSource, confidence: float, *, simultaneous: bool = False
) -> Answer:
    """Estimate what the query would give on the table that was published."""
    return answer_from(ConjunctEvidence, query, source, confidence, simultaneous=simultaneous)


class ConjunctEvidence(TableEvidence[ConjunctSource]):
    """Totals from tables."""

    def __init__(self, query: Query, source: ConjunctSource) -> None:
        super().__init__(query, source)
        self._estimators: dict[tuple[Term, ...], ConjunctEstimator] = {}

    def estimator_of(self, formula: Formula) -> ConjunctEstimator:
        """All terms of one formula are from the same tables, so that their errors cancel."""
        terms = terms_of(formula) or (Term(),)
        if terms not in self._estimators:
            table_query = table_query_of(self.query, terms, self.source)
            tables = self.source.tables
            read, cells = table_query.cells(table_query.payoffs)
            plan = Planner(tables, table_query.axes).plan(read, cells)
            ranges = {term: self._ranges[term] for term in terms}
            self._estimators[terms] = ConjunctEstimator(
                ranges, terms, cells, plan, plan.estimates(cells), tables.rows, tables.halves
            )
        return self._estimators[terms]

    def quantiles_of(self, formula: Quantile) -> EstimatedColumn:
        """The estimates of a quantile, one for each group."""
        return conjunct_quantiles(self.query, formula, self.source)

    # ------------------------------------------------------------------ in words

    def covers(self, estimated: Sequence[EstimatedColumn]) -> str:
        """What the intervals of these columns cover."""
        return APPROXIMATE if any(c.covers == APPROXIMATE for c in estimated) else COVERS

    def notes(self, estimated: Sequence[EstimatedColumn]) -> list[str]:  # noqa: ARG002
        """Notes for the analyst on this answer."""
        tables, notes = self.source.tables, list[str]()
        plans = [one.plan for one in self._estimators.values() if isinstance(one.plan, Average)]
        if plans:
            read = max(len({*p.joints[0].left.places, *p.joints[0].right.places}) for p in plans)
            notes.append(BY_HALVES.format(read, tables.arity, tables.halves))
        return notes
