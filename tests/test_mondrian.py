"""Mondrian beside a slow one written from its definition, and every class checked again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grouped import adult, frontier_oracle
from voile.errors import PromiseError, UsageError
from voile.evaluate.losses.populations import populations
from voile.evaluate.losses.privacy_loss import p_loss
from voile.evaluate.losses.utility_loss import u_loss
from voile.privacy.requirements import AlphaK, K, L, Presence, Requirement, Semantic, T
from voile.recoding.free_shape import free_shape, paired
from voile.recoding.grouping import bounding, shown
from voile.recoding.mondrian import Cuts, mondrian
from voile.recoding.partition import Partition
from voile.recoding.questions import Questions, Scoring, divergences, values_and_pairs
from voile.recoding.units import Units
from voile.schema.hierarchy import Levels

ORACLE: dict[str, list[float]] = frontier_oracle()["curves"]["R1 edunum"]
ORACLE_REQUIREMENT: dict[str, Callable[[float], Requirement]] = {
    "k": lambda bound: K(int(bound)), "l": L, "t": T, "d": Semantic,
}  # fmt: skip
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


def classes_of(partition: Partition) -> set[frozenset[int]]:
    classes = partition.grouping.classes
    return {
        frozenset(np.flatnonzero(classes == number).tolist())
        for number in range(partition.grouping.number)
    }


def check_partition(units: Units, partition: Partition) -> None:
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


# ---------------------------------------------------------------------- the oracle


@pytest.mark.parametrize("name", ORACLE)
def test_classes_and_losses_on_adult_are_the_oracles(name: str) -> None:
    units, _, _ = adult()
    kind, _, bound = name.partition(":")
    requirement = ORACLE_REQUIREMENT[kind](float(bound))
    grouping = mondrian(units, [requirement]).grouping
    classes, loss, *_ = ORACLE[name]
    assert grouping.number == classes
    assert p_loss(shown(units, grouping, "bucketize")) == pytest.approx(loss, abs=1e-6)
    assert requirement.met(grouping.histograms(units)).all()


def test_rows_that_are_alike_may_be_one_unit() -> None:
    units, _, _ = adult()
    stacked = np.vstack([units.codes, units.sensitive])
    unique, which, weights = np.unique(stacked, axis=1, return_inverse=True, return_counts=True)
    fewer = Units(
        np.ascontiguousarray(unique[:-1]), units.sizes, np.ascontiguousarray(unique[-1:]),
        units.sensitive_sizes, weights.astype(np.int64),
    )  # fmt: skip
    rows = mondrian(units, [K(10), T(0.2)])
    alike = mondrian(fewer, [K(10), T(0.2)])
    assert (alike.grouping.classes[which.ravel()] == rows.grouping.classes).all()
    assert (alike.grouping.low == rows.grouping.low).all()


# ---------------------------------------------------------------------- the definition


@pytest.mark.parametrize("requirements", REQUIREMENTS, ids=lambda of: of[-1].spelling)
def test_classes_are_those_of_the_definition(requirements: list[Requirement]) -> None:
    tried = 0
    for seed in range(40):
        units = random_units(seed, weighted=bool(seed % 2))
        if not feasible(units, requirements):
            continue
        tried += 1
        partition = mondrian(units, requirements)
        assert classes_of(partition) == reference(units, requirements)
        check_partition(units, partition)
    assert tried >= 5


def test_units_of_a_public_table_travel_with_the_regions() -> None:
    tried = cut = 0
    for seed in range(60):
        units = random_units(seed, weighted=True, public=True)
        requirements = [K(3), Presence(0.2, 0.8)]
        if not feasible(units, requirements):
            continue
        tried += 1
        partition = mondrian(units, requirements)
        assert classes_of(partition) == reference(units, requirements)
        check_partition(units, partition)
        cut += partition.grouping.number > 1
    assert tried > 20 and cut > 5


def test_units_without_rows_need_no_public_table() -> None:
    for seed in range(20):
        units = random_units(seed, weighted=True, public=True)
        without = Units(
            units.codes, units.sizes, units.sensitive, units.sensitive_sizes, units.weights
        )
        assert classes_of(mondrian(without, [K(3)])) == reference(without, [K(3)])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 2)), min_size=2),
    k=st.integers(1, 4),
    way=st.sampled_from(WAYS),
)
def test_any_table_is_partitioned(rows: list[tuple[int, int, int]], k: int, way: Cuts) -> None:
    table = np.array(rows, dtype=np.int32).T
    units = Units(
        np.ascontiguousarray(table[:2]), (6, 3), np.ascontiguousarray(table[2:]), (3,),
        np.ones(len(rows), dtype=np.int64),
    )  # fmt: skip
    if len(rows) < k:
        with pytest.raises(PromiseError, match=f"k = {k}"):
            mondrian(units, [K(k)], cuts=way)
        return
    partition = mondrian(units, [K(k)], cuts=way)
    check_partition(units, partition)
    assert np.bincount(partition.grouping.classes).min() >= k
    if way == "median":
        assert classes_of(partition) == reference(units, [K(k)])


@pytest.mark.parametrize("factor", [8_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_wide_sparse_columns_are_cut_at_the_same_places(factor: int) -> None:
    """Positions that are far apart are sorted, not counted: the cuts must not change.

    Beyond 2¹⁶ positions they are also held in wider numbers.
    """
    for seed in range(20):
        units = random_units(seed, weighted=True)
        apart = Units(
            units.codes * factor, tuple((size - 1) * factor + 1 for size in units.sizes),
            units.sensitive, units.sensitive_sizes, units.weights,
        )  # fmt: skip
        for way in WAYS:
            near = mondrian(units, [K(4)], cuts=way).grouping
            far = mondrian(apart, [K(4)], cuts=way).grouping
            assert (near.classes == far.classes).all()
            assert (near.low * factor == far.low).all()


# ---------------------------------------------------------------------- other cuts


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
        tree = mondrian(units, requirements, cuts=way).tree
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


# ---------------------------------------------------------------------- what cannot be


@pytest.mark.parametrize(
    ("requirement", "has"),
    [(K(100), "60"), (L(3.0), "2"), (L(4, "distinct"), "3"), (T(0.0), None)],
)
def test_what_the_whole_table_does_not_have_is_refused(
    requirement: Requirement, has: str | None
) -> None:
    units = Units(
        np.zeros((1, 60), dtype=np.int32), (3,),
        np.array([[0] * 30 + [1] * 20 + [2] * 10], dtype=np.int32), (3,),
        np.ones(60, dtype=np.int64),
    )  # fmt: skip
    if has is None:
        assert mondrian(units, [requirement]).grouping.number == 1  # the whole is as the whole
        return
    with pytest.raises(PromiseError) as refused:
        mondrian(units, [requirement])
    assert requirement.spelling in refused.value.message and has in refused.value.message


def test_wrong_calls_are_refused() -> None:
    units = random_units(1, weighted=True)
    with pytest.raises(UsageError, match="several or none"):
        mondrian(units, [K(2)], relaxed=True)
    with pytest.raises(UsageError, match="several or none"):
        free_shape(units, [K(2)])
    levels = [halving(size) for size in units.sizes]
    with pytest.raises(UsageError, match="hierarchy cuts"):
        mondrian(units, [K(2)], cuts="information", levels=levels)
    rows = random_units(0)
    with pytest.raises(UsageError, match="halved"):
        mondrian(rows, [K(2)], relaxed=True, levels=[halving(size) for size in rows.sizes])
    nobody = Units(
        rows.codes[:, :0], rows.sizes, rows.sensitive[:, :0], rows.sensitive_sizes, rows.weights[:0]
    )
    with pytest.raises(PromiseError, match="no rows"):
        mondrian(nobody, [K(2)])


# ---------------------------------------------------------------------- free shapes


def adult_questions() -> tuple[Units, Questions, Callable[[npt.NDArray[np.int32]], float]]:
    """Adult's 1,780 populations, and U_loss of a bucketization as the losses room has it."""
    units, levels, orders = adult()
    codes = np.stack([order[of] for order, of in zip(orders, units.codes, strict=True)])
    sensitive = np.eye(units.sensitive_sizes[0], dtype=np.int64)[units.sensitive[0]]
    found = populations(codes, levels, int(np.ceil(0.05 * units.rows)), sensitive)

    def loss(classes: npt.NDArray[np.int32]) -> float:
        grouping = bounding(units, classes, int(classes.max()) + 1)
        return u_loss(shown(units, grouping, "bucketize"), found, orders)

    return units, Questions(found.atoms_of(codes), found.starts, found.members), loss


