"""Answers to queries from a generalized or bucketized release, under a stated assumption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from voile.arrays import Floats, Ints
from voile.errors import QueryError, spelled
from voile.estimate import Answer
from voile.kinds.classes.boxes import ClassBoxes
from voile.kinds.classes.buckets import Buckets
from voile.kinds.classes.cells import CellQuery, ClassSource, Codes, Cutting, OpenSums
from voile.kinds.classes.estimator import APPROXIMATES, COVERS, ClassEstimator, class_quantiles
from voile.kinds.classes.pairing import MOST_FITTED, FittedPairs, pairs_of
from voile.query.aggregate import Formula, Quantile
from voile.query.predicate import Expression, Term
from voile.query.query import Query
from voile.reconstruct.ecological import RecordGroups, hand_out, spread_in_intervals
from voile.units import counted

# ----------------------------------------------------------------------
# what all classes of a release together show about the values within each


def fitted_boxes(source: ClassSource) -> dict[str, Floats]:
    """For each generalized column, how likely each position is; see reconstruct/ecological.py."""
    if "boxes" not in source.kept:
        rows = np.bincount(source.of_row, minlength=source.classes).astype(np.float64)
        source.kept["boxes"] = {
            name: spread_in_intervals(box.low, box.high, rows, len(box.order))
            for name, box in source.boxes.items()
        }
    return dict(source.kept["boxes"])


def fitted_buckets(source: ClassSource) -> FittedPairs:
    """For each row which records are likely to be its own; see reconstruct/ecological.py."""
    if "buckets" not in source.kept:
        source.kept["buckets"] = _fit(source)
    found: FittedPairs = source.kept["buckets"]
    return found


def _fit(source: ClassSource) -> FittedPairs:
    hidden, shown = source.hidden, list(source.known.values())
    assert hidden is not None  # noqa: S101  (a bucketized release has them)
    attributes, row_kind = alike(shown, source.rows)
    listed, record = alike(list(hidden.codes.values()), len(hidden.rows))
    key = source.of_row.astype(np.int64) * attributes.shape[1] + row_kind
    units, row_unit = np.unique(key, return_inverse=True)
    unit_bucket, kind = np.divmod(units, attributes.shape[1])
    starts = np.searchsorted(unit_bucket, np.arange(source.classes + 1))
    ends = np.searchsorted(hidden.of_class, np.arange(source.classes + 1))
    count = int((np.diff(starts) * np.diff(ends)).sum())
    if max(count, attributes.shape[1] * listed.shape[1]) > MOST_FITTED:
        raise QueryError(
            f"{count:,} pairs of rows and records are too many to fit a model to",
            hint=f"use {spelled('method', 'uniform')}",
        )
    _, unit, entry = pairs_of(starts, ends, 0, source.classes)
    rows = np.bincount(row_unit, minlength=len(units)).astype(np.float64)
    handed = hand_out(
        RecordGroups(
            kind=kind,
            attributes=list(attributes),
            rows=rows,
            record=record,
            records=listed.shape[1],
            counts=hidden.rows.astype(np.float64),
            unit_of=unit,
            entry_of=entry,
        )
    )
    return FittedPairs(row_unit.astype(np.int64), unit_bucket, unit, entry, handed)


def alike(columns: list[Codes], count: int) -> tuple[Ints, Ints]:
    """The combinations of codes that occur, (columns, kinds), and which of them each row has."""
    if not columns:
        return np.zeros((1, 1), np.int64), np.zeros(count, np.int64)
    found, index = np.unique(np.stack(columns).astype(np.int64), axis=1, return_inverse=True)
    return found, index.reshape(-1).astype(np.int64)


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
        self.cell_query = self._cutting(self.terms).cell_query()[0]
        check_groups(len(self.cell_query.groups))
        law = self._law_of(self.cell_query)
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

    def _law_of(self, query: CellQuery) -> OpenSums:
        source = self.source
        if source.recode == "generalize":
            return ClassBoxes(query, source)
        return Buckets(
            query, source, fitted_buckets(source) if source.method == "entropy" else None
        )

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
        return class_quantiles(
            formula, cutting, self._law_of, self._about(COVERS), len(self.query.groups)
        )

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
        if any(column.certain is not None and not column.certain.tight for column in estimated):
            notes.append(LOOSE)
        return [*notes, *(text for name, text in source.remarks.items() if name in read)]
