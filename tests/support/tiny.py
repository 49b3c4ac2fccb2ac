"""Mechanisms over tiny domains in exact fractions, and the definitions of promises on them.

Nothing here uses the formulas under test: every promise is checked by listing tables, views and
adversaries, with Bayes' rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from voile.privacy.guarantee import DGamma, Guarantee
from voile.privacy.guarantees import (
    Amplification,
    Breach,
    DeltaT,
    Dp,
    Indistinguishable,
    Relative,
    SBreach,
)

Law = list[Fraction]
"""The chance of each view."""
Table = frozenset[int]
SLACK = 1 + Fraction(1, 10**9)
"""Parameters are floats: a bound may be missed by rounding, and by no more."""


@dataclass(frozen=True)
class Tiny:
    """The law of the view for every set of tuples of a domain of `size`."""

    size: int
    laws: dict[Table, Law]

    @property
    def pairs(self) -> Iterator[tuple[Law, Law]]:
        """With a record and without it, for every record and every rest of the table."""
        for table, law in self.laws.items():
            for t in set(range(self.size)) - table:
                yield self.laws[table | {t}], law

    @property
    def families(self) -> Iterator[list[Law]]:
        """One person's possible records, for every rest of the table."""
        for table in self.laws:
            outside = set(range(self.size)) - table
            if len(outside) > 1:
                yield [self.laws[table | {t}] for t in sorted(outside)]

    @property
    def low(self) -> Fraction:
        return min(a / b for pair in self.pairs for a, b in zip(*pair, strict=True))

    @property
    def high(self) -> Fraction:
        return max(a / b for pair in self.pairs for a, b in zip(*pair, strict=True))

    @property
    def swap(self) -> Fraction:
        return max(
            a[v] / b[v] for some in self.families for a in some for b in some for v in views(a)
        )


def views(law: Law) -> range:
    return range(len(law))


def tables(size: int) -> list[Table]:
    return [frozenset(c) for k in range(size + 1) for c in combinations(range(size), k)]


def random_law(rng: np.random.Generator, count: int) -> Law:
    weights = [Fraction(int(w)) for w in rng.integers(1, 12, count)]
    return [w / sum(weights) for w in weights]


def random_tiny(rng: np.random.Generator, size: int = 2, count: int = 3) -> Tiny:
    """Any mechanism at all: the law of each table has nothing to do with that of another."""
    return Tiny(size, {table: random_law(rng, count) for table in tables(size)})


def alphabeta(a: Fraction, beta: Fraction, size: int = 2) -> Tiny:
    """The set form: each tuple's presence is told by itself."""
    shown = list(product((0, 1), repeat=size))

    def law(table: Table) -> Law:
        keep = [a if t in table else beta for t in range(size)]
        return [
            math.prod(
                (k if v else 1 - k for k, v in zip(keep, view, strict=True)), start=Fraction(1)
            )
            for view in shown
        ]

    return Tiny(size, {table: law(table) for table in tables(size)})


def reporter(a: Fraction, beta: Fraction) -> Tiny:
    """Tells of the first of two tuples only."""
    return Tiny(2, {t: [a, 1 - a] if 0 in t else [beta, 1 - beta] for t in tables(2)})


@dataclass(frozen=True)
class Local:
    """Each record is perturbed by itself: the law of what is published for each value."""

    rows: list[Law]

    @property
    def families(self) -> Iterator[list[Law]]:
        """One person's possible records, alone and beside a second person's record."""
        yield self.rows
        for other in self.rows:
            yield [[x * y for x in law for y in other] for law in self.rows]

    @property
    def swap(self) -> Fraction:
        return max(a[v] / b[v] for a in self.rows for b in self.rows for v in views(a))


def random_local(rng: np.random.Generator, values: int = 3) -> Local:
    return Local([random_law(rng, values) for _ in range(values)])


def retention(p: Fraction, replacing: Law) -> Local:
    """Keep a value with chance p, else replace it."""
    n = len(replacing)
    return Local([[(1 - p) * replacing[y] + p * (x == y) for y in range(n)] for x in range(n)])


# ---------------------------------------------------------------------- the definitions


