"""Adult as the frontier paper groups it, and a slow Mondrian that the tests trust.

The hierarchies are written out here, so that the numbers of the tests do not depend on those that
are shipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.support.paths import TESTS
from voile.engines import connect
from voile.recoding.grouping import Grouping, bounding
from voile.recoding.units import Units
from voile.schema.hierarchy import Levels

QI = ("age", "workclass", "education", "marital_status", "race", "sex")
SENSITIVE = "occupation"
PARTS: dict[str, list[dict[str, tuple[str, ...]]]] = {
    "workclass": [
        {
            "not the state": ("Private", "Self-emp-not-inc", "Self-emp-inc"),
            "the state": ("Federal-gov", "Local-gov", "State-gov"),
            "unpaid": ("Without-pay",),
        }
    ],
    "education": [
        {
            "college": ("Bachelors", "Some-college"),
            "school": ("11th", "HS-grad", "9th", "7th-8th", "12th", "10th"),
            "profession": ("Prof-school", "Assoc-acdm", "Assoc-voc"),
            "degree": ("Masters", "Doctorate"),
            "first years": ("1st-4th", "5th-6th", "Preschool"),
        },
        {
            "high": (
                "Bachelors", "Some-college", "Prof-school", "Assoc-acdm", "Assoc-voc", "Masters",
                "Doctorate",
            ),
            "middle": ("11th", "HS-grad", "9th", "7th-8th", "12th", "10th"),
            "low": ("1st-4th", "5th-6th", "Preschool"),
        },
    ],
    "marital_status": [
        {
            "together": ("Married-civ-spouse", "Married-AF-spouse"),
            "apart": (
                "Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent",
            ),
        }
    ],
}  # fmt: skip


def frontier_oracle() -> dict[str, Any]:
    """What an independent implementation computed about Adult's frontier."""
    path = TESTS / "oracle" / "frontier.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@cache
def adult() -> tuple[Units, tuple[Levels, ...], tuple[npt.NDArray[np.int32], ...]]:
    """The 45,222 rows in the oracle's orders, hierarchies over the schema's codes, the orders."""
    table = connect("dataset:adult/frontier")
    schema = table.infer([*QI, SENSITIVE], "error")
    codes, _ = table.columns_of_codes(schema, drop_nulls=False)
    orders = frontier_oracle()["value_orders"]["R1"]
    levels, positions, permutations = [], [], []
    for j, name in enumerate(QI):
        values = list(schema[name])
        listed = sorted(values) if j == 0 else orders[j - 1]  # type: ignore[type-var]
        order = np.array([values.index(value) for value in listed], dtype=np.int32)
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order))
        levels.append(levels_of(name, values, order))
        positions.append(place[codes[j]])
        permutations.append(order)
    units = Units(
        np.stack(positions),
        tuple(schema.sizes[:-1]),
        codes[-1].astype(np.int32)[None, :],
        (schema.sizes[-1],),
        np.ones(len(codes[0]), dtype=np.int64),
    )
    return units, tuple(levels), tuple(permutations)


def levels_of(name: str, values: list[Any], order: npt.NDArray[np.int32]) -> Levels:
    """Ages in floor bins of 5, 10 and 20 years; the others by their parts."""
    if name == "age":
        paths = [[age, age // 5 * 5, age // 10 * 10, age // 20 * 20, "*"] for age in values]
    else:
        up = [{v: label for label, of in part.items() for v in of} for part in PARTS.get(name, [])]
        paths = [[value, *(level[value] for level in up), "*"] for value in values]
    nodes, labels = [], []
    for level in zip(*paths, strict=True):
        known = list(dict.fromkeys(level))
        nodes.append(np.array([known.index(label) for label in level], dtype=np.int32))
        labels.append(tuple(str(label) for label in known))
    return Levels(tuple(nodes), tuple(labels), order)


Met = Callable[[npt.NDArray[np.int64], int], bool]


def slow_mondrian(units: Units, met: Met) -> Grouping:
    """The oracle's Mondrian, written to be read: see mondrian_definition in its file."""
    classes = np.zeros(units.codes.shape[1], dtype=np.int32)
    waiting, done = [np.arange(len(classes))], 0
    while waiting:
        rows = waiting.pop()
        for left in cuts(units, rows):
            parts = rows[left], rows[~left]
            if all(met(histogram(units, part), len(part)) for part in parts):
                waiting += parts
                break
        else:
            classes[rows] = done
            done += 1
    return bounding(units, classes, done)


def cuts(units: Units, rows: npt.NDArray[np.int64]) -> Any:
    """Which rows go left, for each column that can be cut, the widest first."""
    codes = units.codes[:, rows]
    widths = [
        (int(of.max()) - int(of.min())) / max(1, size - 1)
        for of, size in zip(codes, units.sizes, strict=True)
    ]
    for j in sorted(range(len(widths)), key=lambda j: -widths[j]):
        present, counts = np.unique(codes[j], return_counts=True)
        if len(present) > 1:
            place = int(np.searchsorted(2 * np.cumsum(counts), len(rows)))
            yield codes[j] <= present[min(place, len(present) - 2)]


def histogram(units: Units, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.bincount(units.sensitive[0, rows], minlength=units.sensitive_sizes[0])


def rule_of(name: str, units: Units) -> Met:
    """The oracle's requirement 'k:10', 'l:3', 't:0.1', 'd:1.5'."""
    kind, _, text = name.partition(":")
    bound, overall = float(text), units.overall[0] / units.rows

    def js(counts: npt.NDArray[np.int64], rows: int) -> float:
        share = counts / rows
        middle = (share + overall) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = [np.where(p > 0, p * np.log(p / middle), 0.0).sum() for p in (share, overall)]
        return float(sum(terms) / 2)

    def semantic(counts: npt.NDArray[np.int64], rows: int) -> bool:
        if counts.min() == 0:
            return False
        return bool(np.abs(np.log(counts / rows / overall)).max() <= bound + 1e-12)

    rules: dict[str, Met] = {
        "k": lambda _, rows: rows >= bound,
        "l": lambda counts, rows: bool(counts.max() * bound <= rows + 1e-12),
        "t": lambda counts, rows: js(counts, rows) <= bound + 1e-12,
        "d": semantic,
    }
    return rules[kind]
