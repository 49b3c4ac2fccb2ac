"""One query being answered from a generalized or bucketized release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from voile.answering.answer import Work, answer_by, check_groups, term_sets
from voile.answering.classes.boxes import Boxes
from voile.answering.classes.buckets import Buckets
from voile.answering.classes.cells import Asked, Cutting
from voile.answering.classes.certain import Certain, combined
from voile.answering.classes.entropy import fitted_boxes, fitted_buckets
from voile.answering.classes.estimator import APPROXIMATES, COVERS, ClassEstimator, bounded
from voile.answering.classes.law import Law
from voile.answering.classes.quantiles import quantile_column
from voile.answering.classes.source import ClassSource
from voile.answering.columns import APPROXIMATE, Column
from voile.answering.mixed import has_quantile
from voile.answering.notes import at_once, having_notes, query_notes
from voile.answering.source import weight_range
from voile.answering.totals import Groups, check_lookups
from voile.estimate import Answer, Estimate
from voile.query.formula import Call, Formula, Quantile
from voile.query.predicate import Atom, Expression, Term
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
OF_ALL, OF_SHOWN = "of the rows before they were grouped", "of the rows that are shown"


def answer_classes(
    query: Query, source: ClassSource, confidence: float, *, simultaneous: bool = False
) -> Answer:
    """Estimate what the query would give on the rows before they were grouped."""
    return answer_by(ClassWork, query, source, confidence, simultaneous=simultaneous)


class ClassWork(Work):
    """Totals from classes; everything else as for any release."""

    source: ClassSource  # type: ignore[assignment]
    estimator: ClassEstimator  # type: ignore[assignment]

    def __init__(self, query: Query, source: ClassSource) -> None:
        self.query, self.source = query, source
        sets = term_sets(query)
        self.sets = [*sets, (Term(),)]
        self.terms = tuple(dict.fromkeys(term for some in self.sets for term in some))
        check_lookups(self.terms)
        self.ranges = {t: weight_range(t, query.predicate, source, query.sql) for t in self.terms}
        self.asked = self.cutting(self.terms).asked()[0]
        check_groups(len(self.asked.groups))
        law = self.law_of(self.asked)
        self.estimator = ClassEstimator(self.ranges, law, law.moments(self._pairs()))
        self.refiner = None
        self.plain_columns: dict[Formula, Column] = {}
        self.columns: dict[Formula, Column] = {}
        self.tight: dict[Formula, bool] = {}

    @property
    def groups(self) -> Groups:
        return self.asked.groups

    @property
    def assumption(self) -> str:  # type: ignore[override]
        left_out = self.source.removed
        about = f"; {counted(left_out, 'row', 'were')} left out of the release, "
        about += "and nothing here is about them"
        if self._is_known():
            assumed = f"nothing: the release leaves nothing of the answer{self._of_shown} open"
        else:
            assumed = ASSUMED[self.source.recode, self.source.method]
        return assumed + (about if left_out else "")

    def _is_known(self) -> bool:
        """Whether the release leaves nothing open of what is told."""
        return all(not self.column(formula).stderr.any() for formula in self.told)

    @property
    def told(self) -> list[Formula]:
        """What is asked for, besides the groups' keys."""
        return [c.source for c in self.query.columns if not isinstance(c.source, int)]

    @property
    def _of_shown(self) -> str:
        return " of the rows that are shown" if self.source.removed else ""

    # ------------------------------------------------------------------ totals

    def cutting(self, terms: tuple[Term, ...], more: Sequence[Expression] = ()) -> Cutting:
        """The cells of the query; `more` are expressions that cut them as groups do."""
        query, source = self.query, self.source
        groups = (*query.groups, *more)
        likely = None
        if source.recode == "generalize" and source.method == "entropy":
            likely = fitted_boxes(source)
        return Cutting(query.predicate, groups, terms, source, likely)

    def law_of(self, asked: Asked) -> Law:
        source = self.source
        if source.recode == "generalize":
            return Boxes(asked, source)
        return Buckets(
            asked, source, fitted_buckets(source) if source.method == "entropy" else None
        )

    def _pairs(self) -> list[tuple[int, int]]:
        place = {term: i for i, term in enumerate(self.terms)}
        found = [(place[a], place[b]) for some in self.sets for a in some for b in some]
        return [pair for pair in dict.fromkeys(found) if pair[0] <= pair[1]]

    # ------------------------------------------------------------------ the rest

    def _surely_empty(self) -> Any:
        slope = np.zeros((len(self.groups), len(self.terms)))
        slope[:, self.terms.index(Term())] = 1.0
        return self.estimator.extremes(slope).high <= 0

    def _plain(self, formula: Formula) -> Column:
        if isinstance(formula, Quantile):
            found, self.tight[formula] = quantile_column(self, formula)
            return found
        found = super()._plain(formula)
        if not has_quantile(formula):
            self.tight[formula] = self.estimator.certain(formula).tight
            return found
        certain = self._certain(formula)
        self.tight[formula] = certain.tight
        return bounded(found, certain.sides)

    def _certain(self, formula: Formula) -> Certain:
        """From the bounds of the parts, of which some are quantiles."""
        if not has_quantile(formula):
            return self.estimator.certain(formula)
        if isinstance(formula, Quantile):
            ends = self.plain_column(formula).certain
            assert ends is not None  # noqa: S101  (classes always bound what they leave open)
            return Certain(*ends, self.tight[formula])
        assert isinstance(formula, Call)  # noqa: S101  (totals and numbers have no quantiles)
        parts = {arg: self._certain(arg) for arg in formula.args}
        return combined(formula, parts, len(self.groups))

    def about(self, covers: str) -> str:
        """Which rows it is about: those that were left out may be any."""
        return covers.replace(OF_ALL, OF_SHOWN) if self.source.removed else covers

    def _cell(
        self, column: Column, formula: Formula, i: int, at_once: int, confidence: float
    ) -> Estimate:
        found = super()._cell(column, formula, i, at_once, confidence)
        return replace(found, covers=self.about(found.covers))

    def covers(self, *, simultaneous: bool) -> str:
        if self._is_known():
            return f"the statistic{self._of_shown} itself: the release leaves nothing of it open"
        stated = {self.column(formula).covers for formula in self.told}
        covers = APPROXIMATES if stated & {APPROXIMATE, APPROXIMATES} else COVERS
        covers = self.about(covers)
        if simultaneous:
            covers = at_once(covers, f"{len(self.groups):,} groups")
        return covers

    def unmodelled(self) -> list[str]:
        return []

    def notes(self) -> tuple[str, ...]:
        query, source, notes = self.query, self.source, list[str]()
        if not (self.asked.number >= 0).any():
            notes.append("no row that agrees with the release satisfies the condition")
        notes += query_notes(query)
        notes += self._bin_notes()
        parts: list[Atom | Expression] = [*query.conditions, *query.values, *query.groups]
        read = {name for part in parts for name in part.attributes}
        if read and read <= set(source.known):
            notes.append(EXACT.format(self._of_shown))
        if not all(self.tight[formula] for formula in self.told):
            notes.append(LOOSE)
        notes += [text for name, text in source.remarks.items() if name in read]
        return (*notes, *having_notes(query))
