"""Answers of releases, end to end: what was once wrong, and must not be again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import voile
from tests.answering.test_answering import CELLS, COUNT, SUM, estimator, truth_of, views
from tests.support.sampling import proportion_at_least
from voile.estimate import Estimate
from voile.mechanisms import AlphaBeta
from voile.query.aggregate import Call, Total
from voile.release import Release
from voile.schema import Attribute, Range, Schema, Values

SMALL = Schema(
    (
        Attribute("x", "integer", Range(0, 99)),
        Attribute("kind", "categorical", Values(("a", "b", "c"))),
        Attribute("year", "integer", Range(1950, 2020)),
        Attribute("stamp", "integer", Range(10**9, 10**9 + 99)),
    )
)


def table(rows: int = 3000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": rng.integers(0, 100, rows),
            "kind": rng.choice(["a", "b", "c"], rows),
            "year": rng.integers(1950, 2021, rows),
            "stamp": 10**9 + rng.integers(0, 100, rows),
        }
    )


@pytest.fixture(scope="module")
def release() -> Release:
    return voile.publish(table(), schema=SMALL, prior=1e-6, posterior=0.2, simulate_seed=1)


def only(release: Release, sql: str, **options: Any) -> Estimate:
    return release.query(sql, **options).scalar


# ---------------------------------------------------------------------- intervals


def test_a_ratio_whose_bottom_may_be_zero_may_be_anything() -> None:
    """The accepted ratios are then those beyond two limits, through infinity."""
    mechanism = AlphaBeta(0.5, 0.6)
    few = np.zeros(CELLS, dtype=np.int64)
    few[-1] = 30
    seen = views(mechanism, few, 3000, seed=11)
    for formula in (
        Call("/", (Total(SUM), Total(COUNT))),
        Call("/", (Total(COUNT), Total(SUM))),
    ):
        truth = truth_of(formula, few)
        for confidence in (0.5, 0.95, 0.999):
            low, high = estimator(mechanism, seen, formula).column(formula).interval(confidence)
            covered = int(((low <= truth) & (truth <= high)).sum())
            assert proportion_at_least(covered, len(seen), confidence)


def test_a_set_form_in_which_members_lower_the_variance() -> None:
    mechanism = AlphaBeta(0.99, 0.3, "set")
    assert mechanism.coins.kept_variance < 0
    full = np.ones(CELLS, dtype=np.int64)
    seen = views(mechanism, full, 3000, seed=12)
    for formula in (Total(SUM), Call("/", (Total(SUM), Total(COUNT)))):
        low, high = estimator(mechanism, seen, formula).column(formula).interval(0.95)
        truth = truth_of(formula, full)
        covered = int(((low <= truth) & (truth <= high)).sum())
        assert proportion_at_least(covered, len(seen), 0.95)
        assert (high > low).all()


def test_what_no_tuple_can_be_nobody_is(release: Release) -> None:
    answer = release.query("select count(*), sum(x) from t where x > 1000")
    for estimate in answer.rows[0].values():
        assert estimate.value == estimate.stderr == 0
        assert estimate.interval() == (0, 0)
    assert "no tuple" in answer.notes[0]


def test_simultaneous_intervals_at_any_confidence(release: Release) -> None:
    sql = "select kind, count(*) from t group by kind"
    for one, all_ in zip(
        release.query(sql).rows, release.query(sql, simultaneous=True).rows, strict=True
    ):
        for confidence in (0.5, 0.9, 0.95, 0.96, 0.999):
            narrow, wide = one["count"].interval(confidence), all_["count"].interval(confidence)
            assert wide[0] <= narrow[0] and narrow[1] <= wide[1] and wide != narrow
    assert release.query(sql, simultaneous=True).covers.startswith("all 3 groups at once")


@pytest.mark.parametrize("confidence", [1e-9, 0.5, 1 - 1e-13])
def test_extreme_confidence(release: Release, confidence: float) -> None:
    for sql in ("count(*)", "sum(x)", "avg(x)", "median(x)"):
        low, high = only(release, f"select {sql} from t where kind = 'a'",
                         confidence=confidence).interval()  # fmt: skip
        assert low <= high


# ---------------------------------------------------------------------- arithmetic


def test_values_far_from_zero_do_not_cancel(release: Release) -> None:
    truth = table()
    for column in ("stamp", "year"):
        spread = only(release, f"select stddev({column}) from t")
        assert spread.value == pytest.approx(truth[column].std(), abs=5 * spread.stderr)
        assert spread.stderr < 10
        mean = only(release, f"select avg({column}) from t")
        low = int(truth[column].min())
        shifted = only(release, f"select avg({column} - {low}) + {low} from t")
        assert mean.value == pytest.approx(shifted.value, abs=1e-5)
        assert mean.stderr == pytest.approx(shifted.stderr, rel=1e-3)
        values: list[Any] = list(SMALL[column])
        assert min(values) <= mean.interval()[0] and mean.interval()[1] <= max(values)


def test_having_and_order_see_what_is_shown(release: Release) -> None:
    sql = "select x, avg(year) as y from t where kind = 'a' group by x having avg(year) > 2020"
    assert release.query(sql).rows == ()
    rows = release.query("select x, avg(year) as y from t group by x order by y").rows
    shown = [row["y"].value for row in rows if not np.isnan(row["y"].value)]
    assert shown == sorted(shown)


def test_rows_stay_in_their_groups_when_the_domain_is_sampled() -> None:
    wide = Schema(tuple(Attribute(n, "integer", Range(0, 1999)) for n in "pqrs"))
    zeros = pd.DataFrame(np.zeros((200, 4), dtype=np.int64), columns=list("pqrs"))
    made = voile.publish(zeros, schema=wide, prior=1e-13, posterior=0.2, simulate_seed=2)
    answer = made.query("select p, count(*) as n from t where p * q + r * s < 10 group by p "
                        "having count(*) > 50")  # fmt: skip
    assert [row["p"] for row in answer.rows] == [0]
    assert "sampling of the domain" in answer.covers


def test_what_was_asked_before_is_remembered(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "select kind, count(*), avg(x) from t where x < 77 group by kind"
    first = release.query(sql).to_dict()

    def asked_again(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(release._view, "_sums", asked_again)
    assert release.query(sql).to_dict() == first
    with pytest.raises(AssertionError):
        release.query(sql.replace("77", "78"))


def test_explaining_a_quantile(release: Release) -> None:
    told = release.explain("select median(x), kind from t group by kind")
    assert told["columns"][0]["errors"] == {}


# ---------------------------------------------------------------------- tables of one's own


def test_tables_that_change_are_read_again(release: Release, tmp_path: Path) -> None:
    sql = "select count(*) from t where kind in (select k from mine)"
    frame = pd.DataFrame({"k": ["a"]})
    before = only(release, sql, tables={"mine": frame}).value
    frame.loc[0, "k"] = "b"
    after = only(release, sql, tables={"mine": frame}).value
    assert after == only(release, "select count(*) from t where kind = 'b'").value != before
    path = tmp_path / "mine.csv"
    for kinds in (["a"], ["b", "c"]):
        path.write_text("\n".join(["k", *kinds, ""]))
        listed = ", ".join(f"'{k}'" for k in kinds)
        expected = only(release, f"select count(*) from t where kind in ({listed})").value
        assert only(release, sql, tables={"mine": path}).value == expected


def test_names_of_own_tables(release: Release) -> None:
    frame = pd.DataFrame({"x": [100, 200], "kind": ["a", "b"]})
    with pytest.raises(voile.VoileError, match="two tables have one name"):
        release.query("select count(*) from t", tables={"r": frame, "R": frame})
    with pytest.raises(voile.VoileError, match="what the release's row is called"):
        release.query(
            'select count(*) from t where exists (select 1 from r as "release row" '
            'where "release row".x = t.x)',
            tables={"r": frame},
        )
    grouped = release.query(
        "select kind, count(*) from t join r using (kind) group by kind", tables={"r": frame}
    )
    assert [row["kind"] for row in grouped.rows] == ["a", "b"]


# ---------------------------------------------------------------------- what would not fit


def test_what_would_not_fit_is_refused_before_it_is_tried() -> None:
    wide = Schema((Attribute("v", "integer", Range(0, 2**40)), Attribute("k", "boolean",
                   Values((False, True)))))  # fmt: skip
    rows = pd.DataFrame({"v": [1, 2, 3], "k": [True, False, True]})
    made = voile.publish(rows, schema=wide, prior=1e-11, posterior=0.2, simulate_seed=3)
    for sql in ("sum(v)", "avg(v * v)", "median(v)"):
        with pytest.raises(voile.VoileError, match="more values than the memory allows"):
            made.query(f"select {sql} from t")
    assert only(made, "select count(*) from t where v < 100").interval()[1] >= 1
    with pytest.raises(voile.VoileError, match="replaces text within replaced text"):
        made.query("select count(*) from t where " + "replace(" * 9 + "'a'" +
                   ", 'a', 'aaaaaaaaaa')" * 9 + " = 'b'")  # fmt: skip
