"""Where Numba cannot be imported, NumPy tosses the same coins and decodes the same tuples."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable
from fractions import Fraction
from types import FunctionType
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.paths import ROOT
from voile.arrays import Words
from voile.compiled import Kernel, NumbaMissingError, compiled
from voile.errors import VoileError
from voile.noise import Gaps, Key
from voile.noise.kernels import (
    WORD_DIGITS,
    keep_or_divide,
    keep_or_divide_in_numpy,
    keep_or_multiply,
    keep_or_multiply_in_numpy,
    read_digit,
    read_digit_in_numpy,
    walk,
    walk_in_numpy,
)
from voile.noise.replacement import Replacement, WordShares, cheapest_shares, perturb
from voile.schema import TupleIndex
from voile.schema.index import (
    FEW,
    LONG,
    AttributeGroup,
    look_up,
    look_up_in_numpy,
    take_digit,
    take_digit_in_numpy,
)

SEEDS = st.integers(0, 2**32 - 1)
TYPES: list[Any] = [np.int8, np.int16, np.int32, np.int64]


def words_below(rng: np.random.Generator, bits: int, shape: tuple[int, ...]) -> Words:
    """Numbers of up to so many bits, small ones and the largest among them."""
    numbers = rng.integers(0, 2**64, shape, dtype=np.uint64)
    numbers >>= (64 - rng.integers(0, bits + 1, shape)).clip(max=63).astype(np.uint64)
    numbers &= np.uint64(2**bits - 1)
    numbers[rng.random(shape) < 0.1] = 2**bits - 1
    return numbers


# ---------------------------------------------------------------------- kernel by kernel


@given(seed=SEEDS, digits=st.integers(0, WORD_DIGITS), draws=st.integers(0, 40))
def test_digits_are_the_same(seed: int, digits: int, draws: int) -> None:
    rng = np.random.default_rng(seed)
    coins = words_below(rng, 64, (digits, draws))
    thresholds = words_below(rng, 64, (digits,))
    expected, found = np.zeros(draws, np.uint64), np.zeros(draws, np.uint64)
    for digit in range(digits):
        read_digit(coins[digit], thresholds[digit], digit, expected)
        read_digit_in_numpy(coins[digit], thresholds[digit], digit, found)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("words", [1, 2, 3, 4])
def test_walks_are_the_same(words: int, step: int) -> None:
    rng, seen = np.random.default_rng([words, step]), set[str]()
    for _ in range(400):
        bits = rng.integers(1, WORD_DIGITS, words - 1, endpoint=True).tolist()
        seen |= both_walk(rng, bits, step)
    ends = {"ends at once", "ends later", "leaves at once", "leaves later"}
    assert seen == {"no row", "one row", "many rows", "goes on"} | ends


def both_walk(rng: np.random.Generator, bits: list[int], step: int) -> set[str]:
    """Walk some batches both ways, at most up to the end; says what it was like."""
    widths, last = np.array([WORD_DIGITS, *bits]), 2 ** int(rng.integers(0, 62, endpoint=True))
    start = [int(rng.integers(0, last)), *(int(words_below(rng, b, (1,))[0]) for b in bits)]
    if bits and rng.random() < 0.3:
        start[-1] = 2 ** bits[-1]  # a step has left the last word full
    at, seen = np.array(start, dtype=np.uint64), set[str]()
    for _ in range(4):
        draws, first_bits = int(rng.choice([0, 1, 2, 9, 60])), int(rng.integers(0, 64))
        gaps = np.stack([words_below(rng, b, (draws,)) for b in (first_bits, *bits)])
        beyond = (rng.random(draws) < rng.choice([0, 0.05])).astype(np.uint64)
        again, at_again = gaps.copy(), at.copy()
        count, more = walk(gaps, beyond, widths, at, last, step)
        assert walk_in_numpy(again, beyond, widths, at_again, last, step) == (count, more)
        assert again[:, :count].tolist() == gaps[:, :count].tolist()
        assert at_again.tolist() == at.tolist()
        seen.add("no row" if not draws else "one row" if draws == 1 else "many rows")
        if not more:
            how = "leaves" if beyond[count] else "ends"
            return seen | {f"{how} later" if count else f"{how} at once"}
        seen.add("goes on")
    return seen


def test_a_walk_that_goes_far_beyond_the_end_has_not_come_back() -> None:
    gaps = np.full((1, 9), 2**62, np.uint64)
    at, nothing = np.zeros(1, np.uint64), np.zeros(9, np.uint64)
    assert walk_in_numpy(gaps, nothing, np.array([WORD_DIGITS]), at, 2**62, 0) == (0, False)
    assert at.tolist() == [2**62]
    at[0] = 5
    found = walk_in_numpy(gaps[:, :0], nothing[:0], np.array([WORD_DIGITS]), at, 2**62, 1)
    assert (found, at.tolist()) == ((0, True), [5])


@given(
    seed=SEEDS,
    count=st.integers(0, 200),
    kind=st.sampled_from(TYPES),
    size=st.integers(1, 127),
    retention=st.fractions(0, 1).filter(lambda chance: chance < 1),
    narrow=st.booleans(),
)
def test_codes_are_kept_and_replaced_alike(
    seed: int, count: int, kind: Any, size: int, retention: Fraction, narrow: bool
) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, size, count).astype(kind)
    numbers = WordShares(size, retention, 31 if narrow else 64).numbers()
    words = words_below(rng, 64, (count,))
    expected, found = np.empty_like(codes), np.empty_like(codes)
    if narrow:
        halves = (words >> np.uint64(32)).astype(np.uint32)
        undecided = keep_or_multiply(halves, numbers, codes, expected)
        assert keep_or_multiply_in_numpy(halves, numbers, codes, found) == undecided
    else:
        undecided = keep_or_divide(words, numbers, codes, expected)
        assert keep_or_divide_in_numpy(words, numbers, codes, found) == undecided
    assert found.tolist() == expected.tolist()


@given(
    seed=SEEDS,
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    rows=st.integers(0, 50),
    repeated=st.sampled_from([1, 2 * LONG]),
    ordered=st.booleans(),
)
def test_tuples_are_decoded_alike(
    seed: int, sizes: list[int], rows: int, repeated: int, ordered: bool
) -> None:
    rng = np.random.default_rng(seed)
    numbers = np.repeat(words_below(rng, int(rng.integers(4, 63)), (rows,)), repeated)
    rows *= repeated
    if ordered:
        numbers.sort()
    rest, again = numbers.copy(), numbers.copy()
    group = AttributeGroup(tuple(sizes))
    size = np.uint64(group.size)
    expected, found = np.empty((2, len(sizes), rows), group.tables.dtype)
    if len(sizes) == 1:
        take_digit(rest, size, expected[0])
        take_digit_in_numpy(again, size, found[0])
    else:
        look_up(rest, size, group.tables, expected)
        look_up_in_numpy(again, size, group.tables, found)
    assert found.tolist() == expected.tolist()
    assert again.tolist() == rest.tolist()


# ---------------------------------------------------------------------- whole functions


def digest(arrays: Iterable[npt.NDArray[Any]]) -> str:
    """Of what arrays hold, and of their types."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).data)
    return found.hexdigest()


