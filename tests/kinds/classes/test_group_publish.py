"""Classes of rows, published: what is written is what was asked for, and verification can fail."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import voile
from tests.support.paths import TESTS
from voile.cli import app
from voile.errors import PromiseError, ReleaseError, TableError, UsageError, VoileError
from voile.kinds.classes.generalizing import generalize
from voile.kinds.manifest import Manifest, file_entry
from voile.release import ClassRelease

QI = ["age", "workclass", "education", "marital_status", "race", "sex"]
ORACLE = json.loads((TESTS / "oracle" / "frontier.json").read_text())
CURVES = ORACLE["curves"]["R1 edunum"]


def people(rows: int = 600, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    day = np.datetime64("2020-01-01") + rng.integers(0, 900, rows)
    return pd.DataFrame(
        {
            "id": np.arange(rows) + 10_000,
            "age": rng.integers(0, 95, rows),
            "zip": rng.choice([f"{a}{b}" for a in "12345" for b in "ab"], rows),
            "income": rng.normal(2000, 700, rows).round(2),
            "born": day.astype("datetime64[s]"),
            "ill": rng.choice(["flu", "asthma", "none", "cold"], rows),
            "paid": rng.choice(["yes", "no"], rows),
            "ward": pd.Categorical(rng.choice(["north", "south"], rows)),
        }
    )


ROLES: dict[str, Any] = {
    "qi": ["age", "zip", "income", "born"],
    "sensitive": ["ill", "paid"],
    "insensitive": ["ward"],
    "identifiers": ["id"],
}


def shown_classes(release: ClassRelease) -> pd.Series:
    """The classes as a reader of the Parquet files would find them: by what is shown."""
    frame = release.to_pandas()
    return frame.groupby(release.qi, observed=True).size()


@pytest.mark.parametrize(("asked", "name"), [({"k": 10}, "k:10"), ({"t": 0.1}, "t:0.1"),
                                             ({"l": 3}, "l:3"), ({"semantic": 2.0}, "d:2.0"),
                                             ({"k": 5000}, "k:5000")])  # fmt: skip
def test_the_command_line_of_the_issue_gives_the_oracles_classes(
    asked: dict[str, float], name: str, tmp_path: Path
) -> None:
    (option, value), *_ = asked.items()
    found = CliRunner().invoke(
        app,
        ["publish", "dataset:adult/frontier", "-o", str(tmp_path / "r.voile"), "--method",
         "mondrian", "--qi", ",".join(QI), "--sensitive", "occupation", f"--{option}", str(value),
         "--cuts", "median", "--json"],
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert told["classes"] == CURVES[name][0]
    assert set(told["requirements"]) == {option}


@pytest.mark.parametrize("recode", ["generalize", "bucketize"])
def test_what_is_shown_holds_the_rows_that_went_in(recode: Any) -> None:
    frame = people()
    release = voile.publish(frame, method="mondrian", recode=recode, k=8, l=1.2, **ROLES)
    shown = release.to_pandas()
    assert len(shown) == len(frame)
    assert "id" not in shown.columns
    assert sorted(shown["ward"]) == sorted(frame["ward"])
    if recode == "generalize":
        assert sorted(shown["ill"]) == sorted(frame["ill"])
        assert shown_classes(release).min() >= 8
    else:
        assert sorted(shown["age"]) == sorted(frame["age"])
        assert "ill" not in shown.columns
        hidden = pq.read_table(release.path / "sensitive" / "part-00000.parquet").to_pandas()
        told = hidden.groupby(["ill", "paid"])["rows"].sum()
        assert told.to_dict() == frame.groupby(["ill", "paid"]).size().to_dict()
        by_class = hidden.groupby("class")["rows"].sum()
        largest = hidden.groupby(["class", "ill"])["rows"].sum().groupby("class").max()
        assert (largest * 1.2 <= by_class).all()
    voile.verify(release)


def test_every_range_holds_the_value_that_it_stands_for() -> None:
    frame = people()
    made = generalize(frame, k=6, keep_order=True, **ROLES)
    shown = made.like(frame)
    low, high = zip(*(range_of(text) for text in shown["age"]), strict=True)
    assert ((frame["age"] >= np.array(low)) & (frame["age"] <= np.array(high))).all()
    for text, value in zip(shown["zip"], frame["zip"], strict=True):
        assert text == "*" or value in text.split(" | ") or "…" in text
    first, last = zip(*(str(t).split(" to ") * 2 if " to " not in str(t) else str(t).split(" to ")
                        for t in shown["born"].replace("*", "2020-01-01 to 2029-01-01")),
                      strict=True)  # fmt: skip
    days = frame["born"].dt.strftime("%Y-%m-%d").to_numpy()
    assert ((np.array(first) <= days) & (days <= np.array(last))).all()


def range_of(text: str) -> tuple[int, int]:
    if text == "*":
        return 0, 200
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def test_a_table_takes_no_error_model() -> None:
    frame = people()
    with pytest.raises(UsageError, match="error_model"):
        generalize(frame, k=6, error_model=False, **ROLES)


def test_a_frame_comes_back_with_its_columns_types_and_order() -> None:
    frame = people()
    made = generalize(frame, k=6, keep_order=True, **ROLES)
    shown = made.like(frame)
    listed = [name for name in frame.columns if name != "id"]
    assert list(shown.columns) == listed
    assert shown["ward"].dtype == frame["ward"].dtype
    assert shown.index.equals(frame.index)
    assert (shown["ill"] == frame["ill"]).all()
    same = generalize(pl.from_pandas(frame), k=6, keep_order=True, **ROLES)
    assert same.like(pl.from_pandas(frame)).columns == listed
    assert same.table.equals(made.table)
    arrow = generalize(pa.Table.from_pandas(frame), k=6, **ROLES)
    assert arrow.like(arrow.table) is arrow.table


def test_sorted_rows_do_not_tell_their_order() -> None:
    frame = people()
    made = generalize(frame, k=6, **ROLES)
    mixed = generalize(frame.sample(frac=1, random_state=3), k=6, **ROLES)
    assert made.table.equals(mixed.table)


def test_a_saved_recoding_is_applied_and_checked_anew(tmp_path: Path) -> None:
    frame = people(4000)
    made = generalize(frame, k=20, reusable=True, **ROLES)
    assert made.recoding is not None
    (tmp_path / "r.json").write_bytes(made.recoding.content)
    again = generalize(frame, apply=tmp_path / "r.json")
    assert again.table.equals(made.table)
    assert again.requirements == {"k": 20.0}
    new = people(3000, seed=2)
    new = new[new["income"].between(frame["income"].min(), frame["income"].max())]
    with pytest.raises(PromiseError, match="do not meet k = 20"):
        generalize(new, apply=tmp_path / "r.json")
    some = generalize(new, apply=tmp_path / "r.json", suppression=0.99)
    assert some.requirements["k"] >= 20
    sizes = some.to_pandas().groupby(ROLES["qi"]).size()
    assert sizes.min() >= 20
    assert set(some.to_pandas()["age"]) <= set(made.to_pandas()["age"])


def test_levels_are_a_recoding_too(tmp_path: Path) -> None:
    frame = people(2000)
    made = generalize(frame, method="fulldomain", k=10, reusable=True, **ROLES)
    assert made.recoding is not None
    (tmp_path / "r.json").write_bytes(made.recoding.content)
    again = generalize(frame, apply=tmp_path / "r.json")
    assert again.table.equals(made.table)
    roles = {**ROLES, "qi": ["zip"], "identifiers": ["id", "age", "income", "born"]}
    k = int(frame["zip"].value_counts().min()) + 1
    with pytest.raises(UsageError, match="values that only rows that were left out have"):
        generalize(frame, method="suppress", k=k, suppression=0.5, reusable=True, **roles)


def test_a_recoding_that_does_not_follow_from_values_is_refused() -> None:
    with pytest.raises(UsageError, match="relaxed cuts cannot be applied"):
        generalize(people(), k=6, relaxed=True, reusable=True, **ROLES)


@pytest.mark.parametrize("method", ["mondrian", "fulldomain", "trivial"])
def test_presence_is_that_of_the_ranges_that_are_shown(method: Any) -> None:
    everybody = people(3000)
    some = everybody.iloc[:900]
    roles = {**ROLES, "qi": ["age", "zip"], "identifiers": ["id", "income", "born"]}
    release = voile.publish(
        some, method=method, k=4, presence=(0.05, 0.6), population=everybody, **roles
    )
    codes, _ = voile.read(everybody).columns_of_codes(
        release.schema.select(["age", "zip"]), drop_nulls=False
    )
    shown = release.shown()
    stacked = np.stack(
        [np.argsort(release.order(n))[c] for n, c in zip(["age", "zip"], codes, strict=True)]
    )
    inside = [
        int(((stacked >= low[:, None]) & (stacked <= high[:, None])).all(axis=0).sum())
        for low, high in zip(shown.low, shown.high, strict=True)
    ]
    shares = shown.histograms.rows / np.array(inside)
    assert shares.max() <= 0.6 and shares.min() >= 0.05
    assert len(shares) > 10 or method != "mondrian"


@pytest.mark.parametrize("method", ["fulldomain", "suppress", "trivial"])
def test_other_methods_keep_k_as_it_is_shown(method: Any) -> None:
    roles = {**ROLES, "qi": ["age", "zip"], "identifiers": ["id", "income", "born"]}
    limit: dict[str, Any] = {} if method == "trivial" else {"suppression": 0.3}
    release = voile.publish(people(), method=method, k=7, **limit, **roles)
    assert shown_classes(release).min() >= 7
    assert release.rows + release.manifest.parameters.removed == 600


def test_classes_that_look_alike_are_one() -> None:
    """Relaxed cuts divide rows with equal values: their halves may show the same ranges."""
    frame = pd.DataFrame({"a": [1, 2] * 40, "s": ["x", "y", "y", "x"] * 20})
    release = voile.publish(frame, method="mondrian", qi=["a"], sensitive=["s"], k=5, relaxed=True)
    assert release.manifest.parameters.classes == len(shown_classes(release)) <= 3


def test_rows_that_were_left_out_are_told_with_every_answer() -> None:
    roles = {**ROLES, "qi": ["zip"], "identifiers": ["id", "income", "born", "age"]}
    k = int(people()["zip"].value_counts().min()) + 1
    release = voile.publish(people(), method="suppress", k=k, suppression=0.5, **roles)
    left = release.manifest.parameters.removed
    assert left > 0
    assert any("left out" in d.what for d in release.manifest.disclosed)
    answer = release.query("select count(*) from t where ill = 'flu'")
    assert f"{left:,} rows were left out" in str(answer.to_dict()["assumption"])


def test_suppressed_rows_may_be_shown_as_a_class_of_their_own() -> None:
    frame = people()
    roles = {**ROLES, "qi": ["zip"], "identifiers": ["id", "income", "born", "age"]}
    k = int(frame["zip"].value_counts().min()) + 1
    release = voile.publish(
        frame, method="suppress", k=k, suppression=0.5, suppressed="shown", **roles
    )
    assert release.rows == len(frame)
    sizes = shown_classes(release)
    assert "*" in sizes.index
    assert sizes.min() >= k
    answer = release.query("select count(*) from t where zip = '1a'").scalar
    assert answer.certain is not None
    low, high = answer.certain
    assert low <= (frame["zip"] == "1a").sum() <= high


def test_anatomy_keeps_l() -> None:
    roles = {**ROLES, "sensitive": ["ill"], "insensitive": ["ward", "paid"]}
    release = voile.publish(people(), method="anatomy", l=3, **roles)
    counts = release.histograms.counts[0]
    assert (counts.max(axis=1) * 3 <= release.histograms.rows).all()
    assert release.manifest.parameters.classes > 100
    assert not release.manifest.simulated


def test_null_is_a_value_like_any_other() -> None:
    frame = people()
    frame["zip"] = frame["zip"].where(np.arange(len(frame)) % 9 > 0)
    frame["age"] = frame["age"].where(np.arange(len(frame)) % 7 > 0)
    frame["ill"] = frame["ill"].where(np.arange(len(frame)) % 5 > 0)
    with pytest.raises(TableError, match="there are NULLs in"):
        voile.publish(frame, method="mondrian", k=5, **ROLES)
    release = voile.publish(frame, method="mondrian", k=5, nulls="as-value", **ROLES)
    voile.verify(release)
    shown = release.to_pandas()
    assert len(shown) == len(frame)
    assert shown["ill"].isna().sum() == frame["ill"].isna().sum()
    assert any("NULL" in str(text) for text in shown["age"])
    dropped = voile.publish(frame, method="mondrian", k=5, nulls="drop", **ROLES)
    assert dropped.rows == len(frame[["zip", "age", "ill"]].dropna())


def test_values_of_rows_that_were_left_out_are_not_told() -> None:
    frame = people(300)[["age", "zip", "ill"]]
    frame["age"] = 30 + frame["age"] % 3
    frame.loc[len(frame)] = [117, "Zell", "kuru"]
    release = voile.publish(
        frame, method="suppress", qi=["age", "zip"], sensitive=["ill"], k=3, suppression=0.2
    )
    assert release.manifest.parameters.removed >= 1
    told = "".join(file.read_text(errors="replace") for file in release.path.rglob("*.*"))
    assert not any(value in told for value in ("117", "Zell", "kuru"))
    voile.verify(release)
    assert release.query("select count(*) from t where age = 30").scalar.value > 0


def test_a_distance_is_not_made_smaller_by_a_row_that_is_left_out() -> None:
    """One row with the value 1000 must not make the step from 1 to 2 a tiny one."""
    rows = [("x", 1)] * 10 + [("x", 2)] * 10 + [("y", 1)] * 15 + [("y", 2)] * 5
    alone = pd.DataFrame(rows, columns=["q", "s"])
    beside = pd.DataFrame([*rows, ("z", 1000)], columns=["q", "s"])
    wish: dict[str, Any] = {"qi": ["q"], "sensitive": ["s"], "k": 5, "t": 0.3,
                            "t_distance": "emd-ordered", "method": "suppress",
                            "suppression": 0.05}  # fmt: skip
    found = [voile.publish(frame, **wish) for frame in (alone, beside)]
    measured = [r.manifest.guarantee.requirements[1].measured for r in found]
    assert found[1].manifest.parameters.removed == 1
    assert measured[0] == pytest.approx(measured[1]) == pytest.approx(0.125)


def test_values_that_were_rounded_or_cut_are_not_shown_as_they_were() -> None:
    """Classes of bins, steps or days: what is finer must not be shown beside them."""
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(
        {
            "close": np.repeat([1.0, 2.0, 3.0, 9_000.0], 50) + rng.random(200) / 1000,
            "seen": pd.to_datetime(rng.choice(["2024-01-01", "2024-01-02"], 200))
            + pd.to_timedelta(rng.integers(0, 86_000, 200), unit="s"),
            "code": [f"{i % 2:0{1 + i % 3}d}" for i in range(200)],
            "pay": rng.normal(100, 9, 200),
        }
    )
    schema = {"attributes": [
        {"name": "close", "kind": "numeric", "bins": [0, 5, 9_500]},
        {"name": "seen", "kind": "date", "range": ["2024-01-01", "2024-01-02"]},
        {"name": "code", "kind": "integer", "range": [0, 1]},
        {"name": "pay", "kind": "numeric", "bins": [0, 100, 200]},
    ]}  # fmt: skip
    for wish in ({"k": 10}, {"k": 10, "schema": schema}, {"t": 0.1, "schema": schema}):
        made = generalize(frame, qi=["close", "seen", "code"], sensitive="pay", **wish)
        shown = made.to_pandas()
        sizes = shown.groupby(["close", "seen", "code"], observed=True).size()
        assert len(sizes) == made.classes
        assert sizes.min() >= wish.get("k", 1)
        if "t" in wish:
            assert set(shown["pay"]) <= {"[0, 100)", "[100, 200]"}


def test_a_hierarchy_of_the_numbers_that_occur_is_enough(tmp_path: Path) -> None:
    """Postcodes are whole numbers with gaps: nobody lists those that nobody has."""
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"post": rng.choice([13001, 13002, 69001, 75020], 200),
                          "s": rng.choice(["x", "y"], 200)})  # fmt: skip
    lines = [f"{code};{code // 1000}***;*" for code in sorted(set(frame["post"]))]
    (tmp_path / "post.csv").write_text("\n".join(lines))
    wish: dict[str, Any] = {"qi": ["post"], "sensitive": "s", "k": 60,
                            "hierarchies": {"post": tmp_path / "post.csv"}}  # fmt: skip
    made = generalize(frame, method="fulldomain", suppression=0.6, **wish)
    assert set(made.to_pandas()["post"]) <= {"13***", "69***", "75***", "*"}
    cut = voile.publish(frame, method="mondrian", **{**wish, "k": 10})
    voile.verify(cut)
    assert cut.manifest.parameters.classes == 4


def test_nothing_is_written_that_tells_rows_of_a_class_apart(monkeypatch: Any) -> None:
    """The last look: were ranges forgotten, or given to the wrong classes, nothing would leave."""
    module = importlib.import_module("voile.kinds.classes.generalizing")
    monkeypatch.setattr(module, "texts_of", lambda *_: {})
    with pytest.raises(PromiseError, match="several values in one class"):
        generalize(people(), k=6, **ROLES)
    everything = {name: (("*",), np.zeros(600, dtype=np.int32)) for name in ROLES["qi"]}
    monkeypatch.setattr(module, "texts_of", lambda *_: everything)
    with pytest.raises(PromiseError, match="two classes would look alike"):
        generalize(people(), k=6, **ROLES)


def test_a_frames_index_is_not_given_back() -> None:
    frame = people().set_index(pd.Index([f"patient {i}" for i in range(600)]))
    frame["ward"] = pd.Categorical(frame["ward"], categories=["north", "south", "only one"])
    shown = generalize(frame, k=6, **ROLES).like(frame)
    assert list(shown.index) == list(range(600))
    assert list(shown["ward"].cat.categories) == ["north", "south"]
    kept = generalize(frame, k=6, keep_order=True, **ROLES).like(frame)
    assert kept.index.equals(frame.index)


@pytest.mark.parametrize("recode", ["generalize", "bucketize"])
def test_columns_may_be_called_anything(recode: Any) -> None:
    names = ["class", "rows", "population", "rows:low", "select", 'a "b", c']
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({name: rng.integers(0, 9, 300) for name in names})
    wish: dict[str, Any] = {"method": "mondrian", "recode": recode, "k": 20}
    release = voile.publish(frame, qi=names[1:5], sensitive=["class", names[5]], **wish)
    voile.verify(release)
    other = voile.publish(frame, qi=[names[0], *names[2:]], sensitive="rows", **wish)
    assert other.query('select count(*) from t where "rows" < 3').scalar.value > 0


def test_people_in_several_buckets_are_told_a_mixture() -> None:
    with pytest.raises(PromiseError, match="mixture of buckets"):
        voile.publish(people(), method="mondrian", relaxed=True, recode="bucketize", semantic=2.0,
                      absent="ignored", **ROLES)  # fmt: skip


# ---------------------------------------------------------------------- verification can fail


def tampered(release: ClassRelease, target: Path, change: Any) -> Path:
    """A copy whose files were changed and whose hashes fit again."""
    copy = release.save(target)
    change(copy.path)
    manifest = copy.manifest
    files = [
        file_entry(copy.path, copy.path / f.path, rows_in(copy.path / f.path, f.rows))
        for f in manifest.files
    ]
    sealed = manifest.model_copy(update={"files": files}).sealed()
    (copy.path / "manifest.json").write_text(sealed.text(), encoding="utf-8")
    return copy.path


def rows_in(path: Path, rows: int | None) -> int | None:
    return None if rows is None else pq.read_metadata(path).num_rows


def rewrite(path: Path, change: Any) -> None:
    table = pq.read_table(path)
    pq.write_table(change(table), path, store_schema=False, write_statistics=False)


def put(table: pa.Table, name: str, row: int, value: Any) -> pa.Table:
    values = table.column(name).to_pylist()
    values[row] = value
    field = table.schema.field(name)
    return table.set_column(table.schema.get_field_index(name), field, pa.array(values, field.type))


def test_a_row_moved_to_another_class_is_found(tmp_path: Path) -> None:
    release = voile.publish(people(), method="mondrian", k=8, **ROLES)
    data = "data/part-00000.parquet"
    path = tampered(
        release, tmp_path / "moved",
        lambda folder: rewrite(folder / data, lambda t: put(t, "class", 0, 1)),
    )  # fmt: skip
    with pytest.raises(ReleaseError):
        voile.verify(path)


def test_a_requirement_that_is_not_met_is_found(tmp_path: Path) -> None:
    release = voile.publish(people(), method="mondrian", l={"ill": 1.9}, **ROLES)

    def all_ill(folder: Path) -> None:
        """Every row of class 0 gets the same value."""

        def change(table: pa.Table) -> pa.Table:
            for row in np.flatnonzero(table.column("class").to_numpy() == 0):
                table = put(table, "ill", int(row), "flu")
            return table

        rewrite(folder / "data/part-00000.parquet", change)

    path = tampered(release, tmp_path / "ill", all_ill)
    with pytest.raises(ReleaseError, match="class 0 does not meet"):
        voile.verify(path)


def test_a_range_that_does_not_agree_is_found(tmp_path: Path) -> None:
    release = voile.publish(people(), method="mondrian", k=8, **ROLES)
    path = tampered(
        release, tmp_path / "range",
        lambda folder: rewrite(
            folder / "classes/part-00000.parquet", lambda t: put(t, "age:high", 0, 94)
        ),
    )  # fmt: skip
    with pytest.raises(ReleaseError, match="'age'"):
        voile.verify(path)


def test_sensitive_values_that_do_not_add_up_are_found(tmp_path: Path) -> None:
    release = voile.publish(people(), method="mondrian", k=8, recode="bucketize", **ROLES)
    path = tampered(
        release, tmp_path / "sums",
        lambda folder: rewrite(
            folder / "sensitive/part-00000.parquet", lambda t: put(t, "rows", 0, 77)
        ),
    )  # fmt: skip
    with pytest.raises(ReleaseError, match="sensitive/ does not agree"):
        voile.verify(path)


def test_a_manifest_that_promises_more_than_it_measured_is_found(tmp_path: Path) -> None:
    release = voile.publish(people(), method="mondrian", k=8, **ROLES)
    copy = release.save(tmp_path / "more")
    data = json.loads((copy.path / "manifest.json").read_text())
    data["guarantee"]["requirements"][0]["requirement"]["k"] = 9
    reseal(copy.path, data)
    with pytest.raises(ReleaseError, match="k = 9"):
        voile.verify(copy.path)


def reseal(folder: Path, data: dict[str, Any]) -> None:
    from voile.kinds.classes.manifest import ClassManifest

    manifest: Manifest = ClassManifest.model_validate(data)
    (folder / "manifest.json").write_text(manifest.sealed().text(), encoding="utf-8")


# ---------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"qi": []}, "no quasi-identifiers"),
        ({"qi": ["age", "ill"]}, "'ill' is in qi= and in sensitive="),
        ({"qi": ["age", "zipp", "income", "born"]}, "no column 'zipp'"),
        ({"insensitive": []}, "it was not said what these columns are: ward"),
        ({"k": None}, "no requirement was given for the classes"),
        ({"k": 0}, "k"),
        ({"k": 601}, "more than the whole table has"),
        ({"l": 5}, "ℓ = 5 cannot be"),
        ({"l": {"illness": 2}}, "'illness'"),
        ({"t": -1}, "t"),
        ({"method": "mondriaan"}, "mondriaan"),
        ({"recode": "hide"}, "recode='hide'"),
        ({"cuts": "random"}, "cuts='random'"),
        ({"method": "fulldomain", "cuts": "median"}, "cuts= belongs to method='mondrian'"),
        ({"suppression": 0.1}, "suppression= belongs to method='fulldomain'"),
        ({"presence": (0.1, 0.2)}, "presence= and population= go together"),
        ({"method": "anatomy", "recode": "generalize"}, "makes buckets"),
        ({"sensitive": [], "insensitive": ["ward", "ill", "paid"], "recode": "bucketize"}, "none"),
        ({"hierarchies": {"agee": "x.csv"}}, "'agee'"),
        ({"nulls": "maybe"}, "'maybe'"),
        ({"kk": 3}, "there is no option 'kk'"),
        ({"t_distance": "emd-equal"}, "t_distance='emd-equal' is given, and t= is not"),
        ({"l_measure": "entropy"}, "l_measure='entropy' is given, and l= is not"),
        ({"t": 0.2, "t_distance": "emd-ordered"}, "the values of 'ill' have no order"),
    ],
)
def test_wrong_options_are_refused_in_words(options: dict[str, Any], said: str) -> None:
    wish = {**ROLES, "method": "mondrian", "k": 5, **options}
    with pytest.raises(VoileError) as error:
        voile.publish(people(), **wish)
    assert said in error.value.message
    assert error.value.hint


def test_options_of_another_method_are_refused(tmp_path: Path) -> None:
    run = CliRunner()
    there = str(tmp_path / "r.voile")
    table = "dataset:adult/frontier"
    found = run.invoke(app, ["publish", table, "-o", there, "--k", "10"])
    assert isinstance(found.exception, UsageError)
    assert "--k belongs to --method mondrian" in found.exception.message
    wrong = ["publish", table, "-o", there, "--method", "mondrian", "--posterior", "0.2"]
    found = run.invoke(app, [*wrong, "--qi", ",".join(QI), "--sensitive", "occupation"])
    assert isinstance(found.exception, UsageError)
    assert "--posterior belongs to --method alphabeta" in found.exception.message
    found = run.invoke(app, [*wrong[:-2], "--columns", "age,sex", "--qi", "age"])
    assert isinstance(found.exception, UsageError)
    assert "--identifiers" in (found.exception.hint or "")
    assert not Path(there).exists()


def test_bad_files_are_refused_before_any_work(tmp_path: Path) -> None:
    wish = ["generalize", "dataset:adult/frontier", "--qi", ",".join(QI), "--k", "5"]
    for name, said in (("out.xlsx", "neither a .csv nor"), ("no/out.csv", "no folder")):
        found = CliRunner().invoke(app, [*wish, "-o", str(tmp_path / name)])
        assert isinstance(found.exception, UsageError)
        assert said in found.exception.message
    (tmp_path / "r.json").write_text('{"format": "other"}')
    apply = ["--apply", str(tmp_path / "r.json"), "-o", str(tmp_path / "o.csv")]
    found = CliRunner().invoke(app, ["generalize", "dataset:adult/frontier", *apply])
    assert isinstance(found.exception, UsageError)
    assert "is not a saved recoding" in found.exception.message
    assert not list(tmp_path.glob("*.csv"))


def test_neither_the_table_nor_a_release_is_written_to(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    people().to_csv(table, index=False)
    before = table.read_bytes()
    roles = ["--qi", "age,zip", "--sensitive", "ill", "--identifiers", "id,income,born,paid,ward"]
    wish = ["generalize", str(table), *roles, "--k", "5", "--overwrite"]
    run = CliRunner()
    release = voile.publish(people(), method="mondrian", k=8, **ROLES).save(tmp_path / "r.voile")
    out = str(tmp_path / "o.csv")
    for more, said in (
        (["-o", str(table)], "is the table itself"),
        (["-o", out, "--save", str(table)], "is the table itself"),
        (["-o", out, "--save", out], "the table and the recoding"),
        (["-o", str(release.path / "o.csv")], "inside the release"),
    ):
        found = run.invoke(app, [*wish, *more])
        assert isinstance(found.exception, UsageError)
        assert said in found.exception.message
    assert table.read_bytes() == before
    assert not Path(out).exists()
    voile.verify(release)
