"""From a table to perturbed rows: what is kept, what is told, what is refused."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from typer.testing import CliRunner

import voile
from tests.support.paths import TESTS
from tests.support.sampling import assert_fits, fits
from tests.support.soak import rounds
from voile.cli import app
from voile.client import Spec
from voile.engines.encode import codes, values_at
from voile.errors import PromiseError, ReleaseError, SchemaError, TableError, UsageError, VoileError
from voile.evaluate.exposure import exposure
from voile.evaluate.workload import cumulative_error, selection_counts
from voile.kinds.manifest import MANIFEST
from voile.kinds.perturbed.combining import combine
from voile.kinds.perturbed.manifest import LocalManifest
from voile.kinds.perturbed.publishing import perturb_table, write, write_collected
from voile.kinds.perturbed.rare import without_rare
from voile.kinds.perturbed.retention import ColumnNoise, Retention, WholeRows
from voile.kinds.perturbed.specs import (
    check_releasable,
    make_spec,
    mechanism_of,
    schema_of,
    spec_of,
)
from voile.privacy.guarantees import Breach
from voile.release import LocalRelease, Release, ViewRelease, verify
from voile.schema import Attribute, Bins, Interval, Range, Schema, TupleIndex, Values

SMALL = Schema(
    (
        Attribute("sex", "categorical", Values(("f", "m"))),
        Attribute("grade", "integer", Range(1, 4)),
        Attribute("weight", "numeric", Interval(40.0, 41.0, 0.25)),
    )
)


def people(rows: int, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], rows, p=[0.3, 0.7]),
            "grade": rng.choice([1, 2, 3, 4], rows, p=[0.4, 0.3, 0.2, 0.1]),
            "weight": rng.choice([40.0, 40.25, 40.5, 40.75, 41.0], rows),
        }
    )


# ---------------------------------------------------------------------- the law


@pytest.mark.parametrize("retention", [0.2, 0.7])
def test_a_value_is_kept_or_drawn_with_the_stated_chances(retention: float) -> None:
    """The law of one column, all rows alike; and it would show were p off by 0.04."""
    rows = 40_000
    table = pd.DataFrame({"grade": np.full(rows, 2)})
    schema = Schema((SMALL["grade"],))
    release = voile.perturb(table, retention, schema=schema, simulate_seed=3)
    seen = np.bincount(release.codes()[0], minlength=4)
    law = np.full(4, (1 - retention) / 4) + retention * (np.arange(4) == 1)
    assert_fits(seen, law)
    off = retention + 0.04
    wrong = np.full(4, (1 - off) / 4) + off * (np.arange(4) == 1)
    assert not fits(seen, wrong)


def test_columns_are_perturbed_apart_and_rows_are_kept_whole() -> None:
    rows = 40_000
    table = pd.DataFrame({"a": np.full(rows, "x"), "b": np.full(rows, "x")})
    schema = Schema(tuple(Attribute(n, "categorical", Values(("x", "y"))) for n in "ab"))
    apart = voile.perturb(table, 0.6, schema=schema, simulate_seed=5)
    whole = voile.perturb(table, 0.6, schema=schema, simulate_seed=5, whole_rows=True)
    kept = 0.6 + 0.4 / 2
    a, b = apart.codes()
    mixed = kept * (1 - kept)
    law = np.array([kept**2, mixed, mixed, (1 - kept) ** 2])
    assert_fits(np.bincount(2 * a + b, minlength=4), law)
    a, b = whole.codes()
    assert_fits(np.bincount(2 * a + b, minlength=4), np.array([0.6 + 0.1, 0.1, 0.1, 0.1]))
    assert not fits(np.bincount(2 * a + b, minlength=4), np.array([0.64, 0.16, 0.16, 0.04]))


def test_local_epsilon_bounds_what_two_rows_can_differ_in() -> None:
    """An audit: the most different outcomes of two rows differ by e^ε, not by more or less."""
    rows, retention = 60_000, 0.5
    schema = Schema((SMALL["sex"], SMALL["grade"]))
    first = pd.DataFrame({"sex": ["f"] * rows, "grade": [1] * rows})
    second = pd.DataFrame({"sex": ["m"] * rows, "grade": [4] * rows})
    ratios = []
    for seed, table in enumerate((first, second)):
        release = voile.perturb(table, retention, schema=schema, simulate_seed=seed)
        sex, grade = release.codes()
        ratios.append(float(((sex == 0) & (grade == 0)).mean()))
        epsilon = release.manifest.guarantee.epsilon
    assert epsilon is not None
    law = (retention + (1 - retention) / 2) * (retention + (1 - retention) / 4)
    other = (1 - retention) / 2 * (1 - retention) / 4
    assert math.log(law / other) == pytest.approx(epsilon, abs=1e-9)
    # Standard error of the log ratio is below 0.02: five of them are exceeded once in 10⁶.
    assert math.log(ratios[0] / ratios[1]) == pytest.approx(epsilon, abs=0.1)


def test_swapping_keeps_every_column_and_identity_draws_from_it() -> None:
    table = people(5000)
    swapped = voile.perturb(table, 0.3, "swap", schema=SMALL, simulate_seed=1)
    same = voile.perturb(table, 0.3, "identity", schema=SMALL, simulate_seed=1)
    for j, name in enumerate(SMALL.names):
        truth = np.sort(codes(pa.array(table[name]), SMALL[name]))
        assert np.array_equal(np.sort(swapped.codes()[j]), truth)
        assert not np.array_equal(np.sort(same.codes()[j]), truth)
    assert swapped.manifest.guarantee.epsilon is None


# ---------------------------------------------------------------------- the release


def test_nothing_perturbed_is_the_table_itself_in_another_order() -> None:
    table = people(300)
    release = voile.perturb(table, 1.0, schema=SMALL)
    assert release.manifest.guarantee.epsilon is None  # nothing is perturbed, nothing is promised
    assert "No ε holds" in release.describe()
    back = release.to_pandas()
    order = list(SMALL.names)
    assert back.equals(table.sort_values(order, kind="stable")[order].reset_index(drop=True))
    told = [d.what for d in release.manifest.disclosed]
    assert all(f"{name} of every row" in told for name in SMALL.names)


def test_the_order_of_rows_tells_nothing() -> None:
    table = people(500)
    turned = table.iloc[::-1]
    first = voile.perturb(table, 1.0, schema=SMALL)
    second = voile.perturb(turned, 1.0, schema=SMALL)
    assert first.to_arrow().equals(second.to_arrow())


def test_a_seed_gives_the_same_bytes_and_fresh_coins_others(tmp_path: Path) -> None:
    table = people(200)
    digests = []
    for i, seed in enumerate((7, 7, None, None)):
        release = voile.perturb(table, 0.5, schema=SMALL, name="t", simulate_seed=seed,
                                to=tmp_path / f"{i}.voile")  # fmt: skip
        digests.append(release.manifest.files[0].sha256)
        assert release.manifest.simulated == (seed is not None)
        assert "seed" not in (tmp_path / f"{i}.voile" / MANIFEST).read_text().replace(
            "seed. It", ""
        )
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_releases_of_both_kinds_open_and_are_told_apart(tmp_path: Path) -> None:
    local = voile.perturb(people(50), 0.5, schema=SMALL, to=tmp_path / "local.voile")
    view = voile.publish(people(50), schema=SMALL, prior=0.01, to=tmp_path / "view.voile")
    assert isinstance(voile.open(local.path), LocalRelease)
    assert isinstance(voile.open(view.path), ViewRelease)
    with pytest.raises(UsageError, match="a table perturbed row by row, and this is for a noisy"):
        ViewRelease.open(local.path)
    with pytest.raises(UsageError, match="not refined"):
        local.query("select count(*) from t", refine=True)
    with pytest.raises(UsageError, match="'em' is for rows"):
        view.query("select count(*) from t", method="em")
    copied = local.save(tmp_path / "copy.voile")
    assert isinstance(copied, LocalRelease)
    verify(copied)


TAMPERED = {
    "a larger retention": lambda m: m["parameters"]["columns"]["sex"].update(retention=0.9),
    "a smaller epsilon": lambda m: m["guarantee"].update(epsilon=0.1),
    "a column's epsilon": lambda m: m["guarantee"]["columns"].update(sex=0.01),
    "another replacement": lambda m: m["parameters"]["columns"]["sex"].update(replace="swap"),
    "no disclosure": lambda m: m.update(disclosed=[]),
    "rows that are not told": lambda m: m.update(public_rows=None),
    "an unknown key": lambda m: m["parameters"].update(secret=1),
    "whole rows and columns": lambda m: m["parameters"].update(joint=0.5),
    "another method": lambda m: m.update(method="frapp"),
    "a column that is not there": lambda m: m["parameters"]["columns"].update(
        age=m["parameters"]["columns"].pop("sex")
    ),
    "a retention of nothing": lambda m: m["parameters"]["columns"]["sex"].update(retention=0),
    "parts without a declared distribution": lambda m: m["parameters"]["columns"]["sex"].update(
        parts=[1, 1]
    ),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_verify_refuses_terms_that_do_not_follow(tmp_path: Path, what: str) -> None:
    voile.perturb(people(50), 0.5, schema=SMALL, to=tmp_path / "r.voile")
    path = tmp_path / "r.voile" / MANIFEST
    data = json.loads(path.read_text())
    TAMPERED[what](data)
    with pytest.raises(VoileError):
        path.write_text(resealed(data))
        verify(tmp_path / "r.voile")


def resealed(data: dict[str, Any]) -> str:
    """With a digest that fits, as far as it is a manifest at all."""
    try:
        return LocalManifest.model_validate(data).sealed().text()
    except ValidationError:
        return json.dumps(data)


def test_verify_refuses_changed_rows(tmp_path: Path) -> None:
    voile.perturb(people(50), 0.5, schema=SMALL, to=tmp_path / "r.voile")
    part = next((tmp_path / "r.voile" / "data").iterdir())
    raw = bytearray(part.read_bytes())
    raw[len(raw) // 2] ^= 1
    part.write_bytes(bytes(raw))
    with pytest.raises(ReleaseError, match="changed"):
        verify(tmp_path / "r.voile")


# ---------------------------------------------------------------------- what is asked for


def test_retention_by_column_and_columns_that_are_public() -> None:
    release = voile.perturb(people(50), {"sex": 0.5, "grade": 0.25}, schema=SMALL)
    parts = release.manifest.parameters.columns
    assert [parts[name].retention for name in SMALL.names] == [0.5, 0.25, 1.0]
    expected = math.log(1 + 0.5 * 2 / 0.5) + math.log(1 + 0.25 * 4 / 0.75)
    assert release.manifest.guarantee.epsilon == pytest.approx(expected, abs=1e-12)
    assert release.manifest.guarantee.columns["weight"] is None


def test_a_declared_distribution_is_drawn_from() -> None:
    chances = {"grade": {1: 1, 2: 1, 3: 1, 4: 7}}
    table = pd.DataFrame({"grade": np.full(30_000, 1)})
    schema = Schema((SMALL["grade"],))
    release = voile.perturb(table, 0.5, chances, schema=schema, simulate_seed=1)
    assert_fits(np.bincount(release.codes()[0], minlength=4), np.array([0.55, 0.05, 0.05, 0.35]))
    assert release.manifest.guarantee.epsilon == pytest.approx(math.log(1 + 0.5 / (0.5 * 0.1)))
    with pytest.raises(UsageError, match="no chance"):
        voile.perturb(table, 0.5, {"grade": {1: 1, 2: 0, 3: 1, 4: 7}}, schema=schema)


def test_rare_values_are_told_about_or_suppressed() -> None:
    table = pd.DataFrame({"town": ["a"] * 40 + ["b"] * 30 + ["tiny"] * 2})
    told = perturb_table(table, retention=0.5, replace="swap", columns=["town"])
    assert any("fewer than 5 times" in note for note in told.notes)
    assert "tiny" in str(told.release.manifest.attributes)
    done = perturb_table(table, retention=0.5, replace="swap", columns=["town"], suppress_below=5)
    assert done.release.manifest.parameters.suppressed_below == 5
    town = done.release.to_pandas()["town"]
    # Two NULLs would be the two people from tiny: the next rarest town goes, too.
    assert town.isna().sum() == 32
    assert set(town.dropna()) == {"a"}
    assert "tiny" not in (done.release.path / MANIFEST).read_text()
    verify(done.release)


@given(
    counts=st.lists(st.integers(0, 12), min_size=2, max_size=8),
    nulls=st.integers(0, 8),
    least=st.integers(2, 6),
)
@settings(max_examples=rounds(50, 150), deadline=None)
def test_after_suppressing_nothing_is_rare(counts: list[int], nulls: int, least: int) -> None:
    """Neither a value nor NULL, whatever the table; and no more goes than must."""
    names = [f"v{i}" for i in range(len(counts))]
    for public in ("declared", "active"):
        attribute = Attribute("x", "categorical", Values(tuple(names)), null=True,
                              public=public)  # fmt: skip
        codes_ = np.repeat(np.arange(len(counts) + 1), [*counts, nulls])
        noise = Retention((ColumnNoise(attribute.size, 0.5, "swap"),))
        try:
            done = without_rare(Schema((attribute,)), [codes_], noise, least)
        except TableError:
            assert sum(c >= least for c in counts) <= 1
            continue
        after = np.bincount(done.codes[0], minlength=done.schema["x"].size)
        assert all(c == 0 or c >= least for c in after)
        assert after.sum() == len(codes_)
        if public == "active":
            listed = set(done.schema["x"].domain)
            assert listed <= {n for n, c in zip(names, counts, strict=True) if c >= least or c == 0}


def test_nothing_is_suppressed_where_values_are_drawn_from_the_domain() -> None:
    with pytest.raises(UsageError, match="own values"):
        perturb_table(people(40), retention=0.5, schema=SMALL, suppress_below=5)


def test_most_epsilon_refuses_what_tells_more() -> None:
    with pytest.raises(PromiseError, match="more than 2"):
        voile.perturb(people(50), 0.5, schema=SMALL, most_epsilon=2)
    with pytest.raises(PromiseError, match="'sex' is public"):
        voile.perturb(people(50), {"grade": 0.1}, schema=SMALL, most_epsilon=2)
    with pytest.raises(PromiseError, match="'sex' is public"):
        voile.perturb(people(50), 1.0, schema=SMALL, most_epsilon=2)
    named = {"sex": 1.0, None: 0.1}
    part = voile.perturb(people(50), named, schema=SMALL, most_epsilon=2)
    assert "the perturbed columns of a row" in part.describe()
    release = voile.perturb(people(50), 0.1, schema=SMALL, most_epsilon=2)
    assert release.manifest.guarantee.epsilon is not None
    assert release.manifest.guarantee.epsilon <= 2


def test_nulls_are_a_value_or_are_left_out() -> None:
    table = pd.DataFrame({"a": ["x", None, "y", "x"]})
    with pytest.raises(TableError, match="NULL"):
        voile.perturb(table, 0.5, columns=["a"])
    dropped = perturb_table(table, retention=1.0, columns=["a"], nulls="drop")
    assert (dropped.rows_in, dropped.rows_dropped, dropped.release.rows) == (4, 1, 3)
    assert "nothing is missing" in dropped.release.manifest.disclosed[0].what
    kept = voile.perturb(table, 1.0, columns=["a"], nulls="as-value")
    assert kept.query("select count(*) from t where a is null").value == 1


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"retention": 0.0}, "retention is 0.0"),
    ({"retention": 1.5}, "retention is 1.5"),
    ({"retention": math.nan}, "retention is nan"),
    ({"retention": "half"}, "retention is 'half'"),
    ({"retention": {"seks": 0.5}}, "no column 'seks'"),
    ({"retention": 0.5, "replace": "random"}, "replace='random'"),
    ({"retention": 0.5, "replace": {"grade": "random"}}, "replace='random' for 'grade'"),
    ({"retention": 0.5, "replace": {"nobody": "swap"}}, "no column 'nobody'"),
    ({"retention": 0.5, "nulls": "maybe"}, "nulls='maybe'"),
    ({"retention": 0.5, "suppress_below": 1}, "suppress_below=1 must be at least 2"),
    ({"retention": 1e-17}, "must lie in"),
    ({"retention": 0.5, "most_epsilon": 0}, "must be above 0"),
    ({"retention": {"sex": 0.5}, "whole_rows": True}, "all columns together"),
    ({"retention": 0.5, "whole_rows": True, "replace": "swap"}, "uniform tuples"),
    ({"retention": 0.5, "colums": ["sex"]}, "no option 'colums'"),
    ({"retention": 0.5, "row_key": "sex"}, "is the key of the rows and a column"),
    ({"retention": 0.5, "row_key": "id"}, "no column 'id'"),
    ({"retention": 0.5, "replace": "missing.yaml"}, "missing.yaml"),
    ({"retention": 0.5, "name": "two\nlines"}, "cannot name a table"),
]


@pytest.mark.parametrize(("wish", "message"), WRONG)
def test_wrong_options_are_refused_with_what_is_wrong(wish: dict[str, Any], message: str) -> None:
    with pytest.raises(VoileError, match=message):
        perturb_table(people(20), **({"schema": SMALL} | wish))


def test_values_outside_the_domain_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    table = people(20)
    table.loc[7, "grade"] = 9
    with pytest.raises(SchemaError, match="row 8, column 'grade'"):
        voile.perturb(table, 0.5, schema=SMALL, to=tmp_path / "r.voile")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------- specs


KINDS = Schema(
    (
        Attribute("sex", "categorical", Values(("f", "m")), null=True, ordered=False),
        Attribute("grade", "integer", Range(-3, 4)),
        Attribute("odd", "integer", Values((1, 3, 5))),
        Attribute("weight", "numeric", Interval(-1.5, 2.25, 0.25)),
        Attribute("pay", "numeric", Bins((0.0, 10.0, 20.5))),
        Attribute("half", "numeric", Values((0.5, 1.5))),
        Attribute("yes", "boolean", Values((False, True))),
        Attribute("born", "date", Range(pd.Timestamp("2020-02-27").date(),
                                        pd.Timestamp("2020-03-02").date())),
    )
)  # fmt: skip


def test_a_spec_says_what_a_schema_and_its_perturbing_say() -> None:
    noise = Retention(tuple(ColumnNoise(size, 0.5) for size in KINDS.sizes))
    spec = spec_of(KINDS, noise, "kinds")
    assert schema_of(spec).to_dict() == KINDS.to_dict()
    assert mechanism_of(spec, schema_of(spec)) == noise
    assert spec.epsilon() == pytest.approx(noise.epsilon(), abs=1e-9)
    for attribute, column in zip(KINDS, spec.columns, strict=True):
        every = np.arange(attribute.size)
        ours = values_at(attribute, every).to_pylist()
        theirs = column.decode(every).tolist()
        assert [str(v) for v in ours] == [str(v) for v in theirs], attribute.name


def test_a_spec_of_whole_rows_and_of_declared_chances() -> None:
    whole = spec_of(SMALL, WholeRows(0.125, tuple(SMALL.sizes)), "whole")
    assert mechanism_of(whole, SMALL) == WholeRows(0.125, tuple(SMALL.sizes))
    assert whole.epsilon() == pytest.approx(math.log(1 + 0.125 * SMALL.size / 0.875))
    declared = Retention((ColumnNoise(2, 0.5, "declared", (1, 3)),
                          ColumnNoise(4, 1.0), ColumnNoise(5, 0.25)))  # fmt: skip
    assert mechanism_of(spec_of(SMALL, declared, "d"), SMALL) == declared
    swapped = Retention((ColumnNoise(2, 0.5, "swap"), ColumnNoise(4), ColumnNoise(5)))
    with pytest.raises(UsageError, match="whole column"):
        spec_of(SMALL, swapped, "s")


@given(
    low=st.integers(-1000, 1000),
    count=st.integers(2, 500),
    stride=st.integers(1, 40),
    digits=st.integers(0, 4),
    number=st.floats(0, 1),
)
@settings(max_examples=rounds(60, 200), deadline=None)
def test_table_and_client_round_to_the_same_point(
    low: int, count: int, stride: int, digits: int, number: float
) -> None:
    per = 10**digits
    ends = low / per, (low + (count - 1) * stride) / per
    domain = Interval(ends[0], ends[1], stride / per)
    assert domain.size == count
    attribute = Attribute("x", "numeric", domain)
    spec = spec_of(Schema((attribute,)), Retention((ColumnNoise(count, 0.5),)), "x")
    values = [*list(domain)[:50], ends[0] + number * (ends[1] - ends[0])]
    ours = codes(pa.array(values, pa.float64()), attribute)
    assert ours.tolist() == spec.columns[0].encode(values).tolist()


def test_a_codebook_that_was_read_off_a_table_makes_no_spec(tmp_path: Path) -> None:
    voile.read("dataset:scores").infer(["age"], "error").save(tmp_path / "active.yaml")
    with pytest.raises(UsageError, match="public: active"):
        make_spec(tmp_path / "active.yaml", "x", retention=0.5)


def test_collected_rows_become_a_release(tmp_path: Path) -> None:
    noise = Retention(tuple(ColumnNoise(size, 0.5) for size in KINDS.sizes))
    spec = spec_of(KINDS, noise, "survey")
    rng = np.random.default_rng(1)
    batches = [[rng.integers(0, size, 100) for size in KINDS.sizes] for _ in range(3)]
    release = write_collected(iter(batches), spec, tmp_path / "c.voile", overwrite=False)
    verify(release)
    assert release.rows == 300
    assert release.manifest.parameters.collected
    assert release.mechanism == noise
    assert "by those they are about" in release.describe()
    seen = Spec.from_bytes(spec.raw).columns[0].decode(np.concatenate([b[0] for b in batches]))
    texts = [
        str(x) for x in release.to_pandas()["sex"].astype(object).where(lambda s: s.notna(), None)
    ]
    assert sorted(texts) == sorted(str(x) for x in seen)


# ---------------------------------------------------------------------- parts


def test_parts_with_the_same_columns_are_stacked(tmp_path: Path) -> None:
    first, second = people(300, 1), people(200, 2)
    paths = []
    for i, table in enumerate((first, second)):
        paths.append(tmp_path / f"{i}.voile")
        voile.perturb(table, 1.0, schema=SMALL, to=paths[-1])
    done = combine(paths, tmp_path / "all.voile")
    assert done.rows_in == [300, 200]
    answer = done.release.query("select count(*) from t where sex = 'f' and grade > 1")
    both = pd.concat([first, second])
    assert answer.value == ((both.sex == "f") & (both.grade > 1)).sum()
    verify(done.release)


def test_parts_of_the_same_people_are_joined_by_their_key(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    table = people(400).assign(person=[f"p{i:04d}" for i in rng.permutation(400)])
    clinic, bank = (
        table[["person", "sex", "grade"]],
        table[["person", "weight"]].sample(frac=1, random_state=1),
    )
    a = voile.perturb(clinic, 1.0, schema=SMALL.select(["sex", "grade"]), row_key="person",
                      to=tmp_path / "a.voile")  # fmt: skip
    b = voile.perturb(bank.head(390), 1.0, schema=SMALL.select(["weight"]), row_key="person",
                      to=tmp_path / "b.voile")  # fmt: skip
    assert any("person of every row" in d.what for d in a.manifest.disclosed)
    verify(a)
    done = combine([a, b], tmp_path / "both.voile")
    assert done.joined_by == "person"
    assert "10 keys" in done.notes[0]
    assert done.release.manifest.parameters.row_key is None
    kept = table[table.person.isin(set(bank.head(390).person))]
    answer = done.release.query("select count(*) from t where sex = 'f' and weight > 40.5")
    assert answer.value == ((kept.sex == "f") & (kept.weight > 40.5)).sum()
    assert "person" not in done.release.to_pandas()
    verify(done.release)


def test_a_swapped_part_that_loses_rows_is_not_joined(tmp_path: Path) -> None:
    """Its replacing distribution was that of all its rows; the answer would be wrong, and exact."""
    table = people(300).assign(id=[str(i) for i in range(300)])
    for name, rows, columns in (("a", 300, ["sex"]), ("b", 200, ["grade"])):
        voile.perturb(table.head(rows), 0.5, "swap", schema=SMALL.select(columns), row_key="id",
                      to=tmp_path / f"{name}.voile")  # fmt: skip
    parts = [tmp_path / "a.voile", tmp_path / "b.voile"]
    with pytest.raises(UsageError, match=r"100 rows of .* have no partner"):
        combine(parts, tmp_path / "never.voile")


def test_a_collector_refuses_a_spec_that_could_not_be_released() -> None:
    document = {
        "format": "voile-perturbation", "version": 1,
        "columns": [{"name": "x", "kind": "numeric", "null": False, "retention": 0.5,
                     "replace": "uniform",
                     "domain": {"low": 1, "step": 1, "per": 3, "count": 9}}],
    }  # fmt: skip
    with pytest.raises(VoileError):
        check_releasable(Spec.from_dict(document))
    document["columns"][0]["domain"]["per"] = 100  # type: ignore[index]
    check_releasable(Spec.from_dict(document))
    document["columns"][0]["retention"] = 0  # type: ignore[index]
    with pytest.raises(VoileError):
        check_releasable(Spec.from_dict(document))


def test_parts_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    def part(name: str, **wish: Any) -> Path:
        options: dict[str, Any] = {"retention": 0.5, "schema": SMALL} | wish
        table = people(40).assign(id=[str(i) for i in range(40)])
        perturb_table(table, to=tmp_path / name, **options)
        return tmp_path / name

    plain, more = part("plain.voile"), part("more.voile")
    other = part("other.voile", retention=0.4)
    fewer = part("fewer.voile", schema=SMALL.select(["sex"]))
    swapped = [part(f"s{i}.voile", replace="swap") for i in range(2)]
    keyed = part("keyed.voile", row_key="id")
    whole = part("whole.voile", whole_rows=True, row_key="id")
    refusals = [
        ([plain], "nothing to combine"),
        ([plain, plain], "named twice"),
        ([plain, other], "perturbed differently"),
        ([plain, fewer], "different columns"),
        (swapped, "own distribution"),
        ([plain, keyed], "different row keys"),
        ([keyed, whole], "is in two parts"),
    ]
    for parts, message in refusals:
        with pytest.raises(UsageError, match=message):
            combine(parts, tmp_path / "never.voile")
    with pytest.raises(UsageError, match="exists already"):
        combine([plain, more], plain)
    assert not (tmp_path / "never.voile").exists()
    repeated = people(40).assign(id="same")
    with pytest.raises(TableError, match="repeats itself"):
        voile.perturb(repeated, 0.5, schema=SMALL, row_key="id")


# ---------------------------------------------------------------------- the commands


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=True)


def test_the_commands_say_what_they_did_as_json(tmp_path: Path) -> None:
    people(200).to_csv(tmp_path / "t.csv", index=False)
    SMALL.save(tmp_path / "small.yaml")
    release = tmp_path / "t.voile"
    done = run("perturb", str(tmp_path / "t.csv"), "-o", str(release), "--retention", "0.3",
               "--retention", "sex=0.5", "--schema", str(tmp_path / "small.yaml"),
               "--replace", "uniform", "--replace", "grade=swap", "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["parameters"]["columns"]["sex"]["retention"] == 0.5
    assert data["parameters"]["columns"]["grade"]["replace"] == "swap"
    assert data["rows_in"] == data["rows_out"] == 200
    for method in ("inversion", "em"):
        asked = run("query", str(release), "select count(*) from t where sex = 'f'",
                    "--method", method, "--json")  # fmt: skip
        assert set(json.loads(asked.stdout)) >= {"rows", "confidence", "covers"}
    made = run("spec", str(tmp_path / "small.yaml"), "--retention", "0.5", "-o",
               str(tmp_path / "spec.json"), "--json")  # fmt: skip
    assert json.loads(made.stdout)["digest"] == Spec.open(tmp_path / "spec.json").digest
    listed = run("guarantees", str(release), "--json")
    assert json.loads(listed.stdout) == []  # a column is swapped: no ε
    assert run("describe", str(release)).exit_code == 0
    assert json.loads(run("explain", str(release), "select count(*) from t", "--json").stdout)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--retention", "half"],
        ["--retention", "=0.5"],
        ["--retention", "0.5", "--retention", "0.6"],
        ["--retention", "0.5", "--replace", "nothing"],
        ["--retention", "0.5", "--columns", "nobody"],
        ["--retention", "0.5", "--replace", "chances.yaml"],
        ["--retention", "0.5", "--nulls", "perhaps"],
    ],
)
def test_wrong_options_exit_with_2_and_a_hint(tmp_path: Path, arguments: list[str]) -> None:
    people(20).to_csv(tmp_path / "t.csv", index=False)
    done = run("perturb", str(tmp_path / "t.csv"), "-o", str(tmp_path / "r.voile"), *arguments)
    assert isinstance(done.exception, UsageError)
    assert done.exception.hint
    assert done.exception.exit_code == 2
    assert not (tmp_path / "r.voile").exists()


def test_epsilon_of_a_column_is_exact() -> None:
    """e^ε = 1 + pD/(1−p), as a fraction; of parts, by the least likely value."""
    assert ColumnNoise(74, 0.5).ratio() == 75
    assert ColumnNoise(4, 0.5, "declared", (1, 1, 1, 7)).ratio() == 11
    assert ColumnNoise(1, 0.5).ratio() == 1
    assert ColumnNoise(5, 0.5, "swap").ratio() is None
    assert ColumnNoise(5, 1.0).ratio() is None
    assert Retention((ColumnNoise(1, 0.5), ColumnNoise(5, 1.0))).ratio() is None
    assert Retention((ColumnNoise(1, 0.5),)).ratio() == 1
    row = Retention((ColumnNoise(2, 0.5), ColumnNoise(4, 0.25), ColumnNoise(9, 1.0)))
    assert row.ratio() == 3 * (1 + Fraction(1, 4) * 4 / Fraction(3, 4))


def test_the_local_epsilons_of_the_oracle() -> None:
    checks = json.loads((TESTS / "oracle" / "olap_sulq.json").read_text())["checks"]
    found = 0
    for check in checks:
        if not check["id"].startswith("ldp.eps."):
            continue
        sizes = {"age": 74, "fnlwgt": 1_490_001, "hrs": 100, "edu": 16}
        p, expected = check["inputs"]["p"], check["expected"]
        for name, size in sizes.items():
            assert ColumnNoise(size, p).epsilon() == pytest.approx(expected[name], abs=1e-9)
        row = Retention(tuple(ColumnNoise(size, p) for size in sizes.values()))
        assert row.epsilon() == pytest.approx(expected["row4"], abs=1e-9)
        found += 1
    assert found


def test_writing_fails_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is released when verification fails."""
    monkeypatch.setattr("voile.kinds.perturbed.publishing.local_guarantee",
                        wrong)  # fmt: skip
    with pytest.raises(ReleaseError, match="does not follow"):
        write([np.zeros(3, np.int64)], Schema((SMALL["sex"],)), Retention((ColumnNoise(2, 0.5),)),
              tmp_path / "r.voile", name="t", nulls="error", overwrite=False)  # fmt: skip
    assert not list(tmp_path.iterdir())


