"""Noisy marginals as a release: what is published, promised and verified, and what is refused."""

from __future__ import annotations

import json
import math
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voile
from tests.support.forging import forged, sealed
from tests.support.running import voile as run
from voile.engines import connect
from voile.errors import PromiseError, QueryError, ReleaseError, TableError, UsageError
from voile.evaluate.workload import selection_counts
from voile.kinds.marginals.counting import CodeCounter
from voile.kinds.marginals.publishing import measure_table
from voile.privacy.gaussian import rise_chance
from voile.release import MarginalRelease, verify


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    n = 1500
    band = rng.integers(0, 6, n)
    return pd.DataFrame(
        {
            "band": band,
            "sex": rng.choice(["f", "m"], n),
            "ill": rng.random(n) < 0.1 + 0.1 * band,
            "place": rng.choice(["a", "b", "c"], n),
        }
    )


def published(frame: pd.DataFrame, **more: Any) -> MarginalRelease:
    options: dict[str, Any] = {"epsilon": 1.0, "order": 2, "name": "people"} | more
    release: MarginalRelease = voile.publish(
        frame, method="marginals", **{"schema": "active", **options}
    )
    return release


@pytest.fixture(scope="module")
def release(frame: pd.DataFrame) -> MarginalRelease:
    return published(frame)


# ---------------------------------------------------------------------- what is published


def test_figures_are_whole_centred_counts_with_noise(
    frame: pd.DataFrame, release: MarginalRelease
) -> None:
    """Of every measurement, no figure is further from the truth than eight standard deviations."""
    plan = release.manifest.plan
    codes, _ = connect(frame).columns_of_codes(release.schema, drop_nulls=False)
    coded = CodeCounter(codes, plan.sizes, len(frame))
    for m, figure in zip(plan.measurements, release.figures, strict=True):
        true = coded.counts(m.columns).astype(float)
        for axis in range(true.ndim):
            true = true - true.mean(axis=axis, keepdims=True)
        off = figure - true.ravel() * plan.cells(m)
        assert (np.abs(off) < 8 * m.scale + 1).all()
        assert off.any()


def test_the_promise_is_the_exact_account(release: MarginalRelease) -> None:
    """ε at δ of a Gaussian mechanism with μ, from the scales alone."""
    g, plan = release.manifest.guarantee, release.manifest.plan
    mu2 = sum(
        math.prod(1 - 1 / plan.sizes[i] for i in m.columns) * (plan.cells(m) / m.scale) ** 2
        for m in plan.measurements
    )
    assert g.mu == pytest.approx(math.sqrt(mu2), rel=1e-9)
    assert g.rho == pytest.approx(mu2 / 2, rel=1e-9)
    assert g.epsilon <= 1.0
    assert g.epsilon == pytest.approx(1.0, rel=1e-6)
    kinds = [one.data["kind"] for one in release.promised()]
    assert kinds == ["approximate-dp", "zcdp", "gdp"]
    assert all(one.data["unit"] == "add-remove" for one in release.promised())


def test_the_number_of_rows_is_private_where_rows_come_and_go(
    frame: pd.DataFrame, release: MarginalRelease
) -> None:
    """Nothing in the release has the number of rows, unless rows are exchanged."""
    assert release.manifest.public_rows is None
    assert not any("number of rows" in d.what for d in release.manifest.disclosed)
    assert release.estimated_rows != len(frame)
    exchanged = published(frame, unit="exchange")
    assert exchanged.manifest.public_rows == len(frame)
    assert any("number of rows" in d.what for d in exchanged.manifest.disclosed)
    answer = exchanged.query("select count(*) as n from people").to_pandas().iloc[0]
    assert answer["n"] == pytest.approx(len(frame))
    assert answer["n_stderr"] == pytest.approx(0, abs=1e-6)


def test_pure_noise_promises_epsilon_alone(frame: pd.DataFrame) -> None:
    """ε adds up over the tables, and no δ is needed."""
    release = published(frame, pure=True, epsilon=2.0)
    g = release.manifest.guarantee
    assert g.kind == "dp"
    assert g.delta == 0
    assert g.epsilon <= 2.0
    assert g.epsilon == pytest.approx(sum(1 / m.scale for m in release.manifest.plan.measurements))
    assert release.promised()[0].data == {"kind": "dp", "epsilon": g.epsilon, "unit": "add-remove"}
    assert verify(release.path)


