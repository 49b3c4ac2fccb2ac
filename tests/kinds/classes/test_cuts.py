"""Cuts other than medians: every class checked again, every best cut beside all others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.support.random_units import (
    REQUIREMENTS,
    WAYS,
    check_partition,
    classes_of,
    feasible,
    halving,
    meets_all,
    random_units,
)
from voile.privacy.requirements import K, Requirement, T
from voile.recoding.mondrian import Cuts, mondrian
from voile.recoding.units import Units
from voile.schema.hierarchy import Levels


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("requirements", REQUIREMENTS, ids=lambda of: of[-1].spelling)
def test_every_class_meets_every_requirement(way: Cuts, requirements: list[Requirement]) -> None:
    for seed in range(12):
        units = random_units(seed, weighted=bool(seed % 2))
        if not feasible(units, requirements):
            continue
        partition = mondrian(units, requirements, cuts=way)
        check_partition(units, partition)
        assert all(meets_all(units, list(of), requirements) for of in classes_of(partition))


def gain(units: Units, node: list[int], part: list[int]) -> float:
    """By how much Σ n·H(S | class) falls if a part is cut off, from the definition."""

    def entropy(of: list[int]) -> float:
        counts = Counter[int]()
        for i in of:
            counts[int(units.sensitive[0, i])] += int(units.weights[i])
        rows = sum(counts.values())
        return -sum(count * math.log(count / rows) for count in counts.values())

    rest = [i for i in node if i not in part]
    return entropy(node) - entropy(part) - entropy(rest)


def narrowing(units: Units, node: list[int], part: list[int]) -> float:
    """By how much Σ n·(width of the box) falls."""

    def width(of: list[int]) -> float:
        codes = units.codes[:, of]
        spans = codes.max(axis=1) - codes.min(axis=1)
        shares = [span / (size - 1) for span, size in zip(spans, units.sizes, strict=True) if span]
        return float(units.weights[of].sum() * sum(shares))

    rest = [i for i in node if i not in part]
    return width(node) - width(part) - width(rest)


@pytest.mark.parametrize(("way", "worth"), [("information", gain), ("certainty", narrowing)])
def test_the_first_cut_is_the_best_allowed_one(
    way: Cuts, worth: Callable[[Units, list[int], list[int]], float]
) -> None:
    cut = 0
    for seed in range(30):
        units = random_units(seed, weighted=bool(seed % 2))
        requirements: list[Requirement] = [K(8), T(0.1)]
        if not feasible(units, requirements):
            continue
        everyone = list(range(len(units.weights)))
        allowed = []
        for codes in units.codes:
            for position in np.unique(codes)[:-1]:
                part = np.flatnonzero(codes <= position).tolist()
                rest = [i for i in everyone if i not in part]
                if meets_all(units, part, requirements) and meets_all(units, rest, requirements):
                    allowed.append(worth(units, everyone, part))
        tree = mondrian(units, requirements, cuts=way).known_tree
        if not allowed:
            assert tree.column[0] < 0
            continue
        cut += 1
        part = np.flatnonzero(units.codes[tree.column[0]] <= tree.cut[0]).tolist()
        assert worth(units, everyone, part) == pytest.approx(max(allowed), abs=1e-6)
    assert cut > 10


def test_relaxed_halves_are_even() -> None:
    for seed in range(30):
        units = random_units(seed)
        partition = mondrian(units, [K(3)], relaxed=True)
        sizes = np.bincount(partition.grouping.classes)
        assert sizes.min() >= 3
        wide = (partition.grouping.high > partition.grouping.low).any(axis=1)
        assert (sizes[wide] <= 5).all()  # 6 rows that differ are 3 and 3
        assert set(partition.locate(units.codes).tolist()) <= set(range(len(sizes)))


def test_relaxed_cuts_meet_requirements() -> None:
    for requirements in REQUIREMENTS:
        for seed in range(6):
            units = random_units(seed)
            if feasible(units, requirements):
                partition = mondrian(units, requirements, relaxed=True)
                assert all(meets_all(units, list(of), requirements) for of in classes_of(partition))


def hierarchical(
    units: Units, levels: Sequence[Levels], requirements: Sequence[Requirement]
) -> set[frozenset[int]]:
    """Cuts into the children of the lowest node that has all rows, from the definition."""

    def split(node: list[int]) -> list[list[int]]:
        paths = []
        for codes, of in zip(units.codes, levels, strict=True):
            values = of.nested[codes[node]]
            level = next(h for h in range(of.height + 1) if len(set(of.nodes[h][values])) == 1)
            spread = codes[node].max() - codes[node].min()
            paths.append((spread / max(1, of.size - 1), level, values))
        for j in sorted(range(len(paths)), key=lambda j: (-paths[j][0], j)):
            _, level, values = paths[j]
            if level == 0:
                continue
            child = levels[j].nodes[level - 1][values]
            parts = [[i for i, c in zip(node, child, strict=True) if c == n] for n in set(child)]
            if all(meets_all(units, part, requirements) for part in parts):
                return [leaf for part in parts for leaf in split(part)]
        return [node]

    return {frozenset(part) for part in split(list(range(len(units.weights))))}


@pytest.mark.parametrize("requirements", REQUIREMENTS[:8], ids=lambda of: of[-1].spelling)
def test_hierarchy_cuts_are_those_of_the_definition(requirements: list[Requirement]) -> None:
    for seed in range(25):
        units = random_units(seed, weighted=bool(seed % 2))
        if not feasible(units, requirements):
            continue
        levels = [halving(size) for size in units.sizes]
        partition = mondrian(units, requirements, levels=levels)
        assert classes_of(partition) == hierarchical(units, levels, requirements)
        grouping = partition.grouping
        assert (partition.locate(units.codes) == grouping.classes).all()
        for j, of in enumerate(levels):
            for low, high in zip(grouping.low[:, j], grouping.high[:, j], strict=True):
                values = set(of.nested[low : high + 1].tolist())
                assert any(
                    values == set(np.flatnonzero(nodes == node).tolist())
                    for nodes in of.nodes
                    for node in np.unique(nodes)
                ), "a box is a node"
