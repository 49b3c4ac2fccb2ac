"""The tables that the SQL of tests/sql is about, and the reader of those files.

A file is a list of blocks between blank lines. Lines of a block that begin with `--` and stand
before its SQL are about it: what it shows in words, `key: value` for what the tests need. A block
without SQL says such things for the whole file. In files of refused queries a line `--    ^`
below a line of SQL is no part of it: the refusal must put its caret there.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.support.paths import TESTS
from voile.engines import open_rows
from voile.engines.rows import ReleaseRows
from voile.kinds.parquet import write_part
from voile.schema import Attribute, Range, Schema, TupleIndex, Values

FOLDER = TESTS / "sql"
CARET = re.compile(r"--\s*\^\s*")
KEY = re.compile(r"--\s*(says|hint|at|table|duckdb):\s*(.*)")

COUNTRIES = (
    "Kenya", "Ghana", "Chad", "India", "Japan", "Peru", "Brazil", "Norway", "Côte d'Ivoire",
    "Türkiye",
)  # fmt: skip
PEOPLE = Schema(
    (
        Attribute("age", "integer", Range(14, 69)),
        Attribute("nationality", "categorical", Values(COUNTRIES), null=True),
        Attribute("score", "integer", Range(60, 100)),
        Attribute("balance", "integer", Range(-50, 50)),
        Attribute("height", "numeric", Values((1.375, 1.625, 1.875, 2.125)), null=True),
        Attribute("joined", "date", Range(dt.date(2003, 12, 1), dt.date(2005, 3, 31))),
        Attribute("member", "boolean", Values((False, True)), null=True),
        Attribute("odd name", "integer", Values((-7, 0, 1, 5)), null=True),
        Attribute("größe", "categorical", Values(("S", "M", "L", "it's", "100%", "naïve"))),
        Attribute("select", "boolean", Values((False, True))),
    )
)
"""Every kind of attribute: nullable ones, negative numbers, a name that is a keyword."""

TINY = Schema(
    (
        Attribute("age", "integer", Range(17, 21)),
        Attribute("nationality", "categorical", Values(COUNTRIES[:3]), null=True),
        Attribute("score", "integer", Range(78, 81)),
        Attribute("balance", "integer", Range(-2, 2)),
        *PEOPLE.select(["height"]),
        Attribute("joined", "date", Range(dt.date(2004, 2, 27), dt.date(2004, 3, 1))),
        *PEOPLE.select(["member", "odd name"]),
        Attribute("größe", "categorical", Values(("S", "it's"))),
        *PEOPLE.select(["select"]),
    )
)
"""The same columns with few values, for thousands of queries a minute."""

REGIONS = pa.table(
    {
        "country": [*COUNTRIES[:9], "Atlantis"],
        "continent": ["Africa", "Africa", "Africa", "Asia", "Asia", "America", "America",
                      "Europe", "Africa", None],
        "gdp": pa.array([2100, 2400, 700, 2500, 34000, 7100, 8900, 106000, None, 1], pa.int64()),
    }
)  # fmt: skip
"""The auxiliary table of the paper's Q2; Türkiye is missing from it, and Atlantis is too many."""

GRADES = pa.table(
    {
        "grade": ["A", "B", "C", None],
        "low": pa.array([90, 80, 70, None], pa.int64()),
        "high": pa.array([100, 89, 79, None], pa.int64()),
        "code": pa.array([5, 1, None, None], pa.int64()),
    }
)
"""An auxiliary table with NULLs, also among its keys."""

TABLES = {"regions": REGIONS, "grades": GRADES}


@dataclass(frozen=True)
class Case:
    """One query of a file, and what is said of it there."""

    file: str
    line: int
    sql: str
    about: dict[str, str] = field(default_factory=dict)
    caret: tuple[int, int] | None = None
    """Line and column, from 1."""

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def table(self) -> str:
        return self.about.get("table", "people")


def cases(kind: str) -> list[Case]:
    """Every query in the files of a folder of tests/sql."""
    files = sorted((FOLDER / kind).glob("*.sql"))
    return [case for file in files for case in read(file)]


def read(path: Path) -> Iterator[Case]:
    common: dict[str, str] = {}
    number = 1
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        lines = block.split("\n")
        head = next((i for i, text in enumerate(lines) if not text.startswith("--")), len(lines))
        marks = [found for text in lines[:head] if (found := KEY.match(text))]
        about: dict[str, str] = {found[1]: found[2] for found in marks}
        kept, caret = _without_caret(lines[head:])
        if "at" in about:
            line, column = about["at"].split(":")
            caret = (int(line), int(column))
        sql = "\n".join(kept).rstrip("\n")
        if sql.strip():
            yield Case(path.stem, number + head, sql, common | about, caret)
        else:
            common |= about
        number += len(lines) + 1


def _without_caret(lines: list[str]) -> tuple[list[str], tuple[int, int] | None]:
    kept: list[str] = []
    caret = None
    for text in lines:
        if kept and CARET.fullmatch(text):
            caret = (len(kept), text.index("^") + 1)
        else:
            kept.append(text)
    return kept, caret


# ---------------------------------------------------------------------- rows


def people(rows: int, seed: int = 0, schema: Schema = PEOPLE) -> list[tuple[object, ...]]:
    """Rows drawn from the domain, small codes more often; scores rise with age."""
    rng = np.random.default_rng(seed)
    drawn: list[tuple[object, ...]] = []
    values = [list(attribute) for attribute in schema]
    scores = [int(str(score)) for score in schema["score"]]
    for _ in range(rows):
        row = [v[int(len(v) * rng.random() ** 1.3)] for v in values]
        age = int(str(row[0]))
        rising = 60 + (age - 14) * 0.5 + rng.integers(0, 25)
        row[2] = int(np.clip(rising, scores[0], scores[-1]))
        drawn.append(tuple(row))
    return drawn


def as_table(schema: Schema, rows: list[tuple[object, ...]]) -> pa.Table:
    columns = {a.name: [row[i] for row in rows] for i, a in enumerate(schema)}
    return pa.table(columns)


def view_of(schema: Schema, rows: list[tuple[object, ...]], folder: Path) -> ReleaseRows:
    """A view that holds exactly the given rows, written and read as a release's is."""
    places = [{value: i for i, value in enumerate(attribute)} for attribute in schema]
    codes = [
        np.array([places[i][row[i]] for row in rows], dtype=np.int64)  # type: ignore[index]
        for i in range(len(places))
    ]
    path = folder / "part.parquet"
    write_part(path, schema, [np.sort(TupleIndex(schema.sizes).encode(codes))])
    return open_rows([path], schema)
