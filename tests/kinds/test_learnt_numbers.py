"""Numbers of ordinary tables under the default: 0 and 1, mostly zeros, columns that are lost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voile
from tests.support.soak import rounds
from voile.errors import TableError
from voile.kinds.marginals.release import MarginalRelease
from voile.schema import Bins
from voile.schema.places import domain_ends

SHARES = (0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9, 0.97)
"""Of ones, in the columns of a table of 0 and 1."""


def zeros_and_ones(rows: int) -> pd.DataFrame:
    draw = np.random.default_rng(31)
    return pd.DataFrame(
        {f"x{i}": (draw.random(rows) < p).astype(int) for i, p in enumerate(SHARES)}
    )


def published(table: pd.DataFrame, seed: int) -> MarginalRelease:
    found = voile.publish(table, simulate_seed=seed, yes=True, register=False)
    assert isinstance(found, MarginalRelease)
    return found


def estimate(release: MarginalRelease, sql: str) -> Any:
    (row,) = release.query(sql).rows
    return row["v"]


def test_averages_of_zeros_and_ones_are_shares() -> None:
    """Of 36 intervals that cover with probability 0.95 fewer than 30 do once in 900 times.

    Where the mean of an end was taken for that of a stretch that goes on, the rare ones missed:
    averages were half as large as the shares that the same release has.
    """
    table, covered, total, halves, widths = zeros_and_ones(8_000), 0, 0, 0, []
    for seed in range(1, rounds(3, 20) + 1):
        release = published(table, seed)
        for name, values in table.items():
            found = estimate(release, f"select avg({name}) as v from t")
            low, high = found.interval()
            if math.isnan(low):  # so few ones that noise hides whether there are others
                continue
            total += 1
            covered += low <= values.mean() <= high
            share = estimate(release, f"select count(*) filter (where {name} = 1) * 1.0 / count(*) "
                                      "as v from t")  # fmt: skip
            assert abs(found.value - share.value) < 4 * found.stderr
            halves += found.value < 0.7 * share.value
            if 0.3 <= values.mean() <= 0.7:
                widths.append(found.stderr / share.stderr)
    assert total >= 30
    assert halves == 0
    assert covered >= 0.94 * total - 4
    assert np.median(widths) < 6  # whether there are others than 0 and 1 is known with noise


def test_deviations_of_zeros_and_ones_are_those_of_shares() -> None:
    table = zeros_and_ones(8_000)
    release = published(table, 5)
    for name in ("x6", "x7", "x8"):
        found = estimate(release, f"select stddev_samp({name}) as v from t")
        low, high = found.interval()
        assert low <= table[name].std() <= high
        assert low >= 0 and high - low < 0.3


@pytest.fixture(scope="module")
def mostly_zeros() -> pd.DataFrame:
    draw = np.random.default_rng(32)
    some = draw.random(3_000) < 0.015
    table = pd.DataFrame({f"x{i}": draw.integers(0, 3, 3_000) for i in range(10)})
    return table.assign(visits=np.where(some, draw.integers(5, 90, 3_000), 0),
                        cost=np.where(some, draw.lognormal(7, 1, 3_000), 0.0))  # fmt: skip


@pytest.mark.parametrize("column", ["visits", "cost"])
def test_what_reaches_nobody_knows_how_far_has_no_interval(
    mostly_zeros: pd.DataFrame, column: str
) -> None:
    """1.5 % of the rows have an average that is all of the column's; noise hides which."""
    release = published(mostly_zeros, 1)
    account = release.manifest.schema_account
    assert account is not None
    assert {c.name for c in account.columns if c.open} == {"visits", "cost"}
    for statistic in (f"avg({column})", f"sum({column})", f"stddev_samp({column})"):
        answer = release.query(f"select {statistic} as v from t")
        assert all(map(math.isnan, answer.rows[0]["v"].interval())), statistic
        assert any("codebook with its bounds" in note for note in answer.notes)
    zeros = estimate(release, f"select count(*) as v from t where {column} = 0")
    assert abs(zeros.value - (mostly_zeros[column] == 0).sum()) < 4 * zeros.stderr
    middle = estimate(release, f"select median({column}) as v from t")
    assert middle.interval()[0] <= 0 <= middle.interval()[1]


