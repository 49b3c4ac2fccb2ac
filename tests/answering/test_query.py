"""SQL in, counts out: parsing, refusing, Q(D), and answers without noise."""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction
from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voile
from tests.support.soak import rounds
from tests.support.sqlfiles import view_of
from voile.answering.source import check
from voile.engines.duckdb.rows import DuckRows
from voile.engines.rows import ReleaseRows
from voile.errors import QueryError
from voile.mechanisms import AlphaBeta
from voile.query import DomainSums, Predicate, parse
from voile.query.predicate import Term
from voile.query.rows import WeightedTerm
from voile.schema import Attribute, Range, Schema, Values

SCORES = Schema(
    (
        Attribute("age", "integer", Range(20, 39)),
        Attribute("nationality", "categorical", Values(("American", "British", "Indian"))),
        Attribute("score", "integer", Range(81, 100)),
    )
)
VIEW_OF_TABLE_1D = [
    (25, "British", 99), (21, "British", 99), (22, "Indian", 89), (32, "Indian", 90),
    (28, "Indian", 99), (29, "American", 81), (33, "American", 94), (27, "American", 94),
    (32, "British", 83), (36, "American", 94), (26, "American", 99), (39, "Indian", 94),
]  # fmt: skip


def domain_count(predicate: Predicate | None, schema: Schema, view: ReleaseRows) -> int | float:
    return DomainSums(schema, view.domain).sums([Term(predicate)])[0].total


def rows_counted(where: Predicate | None, view: ReleaseRows) -> int:
    return int(view.sums(where, [], [WeightedTerm(Term())]).sums[0, 0])


# ---------------------------------------------------------------------- Example 4.1


def test_example_4_1_as_corrected(tmp_path: Path, oracle: dict[str, dict[str, object]]) -> None:
    """score < 3*age: the paper prints n_D = 190 and 7.1; it is 549, and 3.51."""
    expected = oracle["errata.example41"]["expected"]
    assert isinstance(expected, dict)
    view = view_of(SCORES, list(VIEW_OF_TABLE_1D), tmp_path)
    query = parse("select count(*) from I where score < 3*age", SCORES)
    seen, domain = rows_counted(query.predicate, view), domain_count(query.predicate, SCORES, view)
    assert (seen, domain) == (expected["nV"], expected["nD_strict_x3"])
    beta = expected["beta"]
    estimate = AlphaBeta(2 / 3 + beta, beta, "set").estimate(seen, domain)
    assert estimate.value == pytest.approx(expected["est_right"], abs=5e-3)
    truth = voile.read("dataset:scores").count("score < 3*age")
    assert truth == expected["QI"]


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("", "empty"),
        ("select count(*) from t; select count(*) from t", "2 statements"),
        ("select count(* from t", "not SQL: Expecting"),
        ("drop table t", "DROP is not a question"),
        ("insert into t values (1)", "INSERT is not a question"),
        ("copy t to 'x'", "COPY is not a question"),
        ("select * from t", r"SELECT \* is not answered"),
        ("select age from t", "age is neither an aggregate nor in GROUP BY"),
        ("select count(*) from t limit age", "LIMIT must be a whole number"),
        ("select count(*) from t join u on true", "no table 'u'.*tables={"),
        ("select count(*)", "FROM must name"),
        ("select count(*) from t tablesample 10%", "is not answered"),
        ("select count(*) from t as u(sex, age)", "renaming columns is not answered"),
        ("select count(*) from t for update", "FOR UPDATE"),
        ("select count(* exclude (age)) from t", r"write count\(\*\)"),
        ("select distinct count(*) from t", "DISTINCT"),
        ("select count(*) from t pivot (count(*) for age in (1, 2))", "is not answered"),
        ("select count(*) from (select 1)", "FROM must name"),
        ("select count(*) from read_csv('/etc/passwd')", "FROM must name"),
        ("select count(*) from t where aeg = 3", "no column 'aeg'.*did you mean 'age'"),
        ("select count(*) from t where random() < 0.5", "not a function of the row"),
        ("select count(*) from t where current_date > '2020-01-01'", "not a function of the row"),
        ("select count(*) from t where count(*) > 3", "more than one row"),
        ("select count(*) from t where sum(age) over () > 3", "more than one row"),
        ("select count(*) from t where age in (select 1)", "tables of your own"),
        ("select count(*) from t where exists (select 1)", "tables of your own"),
        ("select count(*) from t where getenv('HOME') = 'x'", "cannot be used"),
        ("select count(*) from t where read_text('/etc/passwd') = 'x'", "cannot be used"),
        ("select count(*) from t where age", "not true or false"),
        ("select count(*) from t where nationality = 1", "nationality is text, and 1 is a number"),
        ("select count(*) from t where 1 < nationality", "nationality is text"),
        ("select count(*) from t where age = 'abc'", "age is a number, and 'abc' is not"),
        ("select count(*) from t where age between 1 and 'x'", "age is a number"),
        ("select count(*) from t where nationality in ('Indian', 3)", "nationality is text"),
        ('select count(*) from t where nationality = "Indian"', "single quotes"),
        ("select count(*) from t where now() > '2020-01-01'", "not a function of the row"),
        ("hello", "HELLO is not a question"),
        ("select count(*) from t where age + 1", "not true or false"),
        ("select count(*) from t where nationality > 3 + 'x'", "does not fit"),
        ("select count(*) from t where \0", "NUL"),
    ],
)
def test_refusals_say_why(sql: str, says: str, tmp_path: Path) -> None:
    view = view_of(SCORES, list(VIEW_OF_TABLE_1D), tmp_path)
    with pytest.raises(QueryError, match=f"(?s){says}"):
        check(parse(sql, SCORES), view)


