"""One query being answered from a noisy view."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from voile.answering.columns import APPROXIMATE, NORMAL, EstimatedColumn, Flags
from voile.answering.evidence import Evidence, checked_ranges, columns_read, distinct, term_sets
from voile.answering.quantiles import CumulativeCounts, has_quantile, point, quantile_column
from voile.answering.source import predicate_parts, value_range
from voile.answering.totals import (
    ListedGroups,
    check_lookups,
    domain_columns,
    hashable,
    scattered,
    totals,
    with_products,
)
from voile.answering.walk import NO_TUPLE, answer_from
from voile.arrays import Floats
from voile.errors import QueryError
from voile.estimate import Answer, Bound
from voile.kinds.views.estimator import COVERS as REFINED
from voile.kinds.views.estimator import (
    SPENT_ON_SAMPLING,
    Refiner,
    ViewEstimator,
    ViewMechanism,
    ViewModel,
    ViewSource,
    noiseless,
)
from voile.query.aggregate import Formula, Quantile
from voile.query.predicate import Expression, Predicate, Term, both
from voile.query.query import Query
from voile.query.rows import SCORE, SPREAD, WeightedTerm

# ----------------------------------------------------------------------
# quantiles from a noisy view: the distribution of its rows beside that of the domain


MOST_CELLS = 20_000_000
SPENT_TWICE = 1.1
"""Two values are judged, each on one side; what the bounds of a variance cost is paid twice."""


@dataclass(frozen=True)
class ViewDistribution:
    """For each group and each value in increasing order, rows of the view and tuples of D."""

    values: Floats
    view: Floats
    domain: Floats
    error: Floats
    spread: Floats
    """As `domain`, weighted by the variance of each tuple's noise."""
    codes: tuple[Any, ...] = ()
    """Of every group with every value, among the keys of the domain."""


def view_quantiles(
    quantile: Quantile,
    where: Predicate | None,
    groups: Sequence[Expression],
    listed: ListedGroups,
    source: ViewSource,
) -> EstimatedColumn:
    """The quantile of every group."""
    mechanism = source.mechanism
    found = distribution(quantile, where, groups, listed, source)
    exact = noiseless(mechanism) and not found.error.any()
    return quantile_column(
        quantile, [cumulated(found, mechanism, quantile.share)], NORMAL, exact=exact
    )


def distribution(
    quantile: Quantile,
    where: Predicate | None,
    groups: Sequence[Expression],
    listed: ListedGroups,
    source: ViewSource,
) -> ViewDistribution:
    """The counts of every value in every group, on both sides."""
    passing = both(where, quantile.predicate)
    keys = [*groups, quantile.value]
    rows, domain, shape = source.engine, source.domain, source.shape
    weights = [SCORE, SPREAD] if rows.scored else [""]
    seen = rows.sums(passing, keys, [WeightedTerm(Term(), weight) for weight in weights])
    (expected,) = domain.sums([Term(passing)], keys)
    known = [k for k in expected.keys[-1] if k is not None and not _unordered(k)]
    order = sorted(range(len(known)), key=lambda i: known[i])
    if len(listed) * len(known) > MOST_CELLS:
        raise QueryError(
            f"a quantile over {len(known):,} values in {len(listed):,} groups is too much",
            hint="ask for fewer groups",
        )
    places = {hashable(k): i for i, k in enumerate(expected.keys[-1])}
    value_codes = np.array([places[hashable(known[i])] for i in order], dtype=np.int64)
    codes = _crossed(listed, value_codes)
    view, _ = scattered(seen, codes, expected)  # rows whose value is NULL have no place
    mean = domain.sums([Term(passing)], keys, shape.mean)[0] if shape else expected
    noise = domain.sums([Term(passing)], keys, shape.variance)[0] if shape else expected
    spread = noise.at(codes) + (view[:, 1] if rows.scored else 0.0)
    size = (len(listed), len(value_codes))
    return ViewDistribution(
        values=np.array([float(known[i]) for i in order]),
        view=view[:, 0].reshape(size),
        domain=mean.at(codes).reshape(size),
        error=mean.errors_at(codes).reshape(size),
        spread=spread.reshape(size),
        codes=codes,
    )


