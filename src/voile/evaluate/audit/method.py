"""What an audit runs: a method's own sampler on a small domain, and what it is held to.

Tuples are perturbed independently, so many runs are laid side by side in a larger domain, with one
more attribute in front: that is the sampler's own way with large domains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.errors import UsageError, did_you_mean, spelled
from voile.evaluate.audit.answers import AnswersAudit, audit_answers
from voile.evaluate.audit.bounds import Audit, AuditBound, check, compare
from voile.kinds.views.alphabeta import AlphaBeta, Publishing
from voile.kinds.views.series import Series, SeriesHistory
from voile.kinds.views.shaped import Shaped
from voile.noise import Key
from voile.privacy import ADVERSARIES, DGamma, Form, LikelihoodRatio, plan
from voile.privacy.planner import plan_shaped
from voile.privacy.series import SeriesNoise, plan_series
from voile.schema import Keys, TupleIndex
from voile.schema.index import Product, whole_parts

Draw = Callable[[TupleIndex, Keys, Key], list[Keys]]
"""The views of a table, given by sorted keys; the index is of (runs side by side, TUPLES)."""

TUPLES = 3
"""The small domain: the record in question, the one it is exchanged for, and a bystander."""
RECORD, EXCHANGE, BYSTANDER = range(TUPLES)
CHANCES = (3.0, 2.0, 1.0)
"""Of the three tuples, where noise has a shape."""
FLOOR = 0.1


@dataclass(frozen=True)
class AuditedMechanism:
    """A method with its parameters: what it draws, and the likelihood ratio that it states."""

    parameters: dict[str, Any]
    stated: LikelihoodRatio
    draw: Draw
    views: int = 1
    other: LikelihoodRatio | None = None
    """Of the tuple that the record is exchanged for, where that differs."""

    def stated_of(self, exchange: bool) -> LikelihoodRatio:
        """With the record against without it; or with it against with another in its place."""
        if not exchange:
            return self.stated
        other = self.other or self.stated
        if self.stated.high is None or other.high is None or 0 in (self.stated.low, other.low):
            return LikelihoodRatio(Fraction(0), None)
        return LikelihoodRatio(self.stated.low / other.high, self.stated.high / other.low)


def one_view(mechanism: Publishing) -> Draw:
    """Draws one view by the mechanism's own sampler."""

    def draw(index: TupleIndex, members: Keys, key: Key) -> list[Keys]:
        noise = mechanism.noise_rows(index, key, 0, 0, index.sizes[0] * TUPLES)
        return [np.concatenate(list(mechanism.view(members, noise, key, 0)))]

    return draw


def alphabeta(mechanism: AlphaBeta, weaken: float) -> AuditedMechanism:
    """αβ with these parameters, held to the ratio that it states."""
    parameters = {"rows": mechanism.form, "retention": mechanism.retention,
                  "noise": mechanism.noise}  # fmt: skip
    sampled = replace(mechanism, noise=weaken * mechanism.noise)
    return AuditedMechanism(parameters, mechanism.likelihood_ratio(), one_view(sampled))


def planned(
    promise: DGamma, rows: Form, retention: float | None, weaken: float
) -> AuditedMechanism:
    """αβ with the parameters that a promise needs."""
    found = plan(promise, rows, retention=retention)
    return alphabeta(AlphaBeta(found.retention, found.noise, rows), weaken)


def own_parameters(rows: Form, retention: float, noise: float, weaken: float) -> AuditedMechanism:
    """αβ with parameters that were given."""
    try:
        return alphabeta(AlphaBeta(retention, noise, rows), weaken)
    except ValueError as error:
        raise UsageError(str(error), hint="retention in (0, 1], noise in [0, 1)") from None


