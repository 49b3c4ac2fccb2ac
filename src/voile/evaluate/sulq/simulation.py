"""Walks of confidence: what many adversaries come to believe, answer by answer.

All walkers take a step at once; nothing is kept of their past but what is shown of it, so that
memory does not grow with the number of answers.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats, Ints
from voile.errors import UsageError
from voile.evaluate.audit.bounds import least_chance
from voile.noise import Key
from voile.noise.whole import inverted
from voile.privacy.interactive.confidence import breach, check_promise, conf, walk, walk_bound
from voile.privacy.interactive.laws import NoiseLaw, checked_kind, geometric_rate, noise_law
from voile.privacy.interactive.losses import TOUCHING, Loss, LossTotal, loss_of, total_of
from voile.privacy.interactive.promise import NoiseNeed, needed

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


# --------------------- `voile sulq simulate`: breaches that are seen beside those that are bounded


MEMBERSHIP = {"all": 1.0, "half": 0.5}
"""In how many of the questions the person is."""
MOST_STEPS = 300_000_000
MOST_WALKERS = 5_000_000
MOST_VARIANCE = 1e11
"""Tables of the noise beyond would not fit."""
SHOWN = 20
"""Walks that are drawn one by one."""
MISS = 0.05


@dataclass(frozen=True)
class Setup:
    """What is simulated."""

    queries: int = 100
    delta: float = 1.0
    eta: float = 1e-6
    noise: str = "binomial"
    variance: float | None = None
    """None: what the promise needs."""
    prior: float = 0.5
    walkers: int = 10_000
    membership: str = "all"

    def __post_init__(self) -> None:
        check_promise(self.delta, self.eta, self.queries)
        checked_kind(self.noise)
        if not 0 < self.prior < 1:
            raise UsageError(
                f"a prior of {self.prior} is not between 0 and 1",
                hint="it is what the adversary believes before the first answer, e.g. 0.5",
            )
        if self.membership not in MEMBERSHIP:
            raise UsageError(f"membership {self.membership!r} is not known", hint="use all or half")
        if self.variance is not None and not 0.25 <= self.variance <= MOST_VARIANCE:
            raise UsageError(
                f"a variance of {self.variance:g} cannot be simulated",
                hint=f"give one from 0.25 to {MOST_VARIANCE:g}",
            )
        if not 2 <= self.walkers <= MOST_WALKERS:
            raise UsageError(
                f"{self.walkers:,} walkers cannot be sent", hint=f"2 to {MOST_WALKERS:,} can"
            )
        if self.walkers * self.queries > MOST_STEPS:
            raise UsageError(
                f"{self.walkers:,} walkers of {self.queries:,} steps are more than "
                f"{MOST_STEPS:,} steps",
                hint=f"send at most {max(2, MOST_STEPS // self.queries):,} walkers",
            )


@dataclass(frozen=True)
class WalkMeasures:
    """How many walkers were above δ, with a 95 % interval for the chance of it."""

    end: float
    end_low: float
    end_high: float
    anytime: float
    anytime_low: float
    anytime_high: float


@dataclass(frozen=True)
class Bounds:
    """What theory says of the same walk."""

    end: float
    """Exactly, for the noise that is drawn."""
    normal: float
    """By the normal law."""
    anytime: float
    """Twice the chance at the end."""
    normal_anytime: float
    """By Brownian motion."""
    any_property: float
    """Whatever is asked about the row, by any adversary at any time."""
    either: float
    """That conf has moved by more than δ at the end, up or down."""


@dataclass(frozen=True)
class Outcome:
    """One noise: the walks, what was measured and what holds."""

    variance: float
    law: NoiseLaw
    walks: Walks
    measured: WalkMeasures
    rare_end: Rare
    rare_anytime: Rare
    bounds: Bounds

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        ends = self.walks.ends
        finite = ends[np.isfinite(ends)]
        return {
            "variance": self.variance,
            "law": self.law.to_dict(),
            "measured": asdict(self.measured),
            "weighed": {
                "end": self.rare_end.chance, "end_error": self.rare_end.error,
                "anytime": self.rare_anytime.chance, "anytime_error": self.rare_anytime.error,
            },
            "bounds": asdict(self.bounds),
            "change": {
                "mean": float(finite.mean()) if len(finite) else None,
                "sd": float(finite.std()) if len(finite) else None,
                "quantiles": {f"{q:g}": _number(x) for q, x in
                              zip(QUANTILES, self.walks.quantiles[:, -1], strict=True)},
            },
        }  # fmt: skip


@dataclass(frozen=True)
class Simulation:
    """Walks with one noise, and beside them with another."""

    setup: Setup
    needed: NoiseNeed
    simulated: bool
    """Whether the coins came from a seed."""
    chosen: Outcome
    beside: Outcome
    """With the slides' variance T; or, where that was chosen, with what the promise needs."""

    @property
    def limit(self) -> float:
        """The belief that δ allows."""
        start = conf(self.setup.prior) + self.setup.delta
        return 1 / (1 + math.exp(-start))

    @property
    def keeps(self) -> bool:
        """Whether the promise holds with the chosen noise, at the end of T answers."""
        return self.chosen.bounds.end <= self.setup.eta * (1 + 1e-9)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        setup = self.setup
        return {
            "queries": setup.queries, "delta": setup.delta, "eta": setup.eta,
            "noise": setup.noise, "prior": setup.prior, "belief_limit": self.limit,
            "walkers": setup.walkers, "membership": setup.membership,
            "simulated": self.simulated, "keeps": self.keeps,
            "variance_needed": self.needed.variance, "variance_formula": self.needed.formula,
            **self.chosen.to_dict(), "beside": self.beside.to_dict(),
        }  # fmt: skip


