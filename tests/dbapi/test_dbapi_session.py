"""Sessions: what tools send is answered as the release answers, or refused with a reason."""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import voile
from tests.dbapi.support import CITIES, SHAPES, Shape
from voile.dbapi import Field, ReadOnlyError, SqlSession, SqlSource
from voile.dbapi.questions import LISTED
from voile.dbapi.results import sql_name
from voile.dbapi.sources import opened_tables
from voile.engines import open_tables
from voile.errors import QueryError, UsageError, VoileError
from voile.estimate import Estimate

TYPES = [pa.int64(), pa.string(), pa.string(), pa.bool_(), pa.date32()]
NAMES = ["age", "sex", "city", "smoker", "day"]


def plain(answer: Any) -> list[tuple[Any, ...]]:
    """The numbers of an answer."""
    return [
        tuple(v.value if isinstance(v, Estimate) else v for v in row.values())
        for row in answer.rows
    ]


def columns(fields: tuple[Field, ...]) -> str:
    return ", ".join(f"{field.name} {sql_name(field.type)}" for field in fields)


# ---------------------------------------------------------------------- shapes


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.words)
def test_shapes_of_tools(shape: Shape, session: SqlSession, release: Any) -> None:
    if shape.refused is not None:
        with pytest.raises(QueryError) as caught:
            session.run(shape.sql)
        assert shape.refused in str(caught.value) and caught.value.hint
        return
    found = session.run(shape.sql)
    assert session.fields(shape.sql) == found.fields
    assert found.tag == f"SELECT {len(found.rows)}"
    if shape.columns is not None:
        assert columns(found.fields) == shape.columns
    if shape.same is not None:
        assert found.to_rows() == plain(release.query(shape.same))
    if shape.rows is not None:
        assert [list(row) for row in found.to_rows()] == shape.rows
    assert found.to_arrow().num_rows == len(found.rows)


def test_shapes_are_told_apart() -> None:
    sorts = [(s.same is not None, s.rows is not None, s.refused is not None) for s in SHAPES]
    assert len(SHAPES) > 30 and all(sum(sort) == 1 for sort in sorts)


# ---------------------------------------------------------------------- statistics


def test_intervals_are_columns_on_request(session: SqlSession, release: Any) -> None:
    sql = "select sex, count(*) as n, avg(age) from people where age > 40 group by sex"
    session.run("SET voile.intervals = on")
    session.run("SET voile.confidence = 0.9")
    found = session.run(sql)
    ends = ("", "_stderr", "_low", "_high")
    names = ["sex", *("n" + end for end in ends), *("avg" + end for end in ends)]
    assert [field.name for field in found.fields] == names
    assert session.fields(sql) == found.fields
    for row, wanted in zip(found.to_rows(), release.query(sql, 0.9).flat(), strict=True):
        for name, value in zip(names, row, strict=True):
            same = wanted[name]
            unknown = isinstance(same, float) and math.isnan(same)
            assert value is None if unknown else value == same
    assert found.notices[0].startswith("intervals at 0.9 cover ")


def test_an_unknown_number_is_null(viewed: SqlSession) -> None:
    assert viewed.run("select avg(age) from people where age > 500").to_rows() == [(None,)]


def test_an_answer_without_rows_has_its_columns(viewed: SqlSession) -> None:
    found = viewed.run("select sex, count(*) from people group by sex having count(*) < -1e9")
    assert found.tag == "SELECT 0" and columns(found.fields) == "sex VARCHAR, count DOUBLE"
    assert found.to_arrow().schema.types == [pa.string(), pa.float64()]


def test_groups_have_the_types_of_their_expressions(viewed: SqlSession) -> None:
    sql = (
        "select age // 10 as a, sex = 'Male' as b, day as c, date_trunc('month', day) as d, "
        "age / 2 as e, city || '!' as f, count(*) as n from people where age = 30 group by all "
        "limit 3"
    )
    found = viewed.run(sql)
    assert columns(found.fields) == (
        "a BIGINT, b BOOLEAN, c DATE, d TIMESTAMP, e DOUBLE, f VARCHAR, n DOUBLE"
    )
    assert len(found.to_arrow()) == 3  # every value is of its column's type


# ---------------------------------------------------------------------- the public domain and rows


def test_distinct_values_are_the_public_domains(session: SqlSession) -> None:
    found = session.run("select distinct city from people")
    assert found.to_rows() == [(city,) for city in CITIES] and found.notices == (LISTED,)
    days = session.run("select distinct day from people order by day desc limit 1 offset 1")
    assert [str(day) for (day,) in days.to_rows()] == ["2024-04-08"]


def test_columns_alone_are_free_of_rows(session: SqlSession) -> None:
    for sql in (
        "select * from people limit 0",
        "select * from people where 1 = 0",
        "select * from (select * from people) as x where false",
    ):
        assert session.run(sql).to_rows() == []
        assert {field.name for field in session.run(sql).fields} == set(NAMES)


