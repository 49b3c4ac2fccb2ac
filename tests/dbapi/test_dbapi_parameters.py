"""Parameters: values stay values, whatever is in them and wherever they stand."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voile.dbapi import SqlSession
from voile.dbapi.parameters import bound, placeholders
from voile.dbapi.statements import tree_of
from voile.errors import UsageError

TEXTS = st.text(max_size=40).filter(lambda text: "\0" not in text)
AWKWARD = ["'", "''", "'; drop table people; --", '"', "\\'", "?", "$1", ":a", "%s", "/*", "--",
           "é\u0301", "\U0001f600", "\r\n", "\ufeff", "NULL", ""]  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.one_of(
    TEXTS, st.sampled_from(AWKWARD), st.integers(-(2**62), 2**62), st.booleans(), st.none(),
    st.floats(allow_nan=False), st.dates(), st.times(),
    st.datetimes(min_value=dt.datetime(1, 1, 1)),
)  # fmt: skip


@pytest.fixture(scope="module")
def constants(releases: dict[str, Any]) -> Any:
    with SqlSession(releases["view"]) as session:
        yield session


@given(values=st.lists(VALUES, min_size=1, max_size=5))
def test_values_come_back_as_they_went_in(constants: SqlSession, values: list[Any]) -> None:
    places = ", ".join(f"? as c{i}" for i in range(len(values)))
    (found,) = constants.run(f"select {places} -- ? '?'", values).to_rows()
    assert list(found) == [float(v) if isinstance(v, Decimal) else v for v in values]


@given(text=st.one_of(TEXTS, st.sampled_from(AWKWARD)))
def test_texts_in_conditions_are_compared_and_never_read(
    constants: SqlSession, releases: dict[str, Any], text: str
) -> None:
    sql = "select count(*) from people where city = ? or city = ?"
    ((found,),) = constants.run(sql, ("Cork", text)).to_rows()
    wanted = releases["view"].query("select count(*) from people where city = 'Cork'").value
    assert found == pytest.approx(wanted)


def test_parameters_may_stand_wherever_values_do(
    constants: SqlSession, releases: dict[str, Any]
) -> None:
    sql = (
        "select sex, count(*) filter (where age > ?) as n, avg(age) + ? as m from people "
        "where city in (?, ?) and day between ? and ? and city like ? and (smoker = ? or ? is null)"
        " group by sex having count(*) > ? order by sex desc limit ? offset ?"
    )
    given_ = (30, 0.5, "Cork", "Delft", dt.date(2024, 1, 5), dt.date(2024, 3, 1), "%o%", False,
              None, -50, 1, 1)  # fmt: skip
    assert len(placeholders(tree_of(sql))) == len(given_)
    written = (
        "select sex, count(*) filter (where age > 30) as n, avg(age) + 0.5 as m from people "
        "where city in ('Cork', 'Delft') and day between date '2024-01-05' and date '2024-03-01' "
        "and city like '%o%' and (smoker = false or null is null) group by sex "
        "having count(*) > -50 order by sex desc limit 1 offset 1"
    )
    assert constants.run(sql, given_).to_rows() == constants.run(written).to_rows()
    assert constants.run(written).to_rows()
    assert releases["view"].query(written).rows[0]["sex"] == "Female"


def test_parameters_by_number_and_by_name(constants: SqlSession) -> None:
    assert constants.run("select $2 as a, $1 as b, $2 as c", (1, 2)).to_rows() == [(2, 1, 2)]
    assert constants.run("select $a as x, $b as y", {"a": 1, "b": "z"}).to_rows() == [(1, "z")]
    sql = "select count(*) from people where city = $1 and city = $1"
    assert constants.run(sql, ("Cork",)).to_rows() == (
        constants.run("select count(*) from people where city = 'Cork'").to_rows()
    )
    look = "select relname from pg_catalog.pg_class where relname = $1"
    assert constants.run(look, ("people",)).to_rows() == [("people",)]
    assert constants.run(look.replace("$1", "?"), ("'",)).to_rows() == []


def test_columns_are_known_without_parameters(constants: SqlSession) -> None:
    fields = constants.fields("select sex, count(*) from people where age > $1 group by sex")
    assert [field.name for field in fields] == ["sex", "count"]
    assert columns_of(constants, "select distinct city from people limit ?") == ["city"]
    assert columns_of(constants, "select oid from pg_class where relname = ?") == ["oid"]


def columns_of(session: SqlSession, sql: str) -> list[str]:
    return [field.name for field in session.fields(sql)]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(np.int64(3), 3), (np.float32(0.5), 0.5), (np.bool_(True), True), (Decimal("1.50"), 1.5),
     (-7, -7), (-0.25, -0.25), (10**18, 10**18), (math.inf, math.inf), (-math.inf, -math.inf),
     (np.str_("it's"), "it's")],
)  # fmt: skip
def test_numbers_of_other_libraries(constants: SqlSession, value: Any, wanted: Any) -> None:
    ((found,),) = constants.run("select ? as x", (value,)).to_rows()
    assert float(found) == wanted if not isinstance(wanted, str) else found == wanted


@pytest.mark.parametrize(
    ("sql", "parameters", "message"),
    [("select ?", (), "number 1 has no value"), ("select $3", (1, 2), "number 3 has no value"),
     ("select $0", (1,), "number 0 has no value"), ("select $a", {"b": 1}, r"\$a has no value"),
     ("select ?", (1, 2), "2 parameters were given, and the statement has 1 place"),
     ("select '?'", (1,), "0 places"), ("select ?", 3, "not int"), ("select ?", b"x", "not bytes"),
     ("select ?", (b"x",), "of type bytes"), ("select ?", ([1],), "of type list"),
     ("select ?", ("\0",), "NUL"), ("select ?", ("\ud800",), "not valid Unicode"),
     ("select ?", (dt.datetime(2024, 1, 1, tzinfo=dt.UTC),), "has a time zone")],
)  # fmt: skip
def test_parameters_that_do_not_fit(
    constants: SqlSession, sql: str, parameters: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        constants.run(sql, parameters)


def test_binding_leaves_the_tree_as_it_was() -> None:
    tree = tree_of("select ? as x")
    bound(tree, (1,))
    assert len(placeholders(tree)) == 1
