"""The errors that a noisy view is expected to have, before it is published."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Protocol, TypeGuard

import numpy as np

from voile.answering.walk import AnswerWalk
from voile.arrays import Floats
from voile.engines import open_rows
from voile.errors import UsageError, spelled
from voile.evaluate.workload import selection_counts
from voile.files import TEMPORARY
from voile.kinds.parquet import write_part
from voile.kinds.views.alphabeta import AlphaBeta
from voile.kinds.views.answering import ViewEvidence, answer
from voile.kinds.views.estimator import ViewSource
from voile.query import DomainSums, parse
from voile.query.aggregate import Formula, Total
from voile.query.query import Query
from voile.schema import Keys, Schema, TupleIndex

MEAN_OF_ABSOLUTE = math.sqrt(2 / math.pi)
"""E|X| of a normal variable with mean 0 and variance 1."""
EXACT_BELOW = 4.0
"""Standard deviations of n_V, in rows, up to which its law is summed."""
FEWEST_POINTS = 32
POINTS_PER_DEVIATION = 50
"""Of a window that a law is summed in; what lies outside it weighs less than about 10⁻⁹."""
AT_ONCE = 2**19
"""Points of laws held in memory."""
ABOVE_MINUS_ONE = math.nextafter(-1.0, 0.0)

Coins = tuple[Floats, float]
"""How many for each count, and the chance of each."""


def expected_errors(mechanism: AlphaBeta, truth: Floats, domain: Floats) -> Floats:
    """E|estimate − truth| of counts, from Q(I) and Q(D) of each."""
    coins = coins_of(mechanism, truth, domain)
    deviation = np.sqrt(np.maximum(sum(cumulants(*coin)[0] for coin in coins), 0.0))
    found = np.zeros(len(deviation))
    large = deviation >= EXACT_BELOW
    found[large] = nearly_normal(chosen(coins, large))
    small = np.flatnonzero((deviation > 0) & ~large)
    wanted = np.maximum(FEWEST_POINTS, POINTS_PER_DEVIATION * deviation[small])
    points = 2 ** np.ceil(np.log2(wanted)).astype(np.int64)
    for size in np.unique(points):
        alike = small[points == size]
        for part in np.array_split(alike, math.ceil(len(alike) * size / AT_ONCE)):
            found[part] = summed(chosen(coins, part), int(size))
    return found / mechanism.excess


def normal_errors(mechanism: AlphaBeta, truth: Floats, domain: Floats) -> Floats:
    """What E|error| would be if errors were normal: √(2/π) standard errors."""
    return MEAN_OF_ABSOLUTE * np.sqrt(mechanism.variance(truth, domain))


def coins_of(mechanism: AlphaBeta, truth: Floats, domain: Floats) -> tuple[Coins, Coins]:
    """The coins whose sum is n_V: t of chance p give the generating function (1 + p(z−1))^t.

    With t = −n and p = −μ that is the one of geometric noise on n tuples, so the same formulas
    serve for it.
    """
    kept = (truth, mechanism.retention)
    if mechanism.form == "set":
        return kept, (domain - truth, mechanism.noise)
    return kept, (-domain, -mechanism.noise_mean)


def chosen(coins: tuple[Coins, Coins], where: np.ndarray) -> tuple[Coins, Coins]:
    """Some of the counts, with the same chances."""
    (kept, retention), (noise, chance) = coins
    return (kept[where], retention), (noise[where], chance)


def cumulants(trials: Floats, chance: float) -> tuple[Floats, Floats, Floats]:
    """The second, third and fourth of a sum of coins."""
    one = chance * (1 - chance)
    return trials * one, trials * (one * (1 - 2 * chance)), trials * (one * (1 - 6 * one))


def mean_of(coins: tuple[Coins, Coins]) -> Floats:
    """E n_V of each count."""
    (kept, retention), (noise, chance) = coins
    return kept * retention + noise * chance


def nearly_normal(coins: tuple[Coins, Coins]) -> Floats:
    """√(2/π)·σ with the first terms for skewness, for kurtosis and for counts being whole.

    docs/mathematics, section 17, has the terms, and how far off they leave it.
    """
    variance, third, fourth = map(sum, zip(*(cumulants(*coin) for coin in coins), strict=True))
    rest = np.mod(mean_of(coins), 1.0)
    shape = (third**2 / variance**3 - fourth / variance**2) / 24
    whole = (rest * (1 - rest) - 1 / 6) / (2 * variance)
    return np.asarray(MEAN_OF_ABSOLUTE * np.sqrt(variance) * np.exp(shape + whole))


def summed(coins: tuple[Coins, Coins], points: int) -> Floats:
    """E|n_V − E n_V| = 2·Σ_{k below the mean} (mean − k)·P(n_V = k), by Fourier's transform.

    The window of the law has its middle at the mean, rounded down; only its lower half is summed.
    """
    half = points // 2
    angles: Floats = 2 * math.pi / points * np.arange(half + 1, dtype=np.float64)
    mean = mean_of(coins)
    first = np.floor(mean) - half
    logs = np.outer(-1j * first, angles)
    for trials, chance in coins:
        logs += np.outer(trials, log_transform(chance, angles))
    law = np.fft.irfft(np.exp(logs.conj()), points)[:, : half + 1]
    places = first[:, None] + np.arange(half + 1)
    below = np.where(places < 0, 0.0, mean[:, None] - places)  # no count is negative
    return np.asarray(2 * np.einsum("ij,ij->i", below, law))


def log_transform(chance: float, angles: Floats) -> np.ndarray:
    """ln(1 + chance·(e^{it} − 1)), exact also where the chance is tiny or nearly 1."""
    turn = 2 * np.sin(angles / 2) ** 2
    # A fair coin has 0 at t = π, whose logarithm times no trials would be unknown.
    size = np.maximum(-2 * chance * (1 - chance) * turn, ABOVE_MINUS_ONE)
    return np.log1p(size) / 2 + 1j * np.arctan2(chance * np.sin(angles), 1 - chance * turn)


# ---- what estimates will be off by, before anything is published: computed from the private table


ORDER = 3
MOST_SELECTIONS = 5_000_000
SIZES = (0, 100, 1000)
"""Errors are listed for all selections, and for those that count at least so many."""
MEMORY = 2**30


@dataclass(frozen=True)
class ExpectedError:
    """The errors to expect of several numbers of one kind, such as a column's groups."""

    of: str
    column: str | None
    numbers: int
    mean: float | None
    largest: float | None
    """None where there is nothing to be off from, such as for an average of no rows."""
    unbounded: int = 0
    """Averages and ratios whose error exceeds the range of their values; then the others are ∞."""
    relative: float | None = None
    """The mean of errors as shares of the numbers themselves; of 0 there is no share."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        numbers = ("mean", "largest", "relative")
        return asdict(self) | {name: finite(getattr(self, name)) for name in numbers}


def mean_share(errors: Floats, numbers: Floats, weights: Floats | None = None) -> float | None:
    """The mean of errors as shares of their numbers; None where all numbers are 0."""
    some = numbers != 0
    if not some.any():
        return None
    shares = errors[some] / np.abs(numbers[some])
    return float(np.average(shares, weights=None if weights is None else weights[some]))


def finite(number: float | None) -> float | None:
    """A number as JSON has it."""
    return number if number is not None and math.isfinite(number) else None


class Workload(Protocol):
    """Questions whose errors can be foreseen."""

    @property
    def measure(self) -> str:
        """What `overall` means for it."""
        ...

    @property
    def counts(self) -> bool:
        """Whether all numbers asked for are counts."""
        ...

    def errors(self, mechanism: AlphaBeta) -> tuple[ExpectedError, ...]:
        """The errors to expect with this mechanism."""

    def overall(self, errors: Sequence[ExpectedError]) -> float:
        """The one number that stands for all; falls as the promise is weakened."""
        ...


# ---------------------------------------------------------------------- all small marginals


@dataclass(frozen=True)
class PlannedSelections:
    """Every selection of up to three attributes, each cell of every small marginal."""

    order: int
    truth: Floats
    domain: Floats
    often: Floats
    """Queries with the same count in the table and in the domain are one, counted so often."""
    counts: ClassVar[bool] = True

    @classmethod
    def of(cls, members: Keys, sizes: Sequence[int]) -> PlannedSelections:
        """The selections of a table, given by its rows' keys."""
        order = affordable_order(sizes)
        found = selection_counts(TupleIndex(sizes).decode(members), sizes, order)
        sizes_of_queries, which = np.unique(found.domain, return_inverse=True)
        above = len(members) + 1
        alike, often = np.unique(which * above + found.counts, return_counts=True)
        return cls(
            order,
            (alike % above).astype(np.float64),
            sizes_of_queries[alike // above],
            often.astype(np.float64),
        )

    @property
    def measure(self) -> str:
        """What the one number is the mean of."""
        most = "one attribute" if self.order == 1 else f"up to {self.order} attributes"
        return f"mean over all {self.often.sum():,.0f} selections of {most}"

    def errors(self, mechanism: AlphaBeta) -> tuple[ExpectedError, ...]:
        """A line for each of SIZES."""
        expected = expected_errors(mechanism, self.truth, self.domain)
        return tuple(self._line(expected, least) for least in SIZES)

    def overall(self, errors: Sequence[ExpectedError]) -> float:
        """The mean over all selections."""
        return math.nan if errors[0].mean is None else errors[0].mean

    def _line(self, expected: Floats, least: int) -> ExpectedError:
        chosen = self.truth >= least
        some = bool(chosen.any())
        return ExpectedError(
            of=f"selections that count {least:,} or more" if least else "all selections",
            column=None,
            numbers=int(self.often[chosen].sum()),
            mean=float(np.average(expected[chosen], weights=self.often[chosen])) if some else None,
            largest=float(expected[chosen].max()) if some else None,
            relative=mean_share(expected[chosen], self.truth[chosen], self.often[chosen]),
        )


def affordable_order(sizes: Sequence[int]) -> int:
    """How many attributes a selection may have so that all selections can be counted."""
    by_order = [1] + [0] * ORDER
    for size in sizes:  # elementary symmetric polynomials: Σ of the products of k sizes
        for k in range(ORDER, 0, -1):
            by_order[k] += size * by_order[k - 1]
    most = [k for k in range(1, ORDER + 1) if sum(by_order[1 : k + 1]) <= MOST_SELECTIONS]
    if not most:
        raise UsageError(
            f"the columns have {by_order[1]:,} values, too many to foresee the error of every one",
            hint=f"name the queries that matter with {spelled('on')}, such as "
            "select count(*) from t where …",
        )
    return max(most)


# ---------------------------------------------------------------------- queries in SQL


@dataclass(frozen=True)
class ForeseenMechanism:
    """A mechanism seen from before: fed with sums over the table, it tells their errors.

    What answering takes for sums over a view are here sums over the table, whose expectation in
    the view is α·Σ_I w + μ·Σ_D w. So estimates are the truth, and standard errors are exact.
    """

    mechanism: AlphaBeta

    def total(self, view: Floats, domain: Floats) -> Floats:  # noqa: ARG002
        """The sum over the table itself."""
        return view

    def variance(self, members: Floats, spread: Floats) -> Floats:
        """The variance of its estimate."""
        return self.mechanism.variance(members, spread)

    def deviation(
        self, view: Floats, domain: Floats, spread: Floats, largest: Floats, miss: float
    ) -> Floats:
        """How far the estimate may be off, for a view as it is expected."""
        return self.mechanism.deviation(self._in_view(view, domain), domain, spread, largest, miss)

    def domain_share(self, error: Floats) -> Floats:
        """What an error of the domain's sum adds to that of the estimate."""
        return self.mechanism.domain_share(error)

    def interval(
        self, seen: int, domain: float, confidence: float, rows: int | None = None
    ) -> tuple[float, float]:
        """The interval of a view as it is expected."""
        expected = round(float(self._in_view(np.float64(seen), np.float64(domain))))
        return self.mechanism.interval(expected, domain, confidence, rows)

    def _in_view(self, table: Any, domain: Any) -> Any:
        return self.mechanism.excess * table + self.mechanism.noise_mean * domain


class PlannedQuestions:
    """Queries in SQL, answered from the private table itself."""

    measure = "largest of the numbers that the queries ask for"

    def __init__(
        self, queries: Sequence[str], members: Keys, schema: Schema, rows: int | None
    ) -> None:
        """`rows` is the number of records, where the release would tell it."""
        self.queries: tuple[Query, ...] = tuple(
            parse(sql, schema, {}).checked_single("a plan") for sql in queries
        )
        # The engine reads files; this one is gone with the object.
        folder = TEMPORARY.make()
        weakref.finalize(self, TEMPORARY.remove, folder)
        file = folder / "table.parquet"
        write_part(file, schema, [members])
        view = open_rows([file], schema)
        self._source = ViewSource(
            engine=view,
            domain=DomainSums(schema, view.domain, memory=MEMORY),
            mechanism=ForeseenMechanism(AlphaBeta(1.0, 0.0)),
            rows=rows,
        )
        for query in self.queries:  # what cannot be answered is refused here, with a hint
            answer(query, self._source)

    @property
    def counts(self) -> bool:
        """Whether all numbers that the queries ask for are counts."""
        asked = [c.source for query in self.queries for c in query.columns]
        formulas = [formula for formula in asked if not isinstance(formula, int)]
        return all(map(is_count, formulas))

    def errors(self, mechanism: AlphaBeta) -> tuple[ExpectedError, ...]:
        """A line for each column of each query."""
        source = replace(self._source, mechanism=ForeseenMechanism(mechanism))
        walks = [AnswerWalk(query, ViewEvidence(query, source)) for query in self.queries]
        return tuple(line for walk in walks for line in expected_of(walk, mechanism))

    def overall(self, errors: Sequence[ExpectedError]) -> float:
        """The largest error of all."""
        return max((e.largest for e in errors if e.largest is not None), default=math.nan)


def is_count(formula: Formula) -> TypeGuard[Total]:
    """Whether a formula is a count of rows."""
    return isinstance(formula, Total) and not formula.term.values


def expected_of(walk: AnswerWalk[ViewEvidence], mechanism: AlphaBeta) -> list[ExpectedError]:
    """A line for each column that is estimated."""
    groups = walk.kept_groups()
    lines = []
    for column in walk.query.columns:
        if isinstance(column.source, int):
            continue
        values = walk.column(column.source).value  # of the table itself
        there = groups[~np.isnan(values[groups])]
        known = errors_of(walk, column.source, mechanism)[there]
        lines.append(
            ExpectedError(
                of=walk.query.sql,
                column=column.name,
                numbers=len(groups),
                mean=float(known.mean()) if len(known) else None,
                largest=float(known.max()) if len(known) else None,
                unbounded=int(np.isinf(known).sum()),
                relative=mean_share(known, values[there]),
            )
        )
    return lines


def errors_of(walk: AnswerWalk[ViewEvidence], formula: Formula, mechanism: AlphaBeta) -> Floats:
    """The expected error in every group; ∞ where it would exceed the range of the values."""
    stderr = walk.column(formula).stderr
    normal = MEAN_OF_ABSOLUTE * np.where(np.isnan(stderr), np.inf, stderr)
    if is_count(formula):
        totals = walk.evidence.totals
        term = totals.column(formula.term)
        exact = expected_errors(mechanism, totals.view[:, term], totals.domain[:, term])
        # Where Q(D) was sampled, that has a share in the error, and is nearly normal.
        return np.where(totals.domain_error[:, term] == 0, exact, normal)
    return normal
