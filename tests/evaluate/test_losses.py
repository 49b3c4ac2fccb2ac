"""P_loss, U_loss and the other measures: by definition on tiny tables, by the oracle on Adult."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.kinds.classes.test_populations import TREES, of_adult, tree
from tests.support.grouped import adult, frontier_oracle, rule_of, slow_mondrian
from voile.evaluate.losses import (
    class_losses,
    jensen_shannon,
    kullback_leibler,
    p_loss,
    populations,
    told_by,
    u_loss,
)
from voile.evaluate.losses.measured import (
    average_class_size,
    class_majority_accuracy,
    discernibility,
    gen_iloss,
    joint_divergence,
    majority_accuracy,
    naive_bayes_accuracy,
    non_uniform_entropy,
    normalised_class_size,
    precision,
)
from voile.evaluate.losses.queries import (
    answers,
    draw_queries,
    estimated,
    population_losses,
    relative_error,
    workload,
)
from voile.kinds.blocks import Boxes, Inversion, Points, Products
from voile.noise import Key
from voile.privacy.requirements import K, L, Requirement, Semantic, T
from voile.recoding import Recode, Shown, Units, shown
from voile.recoding.grouping import Grouping, bounding
from voile.recoding.mondrian import mondrian

CURVES = frontier_oracle()["curves"]["R1 edunum"]
RECODES: tuple[Recode, ...] = ("generalize", "bucketize")


# ---------------------------------------------------------------------- the oracle's numbers


def requirement(name: str) -> Requirement:
    kind, _, text = name.partition(":")
    if kind == "k":
        return K(int(text))
    if kind == "l":
        return L(float(text))
    return T(float(text)) if kind == "t" else Semantic(float(text))


@pytest.mark.parametrize("name", CURVES)
def test_every_point_of_the_papers_curves(name: str) -> None:
    units, _, orders = adult()
    grouping = mondrian(units, [requirement(name)]).grouping
    found = [shown(units, grouping, recode) for recode in RECODES]
    losses = [u_loss(one, of_adult_once(), orders) for one in found]
    classes, private, generalized, bucketized = CURVES[name]
    assert grouping.number == classes
    assert [p_loss(one) for one in found] == pytest.approx([private] * 2, abs=1e-6)
    assert losses == pytest.approx([generalized, bucketized], abs=1e-6)
    assert losses[1] < losses[0]  # the paper's claim: bucketization tells more


@pytest.mark.parametrize("name", ["k:1000", "l:5", "t:0.075", "d:1.5"])
def test_a_slow_mondrian_gives_the_same_losses(name: str) -> None:
    units, _, orders = adult()
    grouping = slow_mondrian(units, rule_of(name, units))
    losses = [u_loss(shown(units, grouping, r), of_adult_once(), orders) for r in RECODES]
    assert losses == pytest.approx(CURVES[name][2:], abs=1e-6)


def test_closeness_loses_least_at_equal_privacy() -> None:
    """The paper's first claim: no point of another requirement is below the curve of t."""
    for column in (2, 3):
        points = sorted((v[1], v[column]) for n, v in CURVES.items() if n.startswith("t:"))
        at, loss = np.array(points).T
        for name, values in CURVES.items():
            if not name.startswith("t:") and at[0] <= values[1] <= at[-1]:
                assert values[column] > np.interp(values[1], at, loss), name


CACHE: dict[str, Any] = {}


def of_adult_once() -> Any:
    if "populations" not in CACHE:
        CACHE["populations"] = of_adult(0.05)
    return CACHE["populations"]


