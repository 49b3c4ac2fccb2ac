"""The laws of whole-number noise: binomial, discrete Gaussian, geometric (discrete Laplace).

A law is made for how much one person can change a total, in whole steps. V, `variance`, is always
that of a total that one person changes by 1; a larger change makes the noise wider in proportion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError, did_you_mean
from voile.records import Record

__all__ = ["KINDS", "Change", "Kind", "NoiseLaw", "noise_law"]

Kind = Literal["binomial", "gaussian", "geometric"]
"""The laws of noise that a server may draw from."""
KINDS: tuple[str, ...] = get_args(Kind)
"""Their names."""

SUMMED = 4096
"""Below this σ, sums over a discrete Gaussian are taken term by term."""
LARGEST = 2.0**104
"""No noise has a larger variance: what it hides would not fit into 64 bits."""


@dataclass(frozen=True)
class Change:
    """How much one person can change a total, all of its groups together."""

    l1: int = 1
    """The sum of the groups' changes."""
    l2_squared: int = 1
    """The sum of their squares."""

    def __post_init__(self) -> None:
        if not 1 <= self.l1 <= self.l2_squared <= self.l1**2:
            raise ValueError(f"no whole changes have l1 {self.l1} and l2² {self.l2_squared}")

    @property
    def step(self) -> int:
        """By how much each changed group changes, if all by the same."""
        if self.l2_squared % self.l1 or self.l1**2 % self.l2_squared:
            raise ValueError(f"no equal whole changes have l1 {self.l1} and l2² {self.l2_squared}")
        return self.l2_squared // self.l1

    @property
    def cells(self) -> int:
        """How many groups change."""
        return self.l1 // self.step


@dataclass(frozen=True)
class NoiseLaw(Record):
    """Independent noise for every group of a total; symmetric about 0."""

    json_keys = ("kind", "parameter", "variance")

    kind: Kind
    parameter: int | float
    """R fair coins less R/2 (binomial, even), σ of exp(−k²/2σ²), or b of exp(−|k|/b)."""

    @property
    def variance(self) -> float:
        """The variance of one draw."""
        match self.kind:
            case "binomial":
                return self.parameter / 4
            case "gaussian":
                return _gaussian_variance(self.parameter)
            case "geometric":
                return 1 / (2 * math.sinh(0.5 / self.parameter) ** 2)

    @property
    def sd(self) -> float:
        """The standard deviation of one draw."""
        return math.sqrt(self.variance)

    def log_pmf(self, values: npt.ArrayLike) -> Floats:
        """ln Pr[N = k]; −∞ where a binomial cannot be."""
        k = np.asarray(values, dtype=np.float64)
        match self.kind:
            case "binomial":
                return binomial_log_pmf(int(self.parameter), k)
            case "gaussian":
                z = k / self.parameter
                return np.asarray(-z * z / 2 - math.log(_gaussian_total(self.parameter)))
            case "geometric":
                rate = 1 / self.parameter
                return np.asarray(math.log(math.tanh(rate / 2)) - np.abs(k) * rate)

    def pmf(self, values: npt.ArrayLike) -> Floats:
        """Pr[N = k]."""
        found: Floats = np.exp(self.log_pmf(values))
        return found

    def tail(self, height: int) -> float:
        """Pr[N > h], for h ≥ 0."""
        match self.kind:
            case "binomial":
                return _binomial_tail(int(self.parameter), height)
            case "gaussian":
                return _gaussian_tail(self.parameter, height)
            case "geometric":
                alpha = math.exp(-1 / self.parameter)
                return math.exp(-(height + 1) / self.parameter) / (1 + alpha)

    def deviation(self, miss: float) -> int:
        """The smallest h with Pr[|N| > h] ≤ miss: the half width of an interval."""
        if not 0 < miss < 1:
            raise UsageError(f"a chance of {miss} is not between 0 and 1", hint="give 0.05")
        low, high = -1, 1
        while 2 * self.tail(high) > miss:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if 2 * self.tail(middle) > miss else (low, middle)
        return high


def noise_law(kind: str, variance: float, change: Change | None = None) -> NoiseLaw:
    """The law whose unit change has variance V, widened for `change`; rounded to more noise."""
    change = change or Change()
    if not (math.isfinite(variance) and variance > 0 and variance * change.l2_squared <= LARGEST):
        raise UsageError(
            f"noise of variance {variance:g} for a change of {change.l1} steps cannot be drawn",
            hint="give a variance above 0, and bounds with fewer steps between them",
        )
    match checked_kind(kind):
        case "binomial":
            return NoiseLaw("binomial", 2 * math.ceil(2 * variance * change.l2_squared))
        case "gaussian":
            return NoiseLaw("gaussian", _up(math.sqrt(variance * change.l2_squared)))
        case "geometric":
            return NoiseLaw("geometric", _up(change.l1 / geometric_rate(variance)))