def test_free_shapes_lie_below_every_mondrian() -> None:
    """The errata's numbers at t = 0.05: .0230 at medians, .0182 by information, .0112 free."""
    units, questions, loss = adult_questions()
    losses = {way: loss(mondrian(units, [T(0.05)], cuts=way).grouping.classes) for way in WAYS}
    assert losses["median"] == pytest.approx(0.0230, abs=5e-5)
    assert losses["information"] == pytest.approx(0.0182, abs=5e-5)
    grouping = free_shape(units, [T(0.05)], questions, rounds=60)
    assert loss(grouping.classes) < 0.0112 < min(losses.values())
    assert T(0.05).met(grouping.histograms(units)).all()


def test_the_search_minimises_what_the_losses_room_measures() -> None:
    units, questions, loss = adult_questions()
    classes = mondrian(units, [K(1000)]).grouping.classes
    scoring = Scoring(questions, units.sensitive[0].astype(np.int64), int(classes.max()) + 1)
    assert scoring.buckets(classes.astype(np.int64)).loss == pytest.approx(loss(classes), abs=1e-12)


def test_slopes_are_derivatives() -> None:
    """To first order the loss changes by slope·(p_C − p_B) when a row is told p_C, not p_B."""
    units = random_units(2)
    scoring = Scoring(values_and_pairs(units), units.sensitive[0].astype(np.int64), 3)
    found = scoring.buckets(np.arange(len(units.weights)) % 3)
    step, slope = 1e-6, scoring.slope(found)
    questions = scoring.questions
    for atom in range(int(questions.atom.max()) + 1):
        told = np.zeros((slope.shape[0], slope.shape[1]))
        told[atom] = step * (found.shares[1] - found.shares[0])
        moved = found.estimated + questions.incidence @ told / scoring.sizes
        change = divergences(scoring.true, moved).mean() - found.loss
        assert change == pytest.approx(float((slope * told).sum()), rel=1e-3, abs=1e-13)


