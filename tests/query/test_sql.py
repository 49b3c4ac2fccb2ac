"""The language against DuckDB: what tests/sql/answer holds is answered, tests/sql/refuse refused.

Without noise an answer must be DuckDB's on the table itself. Two things are told otherwise there:
a sum over no row is NULL in SQL, and 0 here, as estimated sums have no such edge; other NULLs are
NaN in estimates. DuckDB lacks XOR between conditions and width_bucket: `<>` and a macro stand in.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.postgres import Postgres

import voile
from tests.support.soak import some
from tests.support.sqlfiles import PEOPLE, TABLES, Case, as_table, cases, people, view_of
from voile.dbapi.statements import CatalogueDialect
from voile.engines import open_rows
from voile.engines.rows import ReleaseRows
from voile.errors import QueryError, UsageError
from voile.estimate import Answer, Estimate
from voile.kinds.parquet import write_part
from voile.kinds.views.answering import answer
from voile.kinds.views.estimator import ViewSource
from voile.mechanisms import AlphaBeta
from voile.query import DomainSums, parse, text
from voile.query.aggregate import Total
from voile.query.bind import Tables
from voile.query.query import Query
from voile.release import Release
from voile.schema import Schema

ANSWERED, REFUSED = cases("answer"), cases("refuse")
ROWS = 400
BUCKET = """create macro width_bucket(x, low, high, n) as
    if(x < low, 0, if(x >= high, n + 1, 1 + floor((x - low) / ((high - low) / n))))"""
PLACE = re.compile(r"\(line (\d+), column (\d+)\)\n {4}(.*)\n {4}( *)\^")

by_name = pytest.mark.parametrize("case", ANSWERED, ids=[case.name for case in ANSWERED])


def test_there_are_enough_of_them() -> None:
    assert len(ANSWERED) >= 150
    assert len(REFUSED) >= 80
    assert len({case.sql for case in ANSWERED + REFUSED}) == len(ANSWERED + REFUSED)


# ---------------------------------------------------------------------- without noise


@dataclass(frozen=True)
class Exact:
    """A table, and a view that holds just its rows."""

    schema: Schema
    source: ViewSource
    tables: Tables
    truth: duckdb.DuckDBPyConnection

    def ask(self, sql: str) -> tuple[Query, Answer]:
        query = parse(sql, self.schema, self.tables)
        return query, answer(query, self.source)


def exact(schema: Schema, view: ReleaseRows, name: str, table: Any) -> Exact:
    columns = {other: view.add_table(other, own) for other, own in TABLES.items()}
    source = ViewSource(view, DomainSums(schema, view.domain), AlphaBeta(1.0, 0.0))
    truth = duckdb.connect()
    truth.register("given", table)
    # Integers as wide as the view's, so that both overflow alike.
    truth.execute(f"create table {name} as select * from given")
    for other, own in TABLES.items():
        truth.register(other, own)
    truth.execute(BUCKET)
    return Exact(schema, source, columns, truth)


@pytest.fixture(scope="module")
def exactly(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Exact]:
    @lru_cache
    def found(name: str) -> Exact:
        folder = tmp_path_factory.mktemp(name)
        if name == "people":
            rows = people(ROWS)
            view = view_of(PEOPLE, rows, folder)
            return exact(PEOPLE, view, name, as_table(PEOPLE, rows))
        return adult(folder)

    return found


def adult(folder: Path) -> Exact:
    table = voile.read("dataset:adult/boundary")
    schema = table.infer(list(table.columns), "error")
    path = folder / "part.parquet"
    write_part(path, schema, [table.keys(schema, drop_nulls=False)])
    rows, _ = table.rows(list(table.columns))
    rows = rows.set_column(rows.column_names.index("age"), "age", rows["age"].cast(pa.int64()))
    return exact(schema, open_rows([path], schema), "adult", rows)


def for_duckdb(case: Case) -> str:
    return case.about.get("duckdb") or re.sub(
        r"\)\s+xor\s+\(", ") <> (", case.sql, flags=re.IGNORECASE
    )


@by_name
def test_without_noise_answers_are_duckdbs(case: Case, exactly: Callable[[str], Exact]) -> None:
    setting = exactly(case.table)
    query, found = setting.ask(case.sql)
    expected = setting.truth.execute(for_duckdb(case)).fetchall()
    sums = [isinstance(c.source, Total) and bool(c.source.term.values) for c in query.columns]
    mine = [[plain(value) for value in row.values()] for row in found.rows]
    theirs = [[told(v, is_sum=s) for v, s in zip(row, sums, strict=True)] for row in expected]
    if not query.order:
        mine, theirs = sorted(mine, key=repr), sorted(theirs, key=repr)
    assert len(mine) == len(theirs)
    for left, right in zip(mine, theirs, strict=True):
        assert all(map(alike, left, right)), f"{left} is not {right}"
    assert all(is_point(v) for row in found.rows for v in row.values())


def plain(value: Any) -> Any:
    value = value.value if isinstance(value, Estimate) else value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return value
    return None if math.isnan(value) else float(f"{float(value):.10g}")


def told(value: Any, *, is_sum: bool) -> Any:
    return 0.0 if value is None and is_sum else plain(value)


def alike(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(left, dt.date) and isinstance(right, dt.date):
        return str(left)[:10] == str(right)[:10]
    return bool(left == right)


def is_point(value: Any) -> bool:
    """Without noise nothing is left to chance; of NULL nothing is known."""
    if not isinstance(value, Estimate) or math.isnan(value.value):
        return True
    return value.stderr == 0 and all(
        math.isclose(end, value.value, rel_tol=1e-6, abs_tol=1e-8) for end in value.interval()
    )


# ---------------------------------------------------------------------- with noise


@pytest.fixture(scope="module")
def noisy() -> Callable[[str], Release]:
    @lru_cache
    def found(name: str) -> Release:
        if name == "people":
            table = as_table(PEOPLE, people(ROWS))
            return voile.publish(
                table, method="alphabeta", schema=PEOPLE, nulls="as-value", simulate_seed=1
            )
        return voile.publish("dataset:adult/boundary", method="alphabeta", simulate_seed=1)

    return found


@pytest.mark.parametrize("case", some(ANSWERED, 45), ids=lambda case: case.name)
def test_with_noise_answers_are_whole(case: Case, noisy: Callable[[str], Release]) -> None:
    found = noisy(case.table).query(case.sql, tables=TABLES)
    for row in found.rows:
        for value in row.values():
            if isinstance(value, Estimate):
                check_estimate(value)
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert len(written["rows"]) == len(found.rows)
    assert found.to_csv().count("\n") >= len(found.rows)
    assert found.to_arrow().num_rows == len(found.to_pandas()) == len(found.rows)
    assert str(found) or not found.rows


def check_estimate(value: Estimate) -> None:
    """The value lies in its interval; but an unbiased count may be negative, and no count is."""
    low, high = value.interval()
    assert not math.isinf(value.value)
    if not math.isnan(value.value):
        assert low <= value.value or low == 0 > value.value or math.isnan(low)
        assert value.value <= high or math.isnan(high)
        assert not value.stderr < 0


# ---------------------------------------------------------------------- refused


@pytest.mark.parametrize("case", REFUSED, ids=[case.name for case in REFUSED])
def test_refusals_say_what_is_wrong_where_and_what_to_do(
    case: Case, exactly: Callable[[str], Exact]
) -> None:
    with pytest.raises(QueryError) as caught:
        exactly(case.table).ask(case.sql)
    error = caught.value
    assert case.about["says"] in str(error)
    assert case.about.get("hint", "") in error.hint
    assert error.hint
    place = PLACE.search(error.message)
    assert (place and (int(place[1]), int(place[2]))) == case.caret
    if place:
        line, column = int(place[1]), int(place[2])
        text = case.sql.split("\n")[line - 1]
        assert place[3] in text
        assert place[3][len(place[4]) :][:1] == text[column - 1 : column]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("", "the SQL text is empty"),
        (" \n\t ", "the SQL text is empty"),
        ("-- nothing but a comment", "the SQL text is empty"),
        ("select count(*) from people where nationality = '\0'", "NUL character"),
        ("select count(*) from people where age > " + "1 + " * 30_000 + "1", "more than 100,000"),
        ("select count(*) from people where " + "(" * 3000 + "member" + ")" * 3000, "too deep"),
        ("select count(*) from people where " + "not " * 3000 + "member", "too deep"),
        ("select " + "abs(" * 3000 + "count(*)" + ")" * 3000 + " from people", "too deep"),
        ("select round(median(score) * @, 1) from people", "nothing to work on"),
        (None, "a query is SQL text, not NoneType"),
        (b"select 1", "a query is SQL text, not bytes"),
    ],
)  # fmt: skip
def test_texts_that_no_file_can_hold(sql: Any, says: str, exactly: Callable[[str], Exact]) -> None:
    with pytest.raises(QueryError) as caught:
        exactly("people").ask(sql)
    assert says in str(caught.value)
    assert caught.value.hint


def test_a_caret_in_a_long_line_stays_in_sight(exactly: Callable[[str], Exact]) -> None:
    sql = f"select count(*) from people where {'member and ' * 100} wrong > 3"
    with pytest.raises(QueryError) as caught:
        exactly("people").ask(sql)
    _, shown, caret = caught.value.message.split("\n")
    assert len(shown) < 200
    assert shown[caret.index("^") :].startswith("wrong")


# ---------------------------------------------------------------------- what FROM may say


@pytest.mark.parametrize(
    "name",
    ['"/etc/passwd"', "'/etc/passwd'", '"../people"', '"data.csv"', "people.csv", '"s3://a/b"',
     '"http:x"', '"*"', '"a*b"', '"~"', r'"C:\\x"', '""', "read_csv", '"READ_CSV_AUTO"',
     "read_parquet", "parquet_scan", "postgres_scan_pushdown", "sniff_csv", "glob", "pg_class",
     "sqlite_master", "duckdb_secrets", "pragma_version", "information_schema",
     "information_schema.tables", "a.b.people", '"people; drop table x"',
     '"people\n"', '"people--x"" "'],
)  # fmt: skip
def test_from_names_no_other_table(name: str) -> None:
    """It would be answered as if it were the release's."""
    with pytest.raises(QueryError) as error:
        parse(f"select count(*) from {name}", PEOPLE, called="the.people")
    if "there is no table" in error.value.message:  # else it is no SQL
        assert 'write from "the.people"' in error.value.hint


