"""Perturbed rows without a release: every tuple of a small domain by itself, or rows of NumPy's."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.arrays import Floats
from voile.engines import open_rows
from voile.engines.duckdb.rendering import condition_sql, guarded, key_sql, product_sql, sum_sql
from voile.engines.encode import values_at
from voile.estimate import Answer
from voile.kinds.parquet import write_part
from voile.kinds.perturbed.answering import LocalEvidence, answer_local
from voile.kinds.perturbed.axes import AxisNoise, LocalSource, Method
from voile.query import DomainSums, parse
from voile.query.aggregate import Total
from voile.query.predicate import ROW, Expression, Predicate
from voile.query.rows import Key, RowSums, ShiftedValue, WeightedTerm
from voile.schema import Schema, TupleIndex

Whole = npt.NDArray[np.int64]


# ---------------------------------------------------------------------- one row at a time


class EachRow:
    """The rows of a release that holds one tuple only: each of the domain's in turn."""

    scored = False

    def __init__(self, schema: Schema, folder: Path) -> None:
        self.schema = schema
        self.codes = np.array(list(itertools.product(*(range(size) for size in schema.sizes))))
        path = folder / "all.parquet"
        write_part(path, schema, [TupleIndex(schema.sizes).encode(list(self.codes.T))])
        view = open_rows([path], schema)
        self.domain, self.types = view.domain, view.types
        self.number = 0
        self.truth = duckdb.connect()
        values = [values_at(a, c) for a, c in zip(schema, self.codes.T, strict=True)]
        table = pa.table([np.arange(len(self.codes)), *values], ["number", *schema.names])
        self.truth.register("given", table)
        self.truth.execute("create table t as select * from given")
        self._kept: dict[str, list[pa.Table]] = {}

    def histogram(
        self, keys: Sequence[Key], products: Sequence[Sequence[ShiftedValue]]
    ) -> pa.Table:
        return self._of("TRUE", named(keys, map(product_sql, products)), len(keys))

    def sums(
        self, where: Predicate | None, keys: Sequence[Expression], sums: Sequence[WeightedTerm]
    ) -> RowSums:
        found = self._of(condition_sql(where), named(keys, map(sum_sql, sums)), len(keys))
        columns = [column.to_pylist() for column in found.columns]
        if not keys and not found.num_rows:
            return RowSums((), np.zeros((1, len(sums))))
        numbers = np.array(columns[len(keys) :], dtype=float).T.reshape(-1, len(sums))
        return RowSums(tuple(columns[: len(keys)]), numbers)

    def _of(self, where: str, named: Sequence[str], keys: int) -> pa.Table:
        groups = ", ".join(["number", *(f"k{i}" for i in range(keys))])
        sql = f'SELECT number, {", ".join(named)} FROM t AS "{ROW}" WHERE {where} GROUP BY {groups}'
        if sql not in self._kept:
            found = self.truth.sql(sql).to_arrow_table()
            number = found["number"].to_numpy()
            self._kept[sql] = [
                found.filter(pa.array(number == i)).drop_columns("number")
                for i in range(len(self.codes))
            ]
        return self._kept[sql][self.number]


@dataclass(frozen=True)
class Everything:
    """Estimates, covariances and the truth of a query, for a table of each tuple alone."""

    estimates: Floats
    """(tuples seen, groups, terms)"""
    covariances: dict[tuple[int, int], Floats]
    squares: dict[tuple[int, int], Floats]
    largest: Floats
    widest: Floats
    truth: Floats
    """(true tuples, groups, terms)"""


