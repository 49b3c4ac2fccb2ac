"""The boundary of the possible: the proof's steps on domains small enough to list; the plane."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from voile.errors import UsageError
from voile.evaluate.planning.boundary import LEVELS, Plane, boundary_of
from voile.mechanisms import AlphaBeta
from voile.privacy import DGamma, plan
from voile.privacy.boundary import Boundary, limit_on_error, swap_factor
from voile.privacy.meaning import (
    Distribution,
    Law,
    alphabeta_law,
    constant_law,
    identity_law,
    large_queries,
    meaning,
    mixture,
    replacement_law,
    statistical_difference,
)

Table = tuple[int, ...]
Chances = dict[Table, Fraction]

# ---------------------------------------------------------------------- the lemma


def tables(m: int, n: int) -> list[Table]:
    return list(combinations(range(m), n))


def mean_in(chances: Chances, query: Table, n: int) -> Fraction:
    found = [chances[table] for table in combinations(query, n)]
    return sum(found, Fraction(0)) / len(found)


def relative_variance(chances: Chances, m: int, n: int, size: int) -> Fraction:
    """Var_Q(Pr[V | E_Q]) / Pr[V]², over all queries of a size, all tables inside each."""
    means = [mean_in(chances, query, n) for query in combinations(range(m), size)]
    mean = sum(means, Fraction(0)) / len(means)
    assert mean == sum(chances.values(), Fraction(0)) / len(chances)
    return sum(((x - mean) ** 2 for x in means), Fraction(0)) / len(means) / mean**2


def chances_of_a_view(m: int, n: int, factor: Fraction) -> Iterator[Chances]:
    """Chances of one view that no exchange of a tuple changes by more than the factor."""
    rng = np.random.default_rng(17)
    for marked in (1, m // 4, m // 2):
        weight = [factor if t < marked else Fraction(1) for t in range(m)]
        yield {t: math.prod((weight[i] for i in t), start=Fraction(1)) for t in tables(m, n)}
    for _ in range(3):
        steps = rng.integers(0, 11, m)
        weight = [1 + (factor - 1) * Fraction(int(s), 10) for s in steps]
        yield {t: math.prod((weight[i] for i in t), start=Fraction(1)) for t in tables(m, n)}
    for _ in range(3):
        drawn = iter(rng.integers(0, 11, len(tables(m, n))).tolist())
        yield {t: 1 + (factor - 1) * Fraction(next(drawn), 10) for t in tables(m, n)}


def swaps(m: int, n: int) -> Iterator[tuple[Table, Table]]:
    for table in tables(m, n):
        for out in table:
            for into in set(range(m)) - set(table):
                yield table, tuple(sorted({*table, into} - {out}))


CASES = [(8, 1, 5), (9, 1, 4), (10, 1, 6), (11, 2, 10), (12, 2, 10)]


def bound_of(n: int, size: int, factor: Fraction) -> Fraction:
    """r/(1−r) with r = E·n²/(M−2n), as section 17 proves it."""
    r = factor * n**2 / (size - 2 * n)
    assert r < 1
    return r / (1 - r)


def largest_factor(n: int, size: int) -> Fraction:
    """A factor for which the lemma still speaks, just."""
    return Fraction(size - 2 * n, n**2) * Fraction(9, 10)


@pytest.mark.parametrize(("m", "n", "size"), CASES)
def test_variance_over_queries_is_bounded(m: int, n: int, size: int) -> None:
    """The lemma of section 17, exactly: every table, every query of the size."""
    for factor in {max(Fraction(1), largest_factor(n, size)), Fraction(21, 20)}:
        for chances in chances_of_a_view(m, n, factor):
            assert all(chances[x] <= factor * chances[y] for x, y in swaps(m, n))
            assert relative_variance(chances, m, n, size) <= bound_of(n, size, factor)


def marked_variance(m: int, n: int, size: int, marked: int, factor: Fraction) -> Fraction:
    """The same for p(x) = factor^(marked tuples in x), on domains that are too large to list.

    How many marked tuples a query holds is hypergeometric, and so it is for a table inside it.
    """

    def mean_with(count: int, among: int) -> Fraction:
        ways = (math.comb(count, k) * math.comb(among - count, n - k) for k in range(n + 1))
        weighted = sum((w * factor**k for k, w in enumerate(ways)), Fraction(0))
        return weighted / math.comb(among, n)

    mean = mean_with(marked, m)
    total = Fraction(0)
    for count in range(max(0, size + marked - m), min(size, marked) + 1):
        chance = Fraction(
            math.comb(marked, count) * math.comb(m - marked, size - count), math.comb(m, size)
        )
        total += chance * (mean_with(count, size) - mean) ** 2
    return total / mean**2


def test_marked_variance_equals_listing() -> None:
    chances = next(chances_of_a_view(9, 2, Fraction(3)))
    assert marked_variance(9, 2, 5, 1, Fraction(3)) == relative_variance(chances, 9, 2, 5)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_variance_bound_has_the_right_order_and_can_fail(n: int) -> None:
    """E·n²/M is the right order: a tenth of the bound would be false."""
    m, size = 1200, 300
    factor = Fraction(size, 5 * n**2)
    marked = round(m / factor)
    worst = marked_variance(m, n, size, marked, factor)
    bound = bound_of(n, size, factor)
    assert bound / 10 < worst <= bound
    # Where exchanges change more than is claimed for them, the bound does not hold.
    assert worst > bound_of(n, size, factor / 10)


@pytest.mark.parametrize(("m", "n"), [(6, 2), (7, 3)])
def test_averages_of_pairs_differ_by_at_most_the_factor(m: int, n: int) -> None:
    """Lemma B.2: A_i, the mean of p(x)·p(y) over pairs that differ in i tuples."""
    factor = Fraction(3)
    for chances in chances_of_a_view(m, n, factor):
        means = []
        for i in range(min(n, m - n) + 1):
            pairs = [
                chances[x] * chances[y]
                for x in tables(m, n)
                for y in tables(m, n)
                if len(set(x) - set(y)) == i
            ]
            means.append(sum(pairs, Fraction(0)) / len(pairs))
        for one, other in pairwise(means):
            assert one <= factor * other <= factor**2 * one


def test_weak_exchanges_make_two_thirds_of_the_queries_meaningless() -> None:
    """Theorem 3.3 for one row: views 'yes' and 'no', chances that differ by the factor K.

    A query splits the tuples, so how many marked ones it holds is hypergeometric; exact.
    """
    m = 1000
    limit = float(Boundary(1, m).swap_limit)
    assert limit > 5

    def lost(factor: float, size: int) -> float:
        """The share of queries of a size with a statistical difference below 1/2."""
        marked = round(m / (1 + factor))
        found = stats.hypergeom(m, marked, size)
        inside = np.arange(max(0, size + marked - m), min(size, marked) + 1)
        chance = 0.5 / factor + (0.5 - 0.5 / factor) * np.stack(
            [inside / size, (marked - inside) / (m - size)]
        )
        difference = 2 * np.abs(chance[0] - chance[1])
        return float(found.pmf(inside)[difference < 0.5].sum())

    for size in (250, 500, 750):
        assert lost(limit, size) >= 2 / 3


def test_the_constant_is_what_the_proof_needs() -> None:
    """r = 1/49 makes both halves 1/√48, whose sum squared is the 1/12 that Markov asks for."""
    r = Fraction(1, 49)
    spread = r / (1 - r)
    assert 4 * (4 * spread) == Fraction(1, 3)
    for n, m in [(1, 10**4), (50, 10**9), (3, 5000)]:
        smallest = Fraction(m, 4)
        assert Boundary(n, m).swap_limit * n**2 / (smallest - 2 * n) == r


# ---------------------------------------------------------------------- what is forbidden


@pytest.mark.parametrize("posterior", [0.05, 0.2, 0.9])
def test_both_ends_of_what_is_forbidden(posterior: float) -> None:
    found = Boundary(1000, 10**12)
    least = found.least_forbidden_prior(posterior)
    assert least is not None
    factor = swap_factor(DGamma(least, posterior))
    assert float(factor) == pytest.approx(float(found.swap_limit), rel=1e-9)
    assert found.largest_forbidden_posterior(least) == pytest.approx(posterior, rel=1e-9)
    assert found.forbids(DGamma(least * 1.001, posterior))
    assert not found.forbids(DGamma(least * 0.999, posterior))
    limit = found.limit_on(DGamma(least * 1.001, posterior))
    assert limit is not None
    assert "Theorem 3.3" in limit.theorem
    assert found.limit_on(DGamma(least * 0.999, posterior)) is None


def test_the_papers_form_with_its_constant() -> None:
    """d ≥ 14·γ/(1−γ)·n/√(m−8n) is enough, which is Theorem 3.3 with c = 1/14."""
    for n, m in [(100, 10**9), (1000, 10**12), (7, 10**5)]:
        for posterior in (0.01, 0.1, 0.5, 0.9):
            prior = 14 * posterior / (1 - posterior) * n / math.sqrt(m - 8 * n)
            if prior < posterior:
                assert Boundary(n, m).forbids(DGamma(prior, posterior))


def test_exchanging_a_tuple_is_bounded_by_the_promise_with_equality() -> None:
    """R·γ/d is attained, by αβ on sets at the largest retention; 2δ + 2·ln 2 is looser."""
    promise = DGamma(0.001, 0.2)
    planned = plan(promise, "set")
    ratio = AlphaBeta(planned.retention, planned.noise, "set").likelihood_ratio()
    assert ratio.high is not None
    swapped = ratio.high / ratio.low
    assert float(swapped / swap_factor(promise)) == pytest.approx(1, abs=1e-9)
    assert swapped <= swap_factor(promise)
    assert swap_factor(promise) < 4 * promise.ratio_high**2


def test_adult_lies_where_the_theorem_is_silent(oracle: dict[str, dict[str, Any]]) -> None:
    check = oracle["impossibility.adult"]
    found = Boundary(check["inputs"]["n"], check["inputs"]["m"])
    assert found.root_ratio == pytest.approx(check["expected"]["n/sqrt(m)"], rel=check["rtol"])
    assert not found.speaks
    assert found.least_forbidden_prior(0.2) is None
    assert found.largest_forbidden_posterior(0.1) is None
    assert not found.forbids(DGamma(0.1999, 0.2))
    assert "rules nothing out" in found.in_words()


def test_an_error_below_the_root_of_n_is_remarked_upon() -> None:
    assert limit_on_error(100.0, 10_000) is None
    found = limit_on_error(99.0, 10_000)
    assert found is not None
    assert "ρ = 0.99" in found.says
    assert "no constant is known" in found.says


# ---------------------------------------------------------------------- the plane


@pytest.mark.parametrize(
    ("rows", "size"), [(100, 10**6), (1000, 10**12), (30162, 648023040), (50, 10**40), (6, 90)]
)
def test_no_promise_is_both_possible_and_impossible(rows: int, size: int) -> None:
    """αβ is an algorithm, so the two theorems would contradict each other where they met."""
    plane = Plane("t", Boundary(rows, size), rows / size, 0.2, ())
    for point in plane.points:
        half, tenth, hundredth = (math.inf if x is None else x for x in point.possible_from)
        assert point.prior < half <= tenth <= hundredth
        if point.impossible_up_to is not None:
            assert point.prior < point.impossible_up_to < half


def test_contours_are_where_the_error_is() -> None:
    plane = Plane("t", Boundary(1000, 10**9), 1e-5, 0.2, ())
    for point in plane.points[::13]:
        for level, posterior in zip(LEVELS, point.possible_from, strict=True):
            if posterior is not None:
                assert plane.error_share(point.prior, posterior) == pytest.approx(level, rel=1e-6)
    planned = plan(DGamma(1e-5, 0.2), "multiset")
    variance = AlphaBeta(planned.retention, planned.noise).variance(1000, 1e9)
    expected = stats.norm.ppf(0.975) * math.sqrt(variance) / 1000
    assert plane.error_share(1e-5, 0.2) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("prior", "posterior", "region"),
    [(1e-8, 0.2, "possible"), (1e-5, 0.2, "unknown"), (0.05, 0.2, "impossible"),
     (0.2, 0.2, "excluded"), (0.3, 0.2, "excluded")],
)  # fmt: skip
def test_regions_of_a_huge_domain(prior: float, posterior: float, region: str) -> None:
    plane = Plane("t", Boundary(1000, 10**12), 1e-8, 0.2, ())
    assert plane.region(prior, posterior) == region


def write_table(folder: Path, rows: int = 200) -> tuple[str, str]:
    """A table, and a codebook that gives it a domain of 10¹² tuples."""
    table, schema = folder / "t.csv", folder / "t.yaml"
    lines = [f"{i % 97},{(7 * i) % 89}" for i in range(rows)]
    table.write_text("\n".join(["a,b", *lines]) + "\n")
    whole = "{{name: {}, kind: integer, range: [1, 1000000]}}"
    schema.write_text("attributes:\n" + "".join(f"- {whole.format(c)}\n" for c in "ab"))
    schema.write_text(schema.read_text().replace("[1,", "[0,"))
    return str(table), str(schema)


def test_a_tables_own_plane(tmp_path: Path) -> None:
    table, schema = write_table(tmp_path)
    found = boundary_of(table, schema=schema).to_dict()
    assert (found["rows"], found["domain_size"]) == (200, str(1_000_001**2))
    assert found["position"]["prior"] == pytest.approx(10 * found["density"])
    assert found["swap_limit"] > 1
    assert 0 < found["least_forbidden_prior"] < 0.2
    assert json.loads(json.dumps(found)) == found
    crowded = boundary_of("dataset:scores", prior_factor=30).to_dict()["position"]
    assert crowded["prior"] > 1
    assert (crowded["region"], crowded["error_share"]) == ("excluded", None)
    adult = boundary_of("dataset:adult/boundary").to_dict()
    assert adult["swap_limit"] is None
    assert adult["position"]["region"] == "possible"
    assert all(point["impossible_up_to"] is None for point in adult["plane"])


# ---------------------------------------------------------------------- meaningfulness

HALF = Fraction(1, 2)


def test_statistical_difference_is_a_distance_from_0_to_2() -> None:
    one: Distribution = {"a": Fraction(1, 3), "b": Fraction(2, 3)}
    other: Distribution = {"b": Fraction(1, 3), "c": Fraction(2, 3)}
    assert statistical_difference(one, one) == 0
    assert statistical_difference(one, {"c": Fraction(1)}) == 2
    assert statistical_difference(one, other) == statistical_difference(other, one)
    assert statistical_difference(one, other) == Fraction(4, 3)


def test_the_table_itself_tells_all_and_a_constant_nothing() -> None:
    everything, nothing = meaning(identity_law, 6, 2), meaning(constant_law, 6, 2)
    assert set(everything.differences) == {2}
    assert everything.meaningful
    assert set(nothing.differences) == {0}
    assert not nothing.meaningful


def test_laws_are_laws() -> None:
    laws: list[Law] = [
        alphabeta_law(5, Fraction(2, 3), Fraction(1, 7)),
        replacement_law(5, Fraction(1, 3)),
        identity_law,
        constant_law,
    ]
    for law in laws:
        assert sum(law(frozenset({1, 4})).values()) == 1
    seen = replacement_law(3, Fraction(1, 4))(frozenset({0}))
    assert seen == {(0,): HALF, (1,): Fraction(1, 4), (2,): Fraction(1, 4)}


def test_alphabeta_on_one_row_by_hand() -> None:
    """One row: only whether each tuple is published counts, and which half it is in."""
    keep, insert = Fraction(3, 4), Fraction(1, 8)
    found = meaning(alphabeta_law(4, keep, insert), 4, 1)
    by_hand = []
    for query in large_queries(4, 1, HALF):
        rest = set(range(4)) - query
        difference = Fraction(0)
        for view in range(16):
            odds = [
                (keep / insert if view >> t & 1 else (1 - keep) / (1 - insert)) for t in range(4)
            ]
            base = math.prod(
                (insert if view >> t & 1 else 1 - insert for t in range(4)), start=Fraction(1)
            )
            inside = sum((odds[t] for t in query), Fraction(0)) / len(query)
            outside = sum((odds[t] for t in rest), Fraction(0)) / len(rest)
            difference += base * abs(inside - outside)
        by_hand.append(difference)
    assert list(found.differences) == by_hand
    assert len(by_hand) == 4 + 6 + 4


def miss_chance(
    law: Law, m: int, n: int, wrong: Callable[[Any, frozenset[int], int], bool]
) -> Fraction:
    """ε: the largest chance, over tables and queries, that an estimate is off by n/2 or more."""
    worst = Fraction(0)
    for query in large_queries(m, n, HALF):
        for table in map(frozenset, tables(m, n)):
            truth = len(table & query)
            if truth in (0, n):
                missed = sum(
                    (p for view, p in law(table).items() if wrong(view, query, truth)), Fraction(0)
                )
                worst = max(worst, missed)
    return worst


def test_proposition_3_4_useful_means_meaningful() -> None:
    """SD ≥ 2(1 − 2ε). Print has '>', which the table itself refutes: ε = 0 and SD = 2."""
    m, n = 6, 2
    for insert in (Fraction(1, 50), Fraction(1, 10), Fraction(1, 4)):
        keep = Fraction(9, 10)

        def off(view: Any, query: frozenset[int], truth: int, b: Fraction = insert) -> bool:
            seen = sum(view[t] for t in query)
            estimate = (seen - b * len(query)) / (Fraction(9, 10) - b)
            return bool(abs(estimate - truth) >= Fraction(n, 2))

        law = alphabeta_law(m, keep, insert)
        epsilon = miss_chance(law, m, n, off)
        assert min(meaning(law, m, n).differences) >= 2 * (1 - 2 * epsilon)
    assert min(meaning(identity_law, m, n).differences) == 2


def test_an_error_of_half_of_n_is_meaningful_whatever_the_law() -> None:
    """Section 17 by Cantelli: standard errors up to n/3.92 give SD ≥ 2(1 − 2/4.84) > 1.17."""
    m, n = 7, 2
    keep, insert = Fraction(19, 20), Fraction(1, 100)
    law = alphabeta_law(m, keep, insert)
    variance = AlphaBeta(0.95, 0.01, "set").variance(float(n), float(m))
    assert 1.96 * math.sqrt(variance) <= n / 2
    assert min(meaning(law, m, n).differences) >= Fraction(117, 100)


def test_less_noise_means_more_and_frapp_means_little() -> None:
    m, n = 6, 2
    noisy = [meaning(alphabeta_law(m, HALF, Fraction(b, 20)), m, n) for b in (1, 4, 7, 10)]
    means = [found.mean_difference for found in noisy]
    assert means == sorted(means, reverse=True)
    assert means[-1] == 0
    assert [found.meaningful for found in noisy] == [True, True, False, False]
    replaced = [meaning(replacement_law(m, Fraction(p, 10)), m, n) for p in (0, 1, 5, 10)]
    assert [found.meaningful for found in replaced] == [False, False, True, True]
    assert set(replaced[0].differences) == {0}
    assert set(replaced[3].differences) == {2}


def test_mixtures_are_even() -> None:
    found = mixture([{"a": Fraction(1)}, {"a": HALF, "b": HALF}])
    assert found == {"a": Fraction(3, 4), "b": Fraction(1, 4)}


def test_domains_that_are_too_large_or_too_small_are_refused() -> None:
    with pytest.raises(UsageError, match="13 tuples are too many"):
        meaning(identity_law, 13, 2)
    with pytest.raises(UsageError, match="no query on 4 tuples"):
        meaning(identity_law, 4, 3)
