"""How far one record that takes another's place can move all components together.

Let x_i be 1 where the new record differs from the old one in column i, else 0, and a_i = 1 − 1/n_i.
The centred indicator of a value of column i has squared norm a_i; those of two different values
have inner product −1/n_i = a_i − 1. So component c moves by 2(p_c − Π_{i∈c}(a_i − x_i)) in squared
norm, whatever the values are, and the worst exchange has
  ρ = max over x of F(x),   F(x) = Σ_c w_c·(p_c − Π_{i∈c}(a_i − x_i)),   w_c = 1/σ_c².
F is linear in each x_i. What a change of x_i from 0 to 1 adds, its gain, is Σ_{c∋i} w_c·Π of the
other factors, each of which is a_j or a_j − 1: so every gain lies in an interval.

1. Where the gain of i is never negative, some worst x has x_i = 1 (turn it to 1: F does not fall);
   where it is never positive, x_i = 0. With these fixed, other intervals shrink; this is repeated.
   If columns have many values this ends with all of them fixed, and F(x) is the maximum.
2. At most 12 columns that stay free are tried in all ways: the maximum.
3. If what is left depends on sizes alone (all tables up to an order, with balanced weights), F
   depends on how many columns of each size change, and these numbers are tried: the maximum.
4. Otherwise an upper bound. Up to signs, what is left is L + Q + H: terms of one column, of two and
   of more. Each product in H is at least its interval's lower end. Q = ½·tᵀMt, t_i = a_i − x_i, is
   at least ½λ·Σ s_i·t_i² for any s > 0 and λ the least eigenvalue of M_ij/√(s_i·s_j); then each
   column is by itself. Of s = 1, s_i = Σ_j |M_ij| and the intervals of Q's products, the best bound
   is taken; all of them hold.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from voile.arrays import Bools, Floats, Ints
from voile.kinds.marginals.residuals import Columns

MOST_SEARCHED = 12
"""Free columns of which every set of changes is tried."""
MOST_NUMBERS = 20_000
"""Ways to say how many columns of each size change that are tried."""
SAME = 1e-9
"""Coefficients that differ by a smaller part are taken as the same, and the difference is added."""
UP = 1 + 1e-12
"""What sums in floats may lose."""


def worst_exchange(sizes: Sequence[int], precisions: Mapping[Columns, float]) -> float:
    """max F, or a bound above it, given w_c by component."""
    precisions = {c: w for c, w in precisions.items() if c}
    if not precisions:
        return 0.0
    terms = _Terms.of(sizes, precisions)
    changed, free = _fixed(terms)
    places = np.flatnonzero(free)
    if len(places) <= MOST_SEARCHED:
        return _searched(terms, changed, places) * UP
    left = _Rest.of(terms, changed, free)
    least = left.least_by_numbers()
    return (terms.norms - (left.least_bound() if least is None else least)) * UP


class _Terms:
    """The components as arrays: places of columns, padded by a factor that is 1."""

    def __init__(self, factors: Floats, places: Ints, weights: Floats) -> None:
        self.factors, self.places, self.weights = factors, places, weights
        self.norms = float(self.weights @ self.factors[self.places].prod(axis=1))

    @classmethod
    def of(cls, sizes: Sequence[int], precisions: Mapping[Columns, float]) -> _Terms:
        factors = np.array([1 - 1 / n for n in sizes] + [1.0])
        places = np.full((len(precisions), max(map(len, precisions))), len(sizes))
        for row, c in enumerate(precisions):
            places[row, : len(c)] = c
        return cls(factors, places, np.array(list(precisions.values())))

    def gains(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The interval of every column's gain, given the intervals of the factors."""
        least, most = np.zeros(len(low)), np.zeros(len(low))
        for k in range(self.places.shape[1]):
            others = np.delete(self.places, k, axis=1)
            bottom, top = _product(low, high, others)
            np.add.at(least, self.places[:, k], self.weights * bottom)
            np.add.at(most, self.places[:, k], self.weights * top)
        return least, most


def _product(low: Floats, high: Floats, places: Ints) -> tuple[Floats, Floats]:
    """The interval of each row's product."""
    bottom = top = np.ones(len(places))
    for column in places.T:
        ends = [one * other[column] for one in (bottom, top) for other in (low, high)]
        bottom, top = np.minimum.reduce(ends), np.maximum.reduce(ends)
    return bottom, top


def _fixed(terms: _Terms) -> tuple[Bools, Bools]:
    """Which columns change in some worst exchange, and which are left open."""
    high = terms.factors.copy()
    low = np.append(high[:-1] - 1, 1.0)
    low[high == 0] = 0.0  # a column of one value does not change
    free = low < high
    changed = np.zeros(len(high), dtype=np.bool_)
    while free.any():
        least, most = terms.gains(low, high)
        up, down = free & (least >= 0), free & (least < 0) & (most <= 0)
        if not (up | down).any():
            break
        changed |= up
        free &= ~(up | down)
        high[up], low[down] = low[up], high[down]
    return changed, free