@dataclass(frozen=True)
class Small:
    """A domain small enough to go through, and how its rows are perturbed."""

    rows: EachRow
    parts: Mapping[str, tuple[Fraction, tuple[int, ...]]]
    """For each column its retention and the parts of its replacing distribution."""
    joint: Fraction | None = None

    @property
    def schema(self) -> Schema:
        return self.rows.schema

    @cached_property
    def chances(self) -> Floats:
        """P(y|x), from its definition."""
        codes = self.rows.codes
        result = np.empty((len(codes), len(codes)))
        for i, x in enumerate(codes):
            for j, y in enumerate(codes):
                result[i, j] = float(self._chance(x, y))
        return result

    def _chance(self, x: Whole, y: Whole) -> Fraction:
        if self.joint is not None:
            same = Fraction(int((x == y).all()))
            return self.joint * same + (1 - self.joint) / len(self.rows.codes)
        found = Fraction(1)
        for a, b, (kept, parts) in zip(x, y, self.parts.values(), strict=True):
            found *= kept * int(a == b) + (1 - kept) * Fraction(parts[b], sum(parts))
        return found

    @cached_property
    def source(self) -> LocalSource:
        noise = {
            name: AxisNoise(float(kept), np.array(parts) / sum(parts))
            for name, (kept, parts) in self.parts.items()
        }
        return LocalSource(
            self.rows,  # type: ignore[arg-type]
            DomainSums(self.schema, self.rows.domain),
            self.schema,
            1,
            noise if self.joint is None else {},
            joint=None if self.joint is None else float(self.joint),
        )

    def ask(self, sql: str) -> Everything:
        """Answer a query of totals from every one-row table; DuckDB says what is true of it."""
        query = parse(sql, self.schema, {})
        formulas = [c.source for c in query.columns if not isinstance(c.source, int)]
        keys = [c.source for c in query.columns if isinstance(c.source, int)]
        works = []
        for number in range(len(self.rows.codes)):
            self.rows.number = number
            works.append(LocalEvidence(query, self.source))
        totals = [work.totals for work in works]
        terms = [f.term for f in formulas if isinstance(f, Total)]
        assert len(terms) == len(formulas), "only totals are unbiased"
        places = [totals[0].column(term) for term in terms]
        groups = [tuple(key[i] for i in keys) for key in totals[0].groups.keys]
        pairs = {
            (a, b): (i, j) if (i, j) in totals[0].covariances else (j, i)
            for a, i in enumerate(places)
            for b, j in enumerate(places)
            if (i, j) in totals[0].covariances or (j, i) in totals[0].covariances
        }
        return Everything(
            np.stack([t.estimates[:, places] for t in totals]),
            {p: np.stack([t.covariances[at] for t in totals]) for p, at in pairs.items()},
            {p: np.stack([t.squares[at] for t in totals]) for p, at in pairs.items()},
            np.stack([t.largest[:, places] for t in totals]),
            np.stack([t.widest[:, places] for t in totals]),
            self._truth(sql, groups, len(terms)),
        )

    def _truth(self, sql: str, groups: list[tuple[Any, ...]], terms: int) -> Floats:
        result = np.zeros((len(self.rows.codes), len(groups), terms))
        for number in range(len(self.rows.codes)):
            once = sql.replace("from t", f"from (select * from t where number = {number}) as t", 1)
            for row in self.rows.truth.execute(once).fetchall():
                key, numbers = row[: len(row) - terms], row[len(row) - terms :]
                if key not in groups:  # a group of no row that counts
                    continue
                result[number, groups.index(key)] = [float(v or 0) for v in numbers]
        return result


# ---------------------------------------------------------------------- many rows


@dataclass(frozen=True)
class Column:
    """How tests perturb one column; `own` as a release does with identity or swap."""

    retention: float
    parts: tuple[int, ...] | None = None
    own: str = ""

    def noise(self, size: int) -> AxisNoise:
        masses = None if self.parts is None else np.array(self.parts) / sum(self.parts)
        assert masses is None or len(masses) == size
        return AxisNoise(self.retention, masses, own=bool(self.own), permuted=self.own == "swap")

    def perturb(self, codes: Whole, size: int, rng: np.random.Generator) -> Whole:
        moved = np.flatnonzero(rng.random(len(codes)) >= self.retention)
        result = codes.copy()
        if self.own == "swap":
            result[moved] = codes[rng.permutation(moved)]
        elif self.own == "identity":
            result[moved] = codes[rng.integers(0, len(codes), len(moved))]
        elif self.parts is None:
            result[moved] = rng.integers(0, size, len(moved))
        else:
            result[moved] = rng.choice(size, len(moved), p=np.array(self.parts) / sum(self.parts))
        return result


def named(keys: Sequence[Key], sums: Iterable[str]) -> list[str]:
    """Columns of a histogram: k0, k1, … and s0, s1, …"""
    found = [f"{key_sql(key)} AS k{i}" for i, key in enumerate(keys)]
    return [*found, *(f"{total} AS s{i}" for i, total in enumerate(sums))]


