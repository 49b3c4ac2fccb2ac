"""Statistics of people whose columns lie on several servers.

Both servers are asked for noisy counts of the same public random halves of their rows, each about
its own columns. Neither sees the other's, and each charges its own budget. Asking again with the
same seed is free, so an interrupted run can be resumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import stats

from voile.arrays import Floats
from voile.errors import TableError, VoileError
from voile.estimate import checked_confidence, number
from voile.noise.keyed import members, row_hashes
from voile.progress import Progress, Silent
from voile.records import Record
from voile.remote.client import Subset
from voile.remote.implication import (
    BilinearForm,
    CovarianceEstimate,
    EstimatedShares,
    NoisyCounts,
    combined,
    cut,
    excess,
    implied,
    quantile,
)
from voile.remote.plan import (
    TOGETHER,
    CountReply,
    CountServer,
    MiningPlan,
    ServerSide,
    knows_sizes,
    planned,
)


@dataclass(frozen=True)
class ConditionShare(Record):
    """How frequent one side's condition is."""

    json_keys = ("server", "sql", "share=value", "stderr")

    server: str
    sql: str
    value: float
    stderr: float


@dataclass(frozen=True)
class Implication(Record):
    """Δ = Pr[then | given] − Pr[then]."""

    given: str
    then: str
    delta: float
    stderr: float
    low: float
    high: float


@dataclass(frozen=True)
class BudgetUse(Record):
    """What one server was asked, what it charged, and what is left."""

    asked: int
    charged: int
    remaining: int


@dataclass(frozen=True)
class MiningResult(Record):
    """Pr[f] with its error."""

    json_keys = (
        "expression", "probability", "confidence", "observed_stderr=observed", "independent",
        "implications", "shares", "queries=spent", "rows", "halves", "seed", "expected_error",
        "notes",
    )  # fmt: skip

    expression: str
    value: float
    stderr: float
    low: float
    high: float
    confidence: float
    observed: float | None
    """The standard error that the halves show, whatever noise the servers state."""
    independent: float
    """What Pr[f] would be if the two sides were independent."""
    implications: tuple[Implication, ...]
    shares: tuple[ConditionShare, ...]
    spent: dict[str, BudgetUse]
    rows: int
    halves: int
    seed: str
    expected_error: float
    notes: tuple[str, ...]

    @property
    def probability(self) -> dict[str, float]:
        """The estimate with its standard error and interval."""
        return {
            "estimate": self.value, "stderr": self.stderr, "low": self.low, "high": self.high,
        }  # fmt: skip

    def __str__(self) -> str:
        value, stderr, low, high = (
            number(x, self.stderr) for x in (self.value, self.stderr, self.low, self.high)
        )
        return f"Pr[{self.expression}] = {value} ± {stderr} [{low}, {high}] at {self.confidence:g}"


@dataclass(frozen=True)
class TesterResult(Record):
    """What the slides' tester found, and how likely it was to find anything."""

    json_keys = (
        "expression", "bias", "acceptance", "tried", "accepted", "delta", "stderr", "threshold",
        "above", "shares", "queries=spent", "rows", "seed", "notes",
    )  # fmt: skip

    expression: str
    bias: float
    acceptance: float
    """How likely a random half is accepted."""
    tried: int
    accepted: str | None
    """The half that was, by its seed."""
    delta: float | None
    stderr: float | None
    threshold: float
    above: bool | None
    """What the tester says: whether Δ is larger than the threshold."""
    shares: tuple[ConditionShare, ...]
    spent: dict[str, BudgetUse]
    rows: int
    seed: str
    notes: tuple[str, ...]


# ---------------------------------------------------------------------- across


SURPRISE = 1e-6
"""How unlikely a spread of counts must be before it is remarked."""


def mine(
    servers: Mapping[str, CountServer],
    expression: str,
    *,
    halves: int | None = None,
    error: float | None = None,
    confidence: float = 0.95,
    seed: str | None = None,
    progress: Progress | None = None,
) -> MiningResult:
    """Pr[f] of a Boolean function of two servers' columns, as "A.smoker and not B.cancer".

    `halves` random halves are asked about, or as many as a standard error of `error` needs. Nothing
    is asked if a budget does not suffice. `seed` names the halves; it is public.
    """
    plan = planned(servers, expression, halves=halves, error=error, seed=seed)
    plan.check()
    return carried_out(plan, confidence=confidence, progress=progress)


