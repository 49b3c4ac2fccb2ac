"""Tables of counts as a release: what is published, what is promised, what verify refuses."""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from typer.testing import CliRunner

import voile
from tests.support.sampling import FALSE_ALARM, assert_fits, fits
from voile.cli import app
from voile.errors import PromiseError, QueryError, ReleaseError, TableError, UsageError
from voile.files import sha256
from voile.kinds.counts.manifest import (
    CHANGE,
    ConjunctManifest,
    ConjunctParameters,
    promise_for_delta,
    promise_for_rho,
)
from voile.kinds.counts.publishing import check_sizes, count_table, counted
from voile.kinds.counts.release import file_schema
from voile.kinds.manifest import File
from voile.noise import Key
from voile.noise.keyed import first_side
from voile.privacy.interactive.laws import Change
from voile.privacy.interactive.promise import breaches
from voile.progress import Silent
from voile.release import ConjunctRelease

SEED = 5


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], 1001),
            "smoker": rng.random(1001) < 0.3,
            "band": rng.integers(0, 4, 1001),
        }
    )


def published(frame: pd.DataFrame, **more: Any) -> ConjunctRelease:
    options: dict[str, Any] = {"rho": 0.2, "simulate_seed": SEED, "name": "people"} | more
    release: ConjunctRelease = voile.publish(frame, method="conjuncts", **options)
    return release


def true_counts(frame: pd.DataFrame, release: ConjunctRelease, some: tuple[str, ...]) -> Any:
    """Of all rows, by pandas, in the order of the domain."""
    found = frame.groupby(list(some)).size()
    sizes = [release.schema[name].size for name in some]
    assert len(found) == math.prod(sizes)  # every combination occurs
    return found.to_numpy()


# ---------------------------------------------------------------------- what is published


def test_both_sides_sum_to_the_table_but_for_noise(frame: pd.DataFrame) -> None:
    """Every figure's noise has the stated law; two sides of every half count every row once."""
    release = published(frame, arity=1, subsets=300)
    law, noise = release.manifest.law, []
    for some in release.manifest.sets:
        counts = release.counts(some)
        assert counts.shape == (300, 2, len(true_counts(frame, release, some)))
        noise.append((counts.sum(axis=1) - true_counts(frame, release, some)).ravel())
    found = np.concatenate(noise) / math.sqrt(2 * law.variance)
    assert stats.kstest(found, "norm").pvalue > FALSE_ALARM
    assert stats.kstest(1.2 * found, "norm").pvalue < FALSE_ALARM


