"""Catching a mechanism that does not keep its word, from outside: run it often, and count.

Two neighbouring tables are published many times. For any event E of the published view,
P(E | with the record) / P(E | without it) must lie within the promised likelihood ratio. Half of
the runs choose the events that look worst; the other half, which know nothing of that, bound
their chances by Clopper and Pearson's exact limits. There are four of these, each at a quarter of
the failure probability, so all hold at once except with that probability, whatever the mechanism.
'Broken' is wrong with at most that probability; 'consistent' says that these runs show nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from voile.errors import UsageError
from voile.privacy import LikelihoodRatio

TableLike = TypeVar("TableLike")
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

Views = Sequence[Hashable] | Ints
"""What was published in each run: anything that can be compared, or numbers that stand for it."""
FEWEST_RUNS, MOST_RUNS = 20, 20_000_000


@dataclass(frozen=True)
class AuditBound:
    """What the runs show for certain about one side of the likelihood ratio."""

    side: Literal["at least", "at most"]
    bound: float
    """The largest ratio is at least this; or the smallest is at most this."""
    promised: float | None
    """None: no bound is promised."""
    event: tuple[Hashable, ...]
    """The views that the event consists of."""
    with_record: int
    without_record: int
    runs: int

    @property
    def broken(self) -> bool:
        """Whether the runs prove a ratio beyond what is promised."""
        if self.promised is None:
            return False
        return self.bound > self.promised if self.side == "at least" else self.bound < self.promised

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            "bound": self.bound,
            "promised": self.promised,
            "broken": self.broken,
            "views": len(self.event),
            "with_record": self.with_record,
            "without_record": self.without_record,
            "runs": self.runs,
        }


@dataclass(frozen=True)
class Audit:
    """Bounds of the largest and of the smallest likelihood ratio, and the verdict."""

    high: AuditBound
    low: AuditBound
    runs: int
    failure: float

    @property
    def broken(self) -> bool:
        """Whether one side is broken."""
        return self.high.broken or self.low.broken

    @property
    def verdict(self) -> Literal["broken", "consistent"]:
        """What the runs show, in a word."""
        return "broken" if self.broken else "consistent"

    def explain(self) -> str:
        """The verdict in a sentence, with what it is worth."""
        runs = f"{self.runs:,} runs on each of two neighbouring tables"
        if self.broken:
            return (
                f"broken: {runs} show a ratio beyond what is promised. If the promise were kept, "
                f"this would happen with probability {self.failure:g} at most."
            )
        return (
            f"consistent: {runs} show nothing beyond what is promised. More runs may: this is no "
            "proof that it is kept."
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            "verdict": self.verdict,
            "high": self.high.to_dict(),
            "low": self.low.to_dict(),
            "runs": self.runs,
            "failure": self.failure,
            "explain": self.explain(),
        }


def audit(
    publish: Callable[[TableLike], Hashable],
    with_record: TableLike,
    without_record: TableLike,
    *,
    promised: LikelihoodRatio,
    runs: int = 2000,
    failure: float = 1e-3,
) -> Audit:
    """Run anything that publishes, `runs` times on each of the two tables.

    `publish` takes a table and gives what was published as something that can be compared, such as
    a sorted tuple of rows. It must toss fresh coins each time.
    """
    return compare(
        [publish(with_record) for _ in range(runs)],
        [publish(without_record) for _ in range(runs)],
        promised=promised,
        failure=failure,
    )


def compare(
    with_record: Views,
    without_record: Views,
    *,
    promised: LikelihoodRatio,
    failure: float = 1e-3,
) -> Audit:
    """The audit of what was published, as many times from each of the two tables."""
    runs = len(with_record)
    if runs != len(without_record):
        raise UsageError(
            f"{runs} runs with the record and {len(without_record)} without it",
            hint="run both as often",
        )
    check(runs, failure)
    views, codes = numbered(joined(with_record, without_record))
    counts = [
        np.bincount(part, minlength=len(views))
        for part in (codes[:runs:2], codes[1:runs:2], codes[runs::2], codes[runs + 1 :: 2])
    ]
    # Every other run chooses, so that a drift in time meets both halves alike.
    chosen, judged = (counts[0], counts[2]), (counts[1], counts[3])
    each = failure / 4

    def bound(top: int, bottom: int, side: Literal["at least", "at most"]) -> AuditBound:
        worst = worst_event(chosen[top], chosen[bottom], each)
        seen = [int(judged[i][worst].sum()) for i in (0, 1)]
        trials = int(judged[0].sum())
        ratio = certain_ratio(seen[top], seen[bottom], trials, each)
        limit = promised.high if side == "at least" else promised.low
        return AuditBound(
            side=side,
            bound=ratio if side == "at least" else (1 / ratio if ratio > 0 else math.inf),
            promised=None if limit is None else float(limit),
            event=tuple(views[i] for i in np.flatnonzero(worst)),
            with_record=seen[0],
            without_record=seen[1],
            runs=trials,
        )

    return Audit(bound(0, 1, "at least"), bound(1, 0, "at most"), runs, failure)


def check(runs: int, failure: float) -> None:
    """Refuse too few or too many runs, and a failure that is no probability."""
    if runs < FEWEST_RUNS:
        raise UsageError(f"{runs} runs are too few to see anything", hint="50,000 are usual")
    if runs > MOST_RUNS:
        raise UsageError(f"{runs:,} runs are too many", hint=f"at most {MOST_RUNS:,}")
    if not 0 < failure < 1:
        raise UsageError(
            f"failure {failure:g} must lie between 0 and 1",
            hint="it is the chance that a sound mechanism is called broken, e.g. 1e-3",
        )


def joined(first: Views, second: Views) -> Views:
    """The views of both tables, one after the other."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.concatenate([first, second])
    return [*first, *second]


