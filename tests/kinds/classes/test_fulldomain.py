"""Full-domain generalization: the search equals trying every combination of levels.

The reference knows nothing of roll-ups, bounds or pruning: it generalizes every row at every
combination of levels with dictionaries, suppresses what fails, and prices what is left with exact
fractions where the loss has them.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest

import voile
from voile.errors import PromiseError, UsageError
from voile.hierarchies import read_hierarchies
from voile.privacy.requirements import AlphaK, Histograms, K, L, Presence, Requirement, Semantic, T
from voile.recoding.fulldomain import FullDomain, Suppressed, full_domain
from voile.recoding.rollup import Loss
from voile.recoding.units import Units, units_of_rows
from voile.schema.hierarchy import Levels

Row = tuple[int, ...]


# ---------------------------------------------------------------------- the reference


@dataclass(frozen=True)
class Outcome:
    """One combination of levels: which rows are suppressed, and the loss."""

    suppressed: frozenset[int]
    loss: float


def by_class(units: Units, levels: Sequence[Levels], node: Row) -> dict[Row, list[int]]:
    found: dict[Row, list[int]] = defaultdict(list)
    for unit in range(len(units.weights)):
        codes = [int(units.codes[j, unit]) for j in range(len(levels))]
        shown = zip(levels, node, codes, strict=True)
        found[tuple(int(column.nodes[h][code]) for column, h, code in shown)].append(unit)
    return dict(found)


def histogram(
    units: Units, members: Sequence[int], overall: tuple[Counter[int], ...]
) -> Histograms:
    """Of one class, from its rows one by one."""
    counts, whole = [], []
    for a, size in enumerate(units.sensitive_sizes):
        held: Counter[int] = Counter()
        for unit in members:
            held[int(units.sensitive[a, unit])] += int(units.weights[unit])
        counts.append(np.array([[held[v] for v in range(size)]], dtype=np.int64))
        whole.append(np.array([overall[a][v] for v in range(size)], dtype=np.int64))
    rows = np.array([sum(int(units.weights[unit]) for unit in members)], dtype=np.int64)
    population = None
    if units.population is not None:
        people = sum(int(units.population[unit]) for unit in members)
        population = np.array([people], dtype=np.int64)
    return Histograms(rows, tuple(counts), tuple(whole), population)


def overall_of(units: Units, members: Sequence[int]) -> tuple[Counter[int], ...]:
    found = []
    for a in range(len(units.sensitive_sizes)):
        held: Counter[int] = Counter()
        for unit in members:
            held[int(units.sensitive[a, unit])] += int(units.weights[unit])
        found.append(held)
    return tuple(found)


def outcome(
    units: Units,
    levels: Sequence[Levels],
    node: Row,
    requirements: Sequence[Requirement],
    suppression: float,
    loss: str,
    suppressed: str,
) -> Outcome | None:
    """None where these levels are not feasible."""
    classes = by_class(units, levels, node)
    everyone = [unit for members in classes.values() for unit in members]
    kept = dict(classes)
    while True:
        there = [unit for members in kept.values() for unit in members]
        overall = overall_of(units, everyone if suppressed == "shown" else there)
        wrong = [
            key
            for key, members in kept.items()
            if sum(units.weights[members]) > 0
            and not all(
                r.met(histogram(units, members, overall))[0]
                for r in requirements
                if not isinstance(r, Presence)
            )
        ]
        if not wrong:
            break
        for key in wrong:
            del kept[key]
        if suppressed == "shown":
            break
    there = [unit for members in kept.values() for unit in members]
    lost = [unit for unit in everyone if unit not in set(there)]
    rows = sum(int(units.weights[unit]) for unit in lost)
    if rows > suppression * units.rows or not any(units.weights[there] > 0):
        return None
    if suppressed == "shown" and rows:
        star = histogram(units, lost, overall_of(units, everyone))
        if not all(r.met(star)[0] for r in requirements):
            return None
    for requirement in requirements:
        if isinstance(requirement, Presence):
            gone = np.isin(np.arange(len(units.weights)), lost)
            absent = replace(units, weights=np.where(gone, 0, units.weights))
            looked = kept if suppressed == "shown" else classes
            for members in looked.values():
                if not requirement.met(histogram(absent, members, overall_of(units, there)))[0]:
                    return None
    return Outcome(frozenset(lost), loss_of(units, levels, node, kept, lost, loss))


def loss_of(
    units: Units,
    levels: Sequence[Levels],
    node: Row,
    kept: dict[Row, list[int]],
    lost: Sequence[int],
    loss: str,
) -> float:
    """From the definitions, row by row; a suppressed row is '*' everywhere."""
    n = units.rows
    if loss == "discernibility":
        sizes = [sum(int(units.weights[u]) for u in members) for members in kept.values()]
        rows = sum(int(units.weights[u]) for u in lost)
        return float(Fraction(sum(size**2 for size in sizes) + n * rows, n**2))
    most, found = 0.0, 0.0
    for j, column in enumerate(levels):
        by_node: list[Counter[int]] = [Counter() for _ in column.nodes]
        for unit in range(len(units.weights)):
            for h, nodes in enumerate(column.nodes):
                by_node[h][int(nodes[units.codes[j, unit]])] += int(units.weights[unit])
        for unit in range(len(units.weights)):
            weight, code = int(units.weights[unit]), int(units.codes[j, unit])
            level = column.height if unit in lost else node[j]
            own = int(column.nodes[level][code])
            if loss == "levels":
                found += weight * Fraction(level, column.height)
                most += weight
            elif loss == "ncp":
                leaves = sum(1 for other in column.nodes[level] if other == own)
                if column.size > 1:
                    found += weight * Fraction(leaves - 1, column.size - 1)
                    most += weight
            elif weight:
                alone = by_node[0][code]
                found += weight * math.log2(by_node[level][own] / alone)
                most += weight * math.log2(n / alone)
    return float(found / most) if most else 0.0


def exhaustive(
    units: Units,
    levels: Sequence[Levels],
    requirements: Sequence[Requirement],
    suppression: float,
    loss: str,
    suppressed: str,
) -> dict[Row, Outcome]:
    """Every feasible combination of levels."""
    nodes = itertools.product(*(range(column.height + 1) for column in levels))
    tried = {
        node: outcome(units, levels, node, requirements, suppression, loss, suppressed)
        for node in nodes
    }
    return {node: found for node, found in tried.items() if found is not None}


# ---------------------------------------------------------------------- random tables


def random_levels(rng: np.random.Generator, size: int) -> Levels:
    """Values joined at random, until one group is left."""
    nodes = [np.arange(size, dtype=np.int32)]
    while nodes[-1].max() > 0:
        number = int(nodes[-1].max()) + 1
        fewer = int(rng.integers(1, number))
        parents = np.concatenate([np.arange(fewer), rng.integers(0, fewer, number - fewer)])
        nodes.append(rng.permutation(parents)[nodes[-1]].astype(np.int32))
    if len(nodes) == 1:
        nodes.append(np.zeros(size, dtype=np.int32))
    labels = tuple(tuple(map(str, range(int(level.max()) + 1))) for level in nodes)
    return Levels(tuple(nodes), labels, rng.permutation(size).astype(np.int32))


def random_table(rng: np.random.Generator, *, public: bool = False) -> tuple[Units, list[Levels]]:
    sizes = tuple(int(size) for size in rng.integers(1, 6, rng.integers(1, 4)))
    number, values = int(rng.integers(1, 25)), (int(rng.integers(2, 4)), 2)
    skewed = [rng.dirichlet(np.ones(size)) for size in sizes]
    codes = np.array([rng.choice(size, number, p=p) for size, p in zip(sizes, skewed, strict=True)])
    sensitive = np.array([rng.integers(0, size, number) for size in values])
    weights = rng.integers(0 if public else 1, 4, number)
    weights[0] = 1
    population = weights + rng.integers(0, 3, number) if public else None
    units = Units(
        codes.astype(np.int32), sizes, sensitive.astype(np.int32), values,
        weights.astype(np.int64), None if population is None else population.astype(np.int64),
    )  # fmt: skip
    return units, [random_levels(rng, size) for size in sizes]


REQUIREMENTS: dict[str, list[Requirement]] = {
    "k": [K(3)],
    "alpha-k": [AlphaK(0.7, 2)],
    "l frequency": [L(1.5)],
    "l distinct": [L(2, "distinct")],
    "l entropy": [L(1.5, "entropy")],
    "l recursive": [L(2, "recursive", c=2.0)],
    "t js": [T(0.05)],
    "t variational": [K(2), T(0.2, "variational")],
    "t ordered": [T(0.15, "emd-ordered")],
    "semantic forbidden": [Semantic(1.2, "forbidden")],
    "semantic ignored": [K(2), Semantic(0.8, "ignored")],
    "two attributes": [K(2), L(2, "distinct"), T(0.2, "variational", attribute=1)],
}


def assert_is_the_best(found: FullDomain, feasible: dict[Row, Outcome]) -> None:
    best = min(outcome.loss for outcome in feasible.values())
    assert found.loss == pytest.approx(best, abs=1e-12)
    own = feasible[found.levels]
    assert own.loss == pytest.approx(best, abs=1e-12)
    assert found.suppressed_rows == sum(found.units.weights[list(own.suppressed)])
    ties = [node for node, o in feasible.items() if abs(o.loss - best) < 1e-12]
    assert sum(found.levels) == min(map(sum, ties))


@pytest.mark.parametrize("kind", REQUIREMENTS)
def test_the_search_equals_trying_all_levels(kind: str) -> None:
    rng = np.random.default_rng(sum(map(ord, kind)))
    solved = 0
    for trial in range(60):
        units, levels = random_table(rng)
        suppression = float(rng.choice([0.0, 0.1, 0.4]))
        loss = get_args(Loss)[trial % 4]
        way = get_args(Suppressed)[trial % 2]
        feasible = exhaustive(units, levels, REQUIREMENTS[kind], suppression, loss, way)
        try:
            found = full_domain(
                units, levels, REQUIREMENTS[kind],
                suppression=suppression, loss=loss, suppressed=way,
            )  # fmt: skip
        except PromiseError:
            assert not feasible
        else:
            assert_is_the_best(found, feasible)
            solved += 1
    assert solved >= 10


def test_presence_counts_who_is_removed_as_absent() -> None:
    """The reference removes the rows of failing classes, and then looks at everybody's share."""
    rng = np.random.default_rng(11)
    solved = refused = 0
    for trial in range(120):
        units, levels = random_table(rng, public=True)
        low, high = sorted(float(x) for x in rng.uniform(0, 1, 2))
        requirements: list[Requirement] = [Presence(low if trial % 2 else 0.0, high), K(2)]
        suppression, way = float(rng.choice([0.0, 0.3])), get_args(Suppressed)[trial % 3 == 0]
        feasible = exhaustive(units, levels, requirements, suppression, "ncp", way)
        try:
            found = full_domain(
                units, levels, requirements, suppression=suppression, suppressed=way
            )
        except PromiseError:
            assert not feasible
            refused += 1
        else:
            assert_is_the_best(found, feasible)
            solved += 1
    assert solved >= 20
    assert refused >= 20


