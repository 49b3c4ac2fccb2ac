"""What `voile inspect` says of columns that are left out, and of lines that are no person's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.running import voile
from voile.inspection import inspect_source


def text_of(folder: Path, columns: dict[str, Any], *, last: str = "") -> str:
    place = folder / "people.csv"
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows), *filter(None, [last])]
    place.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(place)


def test_times_of_day_are_left_out_with_the_reason(tmp_path: Path) -> None:
    times = [f"{i % 24:02d}:{i % 60:02d}" for i in range(200)]
    source = text_of(tmp_path, {"at": times, "sex": ["m", "f"] * 100})
    said = " ".join(voile("inspect", source).stdout.split())
    assert "leave out at: values of type TIME are not published" in said
    assert said.endswith("--columns sex")


def test_a_line_of_totals_is_pointed_out(tmp_path: Path) -> None:
    columns = {"sex": ["male", "female"] * 100, "kids": list(np.arange(200) % 4)}
    source = text_of(tmp_path, columns, last="Total,300")
    said = " ".join(voile("inspect", source).stdout.split())
    assert "column 'sex' holds 'Total' in 1 row" in said
    assert not inspect_source(text_of(tmp_path, columns)).totals


@pytest.mark.parametrize(
    ("name", "numbers", "named"),
    [
        ("income", np.random.default_rng(1).lognormal(10, 0.8, 2_000), False),
        ("inhabitants", np.random.default_rng(2).pareto(1, 2_000) * 1_000, False),
        ("case", np.arange(2_000), True),
        ("number", np.random.default_rng(3).integers(100_000, 999_999, 2_000), True),
        ("phone", np.random.default_rng(4).integers(10**6, 10**7, 2_000), True),
        ("patient_id", np.random.default_rng(1).lognormal(10, 0.8, 2_000), True),
    ],
)
def test_amounts_are_no_identifiers_although_few_repeat(
    tmp_path: Path, name: str, numbers: Any, named: bool
) -> None:
    whole = np.unique(np.asarray(numbers, dtype=np.int64))
    source = text_of(tmp_path, {name: whole, "sex": ["m"] * len(whole)})
    assert (inspect_source(source).identifiers == [name]) is named