def test_free_shapes_meet_requirements_and_never_lose() -> None:
    for requirements in REQUIREMENTS:
        for seed in range(4):
            units = random_units(seed)
            if not feasible(units, requirements):
                continue
            start = mondrian(units, requirements, cuts="certainty").grouping
            found = free_shape(units, requirements, rounds=20)
            classes = [np.flatnonzero(found.classes == c).tolist() for c in range(found.number)]
            assert all(meets_all(units, of, requirements) for of in classes)
            again = free_shape(units, requirements, rounds=20)
            assert (again.classes == found.classes).all(), "nothing is random"
            scoring = Scoring(
                values_and_pairs(units), units.sensitive[0].astype(np.int64), start.number
            )
            losses = [scoring.buckets(g.classes.astype(np.int64)).loss for g in (found, start)]
            assert losses[0] <= losses[1]


@pytest.mark.parametrize("number", [2, 3, 6, 9])
def test_in_a_tournament_all_buckets_meet(number: int) -> None:
    met = set()
    for turn in range(number + number % 2 - 1):
        partner = paired(number, turn)
        for bucket, other in enumerate(partner.tolist()):
            assert other == -1 or partner[other] == bucket != other
            met.add((bucket, other))
    assert {(a, b) for a in range(number) for b in range(number) if a != b} <= met