def test_the_toy_case_of_the_oracle() -> None:
    toy = frontier_oracle()["toy"]
    ages, letters, values = zip(*toy["records"], strict=True)
    codes = np.array([[a - 20 for a in ages], [int(c == "b") for c in letters]], dtype=np.int32)
    levels = (
        tree([[str(a), "30 or more" if a >= 30 else "below", "*"] for a in range(20, 46)]),
        tree([["a", "*"], ["b", "*"]]),
    )
    units = Units(codes, (26, 2), np.array([values], dtype=np.int32), (3,),
                  np.ones(8, dtype=np.int64))  # fmt: skip
    grouping = bounding(units, np.array(toy["classes"], dtype=np.int32), 2)
    found = populations(codes, levels, 1, np.eye(3, dtype=np.int64)[list(values)])
    words = [found.words(y, ["age", "cat"]) for y in range(found.number)]
    wanted = ["cat = a", "cat = b", "age = 30 or more", "age = 30 or more and cat = a"]
    which = [words.index(one) for one in wanted]
    for recode, key in zip(RECODES, ("general", "bucket"), strict=True):
        release = shown(units, grouping, recode)
        assert p_loss(release) == pytest.approx(toy["P_loss"], abs=1e-12)
        counts = estimated(told_by(release), found)[which]
        expected = [one[key] for one in toy["populations"]]
        np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), expected,
                                   atol=1e-12)  # fmt: skip
        losses = population_losses(found, estimated(told_by(release), found))[which]
        assert losses.mean() == pytest.approx(toy[f"U_{key}"], abs=1e-12)


# ---------------------------------------------------------------------- tables by definition


def some_units(seed: int, rows: int = 30) -> Units:
    coins = np.random.default_rng(seed)
    codes = np.stack([coins.integers(0, of.size, rows) for of in TREES]).astype(np.int32)
    sensitive = coins.integers(0, 3, (1, rows)).astype(np.int32)
    return Units(codes, tuple(of.size for of in TREES), sensitive, (3,),
                 np.ones(rows, dtype=np.int64))  # fmt: skip


def some_release(seed: int, recode: Recode) -> tuple[Units, Grouping, Shown, list[Any]]:
    """Random classes of a random table in random orders of the columns."""
    units = some_units(seed)
    coins = np.random.default_rng(seed + 1000)
    orders = [coins.permutation(size).astype(np.int32) for size in units.sizes]
    classes = np.concatenate([np.arange(4), coins.integers(0, 4, 26)]).astype(np.int32)
    grouping = bounding(units, classes, 4)
    return units, grouping, shown(units, grouping, recode), orders


def share_of_row(
    units: Units, grouping: Grouping, row: int, cell: tuple[int, ...], recode: Recode
) -> Fraction:
    """The chance that the release leaves for a row to have these positions."""
    if recode == "bucketize":
        return Fraction(int(all(units.codes[j, row] == v for j, v in enumerate(cell))))
    of, found = grouping.classes[row], Fraction(1)
    for j, v in enumerate(cell):
        low, high = int(grouping.low[of, j]), int(grouping.high[of, j])
        found *= Fraction(int(low <= v <= high), high - low + 1)
    return found


def implied(
    units: Units, grouping: Grouping, recode: Recode
) -> dict[tuple[tuple[int, ...], int], Fraction]:
    """(positions, sensitive value): the rows that the release implies, row by row."""
    counts = grouping.histograms(units).counts[0]
    found: dict[tuple[tuple[int, ...], int], Fraction] = {}
    for cell in product(*map(range, units.sizes)):
        for row in range(units.rows):
            share = share_of_row(units, grouping, row, cell, recode)
            for s in range(3):
                of_class = counts[grouping.classes[row]]
                part = share * Fraction(int(of_class[s]), int(of_class.sum()))
                found[cell, s] = found.get((cell, s), Fraction(0)) + part
    return found


