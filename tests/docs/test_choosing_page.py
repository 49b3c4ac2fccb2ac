"""docs/choosing.md says what the planner does: its numbers, its order, its choice on our tables.

Each sentence of the page that states a number stands here with the number that the code has. A
changed constant and a changed page both fail.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

import voile
from tests.support.paths import ROOT
from tests.support.running import told
from voile.engines import connect
from voile.errors import PromiseError
from voile.kinds import automatic
from voile.kinds.automatic import PreparedChoice, UselessError, choose_method
from voile.kinds.choosing import MATTERS, USEFUL
from voile.kinds.manifest import MEANINGFUL_EPSILON
from voile.kinds.marginals import candidates
from voile.kinds.options import AutomaticOptions
from voile.kinds.registry import methods
from voile.progress import Silent

PAGE = " ".join((ROOT / "docs" / "choosing.md").read_text(encoding="utf-8").split())
WORDS = {"two": 2, "three": 3, "four": 4}
WIDE, NARROW = "dataset:adult/boundary", ["age", "education", "sex", "salary"]


def numbers(sentence: str) -> tuple[float, ...]:
    """The numbers of the page where a sentence has (…); a sentence that is not there fails."""
    found = re.search(sentence, PAGE)
    assert found, f"docs/choosing.md no longer says {sentence!r}"
    return tuple(float(WORDS.get(one, one.replace(",", ""))) for one in found.groups())


@cache
def chosen(table: str, columns: tuple[str, ...] = (), **options: Any) -> PreparedChoice:
    asked = AutomaticOptions(columns=list(columns) or None, simulate_seed=3, **options)
    return choose_method(connect(table), asked, Silent())


def test_the_promise_and_the_noise() -> None:
    assert numbers(r"ε = (\d) for adding or removing a row") == (automatic.EPSILON,)
    assert numbers(r"Up to (\w+) columns, noise is geometric") == (automatic.FEW_COLUMNS,)
    assert numbers(r"Beyond (\w+) columns, noise is normal") == (automatic.FEW_COLUMNS,)
    assert "δ = 10⁻⁹" in PAGE and automatic.DELTA == 1e-9
    few, many = chosen(WIDE, tuple(NARROW)), chosen(WIDE)
    assert few.choice.chosen.options["noise"] == "geometric"
    assert many.choice.chosen.options["noise"] == "gaussian"
    assert few.choice.promise.kept_delta < many.choice.promise.kept_delta == 1e-9


def test_the_share_for_the_domain() -> None:
    shares = numbers(r"(\d+) %, or (\d+) % up to four columns, and up to (\d+) % more where rows")
    normal, geometric = automatic.SCHEMA_SHARE["gaussian"], automatic.SCHEMA_SHARE["geometric"]
    assert shares[:2] == pytest.approx((100 * normal, 100 * geometric))
    for noise, share in automatic.SCHEMA_SHARE.items():
        assert automatic.MOST_SCHEMA_SHARE[noise] - share == pytest.approx(shares[2] / 100)
    assert numbers(r"a look at the number of rows, (\d+) %") == pytest.approx(
        (automatic.LOOK * 100,)
    )


def test_the_number_that_decides_and_the_limit() -> None:
    assert numbers(r"a count is off that holds exactly (\d+) % of the rows") == (100 * MATTERS,)
    assert numbers(r"Over (\d+) %, it publishes nothing") == (100 * USEFUL,)
    assert numbers(r"off by (\d+) % at most, Voile does not try") == (100 * candidates.SHARP,)
    assert numbers(r"over ε = (\d+) a promise says next to") == (MEANINGFUL_EPSILON,)
    assert numbers(r"more than ([\d,]+) cells") == (candidates.FULL_TABLE,)
    with pytest.raises(PromiseError, match="weak"):
        voile.publish("dataset:scores", epsilon=MEANINGFUL_EPSILON + 0.1)


def test_nothing_is_published_that_is_of_no_use_and_what_helps_is_listed() -> None:
    (most,) = numbers(r"Voile tries (\w+) changes, and lists those that help")
    with pytest.raises(UselessError) as refused:
        voile.publish("dataset:health", epsilon=0.08, simulate_seed=3)
    assert 0 < len(refused.value.changes) <= most


@pytest.mark.parametrize("table", [WIDE, "dataset:adult/frontier", "dataset:health"])
def test_the_least_error_wins_and_a_view_is_only_listed(table: str) -> None:
    assert "only you can choose it" in PAGE
    choice = chosen(table).choice
    able = [one for one in choice.considered if one.eligible]
    assert choice.chosen.expected_error == min(one.expected_error for one in able)
    assert [one.method for one in choice.considered if not one.eligible] == ["alphabeta"]


def test_on_most_tables_the_default_means_noisy_marginals() -> None:
    assert "**The default**, which on most tables means [noisy marginals]" in PAGE
    for table in ("dataset:adult/frontier", "dataset:adult/olap", "dataset:health", WIDE):
        assert chosen(table).choice.chosen.method == "marginals", table


def test_all_ways_that_the_page_lists_are_compared() -> None:
    assert "the full table of counts;" in PAGE and "a noisy view;" in PAGE
    compared = chosen("dataset:health", ("age", "sex", "health", "doctor_visits")).choice.considered
    assert {one.method for one in compared} == {"marginals", "full-table", "alphabeta"}


def test_every_method_of_the_page_is_there() -> None:
    named = set(re.findall(r"--method ([\w-]+)", PAGE))
    assert {"marginals", "full-table", "conjuncts", "mondrian"} <= named <= {*methods()}


def test_the_planner_shows_what_publishing_chooses() -> None:
    found = told(["plan", "dataset:health", "--columns", "sex,health"])
    assert found["method"] == chosen("dataset:health", ("sex", "health")).choice.chosen.method
    assert found["most_useful_error"] == USEFUL
