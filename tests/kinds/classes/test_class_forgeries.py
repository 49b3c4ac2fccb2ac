"""Classes that do not keep what they state are seen, whatever hashes say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import voile
from tests.support.forging import forged
from tests.support.running import told
from voile.kinds.verification import examine
from voile.release import ClassRelease

ROLES: dict[str, Any] = {
    "qi": ["age", "sex"], "sensitive": ["occupation"], "insensitive": ["race"],
    "identifiers": ["workclass", "education", "marital_status"],
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("classes")


@pytest.fixture(scope="module")
def ranges(folder: Path) -> ClassRelease:
    found = voile.publish(
        "dataset:adult/frontier", method="mondrian", k=5, to=folder / "k5.voile", **ROLES
    )
    assert isinstance(found, ClassRelease) and found.manifest.parameters.exact == ["sex"]
    return found


@pytest.fixture(scope="module")
def buckets(folder: Path) -> ClassRelease:
    found = voile.publish(
        "dataset:adult/frontier", method="anatomy", l=3, to=folder / "l3.voile", **ROLES
    )
    assert isinstance(found, ClassRelease)
    return found


def first_of_each(classes: Any) -> np.ndarray[Any, Any]:
    numbers = np.asarray(classes)
    return np.append(True, numbers[1:] != numbers[:-1])


def test_an_exact_column_that_varies_within_a_class(ranges: ClassRelease, tmp_path: Path) -> None:
    """One row of each class has the other sex: it is alone, or nearly."""

    def flip(table: pa.Table) -> pa.Table:
        first = first_of_each(table.column("class"))
        sex = np.asarray(table.column("sex"))
        other = np.where(sex == "Male", "Female", "Male")
        place = table.column_names.index("sex")
        return table.set_column(
            place, table.schema.field(place), pa.array(np.where(first, other, sex))
        )

    found = examine(forged(ranges, tmp_path / "flip.voile", flip))
    assert found.whole and found.terms is False
    assert "shows several values of 'sex'" in found.problems[0]


def test_what_no_requirement_is_about_is_named(ranges: ClassRelease, buckets: ClassRelease) -> None:
    assert told(["verify", str(ranges.path)])["unprotected"] == ["race"]
    assert told(["verify", str(buckets.path)])["unprotected"] == ["age", "sex", "race"]


def column(name: str, change: Callable[[Any], Any]) -> Callable[[pa.Table], pa.Table]:
    """A change of one column, given and taken as an array."""

    def changed(table: pa.Table) -> pa.Table:
        place = table.column_names.index(name)
        values = pa.array(change(np.asarray(table.column(name))), table.schema.field(place).type)
        return table.set_column(place, table.schema.field(place).with_nullable(True), values)

    return changed


def shifted(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Rows that add up as before, but some of them are less than none."""
    rows = rows.copy()
    rows[0] += 3
    rows[1] -= 3
    return rows


def first_is(value: Any) -> Callable[[np.ndarray[Any, Any]], list[Any]]:
    return lambda values: [value, *values.tolist()[1:]]


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("rows", shifted, "a value that no row has"),
        ("rows", first_is(None), "has no value of 'rows'"),
        ("class", first_is(2**32), "names a class that is not there"),
        ("class", first_is(-1), "names a class that is not there"),
        ("occupation", first_is("Astronaut"), "outside the domain"),
        ("occupation", lambda values: [values[1], *values[1:].tolist()], "twice"),
    ],
)
def test_sensitive_values_that_cannot_be(
    buckets: ClassRelease, tmp_path: Path, name: str, change: Callable[[Any], Any], reason: str
) -> None:
    folder = forged(buckets, tmp_path / "f.voile", column(name, change), "sensitive/")
    found = examine(folder)
    assert not found.ok and (found.whole is False or found.terms is False)
    with pytest.raises(voile.errors.ReleaseError, match=reason):
        voile.verify(folder)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rows", first_is(None)),
        ("rows", first_is(10**6)),
        ("age:low", first_is(-5)),
        ("age:high", first_is(10**6)),
        ("class", first_is(1)),
        ("age", first_is("17 … 90")),
    ],
)
def test_ranges_that_cannot_be(
    ranges: ClassRelease, tmp_path: Path, name: str, change: Callable[[Any], Any]
) -> None:
    folder = forged(ranges, tmp_path / "f.voile", column(name, change), "classes/")
    assert not examine(folder).ok


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"unit": "differential privacy with epsilon = 0.01"}, "something else than classes"),
        ({"attribute": "occupation"}, "names another column"),
        ({"measured": float("inf")}, "the classes have"),
    ],
)
def test_guarantees_that_were_not_measured(
    ranges: ClassRelease, tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    guarantee = ranges.manifest.guarantee.model_dump()
    place = guarantee if "unit" in change else guarantee["requirements"][0]
    place.update(change)
    folder = forged(ranges, tmp_path / "g.voile", lambda table: table, guarantee=guarantee)
    with pytest.raises(voile.errors.ReleaseError, match=reason):
        voile.verify(folder)