def test_all_tables_of_an_order_are_there(frame: pd.DataFrame) -> None:
    """Larger tables that stand for several do not make the order larger than it is."""
    release = published(frame, pure=True, order=1)
    order = release.manifest.parameters.order
    for k in range(1, order + 1):
        for some in combinations(release.schema.names, k):
            assert release.table(some).ndim == k
    assert order < max(len(m.columns) for m in release.manifest.plan.measurements)


def test_rho_may_be_asked_for(frame: pd.DataFrame) -> None:
    """The promise is then said in ρ first."""
    release = published(frame, epsilon=None, rho=0.1)
    assert release.manifest.guarantee.rho == pytest.approx(0.1, rel=1e-6)
    assert release.promised()[0].data["kind"] == "zcdp"


def test_named_tables_alone_are_measured(frame: pd.DataFrame) -> None:
    """And their parts; other columns together are the model's to answer."""
    release = published(frame, order=None, tables=[("band", "ill"), ("sex",)])
    measured = {tuple(m.columns) for m in release.manifest.parameters.measurements}
    assert measured == {(), ("band",), ("ill",), ("band", "ill"), ("sex",)}
    assert release.table(("ill", "band")).shape == (2, 6)
    with pytest.raises(UsageError, match="no table of"):
        release.table(("sex", "band"))


def test_the_same_seed_makes_the_same_release(frame: pd.DataFrame) -> None:
    """A simulation can be repeated, and is marked; a real release cannot."""
    one, other = (published(frame, simulate_seed=5) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one.figures, other.figures, strict=True))
    assert one.manifest.simulated
    real, again = published(frame), published(frame)
    assert not all(np.array_equal(a, b) for a, b in zip(real.figures, again.figures, strict=True))


# ---------------------------------------------------------------------- tables of every shape


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("epsilon", [0.01, 50.0])
def test_tiny_and_huge_budgets(frame: pd.DataFrame, epsilon: float, pure: bool) -> None:
    """Both are published, verified and answered, with intervals as wide as they must be."""
    release = published(frame, epsilon=epsilon, pure=pure, simulate_seed=1)
    assert verify(release.path)
    found = release.query("select sex, count(*) as n from people group by sex").to_pandas()
    truth = frame.sex.value_counts()[["f", "m"]].to_numpy()
    assert np.isfinite(found[["n", "n_stderr", "n_low", "n_high"]]).all().all()
    assert ((found.n - truth).abs() <= 6 * found.n_stderr + 2).all()


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": ["x"] * 30}),
        pd.DataFrame({"a": ["x", "y"] * 20}),
        pd.DataFrame({"a": ["x"] * 40, "b": [1, 2] * 20}),
        pd.DataFrame({"a": ["x", "y", None] * 20}),
    ],
    ids=["one value", "one column", "a column of one value", "NULLs"],
)
def test_narrow_tables(table: pd.DataFrame) -> None:
    """One column, one value, NULLs: all can be published and asked."""
    release = voile.publish(
        table,
        method="marginals",
        schema="active",
        epsilon=5,
        nulls="as-value",
        name="t",
        simulate_seed=2,
    )
    assert verify(release.path)
    found = release.query("select count(*) as n from t").to_pandas().iloc[0]
    assert abs(found.n - len(table)) <= 6 * found.n_stderr + 1


def test_an_empty_table_needs_a_codebook() -> None:
    """With one, its release is noise alone, and verifies."""
    empty = pd.DataFrame({"a": pd.Series([], dtype=str)})
    with pytest.raises(TableError, match="no rows"):
        voile.publish(empty, method="marginals", epsilon=1)
    schema = {"attributes": [{"name": "a", "kind": "categorical", "values": ["x", "y"]}]}
    release = voile.publish(empty, method="marginals", epsilon=1, schema=schema, name="t")
    assert verify(release.path)
    found = release.query("select count(*) as n from t").to_pandas().iloc[0]
    assert found.n <= 6 * found.n_stderr + 1


# ---------------------------------------------------------------------- verification


def changed(table: Any, figures: Any) -> Any:
    place = table.column_names.index("figure")
    return table.set_column(place, table.field("figure"), pa.array(figures, pa.int64()))


