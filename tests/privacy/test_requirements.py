"""Requirements on classes: against plain Python in exact fractions, a linear program, and pycanon.

Random classes come from fixed seeds. Comparisons of numbers are exact or to 1e-9, and what is met
is compared exactly, so there is no false alarm.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.support.paths import TESTS
from voile.errors import SchemaError, UsageError
from voile.privacy.guarantees import Anonymity, Closeness, Diversity
from voile.privacy.guarantees import SemanticPrivacy as SemanticGuarantee
from voile.privacy.requirements import (
    AlphaK,
    Histograms,
    K,
    L,
    Presence,
    Requirement,
    Semantic,
    T,
    requirement_from_dict,
    requirements_of,
)
from voile.privacy.requirements.kernels import meets
from voile.privacy.requirements.rules import rules_of
from voile.privacy.requirements.sensitive import earth_mover_hierarchical

TREE = ((0, 0, 1, 1, 2), (0, 0, 0, 0, 1))
"""Five values, in pairs and one alone, then four and one, then all: the height is 3."""
OVERALL = np.array([12, 8, 5, 3, 2])

ALL: list[Requirement] = [
    K(4),
    AlphaK(0.5, 3),
    AlphaK(0.4, 2, 0, (1, 3)),
    L(2),
    L(2.5),
    L(3, "distinct"),
    L(2.5, "entropy"),
    L(2, "recursive", 1.5),
    L(3, "recursive", 2.0),
    T(0.1),
    T(0.3, "variational"),
    T(0.3, "emd-equal"),
    T(0.2, "emd-ordered"),
    T(0.25, "emd-hierarchical", 0, TREE),
    Semantic(1.2),
    Semantic(0.9, "ignored"),
    Presence(0.2, 0.6),
]


def random_classes(seed: int, classes: int = 600) -> Histograms:
    """Small classes, some without rows and some of a single value."""
    random = np.random.default_rng(seed)
    rows = random.integers(0, 16, classes)
    counts = np.array([random.multinomial(n, OVERALL / OVERALL.sum()) for n in rows])
    population = rows + random.integers(0, 20, classes)
    return Histograms(rows.astype(np.int64), (counts,), (OVERALL,), population)


# ---------------------------------------------------------------------- the obvious way


def plainly(  # noqa: PLR0911  (a definition for each kind)
    requirement: Requirement, counts: Sequence[int], population: int
) -> bool:
    """Whether a class meets it, by its definition in exact fractions, one value at a time."""
    n = sum(counts)
    match requirement:
        case K(k):
            return n >= k
        case Presence(low, high):
            return exact(low) * population <= n <= exact(high) * population
        case AlphaK(alpha, k, _, values):
            limited = range(len(counts)) if values is None else values
            return n >= k and all(counts[v] <= exact(alpha) * n for v in limited)
    if n == 0:
        return True
    shares = [Fraction(c, n) for c in counts]
    whole = [Fraction(int(c), int(OVERALL.sum())) for c in OVERALL]
    match requirement:
        case L():
            return plainly_diverse(requirement, shares)
        case T(t, distance):
            return float(plain_distance(distance, shares, whole)) <= t + 1e-12
        case Semantic(delta, absent):
            return all(
                absent == "ignored" if p == 0 else abs(math.log(p / q)) <= delta + 1e-12
                for p, q in zip(shares, whole, strict=True)
            )
    raise AssertionError(requirement)


def plainly_diverse(requirement: L, shares: list[Fraction]) -> bool:
    ordered = sorted(shares, reverse=True)
    match requirement.measure:
        case "frequency":
            return ordered[0] <= 1 / exact(requirement.l)
        case "distinct":
            return sum(p > 0 for p in shares) >= requirement.l
        case "entropy":
            entropy = -sum(float(p) * math.log(p) for p in shares if p)
            return entropy >= math.log(requirement.l) - 1e-12
    assert requirement.c is not None
    return ordered[0] < exact(requirement.c) * sum(ordered[int(requirement.l) - 1 :])


def exact(number: float) -> Fraction:
    """The decimal number that was written, not the float nearest to it."""
    return Fraction(str(number))


def plain_distance(distance: str, p: list[Fraction], q: list[Fraction]) -> Fraction | float:
    if distance == "js":
        mean = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
        return sum(
            float(a) / 2 * math.log(a / m)
            for side in (p, q)
            for a, m in zip(side, mean, strict=True)
            if a
        )
    if distance == "emd-ordered":
        passed = itertools.accumulate(a - b for a, b in zip(p, q, strict=True))
        return sum(map(abs, passed), Fraction(0)) / (len(p) - 1)
    if distance == "emd-hierarchical":
        return recursive_cost(p, q, TREE)
    return sum((abs(a - b) for a, b in zip(p, q, strict=True)), Fraction(0)) / 2


def recursive_cost(p: list[Fraction], q: list[Fraction], tree: Sequence[Sequence[int]]) -> Fraction:
    """Li, Li and Venkatasubramanian: at each node, what its children can give to each other."""
    height, total = len(tree) + 1, Fraction(0)
    extras = {(0, v): a - b for v, (a, b) in enumerate(zip(p, q, strict=True))}
    lines = [list(range(len(p))), *tree, [0] * len(p)]
    for h in range(1, height + 1):
        for node in set(lines[h]):
            below = {lines[h - 1][v] for v in range(len(p)) if lines[h][v] == node}
            children = [extras[h - 1, child] for child in below]
            give = sum((e for e in children if e > 0), Fraction(0))
            take = -sum((e for e in children if e < 0), Fraction(0))
            total += Fraction(h, height) * min(give, take)
            extras[h, node] = give - take
    return total


# ---------------------------------------------------------------------- the checks


@pytest.mark.parametrize("requirement", ALL, ids=lambda r: r.spelling)
def test_what_is_met_is_what_the_definition_says(requirement: Requirement) -> None:
    classes = random_classes(1)
    counts, population = classes.counts[0], classes.population
    assert population is not None
    expected = [
        plainly(requirement, row, int(people))
        for row, people in zip(counts.tolist(), population, strict=True)
    ]
    assert requirement.met(classes).tolist() == expected
    assert any(expected)
    assert not all(expected)


@pytest.mark.parametrize("requirement", ALL, ids=lambda r: r.spelling)
def test_compiled_checks_agree_with_the_vectorised_ones(requirement: Requirement) -> None:
    classes = random_classes(2)
    rules = rules_of([requirement], classes.overall)
    assert compiled(rules, classes) == requirement.met(classes).tolist()


def compiled(rules: Any, classes: Histograms) -> list[bool]:
    flat = np.concatenate(classes.counts, axis=1)
    population = classes.population
    assert population is not None
    return [
        bool(meets(rules, flat[i], classes.rows[i], population[i]))
        for i in range(len(classes.rows))
    ]


def test_compiled_rules_of_several_attributes_find_each_its_own_counts() -> None:
    random = np.random.default_rng(3)
    rows = random.integers(1, 30, 400)
    overall = (np.array([5, 3, 2]), OVERALL, np.array([7, 3]))
    counts = tuple(np.array([random.multinomial(n, o / o.sum()) for n in rows]) for o in overall)
    classes = Histograms(rows, counts, overall, rows)
    asked: list[Requirement] = [
        K(5),
        L(1.5, attribute=2),
        T(0.2, "emd-hierarchical", 1, TREE),
        T(0.1, attribute=0),
        Semantic(1.5, "ignored", 1),
        L(2, "recursive", 2.0, 0),
    ]
    expected = np.logical_and.reduce([r.met(classes) for r in asked])
    assert compiled(rules_of(asked, overall), classes) == expected.tolist()
    assert expected.any()
    assert not expected.all()


def test_no_requirement_is_met_by_every_class() -> None:
    rules = rules_of([], [])
    assert meets(rules, np.empty(0, dtype=np.int64), 0, 0)


# ---------------------------------------------------------------------- what is measured


MEASURED: list[tuple[Requirement, Callable[[list[int]], float]]] = [
    (K(1), sum),
    (AlphaK(1), lambda c: max(c) / sum(c)),
    (AlphaK(1, 1, 0, (2,)), lambda c: c[2] / sum(c)),
    (L(1), lambda c: sum(c) / max(c)),
    (L(1, "distinct"), lambda c: sum(x > 0 for x in c)),
    (
        L(1, "entropy"),
        lambda c: math.exp(-sum(x / sum(c) * math.log(x / sum(c)) for x in c if x)),
    ),
    (
        L(2, "recursive", 1.0),
        lambda c: max(c) / (sum(c) - max(c)) if sum(c) > max(c) else math.inf,
    ),
]


@pytest.mark.parametrize(("requirement", "plain"), MEASURED, ids=lambda r: getattr(r, "kind", ""))
def test_measured_is_what_a_class_has(
    requirement: Requirement, plain: Callable[[list[int]], float]
) -> None:
    classes = random_classes(4)
    measured = requirement.measured(classes)
    for row, found in zip(classes.counts[0].tolist(), measured, strict=True):
        if sum(row):
            assert found == pytest.approx(plain(row), rel=1e-12)
        elif requirement.attribute is not None:
            assert math.isnan(found)
    there = measured[~np.isnan(measured)]
    assert requirement.worst(measured) in (there.min(), there.max())


@pytest.mark.parametrize("requirement", ALL, ids=lambda r: r.spelling)
def test_the_worst_class_is_the_first_to_fail(requirement: Requirement) -> None:
    """A release meets it if and only if a class that has the worst of it does."""
    classes = random_classes(5, classes=40)
    for i in range(0, 40, 4):
        few = one_of(classes, slice(i, i + 4))
        measured = requirement.measured(few)
        worst = requirement.worst(measured)
        at = measured == worst
        if at.any() and not isinstance(requirement, AlphaK):  # (α,k) asks for rows besides
            assert requirement.met(few).all() == requirement.met(few)[at].all()


def one_of(classes: Histograms, which: slice) -> Histograms:
    assert classes.population is not None
    return Histograms(
        classes.rows[which],
        (classes.counts[0][which],),
        classes.overall,
        classes.population[which],
    )


def test_revealed_values_are_as_far_from_the_table_as_the_paper_says() -> None:
    oracle = json.loads((TESTS / "oracle" / "frontier.json").read_text())
    data, revealed = oracle["data"], oracle["js_revealed_natural_log"]
    overall = np.array(data["occupation_counts"])
    alone = np.eye(len(overall), dtype=np.int64)
    classes = Histograms(alone.sum(axis=1), (alone,), (overall,))
    measured = T(0.1).measured(classes)
    for name, found in zip(data["occupation_order"], measured, strict=True):
        assert found == pytest.approx(revealed["values"][name], abs=revealed["tolerance"])


def test_the_toy_release_has_the_oracles_loss() -> None:
    toy = json.loads((TESTS / "oracle" / "frontier.json").read_text())["toy"]
    counts = np.zeros((2, 3), dtype=np.int64)
    np.add.at(counts, (toy["classes"], [r[2] for r in toy["records"]]), 1)
    classes = Histograms(counts.sum(axis=1), (counts,), (counts.sum(axis=0),))
    requirement = T(0.1)
    worst = requirement.worst(requirement.measured(classes))
    assert worst == pytest.approx(toy["P_loss"], abs=toy["tolerance"])


# ---------------------------------------------------------------------- the earth mover


def test_the_hierarchical_distance_is_the_cheapest_way_to_move() -> None:
    """Against linear programming, on trees of random shape."""
    random = np.random.default_rng(6)
    for _ in range(40):
        size, levels = int(random.integers(2, 7)), int(random.integers(0, 3))
        tree = random_tree(random, size, levels)
        p, q = random.dirichlet(np.ones(size)), random.dirichlet(np.ones(size))
        lines = [list(range(size)), *tree, [0] * size]
        apart = np.array(
            [
                [next(h for h, n in enumerate(lines) if n[a] == n[b]) for b in range(size)]
                for a in range(size)
            ]
        ) / (len(tree) + 1)
        into = np.zeros((2 * size, size * size))
        for a, b in itertools.product(range(size), repeat=2):
            into[a, a * size + b] = into[size + b, a * size + b] = 1
        cheapest = linprog(apart.ravel(), A_eq=into, b_eq=[*p, *q], method="highs")
        (found,) = earth_mover_hierarchical((p - q)[None, :], tree)
        assert found == pytest.approx(cheapest.fun, abs=1e-9)


def random_tree(random: np.random.Generator, size: int, levels: int) -> tuple[tuple[int, ...], ...]:
    """Each level joins nodes of the one before; numbers need not follow the codes."""
    found, nodes = [], np.arange(size)
    for _ in range(levels):
        onto = random.integers(0, max(1, nodes.max()), nodes.max() + 1)
        nodes = np.unique(onto, return_inverse=True)[1][nodes]
        found.append(tuple(int(n) for n in nodes))
    return tuple(found)


def test_values_that_do_not_occur_are_no_steps_of_the_ordered_distance() -> None:
    """A value that is merely allowed must not make the others look nearer."""
    rows = np.array([20, 20])
    counts = np.array([[10, 10], [15, 5]])
    wide = np.zeros((2, 7), dtype=np.int64)
    wide[:, [1, 4]] = counts
    requirement = T(0.124, "emd-ordered")
    found = [
        (requirement.measured(of), requirement.met(of),
         compiled(rules_of([requirement], of.overall), of))
        for of in (Histograms(rows, (c,), (c.sum(axis=0),), rows) for c in (counts, wide))
    ]  # fmt: skip
    assert found[0][0] == pytest.approx([0.125, 0.125])
    assert found[1][0] == pytest.approx(found[0][0])
    assert found[1][2] == list(found[1][1]) == [False, False]


def test_a_flat_tree_is_the_equal_distance() -> None:
    classes = random_classes(7)
    equal = T(0.1, "emd-equal").measured(classes)
    flat = T(0.1, "emd-hierarchical", 0, ()).measured(classes)
    np.testing.assert_allclose(equal, flat, atol=1e-12)


# ---------------------------------------------------------------------- joining classes


@pytest.mark.parametrize("requirement", ALL, ids=lambda r: r.spelling)
def test_joining_classes_keeps_what_is_said_to_be_kept(requirement: Requirement) -> None:
    """All pairs of small classes over three values: the flag is true where it says so."""
    overall = np.array([4, 3, 2])
    shown = narrowed(requirement)
    counts = np.array(list(itertools.product(range(5), repeat=3)))
    random = np.random.default_rng(8)
    population = counts.sum(axis=1) + random.integers(0, 6, len(counts))
    classes = Histograms(counts.sum(axis=1), (counts,), (overall,), population)
    good = np.flatnonzero(shown.met(classes))
    a, b = (pairs.ravel() for pairs in np.meshgrid(good, good))
    joined = counts[a] + counts[b]
    both = Histograms(joined.sum(axis=1), (joined,), (overall,), population[a] + population[b])
    assert len(good)
    assert bool(shown.met(both).all()) == shown.monotone


def narrowed(requirement: Requirement) -> Requirement:
    """The same for an attribute of three values."""
    match requirement:
        case AlphaK(alpha, k, attribute, values) if values is not None:
            return AlphaK(alpha, k, attribute, (1, 2))
        case T(t, "emd-hierarchical"):
            return T(t, "emd-hierarchical", 0, ((0, 0, 1),))
    return requirement


def test_ignoring_absent_values_is_not_kept_by_joining() -> None:
    """A value at its lower bound, joined with a class without it, falls below."""
    requirement = Semantic(math.log(2), "ignored")
    overall = (np.array([50, 50]),)
    apart = np.array([[3, 1], [1, 0]])
    assert requirement.met(Histograms(apart.sum(axis=1), (apart,), overall)).all()
    joined = np.array([[4, 1]])
    assert not requirement.met(Histograms(joined.sum(axis=1), (joined,), overall)).any()


# ---------------------------------------------------------------------- bounds met exactly


@pytest.mark.parametrize(
    ("requirement", "counts", "met"),
    [
        (L(3), [2, 2, 2], True),
        (L(3.0001), [2, 2, 2], False),
        (L(3, "entropy"), [7, 7, 7], True),
        (L(3.0001, "entropy"), [7, 7, 7], False),
        (L(2, "recursive", 1.0), [2, 1, 1], False),  # r1 = c·tail: the bound is strict
        (L(2, "recursive", 1.1), [11, 6, 4], False),  # and 1.1 · 10 is a little above 11
        (L(2, "recursive", 1.101), [11, 6, 4], True),
        (AlphaK(0.1, 1, 0, (0,)), [1, 5, 4], True),
        (AlphaK(0.3, 1, 0, (0,)), [3, 3, 4], True),
        (AlphaK(0.29999, 1, 0, (0,)), [3, 3, 4], False),
        (Semantic(math.log(3)), [9, 0, 0], False),
        (Semantic(math.log(3), "ignored"), [9, 0, 0], True),
        (Semantic(math.log(2.999), "ignored"), [9, 0, 0], False),
        (T(2 / 3, "variational"), [9, 0, 0], True),
        (T(0.6666, "variational"), [9, 0, 0], False),
        (T(0.5, "emd-ordered"), [9, 0, 0], True),
        (T(0.4999, "emd-ordered"), [9, 0, 0], False),
        (T(1 / 2, "emd-hierarchical", 0, ((0, 0, 1),)), [9, 0, 0], True),
        (T(0.4999, "emd-hierarchical", 0, ((0, 0, 1),)), [9, 0, 0], False),
        (T(0, "js"), [4, 4, 4], True),
    ],
    ids=str,
)
def test_a_bound_that_is_met_exactly(
    requirement: Requirement, counts: list[int], met: bool
) -> None:
    """In a table of three equally frequent values."""
    overall = np.array([10, 10, 10])
    one = np.array([counts])
    classes = Histograms(one.sum(axis=1), (one,), (overall,))
    assert requirement.met(classes).tolist() == [met]
    assert meets(rules_of([requirement], [overall]), one[0], sum(counts), 0) == met


# ---------------------------------------------------------------------- beside pycanon


def test_pycanon_measures_the_same_on_random_tables() -> None:
    """Where its definitions are ours. It leaves out rows with NULLs, so there are none here."""
    anonymity = pytest.importorskip("pycanon.anonymity")
    pandas = pytest.importorskip("pandas")
    for seed in range(12):
        random = np.random.default_rng(100 + seed)
        n = int(random.integers(20, 120))
        columns = {name: random.integers(0, 3, n) for name in ("a", "b", "c")}
        values = random.choice(5, n, p=[0.4, 0.3, 0.15, 0.1, 0.05])
        named = np.array(["u", "v", "w", "y", "z"])[values]
        frame = pandas.DataFrame({**columns, "s": named, "number": values})
        qi = ["a", "b", "c"]
        classes = grouped(list(columns.values()), values)

        def worst(requirement: Requirement, classes: Histograms = classes) -> float:
            return requirement.worst(requirement.measured(classes))

        assert worst(K(1)) == anonymity.k_anonymity(frame, qi)
        assert worst(L(1, "distinct")) == anonymity.l_diversity(frame, qi, ["s"])
        # It rounds the entropy's ℓ down, after e ** entropy, which may fall just short of a whole.
        assert math.floor(worst(L(1, "entropy")) + 1e-9) - anonymity.entropy_l_diversity(
            frame, qi, ["s"]
        ) in (0, 1)
        alpha, k = anonymity.alpha_k_anonymity(frame, qi, ["s"])
        assert worst(AlphaK(1)) == pytest.approx(alpha)
        assert worst(K(1)) == k
        # Of text it takes all values as equally far apart, of numbers their order.
        assert worst(T(1, "emd-equal")) == pytest.approx(anonymity.t_closeness(frame, qi, ["s"]))
        ordered = anonymity.t_closeness(frame, qi, ["number"])
        assert worst(T(1, "emd-ordered")) == pytest.approx(ordered)
        disclosure = anonymity.delta_disclosure(frame, qi, ["s"])
        assert worst(Semantic(1, "ignored")) == pytest.approx(disclosure)


def test_pycanon_takes_the_rarest_value_for_the_most_frequent_in_recursive_diversity() -> None:
    """Its r₁ is the smallest count, so that its c is too small: ours follows the definition."""
    anonymity = pytest.importorskip("pycanon.anonymity")
    pandas = pytest.importorskip("pandas")
    counts = np.array([[8, 2, 2]])
    frame = pandas.DataFrame({"a": ["x"] * 12, "b": 1, "s": list("u" * 8 + "v" * 2 + "w" * 2)})
    c, ell = anonymity.recursive_c_l_diversity(frame, ["a", "b"], ["s"])
    assert (c, ell) == (1, 3)
    classes = Histograms(np.array([12]), (counts,), (counts[0],))
    assert not L(3, "recursive", 1.5).met(classes).any()  # 8 < 1.5 · 2 is false
    assert L(3, "recursive", 4.5).met(classes).all()


def grouped(columns: Sequence[Any], values: Any) -> Histograms:
    """The classes of rows that are alike in the columns."""
    _, classes = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    counts = np.zeros((classes.max() + 1, 5), dtype=np.int64)
    np.add.at(counts, (classes.ravel(), values), 1)
    there = counts.sum(axis=0) > 0  # pycanon has no values that do not occur
    counts = counts[:, there]
    return Histograms(counts.sum(axis=1), (counts,), (counts.sum(axis=0),))


# ---------------------------------------------------------------------- made and written


@pytest.mark.parametrize("requirement", ALL, ids=lambda r: r.spelling)
def test_written_and_read_again_it_is_the_same(requirement: Requirement) -> None:
    for names in ((), ("occupation",)):
        text = json.dumps(requirement.to_dict(names))
        assert requirement_from_dict(json.loads(text), names) == requirement


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "None is not known"),
        ({"kind": "m"}, "'m' is not known"),
        ({"kind": "k"}, "lacks"),
        ({"kind": "k", "k": 2, "l": 3}, "has no 'l'"),
    ],
)
def test_a_damaged_description_is_refused(data: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        requirement_from_dict(data)


def test_a_described_attribute_must_be_there() -> None:
    with pytest.raises(UsageError, match="'disease', which is no sensitive attribute"):
        requirement_from_dict({"kind": "l", "l": 2, "attribute": "disease"}, ["salary"])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: K(0), "k = 0 must be a whole number at least 1"),
        (lambda: K(2.5), "k = 2.5 must be a whole number"),  # type: ignore[arg-type]
        (lambda: AlphaK(0), "alpha = 0 must be a number above 0"),
        (lambda: AlphaK(1.5), "alpha = 1.5"),
        (lambda: AlphaK(0.5, 2, 0, ()), "no value"),
        (lambda: L(0.5), "l = 0.5"),
        (lambda: L(2, "entropic"), "'entropic' is not known"),  # type: ignore[arg-type]
        (lambda: L(2, "recursive"), "lacks c"),
        (lambda: L(2.5, "recursive", 2.0), "l = 2.5 must be a whole number"),
        (lambda: L(2, "recursive", 0.0), "c = 0"),
        (lambda: L(2, c=2.0), "c = 2 belongs to recursive"),
        (lambda: T(0.7), "t = 0.7"),  # above ln 2
        (lambda: T(-0.1), "t = -0.1"),
        (lambda: T(1.1, "variational"), "t = 1.1"),
        (lambda: T(0.1, "emd"), "'emd' is not known"),  # type: ignore[arg-type]
        (lambda: T(0.1, "emd-hierarchical"), "lacks a hierarchy"),
        (lambda: T(0.1, "js", 0, TREE), "no use for a hierarchy"),
        (lambda: Semantic(-1), "delta = -1"),
        (lambda: Semantic(1, "allowed"), "'allowed'"),  # type: ignore[arg-type]
        (lambda: Presence(0.5, 0.2), "is empty"),
        (lambda: Presence(-0.1, 0.2), "least presence"),
        (lambda: Presence(0.1, float("nan")), "largest presence"),
    ],
)
def test_impossible_parameters_are_refused(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make()


def test_requirements_of_what_a_user_typed() -> None:
    made = requirements_of(
        ["job", "pay"], [14, 2], k=10, l={"job": 3}, t=0.2, semantic=1.5, alpha={"pay": 0.9},
        presence=(0, 0.5),
    )  # fmt: skip
    assert made == [
        K(10), AlphaK(0.9, 10, 1), L(3, attribute=0), T(0.2, attribute=0), T(0.2, attribute=1),
        Semantic(1.5, attribute=0), Semantic(1.5, attribute=1), Presence(0, 0.5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"l": {"jobs": 3}}, "ℓ is required of 'jobs'"),
        ({"l": 3}, "'pay' has 2 values"),
        ({"l_measure": "entropi"}, "'entropi' is not known"),
        ({"t": 0.1, "t_distance": "jensen"}, "'jensen' is not known"),
        ({"t": 0.1, "t_distance": "emd-hierarchical"}, "needs a hierarchy of 'job'"),
        ({"semantic": 1, "absent": "no"}, "'no' is not known"),
        ({"c": 2.0}, "c=2.0 is given, and l= is not"),
        ({"k": 0}, "k = 0"),
    ],
)
def test_wrong_options_are_named(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        requirements_of(["job", "pay"], [14, 2], **asked)


def test_values_need_a_sensitive_attribute() -> None:
    with pytest.raises(UsageError, match="none is named"):
        requirements_of([], [], k=2, t=0.1)


def test_presence_needs_a_public_table() -> None:
    classes = random_classes(1, classes=3)
    with pytest.raises(UsageError, match="public table"):
        Presence(0, 1).met(Histograms(classes.rows, classes.counts, classes.overall))


def test_guarantees_say_the_same() -> None:
    assert K(10).guarantee() == Anonymity(10)
    assert L(3, "entropy").guarantee() == Diversity(3, "entropy")
    assert L(3, "recursive", 2.0).guarantee() is None
    assert T(0.2).guarantee() == Closeness(0.2, "jensen-shannon")
    assert T(0.2, "emd-equal").guarantee() == Closeness(0.2, "variational")
    assert T(0.2, "emd-ordered").guarantee() == Closeness(0.2, "emd")
    assert Semantic(1.5).guarantee() == SemanticGuarantee(1.5)
    assert Presence(0, 1).guarantee() is None
