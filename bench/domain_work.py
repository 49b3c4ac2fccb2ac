"""Counting a condition on the public domain: ours, and the ways beside it."""

from __future__ import annotations

import importlib
import itertools
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import duckdb
import numpy as np

from voile.engines.duckdb.domain import Domain
from voile.query.domain import DomainSums
from voile.query.predicate import And, Atom, Or, Predicate, Term
from voile.query.text import read_back
from voile.schema import Attribute, Range, Schema

CLAUSES = 20
Sides = list[dict[str, tuple[int, int]]]
"""A DNF: for each clause the interval of each attribute that it reads."""


def schema_of(names: str, size: int) -> Schema:
    """Integer attributes with these names, each of the values 1 … size."""
    return Schema(tuple(Attribute(name, "integer", Range(1, size)) for name in names))


def clauses(size: int) -> Sides:
    """Twenty clauses, each two thirds of the values of four of six attributes: they overlap."""
    rng = np.random.default_rng(20)
    found: Sides = []
    for _ in range(CLAUSES):
        chosen = sorted(rng.choice(list("abcdef"), 4, replace=False))
        low = rng.integers(1, size // 3 + 1, 4)
        found.append(
            {n: (int(i), int(i) + 2 * size // 3 - 1) for n, i in zip(chosen, low, strict=True)}
        )
    return found


def predicate(case: str, size: int) -> tuple[str, Predicate]:
    """The attributes of a case, and its condition."""

    def atom(sql: str) -> Atom:
        return Atom(read_back(sql), tuple(sorted({c for c in sql if c.isalpha()})))

    if case == "chain":
        return "abcd", And((atom("a < b"), atom("b < c"), atom("c < d")))
    if case == "pair":
        return "ab", atom("a < b")
    if case == "sum":
        return "abcde", atom("a + b + c + d + e < 100")
    parts = [
        And(
            tuple(Atom(read_back(f"{n} BETWEEN {i} AND {j}"), (n,)) for n, (i, j) in clause.items())
        )
        for clause in clauses(size)
    ]
    return "abcdef", Or(tuple(parts))


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """How long a call takes, and what it gives."""
    start = time.perf_counter()
    value = call()
    return time.perf_counter() - start, value


def ours(case: str, size: int) -> dict[str, Any]:
    """A new query, in a process that has answered another."""
    best, count = math.inf, 0
    for warm_up in (True, False, False, False):
        names, condition = predicate(case, size - 1 if warm_up else size)
        schema = schema_of(names, size - 1 if warm_up else size)
        sums = DomainSums(schema, Domain(duckdb.connect(), schema))
        took, count = seconds(partial(total, sums, Term(condition)))
        best = best if warm_up else min(best, took)
    return {"seconds": best, "count": count}


def total(sums: DomainSums, term: Term) -> int | float:
    """The number of tuples of the domain that a term counts."""
    return sums.sums([term])[0].total


def sql_of(part: Predicate) -> str:
    """The condition as SQL."""
    if isinstance(part, Atom):
        return part.canonical
    word = " AND " if isinstance(part, And) else " OR "
    return "(" + word.join(map(sql_of, part.parts)) + ")"


def cross_join(case: str, size: int) -> dict[str, Any]:
    """DuckDB, planning as it likes, on the tables of the values."""
    names, condition = predicate(case, size)
    con = duckdb.connect()
    for name in names:
        con.execute(f"CREATE TABLE t{name} AS SELECT range + 1 AS {name} FROM range({size})")
    tables = ", ".join(f"t{name}" for name in names)
    sql = f"SELECT count(*) FROM {tables} WHERE {sql_of(condition)}"
    took, rows = seconds(lambda: con.execute(sql).fetchall())
    return {"seconds": took, "count": rows[0][0]}


def inclusion_exclusion(case: str, size: int) -> dict[str, Any]:
    """The DNF's clauses by inclusion and exclusion; subsets without common tuples are cut off."""
    assert case == "dnf"
    names, _ = predicate(case, size)
    took, count = seconds(lambda: included(clauses(size), names, size))
    return {"seconds": took, "count": count}


def included(sides: Sides, names: str, size: int) -> int:
    """Σ over non-empty sets of clauses of ±|their intersection|, depth first."""
    boxes = [[clause.get(name, (1, size)) for name in names] for clause in sides]
    total = 0
    stack = [(0, 1, [(1, size)] * len(names))]
    while stack:
        start, sign, box = stack.pop()
        for number in range(start, len(boxes)):
            pairs = zip(box, boxes[number], strict=True)
            smaller = [(max(a, c), min(b, d)) for (a, b), (c, d) in pairs]
            if all(low <= high for low, high in smaller):
                total += sign * math.prod(high - low + 1 for low, high in smaller)
                stack.append((number + 1, -sign, smaller))
    return total


# ---------------------------------------------------------------------- decision diagrams


def diagram(case: str, size: int) -> dict[str, Any]:
    """A binary decision diagram over the bits of the values, which are interleaved (dd, CUDD)."""
    try:
        dd = importlib.import_module("dd.cudd")
    except ImportError:
        return {"seconds": None, "count": None}
    names, _ = predicate(case, size)
    bdd = dd.BDD()
    took, count = seconds(lambda: Diagram(bdd, names, size).count(case))
    return {"seconds": took, "count": count}


class Diagram:
    """Conditions on numbers of so many bits, built bit by bit."""

    def __init__(self, bdd: Any, names: str, size: int) -> None:
        self.bdd, self.names, self.size = bdd, names, size
        self.width = size.bit_length()
        for bit, name in itertools.product(reversed(range(self.width)), names):
            bdd.declare(f"{name}{bit}")

    def count(self, case: str) -> int:
        """How many tuples meet the condition of a case."""
        found = self.condition(case)
        for name in self.names:
            found &= self.at_least(self.bits(name), 1) & self.at_most(self.bits(name), self.size)
        return int(self.bdd.count(found, nvars=len(self.names) * self.width))

    def condition(self, case: str) -> Any:
        """The diagram of a case's condition."""
        if case in ("chain", "pair"):
            found = self.bdd.true
            for one, other in itertools.pairwise(self.names):
                found &= self.less(self.bits(one), self.bits(other))
            return found
        if case == "sum":
            total = self.bits(self.names[0])
            for name in self.names[1:]:
                total = self.plus(total, self.bits(name))
            return self.at_most(total, 99)
        found = self.bdd.false
        for clause in clauses(self.size):
            inner = self.bdd.true
            for name, (low, high) in clause.items():
                inner &= self.at_least(self.bits(name), low) & self.at_most(self.bits(name), high)
            found |= inner
        return found

    def bits(self, name: str) -> list[Any]:
        """Lowest first."""
        return [self.bdd.var(f"{name}{bit}") for bit in range(self.width)]

    def differ(self, one: Any, other: Any) -> Any:
        """Whether two bits differ."""
        return self.bdd.apply("xor", one, other)

    def less(self, one: list[Any], other: list[Any]) -> Any:
        """Whether one number is below another."""
        found = self.bdd.false
        for a, b in zip(one, other, strict=True):
            found = (~a & b) | (~self.differ(a, b) & found)
        return found

    def at_most(self, bits: list[Any], limit: int) -> Any:
        """Whether a number is at most a limit."""
        found = self.bdd.true
        for place, bit in enumerate(bits):
            found = (~bit | found) if limit >> place & 1 else (~bit & found)
        return found if limit < 2 ** len(bits) else self.bdd.true

    def at_least(self, bits: list[Any], limit: int) -> Any:
        """Whether a number is at least a limit."""
        return ~self.at_most(bits, limit - 1)

    def plus(self, one: list[Any], other: list[Any]) -> list[Any]:
        """The bits of a sum."""
        longer = one + [self.bdd.false] * (len(other) - len(one))
        shorter = other + [self.bdd.false] * (len(one) - len(other))
        carry, total = self.bdd.false, []
        for a, b in zip(longer, shorter, strict=True):
            half = self.differ(a, b)
            total.append(self.differ(half, carry))
            carry = (a & b) | (carry & half)
        return [*total, carry]
