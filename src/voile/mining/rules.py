"""Association rules: conditions that come together more often than each by itself.

An item is a bin of a column: a value, or an interval of numbers. The support of a set of items is
the share of rows that have all of them. A rule A → b says that rows with A often have b.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.errors import UsageError
from voile.mining.binning import Binning, binning
from voile.mining.counts import Counts, checked_method, chosen_columns
from voile.mining.intervals import Bounded, ratio, share

Whole = npt.NDArray[np.int64]
Item = tuple[str, int]
"""A column and one of its bins."""
Items = tuple[Item, ...]
"""In the order of the columns, at most one of each."""
Progress = Callable[[str, float], None]

LONGEST = 6


@dataclass(frozen=True)
class RuleLimits:
    """Which rules are looked for."""

    support: float = 0.05
    confidence: float = 0.6
    longest: int = 3
    bins: int = 5
    method: str = "inversion"
    level: float = 0.95
    simultaneous: bool = False

    def __post_init__(self) -> None:
        checked_method(self.method)
        if not 0 < self.support <= 1:
            raise UsageError(
                f"a support of {self.support:g} is no share of the rows",
                hint="choose one above 0, such as 0.05; at most 1",
            )
        if not 0 <= self.confidence <= 1:
            raise UsageError(
                f"a confidence of {self.confidence:g} is no share", hint="choose from 0 to 1"
            )
        if not 2 <= self.longest <= LONGEST:
            raise UsageError(
                f"rules of {self.longest} items are not looked for",
                hint=f"choose from 2 to {LONGEST}",
            )
        if not 2 <= self.bins <= 1000:
            raise UsageError(f"{self.bins} bins are not possible", hint="choose from 2 to 1000")
        if not 0 < self.level < 1:
            raise UsageError(
                f"intervals cannot hold with a chance of {self.level:g}",
                hint="choose a level between 0 and 1, such as 0.95",
            )


@dataclass(frozen=True)
class AssociationRule:
    """Rows that meet `conditions` meet `consequent`, with this confidence."""

    conditions: tuple[str, ...]
    consequent: str
    text: str
    """The rule for people."""
    support: Bounded
    confidence: Bounded
    lift: Bounded

    def to_dict(self) -> dict[str, Any]:
        return {
            "conditions": list(self.conditions),
            "consequent": self.consequent,
            "text": self.text,
            "support": self.support.to_dict(),
            "confidence": self.confidence.to_dict(),
            "lift": self.lift.to_dict(),
        }


@dataclass(frozen=True)
class Found:
    """The rules, the best lift first, and how many were looked at to find them."""

    rules: tuple[AssociationRule, ...]
    frequent: int
    tested: int
    limits: RuleLimits

    def to_dict(self) -> dict[str, Any]:
        return {
            "rules": [rule.to_dict() for rule in self.rules],
            "frequent": self.frequent,
            "tested": self.tested,
            **asdict(self.limits),
            "notes": list(self.notes),
        }

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.tested:
            return ()
        if self.limits.simultaneous:
            told = f"all intervals hold together with a chance of {self.limits.level:g}"
            return (f"{told}: {self.tested:,} rules were compared",)
        missed = self.tested * (1 - self.limits.level)
        return (
            f"{self.tested:,} rules were compared and the best are shown: each interval holds "
            f"with a chance of {self.limits.level:g} by itself, so about {missed:,.0f} of those "
            "compared may miss, and the best of many look better than they are; "
            "--simultaneous makes all intervals hold together",
        )


def find_rules(
    counts: Counts,
    columns: Sequence[str] | None = None,
    limits: RuleLimits | None = None,
    progress: Progress = lambda _step, _done: None,
) -> Found:
    """All rules with one item on the right that reach the support and the confidence."""
    limits = limits or RuleLimits()
    names = chosen_columns(counts.schema, columns)
    if len(names) < 2:
        raise UsageError(
            f"a rule needs two columns, and there is only {names[0]!r}", hint="name more columns"
        )
    binnings = {name: binning(counts.schema[name], limits.bins) for name in names}
    search = Search(counts, binnings, limits)
    for length in range(1, min(limits.longest, len(names)) + 1):
        progress("counting items", (length - 1) / limits.longest)
        if not search.count(length):
            break
    return search.found(progress)


class Search:
    """A level-wise search: sets of items from the frequent ones that are an item shorter.

    Estimates err, so that a set goes on while its support *may* be large enough: by the upper end
    of its interval.
    """

    def __init__(self, counts: Counts, binnings: Mapping[str, Binning], limits: RuleLimits) -> None:
        self.counts = counts
        self.binnings = binnings
        self.limits = limits
        self.estimates: dict[Items, tuple[float, float]] = {}
        """Rows and their standard error, of every set that may be frequent."""

    @cached_property
    def _deviations(self) -> float:
        return NormalDist().inv_cdf((1 + self.limits.level) / 2)

    def count(self, length: int) -> int:
        """Estimate the sets of so many items; how many may be frequent."""
        if not self.counts.rows:
            return 0
        kept = 0
        for columns in combinations(self.binnings, length):
            candidates = self._candidates(columns)
            if candidates:
                kept += self._count(columns, candidates)
        return kept

    def _candidates(self, columns: tuple[str, ...]) -> list[Items]:
        """Sets of items of these columns all of whose parts may be frequent."""
        if len(columns) == 1:
            (name,) = columns
            return [((name, place),) for place in range(self.binnings[name].size)]
        last = columns[-1]
        ends = [items for items in self.estimates if len(items) == 1 and items[0][0] == last]
        starts = [
            items
            for items in self.estimates
            if len(items) == len(columns) - 1 and tuple(name for name, _ in items) == columns[:-1]
        ]
        joined = (start + end for start in starts for end in ends)
        return [items for items in joined if all(part in self.estimates for part in parts(items))]

    def _count(self, columns: tuple[str, ...], candidates: Sequence[Items]) -> int:
        """One reconstruction for all sets of items of the same columns."""
        cells, places = {}, {}
        for at, name in enumerate(columns):
            own = sorted({items[at][1] for items in candidates})
            cells[name], places[name] = told_apart(self.binnings[name], own)
        counts, errors = self.counts.joint_counts(cells, self.limits.method)
        kept = 0
        for items in candidates:
            cell = tuple(places[name][place] for name, place in items)
            rows, stderr = float(counts[cell]), float(errors[cell])
            if rows + self._deviations * stderr >= self.limits.support * self.counts.rows:
                self.estimates[items] = (rows, stderr)
                kept += 1
        return kept

    def found(self, progress: Progress) -> Found:
        """The rules of the sets whose estimated support is large enough."""
        least = self.limits.support * self.counts.rows
        frequent = [items for items, (rows, _) in self.estimates.items() if rows >= least]
        sides = [(items, item) for items in frequent if len(items) > 1 for item in items]
        limits = self.limits
        if limits.simultaneous and sides:
            limits = replace(limits, level=1 - (1 - limits.level) / (3 * len(sides)))
        rules = []
        for done, (items, item) in enumerate(sides):
            progress("rules", done / len(sides))
            if self._confidence(items, item) >= limits.confidence:
                rules.append(self._rule(items, item, limits.level))
        rules.sort(key=lambda rule: (-rule.lift.estimate, -rule.confidence.estimate))
        return Found(tuple(rules), len(frequent), len(sides), self.limits)

    def _confidence(self, items: Items, item: Item) -> float:
        (both, _), (given, _) = self.estimates[items], self.estimates[without(items, item)]
        right, _ = self.estimates[(item,)]
        return min(both / given, 1.0) if min(given, right) > 0 else 0.0

    def _rule(self, items: Items, item: Item, level: float) -> AssociationRule:
        others = without(items, item)
        deviations = NormalDist().inv_cdf((1 + level) / 2)
        rows = self.counts.rows
        both, own = self.estimates[items]
        given, of_given = self.estimates[others]
        right, of_right = self.estimates[(item,)]
        rest = self._rest(others, item)
        # The ends of a quotient's interval: of two that hold at half the risk each.
        half = NormalDist().inv_cdf((3 + level) / 4)
        wide = ratio(both, given, (own, rest, of_given), half)
        base = share(right, of_right, rows, half)
        confidence = ratio(both, given, (own, rest, of_given), deviations)
        return AssociationRule(
            tuple(self._condition(other) for other in others),
            self._condition(item),
            f"{', '.join(map(self._words, others))} → {self._words(item)}",
            share(both, own, rows, deviations),
            confidence,
            quotient(replace(wide, estimate=confidence.estimate), base),
        )

    def _rest(self, others: Items, item: Item) -> float:
        """The standard error of the rows that meet the conditions and not the consequent."""
        cells = {}
        for name, place in (*others, item):
            cells[name] = (self.binnings[name].bins == place).astype(np.int64)
        _, errors = self.counts.joint_counts(cells, "inversion")
        return float(errors[(1,) * len(others) + (0,)])

    def _condition(self, item: Item) -> str:
        binned = self.binnings[item[0]]
        return binned.condition(only(binned, item))

    def _words(self, item: Item) -> str:
        binned = self.binnings[item[0]]
        return binned.words(only(binned, item))


def only(binned: Binning, item: Item) -> npt.NDArray[np.bool_]:
    """The item as a set of bins."""
    return np.asarray(np.arange(binned.size) == item[1])


def parts(items: Items) -> list[Items]:
    """The sets that are an item shorter."""
    return [without(items, item) for item in items]


def without(items: Items, item: Item) -> Items:
    return tuple(other for other in items if other != item)


def told_apart(binned: Binning, own: Sequence[int]) -> tuple[Whole, dict[int, int]]:
    """The chosen bins each for itself, all others together."""
    places = {place: at for at, place in enumerate(own)}
    new = np.full(binned.size, len(own), np.int64)
    new[list(own)] = np.arange(len(own))
    return new[binned.bins], places


def quotient(top: Bounded, bottom: Bounded) -> Bounded:
    """Lift: confidence over the share that has the consequent anyhow."""
    estimate = top.estimate / bottom.estimate
    low = top.low / bottom.high if bottom.high > 0 else 0.0
    return Bounded(estimate, low, top.high / bottom.low if bottom.low > 0 else math.inf)
