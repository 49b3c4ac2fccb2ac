"""One test for every kind of release: 0.95 covers 0.95, and is not wider than it must be.

Every kind has a line in KINDS: how it publishes a table with a seed, and how it is asked. All are
asked the same questions about real tables. Coverage is counted over releases × questions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import voile
from tests.support.coverage import Coverage, Question, questions
from tests.support.soak import rounds, some
from voile.engines import read_all

LEAST = 0.93
MOST = 0.98
WIDEST = 1.2
HALF = (0.45, 0.62)
FEWEST = 300
"""Intervals from which on a share is judged."""
SLACK = 0.02
"""Cells of one release share noise, and few releases are sampled; chosen, not computed."""


@dataclass(frozen=True)
class PublishedKind:
    """How a kind publishes a table with a seed, and how its releases are asked."""

    publish: Callable[[pd.DataFrame, int, Path], Any]
    ask: Mapping[str, Any] = field(default_factory=dict)
    sharp: bool = True
    """Whether averages of many rows are held to the width of ± 1.96 standard errors."""


def view(frame: pd.DataFrame, seed: int, folder: Path) -> Any:
    made = voile.publish(frame, name="t", prior=0.01, retention=0.5, simulate_seed=seed)
    return made.save(folder / "view.voile", overwrite=True)


def marginals(frame: pd.DataFrame, seed: int, folder: Path) -> Any:  # noqa: ARG001
    return voile.publish(
        frame, method="marginals", name="t", epsilon=1, order=3, simulate_seed=seed
    )


def perturbed(frame: pd.DataFrame, seed: int, folder: Path) -> Any:  # noqa: ARG001
    return voile.perturb(frame, 0.5, name="t", simulate_seed=seed)


def counts(frame: pd.DataFrame, seed: int, folder: Path) -> Any:  # noqa: ARG001
    return voile.publish(
        frame, method="conjuncts", name="t", direct=True, arity=3, rho=0.1, simulate_seed=seed
    )


KINDS = {
    "view": PublishedKind(view),
    # Refined sums and averages are better than stated: they state the plain estimate's error.
    "view, refined": PublishedKind(view, {"refine": True}, sharp=False),
    "marginals": PublishedKind(marginals, sharp=False),
    "marginals, tables alone": PublishedKind(marginals, {"refine": False}),
    "perturbed": PublishedKind(perturbed),
    "perturbed, em": PublishedKind(perturbed, {"method": "em"}),
    "counts": PublishedKind(counts),
}
GROUPS, VALUES = ("sex", "salary", "marital_status"), ("age", "schooling")


SCHOOLING = {
    "HS-grad": 1, "Some-college": 2, "Assoc-voc": 2, "Assoc-acdm": 2, "Bachelors": 3,
    "Masters": 4, "Prof-school": 5, "Doctorate": 6,
}  # fmt: skip


@pytest.fixture(scope="module")
def adult() -> pd.DataFrame:
    """Adult's people: three columns of categories, and two numbers in steps."""
    rows = read_all("dataset:adult/boundary").to_pandas()
    frame = rows[list(GROUPS)].copy()
    frame["age"] = rows["age"] // 10
    frame["schooling"] = rows["education"].map(SCHOOLING).fillna(0).astype(int)
    return frame.sample(6000, random_state=1).reset_index(drop=True)


def counted(kind: PublishedKind, frame: pd.DataFrame, folder: Path, releases: int) -> Coverage:
    """The tallies of so many releases."""
    found = Coverage(frame)
    every = questions(GROUPS, VALUES, 2)
    averages = [q for q in every if q.statistic == "average" and len(q.groups) < 2]
    asked: list[Question] = [*averages, *some([q for q in every if q not in averages], 8)]
    for seed in range(releases):
        found.add(partial(kind.publish(frame, seed, folder).query, **kind.ask), asked)
    return found


@pytest.mark.parametrize("name", KINDS)
def test_every_interval_covers_as_stated(name: str, adult: pd.DataFrame, tmp_path: Path) -> None:
    """Seeds are fixed. Bounds in place of normal intervals fail: averages are 2.1 times as wide."""
    kind = KINDS[name]
    tallies = counted(kind, adult, tmp_path, rounds(2, 30)).tallies
    for (statistic, size, level), tally in tallies.items():
        if tally.total >= FEWEST and level == 0.95:
            assert tally.share >= LEAST - SLACK, (statistic, size, tally.share)
    large = tallies["average", "large", 0.95]
    if kind.sharp and large.total:
        assert large.width <= WIDEST
        assert large.share <= MOST + SLACK
        half = tallies["average", "large", 0.5]
        margin = 0.0 if half.total >= FEWEST else 0.15
        assert HALF[0] - margin <= half.share <= HALF[1] + margin
