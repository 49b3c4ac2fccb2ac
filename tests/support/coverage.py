"""How often intervals cover, and how wide they are: releases × questions on real tables.

The intervals of one release share its noise, so releases are the units that are independent: a
share has the standard error of a ratio of sums over releases.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import NormalDist
from typing import Any, Literal

import duckdb
import numpy as np
import pandas as pd

from voile.arrays import Ints
from voile.errors import QueryError
from voile.estimate import Answer
from voile.kinds.counts.answering import student_quantile

Statistic = Literal["count", "sum", "average", "ratio", "quantile", "deviation", "variance"]
LEVELS = (0.5, 0.8, 0.95)
LARGE = 20.0
"""Standard errors that the count behind an average holds, from which on the group is large."""
SIZES = (0, 1, 6, 21, 101, 501, 2001)
"""Where the classes of true counts begin."""


# ----------------------------------------------------------------------
# questions


@dataclass(frozen=True)
class Question:
    """Statistics of the same rows, with the number of rows behind them, for every group."""

    selects: tuple[tuple[Statistic, str], ...]
    groups: tuple[str, ...] = ()
    where: str = ""
    conditions: int = 0
    """Columns that the condition reads."""

    @property
    def columns(self) -> int:
        """How many columns select the rows."""
        return len(self.groups) + self.conditions

    @property
    def sql(self) -> str:
        """The query; its table is called t."""
        by = f" group by {', '.join(self.groups)}" if self.groups else ""
        where = f" where {self.where}" if self.where else ""
        named = [f"{select} as x{place}" for place, (_, select) in enumerate(self.selects)]
        return f"select {', '.join((*self.groups, *named, 'count(*) as n'))} from t{where}{by}"

    @property
    def apart(self) -> list[Question]:
        """Each statistic on its own."""
        return [replace(self, selects=(one,)) for one in self.selects]


def questions(
    groups: Sequence[str], values: Mapping[str, float], columns: int = 2
) -> list[Question]:
    """Every statistic by up to so many columns; counts of up to one more."""
    found = []
    for size in range(columns + 2):
        for some in combinations(groups, size):
            if size:
                found.append(Question((("count", "count(*)"),), some))
            if size <= columns:
                found += [Question(of_value(v, values[v]), some) for v in values]
    return found


def of_value(value: str, middle: float) -> tuple[tuple[Statistic, str], ...]:
    """Every statistic of one column of numbers; its ratio is of those above the middle."""
    return (
        ("sum", f"sum({value})"),
        ("average", f"avg({value})"),
        ("ratio", f"1.0 * count(*) filter (where {value} > {middle!r}) / count(*)"),
        ("quantile", f"median({value})"),
        ("deviation", f"stddev({value})"),
        ("variance", f"var_samp({value})"),
    )


def fresh(
    frame: pd.DataFrame,
    groups: Sequence[str],
    values: Mapping[str, float],
    number: int,
    rng: np.random.Generator,
) -> list[Question]:
    """All statistics under random conditions on one to three columns, some of them in groups."""
    found = []
    every = [*groups, *values]
    for _ in range(number):
        value = str(rng.choice(list(values)))
        names = [str(name) for name in rng.permutation(every)]
        chosen = names[: int(rng.integers(1, min(4, len(every) + 1)))]
        by = tuple(name for name in chosen if name in groups and rng.random() < 0.5)
        conditions = [condition(frame, name, rng) for name in chosen if name not in by]
        selects: tuple[tuple[Statistic, str], ...] = (("count", "count(*)"),)
        found.append(
            Question((*selects, *of_value(value, values[value])), by, " and ".join(conditions),
                     len(conditions))
        )  # fmt: skip
    return found


def condition(frame: pd.DataFrame, name: str, rng: np.random.Generator) -> str:
    """A condition on one column: a range between values of two people, or a set of values."""
    some = frame[name].iloc[rng.integers(0, len(frame), int(rng.integers(1, 5)))].tolist()
    if isinstance(some[0], str):
        return f"{name} in ({', '.join(repr(one) for one in sorted(set(some)))})"
    low, high = min(some), max(some)
    return f"{name} >= {low!r}" if len(some) == 1 else f"{name} between {low!r} and {high!r}"


# ----------------------------------------------------------------------
# tallies


@dataclass
class Tally:
    """What was counted of one kind of interval at one confidence, release by release."""

    releases: dict[Any, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))
    """Of each release, intervals that held the truth, that lay above it, and below."""
    widths: list[float] = field(default_factory=list)
    """Of each bounded interval, in units of the normal one from its standard error."""

    @property
    def counts(self) -> Ints:
        """(releases, 3)."""
        return np.array(list(self.releases.values()), np.int64).reshape(-1, 3)

    @property
    def total(self) -> int:
        """How many intervals were tried."""
        return int(self.counts.sum())

    @property
    def share(self) -> float:
        """The share of them that held the truth."""
        return float(self.counts[:, 0].sum()) / max(1, self.total)

    @property
    def low(self) -> float:
        """The share of intervals that lay above the truth."""
        return float(self.counts[:, 1].sum()) / max(1, self.total)

    @property
    def width(self) -> float:
        """The median width."""
        return float(np.median(self.widths)) if self.widths else math.nan

    @property
    def design_effect(self) -> float:
        """The variance of the share, beside that of as many independent intervals."""
        alone = self.share * (1 - self.share) / max(1, self.total)
        return self.variance / alone if alone else math.nan

    @property
    def variance(self) -> float:
        """Of the share, with releases as the units; NaN where there is one only."""
        counts = self.counts
        if len(counts) < 2:
            return math.nan
        off = counts[:, 0] - self.share * counts.sum(axis=1)
        return float(len(counts) / (len(counts) - 1) * (off**2).sum() / self.total**2)

    def at_most(self, miss: float) -> float:
        """What the true share is at most, except with probability `miss`.

        The larger of two bounds: Student's over releases, and the exact binomial one, as if all
        intervals were independent (few releases may agree by chance).
        """
        alone = binomial_upper(int(self.counts[:, 0].sum()), self.total, miss)
        if len(self.releases) < 2:
            return alone
        over = student_quantile(len(self.releases) - 1, miss) * math.sqrt(self.variance)
        return max(alone, min(1.0, self.share + over))

    def add(self, release: Any, low: float, high: float, truth: float, usual: float) -> None:
        """One more interval."""
        rounding = 1e-9 * max(1.0, abs(truth))
        place = 1 if low - rounding > truth else 2 if high + rounding < truth else 0
        self.releases[release][place] += 1
        if usual > 0 and math.isfinite(high - low):
            self.widths.append((high - low) / usual)


def binomial_upper(covered: int, total: int, miss: float) -> float:
    """Clopper and Pearson's upper bound: the chance at which so few are covered with `miss`."""
    low, high = covered / max(1, total), 1.0
    if covered == total:
        return 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(covered, total, middle) > miss else (low, middle)
    return high


