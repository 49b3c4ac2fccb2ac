"""Classes of rows that are not at hand: the same as those of rows that are, by counts alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voile
from tests.engines.conftest import people
from tests.support.elsewhere import Counted, Elsewhere
from tests.support.random_units import REQUIREMENTS, feasible, halving, random_units, reference
from tests.support.soak import rounds
from voile.engines import connect
from voile.engines.jobs import CodedJob
from voile.errors import PromiseError, TableError
from voile.kinds.classes import publishing, reading
from voile.kinds.classes.afar import RegionGrouping, cut_afar
from voile.kinds.classes.finding import repeated
from voile.kinds.classes.options import ClassOptions
from voile.kinds.classes.publishing import class_draft
from voile.kinds.classes.reading import ClassInput, RowsAfar
from voile.privacy.requirements import K, Requirement, T
from voile.progress import Silent
from voile.recoding.mondrian import mondrian
from voile.recoding.units import Units
from voile.schema import Attribute, Range, Schema

NAMES = ["age", "sex", "education", "race", "salary", "hours_per_week"]
CLASSES: dict[str, Any] = {
    "method": "mondrian", "qi": NAMES[:4], "sensitive": NAMES[4:5], "insensitive": NAMES[5:],
    "simulate_seed": 1, "register": False, "name": "adult",
}  # fmt: skip
MEDIAN = CLASSES | {"k": 10, "cuts": "median", "error_model": False}
ASKED: dict[str, dict[str, Any]] = {
    "k": {"k": 10},
    "k and l": {"k": 5, "l": 1.2},
    "t": {"t": 0.1},
    "buckets": {"k": 5, "l": 1.2, "recode": "bucketize"},
    "hierarchies": {"k": 7, "cuts": "hierarchy"},
    "no cut is allowed": {"k": 40_000},
}


@cache
def adult() -> pa.Table:
    return voile.read("dataset:adult").rows(NAMES)[0]


def written(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def same_bytes(folder: Path, rows: pa.Table, table: Elsewhere, options: dict[str, Any]) -> None:
    """Publish the rows and the table, and compare all files."""
    for name, source in (("here", connect(rows)), ("there", table)):
        voile.publish(source, to=folder / f"{name}.voile", **options)
    here, there = (written(folder / f"{name}.voile") for name in ("here", "there"))
    assert sorted(here) == sorted(there)
    assert not [name for name in here if here[name] != there[name]]


# ---------------------------------------------------------------------- combinations with weights


@pytest.mark.parametrize(
    "options",
    [
        {"k": 10},
        {"k": 10, "l": 1.25, "t": 0.1},
        {"k": 10, "cuts": "information"},
        {"k": 10, "relaxed": False, "recode": "bucketize", "l": 1.2},
        {"k": 30, "method": "fulldomain", "suppression": 0.05},
        {"k": 30, "method": "suppress", "suppression": 0.3},
        {"k": 30, "method": "trivial"},
    ],
    ids=lambda of: "-".join(map(str, of.values())),
)
def test_combinations_with_weights_give_the_same_release(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error model, its files and its rows, which are repeated into several of them."""
    monkeypatch.setattr(publishing, "FILE_ROWS", 5000)
    same_bytes(tmp_path, adult(), Elsewhere(adult()), CLASSES | options)
    assert len(list((tmp_path / "there.voile" / "data").iterdir())) > 5


def test_a_public_table_may_lie_elsewhere_too(tmp_path: Path) -> None:
    some = adult().slice(0, 9000)
    options = CLASSES | {"k": 10, "presence": (0.0, 0.9)}
    for name, source, public in (
        ("here", connect(some), connect(adult())), ("there", Elsewhere(some), Elsewhere(adult())),
    ):  # fmt: skip
        voile.publish(source, to=tmp_path / f"{name}.voile", population=public, **options)
    assert written(tmp_path / "here.voile") == written(tmp_path / "there.voile")


class Heavy(Elsewhere):
    """Every row stands for a million."""

    def __len__(self) -> int:
        return 10**6 * super().__len__()

    def coded_sums(self, schema: Schema, job: CodedJob, **more: Any) -> pa.Table:
        found = super().coded_sums(schema, job, **more)
        times = pa.array(found.column("n").to_numpy() * 10**6)
        return found.set_column(found.num_columns - 1, "n", times)


@pytest.mark.parametrize("method", ["mondrian", "fulldomain", "suppress", "trivial"])
def test_the_number_of_rows_does_not_matter_where_they_are_alike(method: str) -> None:
    """5·10¹⁰ rows of some thousand combinations are grouped as their combinations are."""
    options = {name: value for name, value in CLASSES.items() if name != "register"}
    drafts = [
        class_draft(table, ClassOptions(**options | {"method": method, "k": k}), Path(), Silent())
        for table, k in ((connect(adult()), 10), (Heavy(adult()), 10**7))
    ]
    (light, heavy) = (publishing.showing(draft.found) for draft in drafts)
    assert heavy.rows == 10**6 * light.rows > 10**10
    assert (heavy.histograms.rows == 10**6 * light.histograms.rows).all()
    assert (heavy.low == light.low).all() and (heavy.high == light.high).all()


