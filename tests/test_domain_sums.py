"""Sums over the domain: every way of computing them against brute force on small domains."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
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
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from voile.engines.domain import Domain
from voile.engines.encode import ARROW
from voile.query.domain import DomainSums, Weights, component_sum
from voile.query.predicate import And, Atom, Expression, Or, Predicate, Term, to_sql
from voile.schema import Attribute, Bins, Range, Schema, Values

# ---------------------------------------------------------------------- small schemas, listed

ALL = (
    Attribute("i", "integer", Range(-2, 3)),
    Attribute("j", "integer", Values((5, 0, 1)), null=True),
    Attribute("k", "integer", Range(0, 2), null=True),
    Attribute("s", "categorical", Values(("x", "zz", "y", "é"))),
    Attribute("t", "categorical", Values(("y", "x")), null=True),
    Attribute("b", "boolean", Values((False, True)), null=True),
    Attribute("d", "date", Range(dt.date(2024, 2, 28), dt.date(2024, 3, 2))),
    Attribute("e", "date", Values((dt.date(2024, 3, 1), dt.date(2023, 1, 1))), null=True),
    Attribute("u", "numeric", Bins((0.0, 1.0, 2.5, 4.0))),
    Attribute("v", "numeric", Values((0.1, 0.2, 1.75)), null=True),
    Attribute('we ird"', "integer", Range(7, 9)),
)
CHOSEN = ["ijksb", "ijku", "std", "debi", "uvij", "stbj", "ikd", "juvw", "ijkw", "sktu"]


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
    con = duckdb.connect()
    con.execute("SET disabled_optimizers = 'common_subexpressions'")  # they fail outside of TRY
    every = list(product(*schema))
    columns = {
        a.name: pa.array([t[i] for t in every], type=ARROW[a.kind]) for i, a in enumerate(schema)
    }
    con.register("incoming", pa.table(columns | {"place": np.arange(len(every))}))
    con.execute("CREATE TABLE listed AS SELECT * FROM incoming")
    grid = np.unravel_index(np.arange(len(every)), schema.sizes)
    codes = {a.name: g for a, g in zip(schema, grid, strict=True)}
    return Listed(schema, Domain(duckdb.connect(), schema), con, codes)


SCHEMAS = [listed(Schema(tuple(a for a in ALL if a.name[0] in chosen))) for chosen in CHOSEN]

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
    (["b"], "boolean", ["{0}", "NOT {0}"]),
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
            found.append(Expression(sql, tuple(n for n in names if quoted(n) in sql)))
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
def questions() -> st.SearchStrategy[Question]:
    return st.one_of(*(questions_on(one, seed) for seed, one in enumerate(SCHEMAS)))


def questions_on(one: Listed, seed: int) -> st.SearchStrategy[Question]:
    writer = Writer(one, Random(seed))  # noqa: S311
    atoms = [Atom(e.sql, e.attributes) for e in writer.bound(writer.atom, COUNT)]
    joint = [atom for atom in atoms if len(atom.attributes) > 1]
    values = st.sampled_from(writer.bound(writer.value, 40))
    keys = st.sampled_from(writer.bound(writer.key, 40))
    predicates: st.SearchStrategy[Predicate] = st.recursive(
        st.one_of(st.sampled_from(atoms), st.sampled_from(joint)),
        lambda inner: st.builds(
            lambda kind, parts: kind(tuple(parts)),
            st.sampled_from([And, Or]),
            st.lists(inner, min_size=2, max_size=4),
        ),
        max_leaves=8,
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
    condition = to_sql(predicate) if predicate else "TRUE"
    asked = [f"coalesce({condition}, false)"]
    asked += [f"coalesce(CAST(TRY({v.sql}) AS DOUBLE), 0)" for v in values]
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
    columns = question.listed.columns([f"TRY({g.sql})" for g in question.groups])
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


def patched(**constants: Any) -> pytest.MonkeyPatch:
    patch = pytest.MonkeyPatch()
    for name, value in constants.items():
        patch.setattr(component_sum, name, value)
    return patch


WAYS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "elimination": {"GRID": 0, "TINY": 0},
    "contraction": {"GRID": 0, "walked": lambda *_: None, "eliminate": lambda *_: []},
    "enumeration": {"GRID": 7, "walked": lambda *_: None, "networked": lambda *_: None},
}


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=400, phases=[Phase.generate])
@given(question=st.deferred(lambda: questions()))  # noqa: PLW0108
def test_every_way_equals_brute_force(way: str, question: Question) -> None:
    patch = patched(**WAYS[way])
    try:
        check(question, DomainSums(question.listed.schema, question.listed.engine))
    finally:
        patch.undo()