def test_noise_has_its_exact_law(frame: pd.DataFrame) -> None:
    """Both sides together have the noise of twice the coins; of a fifth fewer it would not fit."""
    release = published(frame, arity=3, subsets=200, rho=40.0, eta=0.05)
    (some,) = release.manifest.sets
    coins = 2 * int(release.manifest.law.parameter)
    assert coins == 2 * 4 * 2 * 200 / (2 * 40)  # R/4 = 2·V, V = T/2ρ
    noise = (release.counts(some).sum(axis=1) - true_counts(frame, release, some)).ravel()
    observed = np.bincount(noise + coins // 2, minlength=coins + 1)
    assert_fits(observed, stats.binom.pmf(np.arange(coins + 1), coins, 0.5))
    fewer = stats.binom.pmf(np.arange(coins + 1) - coins // 10, coins - coins // 5, 0.5)
    assert not fits(observed, fewer)


def test_halves_are_halves_and_all_alike() -> None:
    """Of 5 rows, each of the 10 sets of 3 is as likely as any other."""
    key, seen = Key.from_seed(3), dict[tuple[int, ...], int]()
    for half in range(4000):
        side = tuple(sorted(first_side(key, half, 5).tolist()))
        assert len(side) == 3
        seen[side] = seen.get(side, 0) + 1
    assert set(seen) == set(combinations(range(5), 3))
    assert_fits(list(seen.values()), [0.1] * 10)


@pytest.mark.parametrize("halves", [0, 7])
def test_a_replaced_row_moves_two_figures_of_a_table_by_one(halves: int) -> None:
    """What noise is made for: over both sides together l1 = 2 and l2² = 2, and never more."""
    rng, sizes = np.random.default_rng(8), (2, 3, 2)
    sets = list(combinations(range(3), 2))
    codes = [rng.integers(0, size, 9) for size in sizes]
    for row in range(9):
        others = [c.copy() for c in codes]
        for c, size in zip(others, sizes, strict=True):
            c[row] = rng.integers(0, size)
        tables = [list(counted(c, sizes, sets, halves, Key.from_seed(1), Silent()))
                  for c in (codes, others)]  # fmt: skip
        for one, other in zip(*tables, strict=True):
            moved = (one - other).reshape(max(1, halves), -1)
            assert (np.abs(moved).sum(axis=1) <= CHANGE.l1).all()
            assert ((moved**2).sum(axis=1) <= CHANGE.l2_squared).all()
            assert set(np.abs(moved).sum(axis=1)) <= {0, 2}


def test_counting_in_pieces_is_counting_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, sizes = np.random.default_rng(9), (2, 3, 4)
    codes = [rng.integers(0, size, 50) for size in sizes]
    sets = list(combinations(range(3), 2))
    whole = list(counted(codes, sizes, sets, 3, Key.from_seed(1), Silent()))
    monkeypatch.setattr("voile.kinds.counts.publishing.MEMORY", 1)
    parts = list(counted(codes, sizes, sets, 3, Key.from_seed(1), Silent()))
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(a, b)


def test_nothing_of_the_truth_is_inside(frame: pd.DataFrame) -> None:
    """No figure is there without noise, and no membership: the files are the tables alone."""
    release = published(frame, arity=2, subsets=4)
    names = {p.relative_to(release.path).as_posix() for p in release.path.rglob("*") if p.is_file()}
    assert names == {"README.md", "datapackage.json", "manifest.json",
                     *(f"data/table-000{i}.parquet" for i in (1, 2, 3))}  # fmt: skip
    table = release.table(("sex", "band"))
    assert table.column_names == ["half", "side", "sex", "band", "count"]
    text = (release.path / "manifest.json").read_text()
    assert "5" not in json.loads(text)["name"] and "seed" not in text.replace("chosen seed", "")


def test_columns_may_have_the_names_of_ours() -> None:
    frame = pd.DataFrame({"half": ["x", "y"] * 20, "count": [1, 2, 3, 4] * 10})
    release = published(frame, arity=1, subsets=3)
    assert release.table(("half",)).column_names == ["half_1", "side", "half", "count_1"]
    voile.verify(release)
    assert release.query("select count(*) from t where half = 'x'").value == pytest.approx(
        20, abs=9
    )


def test_two_releases_differ(frame: pd.DataFrame) -> None:
    """Without a seed every release draws its own halves and its own noise."""
    a, b = (voile.publish(frame, method="conjuncts", arity=1, subsets=5) for _ in range(2))
    assert not np.array_equal(a.counts(("sex",)), b.counts(("sex",)))
    assert not a.manifest.simulated


def test_gaussian_noise(frame: pd.DataFrame) -> None:
    pytest.importorskip("opendp")
    release = voile.publish(frame, method="conjuncts", arity=1, direct=True, noise="gaussian")
    voile.verify(release)
    assert release.manifest.guarantee.rho_holds
    assert release.manifest.law.variance == pytest.approx(
        2 * release.manifest.parameters.unit_variance
    )


# ---------------------------------------------------------------------- what is promised


@pytest.mark.parametrize("kind", ["binomial", "gaussian"])
def test_the_promise_is_kept_and_not_by_less_noise(kind: str) -> None:
    """For a histogram, of which a row moves two cells; with 5 % less noise it is broken."""
    promise = promise_for_delta(kind, 1.0, 1e-4, 40)
    assert promise.breach <= 1e-4
    less = breaches(kind, 0.95 * promise.unit_variance, 40, 1.0, CHANGE)
    assert less.end > 1e-4
    assert promise.rho == pytest.approx(40 / (2 * promise.unit_variance))


def test_rho_is_the_total_of_all_tables() -> None:
    promise = promise_for_rho("gaussian", 0.5, 1e-6, 504)
    assert promise.unit_variance == 504.0  # T/2ρ
    assert promise.rho == pytest.approx(0.5)
    # −z√(2ρ)… from the normal walk: δ = T/2V + z·√(T/V)
    assert promise.delta == pytest.approx(0.5 - stats.norm.ppf(1e-6), rel=2e-3)
    assert promise.epsilon == pytest.approx(4.88655, rel=1e-3)  # the oracle's, at T/V = 1


def test_change_is_that_of_a_histogram() -> None:
    assert Change(2, 2) == CHANGE


# ---------------------------------------------------------------------- verify


def test_verify_passes(frame: pd.DataFrame) -> None:
    voile.verify(published(frame, arity=2, subsets=6))
    voile.verify(published(frame, arity=3, direct=True, rho=0.02))


def tampered(release: ConjunctRelease, folder: Path, **changes: Any) -> Path:
    """The same release with other fields in its manifest, sealed again as if nothing had been."""
    release.save(folder)
    manifest = release.manifest.model_copy(update=changes).sealed()
    (folder / "manifest.json").write_text(manifest.text())
    return folder


def retold(release: ConjunctRelease, folder: Path, table: Any, number: int = 1) -> Path:
    """The same release with another table, hashed and sealed as if nothing had been."""
    release.save(folder)
    path = folder / f"data/table-{number:04d}.parquet"
    pq.write_table(table, path, write_statistics=False, store_schema=False)
    files = [
        File(path=f.path, bytes=path.stat().st_size, sha256=sha256(path), rows=table.num_rows)
        if f.path == f"data/table-{number:04d}.parquet"
        else f
        for f in release.manifest.files
    ]
    manifest = release.manifest.model_copy(update={"files": files}).sealed()
    (folder / "manifest.json").write_text(manifest.text())
    return folder


@pytest.fixture(scope="module")
def sound(frame: pd.DataFrame) -> ConjunctRelease:
    return published(frame, arity=1, subsets=4)


def with_counts(release: ConjunctRelease, change: Any) -> Any:
    table = release.table(("sex",))
    counts: npt.NDArray[np.int64] = table.column("count").to_numpy().copy()
    change(counts)
    return table.set_column(
        table.column_names.index("count"), file_schema(release.manifest, ("sex",)).field("count"),
        pa.array(counts),
    )  # fmt: skip


def test_verify_refuses_other_figures(sound: ConjunctRelease, tmp_path: Path) -> None:
    def far(counts: npt.NDArray[np.int64]) -> None:
        counts[0] = 1_000_000

    folder = retold(sound, tmp_path / "far.voile", with_counts(sound, far))
    with pytest.raises(ReleaseError, match="no noisy count"):
        voile.verify(folder)


def test_verify_refuses_a_changed_file(sound: ConjunctRelease, tmp_path: Path) -> None:
    sound.save(tmp_path / "x.voile")
    path = tmp_path / "x.voile/data/table-0001.parquet"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(ReleaseError, match="was changed"):
        voile.verify(tmp_path / "x.voile")


def test_verify_refuses_cells_in_another_order(sound: ConjunctRelease, tmp_path: Path) -> None:
    table = sound.table(("sex",))
    order = [1, 0, *range(2, table.num_rows)]
    folder = retold(sound, tmp_path / "o.voile", table.take(order))
    with pytest.raises(ReleaseError, match="cells in order"):
        voile.verify(folder)


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [
        ("delta", 0.5, "breach is"),
        ("eta", 1e-9, "does not keep δ"),
        ("rho", 0.1, "rho is 0.1"),
        ("epsilon", 0.1, "epsilon is 0.1"),
        ("breach", 1e-9, "breach is 1e-09"),
        ("unit", "a table", "unit is 'a table'"),
    ],
)
def test_verify_refuses_a_promise_that_the_noise_does_not_keep(
    field: str, value: Any, match: str, sound: ConjunctRelease, tmp_path: Path
) -> None:
    guarantee = sound.manifest.guarantee.model_copy(update={field: value})
    folder = tampered(sound, tmp_path / "p.voile", guarantee=guarantee)
    with pytest.raises(ReleaseError, match=match):
        voile.verify(folder)


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [
        ("arity", 2, "figures are not all"),
        ("halves", 5, "tables are not all"),
        ("noise_parameter", 2, "the noise is not"),
        ("unit_variance", 1.0, "the noise is not"),
        ("tables", 11, "tables are not all"),
    ],
)
def test_parameters_that_contradict_each_other_do_not_open(
    field: str, value: Any, match: str, sound: ConjunctRelease, tmp_path: Path
) -> None:
    parameters = sound.manifest.parameters.model_dump() | {field: value}
    folder = tampered(sound, tmp_path / "c.voile", parameters=ConjunctParameters(**parameters))
    with pytest.raises(ReleaseError, match=match):
        voile.open(folder)