@pytest.mark.parametrize(
    "asked", ["*", "max(age)", "min(age)", "first(age)", "row_number() over (order by age)"]
)
def test_refusals_are_true_of_every_kind_of_release(asked: str) -> None:
    """Not all have noise, and not all hide who has the largest value."""
    with pytest.raises(QueryError) as caught:
        parse(f"select {asked} from t", SCORES)
    assert caught.value.hint
    assert not re.search("noise|view|hide", caught.value.hint)


def test_an_error_points_at_its_place() -> None:
    with pytest.raises(QueryError) as caught:
        parse("select count(*)\nfrom t\nwhere age > 30 and scoer < 3", SCORES)
    assert caught.value.message.splitlines() == [
        "there is no column 'scoer' (line 3, column 20)",
        "    where age > 30 and scoer < 3",
        "                       ^",
    ]


def test_a_comparison_of_too_many_values_is_sampled_or_refused(tmp_path: Path) -> None:
    big = Schema(tuple(Attribute(c, "integer", Range(1, 3000)) for c in "abcd"))
    view = view_of(big, [(1, 1, 1, 1)], tmp_path)
    query = parse("select count(*) from t where a * b + c * d < 100", big)
    sampled = DomainSums(big, view.domain).sums([Term(query.predicate)])[0]
    assert sampled.error > 0
    with pytest.raises(QueryError, match="a, b, c, d"):
        DomainSums(big, view.domain, exact=True).sums([Term(query.predicate)])


def test_the_connection_reaches_nothing_but_the_release(tmp_path: Path) -> None:
    view = view_of(SCORES, list(VIEW_OF_TABLE_1D), tmp_path)
    assert isinstance(view, DuckRows)
    (tmp_path / "secret.csv").write_text("a\n1\n")
    for sql in (
        f"select count(*) from read_csv('{tmp_path}/secret.csv')",
        f"copy (select 1) to '{tmp_path}/out.csv'",
        "set enable_external_access = true",
        "install httpfs",
        f"attach '{tmp_path}/x.duckdb'",
    ):
        with pytest.raises(duckdb.Error):
            view._con.execute(sql)
    outside = "not_a_registered_table = pa.table({'a': [1]})"
    not_a_registered_table = pa.table({"a": [1]})
    assert outside and not_a_registered_table is not None
    with pytest.raises(duckdb.Error):
        view._con.execute("select * from not_a_registered_table")


# ---------------------------------------------------------------------- what is understood


