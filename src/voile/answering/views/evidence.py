"""One query being answered from a noisy view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from voile.answering.columns import APPROXIMATE, EstimatedColumn, Flags
from voile.answering.evidence import Evidence, checked_ranges, columns_read, distinct, term_sets
from voile.answering.mixed import has_quantile
from voile.answering.notes import NO_TUPLE, bin_notes
from voile.answering.source import parts_of, value_range
from voile.answering.totals import (
    ListedGroups,
    check_lookups,
    domain_columns,
    totals,
    with_products,
)
from voile.answering.views.estimator import ViewEstimator
from voile.answering.views.quantiles import refined_quantiles, view_quantiles
from voile.answering.views.refined import COVERS as REFINED
from voile.answering.views.refined import Refiner
from voile.answering.views.source import ViewSource
from voile.answering.walk import answer_from
from voile.arrays import Floats
from voile.estimate import Answer, Bound
from voile.query.formula import Formula, Quantile
from voile.query.predicate import Term, both
from voile.query.query import Query


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
        return self.totals.groups

    def column(self, formula: Formula) -> EstimatedColumn:
        """The refined estimates where there is a model, with the plain ones beside them."""
        plain = self.estimator.column(formula)
        return replace(self.refiner.column(formula), plain=plain) if self.refiner else plain

    def values(self, formula: Formula, quantiles: Mapping[Quantile, Floats]) -> Floats:
        return self.estimator.values(quantiles)(formula).value

    def quantile(self, formula: Quantile) -> EstimatedColumn:
        """With a model a better value, with the plain interval, which holds for every table."""
        source, query = self.source, self.query
        parts = [*parts_of(query.predicate), *parts_of(formula.predicate)]
        value_range(formula.value, parts, source, query.sql)  # all must be finite
        asked = (formula, query.predicate, query.groups, self.groups, source)
        plain = view_quantiles(*asked)
        if self.refiner is None or source.model is None:
            return plain
        value = refined_quantiles(*asked, source.model)
        return replace(plain, value=np.clip(value, *plain.interval(0.95)), plain=plain)

    @np.errstate(all="ignore")
    def empty(self) -> Flags:
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
        stated = {c.covers for c in estimated}
        covers = next((c for c in (REFINED, APPROXIMATE) if c in stated), estimated[0].covers)
        if self.totals.domain_error.any() and covers != REFINED:
            covers += ", and over the sampling of the domain"
        return covers

    @property
    def nothing(self) -> str:
        everyone = self.totals.column(Term())
        some = (self.totals.domain + self.totals.domain_error)[:, everyone].any()
        return "" if some else NO_TUPLE

    def notes(self, estimated: Sequence[EstimatedColumn]) -> list[str]:  # noqa: ARG002
        query, notes = self.query, list[str]()
        if not query.atoms and not query.groups and self.source.rows is not None:
            notes.append(f"the release tells the number of rows: {self.source.rows:,}")
        notes += bin_notes(query, self.source.engine)
        if missing := self._unmodelled():
            notes.append(f"not refined: the model knows nothing about {', '.join(missing)}")
        mixed = any(has_quantile(f) and not isinstance(f, Quantile) for f in query.formulas)
        if self.source.model and mixed:
            notes.append("arithmetic with quantiles is not refined")
        return notes
