"""Hierarchies: bound to columns, read and written, built, suggested, shipped, and asked for."""

from __future__ import annotations

import csv
import datetime as dt
import io
import itertools
import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import voile
from tests.support.paths import TESTS
from voile.cli import app
from voile.datasets import hierarchies
from voile.errors import SchemaError, UsageError, VoileError
from voile.hierarchies import (
    calendar,
    default_levels,
    equal_depth,
    equal_width,
    hierarchy_from_csv,
    hierarchy_options,
    hierarchy_to_csv,
    mapped,
    masked,
    multiples,
    prefixes,
    read_hierarchies,
    read_hierarchy,
    read_mapping,
    suggested,
    write_hierarchy,
)
from voile.schema import Attribute, Bins, Interval, Range, Schema, Values
from voile.schema.attribute import value_words
from voile.schema.hierarchy import Hierarchy, Levels

AGE = Attribute("age", "integer", Range(17, 90))
COLOUR = Attribute("colour", "categorical", Values(("red", "blue", "green")), ordered=False)


def labels_of(levels: Levels, code: int) -> list[str]:
    """The path of a value in words."""
    return [
        labels[int(nodes[code])] for nodes, labels in zip(levels.nodes, levels.labels, strict=True)
    ]


def assert_sound(levels: Levels, attribute: Attribute) -> None:
    """What Levels promise: values, joined ever more, up to one; every node an interval."""
    assert [int(node) for node in levels.nodes[0]] == list(range(attribute.size))
    assert sorted(levels.leaves.tolist()) == list(range(attribute.size))
    assert sorted(levels.nested.tolist()) == list(range(attribute.size))
    assert len(levels.labels[-1]) == 1
    for nodes, labels in zip(levels.nodes, levels.labels, strict=True):
        assert set(nodes.tolist()) == set(range(len(labels)))
        if len(labels) < 2000:
            assert len(set(labels)) == len(labels)
        in_order = nodes[levels.nested]
        assert np.count_nonzero(np.diff(in_order)) == len(labels) - 1
    for fine, coarse in itertools.pairwise(levels.nodes):
        assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == int(fine.max()) + 1


# ---------------------------------------------------------------------- paths and binding


def test_a_hierarchy_is_bound_in_the_order_of_its_author() -> None:
    hierarchy = Hierarchy.of(
        [("green", "cold"), ("pink", "warm"), ("red", "warm"), ("blue", "cold")]
    )
    levels = hierarchy.bind(COLOUR)
    assert_sound(levels, COLOUR)
    assert levels.leaves.tolist() == [2, 0, 1]  # pink is no value of the column
    assert labels_of(levels, 0) == ["red", "warm", "*"]
    assert levels.nested.tolist() == [2, 1, 0]
    assert Hierarchy.of(levels.paths()).paths == (
        ("green", "cold", "*"), ("red", "warm", "*"), ("blue", "cold", "*"),
    )  # fmt: skip


def test_null_has_a_path_of_its_own_unless_one_is_listed() -> None:
    with_null = Attribute("colour", "categorical", Values(("red", "blue")), null=True)
    apart = Hierarchy.of([("red", "a", "x"), ("blue", "b", "x")]).bind(with_null)
    assert labels_of(apart, 2) == ["NULL", "NULL", "x"]
    for text in ("", "NULL"):
        listed = Hierarchy.of([("red", "a"), ("blue", "b"), (text, "b")]).bind(with_null)
        assert labels_of(listed, 2) == ["NULL", "b", "*"]
    called = Attribute("colour", "categorical", Values(("NULL", "blue")), null=True)
    both = Hierarchy.of([("NULL", "a"), ("blue", "b"), ("", "c")]).bind(called)
    assert [labels_of(both, code)[1] for code in range(3)] == ["a", "b", "c"]
    assert Hierarchy.of(both.paths()).bind(called).nodes[1].tolist() == both.nodes[1].tolist()


