"""The exponential mechanism, exactly: the largest of scores with Gumbel noise, from uniform words.

The largest of rate·score + G over all candidates, G = −ln(−ln V) with V uniform, is candidate i
with a chance in proportion to exp(rate·score_i); the k largest are k such choices, one after
another and without the candidates that were chosen before (Durfee and Rogers, 2019). Scores are
whole numbers and the rate is the float itself, so that no rounding changes a chance: floats decide
where the bits of V that were drawn and a margin leave no doubt, else decimals with further bits.

With a rate of ε₀/(2Δ), Δ the most by which neighbours change a score, a choice is ε₀-differentially
private, and ε₀²/8-zCDP (Cesar and Rogers, 2021: its privacy loss has a range of ε₀).
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext

import numpy as np

from voile.arrays import Floats, Ints, Words
from voile.noise.normal import Uniform
from voile.noise.whole import WordSource

MARGIN = 1e-13
"""What floats may err by, in parts of 1, of rate·score and of the noise."""


def most_noisy(scores: Ints, rate: float, count: int, source: WordSource) -> Ints:
    """The places of the `count` largest noisy scores, ascending."""
    if not (math.isfinite(rate) and rate > 0):
        raise ValueError(f"a rate is above 0, not {rate:g}")
    if count >= len(scores):
        return np.arange(len(scores))
    if count <= 0:
        return np.empty(0, dtype=np.int64)
    first = source.words(len(scores))
    low, high = _bounds(scores, rate, first)
    surely = low > np.partition(high, -(count + 1))[-(count + 1)]
    possible = high >= np.partition(low, -count)[-count]
    chosen = set(np.flatnonzero(surely).tolist())
    open_ = [i for i in np.flatnonzero(possible).tolist() if i not in chosen]
    missing = count - len(chosen)
    if len(open_) > missing:
        drawn = {i: Uniform(int(first[i]), 64, source) for i in open_}
        open_ = _decided({i: int(scores[i]) for i in open_}, rate, drawn, missing)
    return np.array(sorted(chosen | set(open_)), dtype=np.int64)


def _bounds(scores: Ints, rate: float, first: Words) -> tuple[Floats, Floats]:
    """Between which floats each noisy score lies, given the first bits of V."""
    base = rate * scores.astype(np.float64)
    low, high = base + _gumbel(first, 0), base + _gumbel(first, 1)
    slack = MARGIN * (1 + np.abs(base))
    with np.errstate(invalid="ignore"):
        return (
            np.nan_to_num(low - slack - MARGIN * np.abs(low), nan=-np.inf, neginf=-np.inf),
            np.nan_to_num(high + slack + MARGIN * np.abs(high), nan=np.inf, posinf=np.inf),
        )


def _gumbel(first: Words, end: int) -> Floats:
    """−ln(−ln V) at an end of V's interval."""
    v = (first.astype(np.float64) + end) * 2.0**-64
    rest = ((~first).astype(np.float64) + (1 - end)) * 2.0**-64  # 1 − V, where V is near 1
    with np.errstate(divide="ignore"):
        negative = np.where(v > 0.5, -np.log1p(-np.minimum(rest, 0.5)), -np.log(v))
        return np.asarray(-np.log(negative))


def _decided(
    scores: dict[int, int], rate: float, drawn: dict[int, Uniform], count: int
) -> list[int]:
    """The `count` largest of some, in decimals; those in doubt get further bits."""
    while True:
        bounds = {i: _exact_bounds(s, rate, drawn[i]) for i, s in scores.items()}
        order = sorted(bounds, key=lambda i: bounds[i], reverse=True)
        inside, outside = order[:count], order[count:]
        least = min(bounds[i][0] for i in inside)
        most = max(bounds[i][1] for i in outside)
        if least > most:
            return inside
        for i in [i for i in inside if bounds[i][0] <= most] + [
            i for i in outside if bounds[i][1] >= least
        ]:
            drawn[i].extend()


def _exact_bounds(score: int, rate: float, uniform: Uniform) -> tuple[Decimal, Decimal]:
    """Between which decimals a noisy score lies."""
    places = math.ceil(uniform.bits * math.log10(2))
    with localcontext(Context(prec=2 * places + 40)):  # 1 − V keeps `places` + 40 digits
        base = Decimal(score) * Decimal(rate)
        unit = Decimal(2) ** uniform.bits
        low, high = uniform.first / unit, (uniform.first + 1) / unit
        error = (1 + abs(base)) * Decimal(10) ** -(places + 35)
        bottom = Decimal("-Infinity") if low == 0 else base - (-low.ln()).ln() - error
        top = Decimal("Infinity") if high == 1 else base - (-high.ln()).ln() + error
        return bottom, top
