"""Random SQL is answered or refused, and nothing else: see tools/fuzz.py. `make fuzz` runs more."""

from __future__ import annotations

import gc
import random
from itertools import islice
from pathlib import Path

import pytest
from tools.fuzz import Fuzzer, Inputs, Report

from tests.support.soak import rounds

INPUTS = rounds(250, 1_500)
"""Always the same ones; `make fuzz` tries a hundred thousand."""
PATIENCE = 60.0
"""Seconds for one input: generous, for machines that are busy with other tests."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [101, 102])
def test_random_sql_is_answered_or_refused(seed: int, tmp_path: Path) -> None:
    gc.collect()  # what earlier tests left removes its folders, and opens them to do so
    report = Fuzzer(tmp_path, patience=PATIENCE).run(seed, inputs=INPUTS)
    assert not report.failures, "\n".join(report.failures)
    assert not report.unhelpful, "\n".join(report.unhelpful)
    assert report.outcomes["answered"] > 10
    assert report.outcomes["refused"] > 50


def test_the_same_seed_gives_the_same_inputs() -> None:
    first, again, other = (Inputs(random.Random(seed)) for seed in (1, 1, 2))  # noqa: S311
    made = list(islice(first, 200))
    assert made == list(islice(again, 200))
    assert made != list(islice(other, 200))
    assert len(set(made)) > 150


def test_what_must_not_happen_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fuzzer that finds nothing must be one that would find something."""
    fuzzer = Fuzzer(tmp_path, patience=0.2)
    (tmp_path / "secret").write_text("x")

    def failures(misdeed: object) -> str:
        report = Report()
        monkeypatch.setattr(fuzzer.target, "ask", misdeed)
        fuzzer.one("select 1", report)
        return "\n".join(report.failures)

    def crash(_: str) -> None:
        raise KeyError("inside")

    def hang(_: str) -> None:
        while True:
            pass

    assert "KeyError" in failures(crash)
    assert "took more than" in failures(hang)
    assert "opened" in failures(lambda _: (tmp_path / "secret").read_text())
    assert not failures(lambda _: None)
