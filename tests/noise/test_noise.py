"""Randomness: keyed, exact, and the same whatever the partition."""

from __future__ import annotations

import pickle
import secrets
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sampling import assert_fits, fits
from voile.noise import Bernoulli, Gaps, Key, Stream
from voile.noise.gaps import Thresholds, digit_thresholds
from voile.noise.kernels import WORD_DIGITS, walk


def taken(gaps: Gaps, stream: Stream, first: int, last: int) -> list[tuple[int, ...]]:
    batches = [np.array(words) for words in gaps.walk(stream, first, last)]
    return [tuple(map(int, place)) for batch in batches for place in batch.T]


# ---------------------------------------------------------------------- keys


def test_same_key_same_words_other_purpose_other_words() -> None:
    words = Key.from_seed(1).stream("keep", 3).words(8).tolist()
    assert Key.from_seed(1).stream("keep", 3).words(8).tolist() == words
    for other in (
        Key.from_seed(2).stream("keep", 3),
        Key.from_seed(1).stream("noise", 3),
        Key.from_seed(1).stream("keep", 4),
        Key.fresh().stream("keep", 3),
    ):
        assert other.words(8).tolist() != words


def test_a_fresh_key_is_of_the_systems_own_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """All 32 of them, anew for each key: a key that is the same twice is known."""
    assert Key.fresh().derived("keep") != Key.fresh().derived("keep")
    monkeypatch.setattr(secrets, "token_bytes", lambda count: bytes(range(count)))
    known = Key(bytes(range(32)), simulated=False)
    assert Key.fresh().derived("keep") == known.derived("keep")
    assert not Key.fresh().simulated


def test_words_do_not_depend_on_how_many_are_asked_for_at_a_time() -> None:
    at_once = Key.from_seed(1).stream("x").words(100)
    stream = Key.from_seed(1).stream("x")
    assert (np.concatenate([stream.words(n) for n in (1, 59, 40)]) == at_once).all()


def test_a_key_is_neither_shown_nor_stored() -> None:
    key = Key(bytes(range(32)), simulated=False)
    assert repr(key) == "Key(secret)"
    with pytest.raises(TypeError, match="not to be stored"):
        pickle.dumps(key)
    with pytest.raises(ValueError, match="32 bytes"):
        Key(b"short", simulated=True)


# ---------------------------------------------------------------------- coins


def test_bernoulli_has_the_stated_chance_and_no_other() -> None:
    heads = int(Bernoulli(0.3).draw(Key.from_seed(5).stream("b"), 400_000).sum())
    counts = [heads, 400_000 - heads]
    assert_fits(counts, [0.3, 0.7])
    for wrong in (0.3 * 0.98, 0.3 * 1.02):
        assert not fits(counts, [wrong, 1 - wrong])


def test_bernoulli_ends() -> None:
    stream = Key.from_seed(1).stream("b")
    assert Bernoulli(1.0).draw(stream, 1000).all()
    assert not Bernoulli(0.0).draw(stream, 1000).any()
    with pytest.raises(ValueError, match="lies in"):
        Bernoulli(1.5)


@given(st.floats(1e-300, 1, exclude_max=True))
def test_a_threshold_is_its_probability_to_128_bits(p: float) -> None:
    scaled = int(Fraction(p) * 2**128)
    thresholds = Thresholds([scaled])
    high, low = int(thresholds._high[0]), int(thresholds._low[0])
    assert abs(Fraction(high * 2**64 + low, 2**128) - Fraction(p)) < Fraction(1, 2**128)


# ---------------------------------------------------------------------- gaps


@pytest.mark.parametrize("p", [0.5, 0.3, 0.0018583258506175134, 1e-9, 1e-40, 2.0**-1000])
def test_digits_make_the_geometric_law(p: float) -> None:
    """Π of the digits' chances is (1−p)^g·p: compared as exact fractions, no sampling."""
    chances = [Fraction(t, 2**128) for t in digit_thresholds(Fraction(p))]
    r = 1 - Fraction(p)
    for g in (0, 1, 2, 3, 5, 8, 1000):
        if g.bit_length() > len(chances):
            continue
        made = Fraction(1)
        for b, chance in enumerate(chances):
            made *= chance if g >> b & 1 else 1 - chance
        if p > 1e-12:
            truth = r**g * Fraction(p)
            assert abs(made - truth) <= truth / 2**100
        else:
            # r^g·p to first order; exact powers of such fractions are too long to write down.
            truth = Fraction(p) * (1 - g * Fraction(p))
            assert abs(made / truth - 1) < Fraction(1, 2**60)