def test_figures_without_noise_are_found(release: MarginalRelease, tmp_path: Path) -> None:
    """True figures, a seventh of the noise, and three times it are not what was stated."""
    plan = release.manifest.plan
    centred = []
    for m, figure in zip(plan.measurements, release.figures, strict=True):
        table = figure.reshape([plan.sizes[i] for i in m.columns]).astype(float)
        for axis in range(table.ndim):
            table = table - table.mean(axis=axis, keepdims=True)
        centred.append(np.rint(table).astype(int).ravel())
    noise = [figure - c for figure, c in zip(release.figures, centred, strict=True)]
    for name, times in (("none", 0.0), ("little", 0.15), ("much", 3.0)):
        figures = np.concatenate(
            [c + np.rint(times * e).astype(int) for c, e in zip(centred, noise, strict=True)]
        )
        copy = forged(release, tmp_path / f"{name}.voile", partial(changed, figures=figures))
        with pytest.raises(ReleaseError, match="not what the stated noise makes"):
            verify(copy)
    assert verify(release.path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"epsilon": 0.5}, "epsilon is"),
        ({"delta": 1e-12}, "epsilon is"),
        ({"rho": 1e-3}, "rho is"),
        ({"mu": 0.1}, "mu is"),
        ({"kind": "dp"}, "does not follow"),
        ({"unit": "exchange"}, "promise for"),
    ],
)
def test_a_promise_that_the_noise_does_not_keep_is_refused(
    release: MarginalRelease, tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    """Every number of the guarantee follows from the scales."""
    stated = release.manifest.guarantee.model_dump() | change
    copy = forged(release, tmp_path / "copy.voile", lambda t: t, guarantee=stated)
    with pytest.raises(ReleaseError, match=why):
        verify(copy)


def test_a_smaller_scale_is_found(release: MarginalRelease, tmp_path: Path) -> None:
    """Less noise than drawn makes the promise better on paper, and the figures implausible."""
    stated = release.manifest.parameters.model_dump()
    for one in stated["measurements"]:
        one["scale"] *= 2
    copy = forged(release, tmp_path / "copy.voile", lambda t: t, parameters=stated)
    with pytest.raises(ReleaseError):
        verify(copy)


def test_a_model_that_is_no_mixture_is_refused(release: MarginalRelease, tmp_path: Path) -> None:
    """Shares that do not add up, or are not there."""

    def doubled(table: Any) -> Any:
        share = np.array(table.column("share")) * 2
        return table.set_column(3, table.field("share"), pa.array(share))

    copy = forged(release, tmp_path / "one.voile", doubled, where="model/")
    with pytest.raises(ReleaseError, match="do not add up"):
        verify(copy)
    short = forged(release, tmp_path / "two.voile", lambda t: t.slice(1), where="model/")
    with pytest.raises(ReleaseError):
        verify(short)


def test_cells_out_of_order_are_refused(release: MarginalRelease, tmp_path: Path) -> None:
    """Two rows of the file in each other's place."""

    def swapped(table: Any) -> Any:
        order = np.arange(table.num_rows)
        order[[1, 2]] = [2, 1]
        return table.take(order)

    copy = forged(release, tmp_path / "copy.voile", swapped)
    with pytest.raises(ReleaseError, match="in order"):
        verify(copy)
    sealed(copy)


@pytest.mark.parametrize(
    "change",
    [{"rows": 2.0**62}, {"rows": 0.0}, *({"law": {name: value}} for name, value in (
        ("caution", 1e300), ("far", 1e308), ("unit", 1e308), ("unit", 1e-300), ("rows", 0.0),
        ("rows_variance", 0.0), ("error", [1e308] * 32),
    ))],
)  # fmt: skip
def test_absurd_numbers_of_a_model_are_refused(
    release: MarginalRelease, tmp_path: Path, change: dict[str, Any]
) -> None:
    """Before a question fails on them; and the model counts the rows that the tables count."""
    stated = release.manifest.model.model_dump()
    law = stated["law"] | change.get("law", {})
    with pytest.raises((ReleaseError, ValueError)):
        verify(
            forged(
                release,
                tmp_path / "copy.voile",
                lambda t: t,
                model=stated | change | {"law": law},
            )
        )


def test_a_broken_model_answers_nothing(release: MarginalRelease, tmp_path: Path) -> None:
    """Shares that are no numbers are refused by whatever reads them, verified or not."""

    def broken(table: Any) -> Any:
        return table.set_column(3, table.field("share"), pa.array([math.nan] * len(table)))

    copy = voile.open(forged(release, tmp_path / "copy.voile", broken, where="model/"))
    assert isinstance(copy, MarginalRelease)
    with pytest.raises(ReleaseError, match="do not add up"):
        copy.rows(5)
    with pytest.raises(ReleaseError, match="do not add up"):
        copy.query("select median(band) from people")


@pytest.mark.parametrize("pure", [False, True])
def test_the_look_at_the_rows_agrees_with_the_tables(
    frame: pd.DataFrame, tmp_path: Path, pure: bool
) -> None:
    """It moves every answer, so that it is no figure to be made up."""
    release = published(frame, order=None, pure=pure)
    assert verify(release.path)
    stated = release.manifest.parameters.model_dump()
    for place, figure in enumerate((10**6, -(10**17), 10**400)):
        with pytest.raises((ReleaseError, ValueError)):
            verify(
                forged(
                    release,
                    tmp_path / f"{place}.voile",
                    lambda t: t,
                    parameters=stated | {"rows_figure": figure},
                )
            )


def test_beliefs_about_what_a_row_holds_are_bounded(release: MarginalRelease) -> None:
    """Log-odds of two values rise by N(μ²/2, μ²), μ by all exchanges: no more often than stated."""
    plan = release.manifest.plan
    first, worst = (0,) * len(plan.sizes), 0.0
    for other in product(*map(range, plan.sizes)):
        square = 0.0
        for m in plan.measurements:
            ways = [np.ones(()), np.ones(())]
            for i in m.columns:
                for k, row in enumerate((first, other)):
                    one = plan.sizes[i] * np.eye(plan.sizes[i])[row[i]] - 1
                    ways[k] = np.multiply.outer(ways[k], one)
            square += float(((ways[0] - ways[1]) ** 2).sum()) / m.scale**2
        worst = max(worst, math.sqrt(square))
    assert worst > release.manifest.guarantee.mu  # type: ignore[operator]
    for one in release.belief_bounds().bounds:
        odds = one.posterior / (1 - one.posterior) * (1 - one.prior) / one.prior
        assert rise_chance(worst, math.log(odds)) <= one.eta


def test_a_choice_by_looking_has_its_price(release: MarginalRelease, tmp_path: Path) -> None:
    """Tables that were selected, for nothing: then μ would not hold."""
    stated = release.manifest.parameters.model_dump() | {"tables": "selected"}
    with pytest.raises((ReleaseError, ValueError), match="cost nothing"):
        verify(forged(release, tmp_path / "copy.voile", lambda t: t, parameters=stated))


def test_where_nothing_can_be_exchanged_nothing_is_published() -> None:
    """Columns of one value: no noise, no ε."""
    with pytest.raises(TableError, match="more than one value"):
        published(pd.DataFrame({"a": [1] * 50, "b": ["x"] * 50}), unit="exchange")


# ---------------------------------------------------------------------- synthetic rows


def test_rows_are_the_same_at_every_call(release: MarginalRelease) -> None:
    """From the seed in the release; more rows begin with the same ones."""
    rows = release.rows(500)
    assert rows.equals(release.rows(500))
    assert release.rows(800).slice(0, 500).equals(rows)
    assert rows.column_names == release.schema.names
    assert json.loads(rows.schema.metadata[b"voile"])["synthetic"] is True
    assert abs(release.rows().num_rows - release.manifest.model.rows) <= 0.5


def test_rows_follow_the_model(release: MarginalRelease) -> None:
    """Each value is as frequent as the model has it, within five standard deviations."""
    rows, n = release.rows(20_000).to_pandas(), 20_000
    for i, name in enumerate(release.schema.names):
        share = release.model.mixture.table((i,)) / release.model.mixture.rows
        found = rows[name].value_counts().sort_index().to_numpy()
        counted = np.zeros(len(share))
        counted[: len(found)] = found
        assert (np.abs(counted - n * share) <= 5 * np.sqrt(n * share * (1 - share)) + 1).all()


def test_rows_in_files_are_marked(release: MarginalRelease, tmp_path: Path) -> None:
    """Every row says that it is synthetic, and a Parquet file says so of itself."""
    path = release.save(tmp_path / "r.voile").path
    data = json.loads(
        run("rows", str(path), "-n", "50", "-o", str(tmp_path / "r.parquet"), "--json").stdout
    )
    assert data == {
        "release": str(path), "rows": 50, "path": str(tmp_path / "r.parquet"), "synthetic": True
    }  # fmt: skip
    table = pq.read_table(tmp_path / "r.parquet")
    assert table.column("synthetic").to_pylist() == [True] * 50
    assert json.loads(table.schema.metadata[b"voile"])["synthetic"] is True
    run("rows", str(path), "-n", "50", "-o", str(tmp_path / "r.csv"))
    frame = pd.read_csv(tmp_path / "r.csv")
    assert len(frame) == 50
    assert frame.synthetic.all()


def test_rows_that_a_spreadsheet_would_compute_are_named(tmp_path: Path) -> None:
    table = pa.table({"x": ["=1+1", "plain"] * 400, "y": ["a", "b"] * 400})
    made = voile.publish(table, method="marginals", epsilon=5, schema="active", simulate_seed=1)
    path, to = made.save(tmp_path / "f.voile").path, tmp_path / "f.csv"
    said = run("rows", str(path), "-n", "40", "-o", str(to))
    found = pd.read_csv(to, dtype=str).x.str.startswith("=").sum()
    assert 0 < found < 40
    assert f"{found} cells begin with =" in said.stderr
    assert "--csv-safe" in said.stderr
    safe = run("rows", str(path), "-n", "40", "-o", str(to), "--overwrite", "--csv-safe")
    assert "cells begin" not in safe.stderr


# ---------------------------------------------------------------------- wrong inputs


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": 1e9}, "epsilon"),
        ({"delta": 0.7}, "delta"),
        ({"delta": 0.0}, "delta"),
        ({"rho": 0.5}, "both given"),
        ({"epsilon": None, "rho": 0.5, "pure": True}, "pure"),
        ({"pure": True, "delta": 1e-6}, "pure"),
        ({"order": 0}, "order"),
        ({"order": 9}, "order"),
        ({"tables": [("band", "sex")]}, "both given"),
        ({"workload": ["select count(*) from people"]}, "both given"),
        ({"order": None, "tables": [("sex",)], "workload": ["select 1"]}, "both given"),
        ({"epsilon": None, "rho": 1e-19}, "rho"),
        ({"epsilon": None, "rho": 1e9}, "rho"),
        ({"order": None, "tables": [("band", "band")]}, "twice"),
        ({"order": None, "tables": [("band", "nobody")]}, "nobody"),
        ({"unit": "person"}, "unit"),
        ({"columns": ["nobody"]}, "nobody"),
    ],
)
def test_wrong_options_are_named(frame: pd.DataFrame, options: dict[str, Any], why: str) -> None:
    """What is wrong, where, and what to do."""
    with pytest.raises((UsageError, PromiseError, TableError), match=why) as caught:
        published(frame, **options)
    assert caught.value.hint


