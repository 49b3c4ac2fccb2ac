"""Domains, codebooks and the numbering of tuples."""

from __future__ import annotations

import datetime as dt
import io
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voile.errors import SchemaError, UsageError
from voile.schema import Attribute, Bins, Range, Schema, TupleIndex, Values
from voile.schema.attribute import attribute_from_dict
from voile.schema.infer import nice_bins

COLOUR = Attribute("colour", "categorical", Values(("red", "green", "blue")))
AGE = Attribute("age", "integer", Range(20, 39))
DAY = Attribute("day", "date", Range(dt.date(2024, 2, 27), dt.date(2024, 3, 1)))
WEIGHT = Attribute("weight", "numeric", Bins((0.0, 10.0, 20.0, 50.0)), null=True)


def test_sizes_multiply_and_null_is_one_more_value() -> None:
    schema = Schema((COLOUR, AGE, DAY, WEIGHT))
    assert schema.sizes == [3, 20, 4, 4]
    assert schema.size == 3 * 20 * 4 * 4
    assert list(DAY)[-1] == dt.date(2024, 3, 1)
    assert list(WEIGHT) == [5.0, 15.0, 35.0, None]


def test_size_is_exact_beyond_machine_words() -> None:
    bit = [Attribute(f"b{i}", "boolean", Values((False, True))) for i in range(200)]
    assert Schema(tuple(bit)).size == 2**200


def test_codebook_round_trip(tmp_path: Path) -> None:
    odd = Attribute('sp ace "q" é', "categorical", Values(("a", "yes", "1", "")), ordered=False)
    schema = Schema((COLOUR, AGE, DAY, WEIGHT, odd))
    schema.save(tmp_path / "schema.yaml")
    assert Schema.open(tmp_path / "schema.yaml") == schema
    assert (tmp_path / "schema.yaml").read_text().startswith("# Codebook")
    assert list(tmp_path.iterdir()) == [tmp_path / "schema.yaml"]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"kind": "integer", "range": [1, 2]}, "no name"),
        ({"name": True, "kind": "integer", "range": [1, 2]}, "True is not text"),
        ({"name": "a", "range": [1, 2]}, "has no kind"),
        ({"name": "a", "kind": "integer", "range": [-(2**63), 2**63 - 1]}, "more than can be"),
        ({"name": "a", "kind": "int", "range": [1, 2]}, "kind 'int' is not known"),
        ({"name": "a", "kind": "integer"}, "no domain"),
        ({"name": "a", "kind": "integer", "range": [1, 2], "values": [1]}, "values and range"),
        ({"name": "a", "kind": "integer", "values": [1, "2"]}, "'2' is not of kind integer"),
        ({"name": "a", "kind": "categorical", "values": [True]}, "True is not of kind categorical"),
        ({"name": "a", "kind": "integer", "values": [1, 1]}, "lists 1 twice"),
        ({"name": "a", "kind": "integer", "range": [3, 1]}, "from 3 down to 1"),
        ({"name": "a", "kind": "numeric", "bins": [3, 1]}, "do not increase"),
        ({"name": "a", "kind": "boolean", "bins": [True, False]}, "bins are for numbers and dates"),
        ({"name": "a", "kind": "integer", "bins": [1, 2**60]}, "not whole numbers up to"),
        ({"name": "a", "kind": "date", "values": ["2024-13-01"]}, "'2024-13-01' is not of kind"),
        ({"name": "a", "kind": "integer", "range": [1, 2], "puplic": 1}, "unknown key 'puplic'"),
        ({"name": "a", "kind": "integer", "range": [1, 2], "public": "no"}, "public is 'no'"),
        ({"name": "a", "kind": "integer", "range": [1, 2], "null": "x"}, "null is 'x'"),
        ({"name": "a", "kind": "integer", "values": 7}, "values must be a list"),
        ({"name": "a", "kind": "integer", "range": [0, 2**70]}, "1180591620717411303424 is not of"),
    ],
)
def test_codebook_errors_name_the_attribute_and_value(entry: dict[str, object], says: str) -> None:
    with pytest.raises(SchemaError, match=says.replace("[", r"\[")):
        attribute_from_dict(entry)


def test_a_codebook_is_not_overwritten_by_accident(tmp_path: Path) -> None:
    path = tmp_path / "schema.yaml"
    Schema((AGE,)).save(path)
    with pytest.raises(UsageError, match="exists already"):
        Schema((COLOUR,)).save(path)
    Schema((COLOUR,)).save(path, overwrite=True)
    assert Schema.open(path).names == ["colour"]
    with pytest.raises(UsageError, match="is a folder"):
        Schema((AGE,)).save(tmp_path, overwrite=True)
    with pytest.raises(UsageError, match="cannot write"):
        Schema((AGE,)).save(tmp_path / "none" / "x.yaml")
    assert [p.name for p in tmp_path.iterdir()] == ["schema.yaml"]