def _searched(terms: _Terms, changed: Bools, places: Ints) -> float:
    """The most over all ways to change the free columns."""
    best = 0.0
    block = max(1, 2**21 // terms.places.size)
    ways = np.array(list(product((0, 1), repeat=len(places))), dtype=np.float64)
    for start in range(0, len(ways), block):
        some = ways[start : start + block]
        factors = np.tile(terms.factors - changed, (len(some), 1))
        factors[:, places] -= some
        found = terms.norms - factors[:, terms.places].prod(axis=2) @ terms.weights
        best = max(best, float(found.max()))
    return best


class _Rest:
    """Σ_f coefficient_f·Π_{i∈f} t_i over sets f of free columns; its least value is sought."""

    def __init__(self, factors: Floats, coefficients: dict[Columns, float]) -> None:
        self.factors = factors
        self.constant = coefficients.pop((), 0.0)
        self.coefficients = coefficients

    @classmethod
    def of(cls, terms: _Terms, changed: Bools, free: Bools) -> _Rest:
        found: dict[Columns, float] = defaultdict(float)
        fixed = np.where(free, 1.0, terms.factors - changed)
        for row, weight in zip(terms.places, terms.weights, strict=True):
            key = tuple(sorted(int(i) for i in row if free[i]))
            found[key] += float(weight * fixed[row].prod())
        return cls(terms.factors, found)

    # ------------------------------------------------------------------ by numbers of changes

    def least_by_numbers(self) -> float | None:
        """The least value where only sizes matter; None where more does, or there are too many."""
        columns = sorted({i for f in self.coefficients for i in f})
        groups: dict[float, int] = defaultdict(int)
        for i in columns:
            groups[float(self.factors[i])] += 1
        if math.prod(m + 1 for m in groups.values()) > MOST_NUMBERS:
            return None
        kinds = self._kinds(groups)
        if kinds is None:
            return None
        spread = sum(high - low for low, high, number in kinds.values() for _ in range(number))
        ways = dict(zip(groups, _ways(groups), strict=True))
        known: dict[tuple[float, int], Floats] = {}
        totals = np.zeros(math.prod(m + 1 for m in groups.values()))
        for key, (_, high, _) in kinds.items():
            term = np.full(len(totals), high)
            for a in sorted(set(key)):
                if (a, key.count(a)) not in known:
                    each = [_symmetric(a, groups[a], q, key.count(a)) for q in range(groups[a] + 1)]
                    known[a, key.count(a)] = np.array(each)[ways[a]]
                term *= known[a, key.count(a)]
            totals += term
        return self.constant + float(totals.min()) - spread

    def _kinds(
        self, groups: Mapping[float, int]
    ) -> dict[tuple[float, ...], tuple[float, float, int]] | None:
        """By the sizes of a term: its least and largest coefficient, and how many there are."""
        found: dict[tuple[float, ...], list[float]] = defaultdict(list)
        for f, coefficient in self.coefficients.items():
            found[tuple(sorted(float(self.factors[i]) for i in f))].append(coefficient)
        for key, values in found.items():
            number = math.prod(math.comb(groups[a], key.count(a)) for a in set(key))
            if number != len(values) or max(values) - min(values) > SAME * max(map(abs, values)):
                return None
        return {key: (min(v), max(v), len(v)) for key, v in found.items()}

    # ------------------------------------------------------------------ a bound

    def least_bound(self) -> float:
        """A value below the least."""
        high = self.factors
        low = np.append(high[:-1] - 1, 1.0)
        single: dict[int, float] = {}
        pairs: dict[Columns, float] = {}
        total = self.constant
        for f, coefficient in self.coefficients.items():
            if len(f) == 1:
                single[f[0]] = coefficient
            elif len(f) == 2:
                pairs[f] = coefficient
            else:
                total += _least_term(coefficient, f, low, high)
        columns = sorted({i for f in self.coefficients for i in f})
        linear = np.array([single.get(i, 0.0) for i in columns])
        each = high[columns] - np.array([[0.0], [1.0]])  # t_i without and with a change
        by_terms = float((linear * each).min(axis=0).sum()) + sum(
            _least_term(q, f, low, high) for f, q in pairs.items()
        )
        return total + max(by_terms, *_spectral(columns, pairs, linear, each))


def _least_term(coefficient: float, f: Columns, low: Floats, high: Floats) -> float:
    """The least that a coefficient times a product can be."""
    bottom, top = _product(low, high, np.array([f]))
    return min(coefficient * float(bottom[0]), coefficient * float(top[0]))


def _spectral(
    columns: Sequence[int], pairs: Mapping[Columns, float], linear: Floats, each: Floats
) -> Iterator[float]:
    """Bounds below L + Q by least eigenvalues."""
    place = {i: k for k, i in enumerate(columns)}
    matrix = np.zeros((len(columns), len(columns)))
    for (i, j), q in pairs.items():
        matrix[place[i], place[j]] = matrix[place[j], place[i]] = q
    degrees = np.abs(matrix).sum(axis=1)
    smallest = float(degrees.max(initial=0.0)) * 1e-6 or 1.0
    for scales in (np.ones(len(columns)), np.maximum(degrees, smallest)):
        root = np.sqrt(scales)
        least = float(np.linalg.eigvalsh(matrix / np.outer(root, root))[0])
        least = min(0.0, least) - 1e-9 * float(np.abs(matrix / np.outer(root, root)).max())
        yield float((linear * each + least / 2 * scales * each**2).min(axis=0).sum())


def _ways(groups: Mapping[float, int]) -> Ints:
    """All numbers of changed columns: a line for each size, with one number for every way."""
    shape = [m + 1 for m in groups.values()]
    return np.indices(shape).reshape(len(shape), math.prod(shape))


def _symmetric(factor: float, columns: int, changed: int, k: int) -> float:
    """Σ of the products of k out of so many factors, of which some are less by 1."""
    return math.fsum(
        math.comb(changed, j) * (factor - 1) ** j
        * math.comb(columns - changed, k - j) * factor ** (k - j)
        for j in range(k + 1)
    )  # fmt: skip
