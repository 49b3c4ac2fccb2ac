"""Compiled: whether one class meets all requirements. Nothing is allocated on the way."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from voile.compiled import compiled

if TYPE_CHECKING:
    from voile.arrays import Floats
    from voile.privacy.requirements.requirement import Counts, Truths
    from voile.privacy.requirements.rules import Rules

# In the order in which they are checked: the cheapest first.
AT_LEAST_ROWS = 0
PRESENCE = 1
FREQUENCY = 2
LIMITED_SHARES = 3
DISTINCT = 4
SEMANTIC_FORBIDDEN = 5
SEMANTIC_IGNORED = 6
RECURSIVE = 7
VARIATIONAL = 8
EMD_ORDERED = 9
EMD_HIERARCHICAL = 10
ENTROPY = 11
JENSEN_SHANNON = 12


@compiled
def meets(rules: Rules, histogram: Counts, rows: int, population: int) -> bool:
    """Whether a class of these rows meets every rule.

    `histogram` has the counts of all sensitive attributes one after the other, `population` how
    many rows of a public table the class covers (any number where no rule reads it).
    """
    for i in range(len(rules.codes)):
        code, bound = rules.codes[i], rules.bounds[i]
        if code == AT_LEAST_ROWS:
            if rows < bound:
                return False
        elif code == PRESENCE:
            if rows < bound * population or rows > rules.seconds[i] * population:
                return False
        elif rows > 0 and not _meets_of_values(rules, i, histogram, rows):
            return False
    return True


@compiled
def _meets_of_values(rules: Rules, i: int, histogram: Counts, rows: int) -> bool:
    code, bound, second = rules.codes[i], rules.bounds[i], rules.seconds[i]
    start, end = rules.starts[rules.attributes[i]], rules.starts[rules.attributes[i] + 1]
    counts, whole = histogram[start:end], rules.shares[start:end]
    kept = True
    if code == FREQUENCY or code == LIMITED_SHARES:  # noqa: PLR1714, SIM109  (compiled)
        kept = _limited(counts, rules.limited[i], bound * rows)
    elif code == DISTINCT:
        kept = _different(counts) >= bound
    elif code == SEMANTIC_FORBIDDEN:
        kept = _semantic(counts, whole, rows, bound, True)
    elif code == SEMANTIC_IGNORED:
        kept = _semantic(counts, whole, rows, bound, False)
    elif code == RECURSIVE:
        kept = _recursive(counts, int(bound), second, rules.scratch)
    elif code == ENTROPY:
        kept = _entropy(counts, rows) >= bound
    elif code == JENSEN_SHANNON:
        kept = _jensen_shannon(counts, whole, rows, second) <= bound
    elif code == VARIATIONAL:
        kept = _variational(counts, whole, rows) <= bound
    elif code == EMD_ORDERED:
        kept = _ordered(counts, whole, rows) <= bound
    else:
        kept = _hierarchical(rules, i, counts, whole, rows) <= bound
    return kept


@compiled
def _limited(counts: Counts, which: Truths, limit: float) -> bool:
    kept = True
    for v in range(len(counts)):
        kept = kept and not (which[v] and counts[v] > limit)
    return kept


@compiled
def _different(counts: Counts) -> int:
    different = 0
    for count in counts:
        different += 1 if count > 0 else 0
    return different


@compiled
def _semantic(counts: Counts, whole: Floats, rows: int, factor: float, forbidden: bool) -> bool:
    for v in range(len(counts)):
        if counts[v] == 0:
            if forbidden and whole[v] > 0:
                return False
            continue
        expected = rows * whole[v]
        if counts[v] < expected / factor or counts[v] > expected * factor:
            return False
    return True


@compiled
def _recursive(counts: Counts, l: int, c: float, scratch: Floats) -> bool:  # noqa: E741
    """The first ℓ − 1 are taken out one by one, the largest first."""
    left, largest = 0.0, 0.0
    for v in range(len(counts)):
        scratch[v] = counts[v]
        left += counts[v]
        largest = max(largest, scratch[v])
    for _ in range(min(l - 1, len(counts))):
        at = 0
        for v in range(1, len(counts)):
            if scratch[v] > scratch[at]:
                at = v
        left -= scratch[at]
        scratch[at] = -1.0
    return largest < c * left


@compiled
def _entropy(counts: Counts, rows: int) -> float:
    weighed = 0.0
    for count in counts:
        if count > 1:
            weighed += count * math.log(count)
    return math.log(rows) - weighed / rows


@compiled
def _jensen_shannon(counts: Counts, whole: Floats, rows: int, entropy: float) -> float:
    """Half of Σ p ln p and of Σ q ln q (given), less Σ m ln m of their mean m."""
    own, mixed = 0.0, 0.0
    for v in range(len(counts)):
        share = counts[v] / rows
        if counts[v] > 0:
            own += share * math.log(share)
        mean = (share + whole[v]) / 2
        if mean > 0:
            mixed += mean * math.log(mean)
    return (own + entropy) / 2 - mixed


@compiled
def _variational(counts: Counts, whole: Floats, rows: int) -> float:
    apart = 0.0
    for v in range(len(counts)):
        apart += abs(counts[v] / rows - whole[v])
    return apart / 2


@compiled
def _ordered(counts: Counts, whole: Floats, rows: int) -> float:
    passed, moved, values = 0.0, 0.0, 0
    for v in range(len(counts)):
        if whole[v] > 0:
            passed += counts[v] / rows - whole[v]
            moved += abs(passed)
            values += 1
    return moved / max(values - 1, 1)


@compiled
def _hierarchical(rules: Rules, i: int, counts: Counts, whole: Floats, rows: int) -> float:
    """What must cross each edge of the tree, level by level."""
    first, last = rules.tree_starts[i], rules.tree_starts[i + 1]
    crossing = 2 * _variational(counts, whole, rows)
    below = rules.scratch
    for level in range(first, last):
        nodes = rules.trees[level]
        below[: len(counts)] = 0.0
        for v in range(len(counts)):
            below[nodes[v]] += counts[v] / rows - whole[v]
        for v in range(len(counts)):
            crossing += abs(below[v])
    height = int(last - first) + 1
    return crossing / (2 * height)