def test_verify_refuses_what_is_not_disclosed(sound: ConjunctRelease, tmp_path: Path) -> None:
    folder = tampered(sound, tmp_path / "d.voile", disclosed=[])
    with pytest.raises(ReleaseError, match="discloses"):
        voile.verify(folder)


# ---------------------------------------------------------------------- asking it


def test_answers_are_near_the_truth(frame: pd.DataFrame) -> None:
    release = published(frame, arity=2, direct=True, rho=0.1)
    truth = int(((frame.sex == "f") & frame.smoker).sum())
    estimate = release.query("select count(*) from people where sex = 'f' and smoker")
    low, high = estimate.interval(0.999)
    assert low <= truth <= high and high - low < 80
    explained = release.explain("select count(*) from people where sex = 'f' and smoker")
    assert explained["columns"][0]["tables"] == [["sex", "smoker"]]


def test_explain_names_the_ways_to_part_a_condition(frame: pd.DataFrame) -> None:
    release = published(frame, arity=1, subsets=40)
    found = release.explain("select count(*) from people where sex = 'f' and smoker")
    (split,) = found["columns"][0]["splits"]
    assert (split["left"], split["right"], split["weight"]) == ([["sex"]], [["smoker"]], 1.0)
    errors = found["columns"][0]["errors"]
    assert found["stderr"] == pytest.approx(math.hypot(*errors.values()), rel=0.02)
    with pytest.raises(QueryError, match="3 columns at once"):
        release.query("select count(*) from people where sex = 'f' and smoker and band = 1")


