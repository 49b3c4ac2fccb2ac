"""How wrong a refined count may be, and how to weigh it against the plain one.

M, the mean squared error of the model's count x, is taken as a sum of three terms:

    M = κ·x  +  τ·σ²·min(1, x/σ)^0.6  +  (b·x)²

The first is what a smooth model cannot know: a table is one draw of many. The second is what the
noise left in the fit, with σ² the variance of the plain estimate; where a count is far below the
noise, less of it. The third is the model's bias. `examine.py` finds κ, τ and b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from voile.arrays import Floats

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
        wrong = self.model_variance(model, variance)
        both = variance + wrong
        weight = np.divide(wrong, both, out=np.ones_like(both), where=both > 0)
        value = np.maximum(0.0, weight * plain + (1 - weight) * model)
        stated = weight * variance * (1 + 2 * (1 - weight) * self.follows)
        return value, np.sqrt(np.minimum(stated, variance))


def terms(x: Floats, variance: Floats) -> Floats:
    """What M is a sum of, one row each."""
    sigma = np.sqrt(variance)
    ratio = np.divide(x, sigma, out=np.ones_like(sigma), where=sigma > 0)
    return np.stack([x, variance * np.clip(ratio, LEAST, 1.0) ** POWER, x**2])
