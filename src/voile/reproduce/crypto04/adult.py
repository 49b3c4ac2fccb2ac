"""Adult's training rows as Boolean properties, which the slides' attributes are."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import pyarrow.parquet as pq

from voile.datasets import find

TABLE = "dataset:adult/train"
PROPERTIES = (
    "male", "white", "married", "rich", "private", "over 40", "long hours", "degree",
)  # fmt: skip
"""The eight of the published tables, in that order."""


@lru_cache(maxsize=1)
def properties() -> dict[str, npt.NDArray[np.bool_]]:
    """For each property, for which rows it holds."""
    rows = pq.read_table(find("adult/train").path, filters=[("split", "==", "train")])

    def equal(name: str, value: str) -> npt.NDArray[np.bool_]:
        found = pc.fill_null(pc.equal(rows.column(name), value), False)
        return np.asarray(found.to_numpy(), dtype=np.bool_)

    def numbers(name: str) -> npt.NDArray[np.int64]:
        return np.asarray(rows.column(name).to_numpy(), dtype=np.int64)

    found = (
        equal("sex", "Male"), equal("race", "White"),
        equal("marital_status", "Married-civ-spouse"), equal("salary", ">50K"),
        equal("workclass", "Private"), numbers("age") >= 40,
        numbers("hours_per_week") >= 41, numbers("education_num") >= 13,
    )  # fmt: skip
    return {n: np.asarray(c, dtype=np.bool_) for n, c in zip(PROPERTIES, found, strict=True)}


def share(*wanted: str) -> float:
    """The share of the rows that have all of these properties."""
    return float(np.logical_and.reduce([properties()[name] for name in wanted]).mean())


@lru_cache(maxsize=1)
def combinations_counted() -> npt.NDArray[np.int64]:
    """How many rows have each combination of the eight: an array of 2⁸ counts."""
    codes = np.ravel_multi_index([c.astype(np.int64) for c in properties().values()], (2,) * 8)
    return np.bincount(codes, minlength=2**8).reshape((2,) * 8)