def test_gaps_follow_the_geometric_law_and_no_other() -> None:
    p = 0.05
    places = np.array(taken(Gaps(p, "set", []), Key.from_seed(7).stream("g"), 0, 2**22))[:, 0]
    gaps = np.diff(places, prepend=-1) - 1
    counts = np.bincount(gaps)
    law = p * (1 - p) ** np.arange(len(counts))
    assert_fits(counts, law)
    for wrong in (p * 0.95, p * 1.05):
        assert not fits(counts, wrong * (1 - wrong) ** np.arange(len(counts)))


def test_multiset_walk_gives_each_tuple_a_geometric_number() -> None:
    q, size = 0.2, 300_000
    places = np.array(taken(Gaps(q, "multiset", []), Key.from_seed(8).stream("g"), 0, size))[:, 0]
    copies = np.bincount(np.bincount(places, minlength=size))
    law = (1 - q) * q ** np.arange(len(copies))
    assert_fits(copies, law)
    for wrong in (q * 0.97, q * 1.03):
        assert not fits(copies, (1 - wrong) * wrong ** np.arange(len(copies)))


def test_set_walk_takes_each_tuple_at_most_once_and_neighbours_independently() -> None:
    p, size = 0.3, 400_000
    places = np.array(taken(Gaps(p, "set", []), Key.from_seed(9).stream("g"), 0, size))[:, 0]
    assert len(set(places.tolist())) == len(places)
    chosen = np.zeros(size, dtype=int)
    chosen[places] = 1
    pairs = np.bincount(chosen[::2] * 2 + chosen[1::2], minlength=4)
    assert_fits(pairs, [(1 - p) ** 2, (1 - p) * p, p * (1 - p), p * p])
    assert not fits(pairs, [(1 - p) ** 2 + 0.005, p * (1 - p) - 0.005, (1 - p) * p, p * p])


def test_cutting_the_domain_into_ranges_does_not_change_the_law() -> None:
    q, size = 0.2, 60_000
    key = Key.from_seed(10)
    for ranges in (1, 7, 1000):
        cuts = [size * i // ranges for i in range(ranges + 1)]
        places = [
            place
            for i in range(ranges)
            for place in taken(Gaps(q, "multiset", []), key.stream("r", i), cuts[i], cuts[i + 1])
        ]
        copies = np.bincount(np.bincount(np.array(places)[:, 0], minlength=size))
        assert_fits(copies, (1 - q) * q ** np.arange(len(copies)))


@given(
    st.lists(st.integers(1, 62), min_size=1, max_size=3),
    st.integers(0, 1),
    st.integers(0, 2**32),
)
def test_walk_over_several_words_equals_big_integers(bits: list[int], step: int, seed: int) -> None:
    """The kernel's carries against Python's integers, gap by gap."""
    rng = np.random.default_rng(seed)
    widths = np.array([WORD_DIGITS, *bits], dtype=np.int64)
    draws = 40
    gaps = np.array(
        [rng.integers(0, 5 if i == 0 else 2**w, draws, dtype=np.uint64)
         for i, w in enumerate(widths)]
    )  # fmt: skip
    last = 60

    def number(words: list[int]) -> int:
        total = words[0]
        for word, width in zip(words[1:], bits, strict=True):
            total = (total << width) + word
        return total

    expected, place = [], 0
    for draw in range(draws):
        place += number([int(g) for g in gaps[:, draw]])
        if place >> sum(bits) >= last:
            break
        expected.append(place)
        place += step
    at = np.zeros(len(widths), dtype=np.uint64)
    count, more = walk(gaps, np.zeros(draws, dtype=np.uint64), widths, at, last, step)
    assert [number([int(w) for w in gaps[:, i]]) for i in range(count)] == expected
    assert more == (len(expected) == draws)


def test_a_domain_beyond_2_to_the_100() -> None:
    """Three words of 60, 60 and 60 bits: the number taken, and where, are as they must be."""
    size, expected = 2**180, 20_000
    p = expected / size
    places = taken(Gaps(p, "set", [60, 60]), Key.from_seed(11).stream("g"), 0, 2**60)
    assert abs(len(places) - expected) < 6 * expected**0.5
    assert places == sorted(set(places))
    for word in range(3):
        tops = np.array([place[word] >> 57 for place in places])
        assert_fits(np.bincount(tops, minlength=8), [1 / 8] * 8)
    wrong = taken(Gaps(p * 0.9, "set", [60, 60]), Key.from_seed(11).stream("g"), 0, 2**60)
    assert abs(len(wrong) - expected) > 6 * expected**0.5


def test_no_noise_when_the_chance_is_nothing() -> None:
    assert taken(Gaps(0.0, "set", []), Key.from_seed(1).stream("g"), 0, 10**6) == []
    with pytest.raises(ValueError, match="lies in"):
        Gaps(1.0, "set", [])