@pytest.mark.parametrize(
    ("kind", "words"),
    [("classes", "rows of classes"), ("perturbed", "perturbed rows"),
     ("marginals", "synthetic rows")],
)  # fmt: skip
def test_rows_come_with_what_they_are(releases: dict[str, Any], kind: str, words: str) -> None:
    with SqlSession(releases[kind]) as session:
        found = session.run("SELECT * FROM (SELECT * FROM people) AS v WHERE sex = 'Male' LIMIT 7")
        assert found.tag == "SELECT 7" and found.notices[0].startswith(words)
        assert session.fields("select * from people limit 7") == found.fields
        shown = releases[kind].shown_rows()
        assert session.run("select * from people").to_arrow().num_rows == shown.num_rows
        males = [row for row in shown.to_pylist() if row["sex"] == "Male"]
        assert [dict(zip(shown.column_names, row, strict=True)) for row in found.to_rows()] == (
            males[:7]
        )


@pytest.mark.parametrize("kind", ["view", "counts"])
def test_rows_that_mean_nothing_are_refused_with_the_reason(
    releases: dict[str, Any], kind: str
) -> None:
    with SqlSession(releases[kind]) as session:
        with pytest.raises(QueryError, match=r"(?s)no rows that mean anything.*select count\(\*\)"):
            session.run("select * from people limit 10")
        assert [field.type for field in session.fields("select * from people limit 10")] == TYPES


def test_a_column_of_rows_that_is_not_there_is_named(session: SqlSession) -> None:
    with pytest.raises(QueryError, match=r"no column 'agee'.*line 1, column 8") as refused:
        session.run("select agee from people limit 3")
    assert "did you mean 'age'?" in refused.value.hint
    assert session.fields("select age as a from people order by a limit 1")[0].name == "a"


def test_a_subquery_in_a_select_of_rows_is_refused(releases: dict[str, Any]) -> None:
    with SqlSession(releases["perturbed"]) as session:
        for sql in (
            "select age, random() from people",
            "select age, (select count(*) from people) from people",
            "select unnest([1, 2]) from people",
            "select * from people tablesample 10 percent",
        ):
            with pytest.raises(QueryError):
                session.run(sql)


# ---------------------------------------------------------------------- what tools ask first


def one(session: SqlSession, sql: str) -> Any:
    ((found,),) = session.run(sql).to_rows()
    return found


def test_what_tools_ask_first(viewed: SqlSession) -> None:
    assert one(viewed, "SELECT 1") == 1
    assert one(viewed, "SELECT CAST('test plain returns' AS VARCHAR(60)) AS anon_1") == (
        "test plain returns"
    )
    assert one(viewed, "select pg_catalog.version()").startswith("PostgreSQL 16")
    assert one(viewed, "select current_schema()") == "public"
    assert one(viewed, "select current_setting('search_path')") == "public"
    assert viewed.run("SELECT version()").fields[0].name == "version"
    assert viewed.run("  -- nothing\n ;").tag == ""
    assert one(viewed, "select 'people'::regclass::bigint") == one(
        viewed, "select oid from pg_class where relname = 'people'"
    )


def test_tables_describe_themselves(session: SqlSession) -> None:
    sql = (
        "select column_name, data_type from information_schema.columns "
        "where table_schema = 'public' and table_name = 'people' order by ordinal_position"
    )
    kinds = ["BIGINT", "VARCHAR", "VARCHAR", "BOOLEAN", "DATE"]
    wanted = set(zip(NAMES, kinds, strict=True))  # classes have another order
    assert set(session.run(sql).to_rows()) == wanted
    assert set(session.tables["people"]) == {Field(n, t) for n, t in zip(NAMES, TYPES, strict=True)}
    assert one(session, "select table_name from information_schema.tables "
                        "where table_schema not in ('information_schema', 'pg_catalog')"
               ) == "people"  # fmt: skip
    described = session.run("describe people").to_rows()
    assert {row[:2] for row in described} == wanted
    assert [row[1:3] for row in session.run("PRAGMA table_info('people')").to_rows()] == [
        row[:2] for row in described
    ]
    assert one(session, "SHOW TABLES") == "people"


def test_catalogues_have_no_rows_of_anybody(session: SqlSession) -> None:
    found = one(session, "select estimated_size from (select 0 as estimated_size) as x")
    assert found == 0
    assert one(session, "select reltuples from pg_class where relname = 'people'") == 0


