"""Retention replacement: exact chances, by counting all words where there are few."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import permutations, product
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sampling import assert_fits, fits
from voile.noise import Key, Stream
from voile.noise import replacement as room
from voile.noise.kernels import keep_or_divide, keep_or_multiply, shuffle
from voile.noise.replacement import (
    NARROW_BITS,
    WIDE_BITS,
    Drawer,
    Replacement,
    WordShares,
    cheapest_shares,
    coins,
    perturb,
    perturb_rows,
    resample,
    swap,
)

Codes = npt.NDArray[Any]
ROWS = 400_000

retentions = st.fractions(0, 1, max_denominator=10**6).filter(lambda p: p < 1)


def stream(purpose: str = "x") -> Stream:
    return Key.from_seed(7).stream(purpose)


def column(size: int, dtype: Any = np.int32, rows: int = ROWS) -> Codes:
    return np.random.default_rng(3).integers(0, size, rows).astype(dtype)


# ---------------------------------------------------------------------- the shares of a word


def chances(shares: WordShares) -> tuple[Fraction, list[Fraction]]:
    """The chance to keep, and of each number, by running the loops on every word there is."""
    words = np.arange(2**shares.bits, dtype=np.uint64)
    nothing = np.full(len(words), -1, dtype=np.int64)
    narrow, wide = nothing.copy(), nothing.copy()
    by_product = keep_or_multiply(
        (words << np.uint64(32 - shares.bits)).astype(np.uint32), shares.numbers(), nothing, narrow
    )
    divided = [64 - shares.bits, shares.kept, shares.limit, max(1, shares.share)]
    by_division = keep_or_divide(
        words << np.uint64(64 - shares.bits), np.array(divided, dtype=np.uint64), nothing, wide
    )
    assert by_product == by_division == shares.undecided
    decided = words < shares.limit
    assert (narrow[decided] == wide[decided]).all()
    seen = Counter(narrow[decided].tolist())
    again = Fraction(shares.undecided, 2**shares.bits)
    kept = Fraction(seen.pop(-1, 0), 2**shares.bits) + again * shares.undecided_retention
    fresh = again * (1 - shares.undecided_retention) / shares.size
    assert set(seen) <= set(range(shares.size))
    return kept, [Fraction(seen[v], 2**shares.bits) + fresh for v in range(shares.size)]


@given(retentions, st.integers(1, 300), st.integers(1, 10))
def test_every_word_counted_gives_exactly_the_stated_chances(
    retention: Fraction, size: int, bits: int
) -> None:
    kept, numbers = chances(WordShares(size, retention, bits))
    assert kept == retention
    assert numbers == [(1 - retention) / size] * size


class WrongCoin(WordShares):
    """Forgets that the other coin has a chance of its own."""

    @property
    def undecided_retention(self) -> Fraction:
        return self.retention


def test_a_wrong_coin_for_the_undecided_would_be_seen() -> None:
    assert chances(WordShares(3, Fraction(3, 10), 8))[0] == Fraction(3, 10)
    assert chances(WrongCoin(3, Fraction(3, 10), 8))[0] != Fraction(3, 10)


@given(retentions, st.integers(1, 10**7), st.data())
def test_multiplying_divides_31_bits(retention: Fraction, size: int, data: st.DataObject) -> None:
    shares = WordShares(size, retention, NARROW_BITS)
    if not shares.share:
        return
    factor, places = shares.division
    largest = 2**NARROW_BITS - 1 - shares.kept
    assert factor < 2**32 and largest * factor < 2**63
    for multiple in data.draw(st.lists(st.integers(1, largest // shares.share), max_size=20)):
        for x in (multiple * shares.share - 1, multiple * shares.share):
            assert x * factor >> places == x // shares.share
    assert largest * factor >> places == largest // shares.share


@given(retentions, st.integers(1, 2**62))
def test_few_words_are_undecided(retention: Fraction, size: int) -> None:
    shares = cheapest_shares(size, retention)
    assert 0 <= shares.undecided_retention < 1
    if shares.is_narrow:
        assert 64 * shares.undecided <= 2**NARROW_BITS
    elif size < 2**50:
        assert shares.bits == WIDE_BITS and shares.undecided <= size + 1


@pytest.mark.parametrize(("size", "bits"), [(7, 6), (7 * 2**30, 34)])
def test_undecided_rows_are_settled_by_the_other_coin(size: int, bits: int) -> None:
    """Words as narrow as these leave many rows undecided, and all chances are still right."""
    retention = Fraction(37, 100)

    def seen(kind: type[WordShares]) -> Codes:
        shares = kind(size, retention, bits)
        assert 20 * shares.undecided > 2**bits
        out = np.empty(ROWS, dtype=np.int64)
        Drawer(shares).draw(np.full(ROWS, size, dtype=np.int64), out, stream())
        return np.bincount(out // (size // 7), minlength=8)

    stated = [float(1 - retention) / 7] * 7 + [float(retention)]
    assert_fits(seen(WordShares), stated)
    assert not fits(seen(WrongCoin), stated)


# ---------------------------------------------------------------------- one column


def transitions(before: Codes, after: Codes, size: int) -> list[int]:
    pairs = before.astype(np.int64) * size + after
    return [int(count) for count in np.bincount(pairs, minlength=size * size)]


def stated(before: Codes, how: Replacement) -> list[float]:
    """The chance of each (before, after), given how often each code is there."""
    parts = how.parts or (1,) * how.size
    there = np.bincount(before, minlength=how.size) / len(before)
    rest = (1 - float(how.retention)) * np.array(parts) / sum(parts)
    joint = there[:, None] * (float(how.retention) * np.eye(how.size) + rest)
    return [float(chance) for chance in joint.ravel()]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32, np.int64, np.uint32])
@pytest.mark.parametrize("parts", [None, (1, 5, 0, 2, 2)])
def test_a_column_moves_as_stated_and_a_retention_off_by_two_per_cent_is_seen(
    dtype: Any, parts: tuple[int, ...] | None
) -> None:
    how, codes = Replacement(5, 0.3, parts), column(5, dtype, rows=5 * ROWS)
    after = perturb(codes, how, stream())
    assert after.dtype == codes.dtype
    seen = transitions(codes, after, 5)
    assert_fits(seen, stated(codes, how))
    for wrong in (0.306, 0.294):
        assert not fits(seen, stated(codes, Replacement(5, wrong, parts)))


@pytest.mark.parametrize("size", [2, 10, 100, 1000])
@pytest.mark.parametrize("retention", [0.0, 0.05, 0.5, 0.999])
def test_domains_of_all_sizes(size: int, retention: float) -> None:
    how = Replacement(size, retention)
    codes = np.full(ROWS, size // 2, dtype=np.int16)
    law = stated(codes, how)[size * (size // 2) :][:size]
    assert_fits(np.bincount(perturb(codes, how, stream()), minlength=size), law)


@pytest.mark.parametrize("size", [10**9, 2**40, 2**62])
def test_domains_too_large_for_narrow_words(size: int) -> None:
    assert not cheapest_shares(size, Fraction(1, 4)).is_narrow
    after = perturb(np.full(ROWS, size - 1), Replacement(size, 0.25), stream())
    kept = after == size - 1
    assert_fits([kept.sum(), (~kept).sum()], [0.25, 0.75])
    assert_fits(np.bincount(after[~kept] // (size // 8), minlength=8), [1 / 8] * 8)


@pytest.mark.parametrize("scale", [1, 10**6])
def test_parts_by_table_and_by_search_are_the_same_law(scale: int) -> None:
    parts = tuple(scale * part for part in (3, 0, 4, 1, 1, 6))
    assert (sum(parts) <= room.TABLE) == (scale == 1)
    after = perturb(column(6, np.uint8), Replacement(6, 0, parts), stream())
    assert_fits(np.bincount(after, minlength=6), np.array(parts) / sum(parts))
    assert 1 not in after


def test_a_retention_of_one_keeps_and_the_argument_is_never_changed() -> None:
    codes = column(9)
    before = codes.copy()
    codes.flags.writeable = False
    for parts in (None, tuple(range(1, 10))):
        assert (perturb(codes, Replacement(9, 1, parts), stream()) == before).all()
        assert (perturb(codes, Replacement(9, 0.2, parts), stream()) != before).any()
    for after in (swap(codes, 1, stream()), resample(codes, 1, stream())):
        assert (after == before).all() and after is not codes
    assert (codes == before).all()


@pytest.mark.parametrize("rows", [0, 1, room.PIECE - 1, room.PIECE, 2 * room.PIECE + 1])
def test_the_same_stream_gives_the_same_result_whatever_the_layout(rows: int) -> None:
    codes = column(11, rows=rows)
    spread = np.zeros((rows, 3), dtype=codes.dtype)
    spread[:, 1] = codes
    for parts in (None, (1,) * 11):
        how = Replacement(11, 0.4, parts)
        after = perturb(codes, how, stream())
        assert len(after) == rows
        assert (perturb(spread[:, 1], how, stream()) == after).all()
        assert rows < 9 or (perturb(codes, how, stream("other")) != after).any()
    assert (resample(codes, 0.4, stream()) == resample(spread[:, 1], 0.4, stream())).all()
    assert (swap(codes, 0.4, stream()) == swap(spread[:, 1], 0.4, stream())).all()


def test_neighbouring_rows_are_independent() -> None:
    codes = np.zeros(ROWS, dtype=np.uint8)
    after = perturb(codes, Replacement(4, 0.25), stream())
    one = np.array([0.4375, 0.1875, 0.1875, 0.1875])
    assert_fits(transitions(after[::2], after[1::2], 4), np.outer(one, one).ravel())


def test_coins() -> None:
    heads = int(coins(ROWS, 0.3, stream()).sum())
    assert_fits([heads, ROWS - heads], [0.3, 0.7])
    assert not fits([heads, ROWS - heads], [0.306, 0.694])
    assert coins(9, 1, stream()).all() and not coins(9, 0, stream()).any()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: Replacement(0, 0.5), "at least one value, not 0"),
        (lambda: Replacement(3, 1.5), "not 1.5"),
        (lambda: Replacement(3, float("nan")), "not nan"),
        (lambda: Replacement(3, -0.1), "not -0.1"),
        (lambda: Replacement(3, 0.5, (1, 2)), "2 parts for a domain of 3"),
        (lambda: Replacement(2, 0.5, (0, 0)), "not to 0"),
        (lambda: Replacement(2, 0.5, (-1, 2)), "not negative"),
        (lambda: perturb(column(9, np.uint8), Replacement(257, 0.5), stream()), "257 .* uint8"),
        (lambda: coins(3, 2, stream()), "not 2"),
        (lambda: perturb_rows([column(3)], [3, 3], 0.5, stream()), "longer"),
    ],
)
def test_what_is_refused(wrong: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        wrong()


# ---------------------------------------------------------------------- whole rows


def test_rows_are_kept_whole_or_replaced_whole() -> None:
    sizes = [2, 3, 4]
    before = [np.full(ROWS, size - 1, dtype=np.int16) for size in sizes]
    after = perturb_rows(before, sizes, 0.3, stream())
    assert [column.dtype for column in after] == [np.int16] * 3
    seen = np.bincount(np.ravel_multi_index(after, sizes), minlength=24)
    joint = np.full(24, 0.7 / 24)
    joint[23] += 0.3
    assert_fits(seen, joint)
    alone = [np.full(size, 0.7 / size) + 0.3 * (np.arange(size) == size - 1) for size in sizes]
    assert not fits(seen, np.einsum("i,j,k", *alone).ravel())
    assert perturb_rows([], [], 0.3, stream()) == []


# ---------------------------------------------------------------------- the column's own values


def test_resampling_draws_any_row_of_the_column() -> None:
    """Of five rows with five values: each is kept with chance p + (1 − p)/5."""
    rows = np.arange(5, dtype=np.int16)
    source = stream()
    after = np.array([resample(rows, 0.4, source) for _ in range(20_000)])
    seen = transitions(np.tile(rows, 20_000), after.ravel(), 5)
    law = (0.4 * np.eye(5) + 0.12).ravel() / 5
    assert_fits(seen, law)
    assert len({tuple(sorted(row)) for row in after.tolist()}) > 1, "repetitions happen"


def test_resampling_a_long_column_follows_its_own_distribution() -> None:
    codes = np.minimum(column(10), 6).astype(np.uint8)
    after = resample(codes, 0.3, stream())
    own = tuple(np.bincount(codes).tolist())
    assert_fits(transitions(codes, after, 7), stated(codes, Replacement(7, 0.3, own)))


def test_swapping_keeps_every_count() -> None:
    codes = column(1000, np.int16)
    after = swap(codes, 0.3, stream())
    assert (np.bincount(after, minlength=1000) == np.bincount(codes, minlength=1000)).all()
    stay = float((after == codes).mean())
    assert_fits([stay * ROWS, (1 - stay) * ROWS], [0.3 + 0.0007, 0.6993])


def test_swapping_permutes_uniformly_those_that_move() -> None:
    """Four rows by enumeration: who moves, and then each order with the same chance."""
    retention, rows = Fraction(3, 10), np.arange(4, dtype=np.uint8)
    law: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for kept in product((True, False), repeat=4):
        movers = [row for row in range(4) if not kept[row]]
        chance = retention ** sum(kept) * (1 - retention) ** len(movers)
        for order in permutations(movers):
            result = list(range(4))
            for row, value in zip(movers, order, strict=True):
                result[row] = value
            law[tuple(result)] += chance / factorial(len(movers))
    assert sum(law.values()) == 1
    source = stream()
    seen = Counter(tuple(swap(rows, 0.3, source).tolist()) for _ in range(20_000))
    assert_fits([seen[cell] for cell in law], [float(chance) for chance in law.values()])


def test_every_place_of_the_shuffle_has_the_same_number_of_words() -> None:
    """A step with `left` values: words on both sides of every boundary, and those passed over."""
    for left in (2, 3, 7, 1000, 2**31 + 11):
        passed = 2**32 % left
        for place in {0, 1, left // 2, left - 1}:
            # The words w with w·left in [place·2³² + passed, (place + 1)·2³²) give this place.
            first = -(-(place * 2**32 + passed) // left)
            end = -(-((place + 1) * 2**32) // left)
            assert end - first == 2**32 // left
            if left <= 1000:
                assert placed(left, first) == placed(left, end - 1) == place
                assert first == 0 or placed(left, first - 1) in (None, place - 1)
                assert end == 2**32 or placed(left, end) in (None, place + 1)


def placed(left: int, word: int) -> int | None:
    """Which value the word moves to the last place; None where the word is passed over."""
    values = np.arange(left)
    after = shuffle(values, left, np.array([word], dtype=np.uint32))
    return int(values[-1]) if after == left - 1 else None
