"""The audit of a server's noise: its own sampler on two neighbouring tables, beside its promise.

Of T counts the record changes each by 1. What was answered is summed up in one number, the
logarithm of how much likelier the stated noise makes it with the record than without; every event
that matters is a set of such numbers. (ε, δ) is promised: P(E | one table) is at most
e^ε·P(E | the other) + δ. Half of the runs choose E; the others bound both chances by Clopper and
Pearson, and with them ε from below. Nothing is taken for granted of the noise that was drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from voile.arrays import Floats, Ints
from voile.errors import UsageError, spelled
from voile.evaluate.audit.bounds import check, least_chance, worst_event
from voile.noise import Key
from voile.noise.whole import drawn
from voile.privacy.interactive.laws import Change, NoiseLaw, noise_law
from voile.privacy.interactive.promise import account, needed
from voile.records import Record

QUERIES, DELTA, ETA, AT, LAW = 10, 4.0, 1e-6, 0.01, "binomial"
BATCH = 2**20
"""Draws that are held at once."""
MOST_DRAWS = 2_000_000_000
BINS = 64
"""Different numbers that an event is made of, about equally likely ones."""


@dataclass(frozen=True)
class EpsilonBound(Record):
    """What the runs show for certain: at this δ, no smaller ε holds."""

    side: Literal["with / without", "without / with"]
    bound: float
    promised: float
    with_record: int
    without_record: int
    runs: int

    json_keys = (
        "side", "bound", "promised", "with_record", "without_record", "runs", "broken",
    )  # fmt: skip

    @property
    def broken(self) -> bool:
        """Whether the runs prove a larger ε than is promised."""
        return self.bound > self.promised


@dataclass(frozen=True)
class AnswersAudit:
    """What was run, what is promised, and what the runs show of both directions."""

    parameters: dict[str, Any]
    epsilon: float
    at: float
    weaken: float
    simulated: bool
    bounds: tuple[EpsilonBound, EpsilonBound]
    runs: int
    failure: float

    @property
    def measure(self) -> str:
        """What is bounded, for the heading of a column."""
        return f"ε at\nδ = {self.at:g}"

    @property
    def broken(self) -> bool:
        """Whether one direction is broken."""
        return any(one.broken for one in self.bounds)

    @property
    def verdict(self) -> Literal["broken", "consistent"]:
        """What the runs show, in a word."""
        return "broken" if self.broken else "consistent"

    @property
    def scope(self) -> str:
        """What was tested, and what was not."""
        count = self.parameters["queries"]
        text = (
            f"A test of the code that draws a server's noise, on {count:,} "
            f"count{'s' * (count != 1)} of two tables; not of any server."
        )
        if self.weaken == 1:
            return text
        return (
            f"{text} Noise was taken away on purpose ({spelled('weaken', self.weaken)}): the "
            "mechanism as "
            "it is has all of it."
        )

    def explain(self) -> str:
        """The verdict in a sentence, with what it is worth."""
        runs = f"{self.runs:,} runs on each of two neighbouring tables"
        if self.broken:
            return (
                f"broken: {runs} show a larger ε at δ = {self.at:g} than is promised. If the "
                f"promise were kept, this would happen with probability {self.failure:g} at most."
            )
        return (
            f"consistent: {runs} show nothing beyond what is promised at δ = {self.at:g}. More "
            "runs may: this is no proof that it is kept."
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        forth, back = self.bounds
        return {
            "method": "answers",
            "parameters": self.parameters,
            "promise": {"kind": "differential-privacy", "epsilon": self.epsilon, "delta": self.at},
            "weaken": self.weaken,
            "simulated": self.simulated,
            "scope": self.scope,
            "verdict": self.verdict,
            "forth": forth.to_dict(),
            "back": back.to_dict(),
            "runs": self.runs,
            "failure": self.failure,
            "explain": self.explain(),
        }


def audit_answers(
    law: str = LAW,
    *,
    queries: int = QUERIES,
    delta: float = DELTA,
    eta: float = ETA,
    at: float = AT,
    weaken: float = 1.0,
    runs: int = 50_000,
    failure: float = 1e-3,
    simulate_seed: int | None = None,
) -> AnswersAudit:
    """Audit the noise that a server of (δ, T, η) would draw, at one δ of (ε, δ)-DP, `at`."""
    check(runs, failure)
    check_answers(queries, at, weaken, runs)
    variance = needed(law, delta, eta, queries).variance
    stated = noise_law(law, variance)
    promised = account(law, variance, queries, at=at, change=Change()).epsilon
    if promised == math.inf:
        raise UsageError(
            f"no ε is promised at δ = {at:g}: the noise has ends, and is at them more often",
            hint=f"audit it at a larger {spelled('at')}",
        )
    sampled = noise_law(law, weaken**2 * variance)
    with_record, without_record = (
        np.concatenate(list(losses(stated, sampled, shift, queries, runs, simulate_seed)))
        for shift in (1, 0)
    )
    return AnswersAudit(
        parameters={"law": law, "queries": queries, "delta": delta, "eta": eta,
                    "variance": variance, "noise_parameter": stated.parameter},
        epsilon=promised, at=at, weaken=weaken, simulated=simulate_seed is not None,
        bounds=both_ways(with_record, without_record, promised, at, failure / 4),
        runs=runs, failure=failure,
    )  # fmt: skip


def check_answers(queries: int, at: float, weaken: float, runs: int) -> None:
    """Refuse what cannot be run."""
    if not 0 < weaken <= 1:
        raise UsageError(f"weaken {weaken:g} must lie in (0, 1]", hint="0.7 leaves 70 % of it")
    if not 0 < at < 1:
        raise UsageError(f"δ = {at:g} of (ε, δ) is not between 0 and 1", hint=spelled("at", 0.01))
    if queries < 1:
        raise UsageError(f"{queries} answers tell nothing", hint=spelled("queries", 10))
    if queries * runs > MOST_DRAWS:
        raise UsageError(
            f"{runs:,} runs of {queries:,} answers are too many to draw",
            hint=f"fewer {spelled('queries')} do: the noise is made for their number",
        )


def losses(
    stated: NoiseLaw, sampled: NoiseLaw, shift: int, queries: int, runs: int, seed: int | None
) -> Iterator[Floats]:
    """For each run, the summed log-likelihood ratios of its answers about a count of `shift`."""
    each = max(1, BATCH // queries)
    for batch, start in enumerate(range(0, runs, each)):
        size = min(each, runs - start)
        key = None if seed is None else Key.from_seed((2 * batch + shift) * 2**32 + seed)
        answers = drawn(sampled, size * queries, key).reshape(size, queries) + shift
        with np.errstate(invalid="ignore"):
            ratios = stated.log_pmf(answers - 1) - stated.log_pmf(answers)
            yield nothing_known(nothing_known(ratios).sum(axis=1))


def nothing_known(ratios: Floats) -> Floats:
    """±∞ is where only one table can be; what neither can give, or both forbid, tells nothing."""
    return np.where(np.isnan(ratios), 0.0, ratios)


def both_ways(
    with_record: Floats, without_record: Floats, promised: float, at: float, failure: float
) -> tuple[EpsilonBound, EpsilonBound]:
    """Every other run chooses the event, the rest judge it."""
    edges = bins_of(np.concatenate([with_record[::2], without_record[::2]]))
    chosen = [counted(part[::2], edges) for part in (with_record, without_record)]
    judged = [counted(part[1::2], edges) for part in (with_record, without_record)]

    def bound(top: int, side: Literal["with / without", "without / with"]) -> EpsilonBound:
        event = worst_event(chosen[top], chosen[1 - top], failure, at)
        seen = [int(part[event].sum()) for part in judged]
        totals = [int(part.sum()) for part in judged]
        least = certain_epsilon(seen[top], seen[1 - top], totals[0], at, failure)
        return EpsilonBound(side, least, promised, seen[0], seen[1], totals[0])

    return bound(0, "with / without"), bound(1, "without / with")


def bins_of(values: Floats) -> Floats:
    """Where bins begin: at about equally many values each; infinite ones are bins of their own."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return np.zeros(1)
    return np.unique(np.quantile(finite, np.linspace(0, 1, BINS + 1)[1:-1]))


def counted(values: Floats, edges: Floats) -> Ints:
    """How many values are in each bin, infinite ones in the outer two."""
    places = np.searchsorted(edges, values, side="right") + 1
    places[values == -math.inf] = 0
    places[values == math.inf] = len(edges) + 2
    return np.bincount(places, minlength=len(edges) + 3).astype(np.int64)


def certain_epsilon(top: int, bottom: int, runs: int, at: float, failure: float) -> float:
    """The ε that both chances show: ln((P(E | one) − δ) / P(E | the other)) at least, or 0.

    It is larger than the true one with probability at most 2·failure.
    """
    above = 1 - least_chance(runs - bottom, runs, failure)
    gained = least_chance(top, runs, failure) - at
    return max(0.0, math.log(gained / above)) if gained > 0 else 0.0
