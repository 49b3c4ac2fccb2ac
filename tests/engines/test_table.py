"""What a steward's table owes, against brute force on the same rows."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.engines.conftest import (
    NAMES,
    ODD,
    Tables,
    code_of,
    codes_of,
    domain,
    frame,
    people,
)
from voile.engines.table import Table
from voile.errors import SchemaError, UsageError
from voile.schema import Attribute, Interval, Range, Schema, TupleIndex, Values

SIZES = (0, 1, 50, 3000)
"""Rows; 0 for a table that has columns only."""


class Watched:
    """How far a scan says that it has come."""

    def __init__(self) -> None:
        self.count = 0

    def start(self, what: str, total: int) -> None:  # noqa: ARG002
        raise AssertionError("the caller starts a step, not the table")

    def advance(self, count: int) -> None:
        self.count += count


# ---------------------------------------------------------------------- its columns


def test_a_table_says_what_it_is(made: Tables) -> None:
    table = made.table(people(5))
    assert isinstance(table, Table)
    assert list(table.columns) == list(NAMES)
    assert table.name == "table" and table.dataset == ""
    assert repr(table) == "Table('table', 6 columns)"
    kinds = [table.kind(name) for name in NAMES]
    assert kinds == ["integer", "categorical", "numeric", "boolean", "date", "integer"]


def test_columns_without_a_kind_and_with_a_time_of_day(made: Tables) -> None:
    noon = dt.datetime(2024, 1, 31, 12, 30)
    table = made.table(pa.table({"list": [[1], [2]], "at": [noon, None], "day": [noon.date()] * 2}))
    assert table.kind("list") is None and table.kind("at") == "date"
    assert table.with_time_of_day == ["at"]
    days = Values((dt.date(2024, 1, 31),))
    assert table.holds(Attribute("day", "date", days))
    assert not table.holds(Attribute("at", "date", days))


def test_values_are_held_only_as_they_are(made: Tables) -> None:
    table = made.table(people(5))
    assert table.holds(Attribute("age", "integer", Range(17, 24)))
    assert not table.holds(Attribute("age", "categorical", Values(("17",))))
    assert not table.holds(Attribute("income", "numeric", Interval(-1.0, 1.0, 0.5)))


def test_columns_that_are_not_there_or_named_twice(made: Tables) -> None:
    table = made.table(people(5))
    assert table.check_columns(("sex", "age")) == ["sex", "age"]
    with pytest.raises(UsageError, match="no column 'agee'"):
        table.check_columns(["agee"])
    with pytest.raises(UsageError, match="named twice"):
        table.check_columns(["age", "age"])
    with pytest.raises(UsageError, match="no columns"):
        table.check_columns([])


# ---------------------------------------------------------------------- counting it


@pytest.mark.parametrize("count", SIZES)
def test_counts_of_rows(made: Tables, count: int) -> None:
    rows = people(count, seed=count)
    table, known = made.table(rows), frame(rows)
    assert len(table) == count
    for names in (["age"], ["sex", ODD], list(NAMES)):
        assert table.complete_rows(names) == len(known[names].dropna())
        missing = {n: int(known[n].isna().sum()) for n in names}
        assert table.null_counts(names) == {n: c for n, c in missing.items() if c}
        assert table.duplicates(names) == int(known.duplicated(names).sum())


@pytest.mark.parametrize("count", SIZES)
def test_combinations_of_values(made: Tables, count: int) -> None:
    rows = people(count, seed=count)
    names = ["sex", ODD, "member"]
    found = pa.Table.from_batches(made.table(rows).combinations(names))
    assert found.column_names == ["c0", "c1", "c2", "n"]
    expected: dict[tuple[str | None, ...], int] = {}
    for row in rows.select(names).to_pylist():
        texts = (row["sex"], row[ODD], row["member"])
        key = tuple(None if t is None else str(t).lower() if t is not row["sex"] else t
                    for t in texts)  # fmt: skip
        expected[key] = expected.get(key, 0) + 1
    listed = [tuple(row.values()) for row in found.to_pylist()]
    assert {tuple(row[:3]): row[3] for row in listed} == expected
    assert len(listed) == len(expected), "a combination is listed twice"


def test_the_truth_of_a_query(made: Tables) -> None:
    rows = people(500)
    table, known = made.table(rows), frame(rows)
    young = known["age"].map(lambda age: age is not None and age < 20)
    assert table.count("age < 20") == int(young.sum())
    assert table.count("1 / (age - 17) > 10") >= 0, "what cannot be computed is not true"
    (row,) = table.run("select count(*), sum(age) from whatever where member")
    chosen = known[known["member"].map(lambda value: value is True)]
    assert row == (len(chosen), chosen["age"].dropna().sum())


# ---------------------------------------------------------------------- looking at it


@pytest.mark.parametrize("count", [1, 50, 3000])
@pytest.mark.parametrize("drop_nulls", [False, True])
def test_profiles(made: Tables, count: int, drop_nulls: bool) -> None:
    rows = people(count, seed=count)
    names = ["age", "sex", "income", "day"]
    known = frame(rows)[names]
    if drop_nulls:
        known = known.dropna()
    for profile in made.table(rows).profiles(names, drop_nulls=drop_nulls):
        filled = sorted(known[profile.name].dropna())
        different = sorted(set(filled))
        assert (profile.rows, profile.nulls) == (len(known), len(known) - len(filled))
        assert profile.distinct == len(different)
        assert profile.values == tuple(different)
        assert profile.counts == tuple(filled.count(value) for value in different)
        if filled:
            assert (profile.low, profile.high) == (filled[0], filled[-1])
            assert sum(profile.histogram) == len(filled)


def test_a_column_of_many_values_is_not_listed(made: Tables) -> None:
    (profile,) = made.table(pa.table({"id": [f"p{i}" for i in range(250_000)]})).profiles(["id"])
    assert profile.values is None and profile.counts is None
    assert profile.distinct == pytest.approx(250_000, rel=0.2)
    assert profile.looks_like_identifier


def test_the_domain_that_the_rows_have(made: Tables) -> None:
    rows = people(500)
    known = frame(rows)
    schema = made.table(rows).infer(["sex", "age"], "as-value")
    assert list(schema["sex"]) == [*sorted(set(known["sex"].dropna())), None]
    assert set(known["age"].dropna()) <= set(schema["age"])
    assert schema.active and not made.table(rows).infer(["sex"], "drop")["sex"].null


def test_floats_have_one_zero_and_no_nan(made: Tables) -> None:
    rows = pa.table({"x": pa.array([0.0, -0.0, float("nan"), None, 0.5], pa.float64())})
    table = made.table(rows)
    (profile,) = table.profiles(["x"])
    assert (profile.values, profile.counts, profile.nulls) == ((0.0, 0.5), (2, 1), 2)
    assert table.null_counts(["x"]) == {"x": 2}
    short = made.table(pa.table({"x": pa.array([0.1, 0.2], pa.float32())}))
    assert short.profiles(["x"])[0].values == (0.1, 0.2)


def test_numbers_between_the_steps_are_counted(made: Tables) -> None:
    table = made.table(pa.table({"x": [0.0, 0.5, 0.6, 0.74, None], "y": [1.0, 1, 1, 1, 1]}))
    steps = Interval(0.0, 1.0, 0.5)
    schema = Schema(tuple(Attribute(n, "numeric", steps, null=True) for n in "xy"))
    assert table.rounded(schema) == {"x": 2}


# ---------------------------------------------------------------------- reading it


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("drop_nulls", [False, True])
def test_codes_of_all_rows(made: Tables, count: int, drop_nulls: bool) -> None:
    rows, schema = made.ordered(people(count, seed=count)), domain(null=not drop_nulls)
    table, watched = made.table(rows), Watched()
    used = frame(rows).dropna().index.to_numpy() if drop_nulls else np.arange(count)
    expected = codes_of(rows.take(pa.array(used, pa.int64())), schema)
    assert table.used_rows(schema, drop_nulls=drop_nulls) == len(used)
    found = list(table.coded(schema, drop_nulls=drop_nulls, progress=watched))
    numbers = [np.arange(b.first, b.first + len(b.codes[0])) for b in found]
    every = np.concatenate([np.empty(0, np.int64), *numbers])
    assert sorted(every) == list(range(len(used))), "each row is read once"
    assert watched.count == len(used)
    for number, batch in zip(numbers, found, strict=True):
        for code, known in zip(batch.codes, expected, strict=True):
            assert (code == known[number]).all()
        assert batch.row_keys is None
    columns, keys = table.columns_of_codes(schema, drop_nulls=drop_nulls)
    assert keys is None
    for column, known in zip(columns, expected, strict=True):
        assert column.dtype.itemsize == 1 and (column == known).all()


@pytest.mark.parametrize("count", SIZES)
def test_keys_of_all_rows(made: Tables, count: int) -> None:
    rows, schema = people(count, seed=count), domain(null=True)
    table = made.table(rows)
    expected = TupleIndex(schema.sizes).encode(codes_of(rows, schema))
    assert (table.keys(schema, drop_nulls=False) == np.sort(expected)).all()
    batches = [*table.key_batches(schema, drop_nulls=False)]
    assert sorted(key for batch in batches for key in batch) == sorted(expected)


def test_keys_of_a_domain_beyond_64_bits(made: Tables) -> None:
    rng = np.random.default_rng(0)
    schema = Schema(tuple(Attribute(f"c{i}", "integer", Range(0, 999)) for i in range(9)))
    codes = [rng.integers(0, 1000, 200) for _ in range(9)]
    table = made.table(pa.table(codes, names=list(schema.names)))
    expected = TupleIndex(schema.sizes).encode(codes)
    assert (table.keys(schema, drop_nulls=False) == np.sort(expected)).all()


@pytest.mark.parametrize("count", SIZES)
def test_counts_of_tuples(made: Tables, count: int) -> None:
    rows = people(count, seed=count)
    schema = domain(null=True).select(["sex", "member", ODD])
    expected = np.zeros(schema.sizes, np.int64)
    for place in zip(*codes_of(rows, schema), strict=True):
        expected[place] += 1
    assert (made.table(rows).counts(schema, drop_nulls=False) == expected).all()


def test_rows_keep_their_numbers_and_keys(made: Tables) -> None:
    """What is drawn for a row depends on its number: two scans must give the same."""
    count = 300_000
    rows = pa.table({"who": np.arange(count), "x": np.arange(count) % 7})
    table, schema = made.table(rows), Schema((Attribute("x", "integer", Range(0, 6)),))
    for _ in range(2):
        columns, keys = table.columns_of_codes(schema, drop_nulls=False, row_key="who")
        assert (columns[0] == np.arange(count) % 7).all()
        assert keys is not None and keys.type == pa.string()
        assert keys.to_pylist() == [str(i) for i in range(count)]


def test_numbers_outside_a_range_move_to_its_end(made: Tables) -> None:
    rows = pa.table({"x": pa.array([-5, 0, 3, 99, None], pa.int64()), "t": list("abcde")})
    schema = Schema(
        (
            Attribute("x", "integer", Range(0, 10), null=True),
            Attribute("t", "categorical", Values(tuple("abcde"))),
        )
    )
    (batch,) = made.table(rows).coded(schema, drop_nulls=False, clamp=True)
    assert sorted(batch.codes[0].tolist()) == [0, 0, 3, 10, 11]
    assert dict(zip(*(code.tolist() for code in batch.codes[::-1]), strict=True)) == {
        0: 0, 1: 0, 2: 3, 3: 10, 4: 11,
    }  # fmt: skip


def test_points_of_an_interval_are_the_nearest(made: Tables) -> None:
    attribute = Attribute("x", "numeric", Interval(0.0, 1.0, 0.25))
    numbers = [0.0, 0.1, 0.2, 0.49, 0.625, 0.99, 1.0]
    (batch,) = made.table(pa.table({"x": numbers})).coded(Schema((attribute,)), drop_nulls=False)
    assert batch.codes[0].tolist() == [code_of(attribute, number) for number in numbers]


@pytest.mark.parametrize("drop_nulls", [False, True])
def test_rows_as_they_are(made: Tables, drop_nulls: bool) -> None:
    rows = made.ordered(people(3000))
    names = [ODD, "sex", "day"]
    known = frame(rows)[names]
    used = known.dropna().index.to_numpy() if drop_nulls else np.arange(3000)
    table = made.table(rows)
    found, places = table.rows(names, drop_nulls=drop_nulls)
    assert (places == used).all()
    assert found.to_pylist() == rows.select(names).take(pa.array(used)).to_pylist()
    batches = list(table.batches(names, drop_nulls=drop_nulls))
    assert sum(batch.rows.num_rows for batch in batches) == len(used)
    same = table.of(found)
    assert (same.name, same.dataset, len(same)) == (table.name, table.dataset, len(used))


def test_a_table_without_rows_has_columns(made: Tables) -> None:
    found, places = made.table(people(0)).rows(list(NAMES))
    assert found.column_names == list(NAMES) and found.num_rows == len(places) == 0


# ---------------------------------------------------------------------- what it refuses


def schema_of(name: str, kind: Any, values: Any, *, null: bool = False) -> Schema:
    return Schema((Attribute(name, kind, values, null=null),))


def test_a_value_of_another_kind(made: Tables) -> None:
    table = made.table(pa.table({"x": ["1", "2", "n/a", None]}))
    with pytest.raises(SchemaError, match=made.where(3, "x") + ": 'n/a' is not of kind integer"):
        table.check_kinds(schema_of("x", "integer", Range(1, 2), null=True))
    table.check_kinds(schema_of("x", "categorical", Values(("1",))))
    half = made.table(pa.table({"x": [1.0, 1.5]}))
    with pytest.raises(SchemaError, match=made.where(2, "x") + ": 1.5"):
        half.check_kinds(schema_of("x", "integer", Range(1, 2)))


def test_a_value_outside_the_domain(made: Tables) -> None:
    table = made.table(pa.table({"x": [1, 2, 7]}))
    schema = schema_of("x", "integer", Range(1, 2))
    for read in ("keys", "columns_of_codes", "counts"):
        where = made.where(3, "x")
        with pytest.raises(SchemaError, match=where + r": 7 is not in .*\(1 to 2\)"):
            getattr(table, read)(schema, drop_nulls=False)
    assert len(table) == 3, "the table can still be read"


def test_a_null_that_the_domain_does_not_have(made: Tables) -> None:
    table = made.table(pa.table({"x": [1, None]}))
    schema = schema_of("x", "integer", Range(1, 2))
    with pytest.raises(SchemaError, match=made.where(2, "x") + ": NULL"):
        table.keys(schema, drop_nulls=False)
    assert table.keys(schema, drop_nulls=True).tolist() == [0]


def test_a_scan_that_is_given_up_leaves_the_table_readable(made: Tables) -> None:
    count = 400_000
    table = made.table(pa.table({"x": np.arange(count) % 3}))
    scan = table.coded(schema_of("x", "integer", Range(0, 2)), drop_nulls=False)
    next(scan)
    del scan
    assert len(table) == count
