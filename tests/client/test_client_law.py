"""What the client does is what it says: by enumeration of every coin, by samples, by an audit."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.support.make_vectors import AGES, GRADES, PAY, SEX, SMOKES, TUPLE, column, spec_of
from tests.support.sampling import assert_fits, fits
from voile.client import Column, Draws, Spec, perturb, perturb_batch, prior_posterior
from voile.client import perturbation as draws_module
from voile.client.perturbation import threshold
from voile.errors import UsageError


def seeded(seed: int) -> Draws:
    return Draws(np.random.default_rng(seed).bytes)


def first(entry: dict[str, Any]) -> Column:
    return Spec.from_dict(spec_of(entry)).columns[0]


# ---------------------------------------------------------------------- the law, exactly


def tiny_law(spec: Spec, row: dict[str, Any], words: int) -> dict[tuple[Any, ...], Fraction]:
    """P(y | row), by running the client on every sequence of words of a machine with few.

    A sequence in which a word is drawn again does not end: its chance is given to the others in
    proportion, which is what drawing again does.
    """
    needed = 2 * sum(made.retention < 1 for made in spec.columns)
    if spec.joint is not None:
        needed = 1 + len(spec.columns)
    found: Counter[tuple[Any, ...]] = Counter()
    for drawn in product(range(words), repeat=needed):
        random = b"".join(word.to_bytes(8, "big") for word in drawn)
        try:
            found[tuple(perturb(row, spec, _draws=Draws.fixed(random)).values())] += 1
        except UsageError:
            continue
    total = sum(found.values())
    return {outcome: Fraction(count, total) for outcome, count in found.items()}


@pytest.mark.parametrize("retention", [0.25, 0.5, 0.6875, 0.7])
@pytest.mark.parametrize("replace", ["uniform", [1, 2, 4]])
def test_the_law_of_a_column_is_exact(
    retention: float, replace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every coin and every word of a machine with 16 of them; p is rounded down to sixteenths."""
    monkeypatch.setattr(draws_module, "WORDS", 16)
    entry = column("x", "integer", {"low": 0, "step": 1, "per": 1, "count": 3})
    spec = Spec.from_dict(spec_of(entry | {"retention": retention, "replace": replace}))
    parts = [1, 1, 1] if replace == "uniform" else replace
    kept = Fraction(math.floor(Fraction(retention) * 16), 16)
    laws = [tiny_law(spec, {"x": x}, 16) for x in range(3)]
    for x, law in enumerate(laws):
        for y in range(3):
            drawn = (1 - kept) * Fraction(parts[y], sum(parts))
            assert law[(y,)] == kept * (x == y) + drawn
    largest = max(a[y] / b[y] for a, b in product(laws, laws) for y in a)
    assert math.log(largest) <= spec.epsilon() + 1e-12
    if kept == Fraction(retention):
        assert math.log(largest) == pytest.approx(spec.epsilon(), abs=1e-12)
    wrong = Spec.from_dict(spec_of(entry | {"retention": retention - 0.1, "replace": replace}))
    assert math.log(largest) > wrong.epsilon()


def test_the_law_of_a_row_with_one_coin_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws_module, "WORDS", 8)
    spec = Spec.from_dict(TUPLE)
    rows = [{"a": a, "b": b} for a in (0, 2, 4) for b in (False, True, None)]
    laws = [tiny_law(spec, row, 8) for row in rows]
    for row, law in zip(rows, laws, strict=True):
        for other in rows:
            chance = Fraction(1, 4) * (row == other) + Fraction(3, 4) / 9
            assert law[tuple(other.values())] == chance
    largest = max(a[y] / b[y] for a, b in product(laws, laws) for y in a)
    assert largest == 4
    assert spec.epsilon() == pytest.approx(math.log(4), abs=1e-12)
    # Rows that differ in one column only are told apart as well as any.
    beside = max(laws[0][y] / laws[1][y] for y in laws[0])
    assert spec.column_epsilons()["b"] == pytest.approx(math.log(beside), abs=1e-12)


def test_no_belief_grows_beyond_the_bound_and_one_reaches_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(draws_module, "WORDS", 16)
    entry = column("x", "integer", {"low": 0, "step": 1, "per": 1, "count": 3}, retention=0.5)
    spec = Spec.from_dict(spec_of(entry | {"replace": [1, 2, 4]}))
    laws = [tiny_law(spec, {"x": x}, 16) for x in range(3)]
    reached = 0.0
    for weights in product(range(0, 11), repeat=3):
        if 0 < weights[0] < sum(weights):
            prior = Fraction(weights[0], sum(weights))
            bound = prior_posterior(float(prior), spec.epsilon())
            for y in laws[0]:
                seen = sum(w * law[y] for w, law in zip(weights, laws, strict=True))
                posterior = float(weights[0] * laws[0][y] / seen)
                assert posterior <= bound + 1e-12
                reached = max(reached, posterior / bound)
    assert reached == pytest.approx(1, abs=1e-12)