def refined_quantiles(
    quantile: Quantile,
    where: Predicate | None,
    groups: Sequence[Expression],
    listed: ListedGroups,
    source: ViewSource,
    model: ViewModel,
) -> Floats:
    """Quantiles of counts that are weighed against the model's, value by value."""
    found = distribution(quantile, where, groups, listed, source)
    term = Term(both(where, quantile.predicate))
    (expected,) = source.domain.sums([term], [*groups, quantile.value], model.weights)
    plain = source.mechanism.total(found.view, found.domain).ravel()
    variance = source.mechanism.variance(np.maximum(plain, 0.0), found.spread.ravel())
    counts, _ = model.error.combine(plain, variance, model.rows * expected.at(found.codes))
    rows = counts.reshape(found.view.shape)
    return np.array([point(row, found.values, quantile) for row in rows])


def _unordered(key: Any) -> bool:
    return isinstance(key, float) and math.isnan(key)


def _crossed(listed: ListedGroups, values: Any) -> tuple[Any, ...]:
    """Codes of every group with every value."""
    repeated = [np.repeat(code, len(values)) for code in listed.codes]
    return (*repeated, np.tile(values, len(listed)))


@np.errstate(all="ignore")
def cumulated(found: ViewDistribution, mechanism: ViewMechanism, share: float) -> CumulativeCounts:
    """Z of every value, and how far it may be off."""
    below_view, below_domain = np.cumsum(found.view, axis=1), np.cumsum(found.domain, axis=1)
    below_spread = np.cumsum(found.spread, axis=1)
    all_view, all_domain = below_view[:, -1:], below_domain[:, -1:]
    z = mechanism.total(below_view - share * all_view, below_domain - share * all_domain)
    largest = np.full(z.shape, max(share, 1 - share))

    def deviation(miss: float) -> Floats:
        spent = SPENT_ON_SAMPLING * miss if found.error.any() else 0.0
        off = mechanism.deviation(
            squares(below_view, all_view, share),
            squares(below_domain, all_domain, share),
            squares(below_spread, below_spread[:, -1:], share),
            largest,
            miss / SPENT_TWICE - spent,
        )
        if not spent:
            return off
        # As if the errors of all values agreed, below v and in the total.
        error = np.cumsum(found.error, axis=1)
        error = error + share * error[:, -1:]
        return off - NormalDist().inv_cdf(spent / 2) * mechanism.domain_share(error)

    counts = mechanism.total(found.view, found.domain)
    return CumulativeCounts(found.values, counts, z, deviation)


def squares(below: Floats, everything: Floats, share: float) -> Floats:
    """Σ (1[x ≤ v] − p)²."""
    return (1 - share) ** 2 * below + share**2 * (everything - below)


# ----------------------------------------------------------------------
# one query being answered from a noisy view


def answer(
    query: Query, source: ViewSource, confidence: float = 0.95, *, simultaneous: bool = False
) -> Answer:
    """Estimate what the query would give on the original table."""
    return answer_from(ViewEvidence, query, source, confidence, simultaneous=simultaneous)


