"""One query being answered from rows that were perturbed one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from voile.answering.answer import Work, answer_by, term_sets
from voile.answering.columns import APPROXIMATE, Column
from voile.answering.local.asked import Asked
from voile.answering.local.axes import Axis, Evaluator, build_axes
from voile.answering.local.cells import Cells, parts_of
from voile.answering.local.estimator import (
    APPROXIMATES,
    COVERS,
    LAW_COVERS,
    Constrained,
    LocalEstimator,
)
from voile.answering.local.quantiles import quantile_column
from voile.answering.local.rows_kept import whole_row_totals
from voile.answering.local.source import LocalSource
from voile.answering.local.states import seen_sums, with_own_values
from voile.answering.local.totals import LocalTotals
from voile.answering.notes import NO_TUPLE, at_once, having_notes, query_notes
from voile.answering.source import weight_range
from voile.answering.totals import check_lookups
from voile.errors import QueryError
from voile.estimate import Answer
from voile.query.formula import Formula, Quantile
from voile.query.predicate import Atom, Expression, Term
from voile.query.query import Query
from voile.reconstruct import Axis as Transition
from voile.reconstruct import maximum_likelihood

EXACT = "every column that the query reads is public: the answer is exact"


def answer_local(
    query: Query, source: LocalSource, confidence: float, *, simultaneous: bool
) -> Answer:
    """Estimate what the query would give on the rows before they were perturbed."""
    return answer_by(LocalWork, query, source, confidence, simultaneous=simultaneous)


class LocalWork(Work):
    """Totals by reconstruction; everything else as for any release."""

    source: LocalSource  # type: ignore[assignment]
    totals: LocalTotals  # type: ignore[assignment]
    estimator: LocalEstimator | Constrained  # type: ignore[assignment]

    def __init__(self, query: Query, source: LocalSource) -> None:
        self.query, self.source = query, source
        sets = term_sets(query)
        self.sets = [*sets, (Term(),)]
        self.terms = tuple(dict.fromkeys(term for some in self.sets for term in some))
        check_lookups(self.terms)
        self.ranges = {t: weight_range(t, query.predicate, source, query.sql) for t in self.terms}
        self.totals = self._whole_rows() if source.joint is not None else self._columns()
        plain = LocalEstimator(self.ranges, self.totals, source.rows)
        self.estimator = self._constrained(plain) if source.method == "em" else plain
        self.refiner = None
        self.plain_columns: dict[Formula, Column] = {}
        self.columns: dict[Formula, Column] = {}

    # ------------------------------------------------------------------ totals

    @cached_property
    def evaluator(self) -> Evaluator:
        return Evaluator(self.source.engine.domain, self.source.schema)

    def asked(
        self,
        terms: tuple[Term, ...] | None = None,
        *,
        more: Sequence[Expression] = (),
    ) -> Asked:
        """The query on tensors; `more` are expressions that cut classes as groups do."""
        query, source = self.query, self.source
        terms = self.terms if terms is None else terms
        groups = (*query.groups, *more)
        parts = parts_of(query.predicate, groups, terms)
        axes = build_axes(parts, source.schema, source.noise, self.evaluator)
        seen = seen_sums(axes, source.engine, source.schema)
        axes = with_own_values(axes, seen, source.rows)
        cells = Cells(axes, source.schema, self.evaluator)
        told = len(query.groups)
        return Asked(cells, axes, seen, query.predicate, groups, terms, source.rows, told)

    def _pairs(self) -> list[tuple[int, int]]:
        place = {term: i for i, term in enumerate(self.terms)}
        found = [(place[a], place[b]) for some in self.sets for a in some for b in some]
        return [pair for pair in dict.fromkeys(found) if pair[0] <= pair[1]]

    def _columns(self) -> LocalTotals:
        return self.asked().totals(self._pairs())

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

    # ------------------------------------------------------------------ the rest

    def _surely_empty(self) -> Any:
        """Groups of public columns that no row has."""
        i = self.totals.column(Term())
        pair = (i, i)
        none = (self.totals.covariances[pair] == 0) & (self.totals.squares[pair] == 0)
        return none & (self.totals.estimates[:, i] == 0)

    def _quantile(self, formula: Quantile) -> Column:
        return quantile_column(self, formula)

    def covers(self, *, simultaneous: bool) -> str:
        told = [self.column(c.source) for c in self.query.columns if not isinstance(c.source, int)]
        if all(not column.stderr.any() for column in told):
            return (
                "the statistic itself: nothing that the query reads was perturbed, or but permuted"
            )
        stated = {c.covers for c in told}
        known = next((c for c in (COVERS, LAW_COVERS) if c in stated), COVERS)
        covers = APPROXIMATES if stated & {APPROXIMATE, APPROXIMATES} else known
        if simultaneous:
            covers = at_once(covers, f"{len(self.groups):,} groups")
        return covers

    def unmodelled(self) -> list[str]:
        return []

    def notes(self) -> tuple[str, ...]:
        query, notes = self.query, list[str]()
        if not self.totals.possible:
            notes.append(NO_TUPLE)
        notes += query_notes(query)
        notes += self._bin_notes()
        parts: list[Atom | Expression] = [*query.conditions, *query.values, *query.groups]
        read = {name for part in parts for name in part.attributes}
        if (
            read
            and self.source.noise
            and all(self.source.noise[name].retention == 1 for name in read)
        ):
            notes.append(EXACT)
        notes += [text for name, text in self.source.remarks.items() if name in read]
        if self.source.method == "em":
            summed = any(term.values for term in self.terms)
            notes.append("counts are the likeliest with none below 0; standard errors and "
                         "intervals are those of inversion, stretched where they do not hold them"
                         + ("; sums and averages are by inversion" if summed else ""))  # fmt: skip
        return (*notes, *having_notes(query))


def transition(axis: Axis) -> Transition:
    return Transition(axis.retention, axis.moments[:, 0] / axis.moments[:, 0].sum())