def test_numbers_and_dates_may_be_written_in_any_way() -> None:
    number = Attribute("x", "numeric", Values((1.0, 2.5)))
    assert Hierarchy.of([("1.00", "a"), ("25e-1", "b")]).bind(number).labels[1] == ("a", "b")
    day = Attribute("d", "date", Values((dt.date(2024, 2, 29),)))
    assert Hierarchy.of([("2024-02-29", "a")]).bind(day).size == 1
    truth = Attribute("b", "boolean", Values((False, True)))
    assert Hierarchy.of([("True", "a"), ("FALSE", "b")]).bind(truth).leaves.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "is empty"),
        ([("a", "x"), ("b",)], "row 2 of the hierarchy, 'b', has 1 levels, the first has 2"),
        ([("a", "x"), ("a", "y")], "rows 1 and 2 of the hierarchy are both about 'a'"),
        ([("a", "g", "x"), ("b", "g", "y")], "'g' lies in 'x' .* and in 'y'"),
    ],
)
def test_what_is_no_hierarchy_is_refused(paths: list[tuple[str, ...]], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Hierarchy.of(paths)


def test_a_column_that_is_not_covered_is_refused() -> None:
    with pytest.raises(SchemaError, match="'colour' has no path for 'green'") as caught:
        Hierarchy.of([("red", "a"), ("blue", "b")]).bind(COLOUR)
    assert "begins with 'green'" in caught.value.hint
    same = Hierarchy.of([("1", "a"), ("1.0", "a"), ("2", "b")])
    with pytest.raises(SchemaError, match=r"the same value twice: '1' and '1\.0'"):
        same.bind(Attribute("x", "integer", Range(1, 2)))
    with pytest.raises(SchemaError, match="lists 3 values, the column has 1,000,000"):
        same.bind(Attribute("x", "integer", Range(1, 1_000_000)))
    several = (("a", "x"), ("b", "y"))
    with pytest.raises(SchemaError, match="several labels at its top"):
        Hierarchy(several)


# ---------------------------------------------------------------------- files

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


@given(st.lists(st.tuples(WORDS, st.integers(0, 3)), min_size=1, unique_by=lambda item: item[0]),
       st.lists(WORDS, min_size=4, max_size=4, unique=True))  # fmt: skip
def test_what_is_written_is_read_and_written_again_to_the_byte(
    items: list[tuple[str, int]], groups: list[str]
) -> None:
    hierarchy = Hierarchy.of((word, groups[number], "all") for word, number in items)
    content = hierarchy_to_csv(hierarchy)
    assert hierarchy_from_csv(content) == hierarchy
    assert hierarchy_to_csv(hierarchy_from_csv(content)) == content


@pytest.mark.parametrize("separator", [";", ",", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_files_of_other_programs_open(separator: str, mark: str, newline: str) -> None:
    rows = [["<=50K", "a group"], ['"50", K', "[1; 2)"], ["", "*, or nothing\tmore"]]
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=separator, lineterminator=newline).writerows(rows)
    found = hierarchy_from_csv((mark + buffer.getvalue()).encode())
    assert [list(path[:2]) for path in found.paths] == rows


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    target = tmp_path / "h.csv"
    hierarchy = Hierarchy.of([("a", "x"), ("b", "y")])
    write_hierarchy(hierarchy, target)
    assert target.read_bytes() == b"a;x;*\nb;y;*\n"
    with pytest.raises(UsageError, match="exists already"):
        write_hierarchy(hierarchy, target)
    write_hierarchy(hierarchy, target, overwrite=True)
    assert read_hierarchy(target) == hierarchy
    with pytest.raises(UsageError, match="cannot read the hierarchy"):
        read_hierarchy(tmp_path / "none.csv")
    target.write_bytes(b"a;x\nb\n")
    with pytest.raises(SchemaError, match=re.escape(str(target))):
        read_hierarchy(target)


ATTRIBUTES = [
    AGE,
    Attribute("age", "integer", Range(-12, 9), null=True),
    Attribute("x", "integer", Values((30, 10, 20, 11, 12, 13))),
    Attribute("x", "numeric", Values((0.1, 0.2, 0.25, 1.5, 7.0))),
    Attribute("x", "numeric", Interval(-1.0, 1.0, 0.05), null=True),
    Attribute("x", "numeric", Bins((0, 20, 40, 60, 80, 100, 250))),
    Attribute("d", "date", Range(dt.date(2023, 11, 5), dt.date(2025, 2, 1))),
    Attribute("d", "date", Values((dt.date(1969, 12, 31), dt.date(1999, 1, 1))), null=True),
    COLOUR,
    Attribute("x", "numeric", Values((1e-20, 1.0, 2.0, 3.0, 1e300))),
    Attribute("x", "numeric", Bins((0.1, 0.2, 0.1 + 0.2, 0.7, 1e6, 3e6))),
    Attribute("x", "integer", Values(()), null=True),
    Attribute("x", "integer", Range(-3, -3)),
    Attribute("one", "categorical", Values(("only",))),
]


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda a: f"{a.name} {a.domain}"[:40])
def test_usual_hierarchies_are_sound_and_survive_their_file(attribute: Attribute) -> None:
    levels = default_levels(attribute)
    assert_sound(levels, attribute)
    again = hierarchy_from_csv(hierarchy_to_csv(Hierarchy.of(levels.paths()))).bind(attribute)
    assert again.leaves.tolist() == levels.leaves.tolist()
    for one, other in zip(levels.nodes, again.nodes, strict=True):
        assert len(set(zip(one.tolist(), other.tolist(), strict=True))) == len(set(one.tolist()))
    for code in range(attribute.size):
        assert labels_of(again, code) == labels_of(levels, code)


# ---------------------------------------------------------------------- numbers and dates


def test_multiples_are_floors_by_definition() -> None:
    levels = multiples(AGE, [5, 10, 20])
    for code, age in enumerate(range(17, 91)):
        low = [math.floor(age / width) * width for width in (5, 10, 20)]
        ends = [f"{a}-{a + width - 1}" for a, width in zip(low, (5, 10, 20), strict=True)]
        assert labels_of(levels, code) == [str(age), *ends, "*"]
    below = multiples(Attribute("t", "integer", Range(-7, 6)), [5])
    assert below.labels[1] == ("-10 to -6", "-5 to -1", "0 to 4", "5 to 9")
    tenths = multiples(Attribute("x", "numeric", Interval(0.0, 1.0, 0.1)), [0.3, 0.6])
    # 0.3, 0.6 and 0.9 begin ranges, though 0.1 + 0.2 > 0.3 among floats.
    assert [labels_of(tenths, code)[1] for code in (2, 3, 5, 6, 9)] == [
        "[0, 0.3)", "[0.3, 0.6)", "[0.3, 0.6)", "[0.6, 0.9)", "[0.9, 1.2)",
    ]  # fmt: skip


def test_bins_are_joined_by_the_edges_that_they_have() -> None:
    bins = Attribute("w", "numeric", Bins((0, 15, 25, 60, 80, 250)))
    assert multiples(bins, [20, 100]).labels[1] == ("[0, 80)", "[80, 250]")
    assert multiples(bins, [40]).labels[1] == ("[0, 25)", "[25, 80)", "[80, 250]")


def test_ranges_of_equal_width_are() -> None:
    for size, number in [(74, 8), (10, 3), (100, 7), (9, 8)]:
        attribute = Attribute("x", "integer", Range(0, size - 1))
        levels = equal_width(attribute, number, fanout=3)
        assert_sound(levels, attribute)
        widths = Counter(levels.nodes[1].tolist()).values()
        assert max(widths) - min(widths) <= 1
    assert equal_width(AGE, 8, fanout=4).labels[2] == ("17-53", "54-90")


def test_ranges_of_equal_depth_hold_equally_many_rows() -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 50, 500)
    attribute = Attribute("x", "integer", Range(0, 499))
    levels = equal_depth(attribute, counts, 10)
    assert_sound(levels, attribute)
    assert levels.derived
    rows = np.bincount(levels.nodes[1], counts)
    assert np.abs(rows - counts.sum() / 10).max() <= counts.max()
    one = np.zeros(500, dtype=np.int64)
    one[77] = 1000  # everybody has one value: nothing can be cut
    assert_sound(equal_depth(attribute, one, 10), attribute)


