"""Releases in files of other programs: every kind, every format, read again by others."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

import voile
from tests.support.running import told
from tests.support.running import voile as run
from voile.errors import UsageError
from voile.export import export
from voile.export.exporting import BesideFiles
from voile.export.stata import stata_names
from voile.schema import Schema

ROWS = 240
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame({
    "age": RNG.integers(20, 26, ROWS),
    "sex": RNG.choice(["f", "m", "=x'y\n  (z"], ROWS),
    "paid": RNG.choice([0.5, 1.25], ROWS),
    "seen": pd.to_datetime(RNG.choice(["2020-01-01", "2020-02-03"], ROWS)).date,
    "sick": [True, False] * (ROWS // 2),
    "if": ["a", "a", None] * (ROWS // 3),
})  # fmt: skip
CODEBOOK = Schema.from_dict({"attributes": [
    {"name": "age", "kind": "integer", "range": [20, 25]},
    {"name": "sex", "kind": "categorical", "values": ["m", "f", "=x'y\n  (z", "d"]},
    {"name": "paid", "kind": "numeric", "values": [0.5, 1.25]},
    {"name": "seen", "kind": "date", "values": ["2020-01-01", "2020-02-03"]},
    {"name": "sick", "kind": "boolean"},
    {"name": "if", "kind": "categorical", "values": ["a"], "null": True},
]})  # fmt: skip
SMALL = CODEBOOK.select(["age", "sex", "if"])


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("releases")

    def made(name: str, **options: Any) -> Any:
        given: dict[str, Any] = {"name": "t", "register": False, **options}
        given["to"] = folder / f"{name}.voile"
        if name == "perturbed":
            return voile.perturb(FRAME, 0.7, schema=CODEBOOK, simulate_seed=1, **given)
        return voile.publish(FRAME, **given)

    classes = {"method": "mondrian", "qi": ["age", "sex"], "sensitive": ["sick"],
               "identifiers": ["paid", "seen", "if"], "nulls": "as-value"}  # fmt: skip
    seeded: dict[str, Any] = {"simulate_seed": 1, "schema": SMALL}
    return {
        "perturbed": made("perturbed"),
        "classes": made("classes", k=4, **classes),
        "buckets": made("buckets", l=2, recode="bucketize", **classes),
        "marginals": made("marginals", method="marginals", epsilon=2, **seeded),
        "counts": made("counts", method="conjuncts", direct=True, arity=2, rho=0.5, **seeded),
        "view": made("view", prior=0.05, retention=0.5, **seeded),
    }


OPTIONS: dict[str, dict[str, Any]] = {
    "perturbed": {}, "classes": {}, "buckets": {}, "marginals": {}, "marginals, tables":
    {"tables": True}, "counts": {}, "view": {"noisy_rows": True},
}  # fmt: skip


def shown(releases: dict[str, Any], case: str) -> tuple[Any, Any, dict[str, Any]]:
    """The release, its first table, and the options of a case."""
    release, options = releases[case.partition(",")[0]], dict(OPTIONS[case])
    if case == "marginals":
        options["number"] = 300
    file = Path(release.path).parent / f"{case}.parquet"
    if not file.exists():
        export(release, file, **options)
    return release, pq.read_table(file), options


def plain(rows: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows.to_pylist()]


@pytest.mark.parametrize("case", OPTIONS)
def test_csv_and_parquet_hold_the_same_rows(
    releases: dict[str, Any], tmp_path: Path, case: str
) -> None:
    release, rows, options = shown(releases, case)
    found = export(release, tmp_path / "t.csv", **options)
    with (tmp_path / "t.csv").open(newline="") as file:
        read = list(csv.reader(file))
    assert read[0] == rows.column_names
    assert len(read) == rows.num_rows + 1
    texts = [c for c in rows.column_names if rows.schema.field(c).type == pa.string()]
    for name in texts:
        place = read[0].index(name)
        assert [r[place] for r in read[1:]] == [v or "" for v in rows[name].to_pylist()]
    assert found.rows >= rows.num_rows
    readme = Path(found.readme or "").read_text()
    said = json.loads(rows.schema.metadata[b"voile"])
    for text in (readme, said["readme"]):
        assert "## What is promised" in text
        assert "How to count from it without Voile" in text
        assert release.manifest.digest in text
    assert said["promise"] == release.promise_in_short


@pytest.mark.parametrize("case", OPTIONS)
@pytest.mark.parametrize("dialect", ["standard", "duckdb", "sqlite"])
def test_sql_makes_the_same_rows(
    releases: dict[str, Any], tmp_path: Path, case: str, dialect: str
) -> None:
    release, rows, options = shown(releases, case)
    export(release, tmp_path / "t.sql", dialect=dialect, **options)
    text = (tmp_path / "t.sql").read_text()
    assert text.startswith("-- # t, exported")
    if dialect == "sqlite":
        with sqlite3.connect(":memory:") as db:
            db.executescript(text)
            made = db.execute('select * from "t"').fetchall()
        expected = [
            tuple(v if isinstance(v, str | float | None) or v is None else
                  int(v) if isinstance(v, bool | int) else str(v) for v in row)
            for row in plain(rows)
        ]  # fmt: skip
        assert made == expected
        return
    with duckdb.connect() as other:
        other.execute(text)
        assert other.execute('select * from "t"').fetchall() == plain(rows)
        names = [name for (name,) in other.execute("show tables").fetchall()]
    assert names == (["t", "t_sensitive"] if case == "buckets" else ["t"])


@pytest.mark.parametrize("case", OPTIONS)
def test_stata_reads_rows_labels_and_notes(
    releases: dict[str, Any], tmp_path: Path, case: str
) -> None:
    release, rows, options = shown(releases, case)
    found = export(release, tmp_path / "t.dta", **options)
    frame, meta = pyreadstat.read_dta(str(tmp_path / "t.dta"), apply_value_formats=True)
    assert len(frame) == rows.num_rows
    texts = [c for c in rows.column_names if rows.schema.field(c).type == pa.string()]
    for name in texts:
        called = "if_" if name == "if" else name
        values = [None if pd.isna(v) else v for v in frame[called].astype(object)]
        assert values == rows[name].to_pylist()
    assert any("## What is promised" in note for note in meta.notes)
    assert meta.notes[0].startswith(found.about.split(". ")[0])
    if case == "perturbed":
        assert list(meta.variable_value_labels["sex"].values()) == ["m", "f", "=x'y\n  (z", "d"]
        assert frame["seen"].to_list() == rows["seen"].to_pylist()
        assert "'if' is called if_" in found.notes
        assert meta.column_names_to_labels["if_"] == "if"


def test_noisy_tables_have_their_errors(releases: dict[str, Any], tmp_path: Path) -> None:
    release, rows, _ = shown(releases, "marginals, tables")
    frame = rows.to_pandas()
    some = frame[frame["table"] == "age, sex"] if "age, sex" in set(frame["table"]) else None
    names = tuple(frame["table"].iloc[0].split(", "))
    if some is not None:
        names = ("age", "sex")
    part = frame[frame["table"] == ", ".join(names)]
    assert np.allclose(part["count"], release.table(names).ravel())
    answer = release.query(f"select {names[0]}, count(*) from t group by 1", refine=False)
    summed = part.groupby(names[0])["count"].sum()
    assert np.isclose(answer.rows[0]["count"].value, summed.loc[answer.rows[0][names[0]]])
    assert (part["stderr"] > 0).all()
    counts = pq.read_table(_of(releases["counts"], tmp_path))
    assert counts.column_names == ["table", "age", "sex", "if", "count", "stderr"]
    assert set(counts["table"].to_pylist()) == {"age, sex", "age, if", "sex, if"}


def _of(release: Any, folder: Path) -> Path:
    export(release, folder / "counts.parquet")
    return folder / "counts.parquet"


def test_synthetic_and_noisy_rows_say_what_they_are(
    releases: dict[str, Any], tmp_path: Path
) -> None:
    export(releases["marginals"], tmp_path / "t.parquet", number=7)
    rows = pq.read_table(tmp_path / "t.parquet")
    assert rows["synthetic"].to_pylist() == [True] * 7
    view = releases["view"]
    with pytest.raises(UsageError, match="its rows mean nothing by themselves") as refused:
        export(view, tmp_path / "v.csv")
    assert "noisy_rows=True" in refused.value.hint
    assert not list(tmp_path.glob("*v.csv*"))
    found = export(view, tmp_path / "v.parquet", noisy_rows=True)
    assert set(pq.read_table(tmp_path / "v.parquet")["noisy_row"].to_pylist()) == {True}
    assert "WARNING" in found.about


def test_the_sensitive_values_of_buckets_stand_in_a_file_of_their_own(
    releases: dict[str, Any], tmp_path: Path
) -> None:
    found = export(releases["buckets"], tmp_path / "t.csv")
    assert [Path(p).name for p in found.paths] == ["t.csv", "t-sensitive.csv"]
    rows = pd.read_csv(tmp_path / "t-sensitive.csv")
    assert rows["rows"].sum() == ROWS


def test_formulas_are_counted_or_made_harmless(releases: dict[str, Any], tmp_path: Path) -> None:
    release = releases["perturbed"]
    cells = FRAME["sex"].shape[0]
    found = export(release, tmp_path / "t.csv")
    assert 0 < found.formulas < cells
    safe = export(release, tmp_path / "safe.csv", csv_safe=True)
    assert safe.formulas == 0
    assert "'=x'y" in (tmp_path / "safe.csv").read_text()


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"path": "t.xlsx"}, "ends in .xlsx, which says no format", "format='csv'"),
    ({"path": "t"}, "ends in nothing", ".csv"),
    ({"path": "t.json"}, "ends in .json", "croissant.json"),
    ({"path": "t.csv", "format": "cvs"}, "format='cvs' is not known", "csv"),
    ({"path": "t.csv", "dialect": "duckdb"}, "dialect='duckdb' is for SQL", ".sql"),
    ({"path": "t.sql", "dialect": "oracle"}, "dialect='oracle' is not known", "sqlite"),
    ({"path": "t.parquet", "csv_safe": True}, "csv_safe=True is for CSV", ".csv"),
    ({"path": "no/t.csv"}, "there is no folder", "make it first"),
    ({"path": "t.csv", "tables": True}, "tables=True is for other releases", "leave out"),
    ({"path": "t.csv", "noisy_rows": True}, "noisy_rows=True is for other", "leave out"),
    ({"path": "t.csv", "number": 3}, "number=3 is for other releases", "leave out"),
    ({"path": "ddi.xml", "tables": True}, "tables=True is for other releases", "leave out"),
    ({"path": "there.csv"}, "exists already", "overwrite=True"),
    ({"path": "folder", "format": "csv"}, "is a folder", "name a file"),
]


@pytest.mark.parametrize(("given", "message", "hint"), REFUSED)
def test_what_cannot_be_is_refused_and_nothing_is_left(
    releases: dict[str, Any], tmp_path: Path, given: dict[str, Any], message: str, hint: str
) -> None:
    (tmp_path / "there.csv").write_text("mine")
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.iterdir())
    options = dict(given)
    with pytest.raises(UsageError, match=message) as refused:
        export(releases["perturbed"], tmp_path / options.pop("path"), **options)
    assert hint in refused.value.hint
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "there.csv").read_text() == "mine"


def test_nothing_is_written_into_a_release(releases: dict[str, Any]) -> None:
    release = releases["perturbed"]
    with pytest.raises(UsageError, match="is inside the release"):
        export(release, release.path / "t.csv")


def test_files_have_their_names_together_or_not_at_all(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    two.write_text("old")
    with pytest.raises(UsageError, match="exists already"), BesideFiles() as beside:
        beside.place(one).write_text("new")
        beside.place(two).write_text("new")
        beside.commit(overwrite=False)
    assert [p.name for p in tmp_path.iterdir()] == ["two"]
    assert two.read_text() == "old"


def test_names_that_stata_takes() -> None:
    long = "a" * 40
    found = stata_names(["if", "height, cm", "1st", long, f"{long}b", "str5", "größe"])
    assert list(found.values()) == [
        "if_", "height__cm", "_1st", "a" * 32, "a" * 30 + "_2", "str5_", "gr__e",
    ]  # fmt: skip


def test_the_command(releases: dict[str, Any], tmp_path: Path) -> None:
    place = str(releases["marginals"].path)
    said = told(["export", place, "-o", str(tmp_path / "t.csv"), "--tables"])
    assert list(said) == [
        "release", "kind", "format", "paths", "rows", "readme", "about", "notes", "formulas",
    ]  # fmt: skip
    again = run("export", place, "-o", str(tmp_path / "t.csv"), "--tables")
    assert again.returncode == 2
    assert "--overwrite" in again.stderr
    done = run("export", place, "-o", str(tmp_path / "t.csv"), "--tables", "--overwrite")
    assert done.returncode == 0
    assert "README.md: the promise, and how to count" in " ".join(done.stdout.split())
    wrong = run("export", str(releases["view"].path), "-o", str(tmp_path / "v.csv"))
    assert wrong.returncode == 2
    assert "--noisy-rows" in wrong.stderr
