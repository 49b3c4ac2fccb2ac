"""`voile.publishing.column_hierarchy` is what `voile hierarchy` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.running import told
from voile.errors import SchemaError, UsageError
from voile.hierarchies import read_hierarchy
from voile.publishing import column_hierarchy

PEOPLE = "age,town,day\n" + "".join(
    f"{20 + i % 50},{75000 + i % 7},2020-0{1 + i % 9}-1{i % 10}\n" for i in range(300)
)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    place = tmp_path / "people.csv"
    place.write_text(PEOPLE)
    return place


@pytest.mark.parametrize(
    ("column", "options", "flags"),
    [
        ("age", {"multiples": [5, 10]}, ["--multiples", "5,10"]),
        ("age", {"equal_width": 8, "fanout": 4}, ["--equal-width", "8", "--fanout", "4"]),
        ("town", {"mask": "right"}, ["--mask", "right"]),
        ("day", {"dates": True}, ["--dates"]),
        ("age", {}, []),
    ],
)
def test_it_is_the_command(
    people: Path, column: str, options: dict[str, Any], flags: list[str]
) -> None:
    found = column_hierarchy(str(people), column, **options).to_dict()
    said = told(["hierarchy", str(people), column, *flags])
    assert found == {key: value for key, value in said.items() if key != "file"}


def test_it_writes_a_file_that_is_read_back(people: Path, tmp_path: Path) -> None:
    place = tmp_path / "age.csv"
    made = column_hierarchy(people, "age", multiples=[10], to=place)
    assert read_hierarchy(place).paths == tuple(made.levels.paths())
    again = column_hierarchy(people, "age", file=place)
    assert again.to_dict()["levels"] == made.to_dict()["levels"]
    with pytest.raises(UsageError, match=r"age\.csv"):
        column_hierarchy(people, "age", to=place)
    place.write_text("20;x\n")
    with pytest.raises(SchemaError, match="has no path for '21'"):
        column_hierarchy(people, "age", file=place)
