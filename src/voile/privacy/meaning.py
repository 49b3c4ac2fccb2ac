"""Statistical difference and meaningfulness (VLDB 2007, Definitions 3.1 and 3.2), exactly.

For domains so small that every table and every query can be listed. An algorithm is given by
its law: for a table, a set of tuples 0 … m−1, the chance of every view, as fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

from voile.errors import UsageError
from voile.privacy.boundary import QUERY_SPREAD

__all__ = [
    "Distribution", "Law", "Meaning", "Tuples", "alphabeta_law", "constant_law", "identity_law",
    "meaning", "replacement_law", "statistical_difference",
]  # fmt: skip

Tuples = frozenset[int]
"""A table without repetitions: which tuples of a small domain it has."""
Distribution = dict[Hashable, Fraction]
"""What may be published, each with its exact chance."""
Law = Callable[[Tuples], Distribution]
"""A mechanism: from a table to the distribution of what it publishes."""

TOLD_APART = Fraction(1, 2)
"""A query with a statistical difference below this counts as lost."""
MEANINGLESS_SHARE = Fraction(2, 3)
MOST_TUPLES = 12


def statistical_difference(
    left: Mapping[Hashable, Fraction], right: Mapping[Hashable, Fraction]
) -> Fraction:
    """Σ |Pr_A(V) − Pr_B(V)|: 0 where both are the same, 2 where no view has both (Def. 3.1)."""
    views = left.keys() | right.keys()
    nothing = Fraction(0)
    return sum((abs(left.get(v, nothing) - right.get(v, nothing)) for v in views), nothing)


def mixture(laws: Iterable[Distribution]) -> Distribution:
    """The view of a table drawn evenly from several, from their laws."""
    found: Distribution = {}
    count = 0
    for law in laws:
        count += 1
        for view, chance in law.items():
            found[view] = found.get(view, Fraction(0)) + chance
    return {view: chance / count for view, chance in found.items()}


@dataclass(frozen=True)
class Meaning:
    """How well a release answers the queries of Definition 3.2, query by query."""

    differences: tuple[Fraction, ...]
    """SD between 'all records meet the query' and 'none does', for every query."""

    @property
    def told_apart(self) -> Fraction:
        """The share of queries with a statistical difference of 1/2 or more."""
        far = sum(difference >= TOLD_APART for difference in self.differences)
        return Fraction(far, len(self.differences))

    @property
    def meaningful(self) -> bool:
        """Whether fewer than two thirds of the queries are lost."""
        return 1 - self.told_apart < MEANINGLESS_SHARE

    @property
    def mean_difference(self) -> Fraction:
        """The mean statistical difference over all queries."""
        return sum(self.differences, Fraction(0)) / len(self.differences)


def meaning(law: Law, domain_size: int, rows: int, spread: Fraction = QUERY_SPREAD) -> Meaning:
    """Definition 3.2 on a domain of `domain_size` tuples, for sets of `rows` of them.

    Of the queries with (1−f)/2 ≤ |Q|/m ≤ (1+f)/2 those count for which both cases exist: the query
    and its complement hold `rows` tuples. On large domains these are all.
    """
    if domain_size > MOST_TUPLES:
        raise UsageError(
            f"{domain_size} tuples are too many to list all tables and queries",
            hint=f"use at most {MOST_TUPLES}",
        )
    laws = {
        frozenset(table): law(frozenset(table)) for table in combinations(range(domain_size), rows)
    }
    given: dict[Tuples, Distribution] = {}

    def inside(query: Tuples) -> Distribution:
        if query not in given:
            given[query] = mixture(laws[frozenset(t)] for t in combinations(sorted(query), rows))
        return given[query]

    everything = frozenset(range(domain_size))
    found = tuple(
        statistical_difference(inside(query), inside(everything - query))
        for query in large_queries(domain_size, rows, spread)
    )
    if not found:
        raise UsageError(
            f"no query on {domain_size} tuples can hold {rows} rows, and its complement too",
            hint="use a larger domain, or fewer rows",
        )
    return Meaning(found)


def large_queries(domain_size: int, rows: int, spread: Fraction) -> Iterator[Tuples]:
    """Every set of tuples that Definition 3.2 is about."""
    low, high = (1 - spread) / 2 * domain_size, (1 + spread) / 2 * domain_size
    for size in range(rows, domain_size - rows + 1):
        if low <= size <= high:
            yield from map(frozenset, combinations(range(domain_size), size))


# ---------------------------------------------------------------------- laws of some algorithms


def alphabeta_law(domain_size: int, retention: Fraction, noise: Fraction) -> Law:
    """The αβ algorithm on sets: members are published with one chance, others with another."""

    def law(table: Tuples) -> Distribution:
        chances = [retention if t in table else noise for t in range(domain_size)]
        found: Distribution = {}
        for published in product((False, True), repeat=domain_size):
            chance = Fraction(1)
            for shown, p in zip(published, chances, strict=True):
                chance *= p if shown else 1 - p
            found[published] = chance
        return found

    return law


def replacement_law(domain_size: int, retention: Fraction) -> Law:
    """FRAPP: each record stays with a chance, else is replaced by any tuple; a view is a bag."""

    def law(table: Tuples) -> Distribution:
        other = (1 - retention) / domain_size
        found: Distribution = {}
        for published in product(range(domain_size), repeat=len(table)):
            chance = Fraction(1)
            for record, shown in zip(sorted(table), published, strict=True):
                chance *= retention + other if shown == record else other
            view = tuple(sorted(published))
            found[view] = found.get(view, Fraction(0)) + chance
        return found

    return law


def identity_law(table: Tuples) -> Distribution:
    """The table itself: of all use, and of no privacy."""
    return {table: Fraction(1)}


def constant_law(table: Tuples) -> Distribution:  # noqa: ARG001  (that is the point)
    """The same view for every table: of all privacy, and of no use."""
    return {"nothing": Fraction(1)}