class InMemory:
    """The rows of a release in memory, so that thousands of tables can be asked."""

    scored = False
    count = "count(*)"
    """What counts rows."""

    def __init__(self, schema: Schema, folder: Path) -> None:
        self.schema = schema
        path = folder / "none.parquet"
        index = TupleIndex(schema.sizes)
        write_part(path, schema, [index.encode([np.zeros(1, np.int64)] * len(schema.names))])
        self._view = open_rows([path], schema)
        self.domain, self.types = self._view.domain, self._view.types
        self.cuts_a_bin = self._view.cuts_a_bin
        self.on_tuples = self._view.on_tuples
        self._con = duckdb.connect(config={"threads": 1})

    def hold(self, codes: Sequence[Whole]) -> None:
        values = [values_at(a, c) for a, c in zip(self.schema, codes, strict=True)]
        self._con.register("given", pa.table(values, list(self.schema.names)))

    def histogram(
        self, keys: Sequence[Key], products: Sequence[Sequence[ShiftedValue]]
    ) -> pa.Table:
        sums = [product_sql(factors) if factors else self.count for factors in products]
        grouped = f" GROUP BY {', '.join(f'k{i}' for i in range(len(keys)))}" if keys else ""
        sql = f'SELECT {", ".join(named(keys, sums))} FROM given AS "{ROW}"{grouped}'
        return self._con.sql(sql).to_arrow_table()

    def sums(
        self, where: Predicate | None, keys: Sequence[Expression], sums: Sequence[WeightedTerm]
    ) -> RowSums:
        grouped = f" GROUP BY {', '.join(str(1 + i) for i in range(len(keys)))}" if keys else ""
        listed = ", ".join([*map(guarded, keys), *map(sum_sql, sums)])
        sql = f'SELECT {listed} FROM given AS "{ROW}" WHERE {condition_sql(where)}{grouped}'
        rows = self._con.execute(sql).fetchall()
        numbers = np.array([row[len(keys) :] for row in rows], float).reshape(len(rows), len(sums))
        return RowSums(tuple([row[i] for row in rows] for i in range(len(keys))), numbers)


@dataclass(frozen=True)
class Study:
    """A table that is perturbed again and again."""

    rows: InMemory
    codes: tuple[Whole, ...]
    columns: tuple[Column, ...]
    joint: float | None = None
    believed: float | None = None
    """Another retention than the one that was used, to see that it matters."""
    _sums: list[DomainSums] = field(default_factory=list)

    @property
    def schema(self) -> Schema:
        return self.rows.schema

    def perturb(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        sizes = self.schema.sizes
        if self.joint is not None:
            moved = rng.random(len(self.codes[0])) >= self.joint
            self.rows.hold(
                [np.where(moved, rng.integers(0, s, len(c)), c)
                 for c, s in zip(self.codes, sizes, strict=True)]
            )  # fmt: skip
            return
        self.rows.hold(
            [how.perturb(c, s, rng)
             for how, c, s in zip(self.columns, self.codes, sizes, strict=True)]
        )  # fmt: skip

    def source(self, method: Method = "inversion") -> LocalSource:
        if not self._sums:
            self._sums.append(DomainSums(self.schema, self.rows.domain))
        noise = {}
        for attribute, how in zip(self.schema, self.columns, strict=True):
            told = how.noise(attribute.size)
            if self.believed is not None and told.retention < 1:
                told = AxisNoise(self.believed, told.masses, told.own, told.permuted)
            noise[attribute.name] = told
        joint = self.joint if self.believed is None or self.joint is None else self.believed
        return LocalSource(
            self.rows,  # type: ignore[arg-type]
            self._sums[0],
            self.schema,
            len(self.codes[0]),
            noise if self.joint is None else {},
            joint=joint,
            method=method,
        )

    def ask(
        self, sql: str, confidence: float = 0.95, *, simultaneous: bool = False,
        method: Method = "inversion",
    ) -> Answer:  # fmt: skip
        query = parse(sql, self.schema, {})
        return answer_local(query, self.source(method), confidence, simultaneous=simultaneous)

    def truth(self, sql: str) -> list[tuple[Any, ...]]:
        """What DuckDB says of the table before it is perturbed."""
        con = duckdb.connect()
        values = [values_at(a, c) for a, c in zip(self.schema, self.codes, strict=True)]
        con.register("given", pa.table(values, list(self.schema.names)))
        con.execute("create table t as select * from given")
        return con.execute(sql).fetchall()
