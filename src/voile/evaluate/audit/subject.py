"""What an audit runs: a method's own sampler on a small domain, and what it is held to.

Tuples are perturbed independently, so many runs are laid side by side in a larger domain, with one
more attribute in front: that is the sampler's own way with large domains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from voile.errors import UsageError
from voile.mechanisms import AlphaBeta, Publishing, Shaped
from voile.mechanisms.series import Series, SeriesHistory
from voile.noise import Key
from voile.privacy import DGamma, Form, LikelihoodRatio, plan
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
class Subject:
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
    def draw(index: TupleIndex, members: Keys, key: Key) -> list[Keys]:
        noise = mechanism.noise_rows(index, key, 0, 0, index.sizes[0] * TUPLES)
        return [np.concatenate(list(mechanism.view(members, noise, key, 0)))]

    return draw


def alphabeta(mechanism: AlphaBeta, weaken: float) -> Subject:
    parameters = {"rows": mechanism.form, "retention": mechanism.retention,
                  "noise": mechanism.noise}  # fmt: skip
    sampled = replace(mechanism, noise=weaken * mechanism.noise)
    return Subject(parameters, mechanism.likelihood_ratio(), one_view(sampled))


def planned(promise: DGamma, rows: Form, retention: float | None, weaken: float) -> Subject:
    found = plan(promise, rows, retention=retention)
    return alphabeta(AlphaBeta(found.retention, found.noise, rows), weaken)


def own_parameters(rows: Form, retention: float, noise: float, weaken: float) -> Subject:
    try:
        return alphabeta(AlphaBeta(retention, noise, rows), weaken)
    except ValueError as error:
        raise UsageError(str(error), hint="retention in (0, 1], noise in [0, 1)") from None


def shaped(promise: DGamma, retention: float | None, weaken: float) -> Subject:
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
    return Subject(parameters, stated[RECORD], draw, other=stated[EXCHANGE])


def series(
    promise: DGamma, rows: Form, views: int, retention: float | None, weaken: float
) -> Subject:
    """All views of a series of a table that does not change, with noise for one that may."""
    noise = plan_series(promise, rows, views, changing=True, retention=retention)
    sampled = replace(
        noise, unseen=tuple(weaken * q for q in noise.unseen), seen=weaken * noise.seen
    )
    parameters = {"rows": rows, "views": views, "retention": noise.retention,
                  "noise": list(noise.unseen), "noise_seen": noise.seen}  # fmt: skip
    return Subject(parameters, noise.likelihood_ratio(), all_views(sampled), views)


def all_views(noise: SeriesNoise) -> Draw:
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