def wrong(mechanism: Any, schema: Any, **more: Any) -> Any:
    from voile.kinds.perturbed.manifest import local_guarantee

    sound = local_guarantee(mechanism, schema, **more)
    return sound.model_copy(update={"epsilon": 0.01})


def test_release_is_abstract() -> None:
    with pytest.raises(TypeError):
        Release(Path(), None)  # type: ignore[abstract, arg-type]


# ---------------------------------------------------------------------- what a seen value tells


def test_exposure_is_bayes_rule_on_the_reconstructed_rows() -> None:
    """With so many rows that the reconstruction is close, against the posteriors of the truth."""
    table = people(200_000)
    chances = {"grade": {1: 4, 2: 3, 3: 2, 4: 1}}
    release = voile.perturb(table, {"sex": 0.5, "grade": 0.6}, chances, schema=SMALL,
                            simulate_seed=1)  # fmt: skip
    found = exposure(release, Breach(0.35, 0.6))
    assert found.left_out == ("weight",)
    truth = {
        "sex": (np.array([0.3, 0.7]), np.array([0.5, 0.5]), 0.5),
        "grade": (np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.4, 0.3, 0.2, 0.1]), 0.6),
    }
    for one in found.values:
        prior, mass, p = truth[one.column]
        posterior = prior * (p + (1 - p) * mass) / (p * prior + (1 - p) * mass)
        assert one.after == pytest.approx(posterior.max(), abs=0.01)
    alone = {one.columns: one for one in found.sets}
    assert alone["grade",].largest_relative == pytest.approx(1, abs=0.03)
    assert alone["sex",].largest_relative == pytest.approx(1.4, abs=0.03)
    # sex = f: 0.3 → 0.3·0.75/(0.5·0.3 + 0.25) = 0.5625, not above 0.6; grade 2: 0.3 → 0.72.
    assert alone["sex",].after == pytest.approx(0.5625, abs=0.01)
    assert alone["sex",].breached is False
    assert alone["grade",].breached is True


