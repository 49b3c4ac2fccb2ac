"""The slides' tester of an implication on two servers, which shows why it is of little use."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from voile.errors import UsageError, spelled
from voile.noise.keyed import members, row_hashes
from voile.progress import Progress, Silent
from voile.remote.across import (
    ConditionShare,
    SideLiteral,
    TesterResult,
    ask_side,
    conjunction,
    spent,
)
from voile.remote.implication import Tester
from voile.remote.plan import CountReply, MiningPlan, ServerSide, knows_sizes


@dataclass(frozen=True, eq=False)
class TesterPlan:
    """A search for a biased half: the slides' tester on a plan's halves."""

    plan: MiningPlan
    literals: tuple[SideLiteral, SideLiteral]
    bias: float
    threshold: float


def planned_tester(plan: MiningPlan, *, bias: float = 1.0, threshold: float = 0.0) -> TesterPlan:
    """Whether α implies β in probability by more than `threshold`, where f is "α and β".

    Random halves are asked about α until one has |q|·p_α + bias·√n of it, or all of the plan's
    were tried; then β is asked of that half.
    """
    if not 0 < bias < math.inf:
        raise UsageError(f"the bias {bias!r} is not above 0", hint="the slides take 1")
    if not -1 <= threshold <= 1:
        raise UsageError(f"no Δ is as large as {threshold!r}", hint="from -1 to 1, such as 0.1")
    if not knows_sizes(plan.sides):
        raise UsageError(
            "the tester needs the sizes of halves, which the servers' ids do not show",
            hint=f"leave {spelled('tester', True)} out: the covariance does not need them",
        )
    literals = conjunction(plan)
    if literals is None:
        raise UsageError(
            f"{plan.expression!r} is not a condition of one server and one of another",
            hint="the tester is about α and β: A.smoker and B.cancer",
        )
    return TesterPlan(replace(plan, searching=True), literals, bias, threshold)


def run_tester(trial: TesterPlan, progress: Progress | None = None) -> TesterResult:
    """Ask the servers, and say what the tester finds."""
    return _Run(trial, progress or Silent()).tested()


class _Run:
    """One search for a half."""

    def __init__(self, trial: TesterPlan, progress: Progress) -> None:
        self.plan, self.literals, self.progress = trial.plan, trial.literals, progress
        self.bias, self.threshold = trial.bias, trial.threshold
        self.hashes = row_hashes(range(trial.plan.rows))
        self.replies: dict[str, list[CountReply]] = {side.name: [] for side in trial.plan.sides}

    def count(self, literal: SideLiteral, half: str | None) -> tuple[float, float]:
        """How many of the rows the literal holds of, and how many rows there are."""
        side = literal.side
        reply = ask_side(side, side.sql(literal.sql), "all" if half is None else {"half": half})
        self.replies[side.name].append(reply)
        size = self.plan.rows if half is None else self.size(half)
        found = float(reply.answer or 0.0)
        return (size - found if literal.negated else found), float(size)

    def size(self, half: str) -> int:
        return int(members(self.hashes, half).sum())

    def tested(self) -> TesterResult:
        given, then = self.literals
        shares = [min(1.0, max(0.0, self.count(one, None)[0] / self.plan.rows))
                  for one in self.literals]  # fmt: skip
        tester = Tester(self.plan.rows, shares[0], self.noise(), self.bias)
        accepted, excess, size = self.search(tester)
        delta = stderr = above = None
        if accepted is not None:
            count, _ = self.count(then, accepted)
            other = count - size * shares[1]
            delta = float(tester.delta(np.array(excess), np.array(other)))
            stderr = tester.stderr(excess, shares[1])
            limit = tester.threshold(np.array(excess), np.array(size), shares[1], self.threshold)
            above = bool(count > limit)
        tried = len(self.replies[given.side.name]) - 1
        return TesterResult(
            expression=self.plan.expression, bias=self.bias, acceptance=tester.acceptance,
            tried=tried, accepted=accepted, delta=delta, stderr=stderr,
            threshold=self.threshold, above=above,
            shares=tuple(self.share(one, p) for one, p in zip(self.literals, shares, strict=True)),
            spent={s.name: spent(s, self.replies[s.name]) for s in self.plan.sides},
            rows=self.plan.rows, seed=self.plan.seed, notes=self.plan.notes,
        )  # fmt: skip

    def search(self, tester: Tester) -> tuple[str | None, float, float]:
        """The first half that is accepted, its excess of α and its size."""
        self.progress.start("asking", self.plan.halves)
        for half in self.plan.half_seeds():
            count, size = self.count(self.literals[0], half)
            self.progress.advance(1)
            if tester.accepts(np.array(count), np.array(size)):
                return half, count - size * tester.share, size
        return None, 0.0, 0.0

    def noise(self) -> tuple[float, float]:
        return self._variance(self.literals[0].side), self._variance(self.literals[1].side)

    def _variance(self, side: ServerSide) -> float:
        return float(self.replies[side.name][0].stderr or 0.0) ** 2

    def share(self, literal: SideLiteral, value: float) -> ConditionShare:
        stderr = math.sqrt(self._variance(literal.side)) / self.plan.rows
        return ConditionShare(literal.side.name, literal.condition, value, stderr)
