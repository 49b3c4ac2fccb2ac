"""Boxes taken out of classes, wide classes cut anew, rows moved: beside plain Python."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.random_units import (
    REQUIREMENTS,
    check_partition,
    feasible,
    meets_all,
    random_units,
)
from tests.support.soak import rounds
from voile.errors import UsageError
from voile.privacy.requirements import K, L, Presence, Requirement, T
from voile.privacy.requirements.rules import rules_of
from voile.recoding.grouping import Grouping, bounding
from voile.recoding.mondrian import breaks_of, cut_further, least_rows, mondrian
from voile.recoding.regrouping import CellLists, cells_of, hulls_of, moved_cells, nearest_class
from voile.recoding.units import Units

TINY = 1e-9
ON_VALUES = [of for of in REQUIREMENTS if any(r.attribute is not None for r in of)]
Part = frozenset[int]


def members(grouping: Grouping) -> list[Part]:
    """The units of each class, in the order of the classes."""
    return [
        frozenset(np.flatnonzero(grouping.classes == c).tolist()) for c in range(grouping.number)
    ]


def width(units: Units, part: Part) -> float:
    """How wide the box of some units is, from the definition."""
    codes = units.codes[:, sorted(part)]
    spans = (codes.max(axis=1) - codes.min(axis=1)).tolist()
    ends = [max(size - 1, 1) for size in units.sizes]
    return float(sum(span / end for span, end in zip(spans, ends, strict=True)))


def loss(units: Units, parts: list[Part]) -> float:
    """Σ rows · width."""
    return sum(rows(units, part) * width(units, part) for part in parts)


def rows(units: Units, part: Part) -> int:
    return int(units.weights[sorted(part)].sum())


def sides(units: Units, part: Part) -> list[tuple[Part, Part]]:
    """Both sides of every cut, columns as given, positions from below."""
    found = []
    for codes in units.codes:
        for position in sorted({int(codes[i]) for i in part})[:-1]:
            below = frozenset(i for i in part if codes[i] <= position)
            found.append((below, part - below))
    return found


def divided(units: Units, node: Part, requirements: list[Requirement]) -> tuple[Part, Part] | None:
    """The allowed cut that leaves least, or the box that is taken out; None if there is neither."""

    def allowed(part: Part) -> bool:
        enough = rows(units, part) >= least_rows(requirements)
        return enough and meets_all(units, list(part), requirements)

    if rows(units, node) < 2 * least_rows(requirements):
        return None
    best, cut = np.inf, None
    for below, above in sides(units, node):
        left = loss(units, [below, above])
        if left < best - TINY and allowed(below) and allowed(above):
            best, cut = left, (below, above)
    return cut or taken_out(units, node, requirements)


def taken_out(
    units: Units, node: Part, requirements: list[Requirement]
) -> tuple[Part, Part] | None:
    """A box and what is left, found side by side."""

    def enough(side: Part) -> bool:
        return min(rows(units, side), rows(units, node - side)) >= least_rows(requirements)

    wide, inside, best, box = width(units, node), node, 0.0, None
    for _ in range(16):
        onward, worth_onward, good, worth_good = None, 0.0, None, best
        failing, worth_failing = None, 0.0
        for side in [side for both in sides(units, inside) for side in both]:
            worth = rows(units, side) * (wide - width(units, side))
            if max(worth - worth_onward, worth - worth_good) <= TINY or not enough(side):
                continue
            if not meets_all(units, list(side), requirements):
                if worth > worth_failing + TINY:
                    failing, worth_failing = side, worth
                continue
            if worth > worth_onward + TINY:
                onward, worth_onward = side, worth
            if worth > worth_good + TINY and meets_all(units, list(node - side), requirements):
                good, worth_good = side, worth
        if good is not None:
            best, box = worth_good, good
        inside = good or onward or failing or frozenset()
        if rows(units, inside) * wide <= best + TINY:
            break
    return None if box is None else (box, node - box)


def reference(units: Units, requirements: list[Requirement]) -> set[Part]:
    """Cuts and boxes in plain Python on sets of units."""
    done, waiting = set[Part](), [frozenset(range(len(units.weights)))]
    while waiting:
        node = waiting.pop()
        parts = divided(units, node, requirements)
        if parts is None:
            done.add(node)
        else:
            waiting += parts
    return done


@pytest.mark.parametrize("requirements", ON_VALUES, ids=lambda of: of[-1].spelling)
def test_cuts_and_boxes_are_those_of_the_definition(requirements: list[Requirement]) -> None:
    for seed in range(rounds(4, 60)):
        units = random_units(seed, weighted=bool(seed % 2))
        if not feasible(units, requirements):
            continue
        found = cut_further(
            units, requirements, rules_of(requirements, units.overall),
            breaks_of(units.sizes, None), cuts="boxes",
        )  # fmt: skip
        assert set(members(found.grouping)) == reference(units, requirements)


def test_boxes_are_taken_out_where_no_cut_is_allowed() -> None:
    """Two columns of two: either side of either cut is unbalanced; one corner is not."""
    units = Units(
        np.array([[0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1]], dtype=np.int32), (2, 2),
        np.array([[0, 1, 0, 0, 1, 1]], dtype=np.int32), (2,), np.ones(6, dtype=np.int64),
    )  # fmt: skip
    requirements: list[Requirement] = [L(2)]
    assert mondrian(units, requirements, cuts="certainty").grouping.number == 1
    found = mondrian(units, requirements, cuts="boxes").grouping
    assert members(found) == [frozenset({0, 1}), frozenset({2, 3, 4, 5})]
    assert found.high.tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize("requirements", REQUIREMENTS, ids=lambda of: of[-1].spelling)
def test_every_class_meets_every_requirement_and_loses_no_more(
    requirements: list[Requirement],
) -> None:
    for seed in range(12):
        units = random_units(seed, weighted=bool(seed % 2))
        if not feasible(units, requirements):
            continue
        found = mondrian(units, requirements, cuts="boxes").grouping
        parts = members(found)
        assert all(meets_all(units, list(part), requirements) for part in parts)
        assert len({(*low, *high) for low, high in zip(found.low, found.high, strict=True)}) == len(
            parts
        )
        bounds = bounding(units, found.classes, found.number)
        assert (bounds.low == found.low).all()
        assert (bounds.high == found.high).all()
        single = members(mondrian(units, requirements, cuts="certainty").grouping)
        assert loss(units, parts) <= loss(units, single) + TINY
        of_place: dict[tuple[int, ...], int] = {}
        for place, number in zip(units.codes.T.tolist(), found.classes.tolist(), strict=True):
            assert of_place.setdefault(tuple(place), number) == number, "equal rows are together"


def test_the_order_of_rows_does_not_matter() -> None:
    draw = np.random.default_rng(1)
    for seed in range(20):
        units = random_units(seed, weighted=bool(seed % 2))
        order = draw.permutation(len(units.weights))
        other = replace(
            units,
            codes=np.ascontiguousarray(units.codes[:, order]),
            sensitive=np.ascontiguousarray(units.sensitive[:, order]),
            weights=units.weights[order],
        )
        for requirements in ([K(3), L(1.3)], [K(2), T(0.2)]):
            if feasible(units, requirements):
                one = mondrian(units, requirements, cuts="boxes").grouping
                two = mondrian(other, requirements, cuts="boxes").grouping
                assert (one.classes[order] == two.classes).all()
                assert (one.low == two.low).all()


def test_a_cell_moves_where_least_is_lost() -> None:
    """Beside trying every class, boxes of any place and size."""
    moved = 0
    for seed in range(rounds(40, 1000)):
        units = random_units(seed)
        requirements: list[Requirement] = [K(2), L(1.2)]
        grouping = bounding(units, *by_chance(seed, len(units.weights), 1 + seed % 9))
        has = grouping.histograms(units)
        wide = np.array([width(units, part) for part in members(grouping)])
        cells = cells_of(units)
        lists = CellLists(
            cells.order, cells.starts, units.codes, units.sensitive, units.weights,
            1 / np.maximum(np.array(units.sizes, dtype=np.float64) - 1, 1),
        )  # fmt: skip
        unit = int(cells.order[0])
        number, here = int(units.weights[unit]), int(grouping.classes[unit])
        own = np.bincount(units.sensitive[0, [unit]], minlength=units.sensitive_sizes[0])
        found = nearest_class(
            lists, units.codes[:, unit].copy(), number, float(wide[here]), here,
            hulls_of(grouping.low, grouping.high, has.rows, wide), has.counts[0], has.rows,
            rules_of(requirements, units.overall), own, own.copy(), np.empty(64, np.int64),
            np.empty(64),
        )  # fmt: skip
        changes = {}
        for there, part in enumerate(members(grouping)):
            joined = part | {unit}
            if there != here and meets_all(units, list(joined), requirements):
                changes[there] = loss(units, [joined]) - loss(units, [part]) - number * wide[here]
        least = min(changes.values(), default=0.0)
        if least < -TINY:
            moved += 1
            assert changes[found] == pytest.approx(least)
        elif least > TINY:
            assert found == -1
    assert moved > rounds(5, 100)


def by_chance(seed: int, number: int, classes: int) -> tuple[np.ndarray, int]:
    """Units in classes at random, none of them empty."""
    drawn = np.random.default_rng(seed).integers(0, classes, number)
    used, place = np.unique(drawn, return_inverse=True)
    return place.astype(np.int32), len(used)


def test_moving_cells_keeps_requirements_and_loses_less() -> None:
    moved = 0
    for seed in range(40):
        units = random_units(seed, weighted=bool(seed % 2))
        requirements: list[Requirement] = [K(3), L(1.2), T(0.5)]
        if not feasible(units, requirements):
            continue
        start = mondrian(units, requirements).grouping
        number, found = moved_cells(
            units, cells_of(units), start, rules_of(requirements, units.overall)
        )
        moved += number
        assert all(meets_all(units, list(part), requirements) for part in members(found))
        before, after = loss(units, members(start)), loss(units, members(found))
        assert after < before - TINY if number else after == before
    assert moved > 5


def test_public_rows_are_counted_on_both_sides_of_the_narrowest_cut() -> None:
    cut = 0
    for seed in range(40):
        units = random_units(seed, weighted=True, public=True)
        requirements: list[Requirement] = [K(2), Presence(0.2, 0.9)]
        if not feasible(units, requirements):
            continue
        partition = mondrian(units, requirements, cuts="certainty")
        check_partition(units, partition)
        cut += partition.grouping.number > 1
        assert all(
            meets_all(units, list(part), requirements) for part in members(partition.grouping)
        )
    assert cut > 5


def test_boxes_have_no_regions() -> None:
    units = random_units(3)
    found = mondrian(units, [K(3), L(1.2)], cuts="boxes")
    with pytest.raises(UsageError, match="boxes may overlap") as refused:
        found.locate(units.codes)
    assert "certainty" in (refused.value.hint or "")
    same = mondrian(units, [K(3)], cuts="boxes")  # nothing is asked of values: certainty's tree
    assert (same.locate(units.codes) == same.grouping.classes).all()
    public = random_units(3, weighted=True, public=True)
    with pytest.raises(UsageError, match="whole regions"):
        mondrian(public, [K(1)], cuts="boxes")