def test_exposure_refuses_what_it_cannot_measure() -> None:
    whole = voile.perturb(people(50), 0.5, schema=SMALL, whole_rows=True)
    with pytest.raises(UsageError, match="whole rows"):
        exposure(whole)
    public = voile.perturb(people(50), 0.5, "swap", schema=SMALL)
    with pytest.raises(UsageError, match="no column"):
        exposure(public)


# ---------------------------------------------------------------------- FRAPP beside the oracle


@pytest.mark.slow
def test_whole_rows_have_the_errors_of_frapp_in_figure_3(oracle: dict[str, Any]) -> None:
    """304,364 selections of Adult, at the retention that the errata reads: 1/41.

    The oracle's mean over eight seeds; one seed may differ by four of its standard deviations.
    """
    given_, p = oracle["fig3.frapp_multiset"], oracle["frapp.p"]["expected"]["p_record"]
    release = voile.perturb("dataset:adult/boundary", p, whole_rows=True, simulate_seed=2)
    schema = release.schema
    truth = selection_counts(
        TupleIndex(schema.sizes).decode(
            voile.read("dataset:adult/boundary").keys(schema, drop_nulls=False)
        ),
        schema.sizes,
    )
    seen = selection_counts(release.codes(), schema.sizes)
    estimates = (seen.counts - (1 - p) * release.rows * seen.domain / schema.size) / p
    asked = release.query("select count(*) from t where education = 'Bachelors' and sex = 'Male'")
    rows = release.to_pandas()
    counted = ((rows.education == "Bachelors") & (rows.sex == "Male")).sum()
    assert asked.value == pytest.approx((counted - (1 - p) * release.rows / 32) / p)
    measured = cumulative_error(truth.counts, estimates, given_["inputs"]["xs"])
    expected = np.array(given_["expected"]["mean_abs_error_Q>=x"])
    assert (np.abs(measured - expected) < 4 * np.array(given_["expected"]["seed_sd"])).all()


