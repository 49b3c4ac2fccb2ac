"""One query being answered from rows that were perturbed one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

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
from voile.answering.local.asked import TensorQuery
from voile.answering.local.axes import PerturbedAxis, build_axes
from voile.answering.local.estimator import (
    APPROXIMATES,
    COVERS,
    LAW_COVERS,
    Constrained,
    LocalEstimator,
)
from voile.answering.local.quantiles import local_quantiles
from voile.answering.local.rows_kept import whole_row_totals
from voile.answering.local.source import LocalSource
from voile.answering.local.states import seen_sums, with_own_values
from voile.answering.local.totals import LocalTotals
from voile.answering.notes import NO_TUPLE, bin_notes
from voile.answering.totals import ListedGroups
from voile.answering.walk import answer_from
from voile.arrays import Floats
from voile.errors import QueryError
from voile.estimate import Answer
from voile.query.formula import Formula, Quantile
from voile.query.predicate import Expression, Term
from voile.query.query import Query
from voile.reconstruct import Axis as Transition
from voile.reconstruct import maximum_likelihood

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
        self.estimator: LocalEstimator | Constrained = (
            self._constrained(plain) if source.method == "em" else plain
        )

    # ------------------------------------------------------------------ totals

    @cached_property
    def _arrays(self) -> DomainArrays:
        return DomainArrays(self.source.engine.domain, self.source.schema)

    def asked(
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
        told = len(query.groups)
        return TensorQuery(cells, axes, seen, query.predicate, groups, terms, source.rows, told)

    def _columns(self) -> LocalTotals:
        return self.asked().totals(paired(self.sets, self.terms))

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

    def _constrained(self, plain: LocalEstimator) -> Constrained:
        if self.source.joint is not None:
            raise QueryError(
                "method em is for columns that were perturbed on their own",
                hint="use --method inversion: whole rows were kept or replaced here",
            )
        counts = tuple(term for term in self.terms if not term.values)
        asked = self.asked(counts)
        fit = maximum_likelihood(asked.seen, [transition(axis) for axis in asked.axes])
        estimates = self.totals.estimates.copy()
        for i, term in enumerate(counts):
            estimates[:, self.terms.index(term)] = asked.by_group(fit.counts, i)
        totals = replace(self.totals, estimates=estimates)
        return Constrained(plain, LocalEstimator(self.ranges, totals, self.source.rows))

    # ------------------------------------------------------------------ estimates

    @property
    def groups(self) -> ListedGroups:
        return self.totals.groups

    def column(self, formula: Formula) -> EstimatedColumn:
        return self.estimator.column(formula)

    def values(self, formula: Formula, quantiles: Mapping[Quantile, Floats]) -> Floats:
        return self.estimator.values(quantiles)(formula).value

    def quantile(self, formula: Quantile) -> EstimatedColumn:
        if self.source.joint is not None:
            raise QueryError(
                "quantiles are not estimated where whole rows were kept or replaced",
                hint="count what lies below a value: count(*) … where age <= 40",
            )
        asked = self.asked(terms=(Term(formula.predicate),), more=(formula.value,))
        return local_quantiles(asked, formula)

    def empty(self) -> Flags:
        """Groups of public columns that no row has."""
        i = self.totals.column(Term())
        pair = (i, i)
        none = (self.totals.covariances[pair] == 0) & (self.totals.squares[pair] == 0)
        return np.asarray(none & (self.totals.estimates[:, i] == 0))

    # ------------------------------------------------------------------ in words

    @property
    def exact_covers(self) -> str:
        return EXACT_COVERS

    def covers(self, estimated: Sequence[EstimatedColumn]) -> str:
        stated = {c.covers for c in estimated}
        if stated & {APPROXIMATE, APPROXIMATES}:
            return APPROXIMATES
        return next((c for c in (COVERS, LAW_COVERS) if c in stated), COVERS)

    @property
    def nothing(self) -> str:
        return "" if self.totals.possible else NO_TUPLE

    def notes(self, estimated: Sequence[EstimatedColumn]) -> list[str]:  # noqa: ARG002
        source, notes = self.source, bin_notes(self.query, self.source.engine)
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