def test_days_lie_in_their_month_quarter_and_year() -> None:
    attribute = Attribute("d", "date", Range(dt.date(1967, 1, 30), dt.date(1972, 3, 2)))
    levels = calendar(attribute)
    assert_sound(levels, attribute)
    for code, day in enumerate(attribute):
        assert isinstance(day, dt.date)
        quarter = (day.month + 2) // 3
        assert labels_of(levels, code) == [
            day.isoformat(), f"{day:%Y-%m}", f"{day.year}-Q{quarter}", f"{day.year}", "*",
        ]  # fmt: skip


def test_a_million_values_are_no_trouble() -> None:
    million = Attribute("x", "numeric", Interval(0.0, 1.0, 1e-6))
    levels = default_levels(million)
    assert levels.size == 1_000_001
    assert labels_of(levels, 123_456)[:2] == ["0.123456", "[0.1, 0.15)"]
    postcodes = masked(Attribute("zip", "integer", Range(10_000, 99_999)))
    assert labels_of(postcodes, 2345) == ["12345", "1234*", "123**", "12***", "1****", "*"]


# ---------------------------------------------------------------------- texts and groups


def test_masks_and_prefixes() -> None:
    attribute = Attribute("c", "categorical", Values(("12345", "12346", "129", "75")), null=True)
    right, left = masked(attribute), masked(attribute, "left")
    for levels in (right, left, prefixes(attribute, [3, 1])):
        assert_sound(levels, attribute)
    assert labels_of(right, 2) == ["129", "129*", "12***", "*"]  # 123** is as 1234*
    assert labels_of(left, 3) == ["75", "****5", "*"]
    assert labels_of(left, 0) == ["12345", "****5", "*"]
    assert labels_of(prefixes(attribute, [3, 1]), 1) == ["12346", "123*", "1*", "*"]