@pytest.mark.parametrize("recode", RECODES)
@pytest.mark.parametrize("seed", [1, 2])
def test_estimates_and_losses_are_those_of_the_implied_distribution(
    seed: int, recode: Recode
) -> None:
    units, grouping, release, orders = some_release(seed, recode)
    codes = np.stack([order[of] for order, of in zip(orders, units.codes, strict=True)])
    values = np.eye(3, dtype=np.int64)[units.sensitive[0]]
    large = populations(codes, TREES, 3, values)
    told = told_by(release, orders)
    counts = estimated(told, large)
    whole = implied(units, grouping, recode)
    for y in range(large.number):
        expected = [Fraction(0)] * 3
        for (cell, s), rows in whole.items():
            inside = all(
                item < 0 or items.has[item, order[v]]
                for items, item, order, v in zip(
                    large.items, large.choices[y], orders, cell, strict=True
                )
            )
            expected[s] += rows * int(inside)
        np.testing.assert_allclose(counts[y], [float(e) for e in expected], atol=1e-12)
    by_hand = np.mean([js_by_hand(large.true[y], counts[y]) for y in range(large.number)])
    assert u_loss(release, large, orders) == pytest.approx(by_hand, abs=1e-12)
    table = {
        (cell, s): Fraction(int(sum(
            tuple(units.codes[:, row]) == cell and units.sensitive[0, row] == s
            for row in range(units.rows))))
        for cell, s in whole
    }  # fmt: skip
    expected_kl = sum(
        float(n) / units.rows * math.log(float(n / whole[key])) for key, n in table.items() if n
    )
    cells, counts_there = distinct_cells(codes, values)
    found = joint_divergence(told, cells, counts_there, units.sizes)
    assert found == pytest.approx(expected_kl)


def distinct_cells(codes: Any, values: Any) -> tuple[Any, Any]:
    cells, where = np.unique(codes, axis=1, return_inverse=True)
    counts = np.zeros((cells.shape[1], values.shape[1]), dtype=np.int64)
    np.add.at(counts, where.ravel(), values)
    return cells, counts


def js_by_hand(true: Any, counts: Any) -> float:
    total, found = sum(counts), 0.0
    for p, q in zip(true, [c / total for c in counts], strict=True):
        middle = (p + q) / 2
        found += sum(x * math.log(x / middle) for x in (p, q) if x > 0) / 2
    return found


def test_divergences() -> None:
    left, right = np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.25, 0.5])
    assert kullback_leibler(left, right) == pytest.approx(math.log(2))
    assert kullback_leibler(right, left) == math.inf
    assert jensen_shannon(left, left) == 0
    assert jensen_shannon(np.eye(2)[0], np.eye(2)[1]) == pytest.approx(math.log(2))


# ---------------------------------------------------------------------- measures of classes


def test_losses_of_the_trivial_release_and_of_the_table_itself() -> None:
    units = some_units(5)
    codes, values = units.codes, np.eye(3, dtype=np.int64)[units.sensitive[0]]
    large = populations(codes, TREES, 3, values)
    orders = [np.arange(size, dtype=np.int32) for size in units.sizes]
    low = np.zeros((1, 3), dtype=np.int32)
    high = np.array([[size - 1 for size in units.sizes]], dtype=np.int32)
    whole = Grouping(np.zeros(units.rows, dtype=np.int32), low, high)
    trivial = shown(units, whole, "generalize")
    by_value = [np.bincount(of, minlength=n) for of, n in zip(codes, units.sizes, strict=True)]
    assert p_loss(trivial) == 0
    assert gen_iloss(trivial) == 1
    assert non_uniform_entropy(trivial, by_value) == pytest.approx(1)
    # The second hierarchy has a level below its top that is everything already.
    assert precision(trivial, TREES, orders) == pytest.approx(1 - (1 + 3 / 4 + 1) / 3)
    assert discernibility(trivial) == units.rows**2
    rows = np.arange(units.rows, dtype=np.int32)
    itself = shown(units, bounding(units, rows, units.rows), "generalize")
    assert u_loss(itself, large) == pytest.approx(0, abs=1e-15)
    assert gen_iloss(itself) == 0 and precision(itself, TREES, orders) == 1
    assert non_uniform_entropy(itself, by_value) == pytest.approx(0, abs=1e-12)
    assert discernibility(itself) == units.rows
    cells, counts = distinct_cells(codes, values)
    assert joint_divergence(told_by(itself), cells, counts, units.sizes) == pytest.approx(0)
    overall = units.overall[0] / units.rows
    rarest = min(range(3), key=lambda s: overall[s])
    assert p_loss(itself) == pytest.approx(js_by_hand(overall, np.eye(3)[rarest]))


