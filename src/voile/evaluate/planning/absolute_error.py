"""E|error| of an estimated count, from the law of the count in the view.

The rows of a view that meet a condition are a sum of independent coins (mechanisms/alphabeta.py),
so their law is known, and with it the mean of |n_V − E n_V|. Where the standard deviation is small
it is summed exactly; elsewhere it is the normal value times a first correction. The normal value
alone is far off where rows are rare: a tuple that is hardly ever hit is hardly ever off.
"""

from __future__ import annotations

import math

import numpy as np

from voile.arrays import Floats
from voile.mechanisms import AlphaBeta

MEAN_OF_ABSOLUTE = math.sqrt(2 / math.pi)
"""E|X| of a normal variable with mean 0 and variance 1."""
EXACT_BELOW = 4.0
"""Standard deviations of n_V, in rows, up to which its law is summed."""
FEWEST_POINTS = 32
POINTS_PER_DEVIATION = 50
"""Of a window that a law is summed in; what lies outside it weighs less than about 10⁻⁹."""
AT_ONCE = 2**19
"""Points of laws held in memory."""
ABOVE_MINUS_ONE = math.nextafter(-1.0, 0.0)

Coins = tuple[Floats, float]
"""How many for each count, and the chance of each."""


def expected_errors(mechanism: AlphaBeta, truth: Floats, domain: Floats) -> Floats:
    """E|estimate − truth| of counts, from Q(I) and Q(D) of each."""
    coins = coins_of(mechanism, truth, domain)
    deviation = np.sqrt(np.maximum(sum(cumulants(*coin)[0] for coin in coins), 0.0))
    found = np.zeros(len(deviation))
    large = deviation >= EXACT_BELOW
    found[large] = nearly_normal(chosen(coins, large))
    small = np.flatnonzero((deviation > 0) & ~large)
    wanted = np.maximum(FEWEST_POINTS, POINTS_PER_DEVIATION * deviation[small])
    points = 2 ** np.ceil(np.log2(wanted)).astype(np.int64)
    for size in np.unique(points):
        alike = small[points == size]
        for part in np.array_split(alike, math.ceil(len(alike) * size / AT_ONCE)):
            found[part] = summed(chosen(coins, part), int(size))
    return found / mechanism.excess


def normal_errors(mechanism: AlphaBeta, truth: Floats, domain: Floats) -> Floats:
    """What E|error| would be if errors were normal: √(2/π) standard errors."""
    return MEAN_OF_ABSOLUTE * np.sqrt(mechanism.variance(truth, domain))


def coins_of(mechanism: AlphaBeta, truth: Floats, domain: Floats) -> tuple[Coins, Coins]:
    """The coins whose sum is n_V: t of chance p give the generating function (1 + p(z−1))^t.

    With t = −n and p = −μ that is the one of geometric noise on n tuples, so the same formulas
    serve for it.
    """
    kept = (truth, mechanism.retention)
    if mechanism.form == "set":
        return kept, (domain - truth, mechanism.noise)
    return kept, (-domain, -mechanism.noise_mean)


def chosen(coins: tuple[Coins, Coins], where: np.ndarray) -> tuple[Coins, Coins]:
    (kept, retention), (noise, chance) = coins
    return (kept[where], retention), (noise[where], chance)


def cumulants(trials: Floats, chance: float) -> tuple[Floats, Floats, Floats]:
    """The second, third and fourth of a sum of coins."""
    one = chance * (1 - chance)
    return trials * one, trials * (one * (1 - 2 * chance)), trials * (one * (1 - 6 * one))


def mean_of(coins: tuple[Coins, Coins]) -> Floats:
    (kept, retention), (noise, chance) = coins
    return kept * retention + noise * chance


def nearly_normal(coins: tuple[Coins, Coins]) -> Floats:
    """√(2/π)·σ with the first terms for skewness, for kurtosis and for counts being whole.

    docs/mathematics, section 17, has the terms, and how far off they leave it.
    """
    variance, third, fourth = map(sum, zip(*(cumulants(*coin) for coin in coins), strict=True))
    rest = np.mod(mean_of(coins), 1.0)
    shape = (third**2 / variance**3 - fourth / variance**2) / 24
    whole = (rest * (1 - rest) - 1 / 6) / (2 * variance)
    return np.asarray(MEAN_OF_ABSOLUTE * np.sqrt(variance) * np.exp(shape + whole))


def summed(coins: tuple[Coins, Coins], points: int) -> Floats:
    """E|n_V − E n_V| = 2·Σ_{k below the mean} (mean − k)·P(n_V = k), by Fourier's transform.

    The window of the law has its middle at the mean, rounded down; only its lower half is summed.
    """
    half = points // 2
    angles: Floats = 2 * math.pi / points * np.arange(half + 1, dtype=np.float64)
    mean = mean_of(coins)
    first = np.floor(mean) - half
    logs = np.outer(-1j * first, angles)
    for trials, chance in coins:
        logs += np.outer(trials, log_transform(chance, angles))
    law = np.fft.irfft(np.exp(logs.conj()), points)[:, : half + 1]
    places = first[:, None] + np.arange(half + 1)
    below = np.where(places < 0, 0.0, mean[:, None] - places)  # no count is negative
    return np.asarray(2 * np.einsum("ij,ij->i", below, law))


def log_transform(chance: float, angles: Floats) -> np.ndarray:
    """ln(1 + chance·(e^{it} − 1)), exact also where the chance is tiny or nearly 1."""
    turn = 2 * np.sin(angles / 2) ** 2
    # A fair coin has 0 at t = π, whose logarithm times no trials would be unknown.
    size = np.maximum(-2 * chance * (1 - chance) * turn, ABOVE_MINUS_ONE)
    return np.log1p(size) / 2 + 1j * np.arctan2(chance * np.sin(angles), 1 - chance * turn)