def test_names_are_found_in_any_case_and_any_quoting(tmp_path: Path) -> None:
    schema = Schema(
        (
            Attribute('we"ird', "integer", Range(0, 4)),
            Attribute("naïve col", "categorical", Values(("it's", "ö"))),
            Attribute("select", "boolean", Values((False, True)), null=True),
        )
    )
    view = view_of(schema, [(1, "it's", True), (4, "ö", None), (4, "ö", False)], tmp_path)
    for where, seen, domain in [
        ('"we""ird" = 4', 2, 6),
        ("\"naïve col\" = 'it''s'", 1, 15),
        ('"NAÏVE COL" = \'ö\' and "SELECT" is null', 1, 5),
        ('not "select"', 1, 10),
        ('"select" and "we""ird" < 3', 1, 6),
    ]:
        query = parse(f"select count(*) as n from anything where {where}", schema)
        assert query.columns[0].name == "n"
        assert rows_counted(query.predicate, view) == seen
        assert domain_count(query.predicate, schema, view) == domain


def test_functions_of_one_row_are_answered(tmp_path: Path) -> None:
    schema = Schema(
        (
            Attribute("d", "date", Range(dt.date(2024, 1, 1), dt.date(2024, 12, 31))),
            Attribute("s", "categorical", Values(("alpha", "beta", "100%"))),
            Attribute("x", "integer", Range(-3, 3)),
        )
    )
    rows: list[tuple[object, ...]] = [
        (dt.date(2024, 5, 1), "beta", -2),
        (dt.date(2024, 7, 4), "100%", 3),
    ]
    view = view_of(schema, rows, tmp_path)
    for where, seen in [
        ("date_part('month', d) = 5", 1), ("extract(year from d) = 2024", 2),
        ("date_trunc('month', d) = '2024-07-01'", 1), ("strftime(d, '%m') = '05'", 1),
        ("dayname(d) = 'Thursday'", 1), ("quarter(d) = 3 and week(d) > 20", 1),
        ("left(s, 2) = 'be'", 1), ("contains(s, 'et')", 1), ("s like '%!%' escape '!'", 1),
        ("strpos(s, '0') = 2", 1), ("starts_with(s, 'b') or ends_with(s, '%')", 2),
        ("sign(x) = -1 and abs(x) = 2", 1), ("ln(abs(x)) > 1", 1), ("x ** 2 > 5 and x // 2 = 1", 1),
        ("case when x > 0 then s = '100%' else d < '2024-06-01' end", 2),
        ("coalesce(nullif(x, 3), 0) = 0", 1), ("s ~ '^[0-9]+%$'", 1), ("s similar to 'b.*'", 1),
    ]:  # fmt: skip
        query = parse(f"select count(*) from t where {where}", schema)
        check(query, view)
        assert rows_counted(query.predicate, view) == seen, where


def test_conditions_that_fail_on_some_rows_count_as_not_true(tmp_path: Path) -> None:
    view = view_of(SCORES, list(VIEW_OF_TABLE_1D), tmp_path)
    for where in (
        "cast(nationality as int) = 3",
        "age % (age - age) = 0",
        "2.28 * age * 1e300 * 1e300 > 0 and age < 0",
        "9223372036854775807 + age > 0 and age < 0",
    ):
        query = parse(f"select count(*) from t where {where}", SCORES)
        check(query, view)
        assert rows_counted(query.predicate, view) == 0
        assert domain_count(query.predicate, SCORES, view) == 0


# ---------------------------------------------------------------------- networks of conditions


def numbers_schema(size: int, count: int) -> Schema:
    names = "abcdefgh"[:count]
    return Schema(tuple(Attribute(c, "integer", Range(1, size)) for c in names))


def counted(where: str, schema: Schema, view: ReleaseRows) -> int | float:
    return domain_count(
        parse(f"select count(*) from t where {where}", schema).predicate, schema, view
    )


def test_example_4_2_a_chain(tmp_path: Path) -> None:
    """P1(a,b) and P2(b,c) and P3(c,d) on domains of 1,000: 10¹² tuples, three small tensors.

    VLDB 2007 prints p(C) as a sum over the shared b and c, where it must be the mean.
    """
    schema = numbers_schema(1000, 4)
    view = view_of(schema, [(1, 1, 1, 1)], tmp_path)
    made = counted("a*a + b*b >= 20 and b < c and (c + d) % 7 = 0", schema, view)
    a, b = np.meshgrid(np.arange(1, 1001), np.arange(1, 1001), indexing="ij")
    first = (a * a + b * b >= 20).sum(axis=0).astype(object)  # of each b
    third = ((a + b) % 7 == 0).sum(axis=1).astype(object)  # of each c
    truth = sum(int(first[i]) * int(third[i + 1 :].sum()) for i in range(1000))
    assert made == truth
    # The third idea: Σ_b Σ_c Pr[P1 | b]·P2(b, c)·Pr[P3 | c]. That is no chance: it is above 1.
    given_b, given_c = first / 1000, third / 1000
    summed = sum(given_b[i] * given_c[i + 1 :].sum() for i in range(1000))
    assert summed > 70_000
    assert summed / (1000 * 1000) == pytest.approx(truth / 1000**4)
    # Example 4.2's formula to the letter, p = 1/m for each pair that satisfies a predicate.
    printed = {m: Fraction(truth, m**3) for m in (1000, 1000**2, 1000**4)}
    assert all(value != Fraction(truth, 1000**4) for value in printed.values())
    assert truth / 1000**4 > 0.07
    assert printed[1000**4] < 1e-24


