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


@pytest.mark.parametrize("rows", [0, 1, 1000, FEW + 5000])
@pytest.mark.parametrize("ordered", [False, True])
def test_pieces_of_keys_give_the_same_bytes(rows: int, ordered: bool) -> None:
    keys = INDEX.encode(codes_of(rows))
    if ordered:
        keys.sort()
    with patch.object(parquet, "ROW_GROUP", 40_000):
        found = written(keys[: rows // 3], keys[rows // 3 :])
        assert written(keys) == found
    table = pq.read_table(io.BytesIO(found))
    assert table.schema.equals(arrow_schema(SCHEMA))
    assert table.equals(tuples(SCHEMA, INDEX.decode(keys)))


def test_tuples_have_the_values_of_their_codes() -> None:
    codes = codes_of(50)
    table = tuples(SCHEMA, codes)
    for attribute, code in zip(SCHEMA, codes, strict=True):
        assert table.column(attribute.name).to_pylist() == values_at(attribute, code).to_pylist()
