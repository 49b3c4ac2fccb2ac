"""Statistics of people whose columns lie on several servers.

Both servers are asked for noisy counts of the same public random halves of their rows, each about
its own columns. Neither sees the other's, and each charges its own budget. Asking again with the
same seed is free, so whoever was interrupted can go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import stats

from voile.arrays import Floats
from voile.asking.covariance import Counts, Form, Found, Shares, combined, excess, quantile
from voile.asking.implication import cut, implied
from voile.asking.mined import Implication, Mined, Share, Spent
from voile.asking.plan import TOGETHER, Plan, Side, knows_sizes, planned
from voile.asking.servers import Asked, Replied, Subset
from voile.errors import TableError, VoileError
from voile.estimate import checked_confidence
from voile.noise.keyed import members, row_hashes

Progress = Callable[[int, int], None]
SURPRISE = 1e-6
"""How unlikely a spread of counts must be before it is remarked."""


def mine(
    servers: Mapping[str, Asked],
    expression: str,
    *,
    halves: int | None = None,
    error: float | None = None,
    confidence: float = 0.95,
    seed: str | None = None,
    progress: Progress | None = None,
) -> Mined:
    """Pr[f] of a Boolean function of two servers' columns, as "A.smoker and not B.cancer".

    `halves` random halves are asked about, or as many as a standard error of `error` needs. Nothing
    is asked if a budget does not suffice. `seed` names the halves; it is public.
    """
    plan = planned(servers, expression, halves=halves, error=error, seed=seed)
    plan.check()
    return carried_out(plan, confidence=confidence, progress=progress)


def carried_out(plan: Plan, *, confidence: float = 0.95, progress: Progress | None = None) -> Mined:
    """Ask all that was planned, and estimate."""
    checked_confidence(confidence)
    answers = Answers(plan, progress)
    answers.ask()
    if len(plan.sides) == 2:
        return of_two_sides(plan, answers, confidence)
    return of_one_side(plan, answers, confidence)


@dataclass
class Answers:
    """Replies to a plan's questions, in its order."""

    plan: Plan
    progress: Progress | None = None

    def ask(self) -> None:
        """The first half before the others: if the servers do not fit, little has been spent."""
        questions = self.plan.questions()
        each = sum(len(side.conditions) for side in self.plan.sides)
        self.replies: list[Replied] = []
        for part in (questions[: 2 * each], questions[2 * each :]):
            with ThreadPoolExecutor(TOGETHER) as pool:
                waiting = [pool.submit(asked, *question) for question in part]
                try:
                    for one in waiting:
                        self.replies.append(one.result())
                        self.told(len(self.replies), len(questions))
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
            self.check_sizes()

    def told(self, done: int, of: int) -> None:
        if self.progress:
            self.progress(done, of)

    def of(self, side: Side) -> list[Replied]:
        questions = self.plan.questions()
        return [r for r, (one, _, _) in zip(self.replies, questions, strict=False) if one is side]

    def told_sizes(self, side: Side) -> list[int | None]:
        """|q| of each half, as far as the server tells them."""
        count = len(side.conditions)
        return [reply.subset_rows for reply in self.of(side)[count::count]]

    def check_sizes(self) -> None:
        """Servers with the same ids have halves of the same sizes."""
        told = [self.told_sizes(side) for side in self.plan.sides]
        for sizes in zip(*told, strict=False):
            if len({size for size in sizes if size is not None}) > 1:
                names = " and ".join(side.name for side in self.plan.sides)
                raise TableError(
                    f"{names} do not hold the same people: the same half has "
                    f"{' and '.join(f'{size:,}' for size in sizes)} rows there",
                    hint="begin both servers with the same people's ids (voile serve init --id)",
                )

    def sizes(self) -> Floats | None:
        """|q| of each half: as told, else from the rows' numbers, else unknown."""
        told = [size for size in self.told_sizes(self.plan.sides[0]) if size is not None]
        if len(told) == self.plan.halves:
            return np.array(told, dtype=np.float64)
        if not knows_sizes(self.plan.sides):
            return None
        hashes = row_hashes(range(self.plan.rows))
        halves = self.plan.half_seeds()
        return np.array([members(hashes, seed).sum() for seed in halves], dtype=np.float64)

    def counts(self, side: Side) -> Counts:
        replies = self.of(side)
        table = np.array([r.answer for r in replies], dtype=float).reshape(-1, len(side.conditions))
        noise = max(float(r.stderr or 0.0) ** 2 for r in replies)
        return Counts(table[0], table[1:], noise)

    def spent(self) -> dict[str, Spent]:
        return {side.name: spent(side, self.of(side)) for side in self.plan.sides}


def asked(side: Side, sql: str, subset: Subset) -> Replied:
    """One question; what goes wrong says where."""
    try:
        return side.server.ask(sql, subset)
    except VoileError as error:
        error.message = f"{side.name}: {error.message}"
        raise


