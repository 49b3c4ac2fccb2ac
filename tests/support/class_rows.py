"""Small generalized and bucketized releases without files, and all data that agree with them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.engines import open_domain
from voile.engines.encode import values_at
from voile.engines.rows import PublicDomain
from voile.estimate import Answer
from voile.kinds.classes.answering import answer_classes
from voile.kinds.classes.cells import ClassSource
from voile.kinds.classes.errors import ASSUMED
from voile.kinds.classes.release import ClassBox, HiddenRecords, Method
from voile.query import DomainSums, parse
from voile.schema import Schema

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Grouped:
    """A table in classes: its codes (columns, rows), and the class of every row."""

    schema: Schema
    codes: Whole
    classes: Whole
    hidden: tuple[str, ...]
    """The columns that are generalized, or bucketized."""
    orders: Mapping[str, Whole]
    kept: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def view(self) -> PublicDomain:
        return open_domain(self.schema)

    @cached_property
    def order(self) -> Whole:
        return np.argsort(self.classes, kind="stable")

    def column(self, name: str) -> Whole:
        return np.asarray(self.codes[self.schema.names.index(name)])

    @cached_property
    def known(self) -> dict[str, Any]:
        return {
            name: self.column(name)[self.order].astype(np.int32)
            for name in self.schema.names
            if name not in self.hidden
        }

    def boxes(self) -> dict[str, ClassBox]:
        found = {}
        for name in self.hidden:
            order = self.orders.get(name, np.arange(self.schema[name].size))
            place = np.argsort(order)[self.column(name)]
            number = int(self.classes.max()) + 1
            low, high = (
                np.array([f(place[self.classes == c]) for c in range(number)], np.int32)
                for f in (np.min, np.max)
            )
            found[name] = ClassBox(order.astype(np.int32), low, high)
        return found

    def records(self) -> HiddenRecords:
        stacked = np.stack([self.classes, *(self.column(name) for name in self.hidden)])
        found, rows = np.unique(stacked, axis=1, return_counts=True)
        codes = {
            name: part.astype(np.int32) for name, part in zip(self.hidden, found[1:], strict=True)
        }
        return HiddenRecords(found[0].astype(np.int32), codes, rows)

    def source(self, recode: str, method: Method = "uniform") -> ClassSource:
        general = recode == "generalize"
        return ClassSource(
            engine=self.view,
            domain=DomainSums(self.schema, self.view.domain),
            schema=self.schema,
            rows=self.codes.shape[1],
            recode="generalize" if general else "bucketize",
            classes=int(self.classes.max()) + 1,
            of_row=self.classes[self.order].astype(np.int32),
            known=self.known,
            boxes=self.boxes() if general else {},
            hidden=None if general else self.records(),
            method=method,
            kept=self.kept,
            error_model=ASSUMED,
        )

    def answer(self, sql: str, recode: str, method: Method = "uniform", **options: Any) -> Answer:
        query = parse(sql, self.schema, {})
        confidence = options.pop("confidence", 0.95)
        return answer_classes(query, self.source(recode, method), confidence, **options)

    # ------------------------------------------------------------------ all data that agree

    def agreeing(self, recode: str) -> Iterator[Whole]:
        """Codes of every table that agrees with the release, all alike."""
        yield from self._in_boxes() if recode == "generalize" else self._permuted()

    def _in_boxes(self) -> Iterator[Whole]:
        boxes = self.boxes()
        choices = [
            boxes[name].order[boxes[name].low[c] : boxes[name].high[c] + 1]
            for name in self.hidden
            for c in self.classes
        ]
        places = [self.schema.names.index(name) for name in self.hidden]
        for chosen in itertools.product(*choices):
            codes = self.codes.copy()
            codes[places] = np.array(chosen).reshape(len(places), -1)
            yield codes

    def _permuted(self) -> Iterator[Whole]:
        places = [self.schema.names.index(name) for name in self.hidden]
        members = [np.flatnonzero(self.classes == c) for c in range(int(self.classes.max()) + 1)]
        for orders in itertools.product(*(itertools.permutations(m) for m in members)):
            codes = self.codes.copy()
            for some, order in zip(members, orders, strict=True):
                for place in places:
                    codes[place, some] = self.codes[place, list(order)]
            yield codes


class Truth:
    """SQL on many tables at once, by DuckDB."""

    def __init__(self, schema: Schema, tables: Sequence[Whole]) -> None:
        self.count = len(tables)
        codes = np.concatenate(tables, axis=1)
        number = np.repeat(np.arange(len(tables)), [t.shape[1] for t in tables])
        values = [values_at(a, c) for a, c in zip(schema, codes, strict=True)]
        self.connection = duckdb.connect()
        self.connection.register("given", pa.table([number, *values], ["world", *schema.names]))
        self.connection.execute("create table t as select * from given")

    def answers(self, sql: str) -> dict[tuple[Any, ...], list[Any]]:
        """For each group, the answer in every table; None where it has no such group."""
        what, _, rest = sql.partition(" from t")
        where, _, keys = rest.partition(" group by ")
        grouped = f" group by world{', ' + keys if keys else ''}"
        asked = what.replace("select ", "select world, ", 1)
        found: dict[tuple[Any, ...], list[Any]] = {}
        for row in self.connection.execute(f"{asked} from t{where}{grouped}").fetchall():
            found.setdefault(tuple(row[1:-1]), [None] * self.count)[row[0]] = row[-1]
        return found


def mean_and_variance(values: Sequence[Any]) -> tuple[float, float]:
    """Exactly, with None as 0."""
    exact = [Fraction(0 if v is None else v) for v in values]
    mean = sum(exact, Fraction(0)) / len(exact)
    variance = sum(((v - mean) ** 2 for v in exact), Fraction(0)) / len(exact)
    return float(mean), float(variance)