def simulate(setup: Setup, *, seed: int | None = None) -> Simulation:
    """Walk with the chosen noise and with the one to compare; the truth is the worst case, 1."""
    least = needed(setup.noise, setup.delta, setup.eta, setup.queries)
    printed = float(setup.queries)
    variance = least.variance if setup.variance is None else setup.variance
    other = least.variance if math.isclose(variance, printed) else printed
    found = [
        _outcome(setup, v, Key.fresh() if seed is None else Key.from_seed(2 * seed + i))
        for i, v in enumerate((variance, other))
    ]
    return Simulation(setup, least, seed is not None, *found)


def _outcome(setup: Setup, variance: float, key: Key) -> Outcome:
    law = noise_law(setup.noise, variance)
    steps = steps_of(law, MEMBERSHIP[setup.membership])
    walks = walked(steps, setup.queries, setup.walkers, setup.delta, SHOWN, key)
    rare = led(steps, setup.queries, setup.walkers, setup.delta, key)
    total = total_of(steps, setup.queries, setup.delta)
    return Outcome(variance, law, walks, _measured(walks, setup.delta), *rare,
                   _bounds(setup, variance, total))  # fmt: skip


def _measured(walks: Walks, delta: float) -> WalkMeasures:
    ends, ever = int((walks.ends > delta + TOUCHING).sum()), int(walks.ever.sum())
    return WalkMeasures(*_share(ends, len(walks.ends)), *_share(ever, len(walks.ends)))


def _share(seen: int, walkers: int) -> tuple[float, float, float]:
    """A share with Clopper and Pearson's limits."""
    low = least_chance(seen, walkers, MISS / 2)
    high = 1 - least_chance(walkers - seen, walkers, MISS / 2)
    return seen / walkers, low, high


def _bounds(setup: Setup, variance: float, total: LossTotal) -> Bounds:
    delta, expected = setup.delta, as_normal(setup, variance)
    end = total.above(delta)
    return Bounds(
        end, breach(delta, setup.queries, expected), min(1.0, 2 * end),
        min(1.0, walk_bound(delta, setup.queries, expected)), total.any_breach(delta),
        min(1.0, end + total.fallen(delta)),
    )  # fmt: skip


def as_normal(setup: Setup, variance: float) -> float:
    """The variance of normal noise whose walk has about the same law."""
    same = 1 / geometric_rate(variance) ** 2 if setup.noise == "geometric" else variance
    return same / MEMBERSHIP[setup.membership]


def expected_walk(setup: Setup, variance: float) -> tuple[float, float]:
    """Mean and deviation of the change of conf at the end, by the normal law."""
    return walk(setup.queries, as_normal(setup, variance))


def _number(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None
