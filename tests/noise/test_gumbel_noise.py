"""The exponential mechanism chooses with its exact chances, also where floats cannot decide."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.noise.test_normal_noise import Prepared
from tests.support.sampling import fits
from tests.support.soak import rounds
from voile.arrays import Floats
from voile.noise import Key, gumbel
from voile.noise.gumbel import most_noisy
from voile.noise.whole import SystemSource

SCORES = np.array([3, 0, 5, -2, 5])


def chances(rate: float, count: int) -> dict[tuple[int, ...], float]:
    """Of every set of places: choices one after another, without those before."""
    masses = np.exp(rate * SCORES)
    found: dict[tuple[int, ...], float] = {}
    for order in permutations(range(len(SCORES)), count):
        chance, left = 1.0, float(masses.sum())
        for place in order:
            chance *= float(masses[place]) / left
            left -= float(masses[place])
        key = tuple(sorted(order))
        found[key] = found.get(key, 0.0) + chance
    return found


@pytest.mark.parametrize("count", [1, 2, 3])
def test_sets_are_chosen_with_their_chances_and_no_others(count: int) -> None:
    """χ² of level 1e-6; a rate that is a third off fails."""
    stream = Key.from_seed(3).stream("choices")
    sets = sorted(chances(0.4, count))
    seen = np.zeros(len(sets))
    for _ in range(rounds(5_000, 200_000)):
        seen[sets.index(tuple(most_noisy(SCORES, 0.4, count, stream).tolist()))] += 1
    assert fits(seen, [chances(0.4, count)[s] for s in sets])
    assert not fits(seen, [chances(0.55, count)[s] for s in sets])


def test_undecided_choices_agree_with_decided_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.arange(40) // 3
    quick: list[list[int]] = []
    slow: list[list[int]] = []
    for margin, found in ((1e-13, quick), (0.5, slow)):
        monkeypatch.setattr(gumbel, "MARGIN", margin)
        for seed in range(25):
            words = Key.from_seed(seed).stream("first").words(40)
            found.append(most_noisy(scores, 0.2, 6, Prepared(words)).tolist())
    assert quick == slow


def test_first_bits_that_agree_are_decided_by_further_ones() -> None:
    """Equal words and scores: neither floats nor the first bits can tell; sets are fair to 1e-6."""
    for word in (0, 2**63, 2**64 - 1):
        first = np.full(2, word, dtype=np.uint64)
        seen = [0, 0]
        for seed in range(rounds(60, 2000)):
            source = Prepared(first.copy())
            source._stream = Key.from_seed(seed).stream("further")
            seen[int(most_noisy(np.array([7, 7]), 1.0, 1, source)[0])] += 1
        assert abs(seen[0] - seen[1]) < 5 * math.sqrt(sum(seen))


def test_a_choice_is_within_its_rho() -> None:
    """Rényi's divergence of every order is at most α·ε₀²/8, for scores that change by 1 each."""
    rng = np.random.default_rng(1)
    epsilon = 0.9
    for _ in range(50):
        scores = rng.integers(-5, 6, 8)
        p, q = (_softmax(s * epsilon / 2) for s in (scores, scores + rng.integers(-1, 2, 8)))
        assert np.abs(np.log(p / q)).max() <= epsilon
        for order in (1.5, 3.0, 20.0):
            divergence = math.log(float((p**order * q ** (1 - order)).sum())) / (order - 1)
            assert divergence <= order * epsilon**2 / 8


def _softmax(values: npt.NDArray[np.floating[Any]]) -> Floats:
    found = np.exp(values - values.max())
    return np.asarray(found / found.sum())


def test_all_or_none() -> None:
    assert most_noisy(SCORES, 1.0, 9, SystemSource()).tolist() == [0, 1, 2, 3, 4]
    assert most_noisy(SCORES, 1.0, 0, SystemSource()).tolist() == []
    far = np.array([0, 10**15, -(10**15)])
    assert most_noisy(far, 1.0, 1, SystemSource()).tolist() == [1]
    with pytest.raises(ValueError, match="above 0"):
        most_noisy(SCORES, 0.0, 1, SystemSource())
