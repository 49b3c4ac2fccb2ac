"""Small random tables for grouping, and a Mondrian that is slow and plain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from voile.privacy.requirements import AlphaK, K, L, Requirement, Semantic, T
from voile.recoding.grouping import bounding
from voile.recoding.mondrian import Cuts, MondrianPartition
from voile.recoding.units import Units
from voile.schema.hierarchy import Levels

REQUIREMENTS: list[list[Requirement]] = [
    [K(3)], [AlphaK(0.6, 3)], [L(2)], [L(2, "distinct")], [L(1.7, "entropy")],
    [L(2, "recursive", c=2.0)], [T(0.15)], [T(0.3, "emd-equal")], [T(0.3, "emd-ordered")],
    [T(0.3, "variational")], [Semantic(1.0)], [Semantic(1.0, "ignored")],
    [K(4), L(1.5), T(0.25)], [K(3), Semantic(1.5, "ignored")],
]  # fmt: skip
WAYS: list[Cuts] = ["median", "information", "certainty"]


def random_units(seed: int, *, weighted: bool = False, public: bool = False) -> Units:
    """Up to 60 units with few values, so that ties and empty positions are common."""
    draw = np.random.default_rng(seed)
    number, columns = int(draw.integers(20, 60)), int(draw.integers(1, 4))
    sizes = tuple(int(size) for size in draw.integers(1, 9, columns))
    values = int(draw.integers(2, 5))
    weights = draw.integers(0 if public else 1, 4, number) if weighted else np.ones(number, int)
    return Units(
        np.stack([draw.integers(0, size, number) for size in sizes]).astype(np.int32),
        sizes,
        draw.integers(0, values, (1, number)).astype(np.int32),
        (values,),
        weights.astype(np.int64),
        weights + draw.integers(0, 3, number) if public else None,
    )


def meets_all(units: Units, unit: Sequence[int], requirements: Sequence[Requirement]) -> bool:
    """Whether these units as one class meet the requirements, by the vectorised checks."""
    part = np.full(len(units.weights), 1, dtype=np.int32)
    part[list(unit)] = 0
    histograms = units.histograms(part, 2)
    return all(requirement.met(histograms)[0] for requirement in requirements)


def reference(units: Units, requirements: Sequence[Requirement]) -> set[frozenset[int]]:
    """Strict Mondrian from its definition, in plain Python on sets of units."""
    weights, codes = units.weights.tolist(), units.codes.tolist()

    def split(node: list[int]) -> list[list[int]]:
        counted = [i for i in node if weights[i]]
        widths = [
            (max(column[i] for i in counted) - min(column[i] for i in counted)) / max(1, size - 1)
            for column, size in zip(codes, units.sizes, strict=True)
        ]
        for j in sorted(range(len(widths)), key=lambda j: (-widths[j], j)):
            rows = Counter[int]()
            for i in counted:
                rows[codes[j][i]] += weights[i]
            present = sorted(rows)
            if len(present) < 2:
                continue
            below = [sum(rows[v] for v in present if v <= c) for c in present]
            half = sum(rows.values()) / 2
            place = next(p for p in range(len(present)) if below[p] >= half)
            cut = present[min(place, len(present) - 2)]
            parts = [i for i in node if codes[j][i] <= cut], [i for i in node if codes[j][i] > cut]
            if all(meets_all(units, part, requirements) for part in parts):
                return [*split(parts[0]), *split(parts[1])]
        return [node]

    return {frozenset(part) for part in split(list(range(len(weights))))}


def classes_of(partition: MondrianPartition) -> set[frozenset[int]]:
    classes = partition.grouping.classes
    return {
        frozenset(np.flatnonzero(classes == number).tolist())
        for number in range(partition.grouping.number)
    }


def check_partition(units: Units, partition: MondrianPartition) -> None:
    """Classes have rows, boxes bound them, regions are disjoint, cover, and are where they lie."""
    grouping, regions = partition.grouping, partition.regions
    classes = grouping.classes
    assert set(classes.tolist()) == set(range(grouping.number))
    assert (grouping.histograms(units).rows > 0).all()
    bounds = bounding(units, classes, grouping.number)
    assert (grouping.low == bounds.low).all() and (grouping.high == bounds.high).all()
    assert (partition.locate(units.codes) == classes).all()
    domain = np.stack([axis.ravel() for axis in np.indices(units.sizes)]).astype(np.int32)
    inside = (regions.low[:, :, None] <= domain) & (domain <= regions.high[:, :, None])
    assert (inside.all(axis=1).sum(axis=0) == 1).all()
    assert (inside.all(axis=1).argmax(axis=0) == partition.locate(domain)).all()


def feasible(units: Units, requirements: Sequence[Requirement]) -> bool:
    return meets_all(units, range(len(units.weights)), requirements)


def halving(size: int) -> Levels:
    """Values two by two, four by four, and so on; in an order that is not that of the codes."""
    place = np.arange(size)[::-1]
    nodes, labels, width = [], [], 1
    while True:
        nodes.append((place // width).astype(np.int32))
        labels.append(tuple(str(node) for node in range(int(nodes[-1].max()) + 1)))
        if len(labels[-1]) == 1:
            break
        width *= 2
    nodes[0] = np.arange(size, dtype=np.int32)
    return Levels(tuple(nodes), tuple(labels), np.arange(size, dtype=np.int32))
