"""Bins of columns, and what is said of them: SQL that is true of exactly the rows in them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from voile.engines.encode import ARROW
from voile.errors import TableError, UsageError
from voile.mining.binning import UNKNOWN, Binning, binning, class_in_words
from voile.schema import Attribute, Bins, Interval, Range, Values

DAY = dt.date(2024, 2, 27)
ATTRIBUTES = [
    Attribute("age", "integer", Range(17, 90)),
    Attribute("age", "integer", Range(-3, 3), null=True),
    Attribute("day", "date", Range(DAY, dt.date(2024, 3, 5)), null=True),
    Attribute("colour", "categorical", Values(("red", "it's", "blue", "")), ordered=False),
    Attribute("colour", "categorical", Values(("a", "b")), null=True, ordered=False),
    Attribute("grade", "categorical", Values(("low", "middle", "high")), ordered=True),
    Attribute("code", "integer", Values((30, 10, 20)), ordered=True),
    Attribute("size of it", "numeric", Values((0.5, 1.5, 2.25, 7.0)), null=True),
    Attribute("order", "numeric", Bins((0.0, 1.0, 2.5, 10.0)), null=True),
    Attribute("weight", "numeric", Interval(0.0, 2.0, 0.1)),
    Attribute("yes", "boolean", Values((False, True)), null=True),
]


def masks(binned: Binning) -> Iterator[Any]:
    """Every set of bins that a tree or a rule can come to."""
    count = binned.intervals
    for null in [False, True] if binned.attribute.null else [None]:
        for own in sets(binned, count):
            yield np.array(own if null is None else [*own, null])


def sets(binned: Binning, count: int) -> Iterator[list[bool]]:
    if binned.ordered:
        for first in range(count):
            for last in range(first, count + 1):
                yield [first <= place < last for place in range(count)]
    else:
        for number in range(2**count):
            yield [bool(number >> place & 1) for place in range(count)]


@pytest.mark.parametrize("bins", [2, 5, 100])
@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda a: f"{a.name} {a.kind}")
def test_conditions_are_true_of_exactly_the_values_in_the_bins(
    attribute: Attribute, bins: int
) -> None:
    binned = binning(attribute, bins)
    values = pa.array(list(attribute), type=ARROW[attribute.kind])
    places = binned.places(values)
    assert places.tolist() == binned.bins.tolist()
    chosen = [mask for at, mask in enumerate(masks(binned)) if at % 7 in (0, 3) or at < 40]
    con = duckdb.connect()
    con.register("held", pa.table({attribute.name: values}))
    for mask in chosen:
        sql = f"SELECT coalesce({binned.condition(mask)}, false) FROM held"
        found = [bool(row[0]) for row in con.execute(sql).fetchall()]
        assert found == mask[places].tolist(), binned.condition(mask)


def test_bins_of_an_ordered_domain_have_nearly_equally_many_values() -> None:
    sizes = np.bincount(binning(ATTRIBUTES[0], 20).bins)
    assert len(sizes) == 20
    assert sizes.max() - sizes.min() <= 1
    assert sizes.sum() == 74


def test_numbers_beyond_the_domain_are_in_the_first_or_the_last_bin() -> None:
    binned = binning(ATTRIBUTES[0], 20)
    assert binned.places(pa.array([-5, 17, 90, 1000])).tolist() == [0, 0, 19, 19]


def test_values_that_nobody_knows_have_no_bin() -> None:
    binned = binning(ATTRIBUTES[3], 20)
    assert binned.places(pa.array(["red", "green", None])).tolist() == [0, UNKNOWN, UNKNOWN]
    assert binning(ATTRIBUTES[4], 20).places(pa.array(["b", None])).tolist() == [1, 2]
    assert binning(ATTRIBUTES[0], 20).places(pa.array([None, 18])).tolist() == [UNKNOWN, 0]


def test_a_column_of_another_kind_is_refused_by_name() -> None:
    with pytest.raises(TableError, match="'age' has values that are not of kind integer"):
        binning(ATTRIBUTES[0], 20).places(pa.array(["old", "young"]))


def test_domains_too_large_to_list_are_refused() -> None:
    with pytest.raises(UsageError, match="more than 67,108,864"):
        binning(Attribute("id", "integer", Range(1, 10**9)), 20)
    names = Values(tuple(f"name {i}" for i in range(1001)))
    with pytest.raises(UsageError, match="1,001 values without an order"):
        binning(Attribute("name", "categorical", names, ordered=False), 20)


def test_words_are_short() -> None:
    age, colour = binning(ATTRIBUTES[0], 74), binning(ATTRIBUTES[3], 20)
    place = np.arange(74)
    assert age.words(place < 10) == "age < 27"
    assert age.words(place >= 10) == "age ≥ 27"
    assert age.words((place >= 10) & (place < 20)) == "27 ≤ age < 37"
    assert colour.words(np.array([True, False, True, False])) == "colour: red, blue"
    assert colour.words(np.array([True, True, False, False])) == "colour: red, it's"
    assert colour.words(np.array([True, True, False, True])) == "colour: not blue"
    day = binning(ATTRIBUTES[2], 20)
    assert day.words(np.arange(9) < 2) == "day < 2024-02-29"
    assert day.condition(np.arange(9) < 2) == "day < DATE '2024-02-29'"
    many = binning(Attribute("name", "categorical", Values(tuple(f"{i},5" for i in range(40))),
                             ordered=False), 20)  # fmt: skip
    assert many.words(np.arange(40) < 12) == "name: 12 of 40 values, such as 0,5; 1,5; 2,5"
    assert many.words(np.arange(40) >= 12) == "name: 28 of 40 values, such as 12,5; 13,5; 14,5"
    assert many.words(np.arange(40) >= 2) == "name: not 0,5; 1,5"
    assert many.condition(np.arange(40) < 12).count("'") == 24
    edges = binning(ATTRIBUTES[8], 20)
    assert edges.words(np.array([True, False, False, False])) == "order < 1"
    other = binning(ATTRIBUTES[4], 20)
    assert other.words(np.array([False, True, True])) == "colour: b or NULL"
    assert other.words(np.array([False, False, True])) == "colour: NULL"
    assert other.words(np.array([True, True, False])) == "colour: known"


def test_classes_are_told_apart_from_their_shares() -> None:
    assert class_in_words(18, 0.18, 0.0) == "class 18: 18 %"
    assert class_in_words(18, 0.18, 0.021) == "class 18: 18 ± 2 %"
    assert class_in_words(dt.date(2024, 5, 9), 0.184, 0.0052) == "class 2024-05-09: 18.4 ± 0.5 %"
    assert class_in_words(31.0, 0.03, 1e-9) == "class 31: 3.00 ± 0.00 %"
    assert class_in_words("x" * 100, 1.0, 0.3) == f"class {'x' * 20}…{'x' * 19}: 100 ± 30 %"
