"""Totals from cubes are those of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.soak import rounds
from voile.engines import lookups
from voile.engines.lookups import CodedRows, Lookup, Summand, Sums, Tree, cells_of
from voile.query.predicate import And, Or
from voile.schema import Attribute, Range, Schema

SIZES = {"a": 3, "b": 4, "c": 2}
SCHEMA = Schema(tuple(Attribute(n, "integer", Range(0, size - 1)) for n, size in SIZES.items()))


def some_rows(generator: np.random.Generator, count: int) -> CodedRows:
    columns = {n: generator.integers(0, size, count).astype(np.uint8) for n, size in SIZES.items()}
    return CodedRows(SCHEMA, columns, generator.integers(0, 2**63, count).astype(np.uint64))


def lookup(generator: np.random.Generator, *names: str, numbers: bool = False) -> Lookup:
    size = int(np.prod([SIZES[name] for name in names]))
    if not numbers:
        return Lookup(names, generator.random(size) < 0.5)
    table = generator.integers(-20, 20, size) / 4
    table[generator.random(size) < 0.2] = np.nan
    return Lookup(names, table)


@settings(max_examples=rounds(40, 2000), deadline=None)
@given(seed=st.integers(0, 2**32), grouped=st.booleans())
def test_a_cube_has_the_totals_of_the_rows(seed: int, grouped: bool) -> None:
    generator = np.random.default_rng(seed)
    rows = some_rows(generator, int(generator.integers(0, 300)))
    where: Tree = And(
        (lookup(generator, "a"), Or((lookup(generator, "b"), lookup(generator, "a", "c"))))
    )
    summands = (
        Summand(),
        Summand(lookup(generator, "b", "c")),
        Summand(None, (lookup(generator, "a", numbers=True),), 4.0, -20, 20),
        Summand(lookup(generator, "c"), (lookup(generator, "b", numbers=True),) * 2, 2.0, -9, 30),
    )
    request = Sums(summands, None if seed % 3 == 0 else where)
    if grouped:
        keys = (
            Lookup(("b",), generator.integers(0, 2, 4)),
            Lookup(("a", "c"), generator.integers(0, 3, 6)),
        )
        cells = cells_of((2, 3), (np.array([0, 1, 1]), np.array([2, 0, 1])))
        request = Sums(summands, request.where, None, keys, (2, 3), cells, 3)
    expected = rows._by_row(request)
    assert rows.totals(request).tolist() == expected.tolist()
    assert rows.is_at_hand(request)
    assert rows.totals(request).tolist() == expected.tolist()


def test_halves_and_large_domains_are_counted_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(3)
    rows = some_rows(generator, 100)
    half = Sums((Summand(),), mask=5)
    rows.totals(half)
    assert not rows.is_at_hand(half)
    monkeypatch.setattr(lookups, "CELLS", 6)
    large = Sums((Summand(lookup(generator, "a", "b")),))
    assert rows.totals(large).tolist() == rows._by_row(large).tolist()
    assert not rows.is_at_hand(large)


def test_cubes_are_dropped_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(4)
    rows = some_rows(generator, 100)
    monkeypatch.setattr(lookups, "CUBES", 8 * 5)
    first, second = (Sums((Summand(lookup(generator, name)),)) for name in ("a", "b"))
    rows.totals(first)
    rows.totals(second)
    assert rows.is_at_hand(second)
    assert not rows.is_at_hand(first)
