"""Association rules: all of them by brute force, and intervals that hold."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from tests.support.perturbed import perturbed
from tests.support.sampling import proportion_at_least
from tests.support.soak import rounds
from tests.support.watched import WatchedProgress
from voile.errors import UsageError
from voile.mining import ExactCounts, Limits, RuleLimits, find_rules, grow
from voile.mining.rules import AssociationRule
from voile.schema import Attribute, Range, Schema, Values

SCHEMA = Schema(
    (
        Attribute("a", "integer", Range(0, 2)),
        Attribute("b", "categorical", Values(("x", "y")), ordered=False),
        Attribute("c", "categorical", Values(("u", "v", "w")), null=True, ordered=False),
        Attribute("d", "boolean", Values((False, True))),
    )
)


def table(rows: int = 2000, seed: int = 5) -> ExactCounts:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, rows)
    b = np.where(rng.random(rows) < 0.8, a > 0, rng.random(rows) < 0.5).astype(int)
    c = rng.choice(4, rows, p=[0.5, 0.3, 0.15, 0.05])
    d = np.where(rng.random(rows) < 0.7, b & (c == 0), 1).astype(int)
    return ExactCounts(SCHEMA, {"a": a, "b": b, "c": c, "d": d})


def brute_force(rows: ExactCounts, support: float, confidence: float, longest: int) -> Any:
    """Every rule, by counting every combination of values."""
    found = {}
    for length in range(2, longest + 1):
        for names in combinations(rows.schema.names, length):
            for values in product(*(range(rows.schema[name].size) for name in names)):
                met = [rows.codes[n] == v for n, v in zip(names, values, strict=True)]
                both = np.logical_and.reduce(met).mean()
                for at in range(length):
                    given = np.logical_and.reduce(met[:at] + met[at + 1 :]).mean()
                    if both >= support and both / given >= confidence:
                        left = {n: v for n, v in zip(names, values, strict=True) if n != names[at]}
                        key = (tuple(left.items()), (names[at], values[at]))
                        found[key] = (both, both / given, both / given / met[at].mean())
    return found


TEXTS = {
    "a": ["a < 1", "a >= 1 AND a < 2", "a >= 2"],
    "b": ["b = 'x'", "b = 'y'"],
    "c": ["c = 'u'", "c = 'v'", "c = 'w'", "c IS NULL"],
    "d": ["d = false", "d = true"],
}


@pytest.mark.parametrize(("support", "confidence"), [(0.05, 0.6), (0.01, 0.0), (0.2, 0.3)])
@pytest.mark.parametrize("longest", [2, 3, 4])
def test_exact_counts_give_every_rule_and_no_other(
    support: float, confidence: float, longest: int
) -> None:
    rows = table()
    wanted = {
        (tuple(TEXTS[n][v] for n, v in left), TEXTS[right[0]][right[1]]): numbers
        for (left, right), numbers in brute_force(rows, support, confidence, longest).items()
    }
    found = find_rules(rows, limits=RuleLimits(support, confidence, longest)).rules
    assert {(rule.conditions, rule.consequent) for rule in found} == set(wanted)
    for rule in found:
        numbers = wanted[rule.conditions, rule.consequent]
        told = (rule.support, rule.confidence, rule.lift)
        assert [value.estimate for value in told] == pytest.approx(list(numbers))
        # Nothing was perturbed, so nothing is in doubt.
        assert [value.low for value in told] == pytest.approx(list(numbers))
        assert [value.high for value in told] == pytest.approx(list(numbers))
    lifts = [rule.lift.estimate for rule in found]
    assert lifts == sorted(lifts, reverse=True)


def rule_of(rules: tuple[AssociationRule, ...], left: tuple[str, ...], right: str) -> Any:
    return next((r for r in rules if (r.conditions, r.consequent) == (left, right)), None)


def test_intervals_hold_as_often_as_they_say() -> None:
    """Many perturbed tables; a sound interval fails this with probability 10⁻⁶."""
    rows = table(1000)
    limits = RuleLimits(0.01, 0.0, 2)
    names = (("b = 'y'",), "d = true")
    exact = rule_of(find_rules(rows, ["b", "d"], limits).rules, *names)
    kinds = ("support", "confidence", "lift")
    held, halved = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0)
    trials = rounds(80, 250)
    for seed in range(trials):
        found = find_rules(perturbed(rows, 0.5, seed), ["b", "d"], limits).rules
        rule = rule_of(found, *names)
        for kind in kinds:
            truth, value = getattr(exact, kind).estimate, getattr(rule, kind)
            assert value.low <= value.estimate <= value.high
            held[kind] += value.low <= truth <= value.high
            off = abs(truth - value.estimate)
            halved[kind] += off <= min(value.high - value.estimate, value.estimate - value.low) / 2
    for kind in kinds:
        assert proportion_at_least(held[kind], trials, 0.95), (kind, held)
    # The test can fail: half as wide, support and confidence hold far too seldom.
    for kind in kinds[:2]:
        assert not proportion_at_least(halved[kind], trials, 0.95)


def test_a_set_goes_on_while_its_support_may_be_large_enough() -> None:
    """By the upper end: the estimate of a part may be too small where that of the whole is not."""
    rows = table()
    noisy = perturbed(rows, 0.3, 3)
    limits = RuleLimits(0.04, 0.0, 3)
    full = find_rules(noisy, limits=limits)
    cells = {n: np.arange(SCHEMA[n].size) for n in ("a", "b", "c")}
    large = int((noisy.joint_counts(cells, "inversion").counts >= 0.04 * rows.rows).sum())
    three = [rule for rule in full.rules if len(rule.conditions) == 2]
    texts = {tuple(sorted((*rule.conditions, rule.consequent))) for rule in three}
    abc = {names for names in texts if not any(name.startswith("d ") for name in names)}
    assert large >= len(abc) >= 0.8 * large > 0


def test_all_intervals_together_are_wider() -> None:
    noisy = perturbed(table(), 0.5, 1)
    one = find_rules(noisy, limits=RuleLimits(simultaneous=False))
    together = find_rules(noisy, limits=RuleLimits(simultaneous=True))
    assert [rule.text for rule in one.rules] == [rule.text for rule in together.rules]
    for a, b in zip(one.rules, together.rules, strict=True):
        assert b.confidence.low <= a.confidence.low <= a.confidence.high <= b.confidence.high
        assert b.support.high > a.support.high
    assert "rules were compared" in one.notes[0]
    assert "hold together" in together.notes[0]


@pytest.mark.parametrize(
    ("columns", "limits", "message"),
    [
        (["a"], {}, "needs two columns"),
        (["a", "e"], {}, "no attribute 'e'"),
        (None, {"support": 0}, "support of 0"),
        (None, {"support": 5}, "support of 5"),
        (None, {"confidence": 60}, "confidence of 60"),
        (None, {"longest": 1}, "1 items"),
        (None, {"longest": 9}, "9 items"),
        (None, {"bins": 0}, "0 bins"),
        (None, {"level": 1}, "probability 1"),
        (None, {"method": "exact"}, "method 'exact'"),
    ],
)
def test_impossible_searches_are_refused(columns: Any, limits: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_rules(table(50), columns, RuleLimits(**limits))


def test_progress_ends_where_it_said() -> None:
    searched, grown = WatchedProgress(), WatchedProgress()
    find_rules(table(), limits=RuleLimits(0.1, 0.5), progress=searched)
    assert [what for what, _ in searched.steps] == ["counting items", "rules"]
    assert sum(searched.done) == sum(total for _, total in searched.steps)
    grow(table(), "d", limits=Limits(depth=2, min_support=20), progress=grown)
    assert grown.steps == [("growing the tree", 4)] and sum(grown.done) == 4
