"""How far answers from classes are off: an error model, and how a steward measures it.

The assumption about what a class hides gives a total the variance σ². Real values are not spread as
assumed, so real errors are larger, in two ways: rows of a class resemble each other, and whole
columns lean to one side. With r the root mean square of what one row adds, σ²/r is the number of
rows that are left open times what each adds. The standard error is

  √((spread·σ)² + (share·λ·σ²/r)²)

λ is 1 where all rows add alike, as in a count, and a half where what they add cancels, as in an
average: what leans to one side then moves some rows up and others down.

and the interval at a chance m of a miss reaches  q(m)·error + r·ln(2/m)/3  to both sides: q is
Student's quantile with 4 degrees of freedom, scaled to 1.96 at m = 0.05, for the errors of real
tables have longer tails than the normal law; the second part is Bernstein's, for few rows.

`measured` draws random questions, compares the answers with the truth, and takes the least wide
model that covers in every stratum: sizes of counts, numbers of columns, counts, sums, averages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voile.answering.axes import ClassAxis
from voile.answering.totals import ListedGroups
from voile.arrays import Floats, Ints
from voile.arrow import numpy_array
from voile.engines.encode import values_at
from voile.errors import QueryError
from voile.kinds.classes.boxes import ClassBoxes
from voile.kinds.classes.buckets import Buckets
from voile.kinds.classes.cells import CellQuery, ClassFigures, Codes, Moments, spans
from voile.kinds.classes.fitting import fitted_boxes, fitted_buckets
from voile.kinds.classes.manifest import MOST_ERROR, ClassErrorModel
from voile.noise import Key
from voile.schema import Schema

# ----------------------------------------------------------------------
# from a variance under the assumption to a standard error and an interval


ASSUMED = ClassErrorModel(spread=1.0, share=0.0, fitted=1.0)
"""Errors if the assumption holds: what the variances themselves say."""
USUAL = NormalDist().inv_cdf(0.975)


@np.errstate(all="ignore")
def standard_error(
    model: ClassErrorModel, variance: Floats, size: Floats, lean: Floats, *, fitted: bool
) -> Floats:
    """The standard error of sums with these variances, whose rows add about `size` each."""
    share = np.where(size > 0, lean * variance / size, 0.0)
    found = np.hypot(model.spread * np.sqrt(variance), model.share * share)
    return found * (model.fitted or 0.0) if fitted else found


def reach(error: Floats, size: Floats, miss: float) -> Floats:
    """How far a sum may be off, except with probability `miss`; exact sums have no error."""
    return np.where(error > 0, quantile(miss) * error + size * math.log(2 / miss) / 3, 0.0)


def quantile(miss: float) -> float:
    """What a standard error is multiplied by: Student's law with 4 degrees of freedom."""
    return USUAL * _student(miss) / _student(0.05)


def _student(miss: float) -> float:
    """The two-sided quantile with 4 degrees of freedom, in closed form."""
    root = math.sqrt(miss * (2 - miss))
    return 2 * math.sqrt(max(0.0, math.cos(math.acos(root) / 3) / root - 1))


def leaning(mean: Floats, rows: Floats, size: Floats) -> Floats:
    """λ: from ½ where what rows add cancels to 1 where they add alike."""
    with np.errstate(all="ignore"):
        share = np.abs(mean) / (rows * size)
    return (1 + np.where(np.isfinite(share), np.minimum(share, 1.0), 1.0)) / 2


def typical_size(square: Floats, rows: Floats) -> Floats:
    """The root mean square of what one row adds."""
    with np.errstate(all="ignore"):
        return np.where(rows > 0, np.sqrt(np.maximum(square, 0.0) / rows), 0.0)


# ----------------------------------------------------------------------
# random questions about classes


MOST_GROUPS, MOST_CELLS = 128, 2**20
"""Of one question; units times open cells."""
MOST_DOMAIN = 2**20
"""Values of a column that questions are about."""
BINS = 40
"""Numbers that a column is averaged by."""
TAKEN = 6
"""Answers of one question that count: those of one question are alike."""