def holds(guarantee: Guarantee, mechanism: Tiny | Local) -> bool:  # noqa: PLR0911
    """Whether the mechanism keeps the guarantee, by its definition."""
    match guarantee:
        case DGamma():
            assert isinstance(mechanism, Tiny)
            return d_gamma_holds(guarantee, mechanism)
        case Relative(d=d, delta=delta):
            assert isinstance(mechanism, Tiny)
            most = exp(delta)
            return all(
                1 / most <= after / before <= most
                for before, after in beliefs(mechanism, Fraction(d))
            )
        case Dp(epsilon=epsilon, unit="add-remove"):
            assert isinstance(mechanism, Tiny)
            return all(within(a, b, exp(epsilon)) for a, b in mechanism.pairs)
        case Dp(epsilon=epsilon) | Indistinguishable(epsilon=epsilon):
            most = exp(epsilon)
            return all(within(a, b, most) for f in mechanism.families for a in f for b in f)
        case Breach(about="presence"):
            assert isinstance(mechanism, Tiny)
            return all(no_breach(guarantee, [a, b]) for a, b in mechanism.pairs)
        case Breach():
            return all(no_breach(guarantee, family) for family in mechanism.families)
        case DeltaT(delta=delta, about=about):
            families = mechanism.families
            if about == "presence":
                assert isinstance(mechanism, Tiny)
                families = ([a, b] for a, b in mechanism.pairs)
            return all(
                odds(after) <= odds(before) * exp(delta)
                for family in families
                for prior in (Fraction(1, 100), Fraction(1, 2), Fraction(9, 10))
                for before, after in properties(family, prior)
            )
        case Amplification(gamma=gamma):
            assert isinstance(mechanism, Local)
            most = Fraction(gamma) * SLACK
            return all(within(a, b, most) for a in mechanism.rows for b in mechanism.rows)
    raise AssertionError(guarantee)


def exp(x: float) -> Fraction:
    return Fraction(math.exp(x)) * SLACK


def odds(p: Fraction) -> Fraction:
    return p / (1 - p)


def within(a: Law, b: Law, most: Fraction) -> bool:
    return all(x <= most * y and y <= most * x for x, y in zip(a, b, strict=True))


def d_gamma_holds(promise: DGamma, mechanism: Tiny) -> bool:
    d, gamma = Fraction(promise.prior), Fraction(promise.posterior) * SLACK
    alone = all(d / gamma * before <= after <= gamma for before, after in beliefs(mechanism, d))
    if promise.adversary == "independent" or not alone:
        return alone
    return all(
        after <= gamma
        for family in mechanism.families
        for before, after in properties(family, d, singles=True)
        if before <= d
    )


def beliefs(mechanism: Tiny, d: Fraction) -> Iterator[tuple[Fraction, Fraction]]:
    """Prior and posterior of one record, for independent adversaries with priors up to d."""
    others = product((Fraction(0), Fraction(1), d), repeat=mechanism.size - 1)
    for rest, prior in product(list(others), (d, d / 2, d / 10**10)):
        for t in range(mechanism.size):
            priors = [*rest[:t], prior, *rest[t:]]
            yield from ((prior, after) for after in posteriors(mechanism, priors, t))


def posteriors(mechanism: Tiny, priors: list[Fraction], t: int) -> Iterator[Fraction]:
    for v in views(mechanism.laws[frozenset()]):
        present, total = Fraction(0), Fraction(0)
        for table, law in mechanism.laws.items():
            chance = law[v]
            for s, p in enumerate(priors):
                chance *= p if s in table else 1 - p
            total += chance
            present += chance if t in table else 0
        yield present / total


def properties(
    family: list[Law], prior: Fraction, *, singles: bool = False
) -> Iterator[tuple[Fraction, Fraction]]:
    """Prior and posterior of properties of a record: every set of its values.

    A set has `prior`, on one of its values or spread over it; so has the rest of the values.
    """
    n = len(family)
    sizes = [1] if singles else range(1, n)
    for chosen in (set(c) for k in sizes for c in combinations(range(n), k)):
        rest = set(range(n)) - chosen
        for inside, outside in product(spreads(chosen), spreads(rest)):
            for v in views(family[0]):
                yes = prior * sum(w * family[x][v] for x, w in inside.items())
                no = (1 - prior) * sum(w * family[x][v] for x, w in outside.items())
                yield prior, yes / (yes + no)


def spreads(values: set[int]) -> list[dict[int, Fraction]]:
    even = {x: Fraction(1, len(values)) for x in values}
    return [even, *({x: Fraction(1)} for x in values)]


def no_breach(breach: Breach, family: list[Law]) -> bool:
    rho1, rho2 = Fraction(breach.rho1), Fraction(breach.rho2)
    upward = all(after <= rho2 * SLACK for _, after in properties(family, rho1))
    downward = all(after * SLACK >= rho1 for _, after in properties(family, rho2))
    return upward and downward


def no_s_breach(breach: SBreach, p: Fraction, replacing: Law) -> bool:
    """Definition 5 for retention replacement: every set, priors that make it rare enough."""
    local = retention(p, replacing)
    n = len(replacing)
    for chosen in (set(c) for k in range(1, n) for c in combinations(range(n), k)):
        share = sum((replacing[x] for x in chosen), Fraction(0))
        for prior in (Fraction(breach.rho1), Fraction(breach.rho1) / 3):
            if prior / share >= Fraction(breach.s):
                continue
            for inside, outside in product(spreads(chosen), spreads(set(range(n)) - chosen)):
                yes = prior * sum(w * local.rows[x][y] for x, w in inside.items() for y in chosen)
                no = (1 - prior) * sum(
                    w * local.rows[x][y] for x, w in outside.items() for y in chosen
                )
                if yes / (yes + no) > Fraction(breach.rho2) * SLACK:
                    return False
    return True
