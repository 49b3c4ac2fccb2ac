"""Servers in this process: Adult's columns behind noise of a chosen variance, seeded."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from voile.errors import PromiseError
from voile.noise.keyed import members, row_hashes
from voile.schema import Attribute, Schema, Values
from voile.schema.attribute import Range

PREDICATES = {
    "married": "marital_status = 'Married-civ-spouse'", "rich": "salary = '>50K'",
    "male": "sex = 'Male'", "white": "race = 'White'", "age40": "age >= 40",
    "hrs41": "hours_per_week >= 41", "private": "coalesce(workclass = 'Private', false)",
}  # fmt: skip


@cache
def adult() -> dict[str, npt.NDArray[np.bool_]]:
    """The oracle's predicates on the 32,561 rows of Adult's training part."""
    from voile import datasets

    file = f"{datasets.__path__[0]}/adult.parquet"
    listed = ", ".join(f"{sql} as {name}" for name, sql in PREDICATES.items())
    sql = f"select {listed} from '{file}' where split = 'train'"
    found = duckdb.connect().execute(sql).fetchnumpy()
    return {name: np.asarray(found[name], dtype=np.bool_) for name in PREDICATES}


@dataclass(frozen=True)
class Reply:
    answer: float
    stderr: float
    charged: int
    subset_rows: int | None


@dataclass(frozen=True)
class Cost:
    cost: int


@dataclass
class FakeServer:
    """Answers counts of SQL conditions on its columns, with normal noise; keeps what it told."""

    columns: Mapping[str, npt.NDArray[Any]]
    variance: float = 0.0
    queries: int = 10**6
    seed: int = 0
    id: str = ""
    ids: list[Any] | None = None
    null: tuple[str, ...] = ()
    kept: dict[tuple[str, str], Reply] = field(default_factory=dict)
    asked: int = 0
    fail_after: int | None = None
    tells_sizes: bool = False

    def __post_init__(self) -> None:
        self.rows = len(next(iter(self.columns.values())))
        self.hashes = row_hashes(range(self.rows) if self.ids is None else self.ids)
        self.con = duckdb.connect()
        self.con.execute("set threads = 1")
        import pyarrow as pa

        self.table = pa.table({n: pa.array(list(c)) if n in self.null else c
                               for n, c in self.columns.items()})  # fmt: skip
        self.con.register("t", self.table)
        self.lock = threading.Lock()
        self.truths: dict[str, npt.NDArray[np.bool_]] = {}

    def schema(self) -> Schema:
        return Schema(tuple(
            Attribute(name, "boolean", Values((False, True)), null=name in self.null)
            if name in self.null or column.dtype == np.bool_
            else Attribute(name, "integer", Range(int(column.min()), int(column.max()) + 1))
            for name, column in self.columns.items()
        ))  # fmt: skip

    def about(self) -> Mapping[str, Any]:
        return {
            "id": self.id or str(id(self)), "name": "t", "rows": self.rows,
            "variance": self.variance, "per_person": 1,
            "id_column": None if self.ids is None else "id", "schema": self.schema().to_dict(),
        }  # fmt: skip

    def budget(self) -> Mapping[str, Any]:
        return {"remaining": self.queries - len(self.kept)}

    def cost(self, sql: str, subset: str | Mapping[str, str] = "all") -> Cost:
        return Cost(int((sql, str(subset)) not in self.kept))

    def truth(self, sql: str) -> npt.NDArray[np.bool_]:
        if sql not in self.truths:
            where = sql.split(" where ", 1)[1]
            found = self.con.execute(f"select coalesce(({where}), false) as f from t").fetchnumpy()
            self.truths[sql] = np.asarray(found["f"], dtype=np.bool_)
        return self.truths[sql]

    def ask(self, sql: str, subset: str | Mapping[str, str] = "all") -> Reply:
        with self.lock:
            self.asked += 1
            if self.fail_after is not None and self.asked > self.fail_after:
                raise PromiseError("stopped", hint="")
            key = (sql, str(subset))
            if key in self.kept:
                found = self.kept[key]
                return Reply(found.answer, found.stderr, 0, found.subset_rows)
            half = (
                np.ones(self.rows, dtype=np.bool_)
                if isinstance(subset, str)
                else members(self.hashes, subset["half"])
            )
            # By the question, not by the order in which threads ask.
            own = int.from_bytes(hashlib.sha256(f"{self.seed} {key}".encode()).digest()[:8], "big")
            noise = np.random.default_rng(own).normal(0, self.variance**0.5)
            count = float((self.truth(sql) & half).sum()) + noise
            told = int(half.sum()) if self.tells_sizes else None
            self.kept[key] = Reply(count, self.variance**0.5, 1, told)
            return self.kept[key]