@dataclass(frozen=True, eq=False)
class QuestionAxis:
    """A column of a question: the cell of every value, with the group and the number of each."""

    name: str
    cell_of: Ints
    group: Ints
    number: Floats | None = None
    """What is summed; none where the column only selects."""


@dataclass(frozen=True, eq=False)
class RandomQuestion:
    """Counts in all groups, and sums and averages of one column where one has numbers."""

    axes: tuple[QuestionAxis, ...]
    columns: int
    """How many columns select."""
    of_people: bool
    """Whether its values are those of people, frequent ones more often, or any of the domain."""

    @property
    def groups(self) -> int:
        """How many groups it has."""
        return math.prod(int(axis.group.max()) + 1 for axis in self.axes)

    def folded(self, names: Sequence[str]) -> tuple[Ints, Floats]:
        """The group's number and what a row adds, for all cells of these columns together."""
        group, number, stride = np.zeros(1, np.int64), np.ones(1), 1
        for axis in self.axes:
            if axis.name in names:
                one = np.ones(len(axis.group)) if axis.number is None else axis.number
                group = (group[:, None] + stride * axis.group).ravel()
                number = (number[:, None] * one).ravel()
            stride *= int(axis.group.max()) + 1
        return group, number


class RandomQuestions:
    """Draws questions about a table."""

    def __init__(
        self, figures: ClassFigures, codes: Mapping[str, Codes], rng: np.random.Generator
    ) -> None:
        self.figures, self.codes, self.rng = figures, codes, rng
        self.of_people = False
        self.ends = None if figures.weights is None else np.cumsum(figures.weights)
        schema = figures.schema
        self.names = [name for name in schema.names if schema[name].size <= MOST_DOMAIN]

    def draw(self) -> RandomQuestion:
        """One question: one to four columns that select, often a number to add up."""
        rng = self.rng
        self.of_people = bool(rng.random() < 0.6)
        count = min(int(rng.integers(1, 5)), len(self.names))
        chosen = set(rng.choice(self.names, count, replace=False).tolist())
        value = str(rng.choice(self.names)) if rng.random() < 0.5 else ""
        axes = [self._axis(name, name in chosen, name == value)
                for name in self.names if name in chosen or name == value]  # fmt: skip
        return RandomQuestion(tuple(axes), count, self.of_people)

    def _axis(self, name: str, selects: bool, adds: bool) -> QuestionAxis:
        size = self.figures.schema[name].size
        group = self._parts(name) if selects else np.zeros(size, np.int64)
        number = self._numbers(name) if adds else np.ones(size)
        _, first, cell_of = np.unique(
            np.stack([group.astype(np.float64), number]), axis=1, return_index=True,
            return_inverse=True,
        )  # fmt: skip
        _, group = np.unique(group[first], return_inverse=True)
        cells = cell_of.reshape(-1).astype(np.int64)
        return QuestionAxis(name, cells, group.astype(np.int64), number[first] if adds else None)

    def _parts(self, name: str) -> Ints:
        """The values of a column in parts: each alone, ranges, or a set and the rest."""
        rng, size = self.rng, self.figures.schema[name].size
        found, way = np.zeros(size, np.int64), int(rng.integers(4))
        if size == 1:
            return found
        if way == 0 and size <= 12:
            return np.arange(size)
        number = 1 if way == 3 else int(rng.integers(1, 4 if way < 2 else 7))
        some = self._values(name, number)
        if way >= 2:
            found[some] = 1
            return found
        box = self.figures.boxes.get(name)
        order = np.arange(size) if box is None else box.order
        place = np.empty(size, np.int64)
        place[order] = np.arange(size)
        cuts = np.unique(np.concatenate([place[some], place[some] + 1]))
        return np.searchsorted(cuts[rng.random(len(cuts)) < 0.6], place, side="right")

    def _values(self, name: str, number: int) -> Ints:
        """Values that people have, or any of the domain."""
        if self.of_people:
            rows = self.rng.integers(0, self.figures.rows, number)
            if self.ends is not None:
                rows = np.searchsorted(self.ends, rows, side="right")
            return np.unique(self.codes[name][rows]).astype(np.int64)
        return np.unique(self.rng.integers(0, self.figures.schema[name].size, number))

    def _numbers(self, name: str) -> Floats:
        """Numbers of a column's values, in bins where they are many; else 1 for some of them."""
        size = self.figures.schema[name].size
        numbers = column_numbers(self.figures.schema, name)
        if numbers is None or self.rng.random() < 0.3:
            return (self.rng.random(size) < 0.5).astype(np.float64)
        if size <= BINS:
            return numbers
        bins = np.arange(size) * BINS // size
        return np.asarray((np.bincount(bins, numbers) / np.bincount(bins))[bins])