@pytest.mark.parametrize("seed", [3, 4])
def test_measures_of_classes_row_by_row(seed: int) -> None:
    units, grouping, release, orders = some_release(seed, "generalize")
    sizes, rows, of = units.sizes, units.rows, grouping.classes
    boxes = [[(int(grouping.low[c, j]), int(grouping.high[c, j])) for j in range(3)] for c in of]
    widths = [(h - low) / (size - 1) for box in boxes
              for (low, h), size in zip(box, sizes, strict=True)]  # fmt: skip
    assert gen_iloss(release) == pytest.approx(np.mean(widths))
    levels, entropy, most = [], 0.0, 0.0
    for row, box in enumerate(boxes):
        for j, (low, high) in enumerate(box):
            codes = orders[j][low : high + 1]
            first = next(h for h, nodes in enumerate(TREES[j].nodes) if len(set(nodes[codes])) == 1)
            levels.append(first / TREES[j].height)
            same = (units.codes[j] == units.codes[j, row]).sum()
            inside = ((units.codes[j] >= low) & (units.codes[j] <= high)).sum()
            entropy += math.log(inside / same)
            most += math.log(rows / same)
    assert precision(release, TREES, orders) == pytest.approx(1 - np.mean(levels))
    by_value = [
        np.bincount(codes, minlength=n) for codes, n in zip(units.codes, sizes, strict=True)
    ]
    assert non_uniform_entropy(release, by_value) == pytest.approx(entropy / most)
    everything = [all(b == (0, n - 1) for b, n in zip(box, sizes, strict=True)) for box in boxes]
    alike = [rows if e else int((of == c).sum()) for c, e in zip(of, everything, strict=True)]
    assert discernibility(release) == sum(alike)
    assert average_class_size(release) == rows / 4
    assert normalised_class_size(release) == pytest.approx(rows / 4 / np.bincount(of).min())


def test_bucketized_rows_lose_nothing_of_their_quasi_identifiers() -> None:
    units, _, release, orders = some_release(6, "bucketize")
    by_value = [
        np.bincount(of, minlength=n) for of, n in zip(units.codes, units.sizes, strict=True)
    ]
    assert gen_iloss(release) == 0 and precision(release, TREES, orders) == 1
    assert non_uniform_entropy(release, by_value) == 0
    assert discernibility(release) == (release.histograms.rows**2).sum()


def test_suppressed_rows_look_like_all_others() -> None:
    units = some_units(7)
    classes = np.where(np.arange(30) < 5, 0, 1).astype(np.int32)
    grouping = bounding(units, classes, 2)
    low, high = grouping.low.copy(), grouping.high.copy()
    low[0], high[0] = 0, [size - 1 for size in units.sizes]
    low[1, 2] = high[1, 2] = 0
    release = shown(units, Grouping(classes, low, high), "generalize")
    assert discernibility(release) == 5 * 30 + 25 * 25


def test_rows_that_were_left_out_count_as_suppressed() -> None:
    """The same as one more class that shows nothing, but for P_loss and the classes themselves."""
    units, grouping, _, orders = some_release(13, "generalize")
    low, high = grouping.low.copy(), grouping.high.copy()
    low[0], high[0] = 0, [size - 1 for size in units.sizes]
    whole = shown(units, Grouping(grouping.classes, low, high), "generalize")
    kept = grouping.classes != 0
    number = int((~kept).sum())
    part = Units(units.codes[:, kept], units.sizes, units.sensitive[:, kept],
                 units.sensitive_sizes, units.weights[kept])  # fmt: skip
    rest = Grouping(grouping.classes[kept] - 1, low[1:], high[1:])
    release = shown(part, rest, "generalize")
    by_value = [
        np.bincount(of, minlength=n) for of, n in zip(units.codes, units.sizes, strict=True)
    ]
    assert gen_iloss(release, number) == pytest.approx(gen_iloss(whole))
    assert non_uniform_entropy(release, by_value, number) == pytest.approx(
        non_uniform_entropy(whole, by_value)
    )
    assert discernibility(release, number) == discernibility(whole)
    left, right = (precision(one, TREES, orders, n) for one, n in ((release, number), (whole, 0)))
    top = 1 - 1 / 12  # the second hierarchy is everything one level below its top
    assert left == pytest.approx(right - number / units.rows * (1 - top))
    cells, counts = distinct_cells(
        np.stack([order[of] for order, of in zip(orders, units.codes, strict=True)]),
        np.eye(3, dtype=np.int64)[units.sensitive[0]],
    )
    found = joint_divergence(told_by(release, orders), cells, counts, units.sizes, number)
    assert 0 < found < math.inf
    assert joint_divergence(told_by(release, orders), cells, counts, units.sizes) > found