def test_mappings_in_all_their_forms(tmp_path: Path) -> None:
    flat = mapped({"red": "warm", "blue": "cold", "green": "cold"})
    named = mapped({"warm": ["red"], "cold": ["blue", "green"]})
    assert flat.paths == named.paths
    deep = mapped({"any": {"warm": ["red"], "cold": ["blue"]}, "odd": ["green"]})
    assert deep.paths[0] == ("red", "warm", "any", "*")
    assert deep.paths[2] == ("green", "green", "odd", "*")
    lists = mapped([["red", "blue"], ["green"]])
    assert lists.paths[0] == ("red", "red | blue", "*")
    years = mapped({"old": [1, 2.5, True, None], "new": [dt.date(2024, 1, 1)]})
    assert [path[0] for path in years.paths] == ["1", "2.5", "true", "NULL", "2024-01-01"]
    for name, text in (("m.json", json.dumps({"warm": ["red"]})), ("m.yaml", "warm: [red]\n")):
        (tmp_path / name).write_text(text)
        assert read_mapping(tmp_path / name).paths == (("red", "warm", "*"),)
    nonsense: list[Any] = [3, None, {}, [], "text", {"a": [object()]}]
    for wrong in nonsense:
        with pytest.raises(SchemaError):
            mapped(wrong)
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump({"a": ["x"], "b": ["x"]}))
    with pytest.raises(SchemaError, match=r"bad\.yaml: rows 1 and 2 .* 'x'"):
        read_mapping(tmp_path / "bad.yaml")


def information_lost(counts: np.ndarray[Any, Any], one: int, other: int) -> float:
    """(wₐ + w_b)·JS_π(pₐ, p_b) from its definition, in rows."""
    a, b = counts[one], counts[other]
    total = a.sum() + b.sum()
    mixed = (a + b) / total
    found = 0.0
    for part in (a, b):
        for share, whole in zip(part / max(part.sum(), 1), mixed, strict=True):
            if share > 0:
                found += part.sum() * share * math.log(share / whole)
    return found


