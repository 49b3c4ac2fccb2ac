"""Large populations: all of them, once each, with their rows, on Adult and on tiny tables."""

from __future__ import annotations

import importlib
import math
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from tests.support.grouped import QI, adult, frontier_oracle, levels_of
from voile.errors import UsageError
from voile.evaluate.losses import Populations, jensen_shannon, populations
from voile.evaluate.losses.queries import mean_divergence
from voile.schema.hierarchy import Levels


def of_adult(min_support: float) -> Populations:
    units, levels, orders = adult()
    codes = np.stack([order[of] for order, of in zip(orders, units.codes, strict=True)])
    values = np.zeros((units.rows, units.sensitive_sizes[0]), dtype=np.int64)
    values[np.arange(units.rows), units.sensitive[0]] = 1
    least = math.ceil(min_support * units.rows - 1e-9)
    return populations(codes, levels, least, values)


@pytest.mark.parametrize("text", frontier_oracle()["populations"]["minSup"])
def test_as_many_large_populations_as_the_oracle_counts(text: str) -> None:
    assert of_adult(float(text)).number == frontier_oracle()["populations"]["minSup"][text]


def test_as_many_of_each_length_and_the_trivial_loss_of_the_oracle() -> None:
    expected, found = frontier_oracle()["populations"], of_adult(0.05)
    by_length = {str(n): int((found.size == n).sum()) for n in range(1, 7)}
    assert by_length == expected["by_length"]
    trivial = mean_divergence(found, np.tile(found.overall, (found.number, 1)))
    assert trivial == pytest.approx(expected["U_trivial"], abs=expected["tolerance"]["U"])


def tree(paths: list[list[str]]) -> Levels:
    """Levels over codes 0, 1, … from their paths."""
    nodes, labels = [], []
    for level in zip(*paths, strict=True):
        known = list(dict.fromkeys(level))
        nodes.append(np.array([known.index(label) for label in level], dtype=np.int32))
        labels.append(tuple(known))
    return Levels(tuple(nodes), tuple(labels), np.arange(len(paths), dtype=np.int32))


TREES = (
    tree([["a", "ab", "*"], ["b", "ab", "*"], ["c", "cd", "*"], ["d", "cd", "*"]]),
    # One node has a single child twice over, and one level is everything.
    tree([["u", "u'", "u''", "all", "*"], ["v", "vw", "vw'", "all", "*"],
          ["w", "vw", "vw'", "all", "*"]]),
    tree([["x", "*"], ["y", "*"]]),
)  # fmt: skip


def by_definition(
    cells: npt.NDArray[np.int32], trees: tuple[Levels, ...], least: int
) -> dict[tuple[frozenset[int] | None, ...], set[int]]:
    """Every conjunction of different sets of values, listed, with the rows that meet it."""
    items: list[list[frozenset[int] | None]] = []
    for of in trees:
        sets = {
            frozenset(np.flatnonzero(nodes == node).tolist())
            for nodes in of.nodes
            for node in set(nodes.tolist())
        }
        items.append([None, *(s for s in sets if len(s) < of.size)])
    found = {}
    for choice in product(*items):
        rows = {
            row for row in range(cells.shape[1])
            if all(s is None or int(cells[j, row]) in s for j, s in enumerate(choice))
        }  # fmt: skip
        if any(choice) and len(rows) >= least:
            found[choice] = rows
    return found


@pytest.mark.parametrize(("seed", "least"), [(1, 1), (2, 3), (3, 7), (4, 20), (5, 41)])
def test_the_same_populations_as_by_listing_all(seed: int, least: int) -> None:
    coins = np.random.default_rng(seed)
    cells = np.stack([coins.integers(0, of.size, 40) for of in TREES]).astype(np.int32)
    values = np.eye(3, dtype=np.int64)[coins.integers(0, 3, 40)]
    found = populations(cells, TREES, least, values)
    expected = by_definition(cells, TREES, least)
    seen = set()
    for y in range(found.number):
        choice = tuple(
            None if item < 0 else frozenset(np.flatnonzero(items.has[item]).tolist())
            for items, item in zip(found.items, found.choices[y], strict=True)
        )
        assert choice in expected and choice not in seen
        seen.add(choice)
        rows = sorted(expected[choice])
        assert found.support[y] == len(rows)
        assert (found.true_counts[y] == values[rows].sum(axis=0)).all()
        assert found.size[y] == sum(one is not None for one in choice)
    assert len(seen) == len(expected)


