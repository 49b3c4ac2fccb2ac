"""Rounded normal and geometric noise have their exact laws, also where floats cannot decide."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

from tests.support.sampling import fits
from tests.support.soak import rounds
from voile.arrays import Floats, Ints, Words
from voile.noise import Key, geometric, normal
from voile.noise.geometric import geometric_variance, two_sided_geometric
from voile.noise.normal import LARGEST_SCALE, Uniform, rounded_normal, rounded_variance
from voile.noise.whole import SystemSource, WordSource

Draw = Callable[[float, int, WordSource], Ints]


class Prepared:
    """Words that a test chose, then those of a stream."""

    def __init__(self, *prepared: Words) -> None:
        self._prepared = list(prepared)
        self._stream = Key.from_seed(99).stream("further")

    def words(self, count: int) -> Words:
        if self._prepared and len(self._prepared[0]) == count:
            return self._prepared.pop(0)
        return self._stream.words(count)


def normal_masses(scale: float, far: int) -> Floats:
    """Pr[round(σZ) = k] for |k| ≤ far."""
    edges = (np.arange(-far, far + 2) - 0.5) / scale
    upper = special.ndtr(-np.abs(edges))  # differences of tails lose no digits
    inner = np.where(edges[1:] <= 0, upper[1:] - upper[:-1], upper[:-1] - upper[1:])
    inner[far] = 1 - 2 * upper[far + 1]
    return np.asarray(inner)


def geometric_masses(scale: float, far: int) -> Floats:
    found = np.exp(-np.abs(np.arange(-far, far + 1)) / scale)
    return np.asarray(found * math.tanh(0.5 / scale))


LAWS: dict[str, tuple[Draw, Callable[[float, int], Floats]]] = {
    "normal": (rounded_normal, normal_masses),
    "geometric": (two_sided_geometric, geometric_masses),
}


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.5, 250.0])
@pytest.mark.parametrize("law", LAWS)
def test_draws_follow_their_law_and_no_other(law: str, scale: float) -> None:
    """χ² of level 1e-6; a scale that is 5 % off fails with power > 0.99."""
    draw, masses = LAWS[law]
    count = rounds(100_000, 3_000_000)
    found = draw(scale, count, Key.from_seed(5).stream("test"))
    far = math.ceil(25 * scale) + 2
    assert np.abs(found).max() <= far  # 3 million draws go beyond it in less than 1e-4 of runs
    width = max(1, (2 * far + 1) // 180)
    groups = np.arange(2 * far + 1) // width
    seen = np.bincount(groups[found + far], minlength=int(groups[-1]) + 1)
    assert fits(seen, np.bincount(groups, masses(scale, far)))
    for wrong in (0.95, 1.05):
        assert not fits(seen, np.bincount(groups, masses(scale * wrong, far)))


@pytest.mark.parametrize("scale", [0.4, 7.3, 1e5, 2.0**33])
@pytest.mark.parametrize("law", LAWS)
def test_undecided_draws_agree_with_decided_ones(
    law: str, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same first words: decimals decide what floats decide."""
    draw, _ = LAWS[law]
    words = Key.from_seed(3).stream("first").words(60)
    more = Key.from_seed(4).stream("first").words(60)
    quick = draw(scale, 60, Prepared(words, more))
    monkeypatch.setattr(normal, "MARGIN", 0.6 / scale + 0.01)
    monkeypatch.setattr(geometric, "MARGIN", 0.6 / scale + 0.01)
    asked: list[int] = []
    compared = Uniform.below

    def below(self: Uniform, bound: Decimal, error: Decimal) -> bool | None:
        asked.append(self.bits)
        return compared(self, bound, error)

    monkeypatch.setattr(Uniform, "below", below)
    assert np.array_equal(draw(scale, 60, Prepared(words, more)), quick)
    assert len(asked) > 60  # nearly all of them were undecided


def exact_tail(b: Fraction, bits: int) -> Fraction:
    """Pr[|Z| > b] by the alternating series of Φ about 0, good to the last of these bits."""
    power, total, n = b, Fraction(0), 0
    unit = 1 << (bits + 200)
    while abs(power) * unit >= 1 or n < b * b:
        total += Fraction(round(power / (2 * n + 1) * unit), unit)
        n += 1
        power = Fraction(round(-power * b * b / (2 * n) * unit), unit)
    with localcontext(Context(prec=bits)):
        root = Fraction((2 / decimal_pi(bits)).sqrt())
    return 1 - root * total


def decimal_pi(digits: int) -> Decimal:
    """By the arithmetic-geometric mean (Gauss and Legendre): not the way of the code."""
    with localcontext(Context(prec=digits + 10)):
        a, b, t, p = Decimal(1), 1 / Decimal(2).sqrt(), Decimal("0.25"), 1
        for _ in range(digits.bit_length() + 2):
            a, b, t, p = (a + b) / 2, (a * b).sqrt(), t - p * ((a - b) / 2) ** 2, 2 * p
        return (a + b) ** 2 / (4 * t)


