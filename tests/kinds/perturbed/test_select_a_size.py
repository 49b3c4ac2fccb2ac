"""Select-a-size: sampler, transitions and amplification beside all outcomes enumerated."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import chain, combinations
from math import comb, inf, isclose, log
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.support.sampling import assert_fits, fits
from voile.errors import TableError, UsageError, VoileError
from voile.kinds.perturbed.select_a_size import SelectASize
from voile.noise import Key, Stream, select_a_size
from voile.noise.kernels import below, perturb_baskets
from voile.noise.replacement import Replacement, perturb
from voile.noise.select_a_size import BasketSampler, digits
from voile.reconstruct import Axis, expected
from voile.reconstruct.baskets import level_transition, support_weights, transition

Basket = frozenset[int]
Bits = npt.NDArray[np.uint8]

ITEMS = 5
SELECT = tuple(
    tuple(Fraction(row[j], sum(row)) for j in range(len(row)))
    for row in ([1], [1, 3], [1, 2, 2], [2, 1, 1, 5], [1, 1, 0, 2, 3], [1, 1, 1, 1, 1, 4])
)
INSERT = Fraction(1, 7)
PLAIN = SelectASize(ITEMS, SELECT, INSERT)


def stream(purpose: str = "x") -> Stream:
    return Key.from_seed(11).stream(purpose)


def subsets(items: Basket) -> list[Basket]:
    ways = chain.from_iterable(combinations(sorted(items), n) for n in range(len(items) + 1))
    return [frozenset(way) for way in ways]


def law(basket: Basket, how: SelectASize = PLAIN) -> dict[Basket, Fraction]:
    """The chance of everything that may be seen, one outcome at a time."""
    others = frozenset(range(how.items)) - basket
    seen: defaultdict[Basket, Fraction] = defaultdict(Fraction)
    rho = Fraction(how.insert)
    for kept in subsets(basket):
        for inserted in subsets(others):
            size, number, more = len(basket), len(kept), len(inserted)
            chance = Fraction(how.select[size][number]) / comb(size, number)
            seen[kept | inserted] += chance * rho**more * (1 - rho) ** (len(others) - more)
    assert sum(seen.values()) == 1
    return dict(seen)


def as_bits(baskets: list[Basket], items: int = ITEMS) -> Bits:
    return np.array([[i in basket for i in range(items)] for basket in baskets], dtype=np.uint8)


def number(basket: Basket, items: int) -> int:
    """Of a set in `transition`: its first item is the highest bit."""
    return sum(1 << (items - 1 - item) for item in basket)


ALL = subsets(frozenset(range(ITEMS)))

# ---------------------------------------------------------------------- sampling


@pytest.mark.parametrize("size", range(ITEMS + 1))
def test_what_is_seen_of_a_basket_follows_the_enumerated_law(size: int) -> None:
    basket = frozenset((0, 2, 4, 1, 3)[:size])
    shown = PLAIN.perturb(np.repeat(as_bits([basket]), 100_000, axis=0), stream())
    numbers = np.bincount(shown @ 2 ** np.arange(ITEMS)[::-1], minlength=2**ITEMS)
    seen = [numbers[number(y, ITEMS)] for y in ALL]
    chances = law(basket)
    assert_fits(seen, [float(chances.get(y, 0)) for y in ALL])
    if 0 < size < ITEMS:
        wrong = law(basket, SelectASize(ITEMS, SELECT, INSERT * Fraction(11, 10)))
        assert not fits(seen, [float(wrong[y]) for y in ALL])


def test_coins_do_not_depend_on_how_words_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    baskets = as_bits(ALL * 20)
    at_once = PLAIN.perturb(baskets, stream())
    monkeypatch.setattr(select_a_size, "BATCH_WORDS", 2)
    assert (PLAIN.perturb(baskets, stream()) == at_once).all()
    assert (PLAIN.perturb(baskets, stream("other")) != at_once).any()
    assert (PLAIN.perturb(np.asfortranarray(baskets), stream()) == at_once).all()


def test_numbers_are_compared_digit_by_digit() -> None:
    bound = np.array(digits(Fraction(1, 3)), dtype=np.uint32)
    assert [int(digit) for digit in bound] == [0x55555555] * 4
    for place in range(4):
        for step, is_below in ((-1, True), (1, False)):
            word = bound.copy()
            word[place] = int(word[place]) + step
            assert below(word, 0, bound) == (is_below, place + 1)
    assert below(bound, 0, bound) == (False, 4)


def test_a_word_that_would_favour_an_item_is_passed_over() -> None:
    """2³² mod 3 = 1, so that of three items the word 0 decides nothing and the next one does."""
    keep_one = [[Fraction(j == min(s, 1)) for j in range(s + 1)] for s in range(4)]
    sampler = BasketSampler(keep_one, Fraction(0))
    basket, out = np.ones((1, 3), dtype=np.uint8), np.zeros((1, 3), dtype=np.uint8)

    def run(*words: int) -> tuple[list[int], tuple[int, int]]:
        given = np.array([0, 0, 0, 0, *words], dtype=np.uint32)
        done = perturb_baskets(
            basket, out, 0, sampler._bounds, sampler._last, sampler._insert, given
        )
        return out[0].tolist(), done

    high, spare = 2**32 - 1, (9, 9, 9, 9)
    assert run(1, high, high, *spare) == ([1, 0, 0], (1, 7))
    assert run(0, 1, high, high, *spare) == ([1, 0, 0], (1, 8))
    assert run(0, 0, high, 1, high, *spare) == ([0, 1, 0], (1, 9))
    assert run(0, 0, 0, 0)[1] == (0, 0), "words ended: the basket is to be done again"


def test_nothing_is_perturbed_where_all_is_kept_and_nothing_inserted() -> None:
    whole = SelectASize(ITEMS, tuple((0,) * s + (1,) for s in range(ITEMS + 1)), 0)
    baskets = as_bits(ALL)
    shown = whole.perturb(baskets, stream())
    assert (shown == baskets).all()
    for itemset in ALL:
        truth = sum(itemset <= basket for basket in ALL)
        found = whole.support(shown, baskets.sum(axis=1), sorted(itemset))
        assert found == pytest.approx((truth, 0), abs=1e-9)
    assert whole.epsilon() == inf


# ---------------------------------------------------------------------- transitions


@pytest.mark.parametrize("items", [0, 1, 2, 3])
@pytest.mark.parametrize("size", range(ITEMS + 1))
def test_transitions_are_the_enumerated_ones(items: int, size: int) -> None:
    """From every basket of every size to what is seen of the first k items."""
    select = [float(chance) for chance in SELECT[size]]
    matrix = transition(select, float(INSERT), size, items).matrix()
    levels = level_transition(select, float(INSERT), size, items)
    read = frozenset(range(items))
    for basket in (basket for basket in ALL if len(basket) == size):
        sets, numbers = np.zeros(2**items), np.zeros(items + 1)
        for seen, chance in law(basket).items():
            sets[number(seen & read, items)] += chance
            numbers[len(seen & read)] += chance
        assert np.allclose(matrix[number(basket & read, items)], sets, rtol=0, atol=1e-14)
        assert np.allclose(levels[len(basket & read)], numbers, rtol=0, atol=1e-14)


def test_the_law_of_another_size_is_another() -> None:
    one, other = ([float(c) for c in SELECT[size]] for size in (3, 4))
    assert not np.allclose(
        transition(one, float(INSERT), 3, 2).matrix(),
        transition(other, float(INSERT), 4, 2).matrix(),
        atol=0.01,
    )


def test_sets_that_no_basket_can_hold_stay_what_they_are() -> None:
    matrix = transition([0.2, 0.8], 0.1, 1, 2).matrix()
    assert matrix[3].tolist() == [0, 0, 0, 1]
    assert np.linalg.det(matrix) != 0


# ---------------------------------------------------------------------- supports


@pytest.mark.parametrize("itemset", [(), (2,), (0, 3), (1, 2, 4)])
def test_supports_and_their_variances_are_unbiased(itemset: tuple[int, ...]) -> None:
    """E[g] and E[g²] over all outcomes, for each of the 2⁵ baskets there are."""
    wanted = frozenset(itemset)
    for basket in ALL:
        size = len(basket)
        select = [float(chance) for chance in SELECT[size]]
        weights = support_weights(select, float(INSERT), size, len(wanted), ITEMS)
        outcomes = [(weights[len(y & wanted)], float(p)) for y, p in law(basket).items()]
        mean = sum(g * p for g, p in outcomes)
        assert isclose(mean, wanted <= basket, abs_tol=1e-10)
        variance = sum(g * g * p for g, p in outcomes) - mean**2
        stated = sum((g * g - g) * p for g, p in outcomes)
        assert isclose(variance, stated, abs_tol=1e-10)
        if size < len(wanted) or size == ITEMS or not wanted:
            assert isclose(variance, 0, abs_tol=1e-10), "sizes alone tell it"


def test_supports_of_many_baskets_with_their_errors() -> None:
    """(estimate − truth)/error is standard normal; a wrong ρ is off by many errors."""
    generator = np.random.default_rng(5)
    baskets = (generator.random((60_000, ITEMS)) < 0.45).astype(np.uint8)
    baskets[:, 1] |= baskets[:, 0]
    sizes = baskets.sum(axis=1)
    errors: list[float] = []
    wrong: list[float] = []
    off = SelectASize(ITEMS, SELECT, INSERT * Fraction(12, 10))
    for round_ in range(12):
        shown = PLAIN.perturb(baskets, Key.from_seed(round_).stream("x"))
        for itemset in ((0,), (0, 1), (1, 3, 4)):
            truth = baskets[:, itemset].all(axis=1).sum()
            for how, kept in ((PLAIN, errors), (off, wrong)):
                estimate, variance = how.support(shown, sizes, itemset)
                kept.append((estimate - truth) / variance**0.5)
    # 36 numbers, each beyond 5.5 with chance 4·10⁻⁸: a false alarm in 10⁶.
    assert max(map(abs, errors)) < 5.5 < max(map(abs, wrong))
    # Their mean square is χ²/36, in this range with chance 1 − 10⁻⁶ were they independent.
    assert 0.2 < np.mean(np.square(errors)) < 2.6


@pytest.mark.parametrize(
    ("select", "insert"),
    [
        (((1,), (0.5, 0.5), (0.25, 0.5, 0.25)), 0.5),  # own items as often as others
        (((1,), (0.5, 0.5), (0.25, 0.5, 0.25)), 0.5 - 1e-9),  # hardly more often
    ],
)
def test_what_cannot_be_undone_is_refused_with_what_to_change(select: Any, insert: float) -> None:
    blind = SelectASize(4, select, insert)
    baskets = np.array([[1, 1, 0, 0]], dtype=np.uint8)
    with pytest.raises(UsageError, match="hardly depends") as refused:
        blind.support(baskets, np.array([2]), [0, 1])
    assert "keep more" in refused.value.hint
    assert blind.epsilon() < 1e-7


# ---------------------------------------------------------------------- what is promised


@pytest.mark.parametrize(
    "how",
    [
        PLAIN,
        SelectASize(4, SELECT[:4], Fraction(1, 3)),
        SelectASize(4, ((1,), (Fraction(1, 2),) * 2), Fraction(1, 3)),
        SelectASize.cut_and_paste(5, 4, 2, Fraction(1, 4)),
    ],
)
def test_epsilon_is_the_largest_ratio_of_all_pairs_of_baskets(how: SelectASize) -> None:
    worst = Fraction(1)
    baskets = [b for b in subsets(frozenset(range(how.items))) if len(b) < len(how.select)]
    for one in baskets:
        for other in (other for other in baskets if len(other) == len(one)):
            theirs = law(other, how)
            for seen, chance in law(one, how).items():
                if chance and not theirs[seen]:
                    assert how.epsilon() == inf
                    return
                worst = max(worst, chance / theirs[seen] if chance else Fraction(0))
    assert isclose(how.epsilon(), log(worst), rel_tol=1e-12)
    assert worst > 1


def drawn(how: SelectASize, size: int) -> list[Fraction]:
    """The chances to keep 0, …, s items, read off the bounds that the compiled loop compares."""
    sampler = how._sampler
    words = sampler._bounds[size, : size + 1].astype(object)
    many = words.shape[1]
    limit = 2 ** (32 * many)
    ends = [sum(int(w) << 32 * (many - 1 - i) for i, w in enumerate(row)) for row in words]
    last = int(sampler._last[size])
    ends[last:] = [limit] * (size + 1 - last)
    starts = [0, *ends[:-1]]
    return [Fraction(end - start, limit) for start, end in zip(starts, ends, strict=True)]


def log_of(ratio: Fraction) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        return Decimal(ratio.numerator).ln() - Decimal(ratio.denominator).ln()


FINE = [
    (((1,), (1 - 1e-12 - 1e-15, 1e-15)), 1e-20),  # lacks 10⁻¹² of 1
    (((1,), (1e-15, 1 - 1e-12 - 1e-15)), 1e-20),
    (((1,), (1 - 1e-13, 1e-12)), 0.1),  # exceeds it
    (((1,), (0.5, 0.5)), 1e-38),  # ρ is rounded by much of itself
    (((1,), (0.5, 0.5)), 3e-39),
    (((1,), (1.0, 1e-60)), 0.1),  # below 2⁻¹²⁸
    (((1,), (1e-300, 1.0)), 0.3),
    (((1,), (0.9, 0.1), (0.2, 0.3, 0.5)), 0.3),
    (((1,), (0.7, 0.3)), 0.3),  # hardly any ε
]


@pytest.mark.parametrize(("select", "insert"), FINE)
def test_no_outcome_exceeds_the_stated_epsilon(select: Any, insert: float) -> None:
    """By the bits that are compared, outcome by outcome, with logarithms to 60 digits."""
    how = SelectASize(3, select, insert)
    coin = Fraction(int(Fraction(insert) * 2**128), 2**128)
    worst = Fraction(1)
    for size in range(len(select)):
        chances = drawn(how, size)
        others = how.items - size
        for shown in range(how.items + 1):
            alike = [
                chances[q]
                / comb(size, q)
                * coin ** (shown - q)
                * (1 - coin) ** (others - shown + q)
                for q in range(max(0, shown - others), min(size, shown) + 1)
            ]
            worst = max(worst, max(alike) / min(alike))
    assert log_of(worst) <= Decimal(how.epsilon())
    assert how.epsilon() == pytest.approx(float(log_of(worst)), rel=1e-12, abs=1e-15)


def test_small_chances_are_drawn_as_they_are() -> None:
    """Each is off by less than 2⁻⁶³ of itself, and none becomes 0."""
    how = SelectASize.cut_and_paste(80, 60, 5, 0.1)
    for wanted, found in zip(how.select[60], drawn(how, 60), strict=True):
        assert abs(found / Fraction(wanted) - 1) < Fraction(1, 2**63)
    assert min(how.select[60]) < Fraction(1, 2**128)
    # A basket's own items all kept against all inserted: (ρ⁻⁰ + … + ρ⁻⁵) of six times one.
    assert how.epsilon() == pytest.approx(log(111111), rel=1e-6)


def test_cut_and_paste_is_what_it_says() -> None:
    """Cut j of the items, then paste every other item, theirs too: all outcomes enumerated."""
    items, cutoff, rho = 4, 2, Fraction(1, 5)
    how = SelectASize.cut_and_paste(items, items, cutoff, rho)
    for basket in subsets(frozenset(range(items))):
        seen: defaultdict[Basket, Fraction] = defaultdict(Fraction)
        for drawn in range(cutoff + 1):
            j = min(drawn, len(basket))
            for cut in (c for c in subsets(basket) if len(c) == j):
                chance = Fraction(1, cutoff + 1) / comb(len(basket), j)
                rest = frozenset(range(items)) - cut
                for pasted in subsets(rest):
                    more, left = len(pasted), len(rest) - len(pasted)
                    seen[cut | pasted] += chance * rho**more * (1 - rho) ** left
        assert law(basket, how) == dict(seen)


# ---------------------------------------------------------------------- MASK


def test_mask_is_retention_replacement_of_bits() -> None:
    """A bit kept with chance f, else flipped, is kept with chance p = 2f − 1, else redrawn."""
    f = 0.8
    rows = 400_000
    bits = np.arange(rows, dtype=np.uint8) % 2
    after = perturb(bits, Replacement(2, 2 * f - 1), stream())
    same = int((after == bits).sum())
    assert_fits([same, rows - same], [f, 1 - f])
    assert not fits([same, rows - same], [f - 0.005, 1 - f + 0.005])
    masked = Axis(2 * f - 1, np.array([0.5, 0.5])).matrix()
    assert np.allclose(masked, [[f, 1 - f], [1 - f, f]])


def test_mask_is_select_a_size_with_independent_coins() -> None:
    """Keeping each item with chance f and inserting with 1 − f: the same joint transition."""
    f = Fraction(4, 5)
    select = tuple(
        tuple(comb(s, j) * f**j * (1 - f) ** (s - j) for j in range(s + 1)) for s in range(7)
    )
    axis = Axis(float(2 * f - 1), np.array([0.5, 0.5]))
    for size in (3, 4, 6):
        matrix = transition([float(c) for c in select[size]], float(1 - f), size, 3).matrix()
        for row in range(8):
            one = np.zeros(8)
            one[row] = 1
            assert np.allclose(matrix[row], expected(one, [axis] * 3).ravel())
    # Baskets of 3 out of 6 can differ in all six bits, each worth ln(f/(1−f)).
    assert isclose(SelectASize(6, select, 1 - f).epsilon(), 6 * log(f / (1 - f)))


# ---------------------------------------------------------------------- refusals

ROW = np.array([[1, 0, 1, 0, 0]], dtype=np.uint8)


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        (lambda: SelectASize(1, SELECT, 0.1), UsageError, "6 sizes for baskets of 1"),
        (lambda: SelectASize(3, ((1,), (1,)), 0.1), UsageError, r"select\[1\] has 1 chances"),
        (lambda: SelectASize(3, ((1,), (0.5, 0.4)), 0.1), UsageError, "sums to 0.9"),
        (lambda: SelectASize(3, ((1,), (1.5, -0.5)), 0.1), UsageError, "least chance is -0.5"),
        (lambda: SelectASize(3, ((1,), (float("nan"), 1)), 0.1), UsageError, "nan"),
        (lambda: SelectASize(3, ((1,),), 1), UsageError, "inserted with chance 1"),
        (lambda: SelectASize(3, ((1,),), 1e-39), UsageError, "which 128 bits round to 0"),
        (lambda: SelectASize.cut_and_paste(3, 2, 1, float("nan")), UsageError, "chance nan"),
        (lambda: SelectASize.cut_and_paste(3, 2, -1, 0.1), UsageError, "cutoff of -1"),
        (lambda: PLAIN.perturb(ROW[0], stream()), TableError, r"shape \(5,\)"),
        (lambda: PLAIN.perturb(ROW[:, :4], stream()), TableError, "there are 5 items"),
        (lambda: PLAIN.perturb(ROW * 2, stream()), TableError, "basket 0 holds an item 2 times"),
        (lambda: PLAIN.perturb(ROW * 0.5, stream()), TableError, "an item 0.5 times"),
        (
            lambda: SelectASize(5, SELECT[:2], 0.1).perturb(ROW, stream()),
            TableError,
            "basket 0 holds 2 items; chances are given up to 1",
        ),
        (lambda: PLAIN.support(ROW, np.array([9]), [0]), TableError, "holds 9 items"),
        (lambda: PLAIN.support(ROW, np.array([-1]), [0]), TableError, "holds -1 items"),
        (lambda: PLAIN.support(ROW, np.array([2, 2]), [0]), UsageError, "2 sizes for 1 baskets"),
        (lambda: PLAIN.support(ROW, np.array([2]), [5]), UsageError, r"\[5\] is not an itemset"),
        (lambda: PLAIN.support(ROW, np.array([2]), [1, 1]), UsageError, "is not an itemset"),
        (lambda: transition([1.0], 0.1, 0, 11), UsageError, "all sets of 11 items"),
    ],
)
def test_wrong_input_is_refused(wrong: Any, kind: type[VoileError], words: str) -> None:
    with pytest.raises(kind, match=words) as refused:
        wrong()
    assert refused.value.hint


def test_no_baskets_at_all() -> None:
    none = np.empty((0, ITEMS), dtype=np.uint8)
    assert PLAIN.perturb(none, stream()).shape == (0, ITEMS)
    assert PLAIN.support(none, np.empty(0, dtype=np.int64), [0]) == (0.0, 0.0)
