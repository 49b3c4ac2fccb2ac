"""Answers from noisy marginals: the unbiased tables, the model, and the best of both.

A total of a query is f·x: f is what a row of each combination of classes adds to it, x the marginal
on the columns that the query reads. Rebuilt from components (residuals.py), its noise has

  variance Σ_{b⊆s} A_b·‖S_b‖²,   A_b = Σ_{b⊆c⊆s} (−1)^|c∖b| σ_c²/(N_{s∖c}²·N_{c∖b})

where S_b is f summed over the columns outside b, and N_d the cells of the columns d; covariances of
two totals likewise, with ⟨S_b, S'_b⟩. The model counts the same f; its error, and how that goes
with the noise, are known from the release alone (errors.py). An answer weighs the two:

  w·(unbiased) + (1 − w)·(model),   with error² = w²·v + (1 − w)²·e + 2·w·(1 − w)·c

One weight serves all totals of a formula and a group, so that what cancels in an average does.
A query that reads columns of which no table was measured is answered by the model alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from statistics import NormalDist

import numpy as np

from voile.answering.arithmetic import Affine
from voile.answering.axes import ClassAxis
from voile.answering.bin_shapes import MeasuredPositions
from voile.answering.columns import (
    APPROXIMATE,
    EstimatedColumn,
    Flags,
    Formulas,
    Intervals,
    terms_of,
)
from voile.answering.count_law import whole_interval
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
    TableQuery,
    crossed,
    part_index,
    table_query_of,
)
from voile.answering.walk import answer_from
from voile.arrays import Floats, Ints
from voile.engines.rows import PublicDomain
from voile.errors import QueryError, spelled
from voile.estimate import Answer
from voile.kinds.marginals.errors import ErrorLaw
from voile.kinds.marginals.mixture import ProductMixture
from voile.kinds.marginals.modelling import Model
from voile.kinds.marginals.place_sums import STEPS
from voile.kinds.marginals.residuals import Columns, NoisyMarginals, ResidualPlan
from voile.query.aggregate import Formula, Quantile
from voile.query.domain import DomainSums
from voile.query.predicate import Term
from voile.query.query import Query
from voile.schema import Schema

MOST_VALUES = 256
"""Values of one quantile."""
AT_ONCE = 2**15
"""Cells of which the model's products are held at once."""
NOISE_ONLY = (
    "the statistic of the table that was published, at about the stated confidence, over the noise "
    "of the release"
)
WEIGHED = (
    "the statistic of the table that was published, at about the stated confidence: errors of the "
    "model are learnt from the release alone"
)
BEYOND = (
    "it depends on {}, of which the release has no table: answered by the model alone, whose error "
    "is estimated on tables that were left out of a fit"
)


@dataclass(frozen=True, eq=False)
class NoisyPlaces:
    """Sums of places within the bins of one column, from −½ to ½ a row, with noise."""

    sums: Ints
    """In steps."""
    deviation: float
    """Of the noise, in rows."""
    ends: tuple[float, float]
    """Where the first bin begins and the last one ends."""

    def positions(self, counts: Floats, noise: float) -> MeasuredPositions:
        """Mean places of bins with so many rows, which are off by this noise.

        Bins of fewer rows than the noise on their number have no mean.
        """
        rows = np.maximum(counts, max(noise, 1.0))
        off = np.clip(self.sums / (STEPS * rows), -0.5, 0.5)
        stderr = np.hypot(self.deviation, np.abs(off) * noise) / rows
        return MeasuredPositions(0.5 + off, stderr, self.ends)


@dataclass(frozen=True, eq=False)
class MarginalSource:
    """What a release of marginals is counted from."""

    engine: PublicDomain
    domain: DomainSums
    schema: Schema
    noisy: NoisyMarginals
    model: Model | None
    """None: the unbiased tables alone."""
    rows: int | None
    """Rows of the table, where that is public."""
    means: Mapping[str, NoisyPlaces] = field(default_factory=dict)
    """Of columns whose means within bins were measured."""
    open_columns: frozenset[str] = frozenset()
    """Those of which noise hides how far they reach."""
    beyond: Mapping[str, float] = field(default_factory=dict)
    """Rows that noise may have hidden beyond the ends of a learnt column."""

    def bin_positions(self, name: str, counts: Floats) -> MeasuredPositions | None:
        """The mean place in each bin, where sums of places were measured."""
        if name not in self.means:
            return None
        column = (self.schema.names.index(name),)
        known = column in self.noisy.plan.variances
        noise = math.sqrt(self.noisy.cell_variance(column)) if known else 0.0
        found = self.means[name].positions(counts, noise)
        return replace(found, beyond=self.beyond.get(name, math.inf))


