"""SQLAlchemy: reflection with real types, select() with bound parameters, pandas, refusals."""

from __future__ import annotations

import datetime as dt
import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from sqlalchemy import types
from sqlalchemy.dialects import registry
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchTableError, NotSupportedError

from tests.support.paths import ROOT
from voile.dbapi.alchemy import HttpDialect, HttpsDialect, VoileDialect

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(autouse=True, scope="module")
def registered() -> None:
    """As entry points do it, also where another version of the project was installed."""
    for name, home in PROJECT["entry-points"]["sqlalchemy.dialects"].items():
        module, _, kind = home.partition(":")
        registry.register(name, module, kind)


@pytest.fixture
def engine(releases: dict[str, Any]) -> Iterator[sa.Engine]:
    found = sa.create_engine(f"voile:///{releases['perturbed'].path}")
    yield found
    found.dispose()


@pytest.fixture
def table(engine: sa.Engine) -> sa.Table:
    found = sa.MetaData()
    found.reflect(engine)
    return found.tables["people"]


def test_entry_points_lead_to_the_dialects() -> None:
    points = PROJECT["entry-points"]["sqlalchemy.dialects"]
    found = {}
    for name, home in points.items():
        module, _, kind = home.partition(":")
        found[name] = getattr(importlib.import_module(module), kind)
    assert found == {
        "voile": VoileDialect, "voile.https": HttpsDialect, "voile.http": HttpDialect,
    }  # fmt: skip


def test_tables_are_reflected_with_their_types(engine: sa.Engine, table: sa.Table) -> None:
    kinds = [types.BIGINT, types.VARCHAR, types.VARCHAR, types.BOOLEAN, types.DATE]
    assert [column.name for column in table.c] == ["age", "sex", "city", "smoker", "day"]
    assert [type(column.type) for column in table.c] == kinds
    about = sa.inspect(engine)
    assert about.default_schema_name == "public"
    assert about.get_schema_names() == ["public"] and about.get_view_names() == []
    assert about.get_table_names() == about.get_table_names("public") == ["people"]
    assert about.get_table_names("other") == [] and about.get_sequence_names() == []
    assert about.has_table("people", "public") and not about.has_table("nobody")
    assert not about.has_table("people", "other") and about.has_schema("public")
    assert about.get_pk_constraint("people")["constrained_columns"] == []
    assert not about.get_foreign_keys("people") and not about.get_indexes("people")
    assert not about.get_unique_constraints("people") and not about.get_check_constraints("people")
    assert about.get_table_comment("people") == {"text": None}
    for ask in (about.get_columns, about.get_pk_constraint, about.get_indexes):
        with pytest.raises(NoSuchTableError):
            ask("nobody")


def test_selects_are_answered_as_the_release_answers(
    engine: sa.Engine, table: sa.Table, releases: dict[str, Any]
) -> None:
    c, count = table.c, sa.func.count()
    old = sa.case((c.age > 50, "old"), else_="young").label("g")
    month = sa.extract("month", c.day).label("m")
    release = releases["perturbed"]
    for select, sql in (
        (sa.select(c.sex, count.label("n")).where(c.age > 30, c.city.in_(["Cork", "Delft"]))
         .group_by(c.sex).order_by(sa.desc("n")).limit(1),
         "select sex, count(*) as n from people where age > 30 and city in ('Cork', 'Delft') "
         "group by sex order by n desc limit 1"),
        (sa.select(old, count).group_by("g").order_by("g"),
         "select case when age > 50 then 'old' else 'young' end as g, count(*) from people "
         "group by g order by g"),
        (sa.select(month, sa.func.avg(c.age)).group_by("m").order_by("m").offset(1),
         "select month(day) as m, avg(age) from people group by m order by m offset 1"),
        (sa.select(count).where(c.city.ilike("%O%"), c.smoker, c.day >= dt.date(2024, 2, 1)),
         "select count(*) from people where city ilike '%o%' and smoker and day >= '2024-02-01'"),
        (sa.select(count).where(c.city.in_([])), "select count(*) from people where false"),
        (sa.select(count).where(c.city.not_in(["Cork"]), c.sex.is_not(None)),
         "select count(*) from people where city <> 'Cork'"),
        (sa.select(count).select_from(sa.select(table).where(c.age > 30).subquery()),
         "select count(*) from people where age > 30"),
        (sa.select(c.sex, count).group_by(c.sex).having(count > 0).order_by(c.sex.desc()),
         "select sex, count(*) from people group by sex order by sex desc"),
    ):  # fmt: skip
        with engine.connect() as connection:
            rows = [tuple(row) for row in connection.execute(select)]
        wanted = [
            tuple(getattr(value, "value", value) for value in row.values())
            for row in release.query(sql).rows
        ]
        assert rows == wanted and rows, sql