def carried_out(
    plan: MiningPlan, *, confidence: float = 0.95, progress: Progress | None = None
) -> MiningResult:
    """Ask all questions of the plan, and estimate."""
    checked_confidence(confidence)
    answers = PlanAnswers(plan, progress or Silent())
    answers.ask()
    if len(plan.sides) == 2:
        return of_two_sides(plan, answers, confidence)
    return of_one_side(plan, answers, confidence)


@dataclass
class PlanAnswers:
    """Replies to a plan's questions, in its order."""

    plan: MiningPlan
    progress: Progress

    def ask(self) -> None:
        """Ask all; the first half comes first, so that servers that do not match cost little."""
        questions = self.plan.questions()
        each = sum(len(side.conditions) for side in self.plan.sides)
        self.replies: list[CountReply] = []
        self.progress.start("asking", len(questions))
        for part in (questions[: 2 * each], questions[2 * each :]):
            with ThreadPoolExecutor(TOGETHER) as pool:
                waiting = [pool.submit(ask_side, *question) for question in part]
                try:
                    for one in waiting:
                        self.replies.append(one.result())
                        self.progress.advance(1)
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
            self.check_sizes()

    def of(self, side: ServerSide) -> list[CountReply]:
        """The replies of one server, in the order of the plan's questions."""
        questions = self.plan.questions()
        return [r for r, (one, _, _) in zip(self.replies, questions, strict=False) if one is side]

    def stated_sizes(self, side: ServerSide) -> list[int | None]:
        """|q| of each half, as far as the server states them."""
        count = len(side.conditions)
        return [reply.subset_rows for reply in self.of(side)[count::count]]

    def check_sizes(self) -> None:
        """Servers with the same ids have halves of the same sizes."""
        stated = [self.stated_sizes(side) for side in self.plan.sides]
        for sizes in zip(*stated, strict=False):
            if len({size for size in sizes if size is not None}) > 1:
                names = " and ".join(side.name for side in self.plan.sides)
                raise TableError(
                    f"{names} do not hold the same people: the same half has "
                    f"{' and '.join(f'{size:,}' for size in sizes)} rows there",
                    hint="begin both servers with the same people's ids (voile serve init --id)",
                )

    def sizes(self) -> Floats | None:
        """|q| of each half: as stated, else from the rows' numbers, else unknown."""
        stated = [size for size in self.stated_sizes(self.plan.sides[0]) if size is not None]
        if len(stated) == self.plan.halves:
            return np.array(stated, dtype=np.float64)
        if not knows_sizes(self.plan.sides):
            return None
        hashes = row_hashes(range(self.plan.rows))
        halves = self.plan.half_seeds()
        return np.array([members(hashes, seed).sum() for seed in halves], dtype=np.float64)

    def counts(self, side: ServerSide) -> NoisyCounts:
        """The counts of one server: of all rows, and of each half."""
        replies = self.of(side)
        table = np.array([r.answer for r in replies], dtype=float).reshape(-1, len(side.conditions))
        noise = max(float(r.stderr or 0.0) ** 2 for r in replies)
        return NoisyCounts(table[0], table[1:], noise)

    def spent(self) -> dict[str, BudgetUse]:
        """What each server was asked and charged."""
        return {side.name: spent(side, self.of(side)) for side in self.plan.sides}


def ask_side(side: ServerSide, sql: str, subset: Subset) -> CountReply:
    """The reply to one question; an error names the server."""
    try:
        return side.server.ask(sql, subset)
    except VoileError as error:
        error.message = f"{side.name}: {error.message}"
        raise


def spent(side: ServerSide, replies: list[CountReply]) -> BudgetUse:
    """What these replies took from the server's budget."""
    charged = sum(reply.charged for reply in replies)
    return BudgetUse(len(replies), charged, int(side.server.budget()["remaining"]))


def of_two_sides(plan: MiningPlan, answers: PlanAnswers, confidence: float) -> MiningResult:
    """The estimate of a function that reads two servers."""
    left, right = plan.sides
    counts = answers.counts(left), answers.counts(right)
    sizes = answers.sizes()
    form = plan.products.form
    found = combined(form, *counts, plan.rows, sizes)
    low, high = found.interval(confidence)
    values = found.shares[0].value, found.shares[1].value
    return MiningResult(
        expression=plan.expression,
        value=found.value, stderr=found.stderr, low=low, high=high, confidence=confidence,
        observed=found.observed, independent=form.value(values),
        implications=implications(plan, found, confidence),
        shares=tuple(
            ConditionShare(side.name, sql, float(p), float(e))
            for side, of in zip(plan.sides, found.shares, strict=True)
            for sql, p, e in zip(side.conditions, of.value, of.stderr, strict=True)
        ),
        spent=answers.spent(), rows=plan.rows, halves=plan.halves, seed=plan.seed,
        expected_error=plan.error,
        notes=(*plan.notes, *surprises(plan, found, counts, sizes)),
    )  # fmt: skip