DESIGN = 4.0
"""The variance of a share, beside that of independent intervals: the most that was measured."""


def seldom(tally: Tally, coverage: float, alarm: float) -> bool:
    """Whether as few are covered with a chance of less than `alarm` where `coverage` holds."""
    total = int(tally.total / DESIGN)
    missed = int((tally.total - tally.counts[:, 0].sum()) / DESIGN)
    return below(total - missed, total, coverage) < alarm


def below(covered: int, total: int, chance: float) -> float:
    """Pr[Binomial(total, chance) ≤ covered]."""
    missed = np.arange(total - covered, total + 1, dtype=np.float64)
    logs = (
        math.lgamma(total + 1)
        - np.array([math.lgamma(m + 1) + math.lgamma(total - m + 1) for m in missed])
        + missed * math.log(max(1e-300, 1 - chance))
        + (total - missed) * math.log(chance)
    )
    return float(np.exp(logs).sum())


Key = tuple[str, str, float]
"""A statistic, which of its intervals, the confidence."""


def answered(
    release: Callable[[str], Answer], question: Question
) -> Iterator[tuple[Question, Answer]]:
    """The answer; where the release refuses it, those to its parts, without what is refused."""
    try:
        yield question, release(question.sql)
    except QueryError:
        for part in question.apart if len(question.selects) > 1 else ():
            yield from answered(release, part)


class Coverage:
    """Tallies of all statistics over the releases of one table."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.tallies: dict[Key, Tally] = defaultdict(Tally)
        self._releases = 0
        self._about(frame)

    def _about(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        self._connection = duckdb.connect()
        self._connection.register("t", frame)
        self._truths: dict[str, dict[tuple[Any, ...], tuple[Any, ...]]] = {}

    def truth(self, question: Question) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """The statistics and the rows of every group that has any."""
        if question.sql not in self._truths:
            rows = self._connection.execute(question.sql).fetchall()
            size = len(question.groups)
            self._truths[question.sql] = {tuple(row[:size]): tuple(row[size:]) for row in rows}
        return self._truths[question.sql]

    def add(
        self,
        release: Callable[[str], Answer],
        asked: Iterable[Question],
        levels: Sequence[float] = LEVELS,
        frame: pd.DataFrame | None = None,
    ) -> None:
        """Ask one release these questions; `frame` is its table, where it has one of its own."""
        if frame is not None and frame is not self._frame:
            self._about(frame)
        for question in asked:
            for one, answer in answered(release, question):
                truth = self.truth(one)
                for row in answer.rows:
                    key = tuple(row[name] for name in one.groups)
                    self._add(one, row, truth.get(key), levels)
        self._releases += 1

    def _add(
        self,
        question: Question,
        row: dict[str, Any],
        truth: tuple[Any, ...] | None,
        levels: Sequence[float],
    ) -> None:
        rows, count = row["n"], 0 if truth is None else truth[-1]
        large = count >= LARGE * rows.stderr if math.isfinite(rows.stderr) else False
        size = f"{[s for s in SIZES if s <= count][-1]}+"
        parts = ["all", size, f"{question.columns} columns", *(["large"] if large else [])]
        for place, (statistic, _) in enumerate(question.selects):
            found = row[f"x{place}"]
            value = truth[place] if truth else 0.0 if statistic in ("count", "sum") else None
            if value is None or found.stderr == 0:
                continue  # it is not there, or it is known
            for level in levels:
                low, high = found.interval(level)
                if math.isnan(low) or math.isnan(high):
                    continue  # nothing was stated
                usual = 2 * NormalDist().inv_cdf((1 + level) / 2) * found.stderr
                for name in parts:
                    tally = self.tallies[statistic, name, level]
                    tally.add(self._releases, low, high, float(value), usual)

    def lines(self, level: float = 0.95) -> Iterator[str]:
        """For reading."""
        for (statistic, part, at), tally in sorted(self.tallies.items(), key=str):
            if at == level:
                yield (
                    f"{statistic:10s}{part:>10s} {at} n={tally.total:6d} covers {tally.share:.3f} "
                    f"at most {tally.at_most(0.01):.3f} above the truth {tally.low:.3f} "
                    f"width {tally.width:.2f} design {tally.design_effect:.1f}"
                )
