"""Splits beyond chance: variances by matrices, false splits by simulation, errors of shares."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from tests.support.perturbed import PerturbedCounts, perturbed
from tests.support.sampling import proportion_at_least
from tests.support.soak import rounds
from voile.errors import UsageError
from voile.mining import ExactCounts, Limits, grow
from voile.mining.binning import binning
from voile.mining.growing import class_binning
from voile.mining.report import TreeAccuracy, growth_notes
from voile.mining.splits import Fourfold, NodeCounts, deviations, without_skew
from voile.mining.tree import LeafReason, Proof, Split
from voile.reconstruct import Axis
from voile.schema import Attribute, Range, Schema, Values

LETTERS = Values(tuple("stuvwxyz"))
SCHEMA = Schema(
    (
        Attribute("a", "integer", Range(0, 9)),
        Attribute("b", "categorical", LETTERS, ordered=False),
        Attribute("c", "categorical", Values(("p", "q", "r")), ordered=False),
    )
)


def unrelated(seed: int, rows: int = 3000) -> ExactCounts:
    """A table whose columns have nothing to do with each other."""
    rng = np.random.default_rng([seed, 1])  # another one than what perturbs it
    codes = {"a": rng.integers(0, 10, rows), "b": rng.binomial(7, 0.4, rows)}
    return ExactCounts(SCHEMA, {**codes, "c": rng.choice(3, rows, p=[0.5, 0.3, 0.2])})


def related(seed: int, rows: int = 20_000) -> ExactCounts:
    table = unrelated(seed, rows)
    rng = np.random.default_rng([seed, 2])
    moved = (table.codes["a"] > 5) & (rng.random(rows) < 0.5)
    return ExactCounts(SCHEMA, {**table.codes, "c": np.where(moved, 2, table.codes["c"])})


def node_counts(counts: PerturbedCounts, method: str = "inversion") -> NodeCounts:
    binnings = {name: binning(SCHEMA[name], 20) for name in ("a", "b")}
    return NodeCounts(counts, class_binning(SCHEMA, "c"), binnings, method)


# ---------------------------------------------------------------------- one split


def by_matrices(counts: PerturbedCounts, weights: dict[str, npt.NDArray[Any]]) -> float:
    """The variance of Σ f(row) for f = Π weights, from the whole matrix of all three columns."""
    inverses = [
        np.linalg.inv(Axis(counts.retention[a.name], np.full(a.size, 1 / a.size)).matrix())
        for a in SCHEMA
    ]
    inverse = np.kron(np.kron(inverses[0], inverses[1]), inverses[2])
    f = np.kron(np.kron(weights["a"], weights["b"]), weights["c"])
    cells = {a.name: np.arange(a.size) for a in SCHEMA}
    y = counts.seen.joint_counts(cells).counts.reshape(-1)
    return float(y @ (inverse @ f) ** 2 - y @ (inverse @ f**2))


@pytest.mark.parametrize("deep", [False, True])
def test_a_splits_variance_is_that_of_its_contrast(deep: bool) -> None:
    """From nine variances of sums, though no covariance is ever asked for."""
    counts = perturbed(related(1), {"a": 0.6, "b": 0.5, "c": 0.7}, seed=2)
    node = node_counts(counts)
    chosen = np.arange(10) < 4
    inside = np.arange(10) < 8 if deep else np.ones(10, np.bool_)
    letters = np.arange(8) < 3 if deep else np.ones(8, np.bool_)
    path = {"a": inside, "b": letters} if deep else {}
    found = node.fourfold(path, Split(node.binnings["a"], chosen, 0.0), 2)
    side, share = 0.37, 0.21
    weights = {
        "a": inside * (chosen - side),
        "b": letters * 1.0,
        "c": (np.arange(3) == 2) - share,
    }
    assert found.perturbed(side, share) == pytest.approx(by_matrices(counts, weights), rel=1e-9)
    sides, classes = found.cells.sum(axis=1), found.cells.sum(axis=0)
    alone = Fourfold(found.counts, found.cells, sides, classes, float(found.cells.sum()))
    assert abs(alone.perturbed(side, share) / found.perturbed(side, share) - 1) > 0.05


def test_exact_rows_are_tested_as_in_pearsons_test() -> None:
    counts = np.array([[30.0, 10.0], [25.0, 35.0]])
    nothing = np.zeros((2, 2))
    table = Fourfold(counts, nothing, nothing[0], nothing[0], 0.0, part=0.0)
    assert table.apart() ** 2 == pytest.approx(
        stats.chi2_contingency(counts, correction=False).statistic
    )
    assert table.apart() > 0
    assert Fourfold(counts[::-1], nothing, nothing[0], nothing[0], 0.0).apart() < 0


@pytest.mark.parametrize("mean", [5, 26, 400])
@pytest.mark.parametrize("part", [1.0, 4.0])
def test_few_rows_exceed_by_more_and_must(mean: int, part: float) -> None:
    """A Poisson count of rows that do `part` each, at 4 standard errors: exactly how unlikely."""
    error, needed = part * math.sqrt(mean), 4.0
    rows = np.arange(mean, mean + 40 * math.isqrt(mean))
    proven = [without_skew(part * float(r - mean), error, part) > needed for r in rows]
    first = int(rows[int(np.argmax(proven))])
    assert stats.poisson.sf(first - 1, mean) <= stats.norm.sf(needed)
    naive = int(np.floor(mean + needed * math.sqrt(mean))) + 1
    assert stats.poisson.sf(naive - 1, mean) > 1.2 * stats.norm.sf(needed)
    assert without_skew(7.0, 2.0, 0.0) == pytest.approx(3.5)
    assert without_skew(error + part / 2, error, part) == pytest.approx(1)


def test_few_rows_prove_nothing() -> None:
    """One row of a rare class alone on its side is ten standard errors of nothing."""
    counts = np.array([[1.0, 0.0], [9.0, 990.0]])
    nothing = np.zeros(2)
    assert Fourfold(counts, np.zeros((2, 2)), nothing, nothing, 0.0).apart() == 0
    assert Fourfold(-counts, np.zeros((2, 2)), nothing, nothing, 0.0).apart() == 0


def test_what_is_asked_grows_with_what_there_was_to_choose_from() -> None:
    def asked(bins: int, ordered: bool, columns: int = 1, classes: int = 2) -> float:
        return deviations(bins, ordered=ordered, columns=columns, classes=classes, miss=0.05)

    assert asked(2, True) == asked(2, False) == pytest.approx(NormalDist().inv_cdf(0.975))
    assert asked(20, True) == pytest.approx(NormalDist().inv_cdf(1 - 0.025 / 19))
    assert asked(5, False) > asked(5, True)
    assert asked(5, True, columns=3) == pytest.approx(NormalDist().inv_cdf(1 - 0.025 / 12))
    assert asked(5, True, classes=3) == asked(5, True, columns=3)
    for bins in (10, 40, 164, 1000):
        sets = stats.norm.isf(0.025 / (2.0 ** (bins - 1) - 1))
        root = math.sqrt(stats.chi2.isf(0.05, bins - 1))
        assert min(sets, root) <= asked(bins, False) <= min(sets, 1.1 * root) + 1e-9


# ---------------------------------------------------------------------- trees of nothing


@pytest.mark.parametrize("retention", [0.3, 0.8, 1.0])
def test_a_table_of_unrelated_columns_is_split_as_seldom_as_promised(retention: float) -> None:
    """Of many tables at most so many as chance allows at 1 in 20; without the test, nearly all."""
    limits = Limits(depth=1, min_support=100)
    whole, blind = 0, 0
    tables = rounds(60, 150)
    for seed in range(tables):
        release = perturbed(unrelated(seed), retention, seed)
        whole += not grow(release, "c", limits=limits).root.children
        if seed < 20:
            loose = Limits(depth=1, min_support=100, level=0)
            blind += bool(grow(release, "c", limits=loose).root.children)
    assert proportion_at_least(whole, tables, 0.95)
    assert blind > 10


@pytest.mark.parametrize("method", ["stopped", "em", "inversion"])
def test_what_is_there_is_found(method: str) -> None:
    limits = Limits(depth=2, min_support=100, method=method)
    tree = grow(perturbed(related(1), 0.5, seed=1), "c", limits=limits)
    assert tree.root.split is not None
    assert tree.root.split.binning.name == "a"
    assert tree.root.split.condition == "a < 6"
    assert tree.root.split.proof is Proof.NODE
    assert {node.ended for _, node in tree.nodes() if not node.children} == {LeafReason.ERRORS}


def test_a_split_may_borrow_its_proof_from_all_rows() -> None:
    """Two columns that tell the same of a class each; in a node there are too few rows for both."""
    rng = np.random.default_rng(3)
    rows = 3000
    a, b = rng.integers(0, 10, rows), rng.integers(0, 8, rows)
    c = 2 * (rng.random(rows) < 0.2 + 0.3 * (a > 4) + 0.3 * (b > 3))
    table = ExactCounts(SCHEMA, {"a": a, "b": b, "c": c})
    proofs = []
    for seed in range(20):
        tree = grow(perturbed(table, 0.5, seed), "c", limits=Limits(depth=2, min_support=100))
        splits = [node.split for _, node in tree.nodes() if node.split]
        assert not splits or splits[0].proof is Proof.NODE  # all rows are the root's
        proofs += [split.proof for split in splits[1:]]
        told = any("may be chance by itself" in note for note in growth_notes(tree, Limits()))
        assert told == any(split.proof is Proof.ALL for split in splits)
    assert {Proof.NODE, Proof.ALL} <= set(proofs)


@pytest.mark.parametrize("method", ["stopped", "em", "inversion"])
@pytest.mark.parametrize("level", [0.95, 0])
def test_nodes_add_up_and_are_sure_to_have_rows(method: str, level: float) -> None:
    for seed in range(5):
        release = perturbed(related(seed, 2000), 0.3, seed)
        limits = Limits(depth=4, min_support=0, method=method, level=level)
        for _, node in grow(release, "c", limits=limits).nodes():
            assert node.rows >= 2 * node.stderr
            if node.yes and node.no:
                assert node.yes.rows + node.no.rows == pytest.approx(node.rows)
                if method != "inversion":  # of which negative counts are shown as shares of 0
                    shares = [c.rows * np.array(c.shares) for c in (node.yes, node.no)]
                    assert sum(shares) == pytest.approx(node.rows * np.array(node.shares))


def test_a_level_is_below_one() -> None:
    with pytest.raises(UsageError, match="level of 1 "):
        Limits(level=1)
    with pytest.raises(UsageError, match="level of nan"):
        Limits(level=float("nan"))


# ---------------------------------------------------------------------- errors


def test_the_error_of_a_share_is_how_much_it_varies() -> None:
    """Over many releases of one table; within 4.2 standard errors of a standard deviation."""
    table = related(1, 5000)
    path = {"a": np.arange(10) > 5}
    shares, errors = [], []
    runs = rounds(150, 400)
    for seed in range(runs):
        node = node_counts(perturbed(table, 0.6, seed))
        rows = node.by_class(path)
        share = rows[2] / rows.sum()
        shares.append(share)
        errors.append(node.share_error(path, rows.sum(), (0.0, 0.0, share), 2))
    assert np.mean(errors) == pytest.approx(np.std(shares), rel=4.2 / math.sqrt(2 * runs))
    inside = table.codes["a"] > 5
    truth = (table.codes["c"][inside] == 2).mean()
    assert abs(np.mean(shares) - truth) < 5 * np.std(shares) / math.sqrt(runs)


def test_known_rows_have_shares_without_error() -> None:
    tree = grow(related(1), "c", limits=Limits(depth=1))
    assert all(node.share_stderr == 0 and node.stderr == 0 for _, node in tree.nodes())


@pytest.mark.parametrize(("rows", "right"), [(3, 3), (3, 0), (40, 31), (16281, 12885)])
def test_accuracies_have_wilsons_interval(rows: int, right: int) -> None:
    found = TreeAccuracy(rows, right / rows, 0.5)
    low, high = found.interval
    wilson = stats.binomtest(right, rows).proportion_ci(method="wilson")
    assert (low, high) == pytest.approx((wilson.low, wilson.high), abs=1e-12)
    assert low < high


# ---------------------------------------------------------------------- why growth stopped


def test_a_tree_without_a_split_says_why() -> None:
    table = unrelated(1, 300)
    release = perturbed(table, 0.5, 1)
    limits = Limits(min_support=20)
    (noise,) = growth_notes(grow(release, "c", limits=limits), limits)
    assert "no split of all rows is beyond its error" in noise
    assert "level=0" in noise
    limits = Limits(min_support=200)
    (few,) = growth_notes(grow(release, "c", limits=limits), limits)
    assert "no split of all rows leaves 200 rows" in few
    assert "lower min_support=" in few
    pure = ExactCounts(SCHEMA, {**table.codes, "c": np.zeros(300, int)})
    limits = Limits(min_support=1)
    (same,) = growth_notes(grow(pure, "c", limits=limits), limits)
    assert same == "no split of all rows makes the classes less mixed"


def test_leaves_that_end_early_are_named() -> None:
    limits = Limits(depth=3, min_support=2000)
    tree = grow(perturbed(related(1), 0.5, seed=1), "c", limits=limits)
    notes = list(growth_notes(tree, limits))
    assert notes[0].startswith("no split of “a < 6”, nor of 1 other leaf, is beyond its error")
