"""Benchmarks are run by hand: here every module is imported, and every name in a text is found."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import bench
import numpy as np
import pytest
from bench import (
    domain_count,
    local,
    marginals_peers_work,
    marginals_work,
    publish_work,
    serve,
    serve_work,
)
from bench.marginals import Bench
from bench.noise_work import ours_profiled
from bench.stages import STAGES, located

import voile
from voile.serve.question import QuestionReader
from voile.serve.setting import Setting
from voile.serve.shapes import KnownQuestions

MODULES = sorted(one.name for one in pkgutil.iter_modules(bench.__path__))
FOLDER = Path(bench.__path__[0])
WRITTEN = {
    task
    for name in MODULES
    for task in re.findall(r'"(\w+_work:\w+)"', (FOLDER / f"{name}.py").read_text("utf-8"))
}
COMPOSED = {
    *(f"domain_work:{way}" for way in ("ours", "cross_join", *domain_count.BESIDE)),
    *(f"local_work:{way}" for way in ("ours", "ours_perturbing", *local.PEERS)),
}


@pytest.mark.parametrize("name", MODULES)
def test_every_module_is_imported(name: str) -> None:
    importlib.import_module(f"bench.{name}")


@pytest.mark.parametrize("task", sorted(WRITTEN | COMPOSED))
def test_every_task_is_there(task: str) -> None:
    module, _, function = task.partition(":")
    assert callable(getattr(importlib.import_module(f"bench.{module}"), function))


def test_tasks_are_found_in_the_text() -> None:
    assert len(WRITTEN) > 30


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_is_there(stage: str) -> None:
    owner, name = located(STAGES[stage])
    assert callable(getattr(owner, name))


def test_a_profile_sees_every_stage() -> None:
    """A function that was moved and is still there by its old name would not be timed."""
    assert set(ours_profiled(rows=1e4)["stages"]) == set(STAGES)


def test_adult_is_published_with_the_promise_that_is_measured() -> None:
    """A promise that has to be agreed to first would stop whoever measures."""
    assert publish_work.publish_adult(times=1)["rows_in"] == 30_162


# ----------------------------------------------------------------------
# questions to a server


@pytest.fixture(scope="module")
def adult_setting() -> Setting:
    """A server of the rows that the questions are about."""
    source = voile.read(serve_work.DATASET)
    return Setting(
        id="0" * 32, name="adult", schema=source.infer(list(source.columns), "error"),
        people=45_222, declared=False, queries=3000, delta=1.0, eta=1e-6, noise="gaussian",
        variance=100.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shapes", "least", "most"), [("new", 0, 0), ("conditions", 40, 52), ("one", 53, 53)]
)
def test_every_question_is_charged_and_read_as_its_line_says(
    shapes: str, least: int, most: int, adult_setting: Setting
) -> None:
    """Of 54 questions: how many are put together from what was read before, without SQL."""
    asked = serve_work.SHAPES[shapes](3000)
    assert len(set(asked)) == len(asked) == 3000
    reader, known, quick, keys = QuestionReader(adult_setting), KnownQuestions(adult_setting), 0, []
    for sql in asked[::56]:
        question = known.known(sql, "all")
        quick += question is not None
        if question is None:
            question = reader.read(sql).without_expected()
            known.keep(sql, question, 1)
        assert not any(total.nobody or total.everybody for total in question.totals), sql
        keys += [total.key for total in question.totals]
    assert len(set(keys)) == len(keys) == 54
    assert least <= quick <= most


def test_every_line_of_serve_has_its_aim() -> None:
    assert set(serve_work.SHAPES) == set(serve.SHAPES) == set(serve.LEAST_SHARE)
    assert set(serve.CLIENTS) == set(serve.MOST_P99)


# ----------------------------------------------------------------------
# noisy marginals, on a table of four small columns


@pytest.fixture
def few_codes(tmp_path: Path) -> str:
    """A file of 600 rows: the second column follows from the first, but for a few rows."""
    rng = np.random.default_rng(1)
    first = rng.integers(0, 3, 600)
    second = np.where(rng.random(600) < 0.9, first, rng.integers(0, 3, 600))
    others = [rng.integers(0, size, 600) for size in (2, 4)]
    np.save(tmp_path / "few.npy", np.stack([first, second, *others], axis=1))
    return str(tmp_path / "few.npy")


def test_every_count_of_a_release_is_compared_with_the_truth(
    few_codes: str, tmp_path: Path
) -> None:
    found = {}
    for name, epsilon in (("noisy", 0.1), ("sharp", 50.0)):
        given: dict[str, Any] = {"table": few_codes, "folder": str(tmp_path / name), "seeds": [1]}
        marginals_work.published(**given, epsilon=epsilon, delta=1e-9, order=2)
        found[name] = marginals_work.compared(**given, sample=20)
    sharp = found["sharp"]
    assert sharp["queries"] == sum(
        (3, 3, 2, 4, 9, 6, 12, 6, 12, 8, 18, 36, 24, 24)
    )  # tables of one column, of two and of three
    assert sharp["rows"] == 600
    assert sharp["every"] < found["noisy"]["every"] / 5
    for one in found.values():
        assert one["off"] < 1e-6  # a query of one cell gives what the whole table gives
        assert set(one["coverage"]) <= set(marginals_work.CLASSES)


def test_rows_of_a_release_are_compared_with_the_truth(few_codes: str, tmp_path: Path) -> None:
    place, to = str(tmp_path / "release"), str(tmp_path / "rows.npy")
    truth = str(tmp_path / "truth.npy")
    given: dict[str, Any] = {"table": few_codes, "folder": place, "seeds": [1]}
    marginals_work.published(**given, epsilon=50.0, delta=1e-9)
    done = marginals_work.export(table=few_codes, to=truth, schema_of=f"{place}/seed1")
    assert done == {"rows": 600, "sizes": [3, 3, 2, 4], "names": ["c0", "c1", "c2", "c3"]}
    marginals_work.drawn(folder=place, seed=1, to=to)
    seen: dict[str, Any] = {"rows": to, "truth": truth, "sizes": done["sizes"]}
    # A bootstrap of 600 rows over tables of 18 to 36 cells is off by about 0.08.
    assert marginals_work.rows_compared(**seen)["variation"] < 0.25
    seen["rows"] = truth
    assert marginals_work.rows_compared(**seen)["variation"] == 0


def test_a_wide_table_is_made_and_published(tmp_path: Path) -> None:
    table, to = str(tmp_path / "wide.parquet"), str(tmp_path / "wide")
    marginals_work.wide_table(rows=300, columns=4, values=3, to=table)
    marginals_work.wide_published(table=table, to=to, epsilon=50.0, delta=1e-9)
    found = marginals_work.wide_compared(table=table, release=to, sample=2)
    assert found["columns_1"]["median"] < 0.05


def test_peers_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        absent = Bench(tmp_path, folder, (1,), quick=False)
        assert absent.public_tables() == {}
        assert absent.peer_rows("MST", "truth.npy", [2], 1.0) is None


def test_the_budget_of_mst_implies_the_promise() -> None:
    """ρ of the peer beside our own bound: ρ implies (ε, δ), and a hundredth more does not."""
    from voile.kinds.marginals.measuring import concentrated_delta

    for epsilon in (0.3, 1.0, 6.2858):
        rho = marginals_peers_work.rho_of(epsilon, 1e-9)
        assert (
            concentrated_delta(rho, epsilon) <= 1.001e-9 < concentrated_delta(1.01 * rho, epsilon)
        )


def test_merged_values_are_drawn_from_those_that_were_merged() -> None:
    frequent = np.array([True, False, True, False])
    codes = np.array([0, 1, 2, 2, 2, 2])
    found = marginals_peers_work.spread(codes, frequent, np.random.default_rng(1))
    assert found[:2].tolist() == [0, 2]
    assert set(found[2:].tolist()) <= {1, 3}
