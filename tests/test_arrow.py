"""Between Arrow and NumPy: as Arrow's own functions do, which import pandas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from voile.arrow import arrow_array, numpy_array, text_array

TYPES = [np.int8, np.int32, np.int64, np.uint32, np.float32, np.float64, np.bool_]
LENGTHS = [0, 1, 7, 8, 9, 1000]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("length", LENGTHS)
def test_arrays_go_to_arrow_and_back(kind: Any, length: int) -> None:
    random = np.random.default_rng(length)
    values = random.integers(0, 3, length).astype(kind)
    missing = random.random(length) < 0.3
    made = arrow_array(values, missing)
    made.validate(full=True)
    assert made.equals(pa.array(values, mask=missing))
    assert arrow_array(values[::2]).equals(pa.array(values[::2]))
    twice = pa.chunked_array([made, made.slice(length // 3)])
    for column in (made, made.slice(length // 3), twice):
        found = numpy_array(column, 1)
        wanted = column.fill_null(kind(1).item()).to_numpy(**whole(column))
        assert found.dtype == kind
        np.testing.assert_array_equal(found, wanted)


def whole(column: Any) -> dict[str, bool]:
    return {} if isinstance(column, pa.ChunkedArray) else {"zero_copy_only": False}


def test_all_may_be_missing() -> None:
    assert not numpy_array(pa.nulls(5).cast(pa.bool_())).any()
    assert all(map(math.isnan, numpy_array(pa.nulls(5, pa.float64()), math.nan)))


@pytest.mark.parametrize("texts", [[], [""], ["a", "", "äöü", "日本", "x" * 1000]])
def test_texts_are_arrows(texts: list[str]) -> None:
    made = text_array(texts)
    made.validate(full=True)
    assert made.equals(pa.array(texts, pa.string()))
