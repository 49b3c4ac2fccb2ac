"""k, ℓ, t and semantic privacy: their theorems on random tables in classes, by counting.

And every counterexample to what does not follow, built and measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest

from tests.support.tiny import Tiny, alphabeta, holds, no_s_breach, properties, retention, tables
from voile.privacy.guarantee import Guarantee
from voile.privacy.guarantees import (
    KINDS,
    Anonymity,
    Closeness,
    Diversity,
    Dp,
    SBreach,
    SemanticPrivacy,
)
from voile.privacy.guarantees.class_theorems import CLASS_THEOREMS
from voile.privacy.guarantees.conversions import REFUSALS, THEOREMS, Refusal, refusal
from voile.privacy.guarantees.theorems import Theorem

Grouped = list[list[int]]
"""Classes of records; for each, how many records have each sensitive value."""
Shares = list[Fraction]


def shares(counts: list[int]) -> Shares:
    return [Fraction(c, sum(counts)) for c in counts]


def whole(grouped: Grouped) -> Shares:
    return shares([sum(column) for column in zip(*grouped, strict=True)])


def variational(p: Shares, q: Shares) -> Fraction:
    return sum((abs(a - b) for a, b in zip(p, q, strict=True)), Fraction(0)) / 2


def emd(p: Shares, q: Shares) -> Fraction:
    """Earth mover's distance of ordered values, neighbours 1/(m−1) apart."""
    differences = [a - b for a, b in zip(p, q, strict=True)]
    heaps = [sum(differences[: i + 1], Fraction(0)) for i in range(len(p) - 1)]
    return sum((abs(h) for h in heaps), Fraction(0)) / (len(p) - 1)


def jensen_shannon(p: Shares, q: Shares) -> float:
    def to_middle(x: Shares) -> float:
        return sum(
            float(a) * math.log(2 * a / (a + b)) for a, b in zip(x, other(x), strict=True) if a
        )

    def other(x: Shares) -> Shares:
        return q if x is p else p

    return (to_middle(p) + to_middle(q)) / 2


def entropy(p: Shares) -> float:
    return -sum(float(a) * math.log(a) for a in p if a)


def measured(name: str, grouped: Grouped) -> float | None:
    """The strongest parameter that a table in classes has; None where it has none."""
    all_, each = whole(grouped), [shares(c) for c in grouped]
    quotients = [a / b for p in each for a, b in zip(p, all_, strict=True) if b]
    present = [r for r in quotients if r]
    delta = max(*present, 1 / min(present))
    strength: dict[str, Callable[[], float | None]] = {
        "k": lambda: min(sum(c) for c in grouped),
        "l[frequency]": lambda: float(min(1 / max(p) for p in each)),
        "l[distinct]": lambda: min(sum(1 for a in p if a) for p in each),
        "l[entropy]": lambda: math.exp(min(entropy(p) for p in each)),
        "t[variational]": lambda: float(max(variational(p, all_) for p in each)),
        # With all values equally far apart it is the variational distance.
        "t[emd]": lambda: float(max(max(emd(p, all_), variational(p, all_)) for p in each)),
        "t[jensen-shannon]": lambda: max(jensen_shannon(p, all_) for p in each),
        "semantic[ignored]": lambda: math.log(delta),
        "semantic[forbidden]": lambda: math.log(delta) if len(present) == len(quotients) else None,
    }
    return strength[name]()


def made(name: str, value: float) -> Guarantee:
    kind, _, word = name.rstrip("]").partition("[")
    made: dict[str, Callable[[], Guarantee]] = {
        "k": lambda: Anonymity(int(value)),
        "l": lambda: Diversity(max(1.0, value), word),  # type: ignore[arg-type]
        "t": lambda: Closeness(min(1.0, value), word),  # type: ignore[arg-type]
        "semantic": lambda: SemanticPrivacy(value, word),  # type: ignore[arg-type]
    }
    return made[kind]()


def examples() -> Iterator[Grouped]:
    rng = np.random.default_rng(2009)
    for _ in range(60):
        yield [[int(x) + (i == 0) for i, x in enumerate(rng.integers(0, 6, 4))] for _ in range(3)]
    for _ in range(20):
        yield [[int(x) for x in rng.integers(1, 9, 3)] for _ in range(2)]
    yield [[1, 1, 1], [1, 1, 1]]
    yield [[3, 1], [7, 29]]  # quotients 3 and 1/3
    yield [[4, 0], [6, 10]]  # all of one half of the table
    yield [[1, 3, 1], [3 * 10**12, 10**12, 0]]
    yield [[3, 1, 0], [3 * 10**12, 0, 10**12]]  # a vanishing class: a quarter is elsewhere


ALL = [grouped for grouped in examples() if all(any(c) for c in zip(*grouped, strict=True))]


def named(theorem: Theorem) -> str:
    return f"{theorem.source}->{theorem.target}"