def test_a_text_that_is_bound_stays_a_text(engine: sa.Engine) -> None:
    text = sa.text("select count(*) from people where city = :c or city = :d")
    with engine.connect() as connection:
        odd = connection.execute(text, {"c": "Cork", "d": "' or 1 = 1 --☃"}).scalar()
        plain = connection.execute(text, {"c": "Cork", "d": "Cork"}).scalar()
    assert odd == plain


def test_distinct_values_rows_and_pings(engine: sa.Engine, table: sa.Table) -> None:
    with engine.connect() as connection:
        cities = connection.execute(sa.select(table.c.city).distinct().order_by(table.c.city))
        assert cities.scalars().all() == ["Aachen", "Bergen", "Cork", "Delft"]
        assert len(connection.execute(sa.select(table).limit(3)).all()) == 3
        raw = connection.connection.dbapi_connection
        assert raw is not None and engine.dialect.do_ping(raw)
        connection.rollback()


def test_pandas_reads(engine: sa.Engine) -> None:
    groups = pd.read_sql("select city, count(*) as n from people group by city", engine)
    assert groups.shape == (4, 2) and groups["n"].dtype == "float64"
    bound = pd.read_sql(
        sa.text("select count(*) as n from people where age > :a"), engine, params={"a": 40}
    )
    assert bound.shape == (1, 1)
    rows = pd.read_sql("people", engine)
    assert rows.shape == (600, 5) and str(rows["age"].dtype) == "int64"
    assert pd.read_sql_table("people", engine, columns=["sex"]).shape == (600, 1)


def test_options_of_the_url(releases: dict[str, Any]) -> None:
    place = releases["view"].path
    engine = sa.create_engine(f"voile:///{place}?intervals=true&confidence=0.9")
    with engine.connect() as connection:
        found = connection.execute(sa.text("select count(*) as n from people"))
        assert list(found.keys()) == ["n", "n_stderr", "n_low", "n_high"]
        assert connection.execute(sa.text("show voile.confidence")).scalar() == "0.9"
    engine.dispose()


def test_who_gets_a_pooled_connection_next_spends_nothing_unasked(engine: sa.Engine) -> None:
    shown = sa.text("SHOW voile.charge")
    with engine.connect() as first:
        first.execute(sa.text("SET voile.charge = on"))
        assert first.execute(shown).scalar() == "on"
        first.commit()
        one = first.connection.dbapi_connection
    with engine.connect() as second:
        assert second.connection.dbapi_connection is one
        assert second.execute(shown).scalar() == "off"


def test_nothing_is_written(engine: sa.Engine, table: sa.Table) -> None:
    with engine.connect() as connection:
        for statement in (
            sa.insert(table).values(age=1), sa.update(table).values(age=1), sa.delete(table),
            sa.schema.CreateTable(sa.Table("x", sa.MetaData(), sa.Column("a", sa.Integer))),
        ):  # fmt: skip
            with pytest.raises(NotSupportedError, match="only read"):
                connection.execute(statement)
    with pytest.raises(DBAPIError, match="only read"):
        pd.DataFrame({"a": [1]}).to_sql("x", engine)


@pytest.mark.parametrize(
    ("url", "arguments"),
    [("voile:///adult.voile", ("adult.voile", {})),
     ("voile:////data/adult.voile", ("/data/adult.voile", {})),
     ("voile:///C:/data/adult.voile", ("C:/data/adult.voile", {})),
     ("voile:///s3a://bucket/adult.voile", ("s3a://bucket/adult.voile", {})),
     ("voile+https://host/?token_file=a.token", ("https://host", {"token_file": "a.token"})),
     ("voile+https://:secret@host:8443/counts?charge=on",
      ("https://host:8443/counts", {"charge": True, "token": "secret"})),
     ("voile+http://[::1]:80", ("http://[::1]:80", {}))],
)  # fmt: skip
def test_urls(url: str, arguments: tuple[str, dict[str, Any]]) -> None:
    found = sa.make_url(url)
    (place,), options = found.get_dialect()().create_connect_args(found)
    assert (place, options) == arguments


@pytest.mark.parametrize(
    ("url", "message"),
    [("voile://", "names no release"), ("voile://adult.voile", "write three slashes"),
     ("voile+https://", "names no server"), ("voile:///x?intervls=on", "did you mean 'intervals'"),
     ("voile:///x?intervals=maybe", "intervals is 'maybe'"),
     ("voile:///x?confidence=high", "confidence is 'high'"),
     ("voile:///x?charge=on&charge=off", "more than once"),
     ("voile+https://:a@host?token=b", "two tokens")],
)  # fmt: skip
def test_urls_that_are_refused(url: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        sa.create_engine(url).connect()


def test_a_release_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(sa.exc.OperationalError, match="there is no release"):
        sa.create_engine(f"voile:///{tmp_path}/nothing.voile").connect()