@given(
    weights=st.lists(st.integers(1, 9), min_size=1, max_size=20),
    size=st.integers(1, 12),
)
def test_keys_are_repeated_in_pieces(weights: list[int], size: int) -> None:
    keys = np.arange(len(weights)) * 3
    pieces = list(repeated(keys, np.array(weights), size))
    assert np.concatenate(pieces).tolist() == [
        3 * i for i, weight in enumerate(weights) for _ in range(weight)
    ]
    assert {len(piece) for piece in pieces[:-1]} <= {size}


# ---------------------------------------------------------------------- first cuts by counts


def input_of(
    units: Units, requirements: list[Requirement], seed: int, *, nested: bool = False
) -> ClassInput:
    """The units as a table elsewhere, whose codes are in another order than the positions."""
    draw = np.random.default_rng(seed)
    names = [f"q{j}" for j in range(len(units.sizes))]
    hierarchies = {n: halving(s) for n, s in zip(names, units.sizes, strict=True)} if nested else {}
    orders = {
        name: hierarchies[name].nested if nested else draw.permutation(size).astype(np.int32)
        for name, size in zip(names, units.sizes, strict=True)
    }
    columns = {
        name: np.repeat(orders[name][codes], units.weights)
        for name, codes in zip(names, units.codes, strict=True)
    }
    columns |= {f"s{a}": np.repeat(codes, units.weights) for a, codes in enumerate(units.sensitive)}
    sizes = (*units.sizes, *units.sensitive_sizes)
    schema = Schema(
        tuple(
            Attribute(name, "integer", Range(0, size - 1))
            for name, size in zip(columns, sizes, strict=True)
        )
    )
    mixed = draw.permutation(units.rows)
    table = Elsewhere(pa.table({name: column[mixed] for name, column in columns.items()}))
    afar = RowsAfar(table, schema, False, units.rows)
    return ClassInput(
        "units", units.rows, schema, {}, hierarchies, orders, requirements, (), None, afar
    )


def options_of(units: Units, **more: Any) -> ClassOptions:
    return ClassOptions(
        qi=[f"q{j}" for j in range(len(units.sizes))],
        sensitive=[f"s{a}" for a in range(len(units.sensitive_sizes))], simulate_seed=1, **more,
    )  # fmt: skip


def classes_in(units: Units, prepared: ClassInput, found: RegionGrouping) -> list[int]:
    """The class of every unit, read off what would be written."""
    of: dict[tuple[int, ...], int] = {}
    for part in found.parts():
        for place, number in enumerate(part.classes.tolist()):
            of[tuple(int(code[place]) for code in part.codes.values())] = number
    codes = [prepared.orders[f"q{j}"][column] for j, column in enumerate(units.codes)]
    return [of[tuple(map(int, one))] for one in np.vstack([*codes, *units.sensitive]).T]