def column_numbers(schema: Schema, name: str) -> Floats | None:
    """The values of a column as numbers, 0 for NULL; none where they are words or dates."""
    attribute = schema[name]
    if attribute.kind not in ("integer", "numeric"):
        return None
    values = pc.cast(values_at(attribute, np.arange(attribute.size)), pa.float64(), safe=False)
    return np.asarray(numpy_array(values, 0.0), np.float64)


# ----------------------------------------------------------------------
# what classes answer, beside the truth


Errors = npt.NDArray[np.float64]
"""A line for each answer, with the columns below."""
FIELDS = ("kind", "columns", "of_people", "rows", "variance", "size", "lean", "plain", "fitted")
COUNT, SUM, AVERAGE = range(3)


def cell_query(
    question: RandomQuestion,
    figures: ClassFigures,
    codes: Mapping[str, Codes],
    likely: Mapping[str, Floats] | None,
) -> CellQuery:
    """The question on cells: a count, and the sum of its numbers."""
    shown = [axis for axis in question.axes if axis.name in figures.known]
    open_ = [axis for axis in question.axes if axis.name not in figures.known]
    lines, rows = np.unique(flat(shown, codes, len(figures.of_row)), return_inverse=True)
    columns: Ints | slice = slice(None)
    records, counted, weights = np.zeros(0, np.int64), [], []
    if figures.hidden is not None:
        cells = flat(open_, figures.hidden.codes, len(figures.hidden.rows))
        columns, records = np.unique(cells, return_inverse=True)
    else:
        for axis in open_:
            likely_ = None if likely is None else likely[axis.name]
            inside, weight = spans(
                ClassAxis(axis.name, axis.cell_of, np.arange(len(axis.group))),
                figures.boxes[axis.name],
                likely_,
            )
            counted.append(inside)
            weights.append(weight)
    (group, number), (more, factor) = (
        question.folded([axis.name for axis in part]) for part in (shown, open_)
    )
    groups = group[lines][:, None] + more[columns][None, :]
    added = number[lines][:, None] * factor[columns][None, :]
    keys = tuple((place,) for place in range(question.groups))
    listed = ListedGroups(keys, (), len(keys), complete=True)
    return CellQuery((), (np.ones(groups.shape), added), groups, listed, rows.astype(np.int64),
                     tuple(counted), tuple(weights), records.astype(np.int64))  # fmt: skip


def flat(axes: Sequence[QuestionAxis], codes: Mapping[str, Codes], count: int
         ) -> Ints:  # fmt: skip
    """The combined cell of every row, or record."""
    found = np.zeros(count, np.int64)
    for axis in axes:
        found = found * len(axis.group) + axis.cell_of[codes[axis.name]]
    return found