CHANCES = {"grade": {1: 4, 2: 3, 3: 2, 4: 1}}


@pytest.mark.parametrize("replace", ["uniform", "identity", "swap", CHANCES])
@pytest.mark.parametrize("weak", [False, True])
def test_rows_that_were_not_perturbed_as_stated_do_not_leave(
    replace: Any, weak: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sampler that keeps a tenth too much, or all, is caught before anything is written."""
    table, schema = people(60_000), SMALL.select(["grade"])
    voile.perturb(table, 0.5, replace, schema=schema, to=tmp_path / "sound.voile")
    honest = ColumnNoise.perturb

    def broken(self: ColumnNoise, codes_: Any, stream: Any) -> Any:
        kept = 0.55 if weak else 1.0
        return honest(dataclasses.replace(self, retention=kept), codes_, stream)

    monkeypatch.setattr(ColumnNoise, "perturb", broken)
    with pytest.raises(ReleaseError, match="column 'grade'"):
        voile.perturb(table, 0.5, replace, schema=schema, to=tmp_path / "broken.voile")
    assert [path.name for path in tmp_path.iterdir()] == ["sound.voile"]


def test_whole_rows_that_were_kept_do_not_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WholeRows, "perturb", lambda _self, codes_, _stream: list(codes_))
    with pytest.raises(ReleaseError, match="whole rows"):
        voile.perturb(people(5000), 0.3, schema=SMALL, whole_rows=True)
