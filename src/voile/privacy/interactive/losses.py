"""The exact law of what T answers reveal: the sum of their log-likelihood ratios.

An adversary weighs two hypotheses whose totals differ. The loss of an answer is its log-likelihood
ratio, of the true one to the other, and conf moves by it. Its law is put on a grid so that every
(ε, δ) that holds on the grid holds of the noise (mass between two points is split so that both
hypotheses keep theirs: that pair reveals more), summed by Fourier transform, and tilted towards the
tail in question, so that small probabilities keep their digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.privacy.interactive.confidence import walk
from voile.privacy.interactive.laws import Change, Kind, NoiseLaw, noise_law

POINTS, FEW_POINTS, FEW = 2**20, 2**18, 100
"""Of the grid, where the loss has no grid of its own; fewer do for few answers."""
MOST_POINTS = 2**22
WIDE = 2**21
"""Noise that is further out than this is taken as normal."""
NEGLIGIBLE = 1e-18
"""Chances that are counted as errors and not looked into."""
LEAST_DIGITS = 300.0
"""Where tilting takes more away, no digits are left: far below the value in question."""
MOST_EXPONENT = 700.0
"""Beyond, e^ε is no float; a smaller one only overstates the loss."""
TOUCHING = 1e-9
"""Sums that are above a value by less are equal to it except for rounding."""


@dataclass(frozen=True)
class Loss:
    """The law of one answer's loss, as values and chances under the truth."""

    values: Floats
    chances: Floats
    atom: float
    """The chance that the answer cannot come from the other hypothesis at all, or is so far out
    that it was not looked at."""
    spacing: float | None = None
    """Of the values, where they are equally spaced."""

    def tilted(self, tilt: float) -> Floats:
        """Chances in proportion to e^(tilt·loss)."""
        weights = self.chances * np.exp(tilt * (self.values - self.values.max()))
        return np.asarray(weights / weights.sum())

    def cumulant(self, tilt: float) -> float:
        """ln E[e^(tilt·loss)] of the finite part."""
        top = float((tilt * self.values).max())
        return top + math.log(float((self.chances * np.exp(tilt * self.values - top)).sum()))

    def moments(self, tilt: float = 0.0) -> tuple[float, float]:
        """Mean and variance under the tilted law."""
        chances = self.tilted(tilt)
        mean = float((chances * self.values).sum())
        return mean, float((chances * (self.values - mean) ** 2).sum())

    def tilt_for(self, mean: float) -> float:
        """The tilt, at least 0, under which the mean is about this, or the next best."""
        low, high = 0.0, 1.0
        reachable = min(mean, 0.999 * float(self.values.max()))
        while self.moments(high)[0] < reachable and high < 2.0**40:
            high *= 2
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self.moments(middle)[0] < reachable else (low, middle)
        return low


def loss_of(law: NoiseLaw, step: int = 1) -> Loss:
    """Of one noisy number, where the hypotheses differ by `step`."""
    if law.kind == "geometric":
        return _geometric_loss(1 / law.parameter, step)
    far = _far(law, step)
    if far > WIDE:
        return _normal_loss(step / law.sd)
    k = np.arange(-far, far + 1)
    chances, away = law.pmf(k), law.log_pmf(k + step)
    here = (chances > 0) & np.isfinite(away)
    values = law.log_pmf(k)[here] - away[here]
    spacing = None
    if law.kind == "gaussian":
        spacing = step / law.parameter**2
        values = np.asarray((k[here] + step / 2) * spacing, dtype=np.float64)
    atom = float(chances[~np.isfinite(away)].sum()) + 2 * law.tail(far)
    return Loss(values, chances[here], atom, spacing)


def _geometric_loss(rate: float, step: int) -> Loss:
    """From −step·rate to step·rate in steps of 2·rate: beyond the two hypotheses it is constant."""
    k = np.arange(step + 1)  # noise of −k, between the true total and the other one
    chances = math.tanh(rate / 2) * np.exp(-rate * k)
    tail = 1 / (1 + math.exp(-rate))
    chances[0] = tail  # noise of 0 or more
    chances[-1] = tail * math.exp(-rate * step)  # noise of −step or less
    values = np.asarray((step - 2 * k) * rate, dtype=np.float64)
    return Loss(values, chances, 0.0, 2 * rate)


