"""Recognising a table by its rows: what is found, what is not, and how often it errs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import voile
from tests.support.soak import rounds
from tests.support.soak import some as sampled
from voile.register.gathering import SAMPLE
from voile.register.keys import FingerprintKey
from voile.register.sketch import (
    RowOverlap,
    RowSketch,
    compare,
    fingerprint,
)

KEY = FingerprintKey(b"a key of the tests, 32 bytes....")


@pytest.fixture(scope="module")
def adult() -> pa.Table:
    """30,162 rows of nine columns; more than half of them repeat another."""
    source = voile.read("dataset:adult/boundary")
    return source.rows(list(source.columns))[0]


def some(table: pa.Table, rows: Sequence[int] | np.ndarray) -> pa.Table:
    return table.take(pa.array(rows))


def met(before: object, now: object) -> RowOverlap | None:
    """What the second table is said to have in common with the first."""
    known, _ = fingerprint(voile.read(before), KEY)
    return fingerprint(voile.read(now), KEY, [known])[1][0]


def surely(before: object, now: object) -> RowOverlap:
    found = met(before, now)
    assert found is not None and found.is_same, found
    return found


# ---------------------------------------------------------------------- what is recognised


def test_the_same_table_in_another_order(adult: pa.Table) -> None:
    order = np.random.default_rng(1).permutation(adult.num_rows)
    columns = adult.column_names[::-1]
    assert surely(adult, some(adult, order).select(columns)).unchanged


def test_types_do_not_matter(adult: pa.Table) -> None:
    wide = adult.set_column(0, "age", adult["age"].cast(pa.float64()))
    coded = wide.set_column(5, "sex", wide["sex"].combine_chunks().dictionary_encode())
    assert surely(adult, coded).unchanged


@pytest.mark.parametrize("kept", [8, 6, 4])
def test_columns_were_dropped(adult: pa.Table, kept: int) -> None:
    assert surely(adult, adult.select(adult.column_names[:kept])).unchanged
    assert surely(adult.select(adult.column_names[:kept]), adult).unchanged


def test_a_column_was_changed(adult: pa.Table) -> None:
    coarse = pc.multiply(pc.divide(adult["age"], 10), 10)
    assert surely(adult, adult.set_column(0, "age", coarse)).unchanged


@pytest.mark.parametrize("columns", [9, 7, 5])
def test_a_tenth_of_the_rows_was_added(adult: pa.Table, columns: int) -> None:
    order = np.random.default_rng(2).permutation(adult.num_rows)
    before = some(adult, order[: adult.num_rows * 10 // 11])
    found = surely(before.select(adult.column_names[:columns]), adult)
    assert found.low > 0.9
    assert not found.unchanged


def test_half_of_the_rows_were_replaced(adult: pa.Table) -> None:
    order = np.random.default_rng(3).permutation(adult.num_rows)
    found = surely(some(adult, order[:20_000]), some(adult, order[10_000:]))
    assert found.low <= 0.5 <= found.high


def test_a_tenth_of_the_rows_is_left(adult: pa.Table) -> None:
    order = np.random.default_rng(4).permutation(adult.num_rows)
    surely(adult, some(adult, order[:3_000]))


def test_renamed_columns_of_the_same_rows(adult: pa.Table) -> None:
    """With rows added as well, a renamed column counts as one that was dropped."""
    assert surely(adult, adult.rename_columns([f"c{i}" for i in range(9)])).unchanged
    order = np.random.default_rng(5).permutation(adult.num_rows)
    now = adult.rename_columns(["alter", *adult.column_names[1:]])
    assert not surely(some(adult, order[:27_000]), now).unchanged


def texts(table: pa.Table, change: Callable[[str], str]) -> pa.Table:
    """The table with every text changed."""
    for place, name in enumerate(table.column_names):
        if pa.types.is_string(table[name].type):
            changed = pa.array([change(value) for value in table[name].to_pylist()])
            table = table.set_column(place, name, changed)
    return table


def test_other_case_and_spaces(adult: pa.Table) -> None:
    """Of names and texts; also with a row less."""
    plain = texts(adult, str.strip)
    now = texts(plain, lambda value: f" {value.upper()}  ")
    now = now.rename_columns([f"{name.upper()} " for name in adult.column_names])
    assert surely(plain, now).unchanged
    assert surely(plain, now.slice(1)).low > 0.99


def test_names_that_differ_by_spaces_alone() -> None:
    rng = np.random.default_rng(12)
    columns = {name: rng.integers(0, 50, 4_000) for name in ("a", "a ", "b")}
    assert surely(pa.table(columns), pa.table(columns).slice(5)).low > 0.9


@pytest.mark.parametrize("column", ["age", "sex"])
def test_a_column_was_recoded_and_a_row_removed(adult: pa.Table, column: str) -> None:
    place = adult.column_names.index(column)
    codes = adult[column].combine_chunks().dictionary_encode().indices
    now = adult.set_column(place, column, pc.add(codes, 1_000)).slice(1)
    found = surely(adult, now)
    assert found.without == 1 and found.low > 0.9
    assert "without 1 column" in found.words


@pytest.mark.parametrize("times", sampled([2, 3, 8], 1))
def test_every_row_several_times_and_numbered(adult: pa.Table, times: int) -> None:
    whole = pa.concat_tables([adult] * times)
    numbered = whole.append_column("id", pa.array(np.arange(len(whole))))
    assert surely(adult, numbered).low > 0.9
    assert surely(adult, numbered.slice(3)).low > 0.9
    assert surely(numbered, adult).low > 0.9


def test_rows_that_were_numbered_anew(adult: pa.Table) -> None:
    numbers = pa.array(np.arange(len(adult)))
    order = np.random.default_rng(13).permutation(adult.num_rows)
    now = some(adult, order).append_column("id", numbers).slice(10)
    assert surely(adult.append_column("id", numbers), now).without == 1


def test_what_is_beyond_recognition(adult: pa.Table) -> None:
    """All columns renamed and rows added; two columns of two values and rows added; few rows."""
    order = np.random.default_rng(6).permutation(adult.num_rows)
    before = some(adult, order[:27_000])
    assert met(before, adult.rename_columns([f"c{i}" for i in range(9)])) is None
    assert met(before.select(["sex", "salary"]), adult) is None
    few = met("dataset:scores", "dataset:scores")
    assert few is None or not few.is_same


def test_many_rows_that_are_all_different() -> None:
    ids = pa.table({"id": np.arange(60_000), "x": np.arange(60_000) % 7})
    assert surely(ids, ids.slice(3_000)).low > 0.9
    other = pa.table({"id": np.arange(60_000, 120_000), "x": np.arange(60_000) % 7})
    found = met(ids, other)
    assert found is not None and found.share == 0 and not found.is_same


def test_numbers_of_rows_are_no_evidence() -> None:
    """Tables about other things number their rows alike."""
    rng = np.random.default_rng(11)
    people = pa.table(
        {"id": np.arange(5_000), "age": rng.integers(0, 99, 5_000), "a": ["x"] * 5_000}
    )
    trees = pa.table({"id": np.arange(5_000), "height": rng.random(5_000), "b": ["y"] * 5_000})
    assert met(people, trees) is None


def test_numbered_rows_of_other_people() -> None:
    """Every second row agrees in its number and the other column; sorted, nearly all do."""
    rng = np.random.default_rng(14)
    for number in (500, 5_000):
        first, second = (
            pa.table({"id": np.arange(number), "ill": rng.choice(["yes", "no"], number)})
            for _ in range(2)
        )
        found = met(first, second)
        assert found is None or not found.is_same
        three = [
            pa.table({
                "id": np.arange(number), "age": np.sort(rng.integers(18, 90, number)),
                "ill": rng.choice(["yes", "no"], number),
            })
            for _ in range(2)
        ]  # fmt: skip
        found = met(*three)
        assert found is None or found.without == 0


# ---------------------------------------------------------------------- other people's rows


def test_other_rows_of_one_population_are_not_taken_for_the_same(adult: pa.Table) -> None:
    """Random halves, also of chosen columns; the stated rate of errors is 1e-6 a comparison."""
    rng = np.random.default_rng(7)
    for _ in range(rounds(4, 400)):
        order = rng.permutation(adult.num_rows)
        columns = list(rng.choice(adult.column_names, rng.integers(3, 10), replace=False))
        half = adult.num_rows // 2
        first, second = some(adult, order[:half]), some(adult, order[half:])
        found = met(first.select(columns), second.select(columns))
        assert found is None or not found.is_same, columns


def test_a_part_of_the_population_is_not_taken_for_the_whole(adult: pa.Table) -> None:
    order = np.random.default_rng(8).permutation(adult.num_rows)
    half = adult.num_rows // 2
    first, second = some(adult, order[:half]), some(adult, order[half:])
    men = first.filter(pc.equal(first["sex"], "Male"))
    for before, now in ((men, second), (second, men)):
        found = met(before, now)
        assert found is None or not found.is_same


def test_the_shipped_tables_of_other_people_are_apart(adult: pa.Table) -> None:
    """Also with texts, names and a column changed, rows repeated or numbered on either side."""
    train, test = (
        source.rows(list(source.columns))[0]
        for source in (voile.read("dataset:adult/train"), voile.read("dataset:adult/test"))
    )
    tables: list[object] = [test, pa.concat_tables([test] * 2)]
    tables.append(test.append_column("id", pa.array(np.arange(len(test)))))
    tables.append(test.select(test.column_names[:7]))
    before: list[object] = [train, train.append_column("id", pa.array(np.arange(len(train))))]
    before += ["dataset:scores"]
    known = [fingerprint(voile.read(table), KEY)[0] for table in before]
    for table in [*tables, "dataset:scores"]:
        for other, found in zip(before, fingerprint(voile.read(table), KEY, known)[1], strict=True):
            same = isinstance(table, str) and table == other
            assert same or found is None or not found.is_same
    sketch = fingerprint(voile.read(adult), KEY)[0]
    found = fingerprint(voile.read("dataset:scores"), KEY, [sketch])[1][0]
    assert found is None or not found.is_same


def test_intervals_cover_the_share(adult: pa.Table) -> None:
    """95 % intervals of the share: of 60, fewer than 48 cover with probability 1e-6."""
    rng, covered, number = np.random.default_rng(9), 0, rounds(6, 60)
    for _ in range(number):
        order = rng.permutation(adult.num_rows)
        size, common = 14_000, int(rng.integers(2_000, 12_000))
        before = some(adult, order[:size])
        now = some(adult, order[size - common : 2 * size - common])
        found = met(before, now)
        assert found is not None
        covered += found.low <= common / size <= found.high
    assert covered >= number - math.ceil(0.2 * number)


# ---------------------------------------------------------------------- what is stored


def test_a_sketch_is_bounded_and_sealed(adult: pa.Table) -> None:
    sketch, _ = fingerprint(voile.read(adult), KEY)
    assert len(sketch.hashes) == SAMPLE
    sealed = sketch.seal(KEY)
    assert len(sealed) < 200_000
    assert RowSketch.unseal(KEY, sealed).pack() == sketch.pack()
    assert b"Male" not in sealed and sketch.hashes[:4].tobytes() not in sealed
    changed = bytearray(sealed)
    changed[100] ^= 1
    for wrong in (bytes(changed), sealed[:50], b""):
        with pytest.raises(ValueError):
            RowSketch.unseal(KEY, wrong)
    with pytest.raises(ValueError, match="another key"):
        RowSketch.unseal(FingerprintKey(b"x" * 32), sealed)


def test_sketches_alone_are_compared_too(adult: pa.Table) -> None:
    order = np.random.default_rng(10).permutation(adult.num_rows)
    whole, part, first, second = (
        fingerprint(voile.read(table), KEY)[0]
        for table in (
            adult, some(adult, order[:27_000]), some(adult, order[:15_000]),
            some(adult, order[15_000:]),
        )
    )  # fmt: skip
    found = compare(whole, part)
    assert found is not None and found.is_same
    found = compare(first, second)
    assert found is None or not found.is_same


def test_batches_do_not_matter(adult: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that is read in many batches has the same sketch."""
    whole, _ = fingerprint(voile.read(adult), KEY)
    monkeypatch.setattr("voile.engines.duckdb.table.CHUNK", 2_048)
    assert fingerprint(voile.read(adult), KEY)[0].pack() == whole.pack()


def test_a_table_is_read_once(adult: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is compared with: publishing must stay fast."""
    known = [
        fingerprint(voile.read(table), KEY)[0]
        for table in (adult, adult.slice(5_000), adult.select(adult.column_names[:6]))
    ]
    source = voile.read(adult)
    read, unordered = [0], source.unordered

    def counted(*arguments: object, **named: object) -> object:
        read[0] += 1
        return unordered(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(source, "unordered", counted)
    _, found = fingerprint(source, KEY, known)
    assert read == [1]
    assert all(one is not None and one.is_same for one in found)


def test_empty_tables_and_strange_columns() -> None:
    empty = pa.table({"a": pa.array([], pa.int64())})
    assert fingerprint(voile.read(empty), KEY)[0].rows == 0
    odd = pa.table({"a": [None, 1, 1], "l": [[1], [2], [2]], "t": ["", None, "é\u0000x"]})
    assert fingerprint(voile.read(odd), KEY)[0].rows == 3
