"""The rows of a release in files: the same bytes, in whatever pieces keys come."""

from __future__ import annotations

import datetime as dt
import io
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import pytest

from voile.engines.encode import values_at
from voile.kinds import parquet
from voile.kinds.parquet import (
    arrow_schema,
    is_numbered,
    number_by_appearance,
    number_in_numpy,
    tuples,
    write_part,
)
from voile.schema import Attribute, Bins, Range, Schema, TupleIndex, Values
from voile.schema.index import FEW, Codes

SCHEMA = Schema(
    (
        Attribute("age", "integer", Range(17, 90), null=True, ordered=True),
        Attribute("size", "integer", Values((3, 1, 40))),
        Attribute("sex", "categorical", Values(("Female", "Male")), null=True),
        Attribute("day", "date", Range(dt.date(2024, 1, 1), dt.date(2024, 12, 30))),
        Attribute("income", "numeric", Bins((0.0, 10.0, 50.0, 1000.0))),
        Attribute("member", "boolean", Values((False, True))),
        Attribute("number", "integer", Range(0, 10**6)),
    )
)
INDEX = TupleIndex(SCHEMA.sizes)


def codes_of(rows: int) -> list[Codes]:
    rng = np.random.default_rng(rows)
    return [rng.integers(0, size, rows) for size in SCHEMA.sizes]


def written(*parts: Any) -> bytes:
    file = io.BytesIO()
    write_part(file, SCHEMA, parts)
    return file.getvalue()


def test_whole_numbers_and_dates_with_few_values_are_numbered() -> None:
    assert [a.name for a in SCHEMA if is_numbered(a)] == ["age", "size", "day"]


@pytest.mark.parametrize("rows", [0, 1, 1000, FEW + 5000])
@pytest.mark.parametrize("ordered", [False, True])
def test_a_dictionary_gives_the_bytes_of_its_values(rows: int, ordered: bool) -> None:
    keys = INDEX.encode(codes_of(rows))
    if ordered:
        keys.sort()
    with patch.object(parquet, "ROW_GROUP", 40_000):
        found = written(keys[: rows // 3], keys[rows // 3 :])
        with patch.object(parquet, "is_numbered", lambda _: False):
            assert written(keys) == found
    table = pq.read_table(io.BytesIO(found))
    assert table.schema.equals(arrow_schema(SCHEMA))
    assert table.equals(tuples(SCHEMA, INDEX.decode(keys)))


def test_tuples_have_the_values_of_their_codes() -> None:
    codes = codes_of(50)
    table = tuples(SCHEMA, codes)
    for attribute, code in zip(SCHEMA, codes, strict=True):
        assert table.column(attribute.name).to_pylist() == values_at(attribute, code).to_pylist()


@pytest.mark.parametrize("null", [4, 5])
@pytest.mark.parametrize("rows", [0, 1, 7, 200])
def test_codes_are_numbered_alike_without_numba(rows: int, null: int) -> None:
    codes = np.random.default_rng(rows).integers(0, 5, rows).astype(np.int8)
    found = []
    for number in (number_by_appearance, number_in_numpy):
        numbers = np.empty(rows, np.int8)
        listed = number(codes, null, np.full(5, -1), numbers)
        found.append((listed.tolist(), numbers.tolist()))
    assert found[0] == found[1]
    seen = list(dict.fromkeys(code for code in codes.tolist() if code != null))
    assert found[0][0] == seen
    places = {code: place for place, code in enumerate(seen)} | {null: 0}
    assert found[0][1] == [places[code] for code in codes.tolist()]
