"""Mining across servers in this process: what is asked, charged, refused, resumed and found."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tests.support.mining_servers import FakeServer, adult
from tests.support.sampling import proportion_at_least
from tests.support.soak import rounds
from voile.asking import mine
from voile.errors import PromiseError, QueryError, TableError, UsageError
from voile.remote.plan import planned
from voile.remote.testing import planned_tester, run_tester

N = 32561
LEFT, RIGHT = ("married", "male", "age40"), ("rich", "hrs41", "private")


def servers(
    variance: float = 0.0, other: float | None = None, rows: int = N, **options: Any
) -> dict[str, FakeServer]:
    known = {name: column[:rows] for name, column in adult().items()}
    second = variance if other is None else other
    return {
        "A": FakeServer({name: known[name] for name in LEFT}, variance, seed=1, **options),
        "B": FakeServer({name: known[name] for name in RIGHT}, second, seed=2, **options),
    }


def true_share(expression: str, rows: int = N) -> float:
    """By DuckDB on the table that nobody has."""
    con = duckdb.connect()
    con.register("everyone", pa.table({name: column[:rows] for name, column in adult().items()}))
    spelled = expression.replace("A.", "").replace("B.", "").replace(" xor ", " != ")
    found = con.execute(f"select avg(({spelled})::int) from everyone").fetchall()
    return float(found[0][0])


# ---------------------------------------------------------------------- what is found


EXPRESSIONS = [
    "A.married and B.rich",
    "A.married and not B.rich",
    "A.married xor B.rich",
    "A.male or B.hrs41",
    "(A.married and B.rich) or (A.male and B.hrs41)",
    "(A.married and B.rich) or (not A.married and B.hrs41)",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("ids", [None, list(range(1000, 1000 + N))])
def test_any_function_of_two_sides_with_the_stated_error(
    expression: str, ids: list[int] | None
) -> None:
    """Public halves and noise; the truth is within five errors (false alarm about 10⁻⁶)."""
    found = mine(servers(500.0, 2000.0, ids=ids), expression, halves=400, seed="one")
    truth = true_share(expression)
    assert abs(found.value - truth) < 5 * found.stderr
    assert found.observed == pytest.approx(found.stderr, rel=0.25)
    assert found.stderr < 0.1
    assert found.spent["A"].charged == 401 * len([s for s in found.shares if s.server == "A"])
    assert not any("vary" in note for note in found.notes)


def test_the_error_of_several_products_that_share_halves() -> None:
    """Covariances of the same halves are not independent: the stated error must know that.

    The standard deviation of standardised errors is within 4.4 standard errors of 1 (10⁻⁵).
    """
    expression = "(A.married and B.rich) or (A.male and B.hrs41)"
    truth, scaled, pair = true_share(expression, 3000), [], servers(50.0, rows=3000)
    runs = rounds(40, 90)
    for run in range(runs):
        found = mine(pair, expression, halves=40, seed=f"run {run}")
        scaled.append((found.value - truth) / found.stderr)
    assert float(np.std(scaled)) == pytest.approx(1.0, rel=4.4 / math.sqrt(2 * runs))
    assert abs(float(np.mean(scaled))) < 4.3 / math.sqrt(runs)


def test_one_side_is_one_count() -> None:
    pair = servers(500.0)
    found = mine(pair, "A.married and not A.male")
    assert found.spent["A"].asked == 1
    assert "B" not in found.spent
    assert pair["B"].asked == 0
    assert abs(found.value - true_share("A.married and not A.male")) < 5 * found.stderr
    assert found.stderr == pytest.approx(math.sqrt(500) / N)
    assert found.low < found.value < found.high


@pytest.mark.parametrize(
    ("expression", "condition"),
    [
        ("A.married and not A.male", '"married" AND NOT "male"'),
        ("not A.married", 'NOT "married"'),
        ("not (A.married or A.male)", 'NOT ("married" OR "male")'),
        ("A.married xor A.male", '(("married") AND (NOT ("male")))'),
        ("A.married and true", '"married"'),
    ],
)
def test_one_server_is_asked_what_was_written(expression: str, condition: str) -> None:
    pair = servers(0.0)
    found = mine(pair, expression)
    assert condition in found.shares[0].sql
    assert found.value == found.shares[0].value == pytest.approx(true_share(expression))


def test_a_complement_of_one_side() -> None:
    pair = servers(0.0)
    assert mine(pair, "not A.married").value == pytest.approx(true_share("not A.married"))
    assert mine(pair, "B.rich and (A.male or true)").value == pytest.approx(true_share("B.rich"))


def test_constants_are_free() -> None:
    pair = servers(500.0)
    found = mine(pair, "A.married or B.rich or true")
    assert (found.value, found.low, found.high, found.spent) == (1.0, 1.0, 1.0, {})
    assert pair["A"].asked == pair["B"].asked == 0


def test_nulls_count_as_sql_does() -> None:
    """NOT of unknown is unknown, on rows where a column is NULL."""
    rng = np.random.default_rng(5)
    a = rng.choice(np.array([True, False, None], dtype=object), 4000)
    b = rng.random(4000) < 0.45
    pair = {"A": FakeServer({"x": a}, 0.0, null=("x",)), "B": FakeServer({"y": b}, 0.0)}
    found = mine(pair, "not A.x and B.y", halves=3000, seed="nulls")
    truth = float(((a == False) & b).mean())  # noqa: E712
    assert abs(found.value - truth) < 5 * found.stderr
    wrong = float(((a != True) & b).mean())  # noqa: E712
    assert abs(found.value - wrong) > 5 * found.stderr


def test_delta_of_a_conjunction_in_both_directions() -> None:
    found = mine(servers(200.0), "A.married and not B.rich", halves=1000, seed="d")
    p, q, together = (
        true_share(e) for e in ("A.married", "not B.rich", "A.married and not B.rich")
    )  # fmt: skip
    first, second = found.implications
    assert (first.given, first.then) == ('A: "married"', 'B: NOT ("rich")')
    assert abs(first.delta - (together / p - q)) < 5 * first.stderr
    assert abs(second.delta - (together / q - p)) < 5 * second.stderr
    assert first.low < first.delta < first.high < 0
    assert not mine(servers(), "A.married xor B.rich", halves=10).implications


def test_delta_is_cut_to_what_the_shares_allow() -> None:
    """With noise that is far too large, Δ and its interval would be anywhere."""
    pair = servers(4e6)
    for seed in range(10):
        found = mine(pair, "A.married and B.rich", halves=4, seed=str(seed))
        known = [min(1.0, max(0.0, one.value)) for one in found.shares]
        for one, share in zip(found.implications, known[::-1], strict=True):
            assert -share - 1e-9 <= one.delta <= 1 - share + 1e-9
            assert -1 <= one.low <= one.high <= 1


def test_the_error_before_asking_is_kept() -> None:
    pair = servers(800.0)
    for expression in EXPRESSIONS:
        plan = planned(pair, expression, error=0.05)
        found = mine(pair, expression, error=0.05, seed="kept")
        assert plan.halves == found.halves
        assert plan.error <= 0.05
        assert found.stderr <= 0.05 * 1.1


def test_intervals_of_the_whole_path_cover() -> None:
    """100 seeds; that 95 % are covered is believable at 10⁻⁶."""
    truth, hits, pair = true_share("A.male and B.hrs41", 3000), 0, servers(50.0, rows=3000)
    for run in range(100):
        found = mine(pair, "A.male and B.hrs41", halves=40, seed=f"c{run}")
        hits += found.low <= truth <= found.high
    assert proportion_at_least(hits, 100, 0.95)
    assert hits < 100


# ---------------------------------------------------------------------- budgets and resuming


def test_nothing_is_asked_if_a_budget_does_not_suffice() -> None:
    pair = servers(500.0)
    pair["B"].queries = 50
    with pytest.raises(PromiseError, match="B would be asked 101 new questions") as refused:
        mine(pair, "A.married and B.rich", halves=100)
    assert "halves=49" in refused.value.hint
    assert pair["A"].asked == pair["B"].asked == 0
    assert mine(pair, "A.married and B.rich", halves=49, seed="x").spent["B"].remaining == 0


def test_without_a_wish_it_says_what_the_budget_allows() -> None:
    pair = servers(500.0)
    pair["A"].queries = 30
    with pytest.raises(UsageError) as refused:
        mine(pair, "A.married and B.rich")
    assert "halves=29" in refused.value.hint
    assert pair["A"].asked == 0


def test_who_was_interrupted_goes_on_for_free() -> None:
    pair = servers(500.0)
    pair["A"].queries = pair["B"].queries = 51
    pair["B"].fail_after = 20
    with pytest.raises(PromiseError, match="B: stopped"):
        mine(pair, "A.married and B.rich", halves=50, seed="again")
    pair["B"].fail_after = None
    assert pair["A"].budget()["remaining"] < 51
    found = mine(pair, "A.married and B.rich", halves=50, seed="again")
    assert found.spent["B"].charged <= 51 - 20
    assert found.spent["A"].remaining == found.spent["B"].remaining == 0
    again = mine(pair, "A.married and B.rich", halves=50, seed="again")
    assert again.spent["A"].charged == again.spent["B"].charged == 0
    assert again.value == found.value
    with pytest.raises(PromiseError):
        mine(pair, "A.married and B.rich", halves=50, seed="another")


def test_a_fresh_seed_each_time() -> None:
    pair = servers()
    plans = [planned(pair, "A.married and B.rich", halves=2).seed for _ in range(20)]
    assert len(set(plans)) == 20


# ---------------------------------------------------------------------- servers that do not fit


def test_servers_of_other_people_are_refused() -> None:
    known = adult()
    short = FakeServer({"rich": known["rich"][:100]})
    with pytest.raises(TableError, match="A 32,561, B 100"):
        mine({"A": servers()["A"], "B": short}, "A.married and B.rich", halves=10)
    numbered = servers()["A"]
    named = FakeServer({"rich": known["rich"]}, ids=list(range(N)))
    with pytest.raises(TableError, match="A draws halves by row numbers"):
        mine({"A": numbered, "B": named}, "A.married and B.rich", halves=10)


def test_different_ids_show_in_the_sizes_of_halves() -> None:
    known = adult()
    one = FakeServer({"married": known["married"]}, ids=list(range(N)), tells_sizes=True)
    other = FakeServer({"rich": known["rich"]}, ids=list(range(7, N + 7)), tells_sizes=True)
    with pytest.raises(TableError, match="do not hold the same people"):
        mine({"A": one, "B": other}, "A.married and B.rich", halves=200, seed="ids")
    assert one.asked + other.asked < 30


def test_the_same_server_twice() -> None:
    known = adult()
    one = FakeServer({"married": known["married"], "rich": known["rich"]}, id="x")
    with pytest.raises(UsageError, match="A and B are the same server"):
        mine({"A": one, "B": one}, "A.married and B.rich", halves=10)


def test_three_servers_may_be_given_and_two_read() -> None:
    trio = servers() | {"C": FakeServer({"white": adult()["white"]})}
    found = mine(trio, "A.married and C.white", halves=20, seed="t")
    assert set(found.spent) == {"A", "C"}
    with pytest.raises(UsageError, match="reads 3 servers: A, B, C") as refused:
        mine(trio, "A.married and B.rich and C.white", halves=20)
    assert "does not extend to ternary functions" in refused.value.hint


def test_repeated_ids_are_noticed() -> None:
    """Rows that are drawn together vary more than rows that are drawn one by one."""
    ids = [i // 4 for i in range(N)]
    pair = {
        "A": FakeServer({"married": np.sort(adult()["married"])}, ids=ids),
        "B": FakeServer({"rich": np.sort(adult()["rich"])}, ids=ids),
    }
    found = mine(pair, "A.married and B.rich", halves=100, seed="r")
    assert any("are ids repeated?" in note for note in found.notes)


# ---------------------------------------------------------------------- wrong wishes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"halves": 1}, "1 halves cannot be asked"),
        ({"halves": -5}, "-5 halves"),
        ({"halves": 10**9}, "halves cannot be asked"),
        ({"error": 0.0}, "the error 0.0"),
        ({"error": 2.0}, "the error 2.0"),
        ({"error": math.nan}, "the error nan"),
        ({"error": 0.1, "halves": 10}, "exclude each other"),
        ({"halves": 10, "seed": ""}, "the seed ''"),
        ({"halves": 10, "seed": "a\nb"}, "the seed"),
        ({"halves": 10, "confidence": 1.0}, "confidence 1.0"),
    ],
)
def test_wrong_wishes_are_refused_before_asking(options: dict[str, Any], words: str) -> None:
    pair = servers(100.0)
    with pytest.raises(UsageError) as refused:
        mine(pair, "A.married and B.rich", **options)
    assert words in refused.value.message
    assert refused.value.hint
    assert pair["A"].asked == pair["B"].asked == 0


def test_hopeless_errors_are_refused() -> None:
    tiny = {"A": FakeServer({"x": np.arange(40) < 20}, 3000.0),
            "B": FakeServer({"y": np.arange(40) < 10}, 3000.0)}  # fmt: skip
    with pytest.raises(PromiseError, match=r"needs .* halves") as refused:
        mine(tiny, "A.x and B.y", error=0.01)
    assert "more rows would help" in refused.value.hint


def test_no_server() -> None:
    with pytest.raises(UsageError, match="no server"):
        mine({}, "A.x and B.y", halves=3)
    with pytest.raises(QueryError):
        mine(servers(), "A.nothing and B.rich", halves=3)


# ---------------------------------------------------------------------- the slides' tester


def test_the_tester_finds_nothing_as_printed() -> None:
    pair = servers(100.0)
    plan = planned(pair, "A.married and B.rich", halves=300, seed="t")
    found = run_tester(planned_tester(plan))
    assert found.accepted is None
    assert found.above is None
    assert found.tried == 300
    assert found.acceptance < 1e-4
    assert pair["B"].asked == 1


def test_the_tester_with_a_small_bias_decides() -> None:
    pair = servers(100.0)
    plan = planned(pair, "A.married and B.rich", halves=100, seed="t")
    found = run_tester(planned_tester(plan, bias=0.2, threshold=-0.9))
    assert found.accepted is not None
    assert found.above is True
    assert found.delta is not None
    assert found.stderr is not None
    truth = true_share("A.married and B.rich") / true_share("A.married") - true_share("B.rich")
    assert abs(found.delta - truth) < 5 * found.stderr
    assert pair["B"].asked == 2
    again = run_tester(planned_tester(plan, bias=0.2, threshold=0.99))
    assert again.above is False


def test_the_tester_needs_little_of_the_second_budget() -> None:
    pair = servers(100.0)
    pair["B"].queries = 2
    plan = planned(pair, "A.married and B.rich", halves=100, seed="t")
    with pytest.raises(PromiseError, match="B would be asked 101"):
        plan.check()
    trial = planned_tester(plan, bias=0.2)
    trial.plan.check()
    assert run_tester(trial).spent["B"].remaining == 0


@pytest.mark.parametrize(
    ("expression", "options", "words"),
    [
        ("A.married xor B.rich", {}, "is not a condition of one server"),
        ("A.married and B.rich", {"bias": 0.0}, "the bias 0.0"),
        ("A.married and B.rich", {"threshold": 3.0}, "no Δ is as large"),
    ],
)
def test_what_the_tester_refuses(expression: str, options: dict[str, float], words: str) -> None:
    plan = planned(servers(), expression, halves=10)
    with pytest.raises(UsageError) as refused:
        planned_tester(plan, **options)
    assert words in refused.value.message
