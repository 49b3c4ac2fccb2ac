"""Association rules: conditions that come together more often than each by itself.

An item is a bin of a column: a value, or an interval of numbers. The support of a set of items is
the share of rows that have all of them. A rule A → b says that rows with A often have b.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from voile.answering.local.joint import JointCounts
from voile.errors import UsageError
from voile.mining.associations import AssociationRule, Found, RuleLimits
from voile.mining.binning import Binning, binning
from voile.mining.counts import Counts, chosen_columns
from voile.mining.intervals import Bounded, bounded, quotients, ratios, shares

Whole = npt.NDArray[np.int64]
Item = tuple[str, int]
"""A column and one of its bins."""
Items = tuple[Item, ...]
"""In the order of the columns, at most one of each."""
Side = tuple[Items, Item]
"""All items of a rule, and the one on the right."""
Progress = Callable[[str, float], None]


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
            cells[name], places[name] = told_apart(self.binnings[name], own)
        chosen = [[places[name][place] for name, place in items] for items in candidates]
        found = self.counts.joint_counts(cells, self.limits.method).at(tuple(np.array(chosen).T))
        highest = np.maximum(found.unbiased + found.deviation(1 - self.limits.level), found.counts)
        kept = np.flatnonzero(highest >= self.limits.support * self.counts.rows)
        self.estimates |= {candidates[i]: found.at((i,)) for i in kept.tolist()}
        return len(kept)

    def found(self, progress: Progress) -> Found:
        """The rules of the sets whose estimated support is large enough."""
        least = self.limits.support * self.counts.rows
        frequent = [items for items, of in self.estimates.items() if of.counts >= least]
        sides = [(items, item) for items in frequent if len(items) > 1 for item in items]
        good = [side for side in sides if self._confidence(side) >= self.limits.confidence]
        sizes = [binned.size for binned in self.binnings.values()]
        intervals = possible_intervals(sizes, self.limits.longest)
        rules = self._rules(good, intervals, progress) if good else []
        rules.sort(key=lambda rule: (-rule.lift.estimate, -rule.confidence.estimate))
        return Found(tuple(rules), len(frequent), len(sides), intervals, self.limits)

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
        told = (
            bounded(both.counts / rows, shares(both, rows, miss)),
            bounded(confidence, ratios(both, rest, given, miss)),
            bounded(confidence / (right.counts / rows), lift),
        )
        return [self._rule(side, *numbers) for side, *numbers in zip(sides, *told, strict=True)]

    def _rule(
        self, side: Side, support: Bounded, confidence: Bounded, lift: Bounded
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
        for done, (items, item) in enumerate(sides):
            progress("rules", done / len(sides))
            cells = {
                name: (self.binnings[name].bins == place).astype(np.int64) for name, place in items
            }
            cell = tuple(int(other != item) for other in items)
            found.append(self.counts.joint_counts(cells, "inversion").at(cell))
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
    return tuple(other for other in items if other != item)


def told_apart(binned: Binning, own: Sequence[int]) -> tuple[Whole, dict[int, int]]:
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