# ----------------------------------------------------------------------
# the totals of a query: what the tables say of them, and what the model says


@dataclass(frozen=True, eq=False)
class ReadClasses:
    """The classes of the columns that a query reads."""

    places: Places
    """Which of the query's axes."""
    axes: tuple[ClassAxis, ...]
    columns: Columns
    """The same columns by their places in the schema."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many classes each column has."""
        return tuple(axis.classes for axis in self.axes)

    @cached_property
    def sizes(self) -> list[Floats]:
        """How many values each class has."""
        return [np.bincount(a.class_of, minlength=a.classes).astype(np.float64) for a in self.axes]

    def folded(self, table: Floats) -> Floats:
        """A table of these columns, summed over the values of each class; one line."""
        for axis, one in enumerate(self.axes):
            order = np.argsort(one.class_of, kind="stable")
            starts = np.searchsorted(one.class_of[order], np.arange(one.classes))
            table = np.add.reduceat(table.take(order, axis=axis), starts, axis=axis)
        return np.asarray(table).reshape(-1)

    def part(self, kept: Sequence[int]) -> ReadClasses:
        """Some of them, by their places here."""
        return ReadClasses(
            tuple(self.places[j] for j in kept),
            tuple(self.axes[j] for j in kept),
            tuple(self.columns[j] for j in kept),
        )


def read_classes(read: Places, query: TableQuery, schema: Schema) -> ReadClasses:
    """The columns that a query depends on, in the schema's order."""
    names = schema.names
    placed = sorted(read, key=lambda j: names.index(query.axes[j].attribute))
    columns = tuple(names.index(query.axes[j].attribute) for j in placed)
    return ReadClasses(tuple(placed), tuple(query.axes[j] for j in placed), columns)


def projection_factors(columns: Columns, plan: ResidualPlan) -> Iterator[tuple[Places, float]]:
    """A_b for every b ⊆ columns, b by places in `columns`."""
    sizes = [plan.sizes[i] for i in columns]
    places = range(len(columns))
    for b in subsets(places):
        total = 0.0
        rest = [j for j in places if j not in b]
        for more in subsets(rest):
            c = tuple(sorted((*b, *more)))
            variance = plan.variances.get(tuple(columns[j] for j in c), 0.0)
            outside = math.prod(sizes[j] for j in places if j not in c)
            inside = math.prod(sizes[j] for j in more)
            total += (-1) ** len(more) * variance / (outside**2 * inside)
        yield b, total


def subsets(of: Sequence[int]) -> Iterator[Places]:
    """All of them, the empty one first."""
    for size in range(len(of) + 1):
        yield from combinations(of, size)


def noise_covariances(cells: TableCells, read: ReadClasses, plan: ResidualPlan) -> Floats:
    """(groups, terms, terms): of the totals from the unbiased table."""
    terms = len(cells.payoffs)
    found = np.zeros((cells.groups, terms, terms))
    at = [cells.coordinates[j] for j in read.places]
    for b, factor in projection_factors(read.columns, plan):
        if not factor:
            continue
        spread = np.ones(len(cells.group))
        for j in range(len(read.columns)):
            if j not in b:
                spread = spread * read.sizes[j][at[j]]
        if len(b) == len(read.columns):  # every combination is a cell of its own
            own = product_of([read.sizes[j][at[j]] for j in b], len(cells.group))
            found += factor * crossed(cells.payoffs, own, cells.group, cells.groups)
            continue
        some = read.part(b)
        index = part_index(cells, cells.along(some), math.prod(some.shape))
        own = np.ones(1)
        for j in b:
            own = np.outer(own, read.sizes[j]).ravel()
        found += factor * index.crossed(index.sums(cells.payoffs * spread), own)
    return found


