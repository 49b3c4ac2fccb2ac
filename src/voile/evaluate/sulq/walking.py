"""Walks of confidence: what many adversaries come to believe, answer by answer.

All walkers take a step at once; nothing is kept of their past but what is shown of it, so that
memory does not grow with the number of answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats, Ints
from voile.noise import Key
from voile.noise.whole import inverted
from voile.privacy.interactive.laws import NoiseLaw
from voile.privacy.interactive.losses import TOUCHING, Loss, loss_of

QUANTILES = (0.005, 0.05, 0.25, 0.5, 0.75, 0.95, 0.995)
MOST_TIMES = 160
"""Of a walk, at most so many points are kept to be shown."""


def steps_of(law: NoiseLaw, membership: float) -> Loss:
    """What one answer does to conf of someone who knows all other rows, the truth being 1.

    The person is in a question with this chance, and else it tells nothing.
    """
    loss = loss_of(law)
    if membership == 1:
        return loss
    values = np.append(loss.values, 0.0)
    chances = np.append(membership * loss.chances, 1 - membership)
    spacing = loss.spacing / 2 if loss.spacing else None
    return Loss(values, chances, membership * loss.atom, spacing)


@dataclass(frozen=True)
class Walks:
    """What became of all walkers: changes of conf since the beginning."""

    times: Ints
    """After which answers the rest was looked at."""
    quantiles: Floats
    """One row for each of QUANTILES, one column for each time."""
    drawn: Floats
    """A few walks as they were, one row each."""
    ends: Floats
    ever: npt.NDArray[np.bool_]
    """Who was above δ at any time."""


def walked(steps: Loss, answers: int, walkers: int, delta: float, shown: int, key: Key) -> Walks:
    """Send so many walkers through so many answers; `shown` of them are kept as they go."""
    stream = key.stream("sulq walks")
    values, chances = np.append(steps.values, math.inf), np.append(steps.chances, steps.atom)
    times = np.unique(np.linspace(0, answers, min(answers, MOST_TIMES) + 1).astype(np.int64))
    quantiles, drawn = [], []
    conf, highest = np.zeros(walkers), np.full(walkers, -math.inf)
    for answer in range(answers + 1):
        if answer:
            conf += values[inverted(chances, walkers, stream)]
            np.maximum(highest, conf, out=highest)
        if answer in times:
            quantiles.append(np.quantile(conf, QUANTILES, method="inverted_cdf"))
            drawn.append(conf[:shown].copy())
    return Walks(times, np.array(quantiles).T, np.array(drawn).T, conf, highest > delta + TOUCHING)


@dataclass(frozen=True)
class Rare:
    """A small chance, by walks that are led towards it and weighed for that."""

    chance: float
    error: float
    """The standard error."""


def led(steps: Loss, answers: int, walkers: int, delta: float, key: Key) -> tuple[Rare, Rare]:
    """The chances to be above δ at the end, and ever.

    Walkers step by the law that is tilted so that δ is about their mean; each counts as much as
    their walk is likelier without the tilt.
    """
    tilt = steps.tilt_for(delta / answers)
    stream = key.stream("sulq led walks")
    chances = steps.tilted(tilt)
    conf, highest = np.zeros(walkers), np.full(walkers, -math.inf)
    for _ in range(answers):
        conf += steps.values[inverted(chances, walkers, stream)]
        np.maximum(highest, conf, out=highest)
    weights = np.exp(answers * steps.cumulant(tilt) - tilt * conf)
    atom = -math.expm1(answers * math.log1p(-steps.atom))
    limit = delta + TOUCHING
    return _weighed(weights * (conf > limit), atom), _weighed(weights * (highest > limit), atom)


def _weighed(weights: Floats, atom: float) -> Rare:
    error = float(weights.std(ddof=1)) / math.sqrt(len(weights)) if len(weights) > 1 else math.inf
    return Rare(min(1.0, atom + float(weights.mean())), error)
