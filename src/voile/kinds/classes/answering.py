"""Answers to queries from a generalized or bucketized release, under a stated assumption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from voile.answering.columns import APPROXIMATE, EstimatedColumn, Flags
from voile.answering.evidence import (
    Evidence,
    check_groups,
    checked_ranges,
    columns_read,
    distinct,
    paired,
    term_sets,
)
from voile.answering.totals import ListedGroups
from voile.answering.walk import answer_from, is_known
from voile.arrays import Floats
from voile.estimate import Answer
from voile.kinds.classes.boxes import ClassBoxes
from voile.kinds.classes.buckets import Buckets
from voile.kinds.classes.cells import CellQuery, ClassSource, Cutting, OpenSums
from voile.kinds.classes.estimator import (
    APPROXIMATES,
    COVERS,
    UNSTATED,
    ClassEstimator,
    QuantileLaws,
    class_quantiles,
)
from voile.kinds.classes.fitting import fitted_boxes, fitted_buckets
from voile.kinds.classes.manifest import ClassErrorModel
from voile.query.aggregate import Formula, Quantile
from voile.query.predicate import Expression, Term
from voile.query.query import Query
from voile.units import counted

# ----------------------------------------------------------------------
# one query, answered from a generalized or bucketized release


ASSUMED = {
    ("generalize", "uniform"): "every value of the interval that a class shows is equally likely, "
    "for each of its rows and columns on its own",
    ("bucketize", "uniform"): "the sensitive records of a class are equally likely to be any of "
    "its rows'",
    ("generalize", "entropy"): "values are spread within the interval that a class shows as the "
    "intervals of all classes together make most likely, for each of its rows and columns on its "
    "own",
    ("bucketize", "entropy"): "the sensitive records of a class belong to its rows as a model of "
    "all classes together, of which each column has a part, makes most likely",
}
EXACT = "every column that the query reads is shown exactly: the answer is exact{}"
LOOSE = "the certain bounds hold, but no data may reach them: they are made of bounds of parts"
NO_ERRORS = (
    "the release has no error model: how far the estimate may be off is not known, so no interval "
    "is stated; the certain bounds hold"
)
NO_FITTED_ERRORS = (
    "the errors of this method were not measured when the release was made, so no interval is "
    "stated; the certain bounds hold"
)
NO_ROW = "no row that agrees with the release satisfies the condition"
OF_ALL, OF_SHOWN = "of the rows before they were grouped", "of the rows that are shown"


def answer_classes(
    query: Query, source: ClassSource, confidence: float, *, simultaneous: bool = False
) -> Answer:
    """Estimate what the query would give on the rows before they were grouped."""
    return answer_from(ClassEvidence, query, source, confidence, simultaneous=simultaneous)


class ClassEvidence(Evidence):
    """Totals from classes."""

    def __init__(self, query: Query, source: ClassSource) -> None:
        self.query, self.source = query, source
        sets = [*term_sets(query), (Term(),)]
        self.terms = distinct(sets)
        ranges = checked_ranges(query, self.terms, source)
        cutting = self._cutting(self.terms)
        self.cell_query = cutting.cell_query()[0]
        check_groups(len(self.cell_query.groups))
        law = self._law_of(self.cell_query)
        moments = law.moments(paired(sets, self.terms))
        if self.is_fitted:  # errors are measured by the even spread, whichever is the estimate
            fitted = self._fitted(cutting).cell_query()[0]
            moments = replace(moments, means=self._fitted_law(fitted).moments([]).means)
        self.estimator = ClassEstimator(
            ranges, law, moments, self._about, self._error_model, is_fitted=self.is_fitted
        )

    # ------------------------------------------------------------------ totals

    @property
    def is_fitted(self) -> bool:
        """Whether a model of all classes together gives the estimates."""
        return self.source.method == "entropy"

    @property
    def _error_model(self) -> ClassErrorModel | None:
        model = self.source.error_model
        return None if model is None or (self.is_fitted and model.fitted is None) else model

    def _cutting(self, terms: tuple[Term, ...], more: Sequence[Expression] = ()) -> Cutting:
        """The cells of the query; `more` are expressions that cut them as groups do."""
        query = self.query
        return Cutting(query.predicate, (*query.groups, *more), terms, self.source)

    def _fitted(self, cutting: Cutting) -> Cutting:
        """The same cells, with the chances of values that were fitted."""
        boxes = self.source.recode == "generalize"
        return cutting.with_chances(fitted_boxes(self.source) if boxes else None)

    def _law_of(self, query: CellQuery) -> OpenSums:
        if self.source.recode == "generalize":
            return ClassBoxes(query, self.source)
        return Buckets(query, self.source)

    def _fitted_law(self, query: CellQuery) -> OpenSums:
        if self.source.recode == "generalize":
            return ClassBoxes(query, self.source)
        return Buckets(query, self.source, fitted_buckets(self.source))

    # ------------------------------------------------------------------ estimates

    @property
    def groups(self) -> ListedGroups:
        """The groups of the answer."""
        return self.cell_query.groups

    def column(self, formula: Formula) -> EstimatedColumn:
        """The estimates of a formula, one for each group."""
        return self.estimator.column(formula)

    def values(self, formula: Formula, quantiles: Mapping[Quantile, Floats]) -> Floats:
        """The values of a formula that has quantiles in it."""
        return self.estimator.values(quantiles)(formula).value

    def quantile(self, formula: Quantile) -> EstimatedColumn:
        """The estimates of a quantile, one for each group."""
        cutting = self._cutting((Term(formula.predicate),), more=(formula.value,))
        fitted = (self._fitted(cutting), self._fitted_law) if self.is_fitted else None
        laws = QuantileLaws(self._law_of, self._error_model, fitted)
        covers = self.estimator.covers
        return class_quantiles(formula, cutting, laws, covers, len(self.query.groups))

    def empty(self) -> Flags:
        """The groups that surely have no rows."""
        slope = np.zeros((len(self.groups), len(self.terms)))
        slope[:, self.terms.index(Term())] = 1.0
        return np.asarray(self.estimator.extremes(slope).high <= 0)

    # ------------------------------------------------------------------ in words

    def assumption(self, estimated: Sequence[EstimatedColumn]) -> str:
        """The assumption under which the estimates hold, in words."""
        left_out = self.source.removed
        about = f"; {counted(left_out, 'row', 'were')} left out of the release, "
        about += "and nothing here is about them"
        if is_known(estimated):
            assumed = f"nothing: the release leaves nothing of the answer{self._of_shown} open"
        else:
            assumed = ASSUMED[self.source.recode, self.source.method]
        return assumed + (about if left_out else "")

    @property
    def _of_shown(self) -> str:
        return f" {OF_SHOWN}" if self.source.removed else ""

    def _about(self, covers: str) -> str:
        """Which rows it is about: those that were left out may be any."""
        return covers.replace(OF_ALL, OF_SHOWN) if self.source.removed else covers

    @property
    def exact_covers(self) -> str:
        """What an answer without error covers."""
        return f"the statistic{self._of_shown} itself: the release leaves nothing of it open"

    def covers(self, estimated: Sequence[EstimatedColumn]) -> str:
        """What the intervals of these columns cover."""
        if not all(column.stated for column in estimated):
            return self._about(UNSTATED)
        approximate = {APPROXIMATE, self._about(APPROXIMATES)}
        stated = {column.covers for column in estimated}
        return self._about(APPROXIMATES if stated & approximate else COVERS)

    @property
    def nothing(self) -> str:
        """Why no row counts, where none does."""
        return "" if (self.cell_query.number >= 0).any() else NO_ROW

    def notes(self, estimated: Sequence[EstimatedColumn]) -> list[str]:
        """Notes for the analyst on this answer."""
        source, notes = self.source, list[str]()
        read = columns_read(self.query)
        if read and read <= set(source.known):
            notes.append(EXACT.format(self._of_shown))
        if not is_known(estimated) and not all(column.stated for column in estimated):
            notes.append(NO_ERRORS if source.error_model is None else NO_FITTED_ERRORS)
        if any(column.certain is not None and not column.certain.tight for column in estimated):
            notes.append(LOOSE)
        return [*notes, *(text for name, text in source.remarks.items() if name in read)]
