"""Rows that the stated mechanism did not make are seen; rows that it made are not suspected."""

from __future__ import annotations

import json
import math
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import voile
from tests.support.forging import forged
from tests.support.running import voile as run
from tests.support.soak import rounds
from voile.errors import ReleaseError
from voile.kinds import plausibility
from voile.kinds.looks import EndRuns, PendingRun, TupleCounts, ascending, runs
from voile.kinds.plausibility import FALSE_ALARM, Surprise, cells_for, lower_tail, upper_tail
from voile.kinds.verification import examine
from voile.kinds.views.plausibility import expected_repeated, expected_tuples
from voile.mechanisms import Shaped
from voile.release import Release
from voile.schema import TupleIndex
from voile.schema.index import Product, whole_parts

ADULT = "dataset:adult/frontier"
COLUMNS = ["age", "workclass", "education", "marital_status"]


# ---------------------------------------------------------------------- tuples of many files


@pytest.mark.parametrize("sizes", [(5, 7), (2**40, 3, 2**40)])
def test_tuples_are_counted_over_files_and_tasks(sizes: tuple[int, ...]) -> None:
    """A tuple may go on in the next task, and through tasks that show nothing else."""
    index = TupleIndex(sizes)
    for seed in range(40):
        draw = np.random.default_rng(seed)
        codes = [draw.integers(0, min(size, 4), 60) for size in sizes]
        keys = np.sort(index.encode(codes))
        whole = TupleCounts(())
        for tuples, copies in runs([index.decode(keys)], index):
            whole.add(tuples, copies)
        cuts = np.sort(draw.integers(0, len(keys) + 1, 9))
        counted = TupleCounts(())
        pending = PendingRun(index, counted)
        for part in np.split(keys, cuts):
            ends = EndRuns(len(sizes))
            batches = [index.decode(some) for some in np.array_split(part, 3)]
            for tuples, copies in ends.without(runs(batches, index)):
                counted.add(tuples, copies)
            for end, many in zip(ends.tuples, ends.copies, strict=True):
                pending.add([np.array([code]) for code in end], int(many))
        pending.close()
        assert counted.repeated.tolist() == whole.repeated.tolist()
        assert whole.repeated[0] == len(np.unique(keys))
        with pytest.raises(ReleaseError, match="in the order of the domain"):
            late = PendingRun(index, counted)
            for key in (keys[-1:], keys[:1]):
                late.add([np.asarray(code) for code in index.decode(key)], 1)


# ---------------------------------------------------------------------- the bounds


@pytest.mark.parametrize(("trials", "chance"), [(1, 0.5), (10, 0.01), (1000, 0.3), (10**6, 1e-5)])
def test_tails_bound_the_binomial_law(trials: int, chance: float) -> None:
    seen = np.unique(np.linspace(0, trials, 200).astype(int)).astype(float)
    number, p = np.full(len(seen), float(trials)), np.full(len(seen), chance)
    with np.errstate(divide="ignore"):
        assert (
            lower_tail(seen, number, p) >= stats.binom.logcdf(seen, trials, chance) - 1e-9
        ).all()
        exact = stats.binom.logsf(seen - 1, trials, chance)
    assert (upper_tail(seen, number, p) >= exact - 1e-6 * abs(exact)).all()


def test_tails_of_domains_that_no_float_counts() -> None:
    """As Poisson's law: 10³⁰ tuples of which a thousand are expected."""
    seen = np.array([300.0, 500.0, 900.0, 1000.0, 2000.0])
    found = lower_tail(seen, np.full(5, 1e30), np.full(5, 1e-27))
    exact = stats.poisson.logcdf(seen, 1000)
    assert (found >= exact - 1e-9).all() and (found[:3] < exact[:3] + 10).all()
    assert found[3] == pytest.approx(0, abs=1e-6) and found[4] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("chance", [0.02, 0.2])
def test_cells_are_surprising_as_rarely_as_they_say(chance: float) -> None:
    """P(corrected chance ≤ u) ≤ u, at u = 0.1 and 0.01; false alarm of this test below 1e-6."""
    rng = np.random.default_rng(20)
    (cells,) = cells_for(["a"], [64], math.inf, 1)
    number = rounds(400, 10_000)
    trials = np.full(64, 50.0)
    found = []
    for _ in range(number):
        seen = rng.binomial(50, chance, 64).astype(float)
        found.append(cells.least_chance(lower_tail(seen, trials, np.full(64, chance))))
    for u in (0.1, 0.01):
        assert (np.array(found) <= math.log(u)).sum() <= stats.binom.ppf(1 - 1e-7, number, u)


