"""What normal noise hides: Gaussian differential privacy (Dong, Roth, Su, 2022), exactly.

A mechanism is μ-GDP if telling two neighbouring tables apart by what it publishes is at least as
hard as telling N(0, 1) from N(μ, 1). Normal noise of deviation σ on figures that move by a vector
of length s between neighbours is exactly s/σ-GDP. Everything else follows from μ:

- δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), for every ε at once;
- ρ = μ²/2 of zCDP;
- several mechanisms together are √(Σμ²)-GDP;
- the log-likelihood ratio of two neighbours is N(±μ²/2, μ²);
- exchanging a record is removing one and adding another, and is 2μ-GDP if these are μ-GDP.

Both terms of δ(ε) may agree in nearly all of their digits. With a = ε/μ − μ/2, b = a + μ and
Mills' ratio M(t) = Φ(−t)/φ(t) they are φ(a)·M(a) and φ(a)·M(b), so that δ(ε) = φ(a)·(M(a) − M(b));
for small μ the difference is the integral of −M′(t) = 1 − t·M(t), whose continued fraction loses
no digits. Proofs: docs/mathematics, section 39.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

__all__ = [
    "any_rise_chance",
    "any_rise_of",
    "composed",
    "delta_of",
    "epsilon_of",
    "mu_for",
    "mu_of_pure",
    "rise_chance",
    "rise_of",
    "tail",
]

SAFETY = 1e-11
"""Relative error of `delta_of`, at most; what is derived from it errs to the side of privacy."""
FAR = 3.0
"""From here on continued fractions give Mills' ratio."""
TERMS = 120
"""Terms of the continued fraction, which settle all digits from `FAR` on."""
NEAR_ONE = 5.0
"""Below minus this, Φ(−x) is so near to 1 that what it lacks is computed."""
NARROW = 0.5
"""Below this μ the difference of Mills' ratios is integrated."""
NODES = (
    (0.1834346424956498, 0.3626837833783620),
    (0.5255324099163290, 0.3137066458778873),
    (0.7966664774136267, 0.2223810344533745),
    (0.9602898564975363, 0.1012285362903763),
)
"""Places and weights of Gauss and Legendre's rule of eight points, one half of each."""
STEPS = 200
"""Halvings of an interval; floats have no more to give."""


def delta_of(mu: float, epsilon: float) -> float:
    """The least δ for which N(0, 1) and N(μ, 1) are (ε, δ)-indistinguishable, ε ≥ 0.

    To a relative error of 1e-11, however small; 0 below the least float.
    """
    if not (mu >= 0 and epsilon >= 0):
        raise ValueError(f"neither μ nor ε is below 0, as in μ = {mu}, ε = {epsilon}")
    if mu == 0 or math.isinf(epsilon):
        return 0.0
    low, high = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if low < 0 and mu >= NARROW:
        return tail(low) - math.exp(-low * low / 2) / ROOT * _mills(high)
    return math.exp(-low * low / 2) / ROOT * _mills_difference(low, mu)


def epsilon_of(mu: float, delta: float) -> float:
    """The least ε with δ(ε) ≤ `delta`, not below the exact one."""
    _check_delta(delta)
    if mu == 0:
        return 0.0

    def enough(epsilon: float) -> bool:
        return delta_of(mu, epsilon) * (1 + SAFETY) <= delta

    if enough(0.0):
        return 0.0
    return _least(enough, mu)


