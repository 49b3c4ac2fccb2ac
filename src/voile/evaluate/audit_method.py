"""The audit of a method of Voile: its own sampler on a small domain, beside what it promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.errors import UsageError
from voile.evaluate.audit import Audit, check, compare
from voile.mechanisms import AlphaBeta
from voile.mechanisms.publishing import Publishing
from voile.noise import Key
from voile.privacy import ADVERSARIES, DGamma, Form, LikelihoodRatio, plan
from voile.schema import TupleIndex

METHODS = ("alphabeta",)
PRIOR, POSTERIOR = 0.01, 0.2
SIDE_BY_SIDE = 1000
"""Runs that are laid side by side in one domain, under one key."""
TUPLES = 3
"""The small domain: the record in question, the one it is exchanged for, and a bystander."""
RECORD, EXCHANGE, BYSTANDER = range(TUPLES)
DIGITS = 6
"""Binary digits of a published count in the number that stands for a view."""


@dataclass(frozen=True)
class MethodAudit:
    """What was run, what is promised, and what the runs show."""

    method: str
    parameters: dict[str, Any]
    promise: dict[str, Any]
    weaken: float
    simulated: bool
    found: Audit

    def to_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "parameters": self.parameters,
            "promise": self.promise,
            "weaken": self.weaken,
            "simulated": self.simulated,
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
    if method not in METHODS:
        raise UsageError(f"method {method!r} is not known", hint=f"there is {', '.join(METHODS)}")
    if rows not in ("multiset", "set"):
        raise UsageError(f"rows {rows!r} is not known", hint="use 'multiset' or 'set'")
    if others and rows == "set":
        raise UsageError("a set has no other records with the same values", hint="leave --others")
    if not 0 <= others < 2 ** (DIGITS - 1):
        raise UsageError(f"others {others} is out of range", hint="use 0 to 31")
    if not 0 < weaken <= 1:
        raise UsageError(f"weaken {weaken:g} must lie in (0, 1]", hint="0.7 leaves 70 % of it")
    check(runs, failure)
    mechanism, promised, words = choose(rows, prior, posterior, retention, noise, adversary)
    sampled = replace(mechanism, noise=weaken * mechanism.noise)
    exchange = adversary == "exclusive"
    bystanders = [BYSTANDER, *[RECORD] * others]
    published = [
        publish_often(sampled, members, runs, key)
        for members, key in (
            ([RECORD, *bystanders], keys(simulate_seed, 0)),
            ([EXCHANGE, *bystanders] if exchange else bystanders, keys(simulate_seed, 1)),
        )
    ]
    return MethodAudit(
        method=method,
        parameters={"rows": rows, "retention": mechanism.retention, "noise": mechanism.noise},
        promise=words,
        weaken=weaken,
        simulated=simulate_seed is not None,
        found=compare(published[0], published[1], promised=promised, failure=failure),
    )


def choose(
    rows: Form,
    prior: float | None,
    posterior: float | None,
    retention: float | None,
    noise: float | None,
    adversary: str,
) -> tuple[AlphaBeta, LikelihoodRatio, dict[str, Any]]:
    """The mechanism, the likelihood ratio that it is held to, and that in words."""
    if adversary not in ADVERSARIES:
        raise UsageError(
            f"adversary {adversary!r} is not known", hint=f"use {' or '.join(ADVERSARIES)}"
        )
    if noise is not None:
        if prior is not None or posterior is not None:
            raise UsageError(
                "a promise and the noise were given",
                hint="give --noise, or --prior and --posterior",
            )
        mechanism = own_parameters(rows, 0.5 if retention is None else retention, noise)
        stated = mechanism.likelihood_ratio()
        held = exchanged(stated) if adversary == "exclusive" else stated
        return mechanism, held, {"kind": "likelihood-ratio", "adversary": adversary}
    promise = DGamma(
        PRIOR if prior is None else prior,
        POSTERIOR if posterior is None else posterior,
        "exclusive" if adversary == "exclusive" else "independent",
    )
    found = plan(promise, rows, retention=retention)
    words = {"kind": "d-gamma", "prior": promise.prior, "posterior": promise.posterior,
             "adversary": adversary}  # fmt: skip
    ratio = LikelihoodRatio(promise.ratio_low, promise.ratio_high)
    if adversary == "exclusive":
        # One record in another's place: the upper bound holds in both directions.
        ratio = LikelihoodRatio(1 / promise.ratio_high, promise.ratio_high)
    return AlphaBeta(found.retention, found.noise, rows), ratio, words


def own_parameters(rows: Form, retention: float, noise: float) -> AlphaBeta:
    try:
        return AlphaBeta(retention, noise, rows)
    except ValueError as error:
        raise UsageError(str(error), hint="retention in (0, 1], noise in [0, 1)") from None


def exchanged(ratio: LikelihoodRatio) -> LikelihoodRatio:
    """One record taken out and another put in: two ratios, one upon the other."""
    if ratio.high is None or ratio.low == 0:
        return LikelihoodRatio(Fraction(0), None)
    return LikelihoodRatio(ratio.low / ratio.high, ratio.high / ratio.low)


# ---------------------------------------------------------------------- running it


def keys(seed: int | None, table: int) -> Callable[[int], Key]:
    """A key for each batch: fresh ones, or those of a simulation."""
    if seed is None:
        return lambda _: Key.fresh()
    return lambda batch: Key.from_seed((2 * batch + table) * 2**32 + seed)


def publish_often(
    mechanism: Publishing, members: list[int], runs: int, key: Callable[[int], Key]
) -> npt.NDArray[np.int64]:
    """Publish a table of the small domain many times; each view as one number.

    Tuples are perturbed independently, so many runs are laid side by side in a larger domain, with
    one more attribute in front: that is the sampler's own way with large domains.
    """
    found: list[npt.NDArray[np.int64]] = []
    for batch, start in enumerate(range(0, runs, SIDE_BY_SIDE)):
        size = min(SIDE_BY_SIDE, runs - start)
        index = TupleIndex([size, TUPLES])
        rows = np.add.outer(TUPLES * np.arange(size), np.sort(members)).ravel().astype(np.uint64)
        secret = key(batch)
        noise = mechanism.noise_rows(index, secret, 0, 0, size * TUPLES)
        view = np.concatenate(list(mechanism.view(rows, noise, secret, 0)))
        counts = np.bincount(view.astype(np.int64), minlength=size * TUPLES).reshape(size, TUPLES)
        shown = np.minimum(counts, 2**DIGITS - 1) << (DIGITS * np.arange(TUPLES))
        found.append(shown.sum(axis=1))
    return np.concatenate(found)
