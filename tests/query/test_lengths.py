"""Texts that expressions make, and functions of two texts: bounded by their lengths, by name."""

from __future__ import annotations

import duckdb
import pytest

from voile.errors import QueryError
from voile.query import parse
from voile.query.lengths import MOST_COMPARED, MOST_MADE, MOST_MATCHED, in_schema, longest
from voile.query.text import read_back
from voile.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "attributes": [
            {"name": "age", "kind": "integer", "range": [0, 99]},
            {"name": "sex", "kind": "categorical", "values": ["Female", "Male"]},
            {"name": "Note", "kind": "categorical", "values": ["a", "b" * 300]},
        ]
    }
)
LONG = "x" * 2400


def query(condition: str) -> None:
    parse(f"select count(*) from t where {condition}", SCHEMA)


@pytest.mark.parametrize("name", ["levenshtein", "damerau_levenshtein", "jaccard", "hamming"])
@pytest.mark.parametrize(
    "texts",
    [f"sex || '{LONG}', sex || '{LONG}'", f"'{LONG}', sex", "note, 'Male'", "lower(sex), Note",
     "lpad(sex, 900, 'x'), sex", f"concat(sex, '{LONG}'), sex", "replace(sex, 'e', note), sex"],
)  # fmt: skip
def test_distances_of_long_texts_are_refused_by_name(name: str, texts: str) -> None:
    with pytest.raises(QueryError, match=f"{name} of texts") as error:
        query(f"{name}({texts}) < 3")
    assert str(MOST_COMPARED) in error.value.hint
    assert name in error.value.hint


@pytest.mark.parametrize("name", ["levenshtein", "damerau_levenshtein", "jaccard", "hamming"])
@pytest.mark.parametrize(
    "texts", ["sex, 'Mole'", "lower(sex), 'mole'", "left(note, 100), 'b'", f"sex, '{'x' * 256}'",
              "substring(note, 1, 50), sex", "sex || 'x', sex || 'y'", "trim(upper(sex)), 'M'"],
)  # fmt: skip
def test_distances_of_short_texts_are_computed(name: str, texts: str) -> None:
    query(f"{name}({texts}) < 3")


@pytest.mark.parametrize(
    "condition",
    ["sex || '{a}' like '%{b}'", "sex || '{a}' ilike '%{b}%'", "sex || '{a}' glob '*{b}*'",
     "regexp_matches(sex || '{a}', '{b}')", "sex || '{a}' similar to '{b}'",
     "regexp_replace(sex || '{a}', '{b}', 'x') = 'y'", "regexp_extract('{a}', '{b}') = sex"],
)  # fmt: skip
def test_long_patterns_in_long_texts_are_refused(condition: str) -> None:
    with pytest.raises(QueryError, match="takes too long") as error:
        query(condition.format(a="a" * 3000, b="a" * 1500))
    assert f"{MOST_MATCHED:,}" in error.value.hint
    query(condition.format(a="a" * 30, b="a" * 1500))  # one long text is fine


def test_the_bound_is_where_it_is_said_to_be() -> None:
    query(f"levenshtein(sex, '{'x' * MOST_COMPARED}') < 3")
    with pytest.raises(QueryError, match="257 characters"):
        query(f"levenshtein(sex, '{'x' * (MOST_COMPARED + 1)}') < 3")


# ---------------------------------------------------------------------- texts that are made


@pytest.mark.parametrize(
    "text",
    [
        f"replace(replace(sex, 'e', '{'e' * 200}'), 'e', '{'e' * 200}')",
        f"replace(sex || note, '', '{'x' * 200}')",
        f"regexp_replace(lpad(sex, 900, 'a'), 'a', '{'x' * 100}', 'g')",
        f"regexp_replace(sex, '(.*)', $${'x' * 2000}$$)",
        "concat(" + ", ".join(["note"] * 40) + ")",
        " || ".join(["note"] * 40),
        f"concat_ws(concat_ws(note, {', '.join(['age'] * 30)}), age, age, age)",
        f"strftime(date '2000-01-01', '{'%c' * 100}')",
    ],
)
@pytest.mark.parametrize("around", ["length({}) > 3", "left({}, 5) = 'x'", "{} in ('a', 'b')"])
def test_texts_that_could_fill_the_memory_are_refused(text: str, around: str) -> None:
    """By the query itself, not only by a server: gigabytes are as many at home."""
    with pytest.raises(QueryError, match=f"more than {MOST_MADE:,} characters"):
        query(around.format(text))


@pytest.mark.parametrize(
    "condition",
    [
        f"replace(sex, 'e', 'x') in ({', '.join(repr(str(n) * 30) for n in range(999))})",
        "case "
        + " ".join(f"when age = {n} then '{n:0500}'" for n in range(99))
        + " end || 'x' = ''",
        " + ".join(["(replace(sex, 'e', 'x') = 'Male')::integer"] * 200) + " > 3",
        f"replace(left(replace(sex, 'e', '{'e' * 200}'), 10), 'e', '{'e' * 200}') = ''",
        f"sex = '{'x' * 20_000}'",
        " || ".join(["sex"] * 200) + " = ''",
        "concat_ws(', ', sex, age, note, replace(note, 'b', 'dozen')) = ''",
    ],
)
def test_texts_that_stay_short_are_computed(condition: str) -> None:
    query(condition)


@pytest.mark.parametrize(
    "text",
    ["replace('aXbX', 'X', 'four')", "replace('', '', 'x')", "lpad('abc', 9, 'xy')", "'a' || 'bc'",
     "regexp_replace('abc', '(.)', '\\1\\1\\1', 'g')", "regexp_replace('abc', 'x*', 'yz', 'g')",
     "concat('a', 'bcd', 3)", "concat_ws('---', 'a', 'b', 'c', 'd')", "left('abcdef', 3)",
     "strftime(date '2024-09-25', '%A %B')", "1e300::varchar", "(1 = 2)::varchar", "$$abc$$",
     "coalesce(null, 'abc')", "case when 1 = 1 then 'abcd' else 'e' end", "upper('abc')",
     "translate('ab', 'a', 'x')", "monthname(date '2024-09-25')",
     "replace(replace('ab', 'a', 'bbbb'), 'b', 'cccc')",],
)  # fmt: skip
def test_no_text_is_longer_than_its_bound(text: str) -> None:
    ((found,),) = duckdb.execute(f"select length({text})").fetchall()
    assert found <= longest(read_back(text), in_schema(SCHEMA))