def test_simultaneous_intervals_are_wider(frame: pd.DataFrame) -> None:
    release = published(frame, arity=2, subsets=20)
    sql = "select band, count(*) from people group by band"
    one, all_ = (release.query(sql, simultaneous=s) for s in (False, True))
    widths = [high - low for answer in (one, all_) for row in answer.rows
              for low, high in [row["count"].interval()]]  # fmt: skip
    assert max(widths[:4]) < min(widths[4:])
    assert "all 4 groups at once" in all_.covers


def test_description_shows_both_ways(frame: pd.DataFrame) -> None:
    text = published(frame, arity=1, subsets=40).describe()
    assert "| tables of 1 column, of halves |" in text and "this release" in text
    assert "Halves save figures, not privacy" in text
    assert "Simulation" in text


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"arity": 0}, UsageError, "arity=0"),
        ({"arity": 4}, UsageError, "more than the 3 columns"),
        ({"subsets": 1}, UsageError, "subsets=1"),
        ({"subsets": 3, "direct": True}, UsageError, "does not go with direct="),
        ({"rho": 1.0, "delta": 1.0}, UsageError, "both given"),
        ({"rho": math.nan}, UsageError, "not a finite number"),
        ({"rho": None, "delta": -1.0}, UsageError, "δ = -1"),
        ({"eta": 0.7}, UsageError, "η = 0.7"),
        ({"noise": "uniform"}, UsageError, "'uniform' is not known"),
        ({"columns": ["sex", "none"]}, UsageError, "no column 'none'"),
        ({"nulls": "maybe"}, UsageError, "nulls='maybe'"),
        ({"rho": 50.0, "direct": True}, PromiseError, "so little that it excludes"),
        ({"k": 3}, UsageError, "no option 'k'"),
    ],
)
def test_refused(options: dict[str, Any], error: type, match: str, frame: pd.DataFrame) -> None:
    with pytest.raises(error, match=match):
        published(frame, **options)


