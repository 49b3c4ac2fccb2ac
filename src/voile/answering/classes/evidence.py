"""One query being answered from a generalized or bucketized release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from voile.answering.classes.boxes import Boxes
from voile.answering.classes.buckets import Buckets
from voile.answering.classes.cells import CellQuery, Cutting
from voile.answering.classes.entropy import fitted_boxes, fitted_buckets
from voile.answering.classes.estimator import APPROXIMATES, COVERS, ClassEstimator
from voile.answering.classes.law import OpenSums
from voile.answering.classes.quantiles import class_quantiles
from voile.answering.classes.source import ClassSource
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
from voile.answering.notes import bin_notes
from voile.answering.totals import ListedGroups
from voile.answering.walk import answer_from, is_known
from voile.arrays import Floats
from voile.estimate import Answer
from voile.query.formula import Formula, Quantile
from voile.query.predicate import Expression, Term
from voile.query.query import Query
from voile.units import counted

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
        self.asked = self._cutting(self.terms).asked()[0]
        check_groups(len(self.asked.groups))
        law = self._law_of(self.asked)
        moments = law.moments(paired(sets, self.terms))
        self.estimator = ClassEstimator(ranges, law, moments, self._about)

    # ------------------------------------------------------------------ totals

    def _cutting(self, terms: tuple[Term, ...], more: Sequence[Expression] = ()) -> Cutting:
        """The cells of the query; `more` are expressions that cut them as groups do."""
        query, source = self.query, self.source
        groups = (*query.groups, *more)
        likely = None
        if source.recode == "generalize" and source.method == "entropy":
            likely = fitted_boxes(source)
        return Cutting(query.predicate, groups, terms, source, likely)

    def _law_of(self, asked: CellQuery) -> OpenSums:
        source = self.source
        if source.recode == "generalize":
            return Boxes(asked, source)
        return Buckets(
            asked, source, fitted_buckets(source) if source.method == "entropy" else None
        )

    # ------------------------------------------------------------------ estimates

    @property
    def groups(self) -> ListedGroups:
        return self.asked.groups

    def column(self, formula: Formula) -> EstimatedColumn:
        return self.estimator.column(formula)

    def values(self, formula: Formula, quantiles: Mapping[Quantile, Floats]) -> Floats:
        return self.estimator.values(quantiles)(formula).value

    def quantile(self, formula: Quantile) -> EstimatedColumn:
        cutting = self._cutting((Term(formula.predicate),), more=(formula.value,))
        told = len(self.query.groups)
        return class_quantiles(formula, cutting, self._law_of, self._about(COVERS), told)

    def empty(self) -> Flags:
        slope = np.zeros((len(self.groups), len(self.terms)))
        slope[:, self.terms.index(Term())] = 1.0
        return np.asarray(self.estimator.extremes(slope).high <= 0)

    # ------------------------------------------------------------------ in words

    def assumption(self, estimated: Sequence[EstimatedColumn]) -> str:
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
        return f"the statistic{self._of_shown} itself: the release leaves nothing of it open"

    def covers(self, estimated: Sequence[EstimatedColumn]) -> str:
        approximate = {APPROXIMATE, self._about(APPROXIMATES)}
        stated = {column.covers for column in estimated}
        return self._about(APPROXIMATES if stated & approximate else COVERS)

    @property
    def nothing(self) -> str:
        return "" if (self.asked.number >= 0).any() else NO_ROW

    def notes(self, estimated: Sequence[EstimatedColumn]) -> list[str]:
        source, notes = self.source, bin_notes(self.query, self.source.engine)
        read = columns_read(self.query)
        if read and read <= set(source.known):
            notes.append(EXACT.format(self._of_shown))
        if any(column.certain is not None and not column.certain.tight for column in estimated):
            notes.append(LOOSE)
        return [*notes, *(text for name, text in source.remarks.items() if name in read)]