@pytest.mark.parametrize("seed", [8, 9])
def test_accuracy_row_by_row(seed: int) -> None:
    units, grouping, release, _ = some_release(seed, "generalize")
    overall = units.overall[0]
    right = 0
    for row in range(units.rows):
        others = [
            int(units.sensitive[0, i]) for i in range(units.rows)
            if grouping.classes[i] == grouping.classes[row] and i != row
        ]  # fmt: skip
        votes = [(others.count(s), overall[s], -s) for s in range(3)]
        right += votes.index(max(votes)) == units.sensitive[0, row]
    assert class_majority_accuracy(release) == pytest.approx(right / units.rows)
    values = np.eye(3, dtype=np.int64)[units.sensitive[0]]
    assert majority_accuracy(values) == max(overall) / units.rows


def test_naive_bayes_learns_what_can_be_learnt() -> None:
    """A column that tells the value, and one that does not."""
    values = np.arange(40) % 2
    cells = np.stack([values, np.arange(40) // 2 % 2]).astype(np.int32)
    counts = np.eye(2, dtype=np.int64)[values]
    table = (Points(counts.astype(np.float64), cells),)
    assert naive_bayes_accuracy(table, cells, counts, (2, 2)) == 1
    blind = (Products(counts.sum(axis=0, keepdims=True).astype(np.float64), (None, None)),)
    assert naive_bayes_accuracy(blind, cells, counts, (2, 2)) == 0.5


# ---------------------------------------------------------------------- blocks


def test_rows_by_value_are_shares_of_single_values() -> None:
    coins = np.random.default_rng(10)
    counts, codes = coins.random((20, 3)), coins.integers(0, 4, (2, 20)).astype(np.int32)
    low = np.minimum(codes, 2).T
    order = np.array([2, 0, 3, 1], dtype=np.int32)
    masses = np.array([0.1, 0.2, 0.3, 0.4])
    for blocks in (
        Boxes(counts, low, low + 1, [order, order]),
        Points(counts, codes),
        Points(counts, codes, (Inversion(0.3, masses), None)),
        Products(counts[:1], (masses, None)),
    ):
        for j in range(2):
            single = blocks.shares(j, np.eye(4, dtype=np.bool_)) @ blocks.counts
            np.testing.assert_allclose(blocks.by_value(j, 4), single, atol=1e-12)
            whole = blocks.shares(j, np.ones((1, 4), dtype=np.bool_))
            np.testing.assert_allclose(whole, 1)


# ---------------------------------------------------------------------- queries


def test_as_many_values_are_drawn_as_anatomy_says() -> None:
    sizes, stream = (74, 7, 16, 7, 5, 2), Key.from_seed(1).stream("queries")
    drawn = draw_queries(sizes, 14, dimension=3, selectivity=0.05, number=200, stream=stream)
    share = 0.05 ** (1 / 4)
    for sets, size in zip(drawn.qi, sizes, strict=True):
        asked = sets[~sets.all(axis=1)]
        assert (asked.sum(axis=1) == math.ceil(size * share)).all()
    assert (drawn.sensitive.sum(axis=1) == math.ceil(14 * share)).all()
    # sex has two values and both are drawn, so its condition asks for nothing.
    dimensions = sum((~sets.all(axis=1)).astype(int) for sets in drawn.qi[:5])
    assert set(np.asarray(dimensions).tolist()) == {2, 3}


@pytest.mark.parametrize("recode", RECODES)
def test_answers_are_those_of_the_implied_distribution(recode: Recode) -> None:
    units, grouping, release, orders = some_release(11, recode)
    whole = implied(units, grouping, recode)
    stream = Key.from_seed(2).stream("queries")
    drawn = draw_queries(units.sizes, 3, dimension=2, selectivity=0.2, number=70, stream=stream)
    found = answers(told_by(release, orders), drawn)
    for q in range(70):
        expected = sum(
            float(rows) for (cell, s), rows in whole.items()
            if drawn.sensitive[q, s]
            and all(drawn.qi[j][q, orders[j][v]] for j, v in enumerate(cell))
        )  # fmt: skip
        assert found[q] == pytest.approx(expected, abs=1e-12)


def truth_of_adult() -> tuple[Any, tuple[int, ...]]:
    units, _, orders = adult()
    codes = np.stack([order[of] for order, of in zip(orders, units.codes, strict=True)])
    return (Points(np.eye(14)[units.sensitive[0]], codes),), units.sizes


def error_of(name: str, recode: Recode, *, dimension: int, selectivity: float) -> float:
    units, _, orders = adult()
    told = told_by(shown(units, mondrian(units, [requirement(name)]).grouping, recode), orders)
    key = f"{dimension} {selectivity}"
    if key not in CACHE:
        truth, sizes = truth_of_adult()
        CACHE[key] = workload(
            truth, sizes, dimension=dimension, selectivity=selectivity, number=300
        )
    queries, counts = CACHE[key]
    assert queries.number == len(counts) == 300 and counts.min() > 0
    return relative_error(told, queries, counts)


def test_relative_error_falls_with_selectivity_and_dimension() -> None:
    """Figures 3(b) and 3(c), for t = 0.1 bucketized."""
    by_selectivity = [
        error_of("t:0.1", "bucketize", dimension=4, selectivity=s) for s in (0.02, 0.05, 0.1, 0.2)
    ]
    assert by_selectivity == sorted(by_selectivity, reverse=True)
    assert by_selectivity[-1] < 0.7 * by_selectivity[0]
    by_dimension = [
        error_of("t:0.1", "bucketize", dimension=d, selectivity=0.05) for d in (2, 4, 6)
    ]
    assert by_dimension == sorted(by_dimension, reverse=True)


def test_relative_error_is_lower_for_bucketized_rows_and_for_closeness() -> None:
    """k = 1000 has twice the P_loss of t = 0.1, and more error."""
    asked: dict[str, Any] = {"dimension": 4, "selectivity": 0.05}
    for name in ("k:1000", "t:0.1"):
        assert error_of(name, "bucketize", **asked) < error_of(name, "generalize", **asked)
    assert error_of("t:0.15", "bucketize", **asked) < error_of("l:4.75", "bucketize", **asked)


def test_the_same_queries_are_drawn_every_time() -> None:
    truth, sizes = truth_of_adult()
    first, second = (
        workload(truth, sizes, dimension=2, selectivity=0.1, number=20)[1] for _ in range(2)
    )
    assert (first == second).all()
    other = workload(truth, sizes, dimension=2, selectivity=0.1, number=20, seed=1)[1]
    assert (first != other).any()


# ---------------------------------------------------------------------- what P_loss does not see


def test_p_loss_does_not_see_a_transform_that_can_be_undone() -> None:
    """Classes of one row, pulled towards Q until P_loss is small, tell who pulls them back."""
    units = some_units(12)
    overall = units.overall[0] / units.rows
    alone = shown(units, bounding(units, np.arange(30, dtype=np.int32), 30), "generalize")
    true = alone.histograms.counts[0].astype(np.float64)
    pulled = 0.05 * true + 0.95 * overall
    assert class_losses(alone).max() > 0.2
    assert jensen_shannon(pulled, overall).max() < 0.002
    back = (pulled - 0.95 * overall) / 0.05
    np.testing.assert_allclose(back, true, atol=1e-12)