def test_a_population_of_exactly_the_least_rows_is_large() -> None:
    cells = np.array([[0, 0, 1]], dtype=np.int32)
    values = np.ones((3, 1), dtype=np.int64)
    assert populations(cells, TREES[2:], 2, values).number == 1
    assert populations(cells, TREES[2:], 3, values).number == 0


def test_sums_over_populations_and_their_transpose() -> None:
    coins = np.random.default_rng(6)
    cells = np.stack([coins.integers(0, of.size, 60) for of in TREES]).astype(np.int32)
    found = populations(cells, TREES, 5, np.ones((60, 1), dtype=np.int64))
    incidence = np.zeros((found.number, found.atoms.shape[1]))
    for y in range(found.number):
        incidence[y, found.members[found.starts[y] : found.starts[y + 1]]] = 1
    values = coins.random((found.atoms.shape[1], 2))
    np.testing.assert_allclose(found.sums(values), incidence @ values, rtol=1e-12)
    others = coins.random((found.number, 3))
    np.testing.assert_allclose(found.spread(others), incidence.T @ others, rtol=1e-12)


def test_atoms_tell_cells_apart_just_as_far_as_populations_do() -> None:
    found = of_adult(0.1)
    units, _, orders = adult()
    codes = np.stack([order[of] for order, of in zip(orders, units.codes, strict=True)])
    atoms = found.atoms_of(codes)
    assert (np.bincount(atoms) == found.counts.sum(axis=1)).all()
    some = np.random.default_rng(7).choice(found.number, 20, replace=False)
    for y in some:
        meets = np.ones(units.rows, dtype=np.bool_)
        for j, item in enumerate(found.choices[y]):
            if item >= 0:
                meets &= found.items[j].has[item, codes[j]]
        members = found.members[found.starts[y] : found.starts[y + 1]]
        assert (np.isin(atoms, members) == meets).all()


def test_a_cell_that_the_table_does_not_have_is_refused() -> None:
    cells = np.array([[0, 1], [0, 1]], dtype=np.int32)
    found = populations(cells, (TREES[2], TREES[2]), 1, np.ones((2, 1), dtype=np.int64))
    with pytest.raises(UsageError, match="does not have"):
        found.atoms_of(np.array([[0], [1]], dtype=np.int32))


def test_too_many_populations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = np.array([[0, 1, 2, 3]], dtype=np.int32)
    module = importlib.import_module("voile.recoding.populations")
    monkeypatch.setattr(module, "MOST_MEMBERS", 3)
    with pytest.raises(UsageError, match="too many populations"):
        populations(cells, TREES[:1], 1, np.ones((4, 1), dtype=np.int64))


def test_populations_in_words() -> None:
    cells = np.array([[0, 1], [0, 1]], dtype=np.int32)
    found = populations(cells, (TREES[0], TREES[2]), 1, np.ones((2, 1), dtype=np.int64))
    words = {found.words(y, ["letter", "side"]) for y in range(found.number)}
    assert {"letter = ab", "letter = a and side = x", "side = y"} <= words


def test_many_columns_need_no_numbers_larger_than_a_word() -> None:
    cells = np.random.default_rng(8).integers(0, 4, (40, 30)).astype(np.int32)
    found = populations(cells, TREES[:1] * 40, 29, np.ones((30, 1), dtype=np.int64))
    assert found.atoms_of(cells).shape == (30,)


def test_the_tests_own_hierarchies_have_the_oracles_heights() -> None:
    _, levels, _ = adult()
    assert dict(zip(QI, (of.height for of in levels), strict=True)) == {
        "age": 4, "workclass": 2, "education": 3, "marital_status": 2, "race": 1, "sex": 1,
    }  # fmt: skip
    assert levels_of("sex", ["Female", "Male"], np.arange(2, dtype=np.int32)).height == 1


def test_divergence_of_a_value_that_is_revealed() -> None:
    expected = frontier_oracle()["js_revealed_natural_log"]
    overall = np.array(frontier_oracle()["data"]["Q"])
    found = jensen_shannon(np.eye(len(overall)), overall)
    values = list(expected["values"].values())
    np.testing.assert_allclose(found, values, atol=expected["tolerance"])
    assert {round(values[-1], 3), round(values[1], 3)} == set(expected["paper"].values())