@pytest.mark.parametrize(("scale", "k"), [(0.3, 0), (2.5, 3), (2.5, 11), (1e6, 0), (1e9, 10**9)])
def test_close_decisions_are_those_of_exact_fractions(scale: float, k: int) -> None:
    """One in the last of 127 bits above or below the tail; in between, more bits are drawn."""
    tail = exact_tail(Fraction(2 * k + 1, 2) / Fraction(scale), 260)
    place = int(tail * 2**127)
    for shift, verdict in ((1, False), (0, None), (-1, True)):
        uniform = Uniform(place + shift, 127, SystemSource())
        assert normal._compared(scale, uniform, k) is verdict
    finer = int(tail * 2**191)
    for step, exceeded in ((3, False), (-3, True)):
        low = (finer + step) & (2**64 - 1)
        if (finer + step) >> 64 == place:
            uniform = Uniform(place, 127, Prepared(np.array([low], dtype=np.uint64)))
            assert normal._exceeds(scale, uniform, k) is exceeded


@pytest.mark.parametrize(("scale", "k"), [(0.3, 0), (2.5, 3), (1e6, 10), (1e9, 3 * 10**9)])
def test_close_geometric_decisions_are_those_of_exact_fractions(scale: float, k: int) -> None:
    x, term, total = Fraction(k + 1) / Fraction(scale), Fraction(1), Fraction(0)
    for n in range(1, 200):  # e^x by its series, and 1/e^x
        total += term
        term = Fraction(round(term * x / n * 2**400), 2**400)
    place = int(2**127 / total)
    for shift, verdict in ((1, False), (0, None), (-1, True)):
        uniform = Uniform(place + shift, 127, SystemSource())
        assert geometric._compared(scale, uniform, k) is verdict


def test_floats_err_by_less_than_a_tenth_of_the_margin() -> None:
    rng = np.random.default_rng(1)
    first = np.concatenate([
        rng.integers(0, 2**63, rounds(200, 5000), dtype=np.uint64),
        (2 ** rng.uniform(1, 63, rounds(100, 2000))).astype(np.uint64),
    ])  # fmt: skip
    for v, z in zip(first.tolist(), normal._deviation(first).tolist(), strict=True):
        with localcontext(Context(prec=80)):
            tail = 1 - normal._within(Decimal(z), 80)
            off = float((tail - Decimal(v) / 2**63) / 2) / stats.norm.pdf(z)
        assert abs(off) < normal.MARGIN / 10 * (1 + z)


def test_the_far_tail_is_reached() -> None:
    """First bits of V that are all 0 say only that |Z| is large: further bits say how large."""
    for word, sign in ((0, 1), (1, -1)):
        source = Prepared(np.array([word] + [2] * 9, dtype=np.uint64), np.array([5], np.uint64))
        found = sign * int(rounded_normal(1e6, 10, source)[0])
        far, near = -1e6 * special.ndtri(np.array([5.0, 6.0]) * 2.0**-128)
        assert near < found < far  # V lies between 5 and 6 parts of 2¹²⁷
    source = Prepared(
        np.array([0, 9], np.uint64), np.array([7], np.uint64), np.array([2**63, 9], np.uint64)
    )
    found = int(two_sided_geometric(1e6, 2, source)[0]) + math.floor(1e6 * math.log(2))
    far, near = 1e6 * (128 - np.log2([7.0, 8.0])) * math.log(2)
    assert near - 1 <= found <= far


@pytest.mark.parametrize("scale", [1e-300, 1e-3])
def test_tiny_scales_draw_nothing_but_zeros(scale: float) -> None:
    for draw, _ in LAWS.values():
        assert not draw(scale, 2000, SystemSource()).any()
    assert rounded_variance(scale) == 0 == geometric_variance(scale)


def test_the_widest_noise_has_its_variance_and_fair_low_bits() -> None:
    """Sums of squares lie within the χ² quantiles of 1e-6; parity is fair to 1e-6."""
    count = rounds(4000, 100_000)
    found = rounded_normal(LARGEST_SCALE, count, Key.from_seed(6).stream("wide"))
    low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], count)
    assert low < ((found / LARGEST_SCALE) ** 2).sum() < high
    assert stats.binomtest(int((found & 1).sum()), count).pvalue > 1e-6


@pytest.mark.parametrize("scale", [0.05, 0.2, 0.5, 1.0, 2.9, 3.1, 20.0])
def test_variances_are_those_of_the_laws(scale: float) -> None:
    far = math.ceil(45 * scale) + 45
    squares = np.arange(-far, far + 1.0) ** 2
    exact = float((squares * normal_masses(scale, far)).sum())
    assert rounded_variance(scale) == pytest.approx(exact, rel=1e-9)
    exact = float((squares * geometric_masses(scale, far)).sum())
    assert geometric_variance(scale) == pytest.approx(exact, rel=1e-9)


def test_draws_repeat_from_a_seed_and_are_secret_without() -> None:
    for draw, _ in LAWS.values():
        one, two = (draw(9.0, 50, Key.from_seed(1).stream("a")) for _ in "ab")
        assert np.array_equal(one, two)
        secret, other = (draw(9.0, 50, SystemSource()) for _ in "ab")
        assert not np.array_equal(secret, other)
        assert draw(9.0, 0, SystemSource()).shape == (0,)


@pytest.mark.parametrize("scale", [0.0, -1.0, 2.0**41, math.nan, math.inf])
def test_scales_that_cannot_be(scale: float) -> None:
    for draw, _ in LAWS.values():
        with pytest.raises(ValueError, match="above 0 and at most"):
            draw(scale, 1, SystemSource())