def test_numbers_below_a_bound_are_exactly_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 256 words the kept ones fall on each number equally often, for every bound."""
    monkeypatch.setattr(draws_module, "WORDS", 256)
    good = (0).to_bytes(8, "big")
    for bound in range(1, 257):
        limit = 256 // bound * bound
        counts = Counter[int]()
        for word in range(limit):
            counts[int(Draws.fixed(word.to_bytes(8, "big")).below(bound, 1)[0])] += 1
        assert set(counts) == set(range(bound)) and len(set(counts.values())) == 1
        for word in range(limit, 256):
            drawn = Draws.fixed(word.to_bytes(8, "big") * 2 + good).below(bound, 1)
            assert drawn.tolist() == [0]


@given(st.floats(0, 1, exclude_max=True))
def test_the_threshold_never_keeps_more_than_the_retention(retention: float) -> None:
    exact = Fraction(retention) * 2**64
    assert int(threshold(retention)) == math.floor(exact) < 2**64


# ---------------------------------------------------------------------- the law, sampled


@pytest.mark.parametrize("entry", [AGES, SEX, SMOKES, GRADES, PAY], ids=lambda e: e["name"])
def test_a_batch_follows_the_law_and_no_other(entry: dict[str, Any]) -> None:
    """χ² with a false-alarm rate of 10⁻⁶; a retention off by 0.02 must be noticed."""
    made, count, code = first(entry), 200_000, 1
    value = made.decode([code]).tolist()[0]
    spec = Spec.from_dict(spec_of(entry))
    batch = perturb_batch({entry["name"]: [value] * count}, spec, _draws=seeded(1))
    seen = np.bincount(made.encode(batch[entry["name"]]), minlength=made.size)
    parts = np.ones(made.size) if entry["replace"] == "uniform" else np.array(entry["replace"])

    def law(retention: float) -> Any:
        return retention * (np.arange(made.size) == code) + (1 - retention) * parts / parts.sum()

    assert_fits(seen, law(entry["retention"]))
    assert not fits(seen, law(entry["retention"] + 0.02))
    assert not fits(seen, law(entry["retention"] - 0.02))


def test_a_batch_with_one_coin_replaces_whole_rows() -> None:
    """χ² on tuples with a false-alarm rate of 10⁻⁶; coins for each column would be noticed."""
    spec, count = Spec.from_dict(TUPLE), 200_000
    batch = perturb_batch({"a": [4] * count, "b": [None] * count}, spec, _draws=seeded(2))
    a, b = (made.encode(batch[made.name]) for made in spec.columns)
    seen = np.bincount(3 * a + b, minlength=9)
    law = np.full(9, 0.75 / 9) + 0.25 * (np.arange(9) == 8)
    assert_fits(seen, law)
    single = 0.25 * (np.arange(3) == 2) + 0.75 / 3
    assert not fits(seen, np.outer(single, single).ravel())


def test_columns_of_a_row_have_coins_of_their_own() -> None:
    """Kept or not: 2 × 2 counts of two columns, false-alarm rate 10⁻⁶, across chunks."""
    wide = {"low": 0, "step": 1, "per": 1, "count": 2**40}
    spec = Spec.from_dict(spec_of(column("x", "integer", wide), column("y", "integer", wide)))
    count = 200_000
    batch = perturb_batch({"x": [7] * count, "y": [8] * count}, spec, _draws=seeded(3))
    kept = 2 * (batch["x"] == 7) + (batch["y"] == 8)
    assert_fits(np.bincount(kept, minlength=4), [0.25] * 4)
    # Nor do rows that follow one another, or stand at the same place of two chunks.
    for lag in (1, 2**16):
        pairs = 2 * (batch["x"][:-lag] == 7)[::2] + (batch["x"][lag:] == 7)[::2]
        assert_fits(np.bincount(pairs, minlength=4), [0.25] * 4)


@pytest.mark.parametrize("entry", [SEX, SMOKES], ids=lambda e: e["name"])
def test_an_audit_finds_no_more_than_the_promise_and_catches_a_wrong_one(
    entry: dict[str, Any],
) -> None:
    """ln of the largest ratio of sampled frequencies, bounded from below.

    Each of two frequencies has a one-sided Clopper–Pearson bound with error 10⁻⁶, so that a sound
    client is accused with chance 2·10⁻⁶ for each pair of inputs and outcome.
    """
    made, count = first(entry), 400_000
    spec = Spec.from_dict(spec_of(entry))
    seen = []
    for code in range(made.size):
        value = made.decode([code]).tolist()[0]
        batch = perturb_batch({made.name: [value] * count}, spec, _draws=seeded(10 + code))
        seen.append(np.bincount(made.encode(batch[made.name]), minlength=made.size))
    bounds = [
        math.log(
            stats.beta.ppf(1e-6, a[y], count - a[y] + 1)
            / stats.beta.isf(1e-6, b[y] + 1, count - b[y])
        )
        for a, b in product(seen, seen)
        for y in range(made.size)
    ]
    assert max(bounds) <= spec.epsilon()
    wrong = first(entry | {"retention": entry["retention"] - 0.05})
    assert max(bounds) > wrong.epsilon()


def test_secure_draws_are_those_of_the_system() -> None:
    """Two rows in a domain of 2⁵⁰ are equal with chance 2⁻⁵⁰."""
    wide = column("x", "integer", {"low": 0, "step": 1, "per": 1, "count": 2**50}, retention=0)
    spec = Spec.from_dict(spec_of(wide))
    assert perturb({"x": 1}, spec) != perturb({"x": 1}, spec)