def test_many_cells_that_are_a_little_too_empty_are_seen() -> None:
    """No cell alone is a surprise: each has half of what is expected."""
    (cells,) = cells_for(["a"], [400], math.inf, 1)
    tails = lower_tail(np.full(400, 5.0), np.full(400, 1000.0), np.full(400, 0.015))
    assert tails.min() > math.log(FALSE_ALARM) and cells.least_chance(tails) < math.log(FALSE_ALARM)


def test_keys_of_several_words_are_compared_by_the_first_that_differs() -> None:
    index = TupleIndex([2**40, 2**40])
    codes = np.array([[1, 1, 2], [7, 9, 0]])
    keys = index.encode(list(codes))
    assert keys.dtype.kind == "V"
    for order in permutations(range(3)):
        assert ascending(keys[list(order)]) == (order == (0, 1, 2))
    assert ascending(keys[[0, 0, 1, 1]]) and ascending(keys[:1])


# ---------------------------------------------------------------------- sound releases


def small_table(rng: np.random.Generator, rows: int) -> pa.Table:
    return pa.table({
        "a": pa.array(rng.integers(0, 6, rows)).cast(pa.int64()),
        "b": pa.array([f"v{i}" for i in rng.geometric(0.4, rows).clip(max=5)]),
        "c": pa.array(rng.random(rows) < 0.1),
    })  # fmt: skip


KINDS: list[dict[str, Any]] = [
    {"prior": 0.02, "posterior": 0.4},
    {"prior": 0.01, "posterior": 0.9, "rows": "set", "distinct": True},
    {"prior": 0.02, "posterior": 0.4, "noise_prior": "product"},
    {"method": "conjuncts", "delta": 5.0},
    {"method": "conjuncts", "delta": 5.0, "subsets": 8},
]