def test_zeros_of_a_learnt_column_are_zeros() -> None:
    """A bin for zeros alone holds 0, not what lies in its middle; of 24 intervals fewer than 19
    hold the truth once in 7,000 times."""
    draw = np.random.default_rng(34)
    debt = np.where(draw.random(20_000) < 0.3, 0.0, draw.lognormal(6, 1, 20_000).round(2))
    table = pd.DataFrame({"debt": debt, "sex": draw.choice(["f", "m"], 20_000)})
    covered = 0
    for seed in range(1, 5):
        release = published(table, seed)
        for sql, truth in (
            ("count(*) filter (where debt > 0)", (debt > 0).sum()),
            ("count(*) filter (where debt = 0)", (debt == 0).sum()),
            ("count(*) filter (where debt <= 0)", (debt == 0).sum()),
            ("avg(case when debt > 0 then 1 else 0 end)", (debt > 0).mean()),
            ("sum(case when debt > 0 then 1 else 0 end)", (debt > 0).sum()),
            ("median(debt)", np.median(debt)),
        ):
            found = estimate(release, f"select {sql} as v from t")
            low, high = found.interval()
            covered += low <= truth <= high
            assert high - low < 0.5 * truth, sql
    assert covered >= 19


def test_a_domain_is_not_made_of_noise() -> None:
    """Later histograms have all rows in their ends, wherever these are: they show nothing."""
    draw = np.random.default_rng(35)
    table = pd.DataFrame({f"x{i}": draw.integers(2000, 2008, 250) for i in range(12)})
    for seed in range(6):
        release = published(table, seed)
        for attribute in release.schema:
            low, high = domain_ends(attribute)
            assert low <= 2007 and high >= 2000, attribute


def test_days_within_a_month_are_published() -> None:
    draw = np.random.default_rng(36)
    days = pd.Timestamp("2021-03-01") + pd.to_timedelta(draw.integers(0, 31, 2_000), "D")
    ones = {f"x{i}": draw.integers(0, 2, 2_000) for i in range(9)}
    for seed in (1, 2, 3):
        release = published(pd.DataFrame({"day": days.date, **ones}), seed)
        assert release.query("select count(*) from t where day >= '2021-03-01'").value > 1_000


def test_nan_in_parquet_is_null(tmp_path: Path) -> None:
    """Statistics in Parquet leave NaN out, and an engine that trusts them finds none."""
    numbers = np.random.default_rng(37).normal(10, 3, 5_000)
    numbers[7] = math.nan
    table = pa.table({"x": pa.array(numbers, from_pandas=False), "g": ["a", "b"] * 2_500})
    pq.write_table(table, tmp_path / "nan.parquet")
    read = voile.read(tmp_path / "nan.parquet")
    assert read.null_counts(["x"]) == {"x": 1}
    with pytest.raises(TableError, match=r"there are NULLs in 'x' \(1 row\)"):
        voile.publish(read, register=False)
    release = voile.publish(read, nulls="as-value", simulate_seed=1, register=False)
    assert abs(release.query("select count(*) from t where x is null").value - 1) < 100
    assert release.query("select avg(x) from t where x is not null").value == pytest.approx(10, 0.1)


def test_bounds_in_a_codebook_give_an_interval(mostly_zeros: pd.DataFrame) -> None:
    """What the note says to do, done."""
    schema = {"attributes": [
        {"name": name, "kind": "integer", "range": [0, 2]} for name in mostly_zeros.columns[:10]
    ] + [{"name": "visits", "kind": "integer", "range": [0, 100]}]}  # fmt: skip
    columns = [a["name"] for a in schema["attributes"]]
    release = voile.publish(mostly_zeros[columns], schema=schema, simulate_seed=1, yes=True,
                            register=False)  # fmt: skip
    assert isinstance(release, MarginalRelease)
    low, high = estimate(release, "select avg(visits) as v from t").interval()
    assert low <= mostly_zeros["visits"].mean() <= high


def test_a_column_of_which_noise_hides_everything_is_one_bin() -> None:
    """No numbers are made up where none can be seen."""
    draw = np.random.default_rng(33)
    table = pd.DataFrame({f"x{i}": draw.lognormal(0, 4, 400) for i in range(12)})
    done = voile.publish(table, simulate_seed=3, yes=True, register=False)
    lost = [a for a in done.schema if a.size == 1]
    assert lost and all(a.domain == Bins((-1e6, 1e6)) for a in lost)
    for statistic in ("avg", "median"):
        answer = done.query(f"select {statistic}({lost[0].name}) as v from t")
        assert all(map(math.isnan, answer.rows[0]["v"].interval()))
