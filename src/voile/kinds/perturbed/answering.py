"""One query being answered from rows that were perturbed one by one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from voile.answering.axes import DomainArrays
from voile.answering.cells import ClassFunctions, parts_of
from voile.answering.columns import APPROXIMATE, EstimatedColumn, Flags
from voile.answering.evidence import (
    Evidence,
    checked_ranges,
    columns_read,
    distinct,
    paired,
    term_sets,
)
from voile.answering.quantiles import CumulativeCounts, check_values, quantile_column
from voile.answering.totals import ListedGroups, Totals, product, totals, with_products
from voile.answering.walk import NO_TUPLE, answer_from
from voile.arrays import Floats, Ints
from voile.engines.rows import ReleaseRows
from voile.errors import QueryError, spelled
from voile.estimate import Answer
from voile.kinds.perturbed.axes import (
    LocalSource,
    PerturbedAxis,
    build_axes,
    seen_sums,
    with_own_values,
)
from voile.kinds.perturbed.covariances import GroupErrors, GroupTensors, PureErrors, is_pure
from voile.kinds.perturbed.estimator import (
    APPROXIMATES,
    COVERS,
    LAW_COVERS,
    ConstrainedEstimator,
    CountLaw,
    LocalEstimator,
    LocalTotals,
    deviation,
)
from voile.kinds.perturbed.tensors import (
    expanded,
    multiplied,
    places,
    reach,
    reconstructed,
    split,
    unbiased,
    varying,
    widest,
)
from voile.query.aggregate import Formula, Quantile
from voile.query.domain import DomainSums
from voile.query.predicate import Expression, Predicate, Term
from voile.query.query import Query
from voile.reconstruct import Axis as Transition
from voile.reconstruct import maximum_likelihood

# ----------------------------------------------------------------------
# estimates and covariances of all totals of a query, for all of its groups
# With Y the sums over the seen rows, f a term of one group and g its unbiased counterpart:
#
#   estimate     Σ Y·g
#   covariance   of two such: Σ Y·g·h − Σ Ŷ·f·k, unbiased, with f and k what g and h are unbiased
#   for
#                and Ŷ the reconstructed sums: E[g(Y)h(Y)|x] − f(x)k(x), summed over the rows
#
# Where a column's replacements are its own values, their distribution is estimated from the same
# rows; f then has the first-order effect of that taken off (see Sub in group_errors.py).


@dataclass(frozen=True)
class TensorQuery:
    """A query on tensors: everything that estimates and errors are computed from."""

    cells: ClassFunctions
    axes: list[PerturbedAxis]
    seen: Floats
    where: Predicate | None
    groups: tuple[Expression, ...]
    terms: tuple[Term, ...]
    rows: float
    answered_groups: int | None = None
    """How many of the groups are those of the answer; others only cut classes."""

    @cached_property
    def estimated(self) -> Floats:
        """Ŷ."""
        return reconstructed(self.seen, self.axes)

    @cached_property
    def functions(self) -> list[tuple[Floats, tuple[int, ...]]]:
        """Each term as a function of the states, with its degrees in the axes' numbers."""
        return [self.cells.function(self.where, term) for term in self.terms]

    @cached_property
    def listed(self) -> tuple[ListedGroups, Ints]:
        """The groups of the answer, and the group that each state belongs to."""
        return self.cells.listing(self.groups[: self.answered_groups], self.cells.truth(self.where))

    def totals(self, pairs: Sequence[tuple[int, int]]) -> LocalTotals:
        """The totals of all terms by group, with the errors of these pairs."""
        groups, number = self.listed
        estimates, seen = (
            np.stack([self.by_group(of, i) for i in range(len(self.terms))], axis=1)
            for of in (self.estimated, self.seen)
        )
        errors = PureErrors(self) if is_pure(self) else GroupErrors(self)
        found = errors.errors(pairs)
        return LocalTotals(
            groups=groups,
            terms=self.terms,
            estimates=estimates,
            seen=seen,
            covariances=found.covariances,
            squares=found.squares,
            largest=found.largest,
            widest=found.widest,
            unit=1 + math.prod((2 - axis.retention) / axis.retention for axis in self.axes),
            laws=found.laws,
            possible=bool((number >= 0).any()),
        )

    def by_group(self, of: Floats, i: int) -> Floats:
        """Σ of·f over the cells of each group."""
        groups, number = self.listed
        f, degrees = self.functions[i]
        states = split(of, self.axes)
        weights = np.asarray(
            sum(
                factor * states[places(powers, self.axes)] * f
                for factor, powers in expanded(degrees, self.axes)
            )
        )
        flat = np.broadcast_to(number, weights.shape).ravel()
        inside = flat >= 0
        return np.asarray(np.bincount(flat[inside], weights.ravel()[inside], len(groups)), float)


