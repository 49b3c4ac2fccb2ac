"""Rows that are summed as combinations, against the same rows one by one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.engines.conftest import ODD, codes_of, domain, people
from voile.engines.duckdb import weighted
from voile.engines.duckdb.rows import DuckRows
from voile.engines.duckdb.weighted import WeightedRows
from voile.kinds.parquet import tuples
from voile.query import parse
from voile.query.predicate import Expression, Term
from voile.query.quoting import quote_identifier
from voile.query.rows import HISTORY, SCORE, SPREAD, Flags, RowSums, ShiftedValue, WeightedTerm
from voile.schema import Attribute, Range, Schema

SCHEMA = domain(null=True)
GROUPS = [
    "age", "sex", "floor(age / 3)", quote_identifier(ODD),
    "year(day)", "member", "income > 0", "age + income", "upper(sex)", "1 + 1",
]  # fmt: skip
CONDITIONS = [
    None, "age < 20", "sex in ('Male', 'Female')", "sex is null or member", "income * age > 3",
    "cast(sex as integer) = 3", "case when member then age > 20 else income < 0 end",
    "day > date '2024-01-31'", "age in (select which from mine)", "1 = 1",
]  # fmt: skip


class Source:
    """Groups rows, and remembers by which columns it was asked to."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows, self.asked = rows, list[tuple[str, ...]]()

    def __call__(self, names: tuple[str, ...], copies: str) -> pa.Table:
        self.asked.append(names)
        counted = Counter(zip(*(self.rows[name].to_pylist() for name in names), strict=True))
        if not names:
            counted = Counter({(): self.rows.num_rows} if self.rows.num_rows else {})
        fields = [pa.field(name, self.rows.schema.field(name).type) for name in names]
        columns = list(zip(*counted, strict=True)) or [()] * len(names)
        return pa.table(
            [*(pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)),
             pa.array(counted.values(), pa.int64())],
            schema=pa.schema([*fields, pa.field(copies, pa.int64())]),
        )  # fmt: skip


def expression(text: str) -> Expression:
    return parse(f"select count(*) from t group by {text}", SCHEMA, {"mine": ("which",)}).groups[0]


def condition(text: str | None) -> Any:
    where = f" where {text}" if text else ""
    return parse(f"select count(*) from t{where}", SCHEMA, {"mine": ("which",)}).predicate


def rows_of(count: int, seed: int) -> pa.Table:
    return tuples(SCHEMA, codes_of(people(count, seed), SCHEMA))


def both(folder: Path, rows: pa.Table, **more: Any) -> tuple[DuckRows, WeightedRows, Source]:
    pq.write_table(rows, folder / "rows.parquet")
    source = Source(rows)
    pair = DuckRows([folder / "rows.parquet"], SCHEMA, **more), WeightedRows(source, SCHEMA, **more)
    for one in pair:
        one.add_table("mine", pa.table({"which": [18, 21, 24]}))
    return (*pair, source)


def same(one: RowSums, other: RowSums) -> None:
    def listed(found: RowSums) -> dict[Any, Any]:
        keys = zip(*found.keys, strict=True) if found.keys else [()] * len(found.sums)
        return {tuple(map(str, key)): sums for key, sums in zip(keys, found.sums, strict=True)}

    left, right = listed(one), listed(other)
    assert left.keys() == right.keys()
    for key, sums in left.items():
        np.testing.assert_allclose(right[key], sums, rtol=1e-12, atol=1e-12)
        assert right[key][0] == sums[0]  # rows, to the last digit


def random_question(rng: np.random.Generator, weights: tuple[str, ...]) -> tuple[Any, Any, Any]:
    groups = rng.choice(GROUPS, rng.integers(0, 3), replace=False)
    where = condition(CONDITIONS[rng.integers(len(CONDITIONS))])
    sums = [WeightedTerm(Term())]
    for weight in weights:
        inner = condition(CONDITIONS[rng.integers(len(CONDITIONS))])
        values = tuple(map(expression, rng.choice(["age", "income", "age * 2"], rng.integers(3))))
        sums.append(WeightedTerm(Term(inner, values), weight))
    return where, [expression(text) for text in groups], sums


@pytest.mark.parametrize("whole", [0, 2**17], ids=["by question", "as a whole"])
@pytest.mark.parametrize("count", [0, 1, 700])
def test_random_sums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, whole: int
) -> None:
    monkeypatch.setattr(weighted, "WHOLE", whole)
    direct, held, _ = both(tmp_path, rows_of(count, 1))
    rng = np.random.default_rng(count)
    for _ in range(60):
        asked = random_question(rng, ("", ""))
        same(direct.sums(*asked), held.sums(*asked))