@pytest.mark.parametrize("requirements", REQUIREMENTS, ids=lambda of: of[-1].spelling)
def test_first_cuts_are_those_of_the_whole_table(
    requirements: list[Requirement], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside Mondrian on all units, and beside its definition in plain Python."""
    tried = 0
    for seed in range(rounds(12, 40)):
        units = random_units(seed, weighted=bool(seed % 2))
        if not feasible(units, requirements):
            continue
        monkeypatch.setattr(reading, "MOST_HELD", (0, 6, 25)[seed % 3])
        prepared = input_of(units, requirements, seed)
        found = cut_afar(prepared, options_of(units, recode="bucketize"))
        known = mondrian(units, requirements).grouping
        assert (found.low == known.low).all() and (found.high == known.high).all()
        has = known.histograms(units)
        assert (found.histograms.rows == has.rows).all()
        for one, other in zip(found.histograms.counts, has.counts, strict=False):
            assert (one == other).all()
        classes = classes_in(units, prepared, found)
        sets = {
            frozenset(i for i, of in enumerate(classes) if of == number) for number in set(classes)
        }
        assert sets == reference(units, requirements)
        tried += len(known.low) > 1
    assert tried >= 2


def test_hierarchies_are_cut_into_children_by_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = 0
    for seed in range(rounds(15, 60)):
        units = random_units(seed, weighted=True)
        monkeypatch.setattr(reading, "MOST_HELD", (0, 10)[seed % 2])
        prepared = input_of(units, [K(4)], seed, nested=True)
        found = cut_afar(prepared, options_of(units, cuts="hierarchy"))
        known = mondrian(units, [K(4)], levels=list(prepared.levels.values())).grouping
        assert (found.low == known.low).all() and (found.high == known.high).all()
        assert (found.histograms.rows == known.histograms(units).rows).all()
        cut += len(known.low) > 2
    assert cut > 5


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 2), st.integers(0, 2), st.integers(0, 1)),
        min_size=4,
        max_size=60,
    ),
    k=st.integers(1, 4),
    most=st.integers(0, 30),
)
def test_any_table_is_cut_by_counts(rows: list[tuple[int, ...]], k: int, most: int) -> None:
    """Two sensitive attributes, of which both are read."""
    table = np.array(rows, dtype=np.int32).T
    units = Units(
        np.ascontiguousarray(table[:2]), (10, 3), np.ascontiguousarray(table[2:]), (3, 2),
        np.ones(len(rows), dtype=np.int64),
    )  # fmt: skip
    asked = [K(k), T(0.4), T(0.3, attribute=1)]
    known = mondrian(units, asked).grouping
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "MOST_HELD", most)
        prepared = input_of(units, asked, k)
        found = cut_afar(prepared, options_of(units, recode="bucketize"))
        assert (found.low == known.low).all() and (found.high == known.high).all()
        assert classes_in(units, prepared, found) == known.classes.tolist()


@pytest.mark.parametrize("asked", ASKED)
def test_a_release_cut_by_counts_has_the_same_bytes(
    asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_HELD", 900)
    monkeypatch.setattr(publishing, "FILE_ROWS", 7000)
    table = Counted(adult())
    options = CLASSES | {"cuts": "median"} | ASKED[asked] | {"error_model": False}
    same_bytes(tmp_path, adult(), table, options)
    assert len(table.levels) >= (1 if asked.startswith("no cut") else 5)
    assert len(list((tmp_path / "there.voile" / "data").iterdir())) == 7


@pytest.mark.parametrize("nulls", ["as-value", "drop"])
def test_nulls_and_wide_keys_are_cut_by_counts(
    nulls: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns of a trillion values beside: keys of rows have several words."""
    monkeypatch.setattr(reading, "MOST_HELD", 60)
    draw = np.random.default_rng(1)
    rows = people(3000).select(["age", "sex", "day", "member", "income"])
    for name in ("visit", "number"):
        rows = rows.append_column(name, pa.array(draw.choice([0, 3, 10**12], 3000)))
    table = Counted(rows)
    same_bytes(tmp_path, rows, table, {
        "method": "mondrian", "qi": ["age", "sex", "day"], "sensitive": ["member"],
        "insensitive": ["income", "visit", "number"], "k": 12, "t": 0.2, "nulls": nulls,
        "cuts": "median",
        "simulate_seed": 1, "register": False, "error_model": False, "name": "people",
    })  # fmt: skip
    assert len(table.levels) >= 4


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"method": "fulldomain"}, "fulldomain"),
        ({"method": "trivial"}, "trivial"),
        ({"cuts": "information"}, "information"),
        ({"cuts": "certainty"}, "certainty"),
        ({}, "cuts='boxes' needs every combination"),
        ({"cuts": "median", "error_model": True}, "error_model"),
    ],
)
def test_what_needs_all_combinations_is_refused_before_it_begins(
    options: dict[str, Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_HELD", 900)
    with pytest.raises(TableError, match=told) as refused:
        voile.publish(Elsewhere(adult()), **CLASSES | {"k": 10, "error_model": False} | options)
    assert "different ones are more than 900" in str(refused.value)
    assert "error_model=False" in (refused.value.hint or "")


@pytest.mark.parametrize("options", [{"relaxed": True}, {"method": "anatomy"}])
def test_single_rows_that_are_too_many_are_refused(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_SINGLE", 48_841)
    with pytest.raises(TableError, match="48,842 are more than 48,841"):
        voile.publish(Elsewhere(adult()), **CLASSES | {"l": 1.2} | options)


def test_what_the_whole_table_has_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_HELD", 900)
    with pytest.raises(PromiseError, match="in one class of all 48,842 rows"):
        voile.publish(Elsewhere(adult()), **MEDIAN | {"l": 1.9})


class Growing(Elsewhere):
    """A table that has one row more each time it is counted."""

    scans = 0

    def coded_sums(self, schema: Schema, job: CodedJob, **more: Any) -> pa.Table:
        found = super().coded_sums(schema, job, **more)
        type(self).scans += 1
        counts = found.column("n").to_numpy().copy()
        counts[0] += self.scans // self.steady
        return found.set_column(found.num_columns - 1, "n", pa.array(counts))

    steady = 6


@pytest.mark.parametrize("steady", [1, 6, 13])
def test_a_table_that_changes_is_refused(steady: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is counted, while its regions are cut, or while they are written."""
    monkeypatch.setattr(reading, "MOST_HELD", 900)
    monkeypatch.setattr(Growing, "steady", steady)
    monkeypatch.setattr(Growing, "scans", 0)
    with pytest.raises(TableError, match=r"had [\d,]+ rows where it has [\d,]+ later"):
        voile.publish(Growing(adult()), **MEDIAN)


class Unsorted(Elsewhere):
    """An engine that forgets an order."""

    def ordered_sums(
        self, schema: Schema, job: CodedJob, *, drop_nulls: bool
    ) -> Iterator[pa.Table]:
        yield from reversed(list(super().ordered_sums(schema, job, drop_nulls=drop_nulls)))


def test_an_order_that_is_lost_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_HELD", 900)
    with pytest.raises(TableError, match="in another order"):
        voile.publish(Unsorted(adult()), **MEDIAN)