def test_what_the_steward_is_shown(frame: pd.DataFrame) -> None:
    """Rows, tables, the promise, and the error of counts."""
    done = measure_table(frame, schema="active", epsilon=1, order=2, name="people")
    facts = dict(done.facts())
    assert facts["rows"] == "1,500 in, 1,500 counted"
    assert "ε = 1" in facts["promise"]
    assert "counts of 1 column" in facts
    assert json.loads(json.dumps(done.to_dict()))["method"] == "marginals"


# ---------------------------------------------------------------------- all selections at once


@pytest.mark.parametrize("refine", [True, False])
def test_selections_at_once_are_the_answers_one_by_one(
    release: MarginalRelease, refine: bool
) -> None:
    """Order 2 is measured, order 3 is the model's: without a model nobody knows of these."""
    order = 3 if refine else 2
    sizes, names = release.schema.sizes, release.schema.names

    def count(codes: Any) -> Any:
        return selection_counts(codes, sizes, order)

    found = release.estimate_selections(count, refine=refine)
    expected = []
    for size in range(1, order + 1):
        for some in combinations(names, size):
            listed = ", ".join(f'"{name}"' for name in some)
            answer = release.query(
                f"select {listed}, count(*) from people group by {listed}", refine=refine
            )
            listing = answer.to_arrow().to_pylist()
            rows = {tuple(row[name] for name in some): row["count"] for row in listing}
            values = [list(release.schema[name]) for name in some]
            expected.append([rows[cell] for cell in product(*values)])
    assert found == pytest.approx(np.concatenate(expected), abs=1e-6)
    if not refine:
        with pytest.raises(QueryError, match="no table of these 3 columns"):
            release.estimate_selections(lambda codes: selection_counts(codes, sizes, 3))