def test_random_sums_of_rows_with_histories(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = rows_of(500, 2)
    rows = rows.append_column(HISTORY, pa.array(rng.choice(["0", "1,2", "5"], 500)))
    scores = pa.table({HISTORY: ["0", "1,2", "5"], SCORE: [0.25, -1.5, 7.0], SPREAD: [0.0, 2, 0.5]})
    direct, held, _ = both(tmp_path, rows, scores=scores)
    assert direct.scored and held.scored
    for _ in range(60):
        asked = random_question(rng, (SCORE, SPREAD))
        same(direct.sums(*asked), held.sums(*asked))


def test_random_sums_with_rows_beside(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    beside = rows_of(40, 9)
    beside = beside.append_column(SCORE, pa.array(rng.normal(size=40)))
    beside = beside.append_column(SPREAD, pa.array(rng.random(40)))
    direct, held, _ = both(tmp_path, rows_of(300, 5), beside=beside)
    assert direct.scored and held.scored
    for _ in range(60):
        asked = random_question(rng, (SCORE, SPREAD))
        same(direct.sums(*asked), held.sums(*asked))


def test_random_histograms(tmp_path: Path) -> None:
    direct, held, _ = both(tmp_path, rows_of(700, 6))
    rng = np.random.default_rng(5)
    atoms = [condition(text) for text in ("age < 20", "member", "sex = 'Male'")]
    for _ in range(40):
        keys: list[Any] = [expression(text) for text in rng.choice(GROUPS, rng.integers(0, 3))]
        keys.append(Flags(tuple(atoms[: rng.integers(4)]), expression("income")))
        value = ShiftedValue(expression("age"), 20.5)
        products = [[], [value], [value, value, ShiftedValue(expression("income"), 0.1)]]
        names = [(f"k{i}", "ascending") for i in range(len(keys))]
        one, other = (rows.histogram(keys, products).sort_by(names) for rows in (direct, held))
        assert one.schema.names == other.schema.names
        for name in one.column_names:
            if name.startswith("k") or name == "s0":
                assert one[name].to_pylist() == other[name].to_pylist()
                assert one[name].type == other[name].type
            else:
                np.testing.assert_allclose(one[name], other[name], rtol=1e-12, atol=1e-9)


def test_what_was_brought_serves_other_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighted, "WHOLE", 0)
    _, held, source = both(tmp_path, rows_of(400, 7))
    count = [WeightedTerm(Term())]
    held.sums(condition("age < 20"), [expression("sex")], count)
    assert source.asked == [("age", "sex")]
    held.sums(condition("age > 18"), [], count)
    held.sums(None, [expression("upper(sex)")], count)
    held.sums(None, [], count)
    assert source.asked == [("age", "sex")]
    held.sums(None, [expression("member")], count)
    assert source.asked == [("age", "sex"), ("member",)]


def test_few_combinations_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted, "WHOLE", 0)
    monkeypatch.setattr(weighted, "KEPT", 12)
    direct, held, source = both(tmp_path, rows_of(400, 8))
    for text in ("age", "sex", "member", "day", "age", "age * 2", "sex", "day") * 2:
        asked = condition("1 = 1"), [expression(text)], [WeightedTerm(Term())]
        same(direct.sums(*asked), held.sums(*asked))
    assert len(source.asked) > 4  # some came again
    assert sum(table.rows for table in held._held.values()) <= 12


def test_tables_with_too_many_combinations_are_not_derived_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighted, "DERIVED", 3)
    direct, held, source = both(tmp_path, rows_of(100, 8))
    for text in ("age", "sex", "member"):
        asked = None, [expression(text)], [WeightedTerm(Term())]
        same(direct.sums(*asked), held.sums(*asked))
    assert [set(names) for names in source.asked[1:]] == [{"age"}, {"sex"}, {"member"}]


def test_a_column_that_is_called_like_the_number_of_rows() -> None:
    schema = Schema((Attribute("voile_rows", "integer", Range(0, 9)),))
    held = WeightedRows(Source(pa.table({"voile_rows": [3, 3, 9]})), schema)
    (group,) = parse("select count(*) from t group by voile_rows", schema).groups
    found = held.sums(None, [group], [WeightedTerm(Term(None, (group,)))])
    assert dict(zip(found.keys[0], found.sums[:, 0], strict=True)) == {3: 6, 9: 9}