def test_too_much_is_refused() -> None:
    with pytest.raises(PromiseError, match="figures, more than"):
        check_sizes(2, (100, 100), 2**25)
    with pytest.raises(PromiseError, match="sets of 5 of 30 columns"):
        check_sizes(5, (2,) * 30, 1)


def test_one_row_is_refused() -> None:
    with pytest.raises(TableError, match="one row alone"):
        published(pd.DataFrame({"a": [True]}), arity=1, subsets=9)


def test_nulls(frame: pd.DataFrame) -> None:
    holes = frame.copy()
    holes["sex"] = holes["sex"].astype(object)
    holes.loc[:10, "sex"] = None
    with pytest.raises(TableError, match="NULLs"):
        published(holes, arity=1)
    dropped = published(holes, arity=1, direct=True, nulls="drop")
    assert dropped.rows == 990
    assert "in which nothing is missing" in dropped.manifest.disclosed[0].what
    kept = published(holes, arity=1, direct=True, nulls="as-value")
    assert kept.rows == 1001
    missing = kept.query("select count(*) from t where sex is null").scalar
    assert missing.value == pytest.approx(11, abs=4 * missing.stderr)
    voile.verify(kept)


def test_a_poor_number_of_halves_is_told(frame: pd.DataFrame) -> None:
    poor = count_table(frame, arity=1, subsets=2000, rho=0.1, simulate_seed=1)
    assert any("subsets=" in note and "would err less" in note for note in poor.notes)
    best = count_table(frame, arity=1, rho=0.1, simulate_seed=1)
    assert not any("would err less" in note for note in best.notes)


# ---------------------------------------------------------------------- the commands


def test_commands(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.to_parquet(tmp_path / "people.parquet")
    run, place = CliRunner(), str(tmp_path / "people.voile")
    made = run.invoke(app, ["publish", str(tmp_path / "people.parquet"), "-o", place, "--method",
                            "conjuncts", "--arity", "1", "--subsets", "30", "--json"])  # fmt: skip
    assert made.exit_code == 0, made.output
    told = json.loads(made.stdout)
    assert told["parameters"]["halves"] == 30 and told["rows_out"] == 30 * 2 * 8
    assert told["comparison"]["direct_error"] < told["comparison"]["error"]
    for command in (["verify", place], ["describe", place], ["guarantees", place],
                    ["explain", place, "select count(*) from people where smoker and sex = 'f'"],
                    ["query", place, "select sex, count(*) from people group by sex", "--json"],
                    ["shell", place, "-c", "select count(*) from people"]):  # fmt: skip
        done = run.invoke(app, command)
        assert done.exit_code == 0, done.output
    kinds = json.loads(run.invoke(app, ["guarantees", place, "--json"]).stdout)
    assert [one["kind"] for one in kinds] == ["delta-T", "approximate-dp"]
    refused = run.invoke(app, ["loss", str(tmp_path / "people.parquet"), place,
                               "--sensitive", "smoker", "--qi", "sex"])  # fmt: skip
    assert refused.exit_code != 0


def test_manifest_is_of_its_kind(sound: ConjunctRelease) -> None:
    assert isinstance(sound.manifest, ConjunctManifest)
    with pytest.raises(UsageError, match="no rows of people"):
        sound.to_arrow()
    with pytest.raises(UsageError, match=r"no table of \(sex, band\)"):
        sound.table(("sex", "band"))
    with pytest.raises(UsageError, match="one way"):
        sound.query("select count(*) from people", method="em")