def product_of(arrays: Sequence[Floats], count: int) -> Floats:
    """The product of arrays, ones where there are none."""
    found = np.ones(count)
    for array in arrays:
        found = found * array
    return found


def model_counts(mixture: ProductMixture, cells: TableCells, read: ReadClasses) -> Floats:
    """What the model counts in every combination of classes."""
    shares = [
        mixture.class_shares(i, axis.class_of)
        for i, axis in zip(read.columns, read.axes, strict=True)
    ]
    at = [cells.coordinates[j] for j in read.places]
    found = np.empty(len(cells.group))
    for start in range(0, len(found), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        product = np.broadcast_to(
            mixture.weights[:, None], (len(mixture.weights), len(found[some]))
        )
        for share, place in zip(shares, at, strict=True):
            product = product * share[:, place[some]]
        found[some] = mixture.rows * product.sum(axis=0)
    return found


@dataclass(frozen=True, eq=False)
class TotalsOfTables:
    """The totals of one formula's terms, from the tables and from the model."""

    read: ReadClasses
    cells: TableCells
    unbiased: Floats | None
    """(groups, terms); None where no table of these columns was measured."""
    covariances: Floats | None
    """(groups, terms, terms): of the noise."""
    counted: Floats | None
    """What the model counts in every combination; None without a model."""
    law: ErrorLaw | None

    @cached_property
    def modelled(self) -> Floats | None:
        """(groups, terms)"""
        return None if self.counted is None else self.cells.summed(self.counted)

    def noise(self, slope: Floats) -> Floats:
        """The variance of Σ slope·total of each group, from the tables."""
        assert self.covariances is not None  # noqa: S101  (asked only where tables are)
        found = np.einsum("gi,gij,gj->g", slope, self.covariances, slope)
        return np.asarray(np.maximum(found, 0.0))

    def model_errors(self, slope: Floats) -> tuple[Floats, Floats]:
        """Of Σ slope·total of each group from the model: error², and covariance with the noise.

        What adds and what subtracts, P and M, are counts that have a law, and so is P + M; by
        e(P − M) = 2·e(P) + 2·e(M) − e(P + M) they tell of the difference. It is not taken to err
        less than the sum: few rows outside P + M make that easy, and not P − M.
        """
        assert self.counted is not None and self.law is not None  # noqa: S101
        cells = self.cells
        weight = np.einsum("ct,tc->c", slope[cells.group], cells.payoffs)
        noise = None if self.unbiased is None else self.noise(slope)
        error, shared = self._of_weights(np.abs(weight), noise)
        parts = [np.maximum(weight, 0.0), np.maximum(-weight, 0.0)]
        squares = [np.bincount(cells.group, part**2, cells.groups) for part in parts]
        mixed = (squares[0] > 0) & (squares[1] > 0)
        if mixed.any():
            whole = np.maximum(squares[0] + squares[1], np.finfo(np.float64).tiny)
            both = [
                self._of_weights(part, None if noise is None else noise * square / whole)
                for part, square in zip(parts, squares, strict=True)
            ]
            apart, common = (2 * (both[0][i] + both[1][i]) for i in range(2))
            error = np.where(mixed, np.maximum(error, apart - error), error)
            shared = np.where(mixed, np.maximum(shared, common - shared), shared)
        if self.unbiased is None or noise is None:
            return error, shared
        shared = np.minimum(shared, np.minimum(error, noise))
        modelled = self.modelled
        assert modelled is not None  # noqa: S101  (it counted)
        off = np.einsum("gt,gt->g", slope, self.unbiased - modelled)
        usual = noise + error - 2 * shared
        return error + np.maximum(off**2 - self.law.far**2 * usual, 0.0), shared

    def _of_weights(self, weight: Floats, noise: Floats | None) -> tuple[Floats, Floats]:
        """The same of sums in which every combination counts so much, never below 0.

        A row counts at most `most`; in these units the sum is a count, which has a law.
        """
        assert self.counted is not None and self.law is not None  # noqa: S101
        group, groups = self.cells.group, self.cells.groups
        most = np.zeros(groups)
        np.maximum.at(most, group, weight)
        unit = np.where(most > 0, most, 1.0)
        count = np.bincount(group, weight * self.counted, groups) / unit
        if noise is None:
            error = self.law.beyond(count, len(self.read.columns))
            shared = np.zeros(groups)
        else:
            single = len(self.read.columns) == 1
            error, shared = self.law.model(count, noise / unit**2, single=single)
        scale = unit**2 * (most > 0)
        return scale * error, scale * shared


def totals_of(
    source: MarginalSource, query: TableQuery, payoffs: Sequence[Floats]
) -> TotalsOfTables:
    """Count the terms of a query, in every way that there is."""
    places, cells = query.cells(payoffs)
    read = read_classes(places, query, source.schema)
    unbiased = covariances = counted = None
    if read.columns in source.noisy.plan.variances:
        table = read.folded(source.noisy.table(read.columns))
        unbiased = cells.summed(table[cells.along(read)])
        covariances = noise_covariances(cells, read, source.noisy.plan)
    if source.model is not None:
        counted = model_counts(source.model.mixture, cells, read)
    elif unbiased is None:
        names = ", ".join(source.schema.names[i] for i in read.columns)
        raise QueryError(
            f"it depends on {len(read.columns)} columns at once ({names}), of which the release "
            "has no table",
            hint=f"leave out {spelled('refine', False)}: the model answers; or read fewer columns",
        )
    law = None if source.model is None else source.model.law
    return TotalsOfTables(read, cells, unbiased, covariances, counted, law)


# ----------------------------------------------------------------------
# formulas of totals: the best of both, standard errors and intervals


@dataclass(frozen=True)
class MarginalEstimator(Formulas):
    """The totals of one formula, and what is made of them."""

    terms: tuple[Term, ...]
    totals: TotalsOfTables
    weights: Floats
    """(groups,): that of the tables; the model has the rest."""
    rows: int | None

    @property
    def order(self) -> tuple[Term, ...]:
        """The terms, in the order of the totals."""
        return self.terms

    @cached_property
    def estimates(self) -> Floats:
        """The estimated totals, (groups, terms)."""
        tables, model = self.totals.unbiased, self.totals.modelled
        if model is None:
            assert tables is not None  # noqa: S101  (one of the two is there)
            return tables
        if tables is None:
            return model
        w = self.weights[:, None]
        found = w * tables + (1 - w) * model
        never = (self.totals.cells.payoffs >= 0).all(axis=1)
        return np.where(never, np.maximum(found, 0.0), found)

    @property
    def covers(self) -> str:
        """What an interval covers."""
        return NOISE_ONLY if self.totals.law is None else WEIGHED

    @property
    def is_exact(self) -> bool:
        """Whether no total has an error."""
        return not any(self.errors(self._only(i)).any() for i in range(len(self.terms)))

    def _only(self, place: int) -> Floats:
        slope = np.zeros_like(self.estimates)
        slope[:, place] = 1.0
        return slope

    def errors(self, slope: Floats) -> Floats:
        """The mean square error of Σ slope·total, for each group."""
        return mean_square(self.totals, slope, self.weights)

    @np.errstate(all="ignore")
    def stderr(self, formula: Formula) -> Floats:
        """The standard error of a formula, for each group."""
        return np.sqrt(self.errors(self.spread_out(*self.slopes(formula))))

    def deviation(self, used: tuple[Term, ...], slope: Floats, miss: float) -> Floats:
        """How far a sum of totals may be off, except with probability `miss`."""
        return deviation(self.errors(self.spread_out(used, slope)), miss)

    def count_interval(self, term: Term, factor: float, constant: float) -> Intervals | None:
        """Whole numbers, skewed where the model expects few."""
        if self.totals.law is None or not factor:
            return None
        place = self.terms.index(term)
        counts, squares = self.estimates[:, place], self.errors(self._only(place))

        def ends(confidence: float) -> tuple[Floats, Floats]:
            low, high = whole_interval(counts, squares, confidence)
            low, high = (np.where(squares > 0, end, counts) for end in (low, high))
            if self.rows is not None:
                high = np.minimum(high, float(self.rows))
            both = factor * np.minimum(low, high) + constant, factor * high + constant
            return (both[0], both[1]) if factor > 0 else (both[1], both[0])

        return ends

    @property
    def law_covers(self) -> str:
        """What intervals of counts cover."""
        return self.covers

    def surely_nothing(self, used: tuple[Term, ...], slope: Floats) -> Flags:
        """The groups in which no combination of classes counts."""
        cells = self.totals.cells
        whole = self.spread_out(used, slope)
        weight = np.einsum("cg,gc->c", whole[cells.group], cells.payoffs)
        return np.asarray(np.bincount(cells.group, weight != 0, cells.groups) == 0)

    def most(self, form: Affine) -> float:
        """No more rows count than there are, where their number is public."""
        if self.rows is None or any(factor < 0 for _, factor in form.parts):
            return math.inf
        largest = sum(factor * max(self.ranges[term][1], 0.0) for term, factor in form.parts)
        return form.constant + self.rows * largest


def mean_square(totals: TotalsOfTables, slope: Floats, weights: Floats) -> Floats:
    """The error² of Σ slope·total, with these weights of the tables."""
    if totals.law is None:
        return totals.noise(slope)
    error, shared = totals.model_errors(slope)
    if totals.unbiased is None:
        return error
    rest, noise = 1 - weights, totals.noise(slope)
    found = weights**2 * noise + rest**2 * error + 2 * weights * rest * shared
    found = np.maximum(found, 0.0)
    # What was learnt is raised by some caution; but the tables alone err no more than stated.
    return np.minimum(totals.law.caution * found, np.maximum(noise, found))


def best_weights(totals: TotalsOfTables, slope: Floats) -> Floats:
    """The weight of the tables with which Σ slope·total errs least, for each group."""
    if totals.law is None or totals.unbiased is None:
        return np.full(totals.cells.groups, 0.0 if totals.unbiased is None else 1.0)
    noise = totals.noise(slope)
    error, shared = totals.model_errors(slope)
    below = noise + error - 2 * shared
    with np.errstate(all="ignore"):
        found = (error - shared) / below
    return np.where(below > 0, np.clip(found, 0.0, 1.0), 1.0)


def deviation(square: Floats, miss: float) -> Floats:
    """What an error of this mean square exceeds with chance `miss`."""
    return np.asarray(-NormalDist().inv_cdf(miss / 2) * np.sqrt(square))


def cell_estimates(noisy: NoisyMarginals, model: Model | None, columns: Columns) -> Floats:
    """Every cell of the table of these columns, as a query by group estimates it; one line."""
    measured = columns in noisy.plan.variances
    if model is None:
        if not measured:
            raise QueryError(
                f"there is no table of these {len(columns)} columns",
                hint=f"leave out {spelled('refine', False)}: the model answers",
            )
        return noisy.table(columns).ravel()
    counted = model.mixture.table(columns).ravel()
    if not measured:
        return counted
    unbiased, variance = noisy.table(columns).ravel(), noisy.cell_variance(columns)
    noise = np.full(len(counted), variance)
    error, shared = model.law.model(counted, noise, single=len(columns) == 1)
    shared = np.minimum(shared, np.minimum(error, noise))
    usual = noise + error - 2 * shared
    error = error + np.maximum((unbiased - counted) ** 2 - model.law.far**2 * usual, 0.0)
    below = noise + error - 2 * shared
    with np.errstate(all="ignore"):
        weight = np.where(below > 0, np.clip((error - shared) / below, 0.0, 1.0), 1.0)
    return np.asarray(np.maximum(weight * unbiased + (1 - weight) * counted, 0.0))


# ----------------------------------------------------------------------
# quantiles: the distribution of a value is more terms of the query


def marginal_quantiles(query: Query, formula: Quantile, source: MarginalSource) -> EstimatedColumn:
    """The values are cut as groups are; Z of each value is one more term."""
    table_query = table_query_of(query, (Term(formula.predicate),), source, more=(formula.value,))
    shape = table_query.number.shape
    at = np.broadcast_to(table_query.functions.numbers(formula.value), shape)
    counted = np.broadcast_to(table_query.payoffs[0], shape) * np.isfinite(at)
    values = np.unique(at[(counted > 0) & (table_query.number >= 0)])
    check_values(len(values), MOST_VALUES, formula, "noisy marginals")
    groups = len(table_query.groups)
    if not len(values):
        return unknown_quantiles(groups, NOISE_ONLY)
    below = [counted * (at <= value) for value in values]
    totals = totals_of(source, table_query, [counted, *below])
    slopes = np.tile(np.eye(len(values) + 1)[1:], (groups, 1, 1))
    slopes[:, :, 0] = -formula.share
    weights = best_weights(totals, slopes[:, len(values) // 2])
    estimator = MarginalEstimator({}, (), totals, weights, source.rows)
    found = estimator.estimates
    z = np.einsum("gvt,gt->gv", slopes, found)
    squares = [estimator.errors(slopes[:, i]) for i in range(len(values))]
    here = np.diff(found[:, 1:], axis=1, prepend=0.0)

    def off(miss: float) -> Floats:
        return np.stack([deviation(square, miss) for square in squares], axis=1)

    return quantile_column(formula, [CumulativeCounts(values, here, z, off)], estimator.covers)


# ----------------------------------------------------------------------
# one query


def answer_marginals(
    query: Query, source: MarginalSource, confidence: float, *, simultaneous: bool = False
) -> Answer:
    """Estimate what the query would give on the table that was published."""
    return answer_from(MarginalEvidence, query, source, confidence, simultaneous=simultaneous)


class MarginalEvidence(TableEvidence[MarginalSource]):
    """Totals from tables and a model."""

    def __init__(self, query: Query, source: MarginalSource) -> None:
        super().__init__(query, source)
        self._totals: dict[tuple[Term, ...], TotalsOfTables] = {}
        self._estimators: dict[Formula, MarginalEstimator] = {}

    def estimator_of(self, formula: Formula) -> MarginalEstimator:
        """The totals of a formula, weighed so that the formula errs least."""
        if formula not in self._estimators:
            terms = terms_of(formula) or (Term(),)
            if terms not in self._totals:
                table_query = table_query_of(self.query, terms, self.source)
                self._totals[terms] = totals_of(self.source, table_query, table_query.payoffs)
            self._estimators[formula] = self._weighed(formula, terms, self._totals[terms])
        return self._estimators[formula]

    def _weighed(
        self, formula: Formula, terms: tuple[Term, ...], totals: TotalsOfTables
    ) -> MarginalEstimator:
        ranges = {term: self._ranges[term] for term in terms}
        evenly = np.full(totals.cells.groups, 0.5 if totals.unbiased is not None else 0.0)
        first = MarginalEstimator(ranges, terms, totals, evenly, self.source.rows)
        slope = np.zeros_like(first.estimates)
        slope[:, 0] = 1.0
        if terms_of(formula):
            with np.errstate(all="ignore"):
                found = first.spread_out(*first.slopes(formula))
            slope = np.where(np.isfinite(found).all(axis=1, keepdims=True), found, slope)
        weights = best_weights(totals, slope)
        return MarginalEstimator(ranges, terms, totals, weights, self.source.rows)

    def quantiles_of(self, formula: Quantile) -> EstimatedColumn:
        """The estimates of a quantile, one for each group."""
        return marginal_quantiles(self.query, formula, self.source)

    # ------------------------------------------------------------------ in words

    def covers(self, estimated: Sequence[EstimatedColumn]) -> str:
        """What the intervals of these columns cover."""
        if any(column.covers == APPROXIMATE for column in estimated):
            return APPROXIMATE
        return NOISE_ONLY if self.source.model is None else WEIGHED

    def notes(self, estimated: Sequence[EstimatedColumn]) -> list[str]:  # noqa: ARG002
        """Notes for the analyst on this answer."""
        beyond = [t.read.columns for t in self._totals.values() if t.unbiased is None]
        names = self.source.schema.names
        return [BEYOND.format(", ".join(names[i] for i in c)) for c in dict.fromkeys(beyond)]