def results() -> dict[str, str]:
    """What the callers of the kernels give, each case by its name."""
    key, rng = Key.from_seed(7), np.random.default_rng(7)
    found = dict[str, str]()
    for chance, bits, last in (
        (0.3, [], 100_000),
        (1e-3, [], 2**24),
        (Fraction(1, 10**6), [20], 2**16),
        (1e-18, [33, 31], 40),
        (1e-40, [40, 20, 10], 2**62),
        (0.0, [], 10),
    ):
        for form in ("set", "multiset"):
            gaps = Gaps(chance, cast(Any, form), bits)
            batches = gaps.walk(key.stream(f"walk {form} {float(chance)}"), 3, last)
            found[f"walk {chance} {form}"] = digest(word for words in batches for word in words)
    for size, kind in ((2, np.int8), (100, np.int16), (2**28 + 1, np.int32), (2**40, np.int64)):
        codes = rng.integers(0, size, 70_000).astype(cast(Any, kind))
        assert cheapest_shares(size, Fraction(1, 3)).is_narrow == (size < 2**28)
        how = Replacement(size, Fraction(1, 3))
        found[f"perturb {size}"] = digest([perturb(codes, how, key.stream(f"perturb {size}"))])
    parts = Replacement(4, 0.5, (1, 2, 0, 2**40))
    codes = rng.integers(0, 4, 70_000).astype(np.int8)
    found["perturb parts"] = digest([perturb(codes, parts, key.stream("parts"))])
    for sizes in ((3, 5, 7), (2**20,), (2, 2**40, 3), (2**40, 2**30, 7, 9, 300)):
        index = TupleIndex(sizes)
        for rows in (0, 1, FEW, FEW + 1):
            keys = index.encode([rng.integers(0, size, rows) for size in sizes])
            found[f"decode {sizes} {rows}"] = digest(index.decode(keys))
    return found


def test_whole_functions_give_the_same_without_numba() -> None:
    code = (
        "import json, sys; sys.modules['numba'] = None;"
        "from tests.noise.test_without_numba import results; print(json.dumps(results()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, text=True
    )
    assert json.loads(done.stdout) == results()


# ---------------------------------------------------------------------- kernels


def double(value: int) -> int:
    return 2 * value


def test_a_kernel_needs_numba_or_a_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(
        ImportError, match=r"test_without_numba\.double needs the package numba"
    ) as no:
        compiled(double)(1)
    assert isinstance(no.value, VoileError)
    assert isinstance(no.value, NumbaMissingError)

    def tripled(value: int) -> int:
        return 3 * value

    kernel = compiled(instead=tripled)(double)
    assert kernel(1) == 3
    assert (cast(Kernel, kernel).py_func, kernel.__name__) == (double, "double")


def test_a_stand_in_is_not_called_where_numba_is() -> None:
    def tripled(value: int) -> int:
        return 3 * value

    assert Kernel(cast(FunctionType, double), tripled)(1) == 2