class ViewEvidence(Evidence):
    """Totals from sums over the view and over the domain; with a model, refined."""

    def __init__(self, query: Query, source: ViewSource) -> None:
        self.query, self.source = query, source
        sets = term_sets(query)
        if source.model:  # refining a sum needs the rows that it is over
            sets += [tuple(dict.fromkeys((t, Term(t.predicate)))) for s in sets for t in s]
        terms = with_products(sets)
        check_lookups(terms)
        ranges = checked_ranges(query, distinct(sets), source)
        self.totals = totals(
            query.predicate, query.groups, terms, source.engine, source.domain, source.shape
        )
        self.estimator = ViewEstimator(ranges, self.totals, source.mechanism, source.rows)
        self.refiner = self._refiner()

    def _refiner(self) -> Refiner | None:
        model, totals = self.source.model, self.totals
        if model is None or self._unmodelled():
            return None
        terms = [Term(both(self.query.predicate, t.predicate), t.values) for t in totals.terms]
        sums = self.source.domain.sums(terms, self.query.groups, model.weights)
        expected, _ = domain_columns(sums, totals.groups)
        return Refiner(self.estimator, model.rows * expected, model.error)

    def _unmodelled(self) -> list[str]:
        """Attributes that the query reads and the model knows nothing about."""
        model = self.source.model
        return sorted(columns_read(self.query) & model.left_out) if model else []

    # ------------------------------------------------------------------ estimates

    @property
    def groups(self) -> ListedGroups:
        """The groups that rows of the view, or tuples of the domain, may have."""
        return self.totals.groups

    def column(self, formula: Formula) -> EstimatedColumn:
        """The refined estimates where there is a model, with the plain ones beside them."""
        plain = self.estimator.column(formula)
        return replace(self.refiner.column(formula), plain=plain) if self.refiner else plain

    def values(self, formula: Formula, quantiles: Mapping[Quantile, Floats]) -> Floats:
        """The formula's estimates, with quantiles that are known already."""
        return self.estimator.values(quantiles)(formula).value

    def quantile(self, formula: Quantile) -> EstimatedColumn:
        """With a model a better value, with the plain interval, which holds for every table."""
        source, query = self.source, self.query
        parts = [*predicate_parts(query.predicate), *predicate_parts(formula.predicate)]
        value_range(formula.value, parts, source, query.sql)  # all must be finite
        given = (formula, query.predicate, query.groups, self.groups, source)
        plain = view_quantiles(*given)
        if self.refiner is None or source.model is None:
            return plain
        value = refined_quantiles(*given, source.model)
        return replace(plain, value=np.clip(value, *plain.interval(0.95)), plain=plain)

    @np.errstate(all="ignore")
    def empty(self) -> Flags:
        """Groups that certainly have no record."""
        i = self.totals.column(Term())
        t, mechanism = self.totals, self.source.mechanism
        view, domain, spread = t.view[:, i], t.domain[:, i], t.spread[:, i]
        off = mechanism.deviation(view, domain, spread, np.ones(len(view)), 0.05)
        known = self.totals.domain_error[:, i] == 0
        return np.asarray(known & (mechanism.total(view, domain) == 0) & (off == 0))

    @property
    def bound(self) -> Bound | None:
        """The paper's utility statement for a count, where it has one."""
        return self.source.bound

    # ------------------------------------------------------------------ in words

    def covers(self, estimated: Sequence[EstimatedColumn]) -> str:
        """What the intervals of these columns cover."""
        stated = {c.covers for c in estimated}
        covers = next(
            (c for c in (REFINED, APPROXIMATE, NORMAL) if c in stated), estimated[0].covers
        )
        if self.totals.domain_error.any() and covers != REFINED:
            covers += ", and over the sampling of the domain"
        return covers

    @property
    def nothing(self) -> str:
        """Why there is nothing to count, where no tuple of the domain passes."""
        everyone = self.totals.column(Term())
        some = (self.totals.domain + self.totals.domain_error)[:, everyone].any()
        return "" if some else NO_TUPLE

    def notes(self, estimated: Sequence[EstimatedColumn]) -> list[str]:  # noqa: ARG002
        """What an analyst should know about the answer."""
        query, notes = self.query, list[str]()
        if not query.atoms and not query.groups and self.source.rows is not None:
            notes.append(f"the release tells the number of rows: {self.source.rows:,}")
        if missing := self._unmodelled():
            notes.append(f"not refined: the model knows nothing about {', '.join(missing)}")
        mixed = any(has_quantile(f) and not isinstance(f, Quantile) for f in query.formulas)
        if self.source.model and mixed:
            notes.append("arithmetic with quantiles is not refined")
        return notes
