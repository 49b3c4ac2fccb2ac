"""Values as texts and as bytes, there and back, and compared with psycopg's."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from voile.wire.messages import WireError
from voile.wire.values import TYPES, as_text, encoder, parameter_value, wire_type

KINDS: list[tuple[Any, str, list[Any]]] = [
    (pa.bool_(), "bool", [True, False]),
    (pa.int64(), "int8", [0, -1, 2**63 - 1, -(2**63)]),
    (pa.int32(), "int4", [0, 2**31 - 1]),
    (pa.int16(), "int2", [-5]),
    (pa.uint32(), "oid", [2**32 - 1]),
    (pa.float64(), "float8", [0.0, -1.5, 1e300, 12.0, float("inf"), float("-inf")]),
    (pa.string(), "text", ["", "a'b\\c", "žluťoučký ½"]),
    (pa.date32(), "date", [dt.date(1, 1, 1), dt.date(2026, 11, 18)]),
    (pa.timestamp("us"), "timestamp", [dt.datetime(1999, 1, 2, 3, 4, 5, 6)]),
    (pa.decimal128(38, 4), "numeric", [Decimal(0), Decimal("-12345.6789"), Decimal("0.0001"),
                                       Decimal(100000000), Decimal("1e-4")]),
    (pa.list_(pa.int64()), "_int8", [[], [1, 2, -3]]),
    (pa.list_(pa.string()), "_text", [["a", "b c", 'd"e', "", "NULL"], [None, "x"]]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "values"), KINDS, ids=[name for _, name, _ in KINDS])
def test_there_and_back(kind: Any, name: str, values: list[Any]) -> None:
    found = wire_type(kind)
    assert found.name == name
    for value in values:
        for form in (0, 1):
            sent = encoder(found.oid, form)(value)
            if name.startswith("_") and form == 0:
                continue  # as psycopg reads them: below
            assert parameter_value(found.oid, form, sent) == value


def test_psycopg_reads_the_same() -> None:
    psycopg = pytest.importorskip("psycopg")
    from psycopg.adapt import Transformer

    reader = Transformer()
    for kind, _, values in KINDS:
        found = wire_type(kind)
        for form in (0, 1):
            load = reader.get_loader(found.oid, psycopg.pq.Format(form)).load
            for value in values:
                assert load(encoder(found.oid, form)(value)) == value


def test_what_other_types_are_sent_as() -> None:
    assert wire_type(pa.dictionary(pa.int32(), pa.string())).name == "text"
    assert wire_type(pa.null()).name == "text"
    assert wire_type(pa.uint64()).name == "numeric"
    assert wire_type(pa.time64("us")).name == "time"
    assert wire_type(pa.timestamp("us", tz="UTC")).name == "timestamptz"
    assert len({one.oid for one in TYPES}) == len(TYPES)


def test_texts_as_postgresql_writes_them() -> None:
    assert as_text(12.0) == "12"
    assert as_text(float("nan")) == "NaN"
    assert as_text(1e20) == "1e+20"
    assert as_text(True) == "t"
    assert as_text(dt.datetime(2026, 1, 2, 3, 4)) == "2026-01-02 03:04:00"
    assert as_text(b"\x01\xff") == "\\x01ff"
    assert as_text(dt.time(1, 2)) == "01:02:00"
    assert as_text(["a", None, ["b"]]) == "{a,NULL,{b}}"


@pytest.mark.parametrize(
    ("oid", "form", "data"),
    [
        (23, 0, b"12x"), (23, 1, b"123"), (16, 0, b"maybe"), (1082, 0, b"2026-02-30"),
        (1082, 1, struct.pack("!i", 2**30)), (1700, 0, b"one"), (1700, 1, b"1"),
        (1700, 1, struct.pack("!hhHhh", 1, 0, 0, 0, 20_000)),
        (1700, 1, struct.pack("!hhHh", 2, 0, 0, 0)),
        (1016, 0, b"{1,{2}}"), (1016, 1, struct.pack("!iiIii", 1, 0, 20, 2**30, 1)), (701, 0, b""),
        (25, 0, b"a\0b"), (25, 1, b"\xff"), (600, 1, b"12345678"), (1114, 0, b"yesterday"),
    ],
)  # fmt: skip
def test_parameters_that_are_no_values(oid: int, form: int, data: bytes) -> None:
    with pytest.raises(WireError):
        parameter_value(oid, form, data)
