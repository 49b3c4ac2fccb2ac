"""Sums over the domain: every way of computing them against brute force on small domains."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import product
from random import Random
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.soak import rounds
from tests.support.trees import atom_of, expression_of
from voile.engines.duckdb.domain import Domain
from voile.engines.duckdb.rendering import as_double, condition_sql, guarded
from voile.engines.encode import ARROW
from voile.errors import QueryError
from voile.query.domain import DomainSums, Weights, component_sum
from voile.query.domain import prepare as intervals
from voile.query.predicate import And, Atom, Expression, Or, Predicate, Term
from voile.schema import Attribute, Bins, Range, Schema, Values

# ---------------------------------------------------------------------- small schemas, listed

ALL = (
    Attribute("i", "integer", Range(-2, 3)),
    Attribute("j", "integer", Values((5, 0, 1)), null=True),
    Attribute("k", "integer", Range(0, 2), null=True),
    Attribute("s", "categorical", Values(("x", "zz", "y", "é"))),
    Attribute("t", "categorical", Values(("y", "x")), null=True),
    Attribute("b", "boolean", Values((False, True)), null=True),
    Attribute("c", "boolean", Values((True,)), null=True),
    Attribute("d", "date", Range(dt.date(2024, 2, 28), dt.date(2024, 3, 2))),
    Attribute("e", "date", Values((dt.date(2024, 3, 1), dt.date(2023, 1, 1))), null=True),
    Attribute("u", "numeric", Bins((0.0, 1.0, 2.5, 4.0))),
    Attribute("v", "numeric", Values((0.1, 0.2, 1.75)), null=True),
    Attribute('we ird"', "integer", Range(7, 9)),
)
CHOSEN = ["ijksb", "ijku", "std", "debi", "uvij", "stbc", "ikdc", "juvw", "ijkw", "bctek"]


@dataclass(frozen=True)
class Listed:
    """A schema, its engine, and its domain as a table."""

    schema: Schema
    engine: Domain
    con: duckdb.DuckDBPyConnection
    codes: dict[str, npt.NDArray[np.int64]]

    def columns(self, expressions: list[str]) -> list[Any]:
        asked = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(expressions))
        table = self.con.sql(f"SELECT {asked} FROM listed ORDER BY place").to_arrow_table()
        return [column.combine_chunks() for column in table.columns]


def listed(schema: Schema) -> Listed:
    con = duckdb.connect(config={"threads": 1})
    con.execute("SET disabled_optimizers = 'common_subexpressions'")  # they fail outside of TRY
    every = list(product(*schema))
    columns = {
        a.name: pa.array([t[i] for t in every], type=ARROW[a.kind]) for i, a in enumerate(schema)
    }
    con.register("incoming", pa.table(columns | {"place": np.arange(len(every))}))
    con.execute("CREATE TABLE listed AS SELECT * FROM incoming")
    grid = np.unravel_index(np.arange(len(every)), schema.sizes)
    codes = {a.name: g for a, g in zip(schema, grid, strict=True)}
    return Listed(schema, Domain(duckdb.connect(config={"threads": 1}), schema), con, codes)


@cache
def schemas() -> list[Listed]:
    return [listed(Schema(tuple(a for a in ALL if a.name[0] in chosen))) for chosen in CHOSEN]


# ---------------------------------------------------------------------- random questions

INTEGERS, TEXTS, DATES, DOUBLES = ["i", "j", "k", 'we ird"'], ["s", "t"], ["d", "e"], ["u", "v"]
OPERATORS = ["=", "<>", "<", "<=", ">", ">="]
FORMS = [
    (INTEGERS, "integer", ["{0}", "{0}", "2 * {0}", "{0} % 2", "abs({0})", "-{0}", "7 // {0}"]),
    (INTEGERS, "integer", ["CAST({0} * 20 AS TINYINT)", "{0} * 4611686018427387904"]),
    (TEXTS, "integer", ["length({0})"]),
    (DATES, "integer", ["day({0})"]),
    (DOUBLES, "double", ["{0}", "{0}", "{0} * 2", "sqrt({0} - CAST(0.2 AS DOUBLE))", "ln({0})"]),
    (TEXTS, "text", ["{0}", "{0}", "upper({0})", "{0} || 'q'"]),
    (DATES, "date", ["{0}", "{0} + 1"]),
    (["b", "c"], "boolean", ["{0}", "NOT {0}"]),
]
CONSTANTS = {
    "integer": ["-1", "0", "1", "3", "NULL"],
    "double": ["CAST(0.5 AS DOUBLE)"],
    "text": ["'x'", "'y'"],
    "date": ["DATE '2024-02-29'", "'2024-03-01'"],
    "boolean": ["TRUE", "FALSE", "NULL = 1", "1 < 2"],
}
COUNT = 250
"""Atoms for each schema; what DuckDB cannot bind is the business of who parses."""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass
class Writer:
    """Writes SQL on the attributes of a schema."""

    listed: Listed
    random: Random

    def terms(self, kind: str) -> list[str]:
        """All forms on one attribute that have a type."""
        names = self.listed.schema.names
        return [
            form.format(quoted(name))
            for owners, made, forms in FORMS
            for name in owners
            for form in forms
            if made == kind and name in names
        ]

    def number(self) -> str:
        if {"d", "e"} <= set(self.listed.schema.names) and self.random.random() < 0.2:
            return '("d" - "e")'
        kind = self.random.choice(["integer", "integer", "double"])
        constants = CONSTANTS[kind] if self.random.random() < 0.3 else []
        return self.random.choice(constants or self.terms(kind) or CONSTANTS["integer"])

    def sum(self) -> str:
        joined = self.random.choice([" + ", " + ", " - ", " + 2 - ", " * "])
        inner = self.number() if self.random.random() < 0.6 else f"({self.sum()})"
        return inner + joined + self.number()

    def atom(self) -> str:
        kind = self.random.choice(["integer", "double", "text", "date", "boolean", "sum", "sum"])
        if kind == "sum":
            sides = [self.sum(), self.random.choice([self.number, self.sum])()]
        elif kind in ("integer", "double"):
            sides = [self.number(), self.number()]
        else:
            texts = self.terms(kind) or ["TRUE"]
            sides = [self.random.choice(texts), self.random.choice(texts + CONSTANTS[kind])]
        operator = self.random.choice([*OPERATORS * 3, "IS DISTINCT FROM"])
        sql = f"{sides[0]} {operator} {sides[1]}"
        sql = self.random.choice([sql] * 8 + [f"{sides[0]} IS NULL", f"{sides[1]} IS NOT NULL"])
        sql = self.random.choice([sql] * 9 + ["TRUE", "FALSE", "NULL = 1", *self.terms("boolean")])
        return self.random.choice([sql, sql, f"NOT ({sql})"])

    def bound(self, write: Callable[[], str], count: int) -> list[Expression]:
        """So many that DuckDB can bind."""
        found: list[Expression] = []
        while len(found) < count:
            sql = write()
            try:
                self.listed.con.sql(f"SELECT TRY({sql}) FROM listed LIMIT 0")
            except duckdb.Error:
                continue
            names = self.listed.schema.names
            found.append(expression_of(sql, tuple(n for n in names if quoted(n) in sql)))
        return found

    def key(self) -> str:
        kinds = ["integer", "text", "boolean", "date", "double"]
        return self.random.choice(
            [term for kind in kinds for term in self.terms(kind)] + ["1", self.sum(), self.sum()]
        )

    def value(self) -> str:
        return self.random.choice([self.number(), self.number(), self.sum()])


@dataclass(frozen=True)
class Question:
    listed: Listed
    term: Term
    groups: tuple[Expression, ...]
    weights: Weights | None


@cache
def questions(*, joint: bool) -> st.SearchStrategy[Question]:
    return st.one_of(*(questions_on(one, seed, joint) for seed, one in enumerate(schemas())))


def questions_on(one: Listed, seed: int, joint: bool) -> st.SearchStrategy[Question]:
    """Questions with atoms on several attributes more often than not, or never."""
    writer = Writer(one, Random(seed))  # noqa: S311
    atoms = [Atom(e.node, e.attributes) for e in writer.bound(writer.atom, COUNT)]
    wanted = [atom for atom in atoms if (len(atom.attributes) > 1) is joint]
    values = st.sampled_from(writer.bound(writer.value, 40))
    keys = st.sampled_from(writer.bound(writer.key, 40))
    predicates: st.SearchStrategy[Predicate] = st.recursive(
        st.one_of(st.sampled_from(atoms if joint else wanted), st.sampled_from(wanted)),
        lambda inner: st.builds(
            lambda kind, parts: kind(tuple(parts)),
            st.sampled_from([And, Or]),
            st.lists(inner, min_size=2, max_size=4),
        ),
        max_leaves=8 if joint else 14,
    )
    few = st.sampled_from([0, 0, 1, 2])
    return st.builds(
        Question,
        st.just(one),
        st.builds(
            Term,
            st.one_of(predicates, predicates, predicates, st.none()),
            few.flatmap(lambda n: st.tuples(*[values] * n)),
        ),
        st.sampled_from([0, 0, 1, 2, 3]).flatmap(lambda n: st.tuples(*[keys] * n)),
        st.one_of(st.none(), st.integers(0, 999).map(lambda n: random_weights(one.schema, n))),
    )


def random_weights(schema: Schema, seed: int) -> Weights:
    rng = np.random.default_rng(seed)
    batch = int(rng.integers(1, 4))
    chosen = [a for a in schema if rng.random() < 0.7]
    tables = {a.name: rng.random((batch, a.size)) * rng.integers(0, 2, a.size) for a in chosen}
    return Weights(rng.random(batch), tables)


# ---------------------------------------------------------------------- brute force


def tuple_values(question: Question) -> npt.NDArray[np.float64]:
    """1[predicate] · Π values · weight on each tuple of the listed domain."""
    predicate, values = question.term.predicate, question.term.values
    condition = condition_sql(predicate)
    asked = [f"coalesce({condition}, false)"]
    asked += [f"coalesce({as_double(v)}, 0)" for v in values]
    columns = [c.cast(pa.float64()).to_numpy() for c in question.listed.columns(asked)]
    result = np.prod([np.where(np.isfinite(c), c, 0) for c in columns], axis=0)
    if question.weights is None:
        return np.asarray(result)
    weight = question.weights.mix[:, None] * np.ones(len(result))
    for name, table in question.weights.tables.items():
        weight = weight * table[:, question.listed.codes[name]]
    return np.asarray(result * weight.sum(axis=0))


def check(question: Question, sums: DomainSums) -> None:
    truth = tuple_values(question)
    (found,) = sums.sums([question.term], question.groups, question.weights)
    scale = max(1e-300, float(np.abs(truth).sum()))
    if not question.groups:
        assert abs(found.total - truth.sum()) <= 1e-12 * scale
        assert found.error == 0
        if question.weights is None and not question.term.values:
            assert isinstance(found.total, int) and found.total == int(truth.sum())
        return
    columns = question.listed.columns(list(map(guarded, question.groups)))
    codes = []
    for column, keys in zip(columns, found.keys, strict=True):
        values = column.to_pylist()
        assert {repr(v) for v in values} == {repr(key) for key in keys}
        place = {repr(key): i for i, key in enumerate(keys)}
        codes.append(np.array([place[repr(v)] for v in values]))
    sizes = [len(keys) for keys in found.keys]
    cells = np.ravel_multi_index(codes, sizes)
    expected = np.bincount(cells, truth, int(np.prod(sizes)))
    every = np.unravel_index(np.arange(len(expected)), sizes)
    made = found.at(every)
    assert np.abs(made - expected).max() <= 1e-12 * scale
    assert not found.errors_at(every).any()


WAYS: dict[str, dict[Any, Any]] = {
    "as it is": {},
    "intervals": {(intervals, "LONG"): 0},
    "elimination": {(component_sum, "GRID"): 0, (component_sum, "TINY"): 0},
    "contraction": {
        (component_sum, "GRID"): 0,
        (component_sum, "TINY"): 0,
        (component_sum, "walked"): lambda *_: None,
        (component_sum, "eliminate"): lambda *_: [],
    },
    "a grid": {(component_sum, "TINY"): 0, (component_sum, "eliminate"): lambda *_: []},
    "enumeration": {
        (component_sum, "GRID"): 7,
        (component_sum, "TINY"): 0,
        (component_sum, "walked"): lambda *_: None,
        (component_sum, "networked"): lambda *_: None,
    },
}


@contextmanager
def only(way: str) -> Iterator[None]:
    """Thresholds lowered, so that small questions go this way, too."""
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), value in WAYS[way].items():
            patch.setattr(module, name, value)
        yield


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=rounds(30, 350))
@given(question=st.deferred(lambda: questions(joint=True)))
def test_every_way_equals_brute_force(way: str, question: Question) -> None:
    with only(way):
        check(question, DomainSums(question.listed.schema, question.listed.engine))


@pytest.mark.parametrize("way", ["intervals", "elimination"])
@settings(max_examples=rounds(25, 250))
@given(question=st.deferred(lambda: questions(joint=False)))
def test_atoms_on_one_attribute_equal_brute_force(way: str, question: Question) -> None:
    with only(way):
        check(question, DomainSums(question.listed.schema, question.listed.engine))


def test_more_clauses_than_a_machine_word_has_bits() -> None:
    schema = numbers_schema(9, 5)
    rng = np.random.default_rng(3)
    clauses = [
        And(
            tuple(
                atom_of(f'"{c}" = {rng.integers(1, 10)}', (c,))
                for c in rng.permutation([*"abcde"])[:3]
            )
        )
        for _ in range(150)
    ]
    question = Question(listed(schema), Term(Or(tuple(clauses))), (), None)
    with only("elimination"):
        check(question, DomainSums(schema, question.listed.engine))


# ---------------------------------------------------------------------- large, with known answers


def numbers_schema(size: int, count: int) -> Schema:
    return Schema(tuple(Attribute(c, "integer", Range(1, size)) for c in "abcdefgh"[:count]))


def atom(sql: str) -> Atom:
    """An atom on attributes of one letter."""
    names = sorted(set(re.findall(r"\b[a-h]\b", sql)))
    return atom_of(re.sub(r"\b([a-h])\b", r'"\1"', sql), tuple(names))


def every(*sqls: str) -> Predicate:
    return And(tuple(map(atom, sqls)))


def some(*parts: Predicate) -> Predicate:
    return Or(parts)


def sums_of(schema: Schema, **options: Any) -> DomainSums:
    return DomainSums(schema, Domain(duckdb.connect(), schema), **options)


C = math.comb
KNOWN: dict[str, tuple[int, int, Predicate, int, str]] = {
    "pair": (10**6, 2, every("a < b"), C(10**6, 2), "elimination"),
    "equal": (10**6, 2, every("2 * a = b"), 500_000, "elimination"),
    "chain": (1000, 4, every("a < b", "b < c", "c < d"), C(1000, 4), "elimination"),
    "triangle": (300, 3, every("a < b", "b < c", "a < c"), C(300, 3), "contraction"),
    "sum": (1000, 5, every("a + b + c + d + e < 100"), C(99, 5), "elimination"),
    "difference": (
        1000,
        3,
        every("a - b > c"),
        C(1000, 3) + C(1000, 2) - C(1000, 2),
        "elimination",
    ),
    "either": (
        5000,
        3,
        some(atom("a < b"), atom("c = 1")),
        C(5000, 2) * 5000 + C(5001, 2),
        "contraction",
    ),
    "long range": (10**12, 2, every("a > 7", "b <> 5"), (10**12 - 7) * (10**12 - 1), "product"),
    "nothing": (10**6, 3, every("a < b", "1 > 2"), 0, "elimination"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_counts(name: str) -> None:
    size, count, predicate, truth, method = KNOWN[name]
    (found,) = sums_of(numbers_schema(size, count)).sums([Term(predicate)])
    assert found.total == truth and isinstance(found.total, int) and found.exact
    assert method in {part.method for part in found.plan.parts}


def test_counts_of_any_size_are_whole_numbers() -> None:
    names = [f"x{i}" for i in range(200)]
    schema = Schema(tuple(Attribute(n, "boolean", Values((False, True))) for n in names))
    (found,) = sums_of(schema).sums([Term(atom_of('"x3" = "x5"', ("x3", "x5")))])
    assert found.total == 2**199
    (found,) = sums_of(schema).sums([Term()])
    assert found.total == 2**200


def test_a_question_without_attributes() -> None:
    schema = numbers_schema(10, 2)
    yes, no, value = atom_of("1 < 2", ()), atom_of("NULL", ()), expression_of("3", ())
    found = sums_of(schema).sums([Term(yes), Term(no), Term(yes, (value,))])
    assert [f.total for f in found] == [100, 0, 300.0]
    (grouped,) = sums_of(schema).sums([Term(yes)], [expression_of("7", ())])
    assert grouped.keys == ([7],) and grouped.at([np.array([0])]).tolist() == [100.0]


# ---------------------------------------------------------------------- what cannot be exact


def test_what_does_not_come_apart_is_sampled_with_its_error() -> None:
    schema = numbers_schema(1000, 3)
    (found,) = sums_of(schema).sums([Term(every("a * b * c < 10000000", "c > 500"))])
    a = np.arange(1, 1001)
    limits = (10**7 - 1) // np.multiply.outer(a, a)
    truth = int(np.clip(limits - 500, 0, 500).sum())
    assert found.plan.parts[0].method == "sampling"
    assert 0 < found.error < truth / 300
    assert abs(found.total - truth) < 5 * found.error
    again = sums_of(schema).sums([Term(every("a * b * c < 10000000", "c > 500"))])[0]
    assert again.total == found.total


@pytest.mark.parametrize("batch", [None, 3])
def test_sampled_groups_are_within_their_errors(batch: int | None) -> None:
    """Every way but sampling is closed: 5 errors are exceeded once in 10⁶."""
    schema = numbers_schema(20, 3)
    rng = np.random.default_rng(5)
    weights = None
    if batch:
        tables = {c: rng.random((batch, 20)) for c in "ab"}
        weights = Weights(rng.random(batch), tables)
    term = Term(
        every("a * b + c > 60"),
        (expression_of('"a" - 8', ("a",)), expression_of('"b" * "c"', ("b", "c"))),
    )
    groups = (expression_of('"a" % 3', ("a",)), expression_of('"b" + "c" > 20', ("b", "c")))
    codes = [np.repeat(np.arange(3), 2), np.tile(np.arange(2), 3)]
    (exact,) = sums_of(schema).sums([term], groups, weights)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("gridded", "walked", "networked", "enumerated"):
            patch.setattr(component_sum, name, lambda *_: None)
        (drawn,) = sums_of(schema).sums([term], groups, weights)
    assert drawn.plan.parts[0].method == "sampling" and drawn.keys == exact.keys
    errors = drawn.errors_at(codes)
    assert (errors > 0).all() and not exact.errors_at(codes).any()
    assert (np.abs(drawn.at(codes) - exact.at(codes)) < 5 * errors).all()
    assert (errors < 0.05 * np.abs(exact.at(codes)).max()).all()


def test_exact_refuses_what_would_be_sampled() -> None:
    with pytest.raises(
        QueryError, match="on a, b, c do not come apart: counting their 1,000 × "
    ) as caught:
        sums_of(numbers_schema(1000, 3), exact=True).sums([Term(every("a * b * c < 100"))])
    assert "memory=" in caught.value.hint


def test_memory_is_planned_before_it_is_used() -> None:
    schema = numbers_schema(1000, 3)
    predicate = every("a * b % 7 = 1", "b * c % 5 = 2", "a * c % 3 = 0")
    assert sums_of(schema).explain(Term(predicate)).parts[0].method == "contraction"
    with pytest.raises(QueryError, match="does not fit"):
        sums_of(schema, memory=2**20, exact=True).sums([Term(predicate)])


# ---------------------------------------------------------------------- the plan, the engine


def test_plans_can_be_read_and_stored() -> None:
    schema = numbers_schema(1000, 6)
    predicate: Predicate = And((atom("a < b"), Or((atom("b < c"), atom("d = 3"))), atom("e = 1")))
    plan = sums_of(schema).explain(Term(predicate))
    assert [part.method for part in plan.parts] == ["contraction", "product"]
    assert plan.free == ("f",)
    text = str(plan)
    assert 'where "a" < "b"' in text and "sum over" in text and "f: any value" in text
    stored = json.loads(json.dumps(plan.to_dict()))
    assert stored["parts"][0]["attributes"] == ["a", "b", "c", "d"]
    assert stored["parts"][0]["bytes"] > 0


def test_unary_conditions_cost_one_call_and_repetition_none() -> None:
    schema = numbers_schema(50, 6)
    engine = Domain(duckdb.connect(), schema)
    calls: list[str] = []
    fetch = engine._fetch

    def counted(sql: str) -> list[Any]:
        calls.append(sql)
        return fetch(sql)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_fetch", counted)
        sums = DomainSums(schema, engine)
        asked = [Term(every("a < 3", "b = 2", "c > 7")), Term(every("d < 5"))]
        first = [s.total for s in sums.sums(asked, ())]
        assert [s.total for s in sums.sums(asked, ())] == first
    assert len(calls) == 1


def test_an_expression_that_fails_on_some_values_is_null_there() -> None:
    """Also on a locked connection, where DuckDB takes what is repeated out of TRY."""
    schema = Schema(
        (Attribute("x", "integer", Range(-1, 3)), Attribute("y", "integer", Range(0, 1)))
    )
    con = duckdb.connect()
    con.execute("SET lock_configuration = true")
    engine = Domain(con, schema)
    found = engine.evaluate(
        [
            expression_of('6 // "x" + 6 // "x"', ("x",)),
            expression_of('"x" // "y" = "x" // "y"', ("x", "y")),
        ]
    )
    assert found[0].to_pylist() == [-12, None, 12, 6, 4]
    assert found[1].to_pylist() == [None, True] * 5


def test_subqueries_keep_the_order_of_the_domain() -> None:
    schema = numbers_schema(5000, 1)
    engine = Domain(duckdb.connect(), schema)
    (found,) = engine.evaluate([expression_of('"a" IN (SELECT 7 * range FROM range(100))', ("a",))])
    assert np.flatnonzero(found.to_numpy(zero_copy_only=False)).tolist() == list(range(6, 694, 7))
    with pytest.raises(QueryError, match="cannot be computed"):
        engine.evaluate([expression_of('"a" IN (SELECT no FROM nothing)', ("a",))])


def test_words_in_quotes_are_no_subqueries() -> None:
    schema = Schema((Attribute("exists", "categorical", Values(("7", "(select 1)", "it''s"))),))
    engine = Domain(duckdb.connect(), schema)
    (found,) = engine.evaluate(
        [expression_of("CAST(\"exists\" AS INT) < 9 OR 'not exists' = ''", ("exists",))]
    )
    assert found.to_pylist() == [True, None, None]


def test_values_that_are_no_numbers_add_nothing() -> None:
    schema = Schema((Attribute("v", "numeric", Values((0.0, 1.0, 4.0)), null=True),))
    (found,) = sums_of(schema).sums([Term(None, (expression_of('sqrt("v" - 1)', ("v",)),))])
    assert found.total == pytest.approx(math.sqrt(3))
