"""What a release says beside what the table says: against SQL, and by releases without noise."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import voile
from voile.errors import QueryError, UsageError
from voile.evaluate.attack import guess_value
from voile.evaluate.beside import (
    answers_beside,
    check_question,
    column_groups,
    counts_beside,
    ranges_beside,
    round_step,
    summary_beside,
)
from voile.schema import Schema

ROWS = [(age, town, ill) for age in (20, 30, 40, 50) for town in "abc" for ill in ("no", "yes")
        for _ in range(3 + (age // 10) * (ill == "no") + 2 * (town == "a"))]  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    lines = ["age,town,ill", *(",".join(map(str, row)) for row in ROWS)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def exact(table: Path) -> voile.Release:
    """All rows as they are: what it says is the truth."""
    return voile.publish(
        table, "mondrian", qi=["age", "town"], sensitive=["ill"], k=2, error_model=False,
        register=False,
    )  # fmt: skip


def test_counts_are_those_of_the_rows(exact: voile.Release, table: Path) -> None:
    found = {one.values: one for one in counts_beside(exact, table, ["town", "ill"])}
    for cell, count in Counter((town, ill) for _, town, ill in ROWS).items():
        assert found[cell].truth == count
        assert found[cell].estimate == pytest.approx(count)
    assert len(found) == 6


def test_a_noisy_release_is_off_and_the_truth_is_not(table: Path) -> None:
    noisy = voile.publish(
        table, "marginals", epsilon=1.0, schema="active", simulate_seed=3, register=False
    )
    found = counts_beside(noisy, table, ["town"])
    assert {one.values[0]: one.truth for one in found} == Counter(town for _, town, _ in ROWS)
    assert any(abs(one.estimate - one.truth) > 0.1 for one in found)


def test_answers_have_the_truth_and_say_whether_they_cover_it(
    exact: voile.Release, table: Path
) -> None:
    (one,) = answers_beside(exact, table, "select count(*) from people where age < 35")
    assert one.truth == sum(age < 35 for age, _, _ in ROWS) and one.covered
    groups = answers_beside(exact, table, "select town, avg(age), count(*) from people group by 1")
    assert len(groups) == 6
    for one in groups:
        ages = [age for age, town, _ in ROWS if town == one.group]
        wanted = len(ages) if one.column.startswith("count") else sum(ages) / len(ages)
        assert one.truth == pytest.approx(wanted) and one.estimate == pytest.approx(wanted)


def test_a_question_without_sense_is_refused(exact: voile.Release, table: Path) -> None:
    with pytest.raises(QueryError):
        answers_beside(exact, table, "select nothing from people")


def test_the_summary_has_means_of_numbers(exact: voile.Release, table: Path) -> None:
    found = {(one.column, one.statistic): one for one in summary_beside(exact, table)}
    assert found["", "rows"].truth == len(ROWS)
    mean = sum(age for age, _, _ in ROWS) / len(ROWS)
    assert found["age", "mean"].truth == pytest.approx(mean)
    assert found["age", "mean"].estimate == pytest.approx(mean, rel=0.05)
    assert ("town", "mean") not in found


def test_a_guess_without_sense_is_refused(exact: voile.Release) -> None:
    with pytest.raises(UsageError, match="no column"):
        guess_value(exact, {"town": "a"}, "nothing")
    with pytest.raises(UsageError, match="known already"):
        guess_value(exact, {"ill": "no"}, "ill")
    with pytest.raises(UsageError, match="nothing is known"):
        guess_value(exact, {}, "ill")


def test_a_guess_is_the_share_among_those_who_look_alike(exact: voile.Release) -> None:
    alike = Counter(ill for age, town, ill in ROWS if (age, town) == (20, "a"))
    every = Counter(ill for _, _, ill in ROWS)
    found = guess_value(exact, {"age": 20, "town": "a"}, "ill")
    assert [one.value for one in found] == ["no", "yes"]
    for one in found:
        assert one.prior == pytest.approx(every[one.value] / len(ROWS))
        assert one.posterior == pytest.approx(alike[one.value] / alike.total())


DAYS = [f"{2001 + n // 40}-{1 + n % 12:02}-{1 + n % 28:02}" for n in range(200)]


def wide(tmp_path: Path) -> Path:
    """Columns with more values than bars: numbers, decimals and days, some of them missing."""
    path = tmp_path / "wide.csv"
    lines = [f"{'' if n % 50 == 0 else 7 * n},{n / 8},{DAYS[n]},{'ab'[n % 2]}" for n in range(200)]
    path.write_text("\n".join(["income,weight,day,ill", *lines]) + "\n", encoding="utf-8")
    return path


def test_wide_columns_are_compared_in_ranges(tmp_path: Path) -> None:
    path = wide(tmp_path)
    release = voile.publish(
        path, "mondrian", qi=["income", "weight", "day"], sensitive=["ill"], k=2, nulls="as-value",
        error_model=False, register=False,
    )  # fmt: skip
    incomes = [7 * n for n in range(200) if n % 50]
    found = {one.values[0]: one for one in ranges_beside(release, path, ["income"], most=10)}
    assert len(found) == 8 and found["(missing)"].truth == 4
    assert found["200–399"].truth == sum(200 <= one < 400 for one in incomes)
    for column, most in (("weight", 12), ("day", 12), ("ill", 12)):
        cells = ranges_beside(release, path, [column], most=most)
        assert 2 <= len(cells) <= most + 1
        assert sum(one.truth for one in cells) == 200
        assert sum(one.estimate for one in cells) == pytest.approx(200)
    years = ranges_beside(release, path, ["day"], most=12)
    assert [one.values[0] for one in years] == ["2001", "2002", "2003", "2004", "2005"]
    assert all(one.truth == 40 for one in years)
    both = ranges_beside(release, path, ["income", "ill"], most=10)
    assert len(both) == 16 and sum(one.truth for one in both) == 200
    assert sum(one.estimate for one in both) == pytest.approx(200)


def test_bins_are_called_by_their_ends() -> None:
    """Their middles are no values of the table, and look as if they were."""
    schema = Schema.from_dict({"attributes": [
        {"name": "age", "kind": "integer", "bins": [10, 20, 21, 30], "null": True},
        {"name": "weight", "kind": "numeric", "bins": [40, 62.5, 90]},
        {"name": "born", "kind": "date", "bins": ["2000-01-01", "2001-01-01", "2003-01-01"]},
    ]})  # fmt: skip
    labels = {one.name: column_groups(one, 40).labels for one in schema.attributes}
    assert labels == {
        "age": ["10–19", "20", "21–30", "(missing)"],
        "weight": ["40–62.5", "62.5–90"],
        "born": ["from 2000-01-01", "from 2001-01-01"],
    }


@pytest.mark.parametrize(
    ("least", "step"), [(0.03, 0.05), (1, 1), (7.7, 10), (200, 200), (201, 500)]
)
def test_steps_are_round(least: float, step: float) -> None:
    assert round_step(least) == pytest.approx(step)


KINDS = {"alter": "integer", "day": "date", "ill": "categorical", "file": "unsupported"}


@pytest.mark.parametrize(
    ("sql", "words"),
    [("select avg(alter) from people", "not SQL"), ("select avg(age) from people", "'age'"),
     ("drop table people", "DROP"), ("select * from people", "SELECT *"),
     ("select count(*) from 'people.csv'", "no table")],
)  # fmt: skip
def test_questions_that_nobody_can_answer_are_refused(sql: str, words: str) -> None:
    with pytest.raises(QueryError, match=words.replace("*", r"\*")):
        check_question(sql, KINDS, "people")


def test_a_question_is_read_whatever_values_the_columns_have() -> None:
    check_question(
        "select avg(\"alter\") from people where ill = 'x' and day > date '2020-01-01'", KINDS
    )
