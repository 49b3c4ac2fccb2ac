"""Intervals of shares and of ratios of estimates, many at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.answering.columns import edge
from voile.arrays import Floats
from voile.errors import UsageError, spelled
from voile.kinds.perturbed.estimator import deviation
from voile.kinds.perturbed.joint import JointCounts
from voile.mining.binning import Binning, binning
from voile.mining.counts import Counts, checked_method, chosen_columns
from voile.progress import Progress, Silent
from voile.records import Record

Ends = tuple[Floats, Floats]
"""The lower and the upper ends of intervals."""


@dataclass(frozen=True)
class BoundedSupport:
    """An estimate, and the ends of an interval for the truth."""

    estimate: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float | None]:
        """Plain data for JSON, which has no infinity: no upper end is null."""
        high = self.high if math.isfinite(self.high) else None
        return {"estimate": self.estimate, "low": self.low, "high": high}


def bounded(estimates: Floats, ends: Ends) -> list[BoundedSupport]:
    """Estimates with their intervals; one that inversion did not make may lie outside of its."""
    low, high = np.fmin(ends[0], estimates), np.fmax(ends[1], estimates)
    return [BoundedSupport(*map(float, row)) for row in zip(estimates, low, high, strict=True)]


def shares(counts: JointCounts, rows: int, miss: float) -> Ends:
    """Counts as shares of all rows; shares are from 0 to 1, and so are the intervals."""
    off = counts.deviation(miss)
    low, high = (counts.unbiased - off) / rows, (counts.unbiased + off) / rows
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


@np.errstate(all="ignore")
def ratios(part: JointCounts, rest: JointCounts, whole: JointCounts, miss: float) -> Ends:
    """part/whole after Fieller, within [0, 1]; the rest is the whole less the part.

    θ is believable if (1−θ)·part − θ·rest, of which the truth is then 0, may be so far off. Where
    the whole may be 0, all ratios are believable.
    """
    variance, squares = (
        (of_part, of_rest, (of_whole - of_part - of_rest) / 2)
        for of_part, of_rest, of_whole in (
            (part.variance, rest.variance, whole.variance),
            (part.squares, rest.squares, whole.squares),
        )
    )

    def form(theta: Floats, of: tuple[Floats, Floats, Floats]) -> Floats:
        return (1 - theta) ** 2 * of[0] + theta**2 * of[1] - 2 * theta * (1 - theta) * of[2]

    def outside(theta: Floats) -> npt.NDArray[np.bool_]:
        most, widest = (
            np.abs(1 - theta) * of_part + np.abs(theta) * of_rest
            for of_part, of_rest in ((part.part, rest.part), (part.widest, rest.widest))
        )
        second = np.maximum(form(theta, squares), 0.0)
        off = deviation(form(theta, variance), second, most, widest, miss)
        return np.asarray(np.abs(part.unbiased - theta * whole.unbiased) > off)

    middle = part.unbiased / whole.unbiased
    step = np.abs(middle) * 1e-3 + 1e-9
    low, high = -edge(outside, -middle, step, -1.0), edge(outside, middle, step, 1.0)
    anything = whole.unbiased <= whole.deviation(miss)
    return (
        np.where(anything, 0.0, np.clip(low, 0.0, 1.0)),
        np.where(anything, 1.0, np.clip(high, 0.0, 1.0)),
    )


@np.errstate(all="ignore")
def quotients(top: Ends, bottom: Ends) -> Ends:
    """Of what lies in one interval and what lies in another; ∞ where the bottom may be 0."""
    low = np.where(bottom[1] > 0, top[0] / bottom[1], 0.0)
    return low, np.where(bottom[0] > 0, top[1] / bottom[0], math.inf)


# ------------ which association rules are looked for, and what is reported of those that were found


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
                f"intervals cannot hold with probability {self.level:g}",
                hint="choose a level between 0 and 1, such as 0.95",
            )


@dataclass(frozen=True)
class AssociationRule(Record):
    """Rows that meet `conditions` meet `consequent`, with this confidence."""

    conditions: tuple[str, ...]
    consequent: str
    text: str
    """The rule for people."""
    support: BoundedSupport
    confidence: BoundedSupport
    lift: BoundedSupport


@dataclass(frozen=True)
class FoundRules:
    """The rules, the best lift first, and how many were looked at to find them."""

    rules: tuple[AssociationRule, ...]
    frequent: int
    tested: int
    intervals: int
    """How many intervals the columns can make, whatever the rows are."""
    limits: RuleLimits

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            "rules": [rule.to_dict() for rule in self.rules],
            "frequent": self.frequent,
            "tested": self.tested,
            "intervals": self.intervals,
            **asdict(self.limits),
            "notes": list(self.notes),
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """What the intervals cover."""
        if not self.tested:
            return ()
        if self.limits.simultaneous:
            return (
                f"all intervals hold together with probability {self.limits.level:g}: the chance "
                f"to err is shared by the {self.intervals:,} intervals that these columns can "
                "make, shown or not",
            )
        return (
            f"{self.tested:,} rules were compared and the best are shown: each interval holds "
            f"with probability {self.limits.level:g} by itself, but the best of many look better "
            f"than they are, and theirs hold less often; {spelled('simultaneous', True)} makes "
            "all intervals hold "
            "together",
        )


# ----------------- association rules: conditions that come together more often than each by itself


Whole = npt.NDArray[np.int64]
Item = tuple[str, int]
"""A column and one of its bins."""
Items = tuple[Item, ...]
"""In the order of the columns, at most one of each."""
Side = tuple[Items, Item]
"""All items of a rule, and the one on the right."""


def find_rules(
    counts: Counts,
    columns: Sequence[str] | None = None,
    limits: RuleLimits | None = None,
    progress: Progress | None = None,
) -> FoundRules:
    """All rules with one item on the right that reach the support and the confidence."""
    limits = limits or RuleLimits()
    names = chosen_columns(counts.schema, columns)
    if len(names) < 2:
        raise UsageError(
            f"a rule needs two columns, and there is only {names[0]!r}", hint="name more columns"
        )
    binnings = {name: binning(counts.schema[name], limits.bins) for name in names}
    search = Search(counts, binnings, limits)
    watched = progress or Silent()
    longest = min(limits.longest, len(names))
    watched.start("counting items", longest)
    for length in range(1, longest + 1):
        kept = search.count(length)
        watched.advance(1 if kept else longest - length + 1)
        if not kept:
            break
    return search.found(watched)


class Search:
    """A level-wise search: sets of items from the frequent ones that are an item shorter.

    Estimates err, so that a set goes on while its support *may* be large enough: by the upper end
    of its interval.
    """

    def __init__(self, counts: Counts, binnings: Mapping[str, Binning], limits: RuleLimits) -> None:
        self.counts = counts
        self.binnings = binnings
        self.limits = limits
        self.estimates: dict[Items, JointCounts] = {}
        """Of every set that may be frequent."""

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
            cells[name], places[name] = single_bins(self.binnings[name], own)
        chosen = [[places[name][place] for name, place in items] for items in candidates]
        found = self.counts.joint_counts(cells, self.limits.method).at(tuple(np.array(chosen).T))
        highest = np.maximum(found.unbiased + found.deviation(1 - self.limits.level), found.counts)
        kept = np.flatnonzero(highest >= self.limits.support * self.counts.rows)
        self.estimates |= {candidates[i]: found.at((i,)) for i in kept.tolist()}
        return len(kept)

    def found(self, progress: Progress) -> FoundRules:
        """The rules of the sets whose estimated support is large enough."""
        least = self.limits.support * self.counts.rows
        frequent = [items for items, of in self.estimates.items() if of.counts >= least]
        sides = [(items, item) for items in frequent if len(items) > 1 for item in items]
        good = [side for side in sides if self._confidence(side) >= self.limits.confidence]
        sizes = [binned.size for binned in self.binnings.values()]
        intervals = possible_intervals(sizes, self.limits.longest)
        rules = self._rules(good, intervals, progress) if good else []
        rules.sort(key=lambda rule: (-rule.lift.estimate, -rule.confidence.estimate))
        return FoundRules(tuple(rules), len(frequent), len(sides), intervals, self.limits)

    def _confidence(self, side: Side) -> float:
        both, given, right = (float(self.estimates[items].counts) for items in sets_of(side))
        return min(both / given, 1.0) if min(given, right) > 0 else 0.0

    def _rules(
        self, sides: Sequence[Side], intervals: int, progress: Progress
    ) -> list[AssociationRule]:
        rows, miss = self.counts.rows, 1 - self.limits.level
        together = self.limits.simultaneous
        miss = miss / intervals if together else miss
        both, given, right = (
            JointCounts.stacked([self.estimates[items] for items in each])
            for each in zip(*map(sets_of, sides), strict=True)
        )
        rest = self._rest(sides, progress)
        confidence = np.array([self._confidence(side) for side in sides])
        # A lift is a quotient of two, each at half the risk; unless both hold together anyhow.
        of_each = miss if together else miss / 2
        lift = quotients(ratios(both, rest, given, of_each), shares(right, rows, of_each))
        measures = (
            bounded(both.counts / rows, shares(both, rows, miss)),
            bounded(confidence, ratios(both, rest, given, miss)),
            bounded(confidence / (right.counts / rows), lift),
        )
        return [self._rule(side, *numbers) for side, *numbers in zip(sides, *measures, strict=True)]

    def _rule(
        self, side: Side, support: BoundedSupport, confidence: BoundedSupport, lift: BoundedSupport
    ) -> AssociationRule:
        items, item = side
        others = without(items, item)
        return AssociationRule(
            tuple(self._condition(other) for other in others),
            self._condition(item),
            f"{', '.join(map(self._words, others))} → {self._words(item)}",
            support,
            confidence,
            lift,
        )

    def _rest(self, sides: Sequence[Side], progress: Progress) -> JointCounts:
        """The rows that meet the conditions and not the consequent."""
        found = []
        progress.start("rules", len(sides))
        for items, item in sides:
            cells = {
                name: (self.binnings[name].bins == place).astype(np.int64) for name, place in items
            }
            cell = tuple(int(other != item) for other in items)
            found.append(self.counts.joint_counts(cells, "inversion").at(cell))
            progress.advance(1)
        return JointCounts.stacked(found)

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
    """The items without one."""
    return tuple(other for other in items if other != item)


def single_bins(binned: Binning, own: Sequence[int]) -> tuple[Whole, dict[int, int]]:
    """The chosen bins each for itself, all others together."""
    places = {place: at for at, place in enumerate(own)}
    new = np.full(binned.size, len(own), np.int64)
    new[list(own)] = np.arange(len(own))
    return new[binned.bins], places


def sets_of(side: Side) -> tuple[Items, Items, Items]:
    """Both sides of a rule together, the left one, the right one."""
    items, item = side
    return items, without(items, item), (item,)


def possible_intervals(sizes: Sequence[int], longest: int) -> int:
    """A share for every item; a support for every set of two or more, and its confidences.

    There are as many confidences as items in the set: each may stand on the right. Only the
    domains decide, not what the rows look like, so that nothing is chosen by what it is.
    """
    sets = [1] + [0] * longest
    for size in sizes:
        sets = [1, *(sets[n] + size * sets[n - 1] for n in range(1, longest + 1))]
    return sets[1] + sum((1 + n) * sets[n] for n in range(2, longest + 1))
