"""Formulas of totals that the release leaves open: standard errors, intervals, certain bounds.

Under the assumption about what is open, a total is a sum of independent rows (or, in a bucket, of
a random pairing), which gives its mean and variance. Real errors are larger: the release's error
model (errors.py) turns the variance into a standard error and an interval, cut to the certain
bounds, which hold without it. Without an error model no interval is stated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from voile.answering.arithmetic import Affine, as_ratio
from voile.answering.certain import bounded, combined
from voile.answering.columns import Certain, EstimatedColumn, Flags, Formulas
from voile.answering.quantiles import (
    check_values,
    estimated_quantile,
    first_above,
    first_where,
    point,
    spanned,
    unknown_quantiles,
)
from voile.arrays import Floats
from voile.kinds.classes.cells import (
    CellQuery,
    Covariances,
    Cutting,
    Extremes,
    Moments,
    OpenSums,
)
from voile.kinds.classes.errors import ASSUMED, leaning, reach, standard_error, typical_size
from voile.kinds.classes.manifest import ClassErrorModel
from voile.query.aggregate import Call, Constant, Formula, Quantile
from voile.query.predicate import Term

# ----------------------------------------------------------------------
# the lowest and highest ratio of two totals over all data that agree with a release
# A ratio T/B is at most r where T − r·B ≤ 0 for all data. Where the most of T − r·B is known with
# the data that reach it, Dinkelbach's steps r ← T/B lead to the highest ratio; where B may be 0
# too, if T is 0 then. Where only a bound of the most is known, halving finds the least r that it
# proves.


MOST_STEPS = 50
SETTLED = 1e-12
HALVINGS = 24
"""Of which the last is still far above what weights that count as the same differ by."""
RATIO_ROUNDING = 1e-8


@dataclass(frozen=True, eq=False)
class RatioForm:
    """A constant and a multiple of every total, (groups, terms)."""

    slope: Floats
    constant: float

    def at(self, terms: Floats) -> Floats:
        """Its value for each group, given the totals."""
        return np.asarray((self.slope * terms).sum(axis=1) + self.constant)

    def less(self, ratio: Floats, other: RatioForm) -> tuple[Floats, Floats]:
        """The slope and the constants of this form less a multiple of another."""
        return (
            self.slope - ratio[:, None] * other.slope,
            self.constant - ratio * other.constant,
        )

    def negated(self) -> RatioForm:
        """The same form with the opposite sign."""
        return RatioForm(-self.slope, -self.constant)


@np.errstate(all="ignore")
def certain_ratio(law: OpenSums, top: RatioForm, bottom: RatioForm) -> Certain:
    """Unbounded where nothing is known."""
    below = law.extremes(bottom.slope, terms=True)
    least, most = below.low + bottom.constant, below.high + bottom.constant
    low, high = np.full(len(least), -np.inf), np.full(len(least), np.inf)
    nothing = np.zeros(len(least), np.bool_)
    if not (top.constant or bottom.constant):
        low, high = law.row_ratios(top.slope, bottom.slope)
        nothing = most <= 0
    usable = (least > 0) | (~nothing & np.isfinite(low) & np.isfinite(high))
    first = top.at(below.high_terms) / bottom.at(below.high_terms)
    ends = []
    for form, sign, end in ((top.negated(), -1.0, low), (top, 1.0, high)):
        found, reached = _highest(law, form, bottom, sign * first, usable)
        proved = _proved(law, form, bottom, (sign * (high if sign < 0 else low), sign * end),
                         usable & ~reached)  # fmt: skip
        ends.append((sign * np.where(reached, found, proved) + 0.0, reached))  # no −0
    (low, lowest), (high, highest) = ends
    known = nothing | (lowest & highest) | (low == high)
    return Certain(np.where(nothing, np.nan, low), np.where(nothing, np.nan, high),
                   bool(known.all()))  # fmt: skip


def _highest(
    law: OpenSums, top: RatioForm, bottom: RatioForm, ratio: Floats, usable: Flags
) -> tuple[Floats, Flags]:
    """The highest top/bottom, from one that is possible, and in which groups it was found."""
    reached = usable & np.isfinite(ratio)
    for _ in range(MOST_STEPS if reached.any() else 0):
        slope, _constant = top.less(np.where(reached, ratio, 0.0), bottom)
        found = law.extremes(np.where(reached[:, None], slope, 0.0), terms=True)
        reached &= ~np.isnan(found.high_terms).any(axis=1)
        above, below = top.at(found.high_terms), bottom.at(found.high_terms)
        better = np.where(reached & (below > 0), above / below, ratio)
        settled = better <= ratio + SETTLED * np.abs(ratio)
        ratio = np.where(reached, np.fmax(ratio, better), ratio)
        if (settled | ~reached).all():
            break
    return ratio, reached


def _proved(
    law: OpenSums, top: RatioForm, bottom: RatioForm, ends: tuple[Floats, Floats], groups: Flags
) -> Floats:
    """The least number between the ends that is proved to be passed by no ratio."""
    low, high = ends
    wide = RATIO_ROUNDING * (high - low)
    groups = groups & np.isfinite(wide)
    for _ in range(HALVINGS if groups.any() else 0):
        middle = np.where(groups, (low + high) / 2, 0.0)
        slope, constant = top.less(middle, bottom)
        most = law.extremes(np.where(groups[:, None], slope, 0.0)).high + constant
        holds = most <= SETTLED * np.abs(slope).sum(axis=1)
        high = np.where(groups & holds, middle, high)
        low = np.where(groups & ~holds, middle, low)
    return np.where(groups, np.minimum(high + wide, ends[1]), high)


# ----------------------------------------------------------------------
# formulas of totals that the release leaves open: standard errors, intervals, certain bounds


COVERS = (
    "the statistic of the rows before they were grouped, for about this share of questions: errors "
    "were measured on random questions when the release was made; the certain bounds hold always"
)
APPROXIMATES = (
    "the statistic of the rows before they were grouped, for about this share of questions (delta "
    "method; good where the counts behind it are large): errors were measured on random questions "
    "when the release was made; the certain bounds hold always"
)
UNSTATED = (
    "nothing: no interval is stated; the statistic of the rows before they were grouped lies "
    "within the certain bounds always"
)


@dataclass(frozen=True)
class ClassEstimator(Formulas):
    """Means of totals, and of formulas made of them."""

    law: OpenSums
    moments: Moments
    about: Callable[[str], str] = str
    """Says which rows an interval is about."""
    error_model: ClassErrorModel | None = None
    is_fitted: bool = False
    """Whether estimates are those of the fitted model."""
    kept: dict[bytes, Extremes] = field(default_factory=dict, repr=False)
    known: dict[Formula, Certain] = field(default_factory=dict, repr=False)

    @property
    def order(self) -> tuple[Term, ...]:
        """The terms, in the order of the totals."""
        return self.law.query.terms

    @property
    def estimates(self) -> Floats:
        """The expected totals, (groups, terms)."""
        return self.moments.means

    @property
    def covers(self) -> str:
        """What an interval covers."""
        return self.about(UNSTATED if self.error_model is None else COVERS)

    @property
    def approximates(self) -> str:
        """What an interval by the delta method covers."""
        return self.about(UNSTATED if self.error_model is None else APPROXIMATES)

    @property
    def is_exact(self) -> bool:
        """Whether no total has a variance."""
        return not any(c.any() for c in self.moments.covariances.values())

    # ------------------------------------------------------------------ by the error model

    @np.errstate(all="ignore")
    def stderr(self, formula: Formula) -> Floats:
        """The standard error of a formula, for each group."""
        return self._error(*self.slopes(formula))[0]

    @np.errstate(all="ignore")
    def deviation(self, used: tuple[Term, ...], slope: Floats, miss: float) -> Floats:
        """How far a sum of totals may be from its mean, except with probability `miss`."""
        return reach(*self._error(used, slope), miss)

    def _error(self, used: tuple[Term, ...], slope: Floats) -> tuple[Floats, Floats]:
        """The standard error of Σ slope·total, and what a row typically adds to it."""
        places = [self.order.index(term) for term in used]
        variance = np.maximum(self._form_of(self.moments.covariances, places, slope), 0.0)
        rows = self.moments.rows[:, places].max(axis=1, initial=0.0)
        size = typical_size(self._form_of(self.moments.squares, places, slope), rows)
        model = self.error_model or ASSUMED
        mean = (slope * self.moments.means[:, places]).sum(axis=1)
        lean = leaning(mean, rows, size)
        return standard_error(model, variance, size, lean, fitted=self.is_fitted), size

    @staticmethod
    def _form_of(pairs: Covariances, places: list[int], slope: Floats) -> Floats:
        """Σ s_i·s_j·pair_ij."""
        found = np.zeros(len(slope))
        for i, a in enumerate(places):
            for j, b in enumerate(places):
                both = pairs[a, b] if (a, b) in pairs else pairs[b, a]
                found += slope[:, i] * slope[:, j] * both
        return found

    def surely_nothing(self, used: tuple[Term, ...], slope: Floats) -> Flags:
        """The groups in which the sum is 0 for all data that agree with the release."""
        found = self.extremes(self.spread_out(used, slope))
        return np.asarray((found.low >= 0) & (found.high <= 0))

    # ------------------------------------------------------------------ whatever holds

    def extremes(self, slope: Floats) -> Extremes:
        """The least and the most of Σ slope·total, computed once for each slope."""
        key = slope.tobytes()
        if key not in self.kept:
            self.kept[key] = self.law.extremes(slope)
        return self.kept[key]

    def _form(self, form: Affine) -> RatioForm:
        shape = len(self.estimates), len(self.order)
        return RatioForm(np.broadcast_to(form.row(self.order), shape).copy(), form.constant)

    def certain(self, formula: Formula) -> Certain:
        """Beyond which no data lie that agree with the release."""
        if formula not in self.known:
            self.known[formula] = self._certain(formula)
        return self.known[formula]

    @np.errstate(all="ignore")
    def _certain(self, formula: Formula) -> Certain:
        if isinstance(formula, Call) and formula.name == "round":
            assert isinstance(formula.args[1], Constant)  # noqa: S101  (the parser sees to it)
            return self.certain(formula.args[0]).rounded(formula.args[1].value)
        ratio = as_ratio(formula)
        if ratio is not None and ratio.bottom.is_constant:
            form = ratio.top.times(1 / ratio.bottom.constant)
            ends = self.extremes(self._form(form).slope)
            return Certain(ends.low + form.constant, ends.high + form.constant, ends.tight)
        found: Certain | None = None
        if ratio is not None:
            found = certain_ratio(self.law, self._form(ratio.top), self._form(ratio.bottom))
            if not np.isinf([found.low, found.high]).any():
                return found
        assert isinstance(formula, Call)  # noqa: S101  (totals and numbers are ratios)
        parts = {arg: self.certain(arg) for arg in formula.args}
        rest = combined(formula, parts, len(self.estimates))
        return rest if found is None else found.cut_to(rest)

    def column(self, formula: Formula) -> EstimatedColumn:
        """The estimates of a formula, cut to its certain bounds."""
        found = bounded(super().column(formula), self.certain(formula))
        return replace(found, stated=self.error_model is not None)


# ----------------------------------------------------------------------
# quantiles of what a release leaves open
# As in voile.answering.quantiles, for each value v Z(v) = Σ (1[x ≤ v] − share) is a sum over rows.
# Here its extremes bound the quantile for certain.


MOST_VALUES = 1024
ROUNDING = 1e-9
Sides = tuple[Floats, Floats]


@dataclass(frozen=True)
class QuantileLaws:
    """How the sums behind a quantile are made."""

    law_of: Callable[[CellQuery], OpenSums]
    error_model: ClassErrorModel | None
    fitted: tuple[Cutting, Callable[[CellQuery], OpenSums]] | None
    """The cells and the law of the fitted model, where that gives the estimates."""


def class_quantiles(
    formula: Quantile,
    cutting: Cutting,
    laws: QuantileLaws,
    covers: str,
    answer_groups: int,
) -> EstimatedColumn:
    """The quantile of each of the first `answer_groups` groups; the last group cuts its values."""
    query, cells, folding = cutting.cell_query(answer_groups)
    at = np.asarray(folding.matrix(cells.numbers(formula.value)), np.float64)
    counted = query.payoffs[0] * np.isfinite(at)
    values = np.unique(at[(counted > 0) & (query.number >= 0)])
    count, groups = len(values), len(query.groups)
    check_values(count, MOST_VALUES, formula, "grouped rows")
    if not count:
        column = unknown_quantiles(groups, covers)
        return bounded(column, Certain(column.value, column.value))
    here = [counted * (at == value) for value in values]
    below = [counted * ((at <= value) - formula.share) for value in values]
    summed = counted * np.where(np.isfinite(at), at, 0.0)
    payoffs = [*here, *below, counted, summed]
    law = laws.law_of(query.with_payoffs(payoffs))
    found = law.moments([(count + i, count + i) for i in range(count)])
    if laws.fitted is not None:
        fitted, fitted_law = laws.fitted
        likely = fitted.cell_query(answer_groups)[0].with_payoffs(payoffs)
        found = replace(found, means=fitted_law(likely).moments([]).means)
    z = found.means[:, count : 2 * count]
    variance, square = (
        np.stack([pairs[count + i, count + i] for i in range(count)], axis=1)
        for pairs in (found.covariances, found.squares)
    )
    size = typical_size(square, found.rows[:, count : 2 * count])
    model = laws.error_model or ASSUMED
    lean = leaning(z, found.rows[:, count : 2 * count], size)
    error = standard_error(
        model, np.maximum(variance, 0.0), size, lean, fitted=laws.fitted is not None
    )
    value = np.array([point(counts, values, formula) for counts in found.means[:, :count]])
    one = np.eye(2 * count + 2)
    rows = law.extremes(np.tile(one[2 * count], (groups, 1)))
    places = Places.of(formula, rows)

    @lru_cache(8)
    def interval(confidence: float) -> tuple[Floats, Floats]:
        off = reach(error, size, 1 - confidence)
        low, high = places.lowest(z + off, values)[0], places.highest(z - off, values)[1]
        low, high = spanned(formula, low, high)
        return np.fmin(low, value), np.fmax(high, value)

    ends = [law.extremes(np.tile(one[count + i], (groups, 1))) for i in range(count)]
    least, most = np.stack([e.low for e in ends], axis=1), np.stack([e.high for e in ends], axis=1)
    single = law.row_ratios(*(np.tile(one[2 * count + i], (groups, 1)) for i in (1, 0)))
    nothing = rows.high <= 0
    low, high = (
        np.where(nothing, np.nan, np.clip(end, *single))
        for end in (
            places.mixed(places.lowest(most, values), 0.0),
            places.mixed(places.highest(least, values), 1.0),
        )
    )
    exact = rows.tight and all(end.tight for end in ends)
    apart = cutting.source.recode == "generalize"
    alone = apart & (rows.low <= 0) & (low == single[0]) & (high == single[1])
    reached = alone | ((rows.low > 0) & (places.is_one | (apart & places.is_known)))
    tight = bool((nothing | (low == high) | (exact & reached)).all())
    low, high = spanned(formula, low, high)
    column = bounded(estimated_quantile(value, interval, covers), Certain(low, high, tight))
    return replace(column, stated=laws.error_model is not None)


@dataclass(frozen=True, eq=False)
class Places:
    """Which of a group's rows, in the order of their values, a quantile lies between.

    Z(v) reaches `lower` where the row of the first place has a value of at most v, and `upper`
    where that of the second has.
    """

    lower: Floats
    upper: Floats
    share: Floats
    """Of the second value in the quantile."""
    is_known: Flags
    """Whether the number of rows is, and so the places."""
    is_one: Flags
    """Whether both places are the same."""

    @staticmethod
    def of(quantile: Quantile, rows: Extremes) -> Places:
        """Of an interpolated one, places that hold for every number of rows unless it is known."""
        zero, share = np.zeros(len(rows.low)), quantile.share
        always = np.ones(len(zero), np.bool_)
        if not quantile.interpolated:
            return Places(zero, zero, zero, ~always, always)
        known = rows.low == rows.high
        place = share * np.maximum(rows.low - 1, 0.0)
        before, after = np.floor(place + ROUNDING), np.ceil(place - ROUNDING)
        at = share * rows.low - 1
        return Places(
            lower=np.where(known, before - at, -share + 2 * ROUNDING),
            upper=np.where(known, after - at, 1 - share),
            share=np.maximum(place - before, 0.0),
            is_known=known,
            is_one=known & (before == after),
        )

    def lowest(self, z: Floats, values: Floats) -> Sides:
        """The first value of each place at which Z may be large enough."""
        return (
            first_where(z >= self.lower[:, None] - ROUNDING, values),
            first_where(z >= self.upper[:, None] - ROUNDING, values),
        )

    def highest(self, z: Floats, values: Floats) -> Sides:
        """The first value of each place from which on Z must be."""
        return (
            first_above(z < self.lower[:, None] - ROUNDING, values),
            first_above(z < self.upper[:, None] - ROUNDING, values),
        )

    def mixed(self, ends: Sides, otherwise: float) -> Floats:
        """The quantile between two values; `otherwise` is the share where it is not known."""
        first, second = ends
        share = np.where(self.is_known, self.share, otherwise)
        return np.where(first == second, first, first + (second - first) * share)