@pytest.mark.parametrize(
    "name",
    ["people", "t", "main.t", '"my table"', '"my-table"', "Größen", "_x1", '"2024"', "view", "data",
     "name", "readings", "scan", "ranges", '"the.people"', '"THE.people"'],
)  # fmt: skip
def test_from_takes_the_name_of_the_release_and_any_plain_one(name: str) -> None:
    assert parse(f"select count(*) from {name}", PEOPLE, called="the.people").columns


def test_a_compiled_parser_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(*_: object, **__: object) -> None:
        raise TypeError("interpreted classes cannot inherit from compiled")

    monkeypatch.setattr(text.Dialect, "parser_class", compiled)
    with pytest.raises(UsageError, match="compiled here") as refused:
        text.single_select("select count(*) from people")
    assert refused.value.hint == "pip uninstall sqlglotc"


def test_what_is_not_extended_is_that_of_the_database() -> None:
    """sqlglot takes tokenizer, parser and generator from the first base of a dialect alone."""
    for own, database in ((text.Dialect, DuckDB), (CatalogueDialect, Postgres)):
        assert own.__bases__ == (database,)
        assert issubclass(own.tokenizer_class, database.tokenizer_class)
        assert issubclass(own.parser_class, database.parser_class)
        assert issubclass(own.generator_class, database.generator_class)
    found = sqlglot.parse_one("select $1::int from t where a !~ 'x'", dialect=CatalogueDialect)
    assert [node.name for node in found.find_all(sqlglot.exp.Parameter)] == ["1"]