def mu_for(epsilon: float, delta: float) -> float:
    """The largest μ that keeps (ε, δ), not above the exact one."""
    _check_delta(delta)

    def spent(mu: float) -> bool:
        return delta_of(mu, epsilon) * (1 + SAFETY) > delta

    low = 1.0
    while spent(low):
        low /= 2
    high = 2 * low
    while not spent(high):
        low, high = high, 2 * high
    for _ in range(STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if spent(middle) else (middle, high)
    return low


def composed(mus: Iterable[float]) -> float:
    """μ of several mechanisms together, each with noise of its own: √(Σμ²)."""
    return math.hypot(*mus)


def rise_chance(mu: float, rise: float) -> float:
    """The probability that log-odds between two records rise by more than `rise`.

    They move by N(μ²/2, μ²) towards the truth.
    """
    if mu == 0:
        return 0.0 if rise >= 0 else 1.0
    return tail(rise / mu - mu / 2)


def rise_of(mu: float, eta: float) -> float:
    """What log-odds rise by at most with probability 1 − η; not below the exact number, nor 0."""
    if mu == 0:
        return 0.0

    def enough(rise: float) -> bool:
        return rise_chance(mu, rise) * (1 + SAFETY) <= eta

    if enough(0.0):
        return 0.0
    return _least(enough, mu)


def any_rise_chance(mu: float, rise: float) -> float:
    """The probability that log-odds of any property rise by more than `rise`, at most.

    For every prior, and whatever is computed from the noisy figures, rounding included. It is
    Φ(−a) with Φ(−a) = e^rise·Φ(−a − μ), and some computation reaches it.
    """
    if mu == 0:
        return 0.0 if rise >= 0 else 1.0
    if rise <= 0:
        return 1.0

    def below(place: float) -> bool:
        return _log_quotient(place, mu) * (1 + SAFETY) < rise

    low = -1.0
    while not below(low):
        low *= 2
    high = low + 1
    while below(high):
        low, high = high, high + (high - low) * 2
    for _ in range(STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if below(middle) else (low, middle)
    return min(1.0, tail(low) * (1 + SAFETY))


def any_rise_of(mu: float, eta: float) -> float:
    """What log-odds of any property rise by at most with probability 1 − η; see above."""
    if mu == 0:
        return 0.0

    def enough(rise: float) -> bool:
        return any_rise_chance(mu, rise) <= eta

    return _least(enough, mu)


def mu_of_pure(epsilon: float) -> float:
    """The least μ of everything that is ε-differentially private: Φ(−μ/2) = 1/(1 + e^ε)."""
    if epsilon == 0:
        return 0.0

    def enough(mu: float) -> bool:
        if epsilon < 1:  # both sides are near a half, and what they lack keeps its digits
            return math.erf(mu / math.sqrt(8)) >= math.tanh(epsilon / 2) * (1 + SAFETY)
        return tail(mu / 2) * (1 + SAFETY) <= 1 / (1 + math.exp(epsilon))

    return _least(enough, 1.0)


def tail(x: float) -> float:
    """Φ(−x), the probability that a standard normal variable exceeds x."""
    return math.erfc(x / math.sqrt(2)) / 2


ROOT = math.sqrt(2 * math.pi)


def _log_quotient(x: float, mu: float) -> float:
    """ln Φ(−x)/Φ(−x − μ), which keeps its digits for small μ."""
    if x < -NEAR_ONE:
        return _log_tail(x) - _log_tail(x + mu)
    grown = _mills_difference(x, mu) / _mills(x + mu)
    return mu * (x + mu / 2) + math.log1p(grown)


def _log_tail(x: float) -> float:
    if x < 0:
        return math.log1p(-tail(-x))
    return math.log(_mills(x) / ROOT) - x * x / 2


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError(f"δ lies between 0 and 1, both excluded; it is {delta}")


def _least(enough: Callable[[float], bool], guess: float) -> float:
    """The least number that is enough; 0 is not, and a guess is doubled until it is."""
    low, high = 0.0, guess
    while not enough(high):
        high *= 2
    for _ in range(STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _fraction(t: float) -> float:
    """K(t) = 1/(t + 2/(t + 3/(t + …))), with which M = 1/(t + K), for t from `FAR` on."""
    found = t
    for term in range(TERMS, 1, -1):
        found = t + term / found
    return 1 / found


def _mills(t: float) -> float:
    """M(t) = Φ(−t)/φ(t)."""
    if t >= FAR:
        return 1 / (t + _fraction(t))
    return tail(t) * ROOT * math.exp(t * t / 2)


def _slope(t: float) -> float:
    """−M′(t) = 1 − t·M(t) = K/(t + K)."""
    if t >= FAR:
        near = _fraction(t)
        return near / (t + near)
    return 1 - t * _mills(t)


def _mills_difference(low: float, mu: float) -> float:
    """M(low) − M(low + μ), for low ≥ −μ/2."""
    if mu >= NARROW:
        return _mills(low) - _mills(low + mu)
    half = mu / 2
    middle = low + half
    return half * sum(
        weight * (_slope(middle - half * place) + _slope(middle + half * place))
        for place, weight in NODES
    )
