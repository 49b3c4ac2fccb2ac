"""What clients ask of PostgreSQL's catalogues, and what nobody is told there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.wire import CATALOGUE
from voile.wire.catalogue.relations import named_types, relations
from voile.wire.catalogue.words import prelude
from voile.wire.conversation import WireCaller
from voile.wire.messages import WireError
from voile.wire.statements import parsed

CALLER = WireCaller("anna", "mine", 7)


def rows(sql: str, *values: Any) -> list[tuple[Any, ...]]:
    tree = parsed(sql)
    assert tree is not None
    found = CATALOGUE.run(tree, CALLER, values)
    assert CATALOGUE.fields(tree, CALLER, values).names == found.column_names
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def names(sql: str) -> list[str]:
    tree = parsed(sql)
    assert tree is not None
    found: list[str] = CATALOGUE.run(tree, CALLER, ()).column_names
    return found


def test_who_and_where_one_is() -> None:
    assert rows("select current_user, session_user, current_database(), current_schema()") == [
        ("anna", "anna", "mine", "public")
    ]
    assert rows("select pg_backend_pid(), current_schemas(true)") == [(7, ["pg_catalog", "public"])]
    assert rows("select pg_catalog.version()")[0][0].startswith("PostgreSQL 15")


def test_columns_have_the_names_that_postgresql_gives_them() -> None:
    assert names(
        "select 1, 'a', version(), count(*), oid, oid::text, 1::int, 'x'::regtype, "
        "case when true then relname end, case when true then 'a' else relname end, "
        "(select nspname from pg_namespace limit 1), exists(select 1), 1 + 1, -1, "
        "coalesce(relname, 'x') from pg_class group by oid, relname limit 0"
    ) == [
        "?column?", "?column?", "version", "count", "oid", "oid", "int4", "regtype", "case",
        "relname", "nspname", "exists", "?column?", "?column?", "coalesce",
    ]  # fmt: skip


def test_tables_and_types_by_name_and_number() -> None:
    number = rows("select 'people'::regclass::oid")[0][0]
    assert rows("select oid, oid::regclass::text from pg_class where relname = 'people'") == [
        (number, "people")
    ]
    assert rows("select 1 from pg_class where oid = 'public.people'::pg_catalog.regclass") == [(1,)]
    assert rows(f"select '{number}'::regclass::text, {number}::regclass") == [("people", "people")]
    assert rows("select 'double precision'::regtype::oid, 701::regtype::text, 'int4'::regtype") == [
        (701, "double precision", 23)
    ]
    assert rows("select to_regtype('hstore'), to_regclass('nobody')") == [(None, None)]
    assert rows("select relnamespace::regnamespace::text from pg_class where relname = 'people'"
                ) == [("public",)]  # fmt: skip


def test_columns_of_a_table() -> None:
    asked = (
        "select attname, format_type(atttypid, atttypmod), attnotnull from pg_attribute "
        "where attrelid = $1 and attnum > 0 order by attnum"
    )
    number = rows("select 'people'::regclass::oid")[0][0]
    assert rows(asked, number) == [
        ("age", "bigint", False), ("sex", "text", False), ("hours", "double precision", False),
        ("smoker", "boolean", False), ("born", "date", False),
        ("seen", "timestamp without time zone", False),
    ]  # fmt: skip
    assert rows(
        "select column_name, data_type from information_schema.columns "
        "where table_name = 'people' order by ordinal_position limit 2"
    ) == [("age", "bigint"), ("sex", "text")]


@pytest.mark.parametrize(
    "condition",
    [
        "relname operator(pg_catalog.~) '^(people)$' collate pg_catalog.default",
        "relname ~ '^peo' and relname !~ 'x'",
        "relname = any (array['people'])",
        "relname = any ('{people,others}')",
        "relname = any ('{people}'::text[]) and relname <> all ('{a,b}')",
        "relname like 'peo%' escape '/' and relkind in ('r', 'v', '')",
        "pg_catalog.pg_table_is_visible(oid) and relkind = 'r' and relnamespace = 2200",
        "pg_class.relname = 'people' and pg_catalog.pg_class.relkind = 'r'",
        "has_table_privilege(oid, 'SELECT') and not has_table_privilege(oid, 'INSERT') "
        "and relnamespace = 2200",
    ],
)
def test_conditions_in_postgresqls_words(condition: str) -> None:
    assert rows(f"select relname from pg_class where {condition}") == [("people",)]


def test_macros_take_columns_of_any_name() -> None:
    """What is passed to a macro is not read as a column of a table within it."""
    asked = "select pg_table_is_visible(oid), oid::regclass::text from pg_class where oid = 16385"
    assert rows(asked) == [(True, "people")]


@pytest.mark.parametrize("place", relations(), ids=".".join)
def test_every_relation_can_be_read(place: tuple[str, str]) -> None:
    schema, name = place
    assert names(f"select * from {schema}.{name} limit 0") == [
        column for column, _ in relations()[place].columns
    ]


def test_what_is_listed_is_consistent() -> None:
    numbers = [one.oid for one in relations().values()]
    assert len(set(numbers)) == len(numbers)
    types = {one.oid for one in named_types()}
    assert {one.row["typelem"] for one in named_types()} <= types | {0}
    assert {one.row["typarray"] for one in named_types()} <= types | {0}
    assert len(list(prelude(["people"], []))) > len(relations())


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("select * from pg_catalog.pg_authid", "42P01"),
        ("select * from information_schema.nothing", "42P01"),
        ("select nothing from pg_class", "42703"),
        ("select nothing(1)", "42883"),
        ("select 1 / 'a'::int", "22P02"),
        ("select * from pg_read_file('/etc/passwd')", "42883"),
        ("select * from read_csv('/etc/passwd')", "0A000"),
        ("select * from read_text('/etc/passwd')", "42883"),
        ("select * from which_secret('a', 'b')", "42883"),
        ("select * from query('select 1')", "42883"),
        ("select * from nobody", "42P01"),
        ("select * from duckdb_settings()", "42883"),
        ("select getenv('HOME')", "42883"),
        ("select * from pg_class for update", "0A000"),
        ("select * into x from pg_class", "42P01"),
        ("select $1", "42P02"),
        ("select 1 operator(pg_catalog.@@) 2", "0A000"),
    ],
)
def test_what_is_not_answered(sql: str, state: str) -> None:
    with pytest.raises(WireError) as refused:
        rows(sql)
    assert refused.value.state == state
    assert "root" not in str(refused.value)


def test_no_statement_is_long_or_large() -> None:
    with pytest.raises(WireError, match="too many parts"):
        rows(f"select {'+'.join(['1'] * 11_000)}")