# ----------------------------------------------------------------------
# quantiles of perturbed rows, from the reconstructed distribution


MOST_VALUES = 4096


def local_quantiles(request: TensorQuery, formula: Quantile) -> EstimatedColumn:
    """One group at a time: the values are the classes of one more column."""
    found = [below(request, formula, group) for group in range(len(request.listed[0]))]
    exact = not any(variance.any() for _, variance in found)
    return quantile_column(formula, [one for one, _ in found], COVERS, exact=exact)


def below(request: TensorQuery, formula: Quantile, group: int) -> tuple[CumulativeCounts, Floats]:
    """Z of every value of a group, and the variance of its estimate."""
    sub = GroupTensors(request, group)
    (truth, _), numbers = request.functions[0], request.cells.numbers(formula.value)
    counted = np.broadcast_to(truth * np.isfinite(numbers), request.cells.shape)
    at = np.broadcast_to(numbers, request.cells.shape)
    values = np.unique(at[(counted > 0) & (request.listed[1] == group)])
    check_values(len(values), MOST_VALUES, formula, "perturbed rows")
    sums = np.zeros((6, len(values)))
    for i, value in enumerate(values):
        f = sub.placed(counted * ((at <= value) - formula.share), ())
        sums[0, i] = (sub.estimated * f).sum()
        f = varying(f, sub.axes)
        g = unbiased(f, sub.axes)
        sums[2, i] = (sub.seen * multiplied(g, g, sub.axes)).sum()
        sums[1, i] = sums[2, i] - (sub.estimated * multiplied(f, f, sub.axes)).sum()
        sums[3, i] = reach(g, f, sub.axes)
        sums[5, i] = (sub.seen * widest(g, f, sub.axes)).sum()
        sums[4, i] = (sub.estimated * sub.placed(counted * (at == value), ())).sum()
    variance = np.maximum(sums[1], 0.0)
    off = partial(deviation, variance, sums[2], sums[3], np.sqrt(sums[5]))
    return CumulativeCounts(values, sums[4:5], sums[:1], lambda miss: off(miss)[None]), variance


# ----------------------------------------------------------------------
# totals where whole rows were kept or replaced by a uniform tuple (FRAPP's γ-diagonal matrix)
# One coin decides for all columns, so sums over the view and over the domain are enough: with
# weight w, μ its mean over the domain and p the retention, g = (w(y) − (1−p)·μ)/p is unbiased for
# w(x), and
#   Σ E[w·w'(Y)] is estimated by the view's own sum of w·w',
#   Σ E w(Y)·E w'(Y) = p²·Σww' + p(1−p)(μ'Σw + μΣw') + n(1−p)²·μμ'   over the true rows.


@dataclass(frozen=True)
class KeptRows:
    """Sums over the view and the domain, and what they say about the true rows."""

    found: Totals
    retention: float
    size: int
    count: int

    @cached_property
    def mean(self) -> Floats:
        """μ of every term."""
        return np.asarray(self.found.domain / float(self.size))

    @cached_property
    def true(self) -> Floats:
        """Unbiased estimates of the terms' sums over the true rows."""
        drawn = (1 - self.retention) * self.count * self.mean
        return np.asarray((self.found.view - drawn) / self.retention)

    def covariance(self, a: Term, b: Term) -> Floats:
        """The estimated covariance of two totals."""
        s, t, both = self._places(a, b)
        p, q, m, k = self.retention, 1 - self.retention, self.mean[:, s], self.mean[:, t]
        crossed = p * q * (k * self.true[:, s] + m * self.true[:, t])
        expected = p**2 * self.true[:, both] + crossed + self.count * q**2 * m * k
        return np.asarray((self.found.view[:, both] - expected) / p**2)

    def square(self, a: Term, b: Term) -> Floats:
        """Σ g·h over the rows that are seen."""
        s, t, both = self._places(a, b)
        q, m, k, view = 1 - self.retention, self.mean[:, s], self.mean[:, t], self.found.view
        crossed = q * (k * view[:, s] + m * view[:, t])
        whole = view[:, both] - crossed + self.count * q**2 * m * k
        return np.asarray(whole / self.retention**2)

    def _places(self, a: Term, b: Term) -> tuple[int, int, int]:
        return self.found.column(a), self.found.column(b), self.found.column(product(a, b))

    def laws(self) -> dict[tuple[int, int], CountLaw]:
        """Of every count: the same coin decides for all columns of a row."""
        p, drawn = self.retention, (1 - self.retention) * self.mean
        return {
            (g, i): CountLaw(
                round(self.found.view[g, i]), self.count, p + float(drawn[g, i]), float(drawn[g, i])
            )
            for i, term in enumerate(self.found.terms)
            if not term.values
            for g in range(len(self.found.groups))
        }


