from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from voile import datasets
from voile.datasets import DATASETS, find
from voile.errors import UsageError


@pytest.fixture
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def view(name: str) -> str:
    found = find(name)
    columns = ", ".join(f'"{column}"' for column in found.columns)
    where = f" WHERE {found.where}" if found.where else ""
    return f"(SELECT {columns} FROM read_parquet('{found.path}'){where})"


def rows(db: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    return db.execute(sql).fetchall()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("adult", 48_842),
        ("adult/boundary", 30_162),
        ("adult/frontier", 45_222),
        ("adult/olap", 32_561),
        ("adult/train", 32_561),
        ("adult/test", 16_281),
        ("health", 5_638),
        ("scores", 6),
    ],
)
def test_row_counts(db: duckdb.DuckDBPyConnection, name: str, expected: int) -> None:
    assert rows(db, f"SELECT count(*) FROM {view(name)}") == [(expected,)]


def test_every_view_is_named_described_and_on_disk() -> None:
    assert set(DATASETS) == {
        "adult", "adult/boundary", "adult/frontier", "adult/olap", "adult/test", "adult/train",
        "health", "scores",
    }  # fmt: skip
    for name, found in DATASETS.items():
        assert found.name == name
        assert found.about
        assert found.path.is_absolute()
        assert found.path.is_file()


@pytest.mark.parametrize("name", ["adult", "health", "scores"])
def test_whole_tables_list_the_columns_of_their_file(
    db: duckdb.DuckDBPyConnection, name: str
) -> None:
    found = find(name)
    described = rows(db, f"DESCRIBE SELECT * FROM read_parquet('{found.path}')")
    assert tuple(row[0] for row in described) == found.columns


def test_adult_types(db: duckdb.DuckDBPyConnection) -> None:
    types = {row[0]: row[1] for row in rows(db, f"DESCRIBE SELECT * FROM {view('adult')}")}
    small = {"age", "education_num", "capital_loss", "hours_per_week"}
    assert {name for name, kind in types.items() if kind == "SMALLINT"} == small
    assert {name for name, kind in types.items() if kind == "INTEGER"} == {"fnlwgt", "capital_gain"}
    assert set(types.values()) == {"SMALLINT", "INTEGER", "VARCHAR"}


def test_adult_splits_and_labels(db: duckdb.DuckDBPyConnection) -> None:
    counted = rows(db, f"SELECT split, salary, count(*) FROM {view('adult')} GROUP BY ALL")
    assert set(counted) == {
        ("train", "<=50K", 24_720),
        ("train", ">50K", 7_841),
        ("test", "<=50K", 12_435),
        ("test", ">50K", 3_846),
    }
    assert sum(n for split, _, n in counted if split == "train") == 32_561
    assert sum(n for split, _, n in counted if split == "test") == 16_281


def test_adult_keeps_file_order(db: duckdb.DuckDBPyConnection) -> None:
    table = rows(db, f"SELECT age, fnlwgt, split FROM {view('adult')}")
    assert table[0] == (39, 77_516, "train")
    assert table[32_560] == (52, 287_927, "train")
    assert table[32_561] == (25, 226_802, "test")
    assert table[-1] == (35, 182_148, "test")


def test_adult_nulls(db: duckdb.DuckDBPyConnection) -> None:
    names = find("adult").columns
    counts = ", ".join(f'count(*) - count("{name}")' for name in names)
    (found,) = rows(db, f"SELECT {counts} FROM {view('adult')}")
    missing = {name: n for name, n in zip(names, found, strict=True) if n}
    assert missing == {"workclass": 2_799, "occupation": 2_809, "native_country": 857}


def test_adult_complete_rows_per_split(db: duckdb.DuckDBPyConnection) -> None:
    complete = find("adult/frontier").where
    sql = f"SELECT split, count(*) FROM {view('adult')} WHERE {complete} GROUP BY split"
    assert dict(rows(db, sql)) == {"train": 30_162, "test": 15_060}


def test_adult_strings_are_trimmed_and_known(db: duckdb.DuckDBPyConnection) -> None:
    described = rows(db, f"DESCRIBE SELECT * FROM {view('adult')}")
    for name in (row[0] for row in described if row[1] == "VARCHAR"):
        bad = f'"{name}" IN (\'\', \'?\') OR "{name}" <> trim("{name}")'
        assert rows(db, f"SELECT count(*) FROM {view('adult')} WHERE {bad}") == [(0,)]


def test_boundary_active_domains(db: duckdb.DuckDBPyConnection) -> None:
    counts = ", ".join(f'count(DISTINCT "{name}")' for name in find("adult/boundary").columns)
    sizes = rows(db, f"SELECT {counts} FROM {view('adult/boundary')}")
    assert sizes == [(72, 7, 16, 7, 5, 2, 41, 14, 2)]


def test_boundary_multiplicities(db: duckdb.DuckDBPyConnection) -> None:
    grouped = f"SELECT count(*) AS n FROM {view('adult/boundary')} AS v GROUP BY v"
    assert rows(db, f"SELECT count(*), max(n) FROM ({grouped})") == [(19_502, 45)]


def test_scores(db: duckdb.DuckDBPyConnection) -> None:
    assert rows(db, f"SELECT * FROM {view('scores')}") == [
        (25, "British", 99),
        (27, "British", 97),
        (21, "Indian", 82),
        (32, "Indian", 90),
        (33, "American", 94),
        (36, "American", 94),
    ]


def test_unknown_name_points_to_a_near_one() -> None:
    with pytest.raises(UsageError, match="adult/boundry") as caught:
        find("adult/boundry")
    assert "'adult/boundary'" in caught.value.hint


def test_unknown_name_without_a_near_one_lists_all() -> None:
    with pytest.raises(UsageError) as caught:
        find("zzz")
    assert all(repr(name) in caught.value.hint for name in DATASETS)


def test_attribution_ships_beside_the_tables() -> None:
    text = (Path(datasets.__file__).parent / "ATTRIBUTION.md").read_text(encoding="utf-8")
    assert "10.24432/C5XW20" in text
    assert "CC BY 4.0" in text