def true_totals(
    question: RandomQuestion, codes: Mapping[str, Codes], weights: Ints | None
) -> tuple[Floats, Floats]:
    """The true counts and sums of all groups."""
    group, added = question.folded([axis.name for axis in question.axes])
    cell = flat(question.axes, codes, len(next(iter(codes.values()))))
    # Rows of a cell are counted first: so sums do not depend on whether rows are held one by one.
    rows = np.bincount(cell, weights, len(group)).astype(np.float64)
    count = question.groups
    return (
        np.asarray(np.bincount(group, rows, count)),
        np.asarray(np.bincount(group, rows * added, count)),
    )


def compared(
    question: RandomQuestion, figures: ClassFigures, codes: Mapping[str, Codes], *, fitted: bool
) -> list[Errors]:
    """Errors of counts, sums and averages in all groups, with what they are measured by."""
    query = cell_query(question, figures, codes, None)
    if query.number.size > MOST_CELLS or figures.classes * query.number.shape[1] > MOST_CELLS:
        return []
    found = law(query, figures).moments([(0, 0), (0, 1), (1, 1)])
    means = [found.means]
    if fitted:
        means.append(_fitted_means(question, query, figures, codes))
    truth = np.stack(true_totals(question, codes, figures.weights), axis=1)
    kinds = [(COUNT, np.array([1.0, 0.0]))]
    if any(axis.number is not None for axis in question.axes):
        kinds += [(SUM, np.array([0.0, 1.0])), (AVERAGE, np.zeros(2))]
    return [_errors_of(kind, form, question, found, means, truth) for kind, form in kinds]


def law(query: CellQuery, figures: ClassFigures) -> ClassBoxes | Buckets:
    """Sums over rows of classes under the even spread."""
    return Buckets(query, figures) if figures.hidden is not None else ClassBoxes(query, figures)


def _fitted_means(
    question: RandomQuestion, query: CellQuery, figures: ClassFigures, codes: Mapping[str, Codes]
) -> Floats:
    if figures.hidden is not None:
        return Buckets(query, figures, fitted_buckets(figures)).moments([]).means
    likely = cell_query(question, figures, codes, fitted_boxes(figures))
    return ClassBoxes(likely, figures).moments([]).means


@np.errstate(all="ignore")
def _errors_of(
    kind: int,
    form: Floats,
    question: RandomQuestion,
    found: Moments,
    means: Sequence[Floats],
    truth: Floats,
) -> Errors:
    def slopes(of: Floats) -> Floats:
        """The linear form whose error counts; of an average, what is added less the average."""
        if kind != AVERAGE:
            return np.broadcast_to(form, of.shape)
        return np.stack([-of[:, 1] / of[:, 0], np.ones(len(of))], axis=1)

    slope = slopes(found.means)
    variance = np.maximum(quadratic(slope, found.covariances), 0.0)
    rows = found.rows[:, 1] if kind == SUM else found.rows[:, 0]
    size = typical_size(quadratic(slope, found.squares), rows)
    lean = leaning((slope * found.means).sum(axis=1), rows, size)
    off = [np.abs((slopes(mean) * (truth - mean)).sum(axis=1)) for mean in means]
    off = [*off, off[0]][:2]
    about = [np.full(len(rows), float(x)) for x in (kind, question.columns, question.of_people)]
    table = np.stack([*about, rows, variance, size, lean, *off], axis=1)
    return np.asarray(
        table[(variance > 0) & (size > 0) & (rows > 0) & np.isfinite(table).all(axis=1)]
    )


def quadratic(slope: Floats, pairs: Mapping[tuple[int, int], Floats]) -> Floats:
    """Σ s_i·s_j·pair_ij of two terms."""
    first, second = slope[:, 0], slope[:, 1]
    return np.asarray(
        first**2 * pairs[0, 0] + 2 * first * second * pairs[0, 1] + second**2 * pairs[1, 1]
    )


# ----------------------------------------------------------------------
# the model that covers them


