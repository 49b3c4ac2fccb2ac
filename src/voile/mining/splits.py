"""Which way to cut a node in two: Gini's impurity from estimated counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats

Mask = npt.NDArray[np.bool_]

SURE = 2.0
"""Standard errors above nothing from which rows are sure to be there."""
LEAST_GAIN = 1e-12


@dataclass(frozen=True, eq=False)
class Cut:
    """Bins that go to the one side, and how much impurity that takes away."""

    chosen: Mask
    gain: float


def best_cut(counts: Floats, errors: Floats, *, ordered: bool, min_support: float) -> Cut | None:
    """The best cut of `counts` (bins × classes), or None where no cut leaves enough on each side:
    the least support, and more than what may be nobody.

    Ordered bins are cut between neighbours. Others are first put in the order of their share of
    the most frequent class; with two classes the best of all sets of bins is then among the
    cuts between neighbours (Breiman and others, 1984, Theorem 4.5).
    """
    order = np.arange(len(counts)) if ordered else by_share(counts, errors)
    # Sums first: a sum of estimates is an estimate, and its error is less than its parts'.
    first = np.cumsum(counts[order], axis=0)[:-1]
    second = counts.sum(axis=0) - first
    # Rows of both classes before clipping: 800 less 600 is no support of 800.
    variances = (errors[order] ** 2).sum(axis=1)
    one = np.cumsum(variances)[:-1]
    enough = np.ones(len(first), np.bool_)
    for side, variance in ((first, one), (second, variances.sum() - one)):
        least = np.maximum(max(min_support, LEAST_GAIN), SURE * np.sqrt(np.maximum(variance, 0.0)))
        enough &= side.sum(axis=1) >= least
    gains = gain(np.maximum(first, 0.0), np.maximum(second, 0.0))
    if not enough.any():
        return None
    best = int(np.argmax(np.where(enough, gains, -np.inf)))
    chosen = np.zeros(len(counts), np.bool_)
    chosen[order[: best + 1]] = True
    return Cut(chosen, float(gains[best]))


def by_share(counts: Floats, errors: Floats) -> npt.NDArray[np.int64]:
    """Bins from the largest share of the most frequent class to the smallest.

    A bin that may well be empty has no share of its own and gets everybody's: ordered by noise,
    such bins would make a cut look good.
    """
    everybody = np.maximum(counts.sum(axis=0), 0.0)
    most = int(np.argmax(everybody))
    clipped = np.maximum(counts, 0.0)
    totals = clipped.sum(axis=1)
    sure = totals > SURE * np.sqrt((errors**2).sum(axis=1))
    common = everybody[most] / max(everybody.sum(), LEAST_GAIN)
    shares = np.where(sure, clipped[:, most] / np.where(sure, totals, 1.0), common)
    return np.argsort(-shares, kind="stable").astype(np.int64)


def most_unlike(first: Floats, second: Floats) -> int:
    """The class whose shares of two sides differ most, for what they would differ by chance."""
    both = np.maximum(first + second, 0.0)
    shares = both / max(both.sum(), LEAST_GAIN)
    differ = np.abs(first / max(first.sum(), LEAST_GAIN) - second / max(second.sum(), LEAST_GAIN))
    return int(np.argmax(differ / np.sqrt(np.maximum(shares * (1 - shares), LEAST_GAIN))))


def gini(counts: Floats) -> Floats:
    """1 − Σ share², over the last axis; 0 where there is nothing."""
    totals = counts.sum(axis=-1, keepdims=True)
    shares = counts / np.where(totals > 0, totals, 1.0)
    return np.where(totals[..., 0] > 0, 1.0 - (shares**2).sum(axis=-1), 0.0)


def gain(first: Floats, second: Floats) -> Floats:
    """By how much the two sides are purer than what they come from, on average over rows."""
    both = first + second
    totals = np.maximum(both.sum(axis=-1), LEAST_GAIN)
    parts = first.sum(axis=-1) * gini(first) + second.sum(axis=-1) * gini(second)
    return np.asarray(gini(both) - parts / totals)
