"""Builds the tables that ship in the package from UCI's adult.data and adult.test."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

OUT = Path(__file__).resolve().parent.parent / "src" / "voile" / "datasets"

ADULT = pa.schema(
    [
        ("age", pa.int16()),
        ("workclass", pa.string()),
        ("fnlwgt", pa.int32()),
        ("education", pa.string()),
        ("education_num", pa.int16()),
        ("marital_status", pa.string()),
        ("occupation", pa.string()),
        ("relationship", pa.string()),
        ("race", pa.string()),
        ("sex", pa.string()),
        ("capital_gain", pa.int32()),
        ("capital_loss", pa.int16()),
        ("hours_per_week", pa.int16()),
        ("native_country", pa.string()),
        ("salary", pa.string()),
        ("split", pa.string()),
    ]
)
SCORES = pa.schema([("age", pa.int16()), ("nationality", pa.string()), ("score", pa.int16())])
SCORE_ROWS = [
    (25, "British", 99),
    (27, "British", 97),
    (21, "Indian", 82),
    (32, "Indian", 90),
    (33, "American", 94),
    (36, "American", 94),
]
SPLITS = {"train": ("adult.data", 32_561), "test": ("adult.test", 16_281)}


def read_split(path: Path, split: str) -> list[list[str]]:
    """The rows of one of UCI's files, with the name of the split."""
    with path.open(encoding="ascii", newline="") as lines:
        # adult.test opens with a '|' comment, and both files end in an empty line.
        rows = [row for row in csv.reader(lines) if row and not row[0].startswith("|")]
    # Only adult.test ends its labels in '.'; the same label must read the same in both splits.
    return [[*(cell.strip() for cell in row[:-1]), row[-1].strip(" ."), split] for row in rows]


def typed(cells: list[str], kind: pa.DataType) -> pa.Array:
    """A column in its type; '?' is NULL."""
    known = [None if cell == "?" else cell for cell in cells]
    if pa.types.is_integer(kind):
        return pa.array([None if cell is None else int(cell) for cell in known], kind)
    return pa.array(known, kind)


def adult(folder: Path) -> pa.Table:
    """Both splits as one table; a file of another length is refused."""
    rows: list[list[str]] = []
    for split, (file, expected) in SPLITS.items():
        part = read_split(folder / file, split)
        if len(part) != expected:
            raise SystemExit(f"{file}: {len(part)} rows, expected {expected}")
        rows += part
    columns = [list(cells) for cells in zip(*rows, strict=True)]
    arrays = [typed(cells, field.type) for cells, field in zip(columns, ADULT, strict=True)]
    return pa.Table.from_arrays(arrays, schema=ADULT)


def scores() -> pa.Table:
    """The example table of the VLDB 2007 paper."""
    rows = [dict(zip(SCORES.names, row, strict=True)) for row in SCORE_ROWS]
    return pa.Table.from_pylist(rows, schema=SCORES)


def write(table: pa.Table, path: Path) -> None:
    """Write a table as small as Parquet makes it."""
    # One row group keeps one dictionary per column, and file order on every reader.
    pq.write_table(
        table,
        path,
        row_group_size=table.num_rows,
        compression="zstd",
        compression_level=19,
        store_schema=False,
    )
    print(f"{path.name}: {table.num_rows:,} rows, {path.stat().st_size:,} bytes")


def main() -> None:
    """Write both tables into the package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="holds adult.data and adult.test")
    folder: Path = parser.parse_args().folder
    write(adult(folder), OUT / "adult.parquet")
    write(scores(), OUT / "scores.parquet")


if __name__ == "__main__":
    main()