LEVEL = 0.97
"""Of answers that are covered in each stratum; more than 0.95, as those of a question are alike."""
FEWEST = 50
"""Answers of a stratum that counts."""
SHARES = (0.0, *np.logspace(-3, 3, 37).tolist())
WORK = 3e6
"""Rows times questions."""
LEAST_QUESTIONS, MOST_QUESTIONS = 60, 240
MOST_FITTED_ROWS = 200_000
"""Beyond which the fitted model is not measured: it would take too long."""


def measured(figures: ClassFigures, codes: Mapping[str, Codes], key: Key) -> ClassErrorModel | None:
    """The error model of these classes; None where too little is open to measure it.

    `codes` are the true values of the rows, in the order of the classes.
    """
    words = key.stream("error model").words(4)
    rng = np.random.default_rng(words.tolist())
    fitted = figures.rows <= MOST_FITTED_ROWS
    if fitted:
        try:
            fitted_buckets(figures) if figures.hidden is not None else fitted_boxes(figures)
        except QueryError:  # too many pairs: whoever asks for this method is refused as well
            fitted = False
    number = int(min(MOST_QUESTIONS, max(LEAST_QUESTIONS, WORK // max(1, figures.rows))))
    questions, found = RandomQuestions(figures, codes, rng), list[Errors]()
    if not questions.names:
        return None
    for _ in range(number):
        question = questions.draw()
        if question.groups <= MOST_GROUPS:
            for errors in compared(question, figures, codes, fitted=fitted):
                found.append(errors[rng.permutation(len(errors))[:TAKEN]])
    return fitting_model(np.concatenate([np.zeros((0, len(FIELDS))), *found]), fitted=fitted)


def fitting_model(errors: Errors, *, fitted: bool) -> ClassErrorModel | None:
    """The least wide model that covers the errors in every stratum."""
    if len(errors) < FEWEST:
        return None
    of = dict(zip(FIELDS, errors.T, strict=True))
    widths = []
    for share in SHARES:
        form = ClassErrorModel(spread=1.0, share=share, fitted=None)
        error = standard_error(form, of["variance"], of["size"], of["lean"], fitted=False)
        factor = covering(of["plain"], error, of)
        width = np.log(reach(factor * error + 1e-12, of["size"], 0.05) / of["size"]).mean()
        widths.append((float(width), factor, share))
    _, factor, share = min(widths)
    model = ClassErrorModel(
        spread=rounded_up(factor), share=rounded_up(factor * share), fitted=None
    )
    if not fitted:
        return model
    error = standard_error(model, of["variance"], of["size"], of["lean"], fitted=False)
    if not (error > 0).all():
        return model
    return replace_fitted(model, rounded_up(covering(of["fitted"], error, of)))


def replace_fitted(model: ClassErrorModel, fitted: float) -> ClassErrorModel:
    """The same model with the number of the fitted method."""
    return ClassErrorModel(spread=model.spread, share=model.share, fitted=fitted)


def covering(off: Floats, error: Floats, of: Mapping[str, Floats]) -> float:
    """The least multiple of these standard errors that covers enough in every stratum."""
    beyond = np.maximum(off - of["size"] * math.log(2 / 0.05) / 3, 0.0) / (USUAL * error)
    return max(float(np.quantile(beyond[part], LEVEL, method="higher")) for part in strata(of))


def strata(of: Mapping[str, Floats]) -> list[npt.NDArray[np.bool_]]:
    """All answers, and those of each size, number of columns and kind, where there are many."""
    size = np.digitize(of["rows"], [3, 30, 300])
    parts = [np.ones(len(size), np.bool_), *(size == place for place in range(4))]
    parts += [of["columns"] == number for number in range(1, 5)]
    parts += [of["kind"] == kind for kind in (COUNT, SUM, AVERAGE)]
    parts += [of["of_people"] == way for way in (0, 1)]
    return [part for part in parts if part.sum() >= FEWEST]


def rounded_up(number: float) -> float:
    """Two digits, and at most what a manifest may say."""
    if number <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return min(float(f"{math.ceil(number / unit - 1e-9) * unit:.2g}"), MOST_ERROR)
