"""How often intervals cover, and how wide they are: releases × questions on real tables."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import NormalDist
from typing import Any, Literal

import duckdb
import numpy as np
import pandas as pd

from voile.estimate import Answer

Statistic = Literal["count", "sum", "average", "ratio", "quantile", "deviation"]
LEVELS = (0.5, 0.8, 0.95)
LARGE = 20.0
"""Standard errors that the count behind an average holds, from which on the group is large."""
SIZES = (0, 1, 6, 21, 101, 501, 2001)
"""Where the classes of true counts begin."""


@dataclass(frozen=True)
class Question:
    """One statistic `x`, with the rows `n` behind it, for every group."""

    statistic: Statistic
    select: str
    groups: tuple[str, ...] = ()

    @property
    def sql(self) -> str:
        """The query; its table is called t."""
        by = f" group by {', '.join(self.groups)}" if self.groups else ""
        return (
            f"select {', '.join((*self.groups, f'{self.select} as x', 'count(*) as n'))} from t{by}"
        )


def questions(groups: Sequence[str], values: Sequence[str], columns: int = 2) -> list[Question]:
    """Every statistic by up to so many columns; counts of up to one more."""
    found = []
    for size in range(columns + 2):
        for some in combinations(groups, size):
            if size:
                found.append(Question("count", "count(*)", some))
            if size <= columns:
                found += [q for v in values if v not in some for q in of_value(v, some)]
    return found


def of_value(value: str, groups: tuple[str, ...]) -> Iterator[Question]:
    """Every statistic of one column of numbers."""
    yield Question("sum", f"sum({value})", groups)
    yield Question("average", f"avg({value})", groups)
    yield Question("ratio", f"1.0 * count(*) filter (where {value} > 1) / count(*)", groups)
    yield Question("quantile", f"median({value})", groups)
    yield Question("deviation", f"stddev({value})", groups)


@dataclass
class Tally:
    """What was counted of one kind of interval at one confidence."""

    covered: int = 0
    below: int = 0
    above: int = 0
    widths: list[float] = field(default_factory=list)
    """Of each bounded interval, in units of the normal one from its standard error."""

    @property
    def total(self) -> int:
        """How many intervals were tried."""
        return self.covered + self.below + self.above

    @property
    def share(self) -> float:
        """The share of them that held the truth."""
        return self.covered / max(1, self.total)

    @property
    def width(self) -> float:
        """The median width."""
        return float(np.median(self.widths)) if self.widths else math.nan

    def add(self, low: float, high: float, truth: float, usual: float) -> None:
        """One more interval."""
        rounding = 1e-9 * max(1.0, abs(truth))
        if low - rounding > truth:
            self.below += 1
        elif high + rounding < truth:
            self.above += 1
        else:
            self.covered += 1
        if usual > 0 and math.isfinite(high - low):
            self.widths.append((high - low) / usual)


Key = tuple[str, str, float]
"""A statistic, the size of the group, the confidence."""


class Coverage:
    """Tallies of all statistics over the releases of one table."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._connection = duckdb.connect()
        self._connection.register("t", frame)
        self._truths: dict[str, dict[tuple[Any, ...], tuple[float, float]]] = {}
        self.tallies: dict[Key, Tally] = defaultdict(Tally)

    def truth(self, question: Question) -> dict[tuple[Any, ...], tuple[float, float]]:
        """The statistic and the rows of every group that has any."""
        if question.sql not in self._truths:
            rows = self._connection.execute(question.sql).fetchall()
            self._truths[question.sql] = {
                tuple(row[:-2]): (math.nan if row[-2] is None else float(row[-2]), row[-1])
                for row in rows
            }
        return self._truths[question.sql]

    def add(
        self,
        release: Callable[[str], Answer],
        asked: Iterable[Question],
        levels: Sequence[float] = LEVELS,
    ) -> None:
        """Ask one release these questions."""
        for question in asked:
            truth = self.truth(question)
            for row in release(question.sql).rows:
                key = tuple(row[name] for name in question.groups)
                nothing = 0.0 if question.statistic in ("count", "sum") else math.nan
                value, count = truth.get(key, (nothing, 0))
                if not math.isnan(value):
                    self._add(question, row, value, count, levels)

    def _add(
        self,
        question: Question,
        row: dict[str, Any],
        value: float,
        count: float,
        levels: Sequence[float],
    ) -> None:
        found, rows = row["x"], row["n"]
        large = count >= LARGE * rows.stderr if math.isfinite(rows.stderr) else False
        size = f"{[s for s in SIZES if s <= count][-1]}+"
        for level in levels:
            low, high = found.interval(level)
            if math.isnan(low) or math.isnan(high):
                continue  # nothing was stated
            usual = 2 * NormalDist().inv_cdf((1 + level) / 2) * found.stderr
            for name in ("all", size, *(["large"] if large else [])):
                self.tallies[question.statistic, name, level].add(low, high, value, usual)

    def lines(self, level: float = 0.95) -> Iterator[str]:
        """For reading."""
        for (statistic, size, at), tally in sorted(self.tallies.items(), key=str):
            if at == level:
                yield (
                    f"{statistic:10s}{size:>7s} {at} n={tally.total:6d} covers {tally.share:.3f} "
                    f"below {tally.below / tally.total:.3f} above {tally.above / tally.total:.3f} "
                    f"width {tally.width:.2f}"
                )