def test_suggested_groups_join_what_loses_least_information() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        counts = rng.integers(0, 30, (8, 4)) + 1
        attribute = Attribute("v", "categorical", Values(tuple("abcdefgh")))
        levels = suggested(attribute, counts)
        assert_sound(levels, attribute)
        assert levels.derived
        groups = [[code] for code in range(8)]
        while len(groups) > 4:
            held = np.array([counts[members].sum(axis=0) for members in groups])
            pairs = itertools.combinations(range(len(groups)), 2)
            one, other = min(pairs, key=lambda pair: information_lost(held, *pair))
            groups[one] += groups.pop(other)
        wanted = {frozenset(members) for members in groups}
        found = {frozenset(np.flatnonzero(levels.nodes[1] == n).tolist()) for n in range(4)}
        assert found == wanted


def test_suggesting_is_repeatable_and_works_without_rows() -> None:
    attribute = Attribute("v", "categorical", Values(tuple("abcde")), null=True)
    none = suggested(attribute, np.zeros((6, 3), dtype=np.int64))
    assert_sound(none, attribute)
    with pytest.raises(UsageError, match="too many to compare"):
        big = Attribute("v", "integer", Range(1, 5000))
        suggested(big, np.zeros((5000, 2), dtype=np.int64))


@pytest.mark.parametrize(
    "call",
    [
        lambda: multiples(AGE, [5, 12]),
        lambda: multiples(AGE, [0]),
        lambda: multiples(AGE, []),
        lambda: multiples(AGE, [math.inf]),
        lambda: multiples(COLOUR, [5]),
        lambda: multiples(Attribute("x", "integer", Range(0, 2**61)), [1e-9]),
        lambda: equal_width(AGE, 0),
        lambda: equal_width(AGE, 3, fanout=1),
        lambda: equal_width(COLOUR, 3),
        lambda: multiples(Attribute("x", "integer", Values(()), null=True), [5]),
        lambda: calendar(AGE),
        lambda: masked(AGE, "middle"),
        lambda: masked(ATTRIBUTES[3]),
        lambda: masked(Attribute("t", "categorical", Values(("x" * 99,)))),
        lambda: prefixes(COLOUR, [1, 2]),
        lambda: prefixes(COLOUR, [0]),
        lambda: prefixes(COLOUR, []),
    ],
)
def test_what_cannot_be_built_is_refused_with_a_hint(call: Any) -> None:
    with pytest.raises(VoileError) as caught:
        call()
    assert caught.value.hint


# ---------------------------------------------------------------------- shipped and given

ORACLE = TESTS / "oracle" / "frontier.json"


def test_the_shipped_hierarchies_cover_adult() -> None:
    table = voile.read("dataset:adult")
    schema = table.infer(list(table.columns), "as-value")
    found = read_hierarchies({}, schema, table.dataset)
    assert set(found) == set(hierarchies("dataset:adult")) >= {
        "age", "workclass", "education", "marital_status", "race", "sex", "occupation",
        "native_country", "relationship", "salary",
    }  # fmt: skip
    for name, levels in found.items():
        assert_sound(levels, schema[name])
    assert hierarchies("dataset:scores") == hierarchies("adult.csv") == {}


def test_values_are_listed_in_the_order_of_the_oracle_and_make_its_items() -> None:
    """39 single items have a support of at least 0.05; sets that two levels share count once."""
    oracle = json.loads(ORACLE.read_text())
    table = voile.read("dataset:adult/frontier")
    schema = table.infer(list(table.columns), "error")
    columns, _ = table.columns_of_codes(schema, drop_nulls=False)
    codes = dict(zip(schema.names, columns, strict=True))
    levels = read_hierarchies({}, schema, table.dataset)
    names = ["workclass", "education", "marital_status", "race", "sex"]
    for name, order in zip(names, oracle["value_orders"]["R1"], strict=True):
        words = value_words(schema[name])
        assert [words[code] for code in levels[name].leaves] == order
    items = 0
    for name in ("age", *names):
        found = set()
        for nodes in levels[name].nodes[:-1]:
            rows = np.bincount(nodes[codes[name]])
            for node in np.flatnonzero(rows >= 0.05 * len(columns[0])):
                found.add(frozenset(np.flatnonzero(nodes == node).tolist()))
        items += len(found)
    assert items == oracle["populations"]["by_length"]["1"]