def shaped(promise: DGamma, retention: float | None, weaken: float) -> AuditedMechanism:
    """Shaped noise, held to what it states of the record in question, the likeliest tuple."""
    parts = whole_parts(CHANCES)
    found = plan_shaped(
        promise, promise.prior * TUPLES, Product((parts,)), (TUPLES,), floor_share=FLOOR,
        retention=retention,
    )  # fmt: skip

    def side_by_side(runs: int, share: float) -> Shaped:
        # Each run has its own tuples, so that one tuple's chance is a runs-th of what it was.
        return Shaped(
            found.retention, share * found.floor, share * found.strength * runs,
            share * found.cap, Product((None, parts)), (runs, TUPLES),
        )  # fmt: skip

    def draw(index: TupleIndex, members: Keys, key: Key) -> list[Keys]:
        return one_view(side_by_side(index.sizes[0], weaken))(index, members, key)

    a = Fraction(found.retention)
    codes = [np.zeros(TUPLES, np.int64), np.arange(TUPLES)]
    means = [Fraction(float(mean)) for mean in side_by_side(1, 1.0).noise_mean(codes)]
    stated = [LikelihoodRatio(1 - a, 1 + a / mean) for mean in means]
    parameters = {"retention": found.retention, "noise_floor": found.floor,
                  "noise_strength": found.strength, "noise_cap": found.cap}  # fmt: skip
    return AuditedMechanism(parameters, stated[RECORD], draw, other=stated[EXCHANGE])


def series(
    promise: DGamma, rows: Form, views: int, retention: float | None, weaken: float
) -> AuditedMechanism:
    """All views of a series of a table that does not change, with noise for one that may."""
    noise = plan_series(promise, rows, views, changing=True, retention=retention)
    sampled = replace(
        noise, unseen=tuple(weaken * q for q in noise.unseen), seen=weaken * noise.seen
    )
    parameters = {"rows": rows, "views": views, "retention": noise.retention,
                  "noise": list(noise.unseen), "noise_seen": noise.seen}  # fmt: skip
    return AuditedMechanism(parameters, noise.likelihood_ratio(), all_views(sampled), views)


def all_views(noise: SeriesNoise) -> Draw:
    """Draws every view of a series, each with the history before it."""

    def draw(index: TupleIndex, members: Keys, key: Key) -> list[Keys]:
        history, found = SeriesHistory.empty(index), []
        for number in range(1, noise.views + 1):
            mechanism = Series(noise, number, len(history.keys), history.keys)
            rows = mechanism.noise_rows(index, key, number, 0, index.sizes[0] * TUPLES)
            view = np.concatenate(list(mechanism.view(members, rows, key, number)))
            history = history.with_view(view)
            found.append(view)
        return found

    return draw


# ------ the audit of a method of Voile: its own sampler on a small domain, beside what it promises


METHODS = ("alphabeta", "shaped", "series")
PRIOR, POSTERIOR, VIEWS = 0.01, 0.2, 3
SIDE_BY_SIDE = 1000
"""Runs that are laid side by side in one domain, under one key."""
BITS = 60
"""Of the number that stands for all views of a run."""
MOST_DIGITS = 6
"""Binary digits of a published count."""
MOST_OTHERS = 31


@dataclass(frozen=True)
class MethodAudit:
    """What was run, what is promised, and what the runs show."""

    method: str
    parameters: dict[str, Any]
    promise: dict[str, Any]
    weaken: float
    simulated: bool
    found: Audit

    measure = "ratio"
    """What is bounded, for the heading of a column."""

    @property
    def broken(self) -> bool:
        """Whether the runs prove the promise broken."""
        return self.found.broken

    @property
    def bounds(self) -> tuple[AuditBound, AuditBound]:
        """What is proven of the largest and of the smallest ratio."""
        return self.found.high, self.found.low

    @property
    def failure(self) -> float:
        """With which probability a sound mechanism is called broken, at most."""
        return self.found.failure

    def explain(self) -> str:
        """The verdict in a sentence, with what it is worth."""
        return self.found.explain()

    @property
    def scope(self) -> str:
        """What was tested, and what was not."""
        text = f"A test of the mechanism's code on a domain of {TUPLES} tuples, not of any release."
        if self.weaken == 1:
            return text
        return (
            f"{text} Noise was taken away on purpose ({spelled('weaken', self.weaken)}): the "
            "mechanism as "
            "it is has all of it."
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            "method": self.method,
            "parameters": self.parameters,
            "promise": self.promise,
            "weaken": self.weaken,
            "simulated": self.simulated,
            "scope": self.scope,
            **self.found.to_dict(),
        }