def test_clauses_do_not_multiply(tmp_path: Path) -> None:
    """A DNF of twenty clauses over shared attributes: inclusion-exclusion would need 2²⁰ terms."""
    schema = numbers_schema(60, 6)
    view = view_of(schema, [(1,) * 6], tmp_path)
    pairs = [("abcdef"[i % 5], "abcdef"[i % 5 + 1], 2 * i + 3) for i in range(20)]
    where = " or ".join(f"({x} + 2*{y} < {k} and {x} <> {y})" for x, y, k in pairs)
    made = counted(where, schema, view)
    rng = np.random.default_rng(0)
    draws = {c: rng.integers(1, 61, 400_000) for c in "abcdef"}
    hit = np.zeros(400_000, dtype=bool)
    for x, y, k in pairs:
        hit |= (draws[x] + 2 * draws[y] < k) & (draws[x] != draws[y])
    share, error = hit.mean(), 6 * np.sqrt(hit.var() / len(hit))
    assert abs(made / schema.size - share) < error


# ---------------------------------------------------------------------- against brute force

SMALL = Schema(
    (
        Attribute("a", "integer", Range(-2, 3)),
        Attribute("b", "integer", Values((0, 1, 5)), null=True),
        Attribute("c", "categorical", Values(("x", "y", "zz"))),
        Attribute("d", "boolean", Values((False, True)), null=True),
    )
)

numbers = st.one_of(
    st.sampled_from(["a", "b", "a + b", "a * b", "a - 1", "abs(a)", "b % 2", "length(c)"]),
    st.integers(-3, 6).map(str),
)
comparisons = st.tuples(numbers, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), numbers).map(
    " ".join
)
atoms = st.one_of(
    comparisons,
    st.sampled_from(
        ["d", "c = 'x'", "c like 'z%'", "c in ('x', 'zz')", "b is null", "d is not null",
         "a between -1 and b", "c > 'x'", "case when d then a else b end > 0", "true", "null = 1",
         "coalesce(b, a) = 1", "a is distinct from b", "upper(c) = 'Y'"]
    ),
)  # fmt: skip
predicates = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: f"({p[0]}) and ({p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}) or ({p[1]})"),
        inner.map(lambda p: f"not ({p})"),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def small(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[ReleaseRows, duckdb.DuckDBPyConnection]:
    rng = np.random.default_rng(0)
    every = list(product(*SMALL))
    rows = [every[i] for i in rng.integers(0, len(every), 500)]
    view = view_of(SMALL, rows, tmp_path_factory.mktemp("small"))
    con = duckdb.connect()
    for name, listed in (("domain", every), ("rows", rows)):
        columns = {a.name: [t[i] for t in listed] for i, a in enumerate(SMALL)}
        con.register(name, pa.table(columns))
    return view, con


@settings(max_examples=rounds(100, 400))
@given(predicate=predicates)
def test_counts_equal_brute_force(
    small: tuple[ReleaseRows, duckdb.DuckDBPyConnection], predicate: str
) -> None:
    """Any nested predicate: the same count as DuckDB on the listed domain and on the rows."""
    view, con = small
    query = parse(f"select count(*) from t where {predicate}", SMALL)
    check(query, view)

    def brute(table: str) -> int:
        sql = f"select count(*) from {table} where {predicate}"
        return int(con.execute(sql).fetchall()[0][0])

    assert domain_count(query.predicate, SMALL, view) == brute("domain")
    assert rows_counted(query.predicate, view) == brute("rows")