@pytest.mark.parametrize(
    ("sql", "tag"),
    [("BEGIN", "BEGIN"), ("begin transaction read only", "BEGIN"), ("COMMIT;", "COMMIT"),
     ("ROLLBACK TO SAVEPOINT a", "ROLLBACK"), ("SET extra_float_digits = 3", "SET"),
     ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "SET"), ("SET NAMES 'utf8'", "SET"),
     ("SET TIME ZONE 'UTC'", "SET"), ("SHOW server_version", "SHOW"), ("SHOW ALL", "SHOW"),
     ("RESET ALL", "RESET"), ("DISCARD ALL", "DISCARD ALL"), ("UNLISTEN *", "UNLISTEN")],
)  # fmt: skip
def test_a_session_takes_what_changes_nothing(viewed: SqlSession, sql: str, tag: str) -> None:
    assert viewed.run(sql).tag == tag


def test_settings_are_kept_shown_and_reset(viewed: SqlSession) -> None:
    viewed.run("SET application_name TO 'it''s me'")
    assert one(viewed, "SHOW application_name") == "it's me"
    assert one(viewed, "select setting from pg_settings where name = 'application_name'") == (
        "it's me"
    )
    viewed.run("SET voile.intervals TO true")
    assert one(viewed, "SHOW voile.intervals") == "on"
    viewed.run("RESET voile.intervals")
    assert one(viewed, "SHOW voile.intervals") == "off"
    viewed.run("SET voile.confidence = DEFAULT")
    assert one(viewed, "SHOW voile.confidence") == "0.95"


def test_no_reset_leaves_a_session_able_to_spend(viewed: SqlSession) -> None:
    for reset in ("RESET ALL", "reset  all;", "DISCARD ALL", "RESET voile.charge",
                  "BEGIN; RESET ALL; ROLLBACK"):  # fmt: skip
        viewed.run("SET SESSION voile.charge = on")
        assert viewed.settings.charge
        for part in reset.split("; "):
            viewed.run(part)
        assert not viewed.settings.charge, reset


def test_what_a_transaction_set_ends_with_its_undoing(viewed: SqlSession) -> None:
    for end, charge in (("ROLLBACK", False), ("ABORT", False), ("ROLLBACK TO a", True),
                        ("COMMIT", True), ("END", True)):  # fmt: skip
        for part in ("RESET ALL", "BEGIN", "SET voile.charge = on", end):
            viewed.run(part)
        assert viewed.settings.charge is charge, end
        viewed.run("ROLLBACK")
    viewed.run("RESET ALL")