def _normal_loss(ratio: float) -> Loss:
    """Of noise so wide that it is normal but for a relative 10⁻¹⁰; `ratio` is step over σ."""
    z = np.linspace(-12, 12, FEW_POINTS + 1)
    chances = np.exp(-z * z / 2)
    values = np.asarray(ratio * z + ratio * ratio / 2)
    return Loss(values, chances / chances.sum(), 1e-32, ratio * 24 / FEW_POINTS)


def _far(law: NoiseLaw, step: int) -> int:
    """How far out noise is looked at; it is beyond with less than 10⁻³⁰."""
    if law.kind == "binomial":
        return min(int(law.parameter) // 2, math.ceil(12 * law.sd) + step)
    return math.ceil(12 * law.parameter) + step + 2


@dataclass(frozen=True)
class LossTotal:
    """The law of the loss of all answers together, near a given value."""

    first: float
    """The smallest value on the grid."""
    spacing: float
    weights: Floats
    """Of the tilted law."""
    tilt: float
    log_scale: float
    """ln of what takes tilted weights at value 0 back to chances."""
    atom: float
    slack: float
    """How far off the sum of values may be by the grid, but for NEGLIGIBLE; 0 if it is exact."""
    most: float
    """No finite loss is larger."""

    @cached_property
    def values(self) -> Floats:
        """The values of the loss on the grid."""
        return np.asarray(self.first + self.spacing * np.arange(len(self.weights)))

    @cached_property
    def chances(self) -> Floats:
        """The probability of each value, the tilt taken back."""
        scale = np.minimum(self.log_scale - self.tilt * self.values, LEAST_DIGITS)
        return np.asarray(self.weights * np.exp(scale))

    def above(self, value: float) -> float:
        """Pr[loss > value], the answers that cannot be included."""
        if self.most <= value + TOUCHING:
            return self.atom
        return min(1.0, self.atom + float(self.chances[self.values > value + TOUCHING].sum()))

    def between(self, value: float) -> tuple[float, float]:
        """What Pr[loss > value] surely lies between."""
        if not self.slack:
            found = self.above(value)
            return found * (1 - 1e-9), found * (1 + 1e-9)
        low = max(0.0, self.above(value + 2 * self.slack) - NEGLIGIBLE)
        return low, min(1.0, self.above(value - self.slack) + NEGLIGIBLE)

    @cached_property
    def _suffixes(self) -> tuple[Floats, Floats]:
        """Chances from each value on, under the truth and under the other hypothesis."""
        other = self.chances * np.exp(np.minimum(-self.values, LEAST_DIGITS))
        truth, against = (np.append(np.cumsum(x[::-1])[::-1], 0.0) for x in (self.chances, other))
        return truth, against

    def excess(self, epsilon: float) -> float:
        """δ of (ε, δ)-DP: E[(1 − e^(ε − loss))⁺], the answers that cannot be included."""
        truth, against = self._suffixes
        start = int(np.searchsorted(self.values, epsilon, side="right"))
        gained = float(truth[start] - math.exp(min(epsilon, MOST_EXPONENT)) * against[start])
        return min(1.0, self.atom + max(0.0, gained))

    def fallen(self, value: float) -> float:
        """Pr[loss < −value], for symmetric noise: what is as likely under the other hypothesis as
        a loss above is under the truth."""
        start = int(np.searchsorted(self.values, value + TOUCHING, side="right"))
        return float(self._suffixes[1][start])

    def any_breach(self, rise: float) -> float:
        """Pr[conf of any property ever rises by more], for any adaptive adversary, at most.

        By Markov's inequality for (1 − e^(ε − loss))⁺, at the best ε below the rise; 0 where no
        loss is above the rise at all.
        """
        if self.most <= rise + TOUCHING:
            return self.atom
        return least_bound(self.excess, rise)


def least_bound(excess: Callable[[float], float], rise: float) -> float:
    """The least E[(1 − e^(ε − loss))⁺] / (1 − e^(ε − rise)), over ε below the rise."""
    tries = rise * (1 - np.geomspace(1e-3, 0.9, 60))
    return min(1.0, *(excess(e) / -math.expm1(e - rise) for e in tries))


def total_of(loss: Loss, answers: int, near: float) -> LossTotal:
    """The sum of so many independent losses, with its digits where it is about `near`."""
    tilt = loss.tilt_for(near / answers)
    mean, variance = loss.moments(tilt)
    span = float(np.ptp(loss.values))
    half = 12 * math.sqrt(answers * variance) + 2 * span
    spacing, exact = _spacing(loss, half, answers)
    grid = loss if exact else _split(loss, spacing)
    points = 2 ** math.ceil(math.log2(2 * half / spacing + 1))
    first, weights = _power(grid, spacing, tilt, answers, points, answers * mean - half)
    slack = 0.0 if exact else spacing * math.sqrt(answers * -math.log(NEGLIGIBLE) / 2)
    return LossTotal(
        first, spacing, weights, tilt, answers * grid.cumulant(tilt),
        -math.expm1(answers * math.log1p(-min(loss.atom, 1 - 1e-16))), slack,
        answers * float(loss.values.max()),
    )  # fmt: skip


def _spacing(loss: Loss, half: float, answers: int) -> tuple[float, bool]:
    """The grid's spacing, and whether it is the loss's own, which is taken if points suffice."""
    if loss.spacing and 2 * half / loss.spacing < MOST_POINTS:
        return loss.spacing, True
    points = FEW_POINTS if answers < FEW else POINTS
    return 2 * half / (points - 2), False


def _split(loss: Loss, spacing: float) -> Loss:
    """The loss on multiples of `spacing`: each chance on the two next to its value."""
    below = np.floor(loss.values / spacing).astype(np.int64)
    share = np.expm1(below * spacing - loss.values) / math.expm1(-spacing)
    first, length = int(below.min()), int(np.ptp(below)) + 2
    masses = np.bincount(below - first, loss.chances * (1 - share), length).astype(np.float64)
    masses += np.bincount(below - first + 1, loss.chances * share, length)
    values = np.asarray(spacing * (first + np.arange(length)), dtype=np.float64)
    return Loss(values, masses, loss.atom, spacing)


def _power(
    grid: Loss, spacing: float, tilt: float, answers: int, points: int, start: float
) -> tuple[float, Floats]:
    """The tilted law of a sum, from `start` on, as its first value and weights.

    Summed on a ring of so many points; what goes round it is beyond twelve deviations.
    """
    least = float(grid.values.min())
    places = np.rint((grid.values - least) / spacing).astype(np.int64)
    ring = np.bincount(places % points, grid.tilted(tilt), points)
    summed = np.fft.irfft(_to_the(np.fft.rfft(ring), answers), points)
    base = answers * least
    skipped = math.ceil((start - base) / spacing)
    return base + skipped * spacing, np.maximum(np.roll(summed, -(skipped % points)), 0.0)


def _to_the(base: npt.NDArray[np.complex128], exponent: int) -> npt.NDArray[np.complex128]:
    """By squaring, which is much faster than NumPy's complex powers."""
    found = np.ones_like(base)
    while exponent:
        if exponent & 1:
            found *= base
        exponent >>= 1
        if exponent:
            base = base * base
    return found


def loss_total(law: NoiseLaw, change: Change, answers: int, near: float) -> LossTotal:
    """Of so many answers to questions that one person changes so much."""
    return total_of(loss_of(law, change.step), answers * change.cells, near)


# ---------------------------------------------------------------------- the worst of all questions
# The most that answers reveal, over all changes that queries can have.
#
# Which total is queried decides on which grid the sum of losses lies, and so how far above δ
# its next point is. Sums of normal steps that lie on no grid are between those on the best and
# the worst. `NormalGrid` is the normal law on the coarsest grid that any questions have, that of
# counts, at its worst place: no discrete Gaussian answers reveal more (docs/mathematics, section
# 33). Laws that are not normal are looked at one by one as well.


UNIT, PAIR = Change(), Change(2, 2)
"""A count, and a histogram: who changes group changes two counts."""
CHANGES = tuple(Change(c * s, c * s * s) for s in (1, 2, 3, 5, 10) for c in (1, 2))
"""Of one group or two, by some steps each; the wider the noise, the nearer to the normal law."""
FEW_ANSWERS = 30
"""So many answers, and fewer, are looked at for all of these; more for a count and a histogram."""
FINE = 0.01
"""Sums on a finer grid, in deviations, are integrals and Euler's and Maclaurin's next term."""
PLACES = 64
"""Places of the grid that are tried."""
FAR = 40.0


@dataclass(frozen=True)
class NormalGrid:
    """S ~ N(T/2V, T/V), on a grid of spacing 1/V: that of T counts, wherever it lies."""

    answers: int
    variance: float
    atom: float = 0.0
    most: float = math.inf

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of S."""
        return walk(self.answers, self.variance)[1]

    @property
    def spacing(self) -> float:
        """In deviations."""
        return self.deviation / self.answers

    def above(self, value: float) -> float:
        """Pr[S > value] with a point of the grid just above it, where it is largest."""
        from scipy.special import ndtr  # noqa: PLC0415  (slow to import)

        z, h = self._from(value), self.spacing
        if h < FINE:
            more = h / 2 + h * h * z / 12
            return min(1.0, float(ndtr(-z) + more * density(z)))
        return min(1.0, float(h * density(self._points(z)).sum()))

    def between(self, value: float) -> tuple[float, float]:
        """The number that `above` gives, twice: it is exact."""
        return self.above(value), self.above(value)

    def excess(self, epsilon: float) -> float:
        """E[(1 − e^(ε − S))⁺], where the grid lies worst: between two points, if it is fine."""
        from scipy.special import log_ndtr, ndtr  # noqa: PLC0415  (slow to import)

        z, h, u = self._from(epsilon), self.spacing, self.deviation
        if h < FINE:
            far = math.exp(epsilon + float(log_ndtr(-z - u)))
            return float(ndtr(-z) - far + h * h * u * density(z) / 24)
        at = self._points(z) + h * np.arange(PLACES)[:, None] / PLACES
        return min(1.0, float((h * density(at) * -np.expm1(u * (z - at))).sum(axis=1).max()))

    def _from(self, value: float) -> float:
        return value / self.deviation - self.deviation / 2

    def _points(self, z: float) -> Floats:
        start = max(z, -FAR)
        return np.asarray(np.arange(start, max(FAR, start + self.spacing), self.spacing))


def density(z: npt.ArrayLike) -> Floats:
    """Of the normal law."""
    return np.asarray(np.exp(-np.square(z) / 2) / math.sqrt(2 * math.pi))


@dataclass(frozen=True)
class WorstCase:
    """Several laws of the sum of losses, and the largest of what they say."""

    laws: tuple[LossTotal | NormalGrid, ...]

    @property
    def atom(self) -> float:
        """The largest probability of an answer that only one hypothesis can give."""
        return max(law.atom for law in self.laws)

    def above(self, value: float) -> float:
        """The largest Pr[loss > value]."""
        return max(law.above(value) for law in self.laws)

    def between(self, value: float) -> tuple[float, float]:
        """What the largest Pr[loss > value] surely lies between."""
        lows, highs = zip(*(law.between(value) for law in self.laws), strict=True)
        return max(lows), max(highs)

    def excess(self, epsilon: float) -> float:
        """The largest δ of (ε, δ)-DP."""
        return max(law.excess(epsilon) for law in self.laws)

    def any_breach(self, rise: float) -> float:
        """Pr[conf of any property ever rises by more], at most: see `Total.any_breach`."""
        if max(law.most for law in self.laws) <= rise + TOUCHING:
            return self.atom
        return least_bound(self.excess, rise)


def sums(
    kind: Kind, variance: float, answers: int, near: float, change: Change | None = None
) -> Iterator[LossTotal | NormalGrid]:
    """Laws of the sum of losses of at most so many answers, of which the worst counts.

    Those of one change and of the same spread over more groups, or of all changes. With geometric
    noise an answer less is a law of its own: losses are ±ε, so that sums of T and of T − 1 of them
    lie on two grids that exclude each other.
    """
    if change is None and kind != "geometric":
        yield NormalGrid(answers, variance)
    if change is not None:
        law = noise_law(kind, variance, change)
        laws = [(law, one) for one in spread_changes(change)]
    else:
        looked = CHANGES if answers <= FEW_ANSWERS else (UNIT, PAIR)
        laws = [(noise_law(kind, variance, one), one) for one in looked]
    fewest = max(1, answers - 1) if kind == "geometric" else answers
    for law, one in laws:
        for number in range(answers, fewest - 1, -1):
            yield loss_total(law, one, number, near)


SPREAD = (1, 2, 3)
"""Groups over which the rows of a person are spread, besides as many as there are rows."""


def spread_changes(change: Change) -> tuple[Change, ...]:
    """The ways in which rows change a total: all of them one group, or several, or each its own.

    Noise is the same for all, so that what moves one group most reveals most; that is looked at,
    and not relied on.
    """
    step = change.step
    groups = change.l1 // step
    parts = {number: step // number for number in (*SPREAD, step) if step >= number}
    return tuple(
        Change(groups * number * each, groups * number * each**2) for number, each in parts.items()
    )
