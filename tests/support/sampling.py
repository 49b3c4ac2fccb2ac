"""Statistical tests with a size and a power.

`fits` says whether counts agree with probabilities. A test asserts that they do at the true
parameter and that they do not at a wrong one; with fixed seeds both are repeatable, and the
false-alarm rate bounds how often a *new* seed would have failed for no reason.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

FALSE_ALARM = 1e-6


def fits(
    observed: npt.ArrayLike, probabilities: npt.ArrayLike, false_alarm: float = FALSE_ALARM
) -> bool:
    """Pearson's χ² test; cells that expect fewer than ten are joined to the last one."""
    seen = np.asarray(observed, dtype=float)
    chances = np.asarray(probabilities, dtype=float)
    total = seen.sum()
    rest = max(0.0, 1 - chances.sum())
    expected = np.append(chances, rest) * total
    seen = np.append(seen, 0.0)
    large = expected >= 10
    seen = np.append(seen[large], seen[~large].sum())
    expected = np.append(expected[large], expected[~large].sum())
    if expected[-1] < 1:
        # Too little to test by χ²; a handful there is already a surprise.
        if seen[-1] > 12:
            return False
        seen, expected = seen[:-1], expected[:-1] * seen[:-1].sum() / expected[:-1].sum()
    statistic = float(((seen - expected) ** 2 / expected).sum())
    return bool(stats.chi2.sf(statistic, len(seen) - 1) >= false_alarm)


def assert_fits(observed: npt.ArrayLike, probabilities: npt.ArrayLike) -> None:
    assert fits(observed, probabilities), (
        f"counts do not follow the stated law (a sound sampler fails this with probability "
        f"{FALSE_ALARM:g})"
    )


def proportion_at_least(successes: int, trials: int, claimed: float) -> bool:
    """Whether a success rate of at least `claimed` is believable, at the false-alarm rate."""
    return bool(stats.binom.cdf(successes, trials, claimed) >= FALSE_ALARM)
