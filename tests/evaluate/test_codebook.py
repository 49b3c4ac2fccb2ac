"""What a codebook does to a table, beside a count by hand; and the rows that few columns find."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from voile.errors import SchemaError, UsageError
from voile.evaluate.codebook import codebook_effects, single_count_errors
from voile.evaluate.risk import most_exposed
from voile.schema import Schema

COIN = random.Random(7)  # noqa: S311
ROWS: list[dict[str, Any]] = [
    {"age": COIN.randrange(15, 99), "pay": round(COIN.uniform(-5, 130), 2),
     "town": COIN.choice(["a", "b", "c", "d", None]), "sex": COIN.choice(["f", "m"])}
    for _ in range(500)
]  # fmt: skip
TABLE = pa.Table.from_pylist(ROWS)


def declared(**more: Any) -> Schema:
    return Schema.from_dict(
        {
            "attributes": [
                {"name": "age", "kind": "integer", "bins": [20, 40, 60, 80], **more},
                {"name": "pay", "kind": "numeric", "bins": [0, 50, 100], **more},
                {"name": "town", "kind": "categorical", "values": ["a", "b", "x"]},
            ]
        }
    )


def test_rows_outside_and_per_bin_are_counted() -> None:
    age, pay, town = codebook_effects(TABLE, declared())
    ages = [row["age"] for row in ROWS]
    assert age.outside == sum(not 20 <= x <= 80 for x in ages) > 0
    edges = [(20, 39), (40, 59), (60, 80)]
    assert [g.rows for g in age.groups] == [sum(a <= x <= b for x in ages) for a, b in edges]
    assert [g.label for g in age.groups] == ["20-39", "40-59", "60-80"]
    assert not age.handled and set(age.examples) <= {str(x) for x in ages if not 20 <= x <= 80}
    pays = [row["pay"] for row in ROWS]
    assert pay.outside == sum(not 0 <= x <= 100 for x in pays)
    assert pay.outside_share == pay.outside / 500
    assert town.nulls == sum(row["town"] is None for row in ROWS)
    assert town.nulls_refused
    assert town.outside == sum(row["town"] in ("c", "d") for row in ROWS)
    assert [g.rows for g in town.groups][2] == 0 and town.below_noise == 1


def test_bias_is_that_of_middles_and_of_the_ends() -> None:
    age, pay, _ = codebook_effects(TABLE, declared(clamp=True))
    assert age.handled and sum(g.rows for g in age.groups) == 500
    middles = {0: 29.5, 1: 49.5, 2: 70.0}
    shown = [middles[min(max((row["age"] - 20) // 20, 0), 2)] for row in ROWS]
    truth = sum(row["age"] for row in ROWS) / 500
    assert age.mean == pytest.approx(truth)
    assert age.bias == pytest.approx(sum(shown) / 500 - truth)
    assert pay.bias == pytest.approx(
        sum(25 if row["pay"] < 50 else 75 for row in ROWS) / 500
        - sum(row["pay"] for row in ROWS) / 500
    )


def test_long_lists_show_those_with_most_rows() -> None:
    schema = Schema.from_dict(
        {"attributes": [{"name": "age", "kind": "integer", "range": [0, 99]}]}
    )
    (age,) = codebook_effects(TABLE, schema)
    counts = Counter(row["age"] for row in ROWS)
    assert len(age.groups) == 60 and age.left_out == 40
    assert age.groups[0].rows == max(counts.values())
    assert age.below_noise == sum(counts[x] < age.noise for x in range(100))


def geometric(epsilon: float) -> float:
    """The standard error of a count with geometric noise of this ε."""
    a = math.exp(-epsilon)
    return math.sqrt(2 * a) / (1 - a)


def test_noise_is_that_of_one_count_with_its_share_of_epsilon() -> None:
    one = Schema.from_dict({"attributes": [{"name": "a", "kind": "integer", "range": [1, 80]}]})
    assert single_count_errors(one)[0] == pytest.approx(geometric(1))
    assert single_count_errors(one, epsilon=0.5)[0] == pytest.approx(geometric(0.5))
    assert single_count_errors(one, rows_per_person=3)[0] == pytest.approx(geometric(1 / 3))
    many = [{"name": f"c{i}", "kind": "integer", "range": [1, 10]} for i in range(30)]
    several = single_count_errors(Schema.from_dict({"attributes": many[:4]}))
    assert max(several) <= geometric(1 / 4) * 1.0001
    # With normal noise, that of many columns grows with the root of their number.
    wide = single_count_errors(Schema.from_dict({"attributes": many}))
    assert several[0] < wide[0] < geometric(1 / 30)


def test_a_kind_that_does_not_fit_is_refused_by_name() -> None:
    wrong = Schema.from_dict({"attributes": [{"name": "sex", "kind": "integer", "range": [0, 1]}]})
    with pytest.raises(SchemaError, match=r"'sex' is categorical .* integer"):
        codebook_effects(TABLE, wrong)
    with pytest.raises(UsageError, match="no column 'six'"):
        codebook_effects(TABLE, Schema.from_dict({"attributes": [
            {"name": "six", "kind": "categorical", "values": ["a"]}]}))  # fmt: skip


def test_a_codebook_as_text_is_the_file(tmp_path: Path) -> None:
    schema = declared()
    schema.save(tmp_path / "c.yaml")
    assert (tmp_path / "c.yaml").read_text(encoding="utf-8") == schema.to_yaml()
    assert Schema.from_yaml(schema.to_yaml()) == schema
    assert codebook_effects(TABLE, tmp_path / "c.yaml") == codebook_effects(TABLE, schema)
    with pytest.raises(SchemaError, match="line 1"):
        Schema.from_yaml("attributes: [")


# ---------------------------------------------------------------------- rows that few columns find


def smallest_set(row: dict[str, Any], columns: list[str]) -> int | None:
    for size in range(1, len(columns) + 1):
        for chosen in itertools.combinations(columns, size):
            alike = sum(all(r[c] == row[c] for c in chosen) for r in ROWS)
            if alike == 1:
                return size
    return None


def test_the_most_exposed_rows_are_alone_with_the_fewest_columns() -> None:
    columns = ["age", "town", "sex"]
    found = most_exposed(TABLE, qi=columns, sensitive="pay", number=25)
    sizes = sorted(filter(None, (smallest_set(row, columns) for row in ROWS)))
    assert [len(one.known) for one in found] == sizes[:25]
    seen = set()
    for one in found:
        alike = [row for row in ROWS
                 if all((str(row[c]) if row[c] is not None else "missing") == v
                        for c, v in one.known.items())]  # fmt: skip
        assert len(alike) == 1 and float(one.learnt["pay"]) == alike[0]["pay"]
        seen.add(id(alike[0]))
        assert all(f"{name} {value}" in one.sentence for name, value in one.known.items())
    assert len(seen) == len(found)


def test_nobody_is_exposed_where_nobody_is_alone() -> None:
    assert most_exposed(TABLE, qi=["sex"]) == []