def cases(theorem: Theorem) -> Iterator[tuple[float, float]]:
    """What a theorem claims and what is so, for every table that meets its premise."""
    for grouped in ALL:
        has = measured(theorem.source, grouped)
        found = measured(theorem.target, grouped)
        if has is None:
            continue
        kind = KINDS[theorem.target.partition("[")[0]]
        margin = -1e-12 if theorem.source.startswith("l") else 1e-12  # for rounding
        premise = made(theorem.source, has + margin)
        claimed = theorem.derive(premise, {}).to_dict()[kind.claims[0]]
        assert found is not None
        yield claimed, found


@pytest.mark.parametrize("theorem", CLASS_THEOREMS, ids=named)
def test_a_theorem_about_classes_holds_and_is_tight(theorem: Theorem) -> None:
    larger = KINDS[theorem.target.partition("[")[0]].larger_is_stronger
    pairs = list(cases(theorem))
    assert len(pairs) > 10
    for claimed, found in pairs:
        assert found >= claimed - 1e-9 if larger else found <= claimed + 1e-9
    # A conclusion that is a thousandth stronger is wrong for some table.
    margin = 1.001 if larger else 0.999
    assert theorem.tight
    assert any(
        found < claimed * margin if larger else found > claimed * margin
        for claimed, found in pairs
        if claimed
    )


def test_closeness_in_numbers() -> None:
    """tanh(δ/2) at δ = ln 3, and 1 − e^−δ at δ = ln 2, met with equality."""
    assert variational(shares([3, 1]), whole([[3, 1], [7, 29]])) == Fraction(1, 2)
    assert math.tanh(math.log(3) / 2) == pytest.approx(0.5)
    assert variational(shares([4, 0]), whole([[4, 0], [6, 10]])) == Fraction(1, 2)


# ---------------------------------------------------------------------- what does not follow


def constant(size: int, law: Callable[[int], list[Fraction]]) -> Tiny:
    """A mechanism that sees the number of rows only."""
    return Tiny(size, {table: law(len(table)) for table in tables(size)})


def number_of_rows() -> None:
    told = constant(2, lambda n: [Fraction(n == k) for k in range(3)])
    assert holds(Dp(0.0, "swap"), told)
    assert not holds(Dp(100.0), told)


def joes_score() -> None:
    """Table 1(b): the young have 99, 97 and 82; he surely scored below 95."""
    young = [99, 97, 82]
    prior = {score: Fraction(score < 95) for score in young}
    possible = [score for score in young if prior[score]]
    assert len(young) >= 3  # 3-anonymous
    assert max(young.count(s) for s in young) <= len(young) / 2  # 2-diverse by frequency
    assert possible == [82]
    # As a mechanism: the class is published as it is, so other tables give other releases.
    exact = Tiny(2, {t: [Fraction(t == s) for s in tables(2)] for t in tables(2)})
    assert not holds(Dp(100.0, "swap"), exact)
    assert not holds(Dp(100.0), exact)


def exact_shares() -> None:
    grouped = [[2, 1]]
    assert measured("t[variational]", grouped) == 0
    assert measured("semantic[forbidden]", grouped) == 0
    # The shares of three records, two of them known: the last one is what is left.
    told = {last: shares([1 + (last == 0), 1 + (last == 1)]) for last in (0, 1)}
    assert told[0] != told[1]


def no_classes() -> None:
    blind = constant(2, lambda _: [Fraction(1, 2), Fraction(1, 2)])
    assert holds(Dp(0.0), blind)
    assert holds(Dp(0.0, "swap"), blind)
    published = [[1, 0]]
    assert measured("k", published) == 1
    assert measured("l[distinct]", published) == 1
    assert measured("t[variational]", [[1, 0], [0, 1]]) == 0.5
    assert measured("semantic[forbidden]", [[1, 0], [0, 1]]) is None


def frequent_sets() -> None:
    p, n = Fraction(1, 5), 1000
    prior, share = Fraction(8, 100), Fraction(1, n)
    assert prior / share >= 68  # so that Definition 5 does not speak of it
    kept = p + (1 - p) * share
    posterior = prior * kept / (prior * kept + (1 - prior) * (1 - p) * share)
    assert float(posterior) == pytest.approx(0.956, abs=5e-4)
    # And on a domain that can be listed: rare sets are safe, a value that is seen is not.
    uniform = [Fraction(1, 20)] * 5 + [Fraction(3, 4)]
    assert no_s_breach(SBreach(1.0, 0.1, 0.35), p, uniform)
    family = retention(p, uniform).rows
    assert max(after for _, after in properties(family, Fraction(1, 10), singles=True)) > 0.35


def same_value() -> None:
    assert measured("k", [[5, 0], [1, 4]]) == 5
    assert measured("l[frequency]", [[5, 0], [1, 4]]) == 1
    assert measured("l[distinct]", [[5, 0], [1, 4]]) == 1
    assert measured("l[entropy]", [[5, 0], [1, 4]]) == 1