@pytest.mark.parametrize(
    ("sql", "message"),
    [("SET LOCAL voile.charge = on", "voile.charge holds for a session"),
     ('set local "voile.charge" to on', "voile.charge holds for a session"),
     ("RESET /* all */ ALL", "is not understood"),
     ("SET voile.chrage = on", "did you mean 'voile.charge'"),
     ("SET voile.charge = maybe", "voile.charge is 'maybe'"),
     ("SET voile.confidence = 2", "not a chance between 0 and 1"),
     ("SET voile.confidence = nan", "not a chance between 0 and 1"),
     ("SHOW nothing", "there is no setting 'nothing'"),
     ("RESET voile.x", "there is no setting 'voile.x'"),
     ("SET", "is not understood"),
     (f"SET a = '{'x' * 2000}'", "too much to keep"),
     ("PRAGMA database_list", "is refused"),
     ("CALL pragma_version()", "CALL is not a question")],
)  # fmt: skip
def test_commands_that_are_refused(viewed: SqlSession, sql: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        viewed.run(sql)


def test_a_session_keeps_a_bounded_number_of_settings(viewed: SqlSession) -> None:
    with pytest.raises(QueryError, match="too much to keep"):
        for i in range(1000):
            viewed.run(f"SET a{i} = 1")


def test_explain_says_what_answers(viewed: SqlSession) -> None:
    assert one(viewed, "EXPLAIN ANALYZE select count(*) from people") == (
        "estimates from a noisy view of a table, which are free"
    )
    assert one(viewed, "explain (format text) select distinct city from people") == LISTED
    assert "free" in one(viewed, "explain select * from people limit 0")
    assert "free" in one(viewed, "explain select 1")


# ---------------------------------------------------------------------- what is refused


WRITES = ["INSERT INTO people VALUES (1)", "update people set age = 1", "delete from people",
          "create table x (a int)", "drop table people", "COPY people TO 'x.csv'",
          "create or replace view people as select 1"]  # fmt: skip
HOSTILE = [
    "select * from 'people.csv'", "select * from read_csv('/etc/passwd')",
    "select read_text('/etc/passwd')", "select * from glob('*')", "select getenv('HOME')",
    "select * from duckdb_settings()", "select * from query('select 1')", "ATTACH 'x.db'",
    "INSTALL httpfs", "LOAD httpfs", "PRAGMA database_size", "EXPORT DATABASE 'x'", "CHECKPOINT",
    "select * from range(10000000000)", "select repeat('x', 1000000000)", "select pg_sleep(100)",
    "select pg_read_file('/etc/passwd')", "select 1; select 2", "select '",
    "with recursive t as (select 1 as x union all select x + 1 from t) select count(*) from t",
    f"select {'(' * 3000}1{')' * 3000}", f"select {'-' * 50_000}1", "select " + "1+" * 20_000 + "1",
    f"select count(*) from people where {' or '.join(['age = 1'] * 12_000)}",
    "select 1 as a -- " + "x" * 200_000, "select count(*) from people where city = '\0'",
    f"select 1 from {', '.join(f'pg_class as c{i}' for i in range(40))}",
]  # fmt: skip


@pytest.mark.parametrize("sql", WRITES)
def test_nothing_is_written(session: SqlSession, sql: str) -> None:
    with pytest.raises(ReadOnlyError, match="only read"):
        session.run(sql)


@pytest.mark.parametrize("sql", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_statements_are_refused_at_once(viewed: SqlSession, sql: str) -> None:
    began = time.process_time()
    with pytest.raises(VoileError):
        viewed.run(sql)
    assert time.process_time() - began < 20
    assert one(viewed, "select 1") == 1


def test_a_look_that_takes_too_long_is_ended(
    releases: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    viewed = SqlSession(releases["view"])
    monkeypatch.setattr(
        "voile.dbapi.catalogue.open_tables", lambda *a, **k: open_tables(*a, **k, seconds=0.1)
    )
    tables = ", ".join(f"pg_attribute as a{i}" for i in range(8))
    with pytest.raises(QueryError, match=r"longer than 0\.1 seconds"):
        viewed.run(f"select count(*) from {tables}")
    assert one(viewed, "select 1") == 1
    viewed.close()


def test_programs_around_a_session_are_not_read(viewed: SqlSession) -> None:
    secret = pa.table({"x": [1]})
    with pytest.raises(QueryError):
        viewed.run("select * from secret")
    with pytest.raises(QueryError):
        viewed.run("select * from pg_secret, secret")
    assert secret.num_rows == 1


# ---------------------------------------------------------------------- sources


def test_a_folder_of_releases_is_a_database(releases: dict[str, Any], tmp_path: Path) -> None:
    for name in ("view", "perturbed"):
        (tmp_path / f"{name}.voile").symlink_to(releases[name].path, target_is_directory=True)
    with pytest.raises(UsageError, match="two releases are called 'people'"):
        SqlSession(tmp_path)
    other = voile.perturb(
        voile.read("dataset:adult/boundary"), 0.9, name="adult", register=False, simulate_seed=1,
        to=tmp_path / "perturbed2.voile",
    )  # fmt: skip
    (tmp_path / "perturbed.voile").unlink()
    with SqlSession(tmp_path) as session:
        assert set(session.tables) == {"people", "adult"}
        assert (
            one(session, "select count(*) from Adult")
            == other.query("select count(*) from adult").value
        )
        with pytest.raises(QueryError, match="adult and people cannot be read together"):
            session.run("select count(*) from adult join people on adult.age = people.age")


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [("nothing.voile", {}, "there is no release 'nothing.voile'"), (3, {}, "3 is no release"),
     ("nothing.voile", {"token": "x"}, "a token is for a server"),
     ("http://127.0.0.1:9", {"token": "x", "token_file": "y"}, "exclude each other"),
     ("http://127.0.0.1:9", {"token_file": "no.token"}, "cannot be read"),
     ("nothing.voile", {"confidence": 1.5}, "must lie between 0 and 1")],
)  # fmt: skip
def test_sources_that_are_none(
    source: Any, options: dict[str, Any], message: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with pytest.raises(VoileError, match=message):
        SqlSession(source, **options)


def test_sessions_share_a_source_and_not_their_settings(releases: dict[str, Any]) -> None:
    source = SqlSource(opened_tables(releases["view"]))
    first, second = SqlSession(source), SqlSession(source)
    first.run("SET voile.intervals = on")
    assert len(first.run("select count(*) from people").fields) == 4
    assert len(second.run("select count(*) from people").fields) == 1
    first.close()
    assert one(second, "select 1") == 1
    with pytest.raises(UsageError, match="is closed"):
        first.run("select 1")
    source.close()


def test_threads_share_a_session(releases: dict[str, Any]) -> None:
    statements = [
        "select sex, count(*) from people group by sex", "select distinct city from people",
        "select * from people limit 3", "select table_name from information_schema.tables",
    ]  # fmt: skip
    with SqlSession(releases["perturbed"]) as session:
        wanted = [session.run(sql).to_rows() for sql in statements]
        wrong: list[object] = []

        def ask() -> None:
            for sql, rows in zip(statements, wanted, strict=True):
                found = session.run(sql).to_rows()
                if found != rows:
                    wrong.append((sql, found))

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