def whole_row_totals(
    where: Predicate | None,
    groups: tuple[Expression, ...],
    sets: Sequence[Sequence[Term]],
    rows: ReleaseRows,
    domain: DomainSums,
    *,
    retention: float,
    size: int,
    count: int,
    ranges: dict[Term, tuple[float, float]],
) -> LocalTotals:
    """Totals where whole rows were kept or replaced."""
    found = totals(where, groups, with_products(sets), rows, domain)
    kept = KeptRows(found, retention, size, count)
    pairs = {(found.column(a), found.column(b)): (a, b) for s in sets for a in s for b in s}
    weights = np.array([(0.0, *ranges.get(t, (0.0, 0.0))) for t in found.terms])
    low, high = weights.min(axis=1), weights.max(axis=1)
    drawn = (1 - retention) * kept.mean
    ends = (high - drawn) / retention - low, high - (low - drawn) / retention
    return LocalTotals(
        groups=found.groups,
        terms=found.terms,
        estimates=kept.true,
        seen=found.view,
        covariances={place: kept.covariance(*terms) for place, terms in pairs.items()},
        squares={place: kept.square(*terms) for place, terms in pairs.items()},
        largest=np.maximum(*ends),
        widest=np.broadcast_to((high - low) / (2 * retention) * math.sqrt(count), drawn.shape),
        unit=1 + (2 - retention) / retention,
        laws=kept.laws(),
        possible=bool((found.domain > 0).any()),
    )


# ----------------------------------------------------------------------
# one query being answered from rows that were perturbed one by one


EXACT = "every column that the query reads is public: the answer is exact"
EXACT_COVERS = "the statistic itself: nothing that the query reads was perturbed, or but permuted"


def answer_local(
    query: Query, source: LocalSource, confidence: float, *, simultaneous: bool
) -> Answer:
    """Estimate what the query would give on the rows before they were perturbed."""
    return answer_from(LocalEvidence, query, source, confidence, simultaneous=simultaneous)


