"""Boolean functions of two sides: taken apart into counts, against every truth assignment."""

from __future__ import annotations

import itertools

import duckdb
import numpy as np
import pytest

from voile.arrays import Floats
from voile.errors import QueryError, UsageError, VoileError
from voile.remote.sides import SideProducts, products, read_expression
from voile.schema import Attribute, Schema, Values
from voile.schema.attribute import Range


def boolean(name: str, *, null: bool = False) -> Attribute:
    return Attribute(name, "boolean", Values((False, True)), null=null)


A = Schema((boolean("smoker"), boolean("old"), boolean("asked", null=True),
            Attribute("age", "integer", Range(0, 99)),
            Attribute("sex", "categorical", Values(("f", "m")))))  # fmt: skip
B = Schema((boolean("cancer"), boolean("told", null=True),
            Attribute("disease", "categorical", Values(("flu", "gout"))),
            Attribute("visits", "integer", Range(0, 9))))  # fmt: skip
C = Schema((boolean("rich"),))
SERVERS = {"A": A, "B": B, "C": C}


def taken(text: str) -> SideProducts:
    return products(read_expression(text, SERVERS))


def counts(text: str) -> tuple[int, int]:
    found = taken(text).conditions
    return len(found[0]), len(found[1])


# ---------------------------------------------------------------------- brute force


ATOMS = {"A": ["A.smoker", "A.old", "A.asked"], "B": ["B.cancer", "B.told"]}
ROWS = {"A": ("smoker", "old", "asked"), "B": ("cancer", "told")}


def random_expression(rng: np.random.Generator, depth: int) -> str:
    if depth == 0 or rng.random() < 0.15:
        atom = rng.choice(ATOMS["A"] + ATOMS["B"] + ["true", "false", "null"] * (depth < 2))
        return f"({atom})"
    one = random_expression(rng, depth - 1)
    if rng.random() < 0.25:
        return f"(not {one})"
    word = rng.choice(["and", "or", "xor", "=", "<>"])
    return f"({one} {word} {random_expression(rng, depth - 1)})"


def side_rows(side: str) -> list[tuple[bool | None, ...]]:
    schema = SERVERS[side]
    states = [(False, True, None) if schema[n].null else (False, True) for n in ROWS[side]]
    return list(itertools.product(*states))


def evaluated(side: str, condition: str) -> Floats:
    """A count's condition on every row of a side; NULL does not count."""
    columns = ROWS[side]
    listed = ", ".join(
        "(" + ", ".join("NULL::BOOLEAN" if v is None else str(v).lower() for v in row) + ")"
        for row in side_rows(side)
    )
    named = ", ".join(columns)
    sql = f"select coalesce(({condition}), false) from (values {listed}) t({named})"
    return np.array([row[0] for row in duckdb.connect().execute(sql).fetchall()], dtype=np.float64)


def truth(text: str) -> Floats:
    """The function itself, by DuckDB, on every pair of rows; it has no word XOR."""
    spelled = text.replace("xor", "!=").replace("null", "null::boolean")
    for side in "AB":
        for name in ROWS[side]:
            spelled = spelled.replace(f"{side}.{name}", f"{name}")
    found = []
    for one in side_rows("A"):
        for other in side_rows("B"):
            values = ", ".join(
                "NULL::BOOLEAN" if v is None else str(v).lower() for v in (*one, *other)
            )
            found.append(f"({values})")
    named = ", ".join(ROWS["A"] + ROWS["B"])
    sql = f"select coalesce(({spelled}), false) from (values {', '.join(found)}) t({named})"
    flat = np.array([row[0] for row in duckdb.connect().execute(sql).fetchall()], dtype=np.float64)
    return flat.reshape(len(side_rows("A")), len(side_rows("B")))


@pytest.mark.parametrize("seed", range(60))
def test_the_form_is_the_function_on_every_pair_of_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    text = random_expression(rng, 3)
    expression = read_expression(text, SERVERS)
    found = products(expression)
    names = (*expression.sides, "A", "B")
    sides = names[:2] if len(expression.sides) == 2 else ("A", "B")
    conditions = dict(zip(expression.sides, found.conditions, strict=False))
    one, other = (
        np.array([evaluated(s, c) for c in conditions.get(s, ())]).reshape(-1, len(side_rows(s)))
        for s in sides
    )
    form = found.form
    if expression.sides == ("B",):  # of one side only, which then is the left one
        left, right = np.zeros(0), form.left
        product = np.zeros((0, len(right)))
    else:
        left, right, product = form.left, form.right, form.product
        right = right if len(right) == len(other) else np.zeros(len(other))
        product = product.reshape(len(left), len(right))
    value = (
        form.constant + (left @ one)[:, None] + (right @ other)[None, :] + one.T @ product @ other
    )
    assert value == pytest.approx(truth(text))