def spent(side: Side, replies: list[Replied]) -> Spent:
    charged = sum(reply.charged for reply in replies)
    return Spent(len(replies), charged, int(side.server.budget()["remaining"]))


def of_two_sides(plan: Plan, answers: Answers, confidence: float) -> Mined:
    left, right = plan.sides
    counts = answers.counts(left), answers.counts(right)
    sizes = answers.sizes()
    form = plan.products.form
    found = combined(form, *counts, plan.rows, sizes)
    low, high = found.interval(confidence)
    values = found.shares[0].value, found.shares[1].value
    return Mined(
        expression=plan.expression,
        value=found.value, stderr=found.stderr, low=low, high=high, confidence=confidence,
        observed=found.observed, independent=form.value(values),
        implications=implications(plan, found, confidence),
        shares=tuple(
            Share(side.name, sql, float(p), float(e))
            for side, of in zip(plan.sides, found.shares, strict=True)
            for sql, p, e in zip(side.conditions, of.value, of.stderr, strict=True)
        ),
        spent=answers.spent(), rows=plan.rows, halves=plan.halves, seed=plan.seed,
        expected_error=plan.error,
        notes=(*plan.notes, *surprises(plan, found, counts, sizes)),
    )  # fmt: skip


def of_one_side(plan: Plan, answers: Answers, confidence: float) -> Mined:
    """One count, or none where the function is constant."""
    form = plan.products.form
    sign = float(form.left.sum() + form.right.sum())
    shares = []
    for side in plan.sides:
        counts = answers.counts(side)
        share, stderr = counts.total[0] / plan.rows, counts.variance**0.5 / plan.rows
        shares.append(Share(side.name, side.conditions[0], float(share), stderr))
    value = form.constant + sum(sign * one.value for one in shares)
    stderr = shares[0].stderr if shares else 0.0
    reach = float(stats.norm.ppf((1 + confidence) / 2)) * stderr
    low, high = np.clip([value - reach, value + reach], 0.0, 1.0)
    return Mined(
        expression=plan.expression,
        value=value, stderr=stderr, low=float(low), high=float(high), confidence=confidence,
        observed=None, independent=value, implications=(), shares=tuple(shares),
        spent=answers.spent(), rows=plan.rows, halves=0, seed=plan.seed,
        expected_error=plan.error, notes=plan.notes,
    )  # fmt: skip


@dataclass(frozen=True)
class Literal:
    """A condition of a side, or its complement."""

    side: Side
    sql: str
    negated: bool

    def __str__(self) -> str:
        told = f"NOT ({self.sql})" if self.negated else self.sql
        return f"{self.side.name}: {told}"

    def share(self, of: Shares) -> tuple[float, float]:
        """How frequent it is, and the error of that."""
        value, stderr = float(of.value[0]), float(of.stderr[0])
        return (1 - value if self.negated else value), stderr


def conjunction(plan: Plan) -> tuple[Literal, Literal] | None:
    """The two literals, if f is true where both of them are and nowhere else."""
    if len(plan.sides) < 2 or plan.products.form.product.shape != (1, 1):
        return None
    corners = [(a, b) for a in (0, 1) for b in (0, 1) if _at(plan.products.form, a, b) > 0]
    if len(corners) != 1:
        return None
    one, other = (
        Literal(side, side.conditions[0], not holds)
        for side, holds in zip(plan.sides, corners[0], strict=True)
    )
    return one, other


def _at(form: Form, a: int, b: int) -> float:
    return form.value((np.array([float(a)]), np.array([float(b)])))


def implications(plan: Plan, found: Found, confidence: float) -> tuple[Implication, ...]:
    """Of a conjunction, what each literal tells of the other."""
    literals = conjunction(plan)
    if literals is None:
        return ()
    told = []
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
        told.append(Implication(str(given), str(then), *ends))
    return tuple(told)


def surprises(
    plan: Plan, found: Found, counts: tuple[Counts, Counts], sizes: Floats | None
) -> tuple[str, ...]:
    """Counts of halves that vary otherwise than independent rows and the stated noise do."""
    told = []
    for side, of, shares in zip(plan.sides, counts, found.shares, strict=True):
        over = excess(of, shares, sizes)
        stated = plan.rows * shares.spread / 4 + of.variance
        seen = np.var(over, axis=0, ddof=1) / np.where(stated > 0, stated, 1.0)
        degrees = found.halves - 1
        law = stats.chi2(degrees)
        chance = 2 * np.minimum(law.sf(degrees * seen), law.cdf(degrees * seen))
        if bool((chance < SURPRISE).any()):
            told.append(
                f"counts of halves on {side.name} vary {float(seen.max()):.3g} times as much as "
                "independent rows would: are ids repeated? take observed_stderr for the error"
            )
    return tuple(told)