def numbered(views: Views) -> tuple[list[Hashable], Ints]:
    """The different views, and each run's place among them."""
    if isinstance(views, np.ndarray):
        different, codes = np.unique(views, return_inverse=True)
        return different.tolist(), codes
    places: dict[Hashable, int] = {}
    codes = np.array([places.setdefault(view, len(places)) for view in views], np.int64)
    return list(places), codes


def worst_event(top: Ints, bottom: Ints, failure: float, at: float = 0.0) -> npt.NDArray[np.bool_]:
    """The views whose ratio of counts is largest: as many as give the best certain bound.

    `at` is the chance that the promise leaves out, δ of (ε, δ).
    """
    runs = int(top.sum())
    order = np.argsort(-(top + 0.5) / (bottom + 0.5), kind="stable")
    up, down = np.cumsum(top[order]), np.cumsum(bottom[order])
    # Rough bounds suffice here, for what is chosen is judged by other runs.
    spread = math.sqrt(2 * math.log(1 / failure))
    low = np.maximum(up - spread * np.sqrt(up + 1.0) - at * runs, 0.0)
    high = down + spread * np.sqrt(down + 1.0) + spread**2 / 2
    best = int(np.argmax(low / np.minimum(high, runs)))
    worst = np.zeros(len(top), np.bool_)
    worst[order[: best + 1]] = True
    return worst


def certain_ratio(top: int, bottom: int, runs: int, failure: float) -> float:
    """What P(E | one table) / P(E | the other) is at least, except with probability 2·failure."""
    # 1 − p of the complement: Clopper and Pearson's upper limit is a lower one of what is left.
    above = 1 - least_chance(runs - bottom, runs, failure)
    return least_chance(top, runs, failure) / above


def least_chance(seen: int, runs: int, failure: float) -> float:
    """Clopper and Pearson's lower limit: the p at which `seen` or more have chance `failure`."""
    return float(betaincinv(seen, runs - seen + 1, failure)) if seen else 0.0