def checked_kind(kind: str) -> Kind:
    """The kind of noise, refused if it is not known."""
    if kind not in KINDS:
        raise UsageError(f"there is no noise {kind!r}", hint=did_you_mean(kind, list(KINDS)))
    return kind  # type: ignore[return-value]


def geometric_rate(variance: float) -> float:
    """ε of exp(−ε|k|), whose variance is 1/(2·sinh²(ε/2))."""
    return 2 * math.asinh(1 / math.sqrt(2 * variance))


def concentrated_rho(epsilon: float) -> float:
    """ρ = ε·tanh(ε/2), the least ρ-zCDP of everything that is ε-differentially private."""
    return epsilon * math.tanh(epsilon / 2)


def binomial_log_pmf(coins: int, k: Floats) -> Floats:
    """ln Pr[heads − R/2 = k] of R fair coins.

    For many coins by Stirling's series about the middle, where ln Γ would lose all digits: with
    h = R/2 and u = k/h, ln C(R, h+k) − ln C(R, h) is what `log_ratio` sums.
    """
    half = coins // 2
    inside = np.abs(k) <= half
    k = np.where(inside, k, 0.0)
    if coins < 2**12:
        from scipy.special import gammaln  # noqa: PLC0415  (slow to import)

        found = gammaln(coins + 1) - gammaln(half + k + 1) - gammaln(half - k + 1)
        found = found - coins * math.log(2)
    else:
        h = float(half)
        centre = -0.5 * math.log(math.pi * h) - 1 / (8 * h)
        found = centre + log_ratio(h, k)
    return np.where(inside, found, -np.inf)


def log_ratio(h: float, k: Floats) -> Floats:
    """ln C(2h, h+k) − ln C(2h, h), for h ≥ 2¹¹, to a relative 10⁻¹²."""
    u = np.minimum(np.abs(k) / h, 1 - 0.5 / h)
    square = u * u
    series = square * (1 + square * (1 / 6 + square * (1 / 15 + square * (1 / 28 + square / 45))))
    direct = (1 + u) * np.log1p(u) + (1 - u) * np.log1p(-u)
    bent = np.where(u < 0.01, series, direct)
    ends = -0.5 * np.log1p(-square) - square / (6 * h * (1 - square))
    found: Floats = -h * bent + ends
    return found


def _binomial_tail(coins: int, height: int) -> float:
    """Pr[N > h]; of very many coins the normal tail, off by a relative 1/R."""
    if coins < 2**40:
        from scipy.special import betainc  # noqa: PLC0415  (slow to import)

        least = coins // 2 + height + 1
        return float(betainc(least, coins - least + 1, 0.5)) if least <= coins else 0.0
    return 0.5 * math.erfc((height + 0.5) / math.sqrt(coins / 2))


def _gaussian_total(sigma: float) -> float:
    """Σ exp(−k²/2σ²) over all whole k; by Poisson's formula σ√(2π) once σ is above 3."""
    if sigma > 3:
        return sigma * math.sqrt(2 * math.pi)
    k = np.arange(-math.ceil(40 * sigma) - 2, math.ceil(40 * sigma) + 3)
    return float(np.exp(-(k**2) / (2 * sigma * sigma)).sum())


def _gaussian_variance(sigma: float) -> float:
    if sigma > 3:
        return sigma * sigma
    k = np.arange(1, math.ceil(40 * sigma) + 3)
    weights = np.exp(-(k**2) / (2 * sigma * sigma))
    return float(2 * (k**2 * weights).sum() / _gaussian_total(sigma))


def _gaussian_tail(sigma: float, height: int) -> float:
    """Pr[N > h]; for large σ by Euler and Maclaurin, off by a relative 1/σ⁴."""
    first = height + 1
    if sigma < SUMMED:
        k = np.arange(first, first + math.ceil(40 * sigma) + 2, dtype=np.float64)
        return float(np.exp(-((k / sigma) ** 2) / 2).sum() / _gaussian_total(sigma))
    z = first / sigma
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return 0.5 * math.erfc(z / math.sqrt(2)) + density * (0.5 + z / (12 * sigma)) / sigma


def _up(x: float) -> float:
    """To the side of more noise, past what the arithmetic before lost."""
    return math.nextafter(x * (1 + 2**-51), math.inf)