# ---------------------------------------------------------------------- what pruning rests on


def is_upward_closed(feasible: dict[Row, Outcome], levels: Sequence[Levels]) -> bool:
    """Whether every coarser combination of levels is feasible where a finer one is."""
    nodes = list(itertools.product(*(range(column.height + 1) for column in levels)))
    return all(
        above in feasible
        for node in feasible
        for above in nodes
        if all(map(int.__ge__, above, node))
    )


@pytest.mark.parametrize(("kind", "closed"), [("k", True), ("l distinct", True), ("t js", False),
                                              ("l frequency", False)])  # fmt: skip
def test_with_suppression_only_what_rows_cannot_spoil_is_monotone(kind: str, closed: bool) -> None:
    """Joining good rows with bad ones can spoil them: then coarser levels suppress more."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(80):
        units, levels = random_table(rng)
        feasible = exhaustive(units, levels, REQUIREMENTS[kind], 0.25, "ncp", "removed")
        found.append(is_upward_closed(feasible, levels))
    assert all(found) is closed


@pytest.mark.parametrize("kind", [kind for kind in REQUIREMENTS if kind != "semantic ignored"])
def test_without_suppression_monotone_requirements_are(kind: str) -> None:
    rng = np.random.default_rng(6)
    for _ in range(30):
        units, levels = random_table(rng)
        feasible = exhaustive(units, levels, REQUIREMENTS[kind], 0.0, "ncp", "removed")
        assert is_upward_closed(feasible, levels)


def test_levels_below_those_that_fail_may_meet_what_is_not_monotone() -> None:
    """Ignoring absent values: a class fails that is joined of two which do not."""
    rng = np.random.default_rng(8)
    closed = []
    for _ in range(150):
        units, levels = random_table(rng)
        asked = [Semantic(0.5, "ignored")]
        feasible = exhaustive(units, levels, asked, 0.0, "ncp", "removed")
        closed.append(is_upward_closed(feasible, levels))
        assert_is_the_best(full_domain(units, levels, asked), feasible)
    assert not all(closed)


@pytest.mark.parametrize("loss", get_args(Loss))
def test_no_loss_is_below_that_of_finer_levels_with_nothing_suppressed(loss: str) -> None:
    """The bound: at finer levels, and with nothing suppressed, less is lost."""
    rng = np.random.default_rng(7)
    for _ in range(25):
        units, levels = random_table(rng)
        free = exhaustive(units, levels, [], 0.0, loss, "removed")
        some = exhaustive(units, levels, [K(3)], 0.5, loss, "removed")
        for node, outcome_here in some.items():
            for finer, bound in free.items():
                if all(map(int.__le__, finer, node)):
                    assert bound.loss <= outcome_here.loss + 1e-12


# ---------------------------------------------------------------------- Adult

QI = ("age", "workclass", "education", "marital_status", "race", "sex")


@pytest.fixture(scope="module")
def adult() -> tuple[Units, list[Levels]]:
    table = voile.read("dataset:adult/frontier")
    schema = table.infer(list(table.columns), "error")
    codes, _ = table.columns_of_codes(schema, drop_nulls=False)
    by_name = dict(zip(schema.names, codes, strict=True))
    units, _ = units_of_rows(
        [by_name[name] for name in QI], [schema[name].size for name in QI],
        [by_name["occupation"]], [schema["occupation"].size],
    )  # fmt: skip
    levels = read_hierarchies({}, schema, table.dataset)
    return units, [levels[name] for name in QI]


def test_adult_with_k_10_is_the_best_of_all_720_combinations(adult: Any) -> None:
    units, levels = adult
    found = full_domain(units, levels, [K(10)])
    shares = [
        [np.bincount(nodes)[nodes[codes]] - 1 for nodes in column.nodes]
        for codes, column in zip(units.codes, levels, strict=True)
    ]
    best: tuple[float, Row] = (np.inf, ())
    number = 0
    for node in itertools.product(*(range(column.height + 1) for column in levels)):
        keys = np.zeros(len(units.weights), dtype=np.int64)
        for j, level in enumerate(node):
            keys = keys * levels[j].size + levels[j].nodes[level][units.codes[j]]
        _, where = np.unique(keys, return_inverse=True)
        number += 1
        if np.bincount(where, units.weights).min() >= 10:
            lost = sum(
                float(shares[j][level] @ units.weights) / (levels[j].size - 1)
                for j, level in enumerate(node)
            )
            best = min(best, (lost / (units.rows * len(levels)), node))
    assert found.nodes == number == 720
    assert found.levels == best[1]
    assert found.loss == pytest.approx(best[0], abs=1e-12)
    assert found.checked < 72


@pytest.mark.parametrize("way", get_args(Suppressed))
def test_boxes_are_the_nodes_and_hold_their_rows(adult: Any, way: Suppressed) -> None:
    units, levels = adult
    found = full_domain(units, levels, [K(10), L(3)], suppression=0.03, suppressed=way)
    grouping, weights = found.grouping, units.weights
    low, high = grouping.low[grouping.classes].T, grouping.high[grouping.classes].T
    assert ((low <= found.units.codes) & (found.units.codes <= high)).all()
    widths = (high - low) / (np.array(units.sizes)[:, None] - 1)
    assert found.loss == pytest.approx(float((widths @ weights).sum()) / (6 * units.rows))
    rows = np.bincount(grouping.classes, weights, grouping.number)
    star = grouping.number - 1
    assert rows[star] == found.suppressed_rows <= 0.03 * units.rows
    assert (grouping.high[star] - grouping.low[star] + 1 == units.sizes).all()
    assert found.shown[star] == (way == "shown")
    histograms = grouping.histograms(units)
    for requirement in (K(10), L(3)):
        assert requirement.met(histograms)[found.shown].all()
    for j, (column, level) in enumerate(zip(levels, found.levels, strict=True)):
        nodes = column.nodes[level][column.nested]
        for first, last in np.unique(np.stack([grouping.low[:star, j], grouping.high[:star, j]]),
                                     axis=1).T:  # fmt: skip
            assert len(set(nodes[first : last + 1])) == 1
            assert first == 0 or nodes[first - 1] != nodes[first]
            assert last == len(nodes) - 1 or nodes[last + 1] != nodes[last]


# ---------------------------------------------------------------------- what is refused


def test_what_cannot_be_is_refused(adult: Any) -> None:
    units, levels = adult
    with pytest.raises(PromiseError, match="more than the whole table has"):
        full_domain(units, levels, [K(50_000)])
    with pytest.raises(PromiseError, match="no combination of levels meets k = 50000"):
        full_domain(units, levels, [K(50_000)], suppression=0.5)
    for share in (-0.1, 1.0, math.nan):
        with pytest.raises(UsageError, match="not a share of the rows"):
            full_domain(units, levels, [K(2)], suppression=share)
    wrong: Any = "ncpp"
    with pytest.raises(UsageError, match="'ncpp' is not known"):
        full_domain(units, levels, [K(2)], loss=wrong)
    with pytest.raises(UsageError, match="'ncpp' is not known"):
        full_domain(units, levels, [K(2)], suppressed=wrong)
    with pytest.raises(UsageError, match="one for each"):
        full_domain(units, levels[::-1], [K(2)])
    with pytest.raises(UsageError, match="no quasi-identifiers"):
        full_domain(replace(units, codes=units.codes[:0], sizes=()), [], [K(2)])
    tall = Levels(levels[5].nodes[:1] * 99 + levels[5].nodes[1:], (), levels[5].leaves)
    many = replace(units, codes=units.codes[[5] * 4], sizes=(2,) * 4)
    with pytest.raises(UsageError, match="100,000,000 combinations"):
        full_domain(many, [tall] * 4, [K(2)])
    nobody = replace(units, weights=np.zeros_like(units.weights))
    with pytest.raises(PromiseError, match="no rows"):
        full_domain(nobody, levels, [K(2)])
