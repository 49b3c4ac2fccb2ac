"""Select-a-size read backwards: what is seen of the items that a query reads.

A basket t of s items out of M shows j of them with chance select[j], all j-subsets alike, drops
the others, and each item that it does not hold is inserted with chance ρ. Let a query read k items,
of which t holds the set B. Then it is seen to hold B′ with chance

    P(B′ | B, s) = Σ_j select[j]·C(s − |B|, j − |Q|)/C(s, j) · ρ^|B′∖B| · (1 − ρ)^(k − |B∪B′|)

for Q = B ∩ B′: of the C(s, j) subsets of t that may be kept, those that keep exactly Q of B choose
their other j − |Q| items among the s − |B| items of t that the query does not read; and each of
the k − |B| items that t does not hold is inserted or not, independently.

The chance depends on B and B′ only through |B|, |Q| and |B′|, so that the number ℓ of the query's
items is a Markov chain of its own, from ℓ = |B| to ℓ′ = |B′|: `level_transition`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError
from voile.reconstruct.axes import Dense

Codes = npt.NDArray[np.int64]

MOST_ITEMS = 10
"""Items of which all subsets are distinguished."""
WORST_CONDITION = 1e8
"""From here on, errors grow so much on the way back that no count is worth reading."""


def keep_chance(select: Sequence[float], size: int, held: int, kept: int) -> float:
    """That a given set of `kept` of the query's items, out of the `held`, is what is kept."""
    return sum(
        float(chance) * (comb(size - held, number - kept) / comb(size, number))
        for number, chance in enumerate(select)
        if chance and 0 <= number - kept <= size - held
    )


def transition(select: Sequence[float], insert: float, size: int, items: int) -> Dense:
    """Between the 2^k sets of the k items that a query reads, in baskets of this size.

    The first item is the highest bit of a set's number, as in a tensor of k axes. A set of more
    items than a basket has cannot occur; it stays what it is, so that there is an inverse.
    """
    if not 0 <= items <= MOST_ITEMS:
        raise UsageError(
            f"all sets of {items} items are too many to distinguish",
            hint=f"read at most {MOST_ITEMS} items at a time, or only the support of all of them",
        )
    sets = np.arange(2**items, dtype=np.int64)
    held = np.bitwise_count(sets).astype(np.int64)
    kept = np.bitwise_count(sets[:, None] & sets).astype(np.int64)
    inserted = held - kept
    spared = items - held[:, None] - inserted
    keep = np.zeros((items + 1, items + 1))
    for h in range(min(items, size) + 1):
        for k in range(h + 1):
            keep[h, k] = keep_chance(select, size, h, k)
    chances = keep[held[:, None], kept] * insert**inserted * (1 - insert) ** spared
    impossible = held > size
    chances[impossible] = np.eye(len(sets))[impossible]
    return Dense(chances)


def level_transition(select: Sequence[float], insert: float, size: int, items: int) -> Floats:
    """From how many of the query's items a basket of this size holds to how many are seen.

    Rows for 0 … min(k, s) held, columns for 0 … k seen.
    """
    chances = np.zeros((min(items, size) + 1, items + 1))
    for held in range(len(chances)):
        for kept in range(held + 1):
            keep = comb(held, kept) * keep_chance(select, size, held, kept)
            others = items - held
            for more in range(others + 1):
                among = comb(others, more) * insert**more * (1 - insert) ** (others - more)
                chances[held, kept + more] += keep * among
    return chances


def support_weights(
    select: Sequence[float], insert: float, size: int, items: int, all_items: int
) -> Floats:
    """g with E[g(ℓ′)] = 1 if a basket of this size holds all k items, else 0.

    ℓ runs over what a basket of s out of M items can hold: s − (M − k) ≤ ℓ ≤ min(k, s). Where
    that leaves a choice of g, it is the one of the least mean square, were all these ℓ alike: so
    baskets too small to hold the items get weight 0, and full ones get weight 1, without error.
    """
    if size < items:
        return np.zeros(items + 1)
    first = max(0, size - (all_items - items))
    chances = level_transition(select, insert, size, items)[first:]
    wanted = np.zeros(len(chances))
    wanted[-1] = 1
    seen = chances.mean(axis=0)
    scale = np.sqrt(np.divide(1, seen, out=np.zeros_like(seen), where=seen > 0))
    scaled = chances * scale
    if np.linalg.cond(scaled) >= WORST_CONDITION:
        raise UsageError(
            f"what is seen of {items} items in baskets of {size} hardly depends on what they hold",
            hint="keep more of the items of a basket, or insert others with a smaller chance",
        )
    weights: Floats = scale * (np.linalg.pinv(scaled) @ wanted)
    return weights


def support(
    seen: Codes,
    sizes: Codes,
    items: int,
    all_items: int,
    select: Sequence[Sequence[float]],
    insert: float,
) -> tuple[float, float]:
    """How many baskets hold all k items, without bias, and the variance of that number.

    `seen` is how many of the items each basket shows, `sizes` how many it holds in all. With g of
    a basket's size, the estimate is Σ g(ℓ′); as E[g] is 0 or 1 for each basket, its variance
    Σ (E[g²] − E[g]²) is estimated without bias by Σ g² − Σ g, and by 0 where that is negative.
    """
    counts = np.zeros((len(select), items + 1))
    np.add.at(counts, (sizes, seen), 1)
    estimate = variance = 0.0
    for size in map(int, np.flatnonzero(counts.any(axis=1))):
        weights = support_weights(select[size], insert, size, items, all_items)
        estimate += float(counts[size] @ weights)
        variance += float(counts[size] @ (weights**2 - weights))
    return estimate, max(0.0, variance)


def amplification(
    select: Sequence[Fraction], insert: Fraction, size: int, all_items: int
) -> Fraction | None:
    """The largest P(y|t)/P(y|t′) over what may be seen, y, and baskets t, t′ of this size.

    P(y|t) depends on m = |y| and q = |y ∩ t| alone: y ∩ t is what was kept, y ∖ t was inserted, so
    P = select[q]/C(s, q) · ρ^(m−q) · (1−ρ)^(M−s−m+q), for max(0, m − (M−s)) ≤ q ≤ min(s, m): for
    the same m in proportion to select[q]/C(s, q) · ((1−ρ)/ρ)^q. None if the ratio is unbounded.
    """
    others = all_items - size
    if not size or not others or (select[0] == 1 and not insert):
        return Fraction(1)
    if not insert:
        return None
    odds = (1 - insert) / insert
    likely = [chance / comb(size, kept) * odds**kept for kept, chance in enumerate(select)]
    worst = Fraction(1)
    for first in range(max(0, size - others) + 1):
        alike = likely[first : first + others + 1]
        if not max(alike):
            continue
        if not min(alike):
            return None
        worst = max(worst, max(alike) / min(alike))
    return worst