@pytest.mark.parametrize("seed", range(60, 120))
def test_as_few_counts_as_classes(seed: int) -> None:
    """r classes of one side need r − 1 counts there and no more than r on the other."""
    expression = read_expression(random_expression(np.random.default_rng(seed), 3), SERVERS)
    if expression.sides != ("A", "B"):
        return
    table = truth(expression.text)
    rows, columns = len(np.unique(table, axis=0)), len(np.unique(table, axis=1).T)
    one, other = (len(c) for c in products(expression).conditions)
    assert (one <= rows - 1 and other <= rows) or (other <= columns - 1 and one <= columns)


# ---------------------------------------------------------------------- what it costs


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("A.smoker and not B.cancer", (1, 1)),
        ("A.smoker xor B.cancer", (1, 1)),
        ("not (A.smoker xor not B.cancer)", (1, 1)),
        ("A.smoker or B.cancer", (1, 1)),
        ("A.smoker = B.cancer", (1, 1)),
        ("A.age > 40 <> B.disease = 'flu'", (1, 1)),
        ("(A.age > 40) <> (B.disease = 'flu')", (1, 1)),
        ("A.smoker and B.cancer and A.age > 30 and B.visits < 3", (1, 1)),
        ("(A.smoker and B.cancer) or (not A.smoker and B.visits = 1)", (1, 2)),
        ("(A.smoker and B.cancer) or (A.old and B.visits = 1)", (3, 3)),
        ("A.smoker", (1, 0)),
        ("B.cancer", (1, 0)),
        ("A.smoker and (B.cancer or true)", (1, 0)),
        ("A.smoker or true", (0, 0)),
        ("A.smoker and B.cancer and null", (0, 0)),
        ("A.asked and B.cancer", (1, 1)),
        ("A.asked xor B.cancer", (2, 1)),
    ],
)
def test_what_is_counted(text: str, cost: tuple[int, int]) -> None:
    assert counts(text) == cost


def test_not_is_not_counted_apart() -> None:
    """Counts of a condition and of its complement are one, so that stored answers are found."""
    assert (
        taken("A.smoker and not B.cancer").conditions == taken("A.smoker and B.cancer").conditions
    )
    assert taken("A.smoker and B.cancer").conditions == (('"smoker"',), ('"cancer"',))


def test_a_side_may_be_anything_that_its_server_can_count() -> None:
    found = taken("A.age + 1 between 20 and 30 and lower(A.sex) in ('f', 'x') and B.visits % 2 = 1")
    assert len(found.conditions[0]) == len(found.conditions[1]) == 1
    assert "BETWEEN" in found.conditions[0][0]
    assert "IN" in found.conditions[0][0]


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A.smoker and B.cancer and C.rich", "does not extend to ternary functions"),
        ("A.age > B.visits", "reads A and B at once"),
        ("smoker and B.cancer", "write A.smoker"),
        ("A.smoker and D.cancer", "there is no server 'D'"),
        ("A.smokr and B.cancer", "did you mean 'smoker'"),
        ("A.age and B.cancer", "is no condition"),
        ("A.smoker and 3", "reads no server"),
        ("", "the expression is empty"),
        ("   ", "the expression is empty"),
        ("A.smoker and", "not SQL"),
        ("A.smoker; B.cancer", "2 expressions"),
        ("select 1", "is no condition"),
        ("drop table t", "is no condition"),
        ("A.smoker and exists (select 1)", "EXISTS"),
        ("count(A.age) > 3 and B.cancer", "more than one row"),
        ("A.age > random() and B.cancer", "not a function of the row"),
        ("A.age = 'x' and B.cancer", "is a number"),
        ("A.smoker xor B.cancer and A.old", "read in two ways"),
        ("case when A.smoker then B.cancer end", "is no condition"),
        ("case when A.smoker then 1 else B.visits end = 1", "reads A and B at once"),
        ("A.smoker as x", "is no condition"),
        ("A.smoker and (B.cancer", "not SQL"),
        ("A.smoker and x.A.smoker and B.cancer", "too many parts"),
    ],
)
def test_refusals_say_what_and_where(text: str, words: str) -> None:
    with pytest.raises(VoileError) as refused:
        taken(text)
    assert isinstance(refused.value, QueryError | UsageError)
    assert words in str(refused.value)
    assert refused.value.hint


def test_a_value_that_does_not_occur_is_remarked() -> None:
    found = read_expression("A.sex = 'fm' and B.cancer", SERVERS)
    assert "A: sex has no value 'fm'" in found.remarks[0]
    assert not read_expression("A.sex = 'f' and B.cancer", SERVERS).remarks


def test_alternating_conditions_are_bounded() -> None:
    text = " and ".join(f"(A.age > {i} or B.visits > {i % 9})" for i in range(14))
    with pytest.raises(UsageError, match="14 conditions on columns of A"):
        taken(text)
    together = " or ".join(f"A.age = {i}" for i in range(14))
    assert counts(f"({together}) and B.cancer") == (1, 1)


def test_deep_and_long_expressions_are_refused() -> None:
    with pytest.raises(QueryError):
        taken("(" * 3000 + "A.smoker" + ")" * 3000)
    with pytest.raises(QueryError, match="longer"):
        taken("A.smoker and " * 2000 + "B.cancer")
