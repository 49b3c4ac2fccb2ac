"""What a release's rows owe, against brute force on the same rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from tests.engines.conftest import ODD, Tables, domain
from voile.engines import connect, open_domain, open_rows
from voile.engines import duckdb as duckdb_engine
from voile.engines.duckdb.rows import DuckRows
from voile.engines.duckdb.sql import connected
from voile.engines.duckdb.table import DuckTable
from voile.engines.rows import ReleaseRows
from voile.errors import QueryError, ReleaseError, UsageError
from voile.query import parse
from voile.query.predicate import Atom, Expression, Predicate, Term
from voile.query.rows import HISTORY, SCORE, SPREAD, Flags, ShiftedValue, WeightedTerm
from voile.query.value_types import ValueKind
from voile.schema import Attribute, Bins, Range, Schema, TupleIndex, Values

SCHEMA = domain(null=True).select(["age", "sex", "income", ODD])
COUNTS = ((0,), (1,), (700, 0, 1300))
"""Rows of the files of a release."""


def codes(count: int, seed: int = 0) -> list[npt.NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, size, count) for size in SCHEMA.sizes]


def release(made: Tables, folder: Path, counts: tuple[int, ...]) -> tuple[ReleaseRows, list[Any]]:
    """Rows in several files, and the same as codes."""
    parts = [codes(count, seed) for seed, count in enumerate(counts)]
    whole = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return made.rows(folder, SCHEMA, parts), whole


def values(known: list[Any], name: str) -> list[Any]:
    place = SCHEMA.names.index(name)
    listed = list(SCHEMA[name])
    return [listed[code] for code in known[place]]


COUNT = WeightedTerm(Term())
SCORES, SPREADS = WeightedTerm(Term(), SCORE), WeightedTerm(Term(), SPREAD)


def expression(text: str) -> Expression:
    (found,) = parse(f"select count(*) from t group by {text}", SCHEMA).groups
    return found


def condition(text: str) -> Predicate:
    found = parse(f"select count(*) from t where {text}", SCHEMA).predicate
    assert found is not None
    return found


def atom(text: str) -> Atom:
    found = condition(text)
    assert isinstance(found, Atom)
    return found


def total_of(text: str) -> WeightedTerm:
    return WeightedTerm(Term(None, (expression(text),)))


# ---------------------------------------------------------------------- reading them


@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_codes_and_keys(made: Tables, tmp_path: Path, counts: tuple[int, ...]) -> None:
    rows, known = release(made, tmp_path, counts)
    index = TupleIndex(SCHEMA.sizes)
    assert sorted(rows.keys()) == sorted(index.encode(known))
    batches = list(rows.coded())
    assert sum(len(batch[0]) for batch in batches) == sum(counts)
    found = rows.codes()
    assert [column.dtype for column in found] == [np.int32] * len(known)
    assert sorted(index.encode(found)) == sorted(index.encode(known))


def test_counts_of_tuples(made: Tables, tmp_path: Path) -> None:
    rows, known = release(made, tmp_path, (2000,))
    asked = [np.concatenate([column[:50], column[:50]]) for column in known]
    listed = list(zip(*known, strict=True))
    expected = [listed.count(one) for one in zip(*asked, strict=True)]
    assert rows.counts(asked).tolist() == expected
    nothing = [np.zeros(0, np.int64) for _ in known]
    assert rows.counts(nothing).tolist() == []


@pytest.mark.parametrize("narrow", ["age", "sex", "income", ODD])
def test_values_outside_the_domain(made: Tables, tmp_path: Path, narrow: str) -> None:
    rows, _ = release(made, tmp_path, (500,))
    assert rows.outside() is None
    smaller: dict[str, Any] = {
        "age": Range(17, 20),
        "sex": Values(("Female", "Male")),
        "income": Bins((-1.0, -0.5)),
        ODD: Range(0, 1),
    }
    declared = Schema(
        tuple(
            Attribute(a.name, a.kind, smaller[a.name] if a.name == narrow else a.domain, null=True)
            for a in SCHEMA
        )
    )
    files = sorted(tmp_path.glob("*.parquet"))
    assert made.engine.open_rows(files, declared).outside() == narrow


def test_a_null_outside_the_domain(made: Tables, tmp_path: Path) -> None:
    release(made, tmp_path, (500,))
    files = sorted(tmp_path.glob("*.parquet"))
    assert made.engine.open_rows(files, domain(null=False).select(SCHEMA.names)).outside() == "age"


def test_files_that_are_damaged(made: Tables, tmp_path: Path) -> None:
    rows, _ = release(made, tmp_path, (500,))
    for file in tmp_path.glob("*.parquet"):
        file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ReleaseError):
        rows.keys()
    with pytest.raises(ReleaseError):
        made.engine.open_rows(sorted(tmp_path.glob("*.parquet")), SCHEMA)


# ---------------------------------------------------------------------- asking them


def test_sums_by_group(made: Tables, tmp_path: Path) -> None:
    rows, known = release(made, tmp_path, (700, 1300))
    asked = condition("age < 21"), [expression("sex")], [COUNT, total_of("age")]
    found = rows.sums(*asked)
    expected: dict[Any, list[float]] = {}
    for age, sex in zip(values(known, "age"), values(known, "sex"), strict=True):
        if age is not None and age < 21:
            total = expected.setdefault(sex, [0.0, 0.0])
            total[0] += 1
            total[1] += age
    assert dict(zip(found.keys[0], found.sums.tolist(), strict=True)) == expected
    again = rows.sums(*asked)
    assert sorted(map(str, again.keys[0])) == sorted(map(str, found.keys[0]))


def test_sums_without_rows(made: Tables, tmp_path: Path) -> None:
    rows, _ = release(made, tmp_path, (0,))
    assert rows.sums(None, [], [COUNT]).sums.tolist() == [[0.0]]
    assert rows.sums(None, [expression("sex")], [COUNT]).sums.shape == (0, 1)


def test_histograms(made: Tables, tmp_path: Path) -> None:
    rows, known = release(made, tmp_path, (700, 1300))
    flags = Flags((atom("age > 20"), atom("sex = 'Male'")), expression("age"))
    shifted = ShiftedValue(expression("age"), 20.0)
    found = rows.histogram([expression("sex"), flags], [[], [shifted, shifted]])
    assert found.column_names == ["k0", "k1", "s0", "s1"]
    expected: dict[Any, list[float]] = {}
    for age, sex in zip(values(known, "age"), values(known, "sex"), strict=True):
        bits = (age is not None and age > 20) + 2 * (sex == "Male") + 4 * (age is not None)
        total = expected.setdefault((sex, bits), [0, 0.0])
        total[0] += 1
        total[1] += 0 if age is None else (age - 20) ** 2
    listed = zip(*(found[name].to_pylist() for name in ("k0", "k1")), strict=True)
    sums = [[n, s or 0.0] for n, s in zip(*(found[name].to_pylist() for name in ("s0", "s1")),
                                          strict=True)]  # fmt: skip
    assert dict(zip(listed, sums, strict=True)) == expected


def test_keys_that_read_no_column(made: Tables, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    rows, known = release(made, tmp_path, (300,))
    nothing, _ = release(made, tmp_path / "none", (0,))
    constant = expression("1 + 1")
    assert rows.sums(None, [constant], [COUNT]).sums.tolist() == [[len(known[0])]]
    assert nothing.sums(None, [constant], [COUNT]).sums.shape == (0, 1)
    assert rows.histogram([], [[]]).to_pydict() == {"s0": [300]}
    assert nothing.histogram([], [[]]).to_pydict() == {"s0": [0]}
    assert nothing.histogram([constant], [[]]).num_rows == 0


def test_the_same_question_after_others(made: Tables, tmp_path: Path) -> None:
    """What is remembered of rows is never taken for something else."""
    rows, known = release(made, tmp_path, (700, 1300))
    ages, sexes = values(known, "age"), values(known, "sex")
    for _ in range(2):
        for text, column in (("age", ages), ("sex", sexes)):
            found = rows.sums(condition("sex = 'Male'"), [expression(text)], [COUNT])
            expected = Counter(v for v, sex in zip(column, sexes, strict=True) if sex == "Male")
            assert dict(zip(found.keys[0], found.sums[:, 0], strict=True)) == expected
        both = rows.sums(None, [expression("sex"), expression("age")], [COUNT])
        assert dict(zip(zip(*both.keys, strict=True), both.sums[:, 0], strict=True)) == Counter(
            zip(sexes, ages, strict=True)
        )
        assert rows.sums(None, [], [COUNT, total_of("age")]).sums.tolist() == [
            [2000, sum(age for age in ages if age is not None)]
        ]


def test_the_sign_of_a_zero(made: Tables, tmp_path: Path) -> None:
    """A text of it shows the sign, which is the one that the domain lists."""
    for listed, shown in (((-0.0, 1.0), "-0.0"), ((0.0, 1.0), "0.0")):
        schema = Schema((Attribute("x", "numeric", Values(listed)),))
        folder = tmp_path / shown
        folder.mkdir()
        rows = made.rows(folder, schema, [[np.array([0, 1, 0])]])
        (text,) = parse("select count(*) from t group by cast(x as varchar)", schema).groups
        found = rows.sums(None, [text], [COUNT])
        assert dict(zip(found.keys[0], found.sums[:, 0], strict=True)) == {shown: 2, "1.0": 1}
        assert rows.outside() is None


def test_rows_that_are_scored(made: Tables, tmp_path: Path) -> None:
    """Each row of the files scores 1; those beside say what they score."""
    rows, known = release(made, tmp_path, (100,))
    assert not rows.scored
    beside = pa.table(
        {
            "age": pa.array([17, None], pa.int64()),
            "sex": ["Male", None],
            "income": [0.25, None],
            ODD: pa.array([1, None], pa.int64()),
            SCORE: [3.5, -1.0],
            SPREAD: [0.5, 0.25],
        }
    )
    files = sorted(tmp_path.glob("*.parquet"))
    scored = made.engine.open_rows(files, SCHEMA, beside=beside)
    assert scored.scored
    found = scored.sums(
        None, [], [COUNT, WeightedTerm(Term(), SCORE), WeightedTerm(Term(), SPREAD)]
    )
    assert found.sums.tolist() == [[102.0, len(known[0]) + 2.5, 0.75]]


def test_scores_of_histories(made: Tables, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    rows = pa.table({"x": pa.array([0, 1, 1], pa.int64()), HISTORY: ["a", "b", "a"]})
    pq.write_table(rows, tmp_path / "h.parquet")
    scores = pa.table({HISTORY: ["a", "b"], SCORE: [2.0, 10.0], SPREAD: [0.5, 1.0]})
    schema = Schema((Attribute("x", "integer", Range(0, 1)),))
    opened = made.engine.open_rows([tmp_path / "h.parquet"], schema, scores=scores)
    (x,) = parse("select count(*) from t group by x", schema).groups
    found = opened.sums(None, [x], [SCORES, SPREADS])
    assert dict(zip(found.keys[0], found.sums.tolist(), strict=True)) == {0: [2, 0.5], 1: [12, 1.5]}


def test_types_of_expressions(made: Tables, tmp_path: Path) -> None:
    rows, _ = release(made, tmp_path, (5,))
    asked = [expression(text) for text in ("age > 20", "sex", "age + 1", "income")]
    kinds = [found.kind for found in rows.types(asked)]
    assert kinds == [ValueKind.BOOLEAN, ValueKind.TEXT, ValueKind.INTEGER, ValueKind.NUMBER]
    with pytest.raises(QueryError, match=r"(?i)year\(age\) does not fit the table"):
        rows.types([expression("age"), expression("year(age)")])


def test_tables_of_the_analyst(made: Tables, tmp_path: Path) -> None:
    rows, known = release(made, tmp_path, (300,))
    assert rows.add_table("old", pa.table({"which": [23, 24]})) == ("which",)
    joined = "select count(*) from t where age in (select which from old)"
    found = rows.sums(parse(joined, SCHEMA, {"old": ("which",)}).predicate, [], [COUNT])
    assert found.sums[0, 0] == sum(age in (23, 24) for age in values(known, "age"))
    with pytest.raises(UsageError, match="is no name for a table"):
        rows.add_table("old ages", pa.table({"which": [1]}))


# ---------------------------------------------------------------------- the public domain


def test_expressions_on_the_domain(made: Tables, tmp_path: Path) -> None:
    rows, _ = release(made, tmp_path, (5,))
    for asked in (rows, open_domain(SCHEMA)):
        doubled, both = asked.domain.evaluate(
            [expression("age * 2"), expression("age + income > 20")]
        )
        assert doubled.to_pylist() == [*(2 * age for age in range(17, 25)), None]
        assert len(both) == SCHEMA["age"].size * SCHEMA["income"].size


def test_a_condition_that_cuts_a_bin(made: Tables, tmp_path: Path) -> None:
    rows, _ = release(made, tmp_path, (5,))
    for asked in (rows, open_domain(SCHEMA)):
        assert asked.cuts_a_bin(expression("income > 0.25"))
        assert not asked.cuts_a_bin(expression("income >= 0.5"))
        assert not asked.cuts_a_bin(expression("age > 20"))


def test_what_cannot_be_computed_is_null() -> None:
    fails = expression("cast(sex as integer)")
    (found,) = open_domain(SCHEMA).domain.evaluate([fails])
    assert len(found) == found.null_count == SCHEMA["sex"].size


def test_duckdb_shows_no_progress_of_its_own(tmp_path: Path) -> None:
    """Its bar would stand before the JSON of a slow query."""
    table, rows = connect(pa.table({"x": [1]})), open_rows([], SCHEMA)
    assert isinstance(table, DuckTable)
    assert isinstance(rows, DuckRows)
    with connected(tmp_path / "kept.duckdb") as kept:
        for con in (table._con, rows._con, kept):
            settings = con.execute(
                "SELECT name, value FROM duckdb_settings() WHERE name LIKE 'enable_progress_bar%'"
            ).fetchall()
            assert sorted(settings) == [
                ("enable_progress_bar", "false"),
                ("enable_progress_bar_print", "false"),
            ]


def test_only_one_place_connects_to_duckdb() -> None:
    """Where the progress bar is switched off."""
    folder = Path(duckdb_engine.__file__).parent
    found = [p.name for p in sorted(folder.rglob("*.py")) if "duckdb.connect(" in p.read_text()]
    assert found == ["sql.py"]