def of_one_side(plan: MiningPlan, answers: PlanAnswers, confidence: float) -> MiningResult:
    """One count, or none where the function is constant."""
    form = plan.products.form
    sign = float(form.left.sum() + form.right.sum())
    shares = []
    for side in plan.sides:
        counts = answers.counts(side)
        share, stderr = counts.total[0] / plan.rows, counts.variance**0.5 / plan.rows
        shares.append(ConditionShare(side.name, side.conditions[0], float(share), stderr))
    value = form.constant + sum(sign * one.value for one in shares)
    stderr = shares[0].stderr if shares else 0.0
    reach = float(stats.norm.ppf((1 + confidence) / 2)) * stderr
    low, high = np.clip([value - reach, value + reach], 0.0, 1.0)
    return MiningResult(
        expression=plan.expression,
        value=value, stderr=stderr, low=float(low), high=float(high), confidence=confidence,
        observed=None, independent=value, implications=(), shares=tuple(shares),
        spent=answers.spent(), rows=plan.rows, halves=0, seed=plan.seed,
        expected_error=plan.error, notes=plan.notes,
    )  # fmt: skip


@dataclass(frozen=True)
class SideLiteral:
    """A condition of a side, or its complement."""

    side: ServerSide
    sql: str
    negated: bool

    def __str__(self) -> str:
        return f"{self.side.name}: {self.condition}"

    @property
    def condition(self) -> str:
        """The literal as an SQL condition."""
        return f"NOT ({self.sql})" if self.negated else self.sql

    def share(self, of: EstimatedShares) -> tuple[float, float]:
        """How frequent it is, and the error of that."""
        value, stderr = float(of.value[0]), float(of.stderr[0])
        return (1 - value if self.negated else value), stderr


def conjunction(plan: MiningPlan) -> tuple[SideLiteral, SideLiteral] | None:
    """The two literals, if f is true where both of them are and nowhere else."""
    if len(plan.sides) < 2 or plan.products.form.product.shape != (1, 1):
        return None
    corners = [(a, b) for a in (0, 1) for b in (0, 1) if _at(plan.products.form, a, b) > 0]
    if len(corners) != 1:
        return None
    one, other = (
        SideLiteral(side, side.conditions[0], not holds)
        for side, holds in zip(plan.sides, corners[0], strict=True)
    )
    return one, other


def _at(form: BilinearForm, a: int, b: int) -> float:
    return form.value((np.array([float(a)]), np.array([float(b)])))


def implications(
    plan: MiningPlan, found: CovarianceEstimate, confidence: float
) -> tuple[Implication, ...]:
    """Of a conjunction, Δ of each literal given the other."""
    literals = conjunction(plan)
    if literals is None:
        return ()
    found_implications = []
    known = [literal.share(of) for literal, of in zip(literals, found.shares, strict=True)]
    reach = quantile(confidence, found.halves)
    for one, other in ((0, 1), (1, 0)):
        given, then, linked = literals[one], literals[other], found.linked[one]
        ratio = implied(
            found.covariance,
            found.covariance_stderr,
            *known[one],
            linked=-linked if given.negated else linked,
            confidence=confidence,
            halves=found.halves,
        )
        ratio = cut(ratio, known[one], known[other], reach)
        ends = ratio.value, ratio.stderr, ratio.low, ratio.high
        found_implications.append(Implication(str(given), str(then), *ends))
    return tuple(found_implications)


def surprises(
    plan: MiningPlan,
    found: CovarianceEstimate,
    counts: tuple[NoisyCounts, NoisyCounts],
    sizes: Floats | None,
) -> tuple[str, ...]:
    """Warnings about counts of halves that do not vary as independent rows and the noise would."""
    warnings = []
    for side, of, shares in zip(plan.sides, counts, found.shares, strict=True):
        over = excess(of, shares, sizes)
        stated = plan.rows * shares.spread / 4 + of.variance
        seen = np.var(over, axis=0, ddof=1) / np.where(stated > 0, stated, 1.0)
        degrees = found.halves - 1
        law = stats.chi2(degrees)
        chance = 2 * np.minimum(law.sf(degrees * seen), law.cdf(degrees * seen))
        if bool((chance < SURPRISE).any()):
            warnings.append(
                f"counts of halves on {side.name} vary {float(seen.max()):.3g} times as much as "
                "independent rows would: are ids repeated? take observed_stderr for the error"
            )
    return tuple(warnings)