def test_what_is_given_goes_before_what_ships(tmp_path: Path) -> None:
    table = voile.read("dataset:adult/frontier")
    schema = table.infer(["sex", "race"], "error")
    file = tmp_path / "sex.csv"
    file.write_text("Male;somebody;*\nFemale;somebody;*\n")
    for given_sex in (
        str(file),
        file,
        read_hierarchy(file),
        read_hierarchy(file).bind(schema["sex"]),
    ):
        found = read_hierarchies({"sex": given_sex}, schema, table.dataset)
        assert found["sex"].labels[1] == ("somebody",)
        assert found["race"].height == 1
    assert set(read_hierarchies({}, schema, "")) == set()
    with pytest.raises(UsageError, match="'sexx', which is not a column") as caught:
        read_hierarchies({"sexx": file}, schema)
    assert "'sex'" in caught.value.hint
    with pytest.raises(SchemaError, match=r"sex\.csv: the hierarchy of 'race' has no path"):
        read_hierarchies({"race": file}, schema)
    with pytest.raises(SchemaError, match="cover 2 values, the column has 5"):
        read_hierarchies({"race": found["sex"]}, schema)
    wider = Schema((Attribute("sex", "categorical", Values(("Male", "Female", "Other"))),))
    assert read_hierarchies({}, wider, "dataset:adult") == {}


def test_options_name_a_column_and_a_file() -> None:
    assert hierarchy_options(["age=a.csv", "b=c=d.csv"]) == {"age": "a.csv", "b": "c=d.csv"}
    for wrong in (["age"], ["=a.csv"], ["age="], ["age=a", "age=b"]):
        with pytest.raises(UsageError):
            hierarchy_options(wrong)


# ---------------------------------------------------------------------- the command


def run(*arguments: str) -> Any:
    found = CliRunner().invoke(app, ["hierarchy", *arguments])
    if found.exception and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


def test_the_command_shows_saves_and_reads_back(tmp_path: Path) -> None:
    target = tmp_path / "age.csv"
    shown = run("dataset:adult/frontier", "age", "--multiples", "5,10,20", "-o", str(target))
    assert "20-39" in shown.stdout
    data = json.loads(run("dataset:adult/frontier", "age", "--from", str(target), "--json").stdout)
    assert [len(level["groups"]) for level in data["levels"]] == [16, 9, 5, 1]
    truth = voile.read("dataset:adult/frontier").count("age BETWEEN 20 AND 39")
    assert data["levels"][2]["groups"][1] == {"label": "20-39", "values": 20, "rows": truth}
    assert data["derived_from_rows"] is False
    shipped = json.loads(run("dataset:adult", "workclass", "--json").stdout)
    assert shipped["built"] == "shipped"
    assert [group["label"] for group in shipped["levels"][0]["groups"]][-1] == "NULL"


def test_what_is_computed_from_rows_is_said_to_be() -> None:
    found = run("dataset:adult/frontier", "education", "--suggest-by", "occupation", "--json")
    assert json.loads(found.stdout)["derived_from_rows"] is True
    assert "computed from the rows" in found.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["agee"], "no column 'agee'"),
        (["age", "--multiples", "5", "--dates"], "two ways"),
        (["age", "--multiples", "five"], "'five' is not numbers"),
        (["age", "--prefixes", "1.5"], "1.5 is not whole"),
        (["age", "--fanout", "3"], "--fanout"),
        (["education", "--suggest-by", "nobody"], "no column 'nobody'"),
        (["education", "--mapping", "none.yaml"], "none.yaml"),
        (["education", "--from", "none.csv"], "none.csv"),
        (["age", "--dates"], "not date"),
    ],
)
def test_wrong_wishes_are_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(VoileError, match=message):
        run("dataset:adult/frontier", *arguments)