@pytest.mark.parametrize("options", KINDS, ids=["multiset", "set", "shaped", "counts", "halves"])
def test_sound_releases_are_not_suspected(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is the chance that is found smaller than it should be: below 1 % in 1 % of them."""
    rng, chances = np.random.default_rng(4), list[float]()

    def remember(surprises: list[Surprise]) -> None:
        worst = min(one.log_chance for one in surprises)
        chances.append(worst + math.log(len(surprises)))

    for module in ("views", "counts", "perturbed"):
        monkeypatch.setattr(f"voile.kinds.{module}.plausibility.judge", remember)
    number = rounds(6, 2000)
    for seed in range(number):
        voile.publish(small_table(rng, 300), simulate_seed=seed, **options)
    assert len(chances) == number and min(chances) > math.log(FALSE_ALARM)
    assert (np.array(chances) < math.log(0.01)).sum() <= stats.binom.ppf(1 - 1e-6, number, 0.01)


def test_sound_perturbed_rows_are_not_suspected(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, chances = np.random.default_rng(5), list[float]()

    def remember(surprises: list[Surprise]) -> None:
        worst = min(one.log_chance for one in surprises)
        chances.append(worst + math.log(len(surprises)))

    monkeypatch.setattr("voile.kinds.perturbed.plausibility.judge", remember)
    number = rounds(6, 2000)
    for seed in range(number):
        whole: dict[str, Any] = {"whole_rows": True} if seed % 2 else {}
        voile.perturb(small_table(rng, 300), 0.4, simulate_seed=seed, **whole)
    assert len(chances) == number and min(chances) > math.log(FALSE_ALARM)
    assert (np.array(chances) < math.log(0.01)).sum() <= stats.binom.ppf(1 - 1e-6, number, 0.01)


# ---------------------------------------------------------------------- forged ones


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Release:
    to = tmp_path_factory.mktemp("view") / "adult.voile"
    return voile.publish(ADULT, posterior=0.9, to=to, simulate_seed=3)


def true_rows(release: Release) -> pa.Table:
    """The private rows, in the columns and the order that the release has."""
    from voile.engines import connect
    from voile.kinds.parquet import tuples

    codes, _ = connect(ADULT).columns_of_codes(release.schema, drop_nulls=False)
    order = np.lexsort(list(reversed(codes)))
    return tuples(release.schema, [code[order] for code in codes])


def refused(folder: Path) -> str:
    """What `verify` says: files and terms are in order, the rows are not."""
    found = examine(folder)
    assert found.whole and found.terms and found.rows_plausible is False and not found.ok
    with pytest.raises(ReleaseError, match="not what the stated noise makes"):
        voile.verify(folder)
    return found.problems[0]


def test_true_rows_in_the_place_of_a_view(view: Release, tmp_path: Path) -> None:
    rows = true_rows(view)
    refused(forged(view, tmp_path / "true.voile", lambda _: rows))
    done = run("verify", str(tmp_path / "true.voile"))
    assert done.returncode == 1 and "rows not plausible" in done.stdout
    told = json.loads(run("verify", str(tmp_path / "true.voile"), "--json").stdout)
    assert told["ok"] is False and told["rows_plausible"] is False and told["whole"] is True


def test_true_rows_filled_up_with_one_of_them(view: Release, tmp_path: Path) -> None:
    """The number of rows is right; they are not spread."""
    rows = true_rows(view)
    missing = view.manifest.rows - rows.num_rows
    assert missing > 0
    first = rows.take(pa.array(np.zeros(missing, np.int64)))
    refused(forged(view, tmp_path / "f.voile", lambda _: pa.concat_tables([first, rows])))


DIAGONAL = {
    "attributes": [
        {"name": "a", "kind": "integer", "range": [0, 99]},
        {"name": "b", "kind": "integer", "range": [0, 99]},
        {"name": "c", "kind": "integer", "range": [0, 4]},
    ]
}


@pytest.mark.parametrize("floor", [None, 0.001, 0.01])
def test_true_rows_in_the_place_of_shaped_noise(floor: float | None, tmp_path: Path) -> None:
    """Two columns are one: noise of their product lies beside the diagonal, and records do not."""
    rng, number = np.random.default_rng(0), 20_000
    a = np.where(
        rng.random(number) < 0.98, rng.integers(0, 20, number), rng.integers(0, 100, number)
    )
    table = pa.table({"a": a, "b": a, "c": rng.integers(0, 5, number)})
    release = voile.publish(
        table, to=tmp_path / "s.voile", prior=0.005, schema=DIAGONAL, noise_prior="product",
        noise_floor=floor, simulate_seed=1,
    )  # fmt: skip
    assert voile.verify(release.path)
    drawn = np.sort(rng.integers(0, number, release.manifest.rows))
    rows = table.take(pa.array(drawn)).sort_by([(name, "ascending") for name in "abc"])
    refused(forged(release, tmp_path / "true.voile", lambda old: rows.cast(old.schema)))


@pytest.mark.parametrize("cap", [0.01, 0.4, 50.0])
@pytest.mark.parametrize("strength", [0.5, 6.0, 5000.0])
def test_no_more_shaped_noise_is_expected_than_there_is(cap: float, strength: float) -> None:
    """In every cell, against the sum over its tuples; and no less where noise is even within."""
    sizes = (3, 700, 4)
    weights = np.random.default_rng(2).pareto(1, 700) + 1e-3
    prior = Product((whole_parts([5, 1, 0]), whole_parts(weights.tolist()), None))
    shape = Shaped(0.5, 0.002, strength, cap, prior, sizes)
    codes = [code.ravel() for code in np.indices(sizes)]
    mean = shape.noise_mean(codes)
    chance = mean / (1 + mean)
    cells = cells_for(["a", "b", "c"], list(sizes), math.inf, 1)
    assert len(cells) == 7
    bounds = expected_tuples(cells, sizes, 0.002 / 1.002, shape)
    for some, found in zip(cells, bounds, strict=True):
        exact = np.bincount(some.places(codes), chance, len(some.shares))
        assert (found <= exact * (1 + 1e-12)).all() and found.sum() > 0.05 * exact.sum()
        even = np.bincount(some.places(codes), chance**2, len(some.shares))
        alike = even * some.shares * math.prod(sizes) <= exact**2 * (1 + 1e-9)
        assert (found[alike] >= 0.99 * exact[alike]).all()
    often = expected_repeated(cells, bounds, math.prod(sizes), 0.002 / 1.002)
    for j, found in enumerate(often.tolist(), start=1):
        assert found <= (chance**j).sum() * (1 + 1e-12)


def test_a_bomb_of_equal_rows(view: Release, tmp_path: Path) -> None:
    """A few kilobytes that are a million rows; the same as 240 million, but for the waiting."""

    def bomb(table: pa.Table) -> pa.Table:
        return table.slice(0, 1).take(pa.array(np.zeros(2**20, np.int64)))

    refused(forged(view, tmp_path / "bomb.voile", bomb))


def test_less_noise_than_is_stated(view: Release, tmp_path: Path) -> None:
    keep = np.random.default_rng(0).random(view.manifest.rows) < 0.7
    refused(forged(view, tmp_path / "less.voile", lambda t: t.filter(pa.array(keep))))


def test_rows_that_are_not_in_the_order_of_the_domain(view: Release, tmp_path: Path) -> None:
    """Their order could say something of the table's."""
    mixed = np.random.default_rng(0).permutation(view.manifest.rows)
    folder = forged(view, tmp_path / "mixed.voile", lambda t: t.take(pa.array(mixed)))
    with pytest.raises(ReleaseError, match="not in the order of the domain"):
        voile.verify(folder)


def test_true_rows_in_the_place_of_perturbed_ones(tmp_path: Path) -> None:
    release = voile.perturb(ADULT, 0.5, columns=COLUMNS, to=tmp_path / "p.voile", simulate_seed=1)
    rows = true_rows(release)
    refused(forged(release, tmp_path / "true.voile", lambda _: rows))


def test_tables_of_counts_without_noise(tmp_path: Path) -> None:
    release = voile.publish(
        ADULT, method="conjuncts", columns=COLUMNS, direct=True, delta=5.0, to=tmp_path / "c.voile",
        simulate_seed=1,
    )  # fmt: skip
    rows = true_rows(release)

    def exact(table: pa.Table) -> pa.Table:
        names = [name for name in table.column_names if name in COLUMNS]
        counted = rows.group_by(names).aggregate([([], "count_all")])
        joined = (
            table.append_column("place", pa.array(np.arange(table.num_rows)))
            .join(counted, names)
            .sort_by("place")
        )
        true = joined.column("count_all").fill_null(0).cast(pa.int64())
        return table.set_column(
            table.num_columns - 1, table.schema.field(table.num_columns - 1), true
        )

    found = refused(forged(release, tmp_path / "exact.voile", exact, rows=release.manifest.rows))
    assert "agree too well" in found


def test_what_cannot_be_seen_is_not_claimed(tmp_path: Path) -> None:
    """Classes have no law of chance; collected rows are what clients sent."""
    voile.publish(
        ADULT, method="mondrian", qi=["age", "sex"], sensitive=["occupation"], k=5,
        identifiers=["workclass", "education", "marital_status", "race"], to=tmp_path / "k.voile",
    )  # fmt: skip
    found = examine(tmp_path / "k.voile")
    assert found.ok and found.rows_plausible is None and found.terms
    done = run("verify", str(tmp_path / "k.voile"))
    assert done.returncode == 0 and "plausible" not in done.stdout
    assert "cannot be seen from it" in " ".join(done.stdout.split())
    assert plausibility.FALSE_ALARM == 1e-9


def test_statistics_by_which_rows_are_skipped(view: Release, tmp_path: Path) -> None:
    """A lying maximum would hide rows from whoever counts, and from nobody who checks."""
    folder = forged(view, tmp_path / "s.voile", lambda table: table, statistics=True)
    with pytest.raises(ReleaseError, match="has statistics"):
        voile.verify(folder)


def test_little_gaussian_noise_is_not_suspected() -> None:
    """Discrete Gaussian noise of a small σ has far less variance than σ², and the same tails."""
    rng = np.random.default_rng(8)
    table = pa.table({name: pa.array(rng.random(200) < 0.5) for name in "abc"})
    for seed in range(rounds(10, 400)):
        voile.publish(table, method="conjuncts", direct=True, noise="gaussian", rho=40.0,
                      simulate_seed=seed)  # fmt: skip
