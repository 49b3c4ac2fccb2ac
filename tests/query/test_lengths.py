"""Functions of two texts whose time is the product of their lengths: bounded, by name."""

from __future__ import annotations

import pytest

from voile.errors import QueryError
from voile.query import parse
from voile.query.lengths import MOST_COMPARED, MOST_MATCHED
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
