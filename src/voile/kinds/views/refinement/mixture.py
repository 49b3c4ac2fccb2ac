"""The fitted model: a mixture of product distributions over the public domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voile.arrays import Floats


@dataclass(frozen=True)
class Mixture:
    """The expected count of tuple t is rows · Σ_k mix[k] · Π_j tables[j][k, t_j].

    An attribute that was left out of the model has a table of no columns. It is taken as uniform
    and independent, which no data support: answer what asks for its values from the view alone.
    """

    rows: float
    mix: Floats
    tables: tuple[Floats, ...]

    @property
    def components(self) -> int:
        """How many products are mixed."""
        return len(self.mix)

    @property
    def left_out(self) -> tuple[int, ...]:
        """The attributes without a table, which are taken as uniform."""
        return tuple(j for j, table in enumerate(self.tables) if table.shape[1] == 0)

    def count(self, masks: Mapping[int, Floats]) -> Floats:
        """Expected counts of many selections at once.

        `masks[j][q, v]` is whether query q selects value v of attribute j; attributes without a
        mask are not restricted.
        """
        chance = self.mix[None, :]
        for j, mask in masks.items():
            chance = chance * (mask @ self.tables[j].T)
        return self.rows * np.asarray(chance.sum(axis=1))

    def marginal(self, attributes: Sequence[int]) -> Floats:
        """Expected counts of every cell of a few attributes."""
        operands: list[Any] = [self.mix * self.rows, [0]]
        for axis, j in enumerate(attributes, start=1):
            operands += [self.tables[j], [0, axis]]
        table: Floats = np.einsum(*operands, list(range(1, len(attributes) + 1)), optimize=True)
        return table


def average(mixtures: Sequence[Mixture]) -> Mixture:
    """The mean of several fits is itself a mixture, of all their components."""
    count = len(mixtures)
    return Mixture(
        rows=sum(m.rows for m in mixtures) / count,
        mix=np.concatenate([m.mix for m in mixtures]) / count,
        tables=tuple(
            np.concatenate(tables) for tables in zip(*(m.tables for m in mixtures), strict=True)
        ),
    )


# ---------------------------------------------------------------------- the error of refined counts
# How wrong a refined count may be, and how to weigh it against the plain one.
#
# M, the mean squared error of the model's count x, is taken as a sum of three terms:
#
#     M = κ·x  +  τ·σ²·min(1, x/σ)^0.6  +  (b·x)²
#
# The first is what a smooth model cannot know: a table is one draw of many. The second is what the
# noise left in the fit, with σ² the variance of the plain estimate; where a count is far below the
# noise, less of it. The third is the model's bias. `examine.py` finds κ, τ and b.


POWER = 0.6
LEAST = 1e-3
"""Counts below this share of the noise are taken as this much: no error is stated as nothing."""


@dataclass(frozen=True)
class ErrorModel:
    """The error of refined counts. `weights` are κ, τ and b².

    A query and its complement err alike where the number of rows is public, so the smaller of
    both counts. `follows` is how far the fit follows the plain estimate: the covariance of their
    errors in units of σ². `whole` is the variance of the plain estimate of all rows, and `unsure`
    the standard error of the number of rows, relative to it: 0 where it is public.
    """

    weights: Floats
    follows: float
    rows: float
    whole: float
    unsure: float = 0.0

    def model_variance(self, model: Floats, variance: Floats) -> Floats:
        """M, from what the model counts and the variance of the plain estimate."""
        if self.unsure:
            own, count = variance, model
        else:
            own = np.minimum(variance, np.maximum(self.whole - variance, 0.0))
            count = np.minimum(model, np.maximum(self.rows - model, 0.0))
        return np.asarray(self.weights @ terms(count, own) + (self.unsure * model) ** 2)

    def combine(self, plain: Floats, variance: Floats, model: Floats) -> tuple[Floats, Floats]:
        """The refined counts and their standard errors: both estimates weighed by their errors.

        Weights are those of independent errors, w = M/(σ²+M) for the plain one, under which
        w²σ² + (1−w)²M = wσ²; the stated error adds the covariance, 2w(1−w)·follows·σ².
        """
        plain, variance, model = (
            np.asarray(array, np.float64) for array in (plain, variance, model)
        )
        wrong = doubted(plain - model, variance, self.model_variance(model, variance))
        both = variance + wrong
        weight = np.divide(wrong, both, out=np.ones_like(both), where=both > 0)
        value = np.maximum(0.0, weight * plain + (1 - weight) * model)
        stated = weight * variance * (1 + 2 * (1 - weight) * self.follows)
        return value, np.sqrt(np.minimum(stated, variance))


FAR = 2.0
"""Standard errors from the plain estimate, beyond which a model is wrong there."""


def doubted(off: Floats, variance: Floats, wrong: Floats) -> Floats:
    """M, raised where the model is further from the plain estimate than both errors explain.

    M is a mean over selections of one size. Of those that the model knows least, the view shows it.
    """
    return np.asarray(wrong + np.maximum(off**2 - FAR**2 * (variance + wrong), 0.0))


def terms(x: Floats, variance: Floats) -> Floats:
    """What M is a sum of, one row each."""
    sigma = np.sqrt(variance)
    ratio = np.divide(x, sigma, out=np.ones_like(sigma), where=sigma > 0)
    return np.stack([x, variance * np.clip(ratio, LEAST, 1.0) ** POWER, x**2])
