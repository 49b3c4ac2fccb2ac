"""What an adversary may know of the population: chances of tuples from a few marginals.

A tree of attributes: each one depends on at most one other, P(t) = Π_j P(t_j | t_parent(j)).
Without any edge it is the product of the marginals. The best tree is that of Chow and Liu (1968):
the one whose edges have the most mutual information.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from voile.arrays import Floats
from voile.privacy.adversary import Codes

Pair = tuple[int, int]
"""Two attributes by their numbers, the smaller one first."""
PairCounts = Callable[[Pair], Floats]
"""Counts of the values of two attributes, with a row for each value of the first."""


@dataclass(frozen=True)
class Population:
    """A law over the domain: a tree of attributes, or their product where no one has a parent.

    tables[j] is ln P(value of j), or, with a parent, ln P(value of j | value of the parent) with a
    row for each value of the parent.
    """

    parents: tuple[int | None, ...]
    tables: tuple[Floats, ...]

    def log_chance(self, codes: Codes) -> Floats:
        """ln P of tuples, given by the places of their values."""
        found = np.zeros(len(codes[0]))
        for j, (parent, table) in enumerate(zip(self.parents, self.tables, strict=True)):
            found += table[codes[j]] if parent is None else table[codes[parent], codes[j]]
        return found

    def log_prior(self, codes: Codes, rows: float) -> Floats:
        """ln of the chance that a table of so many draws holds the tuple: 1 − (1 − P)^rows."""
        chance = np.exp(self.log_chance(codes))
        with np.errstate(divide="ignore"):
            return np.log(-np.expm1(rows * np.log1p(-np.minimum(chance, 1.0))))


def product(counts: Sequence[Floats]) -> Population:
    """Attributes that have nothing to do with one another."""
    return Population((None,) * len(counts), tuple(np.log(smoothed(c)) for c in counts))


def tree(counts: Sequence[Floats], pairs: Sequence[Pair], both: PairCounts) -> Population:
    """The tree of attributes nearest to these counts, of edges among the given pairs.

    Counts of pairs are asked for one after the other, and not all kept: they may be large.
    """
    weights = {pair: mutual_information(both(pair)) for pair in pairs}
    parents: list[int | None] = [None] * len(counts)
    tables = [np.log(smoothed(c)) for c in counts]
    for parent, child in best_edges(len(counts), weights):
        table = both((parent, child)) if parent < child else both((child, parent)).T
        parents[child] = parent
        tables[child] = np.log(np.apply_along_axis(smoothed, 1, table))
    return Population(tuple(parents), tuple(tables))


def best_edges(attributes: int, weights: Mapping[Pair, float]) -> list[Pair]:
    """Edges of the heaviest spanning forest, from parent to child (Prim's algorithm)."""
    reached: list[int] = []
    edges: list[tuple[int, int]] = []
    for _ in range(attributes):
        out = [
            (weight, i, j)
            for (a, b), weight in weights.items()
            for i, j in ((a, b), (b, a))
            if i in reached and j not in reached and weight > 0
        ]
        if out:
            _, parent, child = max(out)
            edges.append((parent, child))
        else:  # the first of all, or of another part of a forest
            child = next(j for j in range(attributes) if j not in reached)
        reached.append(child)
    return edges


def mutual_information(counts: Floats) -> float:
    """How much one attribute tells of the other, in natural units."""
    both = counts / counts.sum()
    apart = np.outer(both.sum(axis=1), both.sum(axis=0))
    seen = both > 0
    return float((both[seen] * np.log(both[seen] / apart[seen])).sum())


def smoothed(counts: Floats) -> Floats:
    """Chances of values; one imaginary record is spread evenly, so that none is impossible."""
    shares: Floats = (counts + 1 / len(counts)) / (counts.sum() + 1)
    return shares
