"""JSON of results: every kind of value that a result holds, and what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from voile.records import Record, plain


@dataclass(frozen=True)
class Inner(Record):
    low: float
    high: float


@dataclass(frozen=True)
class Outer(Record):
    json_keys = ("rows", "low=inner.low", "inner", "double", "counts")

    rows: int
    inner: Inner
    counts: tuple[int, ...] = ()
    secret: str = field(default="not in json_keys", repr=False)

    @property
    def double(self) -> int:
        return 2 * self.rows


def test_keys_are_fields_properties_and_paths_in_the_order_that_is_written() -> None:
    found = Outer(3, Inner(0.5, math.inf), (1, 2)).to_dict()
    assert list(found) == ["rows", "low", "inner", "double", "counts"]
    assert found == {
        "rows": 3, "low": 0.5, "inner": {"low": 0.5, "high": None}, "double": 6, "counts": [1, 2],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (2**200, 2**200),
        ("text", "text"),
        (math.nan, None),
        (Fraction(1, 4), 0.25),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array([1.0, math.inf]), [1.0, None]),
        (frozenset({"b", "a"}), ["a", "b"]),
        (Path("a") / "b", "a/b"),
        ({1: (Fraction(1, 2),)}, {"1": [0.5]}),
    ],
)
def test_plain_values(value: object, expected: object) -> None:
    assert plain(value) == expected
    json.dumps(plain(value), allow_nan=False)


def test_what_has_no_json_form_is_refused() -> None:
    with pytest.raises(TypeError, match="complex has no JSON form"):
        plain(1 + 2j)