class LocalEvidence(Evidence):
    """Totals by reconstruction."""

    def __init__(self, query: Query, source: LocalSource) -> None:
        self.query, self.source = query, source
        self.sets = [*term_sets(query), (Term(),)]
        self.terms = distinct(self.sets)
        self.ranges = checked_ranges(query, self.terms, source)
        self.totals = self._whole_rows() if source.joint is not None else self._columns()
        plain = LocalEstimator(self.ranges, self.totals, source.rows)
        self.estimator: LocalEstimator | ConstrainedEstimator = (
            self._constrained(plain) if source.method == "em" else plain
        )

    # ------------------------------------------------------------------ totals

    @cached_property
    def _arrays(self) -> DomainArrays:
        return DomainArrays(self.source.engine.domain, self.source.schema)

    def request(
        self,
        terms: tuple[Term, ...] | None = None,
        *,
        more: Sequence[Expression] = (),
    ) -> TensorQuery:
        """The query on tensors; `more` are expressions that cut classes as groups do."""
        query, source = self.query, self.source
        terms = self.terms if terms is None else terms
        groups = (*query.groups, *more)
        parts = parts_of(query.predicate, groups, terms)
        axes = build_axes(parts, source.schema, source.noise, self._arrays)
        seen = seen_sums(axes, source.engine, source.schema)
        axes = with_own_values(axes, seen, source.rows)
        cells = ClassFunctions(axes, source.schema, self._arrays)
        answered_groups = len(query.groups)
        return TensorQuery(
            cells, axes, seen, query.predicate, groups, terms, source.rows, answered_groups
        )

    def _columns(self) -> LocalTotals:
        return self.request().totals(paired(self.sets, self.terms))

    def _whole_rows(self) -> LocalTotals:
        query, source = self.query, self.source
        assert source.joint is not None  # noqa: S101
        return whole_row_totals(
            query.predicate,
            query.groups,
            self.sets,
            source.engine,
            source.domain,
            retention=source.joint,
            size=source.schema.size,
            count=source.rows,
            ranges=self.ranges,
        )

    def _constrained(self, plain: LocalEstimator) -> ConstrainedEstimator:
        if self.source.joint is not None:
            raise QueryError(
                "method em is for columns that were perturbed on their own",
                hint=f"use {spelled('method', 'inversion')}: whole rows were kept or replaced here",
            )
        counts = tuple(term for term in self.terms if not term.values)
        request = self.request(counts)
        fit = maximum_likelihood(request.seen, [transition(axis) for axis in request.axes])
        estimates = self.totals.estimates.copy()
        for i, term in enumerate(counts):
            estimates[:, self.terms.index(term)] = request.by_group(fit.counts, i)
        totals = replace(self.totals, estimates=estimates)
        return ConstrainedEstimator(plain, LocalEstimator(self.ranges, totals, self.source.rows))

    # ------------------------------------------------------------------ estimates

    @property
    def groups(self) -> ListedGroups:
        """The groups that the domain allows."""
        return self.totals.groups

    def column(self, formula: Formula) -> EstimatedColumn:
        """Estimates of a formula for all groups."""
        return self.estimator.column(formula)

    def values(self, formula: Formula, quantiles: Mapping[Quantile, Floats]) -> Floats:
        """The formula's estimates, with quantiles that are known already."""
        return self.estimator.values(quantiles)(formula).value

    def quantile(self, formula: Quantile) -> EstimatedColumn:
        """Estimates of a quantile for all groups."""
        if self.source.joint is not None:
            raise QueryError(
                "quantiles are not estimated where whole rows were kept or replaced",
                hint="count what lies below a value: count(*) … where age <= 40",
            )
        request = self.request(terms=(Term(formula.predicate),), more=(formula.value,))
        return local_quantiles(request, formula)

    def empty(self) -> Flags:
        """Groups of public columns that no row has."""
        i = self.totals.column(Term())
        pair = (i, i)
        none = (self.totals.covariances[pair] == 0) & (self.totals.squares[pair] == 0)
        return np.asarray(none & (self.totals.estimates[:, i] == 0))

    # ------------------------------------------------------------------ in words

    @property
    def exact_covers(self) -> str:
        """What is said where nothing that the query reads was perturbed."""
        return EXACT_COVERS

    def covers(self, estimated: Sequence[EstimatedColumn]) -> str:
        """What the intervals of these columns cover."""
        stated = {c.covers for c in estimated}
        if stated & {APPROXIMATE, APPROXIMATES}:
            return APPROXIMATES
        return next((c for c in (COVERS, LAW_COVERS) if c in stated), COVERS)

    @property
    def nothing(self) -> str:
        """Why there is nothing to count, where no tuple of the domain passes."""
        return "" if self.totals.possible else NO_TUPLE

    def notes(self, estimated: Sequence[EstimatedColumn]) -> list[str]:  # noqa: ARG002
        """What an analyst should know about the answer."""
        source, notes = self.source, list[str]()
        read = columns_read(self.query)
        if read and source.noise and all(source.noise[name].retention == 1 for name in read):
            notes.append(EXACT)
        notes += [text for name, text in source.remarks.items() if name in read]
        if source.method == "em":
            summed = any(term.values for term in self.terms)
            notes.append("counts are of maximum likelihood, with none below 0; standard errors and "
                         "intervals are those of inversion, stretched where they do not hold them"
                         + ("; sums and averages are by inversion" if summed else ""))  # fmt: skip
        return notes


def transition(axis: PerturbedAxis) -> Transition:
    """The perturbing of one column's classes."""
    return Transition(axis.retention, axis.moments[:, 0] / axis.moments[:, 0].sum())