def test_names_with_markup_are_shown_as_they_are() -> None:
    from rich.console import Console

    schema = Schema((Attribute("[/x]", "categorical", Values(("[red]k", "b"))),))
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(schema)
    shown = console.export_text()
    assert "[/x]" in shown
    assert "[red]k" in shown


def test_an_unquoted_null_key_is_understood(tmp_path: Path) -> None:
    text = "attributes:\n- {name: a, kind: integer, range: [1, 2], null: true}\n"
    (tmp_path / "s.yaml").write_text(text)
    assert Schema.open(tmp_path / "s.yaml")["a"].null


def test_same_name_in_another_case_is_refused() -> None:
    with pytest.raises(SchemaError, match="'age' and 'AGE'"):
        Schema((AGE, Attribute("AGE", "integer", Range(1, 2))))


def test_unknown_attribute_is_named_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'colour'"):
        Schema((COLOUR, AGE))["color"]


def test_broken_codebook_files(tmp_path: Path) -> None:
    for text, says in [
        ("a: [", "not a readable"),
        ("a: 2023-02-30", "day is out of range"),
        ("- 1", "mapping"),
        ("x: 1", "attributes"),
    ]:
        (tmp_path / "s.yaml").write_text(text)
        with pytest.raises(SchemaError, match=says) as caught:
            Schema.open(tmp_path / "s.yaml")
        assert "s.yaml" in caught.value.message
    with pytest.raises(UsageError, match="no schema file"):
        Schema.open(tmp_path / "none.yaml")


# ---------------------------------------------------------------------- numbering


def test_small_domain_is_numbered_in_order() -> None:
    sizes = [3, 2, 4]
    tuples = np.array(list(product(*map(range, sizes))))
    keys = TupleIndex(sizes).encode([tuples[:, i] for i in range(3)])
    assert keys.tolist() == list(range(24))


@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=12), st.integers(0, 2**32))
def test_keys_decode_back_and_sort_as_tuples_do(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    index = TupleIndex(sizes)
    codes = [rng.integers(0, size, 50) for size in sizes]
    keys = index.encode(codes)
    for code, back in zip(codes, index.decode(keys), strict=True):
        assert (code == back).all()
    order = sorted(range(50), key=lambda i: tuple(int(code[i]) for code in codes))
    assert (np.sort(keys) == keys[order]).all()


def test_limbs_fit_words() -> None:
    index = TupleIndex([1000] * 40)
    assert len(index.limbs) == 7
    assert all(limb.size <= 2**62 for limb in index.limbs)


@given(st.floats(-1e9, 1e9, allow_nan=False), st.floats(0, 1e9, allow_nan=False))
def test_nice_bins_cover_and_are_few(low: float, width: float) -> None:
    edges = nice_bins(low, low + width)
    assert edges[0] <= low
    assert edges[-1] >= low + width
    assert 2 <= len(edges) <= 25


# ---------------------------------------------------------------------- intervals


def test_an_interval_is_a_grid_of_decimal_steps() -> None:
    written = {"name": "x", "kind": "numeric", "interval": [-0.2, 0.4], "step": 0.1}
    attribute = attribute_from_dict(written)
    assert list(attribute) == [-0.2, -0.1, 0.0, 0.1, 0.2, 0.3, 0.4]
    assert attribute_from_dict(attribute.to_dict()) == attribute
    ranged = attribute_from_dict(
        {"name": "x", "kind": "numeric", "range": [-0.2, 0.4], "step": 0.1}
    )
    assert ranged == attribute
    fine = attribute_from_dict({"name": "x", "kind": "numeric", "interval": [0, 100]})
    assert fine.size == 1_000_001


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"interval": [1, 0]}, "runs from 1 to 0"),
        ({"interval": [0, 1], "step": 0.3}, "do not lead to 1"),
        ({"interval": [0, 1], "step": 0}, "step is 0"),
        ({"interval": [0, 1], "step": "fine"}, "step is 'fine'"),
        ({"interval": [0, 1, 2]}, "an interval is [low, high]"),
        ({"interval": [0, 1e9], "step": 1e-9}, "too fine"),
        ({"bins": [0, 1], "step": 1}, "step belongs to interval"),
        ({"interval": [0, 1], "bins": [0, 1]}, "interval"),
    ],
)
def test_intervals_that_are_none(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        attribute_from_dict({"name": "x", "kind": "numeric", **entry})
    assert message in caught.value.message
    assert "'x'" in caught.value.message