def audit_method(
    method: str = "alphabeta",
    *,
    rows: Form = "multiset",
    prior: float | None = None,
    posterior: float | None = None,
    retention: float | None = None,
    noise: float | None = None,
    adversary: str = "independent",
    views: int | None = None,
    weaken: float = 1.0,
    others: int = 0,
    runs: int = 50_000,
    failure: float = 1e-3,
    simulate_seed: int | None = None,
) -> MethodAudit:
    """Audit a method at the parameters of a promise, or at parameters of one's own.

    With `noise`, the mechanism is held to the likelihood ratio that it states itself; without, to
    that of (prior, posterior). `weaken` draws only that share of the noise, as a demonstration.
    """
    check_words(method, rows, adversary, noise, views)
    check_others(others, rows, method)
    if not 0 < weaken <= 1:
        raise UsageError(f"weaken {weaken:g} must lie in (0, 1]", hint="0.7 leaves 70 % of it")
    check(runs, failure)
    exchange = adversary == "exclusive"
    if noise is not None:
        if prior is not None or posterior is not None:
            raise UsageError(
                "a promise and the noise were given",
                hint=f"give {spelled('noise')}, or {spelled('prior')} and {spelled('posterior')}",
            )
        kept = 0.5 if retention is None else retention
        subject = own_parameters(rows, kept, noise, weaken)
        words: dict[str, Any] = {"kind": "likelihood-ratio", "adversary": adversary}
    else:
        promise = DGamma(
            PRIOR if prior is None else prior,
            POSTERIOR if posterior is None else posterior,
            "exclusive" if exchange else "independent",
        )
        count = VIEWS if views is None else views
        subject = chosen(method, promise, rows, count, retention, weaken)
        words = {"kind": "d-gamma", "prior": promise.prior, "posterior": promise.posterior,
                 "adversary": adversary}  # fmt: skip
    # Shaped noise protects each tuple as it can: it is held to what it states of this one.
    stated = noise is not None or method == "shaped"
    promised = subject.stated_of(exchange) if stated else held_to(promise)
    published = both_tables(subject, exchange, others, runs, simulate_seed)
    return MethodAudit(
        method=method,
        parameters=subject.parameters,
        promise=words,
        weaken=weaken,
        simulated=simulate_seed is not None,
        found=compare(*published, promised=promised, failure=failure),
    )


def both_tables(
    subject: AuditedMechanism, exchange: bool, others: int, runs: int, seed: int | None
) -> list[npt.NDArray[np.int64]]:
    """What is published of the table with the record, and of that without it or with another."""
    bystanders = [BYSTANDER, *[RECORD] * others]
    places = TUPLES if subject.views == 1 else 1 + exchange  # the record, and what replaces it
    tables = ([RECORD, *bystanders], [EXCHANGE, *bystanders] if exchange else bystanders)
    return [
        publish_often(subject.draw, members, runs, keys(seed, which), subject.views, places)
        for which, members in enumerate(tables)
    ]


def check_others(others: int, rows: str, method: str) -> None:
    """Refuse other records where there can be none."""
    if others and (rows == "set" or method == "series"):
        which = "a set has" if rows == "set" else "a series is audited with"
        raise UsageError(
            f"{which} no other records with the same values", hint=f"leave {spelled('others')}"
        )
    if not 0 <= others <= MOST_OTHERS:
        raise UsageError(f"others {others} is out of range", hint=f"use 0 to {MOST_OTHERS}")


