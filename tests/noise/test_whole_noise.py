"""Whole-number noise follows its exact law, and the tests have the power to catch what does not.

Draws with a key are repeatable. Draws without come from the operating system's secret bits, which
no test can seed: those tests fail for a sound sampler with the false-alarm rate that they state.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from tests.support.sampling import fits
from voile.errors import UsageError
from voile.noise import Key, whole
from voile.noise.whole import SystemSource, below, draw, drawn, many_coins
from voile.privacy.interactive.laws import Change, NoiseLaw, noise_law

DRAWS = 40_000
UNSEEDED = 1e-9
"""The false-alarm rate of a test that tosses fresh coins each time."""
LAWS = {
    "few coins": noise_law("binomial", 3.5),
    "coins": noise_law("binomial", 235.8),
    "many coins": noise_law("binomial", 20_000),
    "narrow gaussian": noise_law("gaussian", 0.5),
    "gaussian": noise_law("gaussian", 235.8),
    "narrow geometric": noise_law("geometric", 0.5),
    "geometric": noise_law("geometric", 235.8),
    "histogram": noise_law("binomial", 20.0, Change(2, 2)),
}
WRONG = {  # each a little off: the size that an error in a formula would have
    "few coins": NoiseLaw("binomial", 16),
    "coins": NoiseLaw("binomial", 4 * 215),
    "many coins": NoiseLaw("binomial", 4 * 18_000),
    "narrow gaussian": noise_law("gaussian", 0.56),
    "gaussian": noise_law("gaussian", 215),
    "narrow geometric": noise_law("geometric", 0.56),
    "geometric": noise_law("geometric", 212),
    "histogram": noise_law("binomial", 18.0, Change(2, 2)),
}


def follows(found: npt.NDArray[np.int64], law: NoiseLaw, false_alarm: float) -> bool:
    """Pearson's test of every value within eight deviations, and of the second moment.

    The mean of squares is tested by its normal limit; both at half of the rate.
    """
    far = math.ceil(8 * law.sd)
    values = np.arange(-far, far + 1)
    width = max(1, len(values) // 60)
    groups = (values + far) // width
    chances = np.bincount(groups, law.pmf(values))
    seen = np.bincount(groups, np.bincount(np.clip(found, -far, far) + far, minlength=len(values)))
    if not fits(seen, chances, false_alarm / 2):
        return False
    wide = np.arange(-6 * far, 6 * far + 1)
    fourth = float((law.pmf(wide) * wide.astype(float) ** 4).sum())
    error = math.sqrt((fourth - law.variance**2) / len(found))
    z = (float((found.astype(float) ** 2).mean()) - law.variance) / error
    return bool(2 * stats.norm.sf(abs(z)) >= false_alarm / 2)


@pytest.mark.parametrize("name", LAWS)
def test_simulated_draws_follow_their_law_and_no_other(name: str) -> None:
    """40,000 draws tell apart variances that differ by a tenth."""
    found = drawn(LAWS[name], DRAWS, Key.from_seed(11))
    assert follows(found, LAWS[name], 1e-6)
    assert not follows(found, WRONG[name], 1e-6)


@pytest.mark.parametrize("name", LAWS)
def test_secret_draws_follow_their_law_and_no_other(name: str) -> None:
    """Fresh coins: a sound sampler fails with 10⁻⁹ each; a wrong law is missed with less."""
    found = drawn(LAWS[name], DRAWS)
    assert follows(found, LAWS[name], UNSEEDED)
    assert not follows(found, WRONG[name], UNSEEDED)


def test_draws_are_whole_numbers_that_seeds_repeat_and_nobody_else() -> None:
    law = noise_law("binomial", 500)
    assert draw(law, 20, Key.from_seed(3)) == draw(law, 20, Key.from_seed(3))
    assert draw(law, 20, Key.from_seed(3)) != draw(law, 20, Key.from_seed(4))
    assert draw(law, 20) != draw(law, 20)  # both the same with chance 10⁻³⁰
    assert all(type(one) is int for one in draw(law, 3))
    assert draw(law, 0) == []


def test_draws_are_independent_of_one_another() -> None:
    """Neighbouring draws are not correlated: |r|·√n is above 6 with 2·10⁻⁹."""
    for name in ("coins", "many coins", "gaussian", "geometric"):
        found = drawn(LAWS[name], DRAWS, Key.from_seed(5)).astype(float)
        r = np.corrcoef(found[:-1], found[1:])[0, 1]
        assert abs(r) * math.sqrt(DRAWS) < 6


def test_both_ways_to_toss_coins_give_the_same_law() -> None:
    """Bits that are counted and proposals that are taken, of 2¹⁶ coins: two-sample test, 10⁻⁶."""
    law, stream = NoiseLaw("binomial", 2**16), Key.from_seed(8).stream("both")
    rejected = many_coins(2**16, law.log_pmf, DRAWS, stream)
    words = stream.words(DRAWS // 8 * 2**10).reshape(-1, 2**10)
    counted = np.bitwise_count(words).sum(axis=1, dtype=np.int64) - 2**15
    assert stats.ks_2samp(rejected, counted).pvalue > 1e-6
    assert stats.ks_2samp(rejected * 6 // 5, counted).pvalue < 1e-6


def test_close_decisions_are_those_of_exact_fractions() -> None:
    """Beyond 2⁻²⁰⁰ of the chance itself, which 2³²⁰ cells and 90 digits tell apart."""
    half = 2**15
    middle = math.comb(2 * half, half)
    for x, block in ((0, 0), (1, 0), (-162, 0), (300, 1), (-700, 2)):
        chance = Fraction(math.comb(2 * half, half + x) * 2**block, middle)
        if chance >= 1:
            assert below(2**320 - 2**120, block, half, x)
            continue
        for shift in (1, -1):
            u = int(chance * (1 + Fraction(shift, 2**200)) * 2**320)
            assert below(u, block, half, x) == (shift < 0)
    assert not below(2**319, 0, half, half)


def test_undecided_proposals_go_the_exact_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """With floats that decide nothing, decimals alone give the same draws."""
    law = NoiseLaw("binomial", 2**16)
    quick = many_coins(2**16, law.log_pmf, 300, Key.from_seed(2).stream("x"))
    monkeypatch.setattr("voile.noise.whole.MARGIN", 3.0)
    slow = many_coins(2**16, law.log_pmf, 300, Key.from_seed(2).stream("x"))
    assert len(slow) == len(quick) == 300
    # other bits are used, so that the draws differ; their law does not
    assert stats.ks_2samp(slow, quick).pvalue > 1e-6


def test_wide_noise_fills_its_range() -> None:
    """Noise for sums of large values: variances of 10²⁰ and more, each low bit fair."""
    for kind in ("binomial", "gaussian", "geometric"):
        law = noise_law(kind, 1e6, Change(10**8, 10**16))
        for key in (Key.from_seed(1), None):
            found = drawn(law, 4000, key)
            assert abs(float(found.astype(float).std()) / law.sd - 1) < 0.2
            if kind == "binomial" or key is None:
                odd = int((found & 1).sum())
                assert stats.binomtest(odd, 4000).pvalue > UNSEEDED


def test_the_systems_bits_are_fair() -> None:
    words = SystemSource().words(4096)
    ones = int(np.bitwise_count(words).sum())
    assert stats.binomtest(ones, 64 * 4096).pvalue > UNSEEDED
    assert len(np.unique(words)) == 4096


def test_without_opendp_binomial_noise_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    whole._measurement.cache_clear()
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    assert len(draw(noise_law("binomial", 100), 5)) == 5
    with pytest.raises(UsageError, match="OpenDP") as raised:
        draw(noise_law("gaussian", 100), 5)
    assert "voile[dp]" in raised.value.hint