def nearly_all_the_same() -> None:
    grouped = [[99, 1]]
    assert measured("l[distinct]", grouped) == 2
    assert (measured("l[frequency]", grouped) or 9) < 1.02
    assert (measured("l[entropy]", grouped) or 9) < 1.06


def half_the_same() -> None:
    grouped = [[100] + [1] * 100]
    assert measured("l[entropy]", grouped) == pytest.approx(20)
    assert measured("l[frequency]", grouped) == 2


def far_from_the_table() -> None:
    grouped = [[1, 1, 0, 0], [0, 0, 1, 1]]
    assert measured("k", grouped) == 2
    assert measured("l[frequency]", grouped) == 2
    assert measured("l[entropy]", grouped) == pytest.approx(2)
    assert measured("t[variational]", grouped) == 0.5
    assert measured("semantic[forbidden]", grouped) is None
    # However large ℓ is, a small class of a table with many values is far from it.
    many = [[1, 1] + [0] * 98, [1, 1] + [100] * 98]
    assert measured("l[frequency]", many) == 2
    assert (measured("t[variational]", many) or 0) > 0.99
    assert (measured("t[jensen-shannon]", many) or 0) > 0.66
    assert (measured("t[emd]", many) or 0) > 0.4
    assert (measured("semantic[ignored]", many) or 0) > 7


def everyone_the_same() -> None:
    grouped = [[1], [1]]
    for name in ("t[variational]", "t[jensen-shannon]", "semantic[forbidden]"):
        assert measured(name, grouped) == 0
    assert measured("k", grouped) == measured("l[distinct]", grouped) == 1


def rare_value() -> None:
    grouped = [[999, 0], [9990 - 999, 10]]
    assert measured("t[variational]", grouped) == pytest.approx(0.001)
    assert measured("semantic[forbidden]", grouped) is None


def neighbouring_values() -> None:
    half = [0] * 50 + [1, 1] + [0] * 49
    one = [0] * 50 + [1, 0] + [0] * 49
    assert emd(shares(one), shares(half)) == Fraction(1, 200)
    assert variational(shares(one), shares(half)) == Fraction(1, 2)
    assert jensen_shannon(shares(one), shares(half)) > 0.2


def absent_value() -> None:
    grouped = [[1, 0], [0, 1]]
    assert measured("semantic[ignored]", grouped) == pytest.approx(math.log(2))
    assert measured("semantic[forbidden]", grouped) is None


def how_it_is_kept() -> None:
    """Two laws that look at no record keep ε = 0, and neither is a count with noise."""
    for heads in (Fraction(1, 2), Fraction(1, 3)):
        coin = Tiny(1, {t: [heads, 1 - heads] for t in tables(1)})
        assert holds(Dp(0.0, "swap"), coin)


COUNTEREXAMPLES: dict[str, Callable[[], None]] = {
    "number-of-rows": number_of_rows,
    "joes-score": joes_score,
    "exact-shares": exact_shares,
    "no-classes": no_classes,
    "frequent-sets": frequent_sets,
    "same-value": same_value,
    "nearly-all-the-same": nearly_all_the_same,
    "half-the-same": half_the_same,
    "far-from-the-table": far_from_the_table,
    "everyone-the-same": everyone_the_same,
    "rare-value": rare_value,
    "neighbouring-values": neighbouring_values,
    "absent-value": absent_value,
    "how-it-is-kept": how_it_is_kept,
}


@pytest.mark.parametrize("refused", REFUSALS, ids=lambda r: r.name)
def test_what_does_not_follow_has_a_counterexample(refused: Refusal) -> None:
    COUNTEREXAMPLES[refused.name]()


def test_a_rare_event_that_tells_all_is_no_differential_privacy() -> None:
    """(δ, T)-privacy with η > 0: the record itself, with a chance of 1/1000."""
    rare = Fraction(1, 1000)
    blurted = Tiny(1, {t: [rare, 1 - rare] if t else [Fraction(0), Fraction(1)] for t in tables(1)})
    assert not holds(Dp(100.0), blurted)
    assert holds(Dp(math.log(2)), alphabeta(Fraction(2, 3), Fraction(1, 3), size=1))


def test_no_refusal_contradicts_a_theorem() -> None:
    """Nothing that a chain of theorems reaches is refused, and all else is explained."""
    names = [name for kind in KINDS.values() for name in kind.labels]
    reached = {name: {name} for name in names}
    for _ in names:
        for theorem in THEOREMS:
            for reach in reached.values():
                if theorem.source in reach:
                    reach.add(theorem.target)
    for source in names:
        for target in names:
            assert (target in reached[source]) == (refusal(source, target) is None), (
                source,
                target,
            )
