"""The audit of a method of Voile: its own sampler on a small domain, beside what it promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.errors import UsageError
from voile.evaluate.audit import subject as subjects
from voile.evaluate.audit.bounds import Audit, Bound, check, compare
from voile.evaluate.audit.subject import BYSTANDER, EXCHANGE, RECORD, TUPLES, Draw, Subject
from voile.noise import Key
from voile.privacy import ADVERSARIES, DGamma, Form, LikelihoodRatio
from voile.schema import TupleIndex

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
        return self.found.broken

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        return self.found.high, self.found.low

    @property
    def failure(self) -> float:
        return self.found.failure

    def explain(self) -> str:
        return self.found.explain()

    @property
    def scope(self) -> str:
        """What was tested, and what was not."""
        text = f"A test of the mechanism's code on a domain of {TUPLES} tuples, not of any release."
        if self.weaken == 1:
            return text
        return (
            f"{text} Noise was taken away on purpose (--weaken {self.weaken:g}): the mechanism as "
            "it is has all of it."
        )

    def to_dict(self) -> dict[str, Any]:
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
                hint="give --noise, or --prior and --posterior",
            )
        kept = 0.5 if retention is None else retention
        subject = subjects.own_parameters(rows, kept, noise, weaken)
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
    subject: Subject, exchange: bool, others: int, runs: int, seed: int | None
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
    if others and (rows == "set" or method == "series"):
        which = "a set has" if rows == "set" else "a series is audited with"
        raise UsageError(f"{which} no other records with the same values", hint="leave --others")
    if not 0 <= others <= MOST_OTHERS:
        raise UsageError(f"others {others} is out of range", hint=f"use 0 to {MOST_OTHERS}")


def check_words(
    method: str, rows: str, adversary: str, noise: float | None, views: int | None
) -> None:
    if method not in METHODS:
        raise UsageError(f"method {method!r} is not known", hint=f"there is {', '.join(METHODS)}")
    if rows not in ("multiset", "set"):
        raise UsageError(f"rows {rows!r} is not known", hint="use 'multiset' or 'set'")
    if adversary not in ADVERSARIES:
        raise UsageError(
            f"adversary {adversary!r} is not known", hint=f"use {' or '.join(ADVERSARIES)}"
        )
    if noise is not None and method != "alphabeta":
        raise UsageError(f"--noise is for alphabeta, not {method}", hint="give a promise")
    if views is not None and method != "series":
        raise UsageError(f"--views is for series, not {method}", hint="leave it out")
    if method == "shaped" and rows == "set":
        raise UsageError("shaped noise is for multisets", hint="leave out --rows set")


def chosen(
    method: str, promise: DGamma, rows: Form, views: int, retention: float | None, weaken: float
) -> Subject:
    if method == "shaped":
        return subjects.shaped(promise, retention, weaken)
    if method == "series":
        return subjects.series(promise, rows, views, retention, weaken)
    return subjects.planned(promise, rows, retention, weaken)


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
