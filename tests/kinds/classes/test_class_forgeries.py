"""Classes that do not keep what they state are seen, whatever hashes say."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voile
from tests.support.forging import forged, sealed
from tests.support.running import told
from voile.kinds.verification import examine
from voile.recoding.labels import RangeWords
from voile.release import ClassRelease
from voile.schema import Attribute, Bins, Range, Values

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


def with_group(release: ClassRelease, to: Path, name: str) -> Path:
    """The release with a group of that name in the place of the first range."""
    ranges = release.ranges["age"]
    first = int((ranges.low < ranges.high).argmax())
    old = ranges.texts[ranges.text[first]]
    shutil.copytree(release.path, to)
    for part in ("classes/part-00000.parquet", "data/part-00000.parquet"):
        table = pq.read_table(to / part, partitioning=None)
        texts = [name if text == old else text for text in table.column("age").to_pylist()]
        place = table.column_names.index("age")
        table = table.set_column(place, table.schema.field(place), pa.array(texts))
        pq.write_table(table, to / part, compression="zstd", store_schema=False,
                       write_statistics=False)  # fmt: skip
    parameters = release.manifest.parameters.model_dump()
    parameters["groups"] = {"age": {name: [int(ranges.low[first]), int(ranges.high[first])]}}
    return sealed(to, parameters=parameters)


@pytest.mark.parametrize("name", ["87", "86-88", "86 to 88", "86 | 88", "NULL", "17 | 18"])
def test_a_group_that_reads_as_other_values(
    ranges: ClassRelease, tmp_path: Path, name: str
) -> None:
    """Whoever reads data/ takes the name of a value for the value."""
    assert name not in ranges.ranges["age"].texts
    sound = examine(with_group(ranges, tmp_path / "young.voile", "young"))
    assert sound.ok, sound.problems
    found = examine(with_group(ranges, tmp_path / "g.voile", name))
    assert found.whole and found.terms is False
    assert f"classes/: {name!r} of 'age' is not the range" in found.problems[0]


WORDS = {
    "integer": RangeWords(Attribute("n", "integer", Range(-5, 99)), None, None),
    "null": RangeWords(Attribute("n", "integer", Range(0, 99), null=True), None, None),
    "date": RangeWords(
        Attribute("d", "date", Range(dt.date(2020, 1, 1), dt.date(2020, 12, 31))), None, None
    ),
    "bins": RangeWords(Attribute("x", "numeric", Bins((0.0, 10.0, 20.5, 30.0))), None, None),
    "text": RangeWords(Attribute("t", "categorical", Values(("a", "b", "c", "d"))), None, None),
    "order": RangeWords(
        Attribute("t", "categorical", Values(("a", "b", "c", "d"))), None,
        np.array([3, 2, 1, 0], np.int32),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("column", "name", "ends", "allowed"),
    [
        ("integer", "twenties", (25, 34), True),
        ("integer", "20-30", (25, 34), True),
        ("integer", "20-29", (25, 35), False),
        ("integer", "20", (25, 34), False),
        ("integer", "-5-0", (0, 5), True),
        ("integer", "-5 to -1", (0, 5), False),
        ("integer", "100", (25, 34), True),
        ("null", "NULL", (3, 9), False),
        ("date", "2020-01-01", (0, 30), False),
        ("date", "2020-01-01 to 2020-01-31", (0, 30), True),
        ("date", "2020-01-01 to 2020-01-30", (0, 30), False),
        ("date", "January", (0, 30), True),
        ("bins", "[0, 10)", (0, 1), False),
        ("bins", "[0, 20.5)", (0, 1), True),
        ("bins", "[10, 30]", (0, 1), False),
        ("text", "a", (0, 1), True),
        ("text", "c", (0, 1), False),
        ("text", "a | b", (0, 1), True),
        ("text", "c | d", (0, 1), False),
        ("order", "c | d", (0, 1), True),
        ("order", "a", (0, 1), False),
    ],
)
def test_names_that_a_group_may_have(
    column: str, name: str, ends: tuple[int, int], allowed: bool
) -> None:
    assert WORDS[column].may_name(name, *ends) is allowed


def test_a_hierarchy_with_the_name_of_another_value_is_not_shown(tmp_path: Path) -> None:
    """Its groups are shown by their values; both releases are sound."""
    (tmp_path / "age.csv").write_text(
        "\n".join(f"{n},{'90' if n < 50 else 'old'}" for n in range(20, 100))
    )
    table = pa.table(
        {"age": [20 + i % 80 for i in range(400)], "d": [str(i % 4) for i in range(400)]}
    )
    release = voile.publish(
        table, method="fulldomain", k=6, qi=["age"], sensitive=["d"],
        hierarchies={"age": tmp_path / "age.csv"}, to=tmp_path / "h.voile",
    )  # fmt: skip
    assert set(voile.open(release.path).to_arrow()["age"].to_pylist()) == {"20-49", "old"}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"cuts": None}, "cuts = None"),
        ({"cuts": "by hand"}, "cuts = 'by hand'"),
        ({"cuts": "hierarchy", "relaxed": True}, "relaxed = True"),
        ({"levels": {"age": 3, "sex": 0}}, "levels ="),
        ({"method": "fulldomain"}, "'fulldomain'"),
        ({"method": "suppress", "cuts": None}, "levels = None"),
        ({"method": "suppress", "cuts": None, "levels": {"age": 0, "sex": 0}}, "stated at level 0"),
        ({"method": "fulldomain", "cuts": None, "levels": {"age": 1}}, "levels ="),
        ({"method": "anatomy", "cuts": None}, "recode = 'generalize'"),
        ({"method": "trivial", "cuts": None}, "classes ="),
        ({"removed": 7}, "removed = 7"),
        ({"exact": ["sex", "sex"]}, "exact ="),
        ({"groups": {"sex": {"x": [0, 1]}}}, "groups ="),
    ],
)
def test_how_rows_were_grouped_is_not_contradicted(
    ranges: ClassRelease, tmp_path: Path, changed: dict[str, Any], reason: str
) -> None:
    parameters = ranges.manifest.parameters.model_dump()
    method = changed.get("method", "mondrian")
    parameters |= {name: value for name, value in changed.items() if name != "method"}
    shutil.copytree(ranges.path, tmp_path / "m.voile")
    found = examine(sealed(tmp_path / "m.voile", parameters=parameters, method=method))
    assert found.whole and found.terms is False
    assert reason in found.problems[0]