def check_words(
    method: str, rows: str, adversary: str, noise: float | None, views: int | None
) -> None:
    """Refuse unknown words, and options that another method has."""
    if method not in METHODS:
        raise UsageError(f"method {method!r} is not known", hint=f"there is {', '.join(METHODS)}")
    if rows not in ("multiset", "set"):
        raise UsageError(f"rows {rows!r} is not known", hint="use 'multiset' or 'set'")
    if adversary not in ADVERSARIES:
        raise UsageError(
            f"adversary {adversary!r} is not known", hint=f"use {' or '.join(ADVERSARIES)}"
        )
    if noise is not None and method != "alphabeta":
        raise UsageError(
            f"{spelled('noise')} is for alphabeta, not {method}", hint="give a promise"
        )
    if views is not None and method != "series":
        raise UsageError(f"{spelled('views')} is for series, not {method}", hint="leave it out")
    if method == "shaped" and rows == "set":
        raise UsageError(
            "shaped noise is for multisets", hint=f"leave out {spelled('rows', 'set')}"
        )


def chosen(
    method: str, promise: DGamma, rows: Form, views: int, retention: float | None, weaken: float
) -> AuditedMechanism:
    """The method's mechanism for a promise."""
    if method == "shaped":
        return shaped(promise, retention, weaken)
    if method == "series":
        return series(promise, rows, views, retention, weaken)
    return planned(promise, rows, retention, weaken)


def held_to(promise: DGamma) -> LikelihoodRatio:
    """What a promise allows."""
    if promise.adversary == "independent":
        return LikelihoodRatio(promise.ratio_low, promise.ratio_high)
    # One record in another's place: the upper bound holds in both directions.
    return LikelihoodRatio(1 / promise.ratio_high, promise.ratio_high)


# ---------------------------------------------------------------------- running it


def keys(seed: int | None, table: int) -> Callable[[int], Key]:
    """A key for each batch: fresh ones, or those of a simulation."""
    if seed is None:
        return lambda _: Key.fresh()
    return lambda batch: Key.from_seed((2 * batch + table) * 2**32 + seed)


def publish_often(
    draw: Draw,
    members: list[int],
    runs: int,
    key: Callable[[int], Key],
    views: int = 1,
    places: int = TUPLES,
) -> npt.NDArray[np.int64]:
    """Publish a table of the small domain many times; all views of a run as one number.

    Of each view the first `places` tuples are looked at: with many views, the rest only makes
    runs differ that are alike in what matters.
    """
    found: list[npt.NDArray[np.int64]] = []
    digits = min(MOST_DIGITS, BITS // (places * views))
    for batch, start in enumerate(range(0, runs, SIDE_BY_SIDE)):
        size = min(SIDE_BY_SIDE, runs - start)
        index = TupleIndex([size, TUPLES])
        rows = np.add.outer(TUPLES * np.arange(size), np.sort(members)).ravel().astype(np.uint64)
        shown = np.zeros(size, np.int64)
        for view in draw(index, rows, key(batch)):
            counts = np.bincount(view.astype(np.int64), minlength=size * TUPLES)
            for count in np.minimum(counts, 2**digits - 1).reshape(size, TUPLES).T[:places]:
                shown = shown << digits | count
        found.append(shown)
    return np.concatenate(found)


# ---------------------------------------- which audit a method has, and which options belong to it


ANSWERS = "answers"


def audited(
    method: str, publishing: Mapping[str, Any], answering: Mapping[str, Any], **running: Any
) -> MethodAudit | AnswersAudit:
    """Audit what publishes views, or the noise of a server; None is what was not asked for."""
    views = {name: value for name, value in publishing.items() if value is not None}
    answers = {name: value for name, value in answering.items() if value is not None}
    if method == ANSWERS:
        refuse(views, f"{ANSWERS} have no views", f"the options of {ANSWERS}", list(answering))
        return audit_answers(**answers, **running)
    if method in METHODS:
        refuse(answers, f"{method} answers no questions", f"the options of {method}",
               list(publishing))  # fmt: skip
        return audit_method(method, **views, **running)
    known = [*METHODS, ANSWERS]
    raise UsageError(f"method {method!r} is not known", hint=did_you_mean(method, known))


def refuse(given: Mapping[str, Any], why: str, whose: str, known: list[str]) -> None:
    """Refuse options that belong to another method."""
    if given:
        listed = ", ".join(f"--{name}" for name in given)
        options = ", ".join(f"--{name}" for name in known)
        raise UsageError(f"{why}: {listed}", hint=f"{whose} are {options}")
