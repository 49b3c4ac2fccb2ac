"""A series from one view to the next: what its ledger remembers, refuses and survives."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voile
from tests.kinds.views.test_series import histories
from tests.support.paths import ROOT
from tests.support.sampling import proportion_at_least
from voile.errors import PromiseError, ReleaseError, SchemaError, UsageError
from voile.kinds import publishing
from voile.kinds.manifest import MANIFEST, file_entry
from voile.kinds.staging import Staging
from voile.kinds.views.manifest import ViewManifest
from voile.kinds.views.series_ledger import SeriesLedger, opened
from voile.kinds.views.series_publishing import differences
from voile.mechanisms import Series
from voile.publishing import Publication, publish_table
from voile.schema import Schema, TupleIndex
from voile.system import here as system

SCHEMA = Schema.from_dict(
    {
        "attributes": [
            {"name": "town", "kind": "categorical", "values": [f"t{i}" for i in range(20)]},
            {"name": "age", "kind": "integer", "range": [0, 99]},
        ]
    }
)
OPTIONS: dict[str, Any] = {"series": "people", "schema": SCHEMA, "prior": 0.01}


def table(rows: int, start: int = 0) -> pa.Table:
    """Rows `start` … `start + rows` of an endless list of people."""
    places = np.arange(start, start + rows) * 37 % 2000
    return pa.table({"town": [f"t{p // 100}" for p in places], "age": places % 100})


def view(people: pa.Table, to: Path, **more: Any) -> Publication:
    return publish_table(people, to=to, **OPTIONS | more)


def content(release: Path) -> dict[str, bytes]:
    return {
        file.relative_to(release).as_posix(): file.read_bytes()
        for file in release.rglob("*")
        if file.is_file()
    }


# ---------------------------------------------------------------------- views and what they cost


def test_unchanged_tables_give_the_identical_view_and_cost_nothing(tmp_path: Path) -> None:
    first = view(table(300), tmp_path / "1.voile")
    assert first.series == {
        "name": "people", "view": 1, "views": 4, "spent": 1, "identical": False,
    }  # fmt: skip
    shuffled = table(300).take(np.random.default_rng(1).permutation(300))
    for _ in range(5):  # more often than there are views
        again = view(shuffled, tmp_path / "again.voile", overwrite=True)
        assert again.series == first.series | {"identical": True}
        assert content(again.release.path) == content(first.release.path)
    fresh = view(table(300), tmp_path / "2.voile", always_fresh=True)
    assert fresh.series is not None
    assert (fresh.series["view"], fresh.series["identical"]) == (2, False)
    assert (
        content(fresh.release.path)["data/part-00000.parquet"]
        != content(first.release.path)["data/part-00000.parquet"]
    )
    assert not any("changed" in d.what for d in fresh.release.manifest.disclosed)


def test_changed_tables_spend_views_until_none_is_left(tmp_path: Path) -> None:
    for number in range(1, 4):
        done = view(table(300, start=number), tmp_path / f"{number}.voile", views=3)
        assert done.series is not None
        assert done.series["view"] == number
        voile.verify(done.release.path)
        told = [d.what for d in done.release.manifest.disclosed]
        assert ("that the table has changed since the view before" in told) == (number > 1)
    with pytest.raises(PromiseError, match="all 3 views of the series 'people' are spent"):
        view(table(300, start=9), tmp_path / "4.voile")
    assert not (tmp_path / "4.voile").exists()
    again = view(table(300, start=3), tmp_path / "3b.voile").series
    assert again == (done.series or {}) | {"identical": True}
    text = done.release.describe()
    assert "view 3 of at most 3 of the series people" in text
    assert "has ever been in the series" in text


def test_the_posterior_so_far_is_that_of_the_exact_ratio(tmp_path: Path) -> None:
    reached = []
    for number in range(1, 5):
        manifest = view(table(50, start=number), tmp_path / f"{number}.voile").release.manifest
        part, mechanism = manifest.parameters.series, manifest.mechanism
        assert part is not None
        assert isinstance(mechanism, Series)
        ratio = mechanism.noise.likelihood_ratio(number)
        assert part.posterior == float(ratio.posterior(0.01))
        reached.append(part.posterior)
    assert reached == sorted(reached)
    assert reached[-1] == pytest.approx(0.2, rel=1e-9)


def test_the_posterior_so_far_is_that_of_the_adversary(tmp_path: Path) -> None:
    """One who knows that exactly one of several is there: high/low, and γ at the end."""
    for number in range(1, 3):
        manifest = view(table(50, start=number), tmp_path / f"{number}.voile", views=2,
                        adversary="exclusive").release.manifest  # fmt: skip
        part, mechanism = manifest.parameters.series, manifest.mechanism
        assert part is not None
        assert isinstance(mechanism, Series)
        ratio = mechanism.noise.likelihood_ratio(number)
        assert ratio.high is not None
        odds = ratio.high / ratio.low / 99
        assert part.posterior == pytest.approx(float(odds / (1 + odds)), rel=1e-9)
        reached = part.posterior
    assert reached == pytest.approx(0.2, rel=1e-9)


def test_describe_says_what_edits_are_worth(tmp_path: Path) -> None:
    release = view(table(50), tmp_path / "1.voile").release
    mechanism = release.mechanism
    assert isinstance(mechanism, Series)
    most = float(mechanism.noise.followed().posterior(0.01))
    assert most > 0.9
    text = release.describe()
    assert f"an edit before every view may come to believe in it with up to {most:.3g}" in text
    assert "a row that is edited is another record" in text
    stays = view(table(50), tmp_path / "2.voile", series="stays", changes_at_most=0).release
    assert "edit" not in stays.describe()


def test_the_rows_of_the_first_table_follow_from_a_relative_prior(tmp_path: Path) -> None:
    options = {"prior": None, "prior_factor": 1.0, "posterior": 0.5}
    first = view(table(300), tmp_path / "1.voile", **options).release.manifest
    second = view(table(310), tmp_path / "2.voile", **options).release.manifest
    assert first.promise == second.promise
    assert (first.public_rows, second.public_rows) == (300, None)
    assert "the number of rows of the table at the first view" in {d.what for d in second.disclosed}
    assert first.guarantee.epsilon.add_remove is second.guarantee.epsilon.add_remove is None


def test_from_python_a_view_needs_a_place(tmp_path: Path) -> None:
    """Without one the identical view would go with the object that was returned."""
    options = OPTIONS | {"ledger": tmp_path / "my.series"}
    with pytest.raises(UsageError, match="a view of a series needs a place") as refused:
        voile.publish(table(100), **options)
    assert 'to="v1.voile"' in refused.value.hint
    assert list(tmp_path.iterdir()) == []
    first = voile.publish(table(100), to=tmp_path / "1.voile", **options)
    again = voile.publish(table(100), to=tmp_path / "1b.voile", **options)
    assert first.manifest == again.manifest
    second = voile.publish(table(101), to=tmp_path / "2.voile", **options)
    series_ = second.manifest.parameters.series
    assert series_ is not None
    assert series_.view == 2


def test_simulations_draw_other_coins_for_every_view(tmp_path: Path) -> None:
    found = [
        view(table(300), tmp_path / f"{i}.voile", always_fresh=True, simulate_seed=7).release
        for i in range(2)
    ]
    assert all(release.manifest.simulated for release in found)
    assert not found[0].to_arrow().equals(found[1].to_arrow())
    with pytest.raises(PromiseError, match="begun with simulate_seed=, not secret noise"):
        view(table(300), tmp_path / "3.voile")


# ---------------------------------------------------------------------- what is refused


DIFFERENT: list[tuple[dict[str, Any], str]] = [
    ({"posterior": 0.3}, "posterior=0.2, not posterior=0.3"),
    ({"prior": 0.02}, "prior=0.01, not prior=0.02"),
    ({"prior": None}, "prior=0.01, not no prior="),
    ({"adversary": "exclusive"}, "adversary='independent', not adversary='exclusive'"),
    ({"rows": "set"}, "rows='multiset', not rows='set'"),
    ({"retention": 0.1}, "no retention=, not retention=0.1"),
    ({"views": 5}, "views=4, not views=5"),
    ({"changes_at_most": 5}, "no changes_at_most=, not changes_at_most=5"),
    ({"nulls": "drop"}, "nulls='error', not nulls='drop'"),
    ({"columns": ["town"]}, "the columns town, age, not town"),
    ({"schema": None, "columns": ["age", "town"]}, "columns=['town', 'age']"),
]


def test_terms_stay_the_same(tmp_path: Path) -> None:
    view(table(100), tmp_path / "1.voile")
    before = (tmp_path / "people.series").read_bytes()
    for options, message in DIFFERENT:
        with pytest.raises(PromiseError, match=re.escape(message)) as refused:
            view(table(101), tmp_path / "2.voile", **options)
        assert "another series" in refused.value.hint
    assert (tmp_path / "people.series").read_bytes() == before
    # What is left out, as the domain and its columns may be, stays as it is.
    assert view(table(101), tmp_path / "2.voile", schema=None).series is not None


def test_another_domain_is_refused_by_name(tmp_path: Path) -> None:
    view(table(100), tmp_path / "1.voile")
    data = SCHEMA.to_dict()
    data["attributes"][1]["range"] = [0, 120]
    with pytest.raises(PromiseError, match="another domain of 'age'"):
        view(table(101), tmp_path / "2.voile", schema=Schema.from_dict(data))
    outside = pa.table({"town": ["t1"], "age": [130]})
    with pytest.raises(SchemaError, match="130 is not in"):
        view(outside, tmp_path / "2.voile", schema=None)


def test_more_changes_than_declared_are_refused(tmp_path: Path) -> None:
    done = view(table(100), tmp_path / "1.voile", changes_at_most=4)
    assert any("changes_at_most=4 makes no answer better" in note for note in done.notes)
    with pytest.raises(PromiseError, match=r"6 rows came or went since view 1.*at most 4"):
        view(table(100, start=3), tmp_path / "2.voile")
    assert view(table(100, start=2), tmp_path / "2.voile").release.manifest.parameters.series


def test_a_table_that_was_declared_never_to_change(tmp_path: Path) -> None:
    first = view(table(100), tmp_path / "1.voile", changes_at_most=0)
    noise = first.release.manifest.parameters.series
    assert noise is not None
    assert noise.unseen == sorted(noise.unseen, reverse=True)
    assert noise.unseen[-1] < noise.unseen[0]
    with pytest.raises(PromiseError, match="declared to change never"):
        view(table(101), tmp_path / "2.voile")
    second = view(table(100), tmp_path / "2.voile", always_fresh=True).release
    answer = second.query("select count(*) from people")
    assert "from all 2 views of the series together" in answer.notes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"series": None, "views": 3}, "views= belongs to series="),
        ({"series": None, "always_fresh": True}, "always_fresh= belongs to series="),
        ({"series": None, "ledger": "x"}, "ledger= belongs to series="),
        ({"series": "a/b"}, "'a/b' cannot name a series"),
        ({"views": 1}, "views=1 must be from 2 to 12"),
        ({"views": 13}, "views=13 must be from 2 to 12"),
        ({"changes_at_most": -1}, "changes_at_most=-1"),
        ({"max_view_ratio": 3.0}, "max_view_ratio= does not go with series="),
        ({"noise_prior": "product"}, "noise_prior= does not go with series="),
        ({"ledger": "."}, "is a folder"),
        ({"ledger": "nowhere/x.series"}, "cannot write the ledger"),
    ],
)
def test_wishes_that_make_no_sense(
    tmp_path: Path, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message):
        view(table(100), tmp_path / "1.voile", **options)
    assert list(tmp_path.iterdir()) == []


def test_columns_that_a_series_keeps_for_itself(tmp_path: Path) -> None:
    people = table(100).rename_columns(["Voile_History", "age"])
    with pytest.raises(SchemaError, match="its own column 'voile_history'"):
        view(people, tmp_path / "1.voile", schema=None, columns=["Voile_History", "age"])


def test_a_file_that_is_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "people.series").write_text("not a database, but long enough to be read as one")
    with pytest.raises(UsageError, match="is not the ledger of a series"):
        view(table(100), tmp_path / "1.voile")
    other = sqlite3.connect(tmp_path / "other.series")
    other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(UsageError, match="it is another database"):
        view(table(100), tmp_path / "1.voile", ledger=tmp_path / "other.series")


def test_refusals_before_the_first_view_leave_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(PromiseError, match=r"retention 0\.99 is too large for 4 views"):
        view(table(100), tmp_path / "1.voile", retention=0.99)
    assert list(tmp_path.iterdir()) == []


def test_the_identical_view_needs_the_release_that_is_missing(tmp_path: Path) -> None:
    view(table(100), tmp_path / "1.voile")
    (tmp_path / "1.voile").rename(tmp_path / "elsewhere.voile")
    with pytest.raises(UsageError, match=r"1\.voile' is not there") as refused:
        view(table(100), tmp_path / "2.voile")
    assert "always_fresh=True" in refused.value.hint
    # What the next view depends on is in the ledger.
    assert view(table(101), tmp_path / "2.voile").series is not None


def test_a_ledger_is_for_its_owners_eyes(tmp_path: Path) -> None:
    view(table(100), tmp_path / "1.voile")
    path = tmp_path / "people.series"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)  # as a careless copy is
    done = view(table(101), tmp_path / "2.voile")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not any("begun" in note for note in done.notes)


def test_the_steward_is_told_where_a_series_was_begun(tmp_path: Path) -> None:
    done = view(table(100), tmp_path / "1.voile")
    assert any("people.series" in note for note in done.notes)


def test_a_lost_ledger_does_not_begin_the_series_anew(tmp_path: Path) -> None:
    view(table(100), tmp_path / "1.voile")
    ledger = tmp_path / "people.series"
    kept = ledger.read_bytes()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for state in ("gone", "empty"):
        ledger.unlink() if state == "gone" else ledger.write_bytes(b"")
        for options in ({}, {"ledger": elsewhere / "people.series"}):
            for to in ("1.voile", "2.voile"):
                with pytest.raises(PromiseError, match=r"1\.voile' is a view of the series 'people"
                                   ) as refused:  # fmt: skip
                    view(table(101), tmp_path / to, overwrite=True, **options)
                assert "restore it" in refused.value.hint
        assert list(elsewhere.iterdir()) == []
        assert ledger.exists() == (state == "empty")
    with pytest.raises(PromiseError, match=r"1\.voile' is a view of the series"):
        view(table(101), elsewhere / "2.voile", ledger=tmp_path / "other.series")
    assert view(table(101), tmp_path / "2.voile", series="others").series is not None
    ledger.write_bytes(kept)
    found = view(table(101), tmp_path / "3.voile").series
    assert found is not None
    assert found["view"] == 2


def test_an_older_copy_of_the_ledger_publishes_nothing_beside_the_views(tmp_path: Path) -> None:
    """Restored, it knew of one view only: there were two different views 2 of 2."""
    ledger = tmp_path / "people.series"
    view(table(100), tmp_path / "1.voile", views=2)
    older = ledger.read_bytes()
    view(table(101), tmp_path / "2.voile")
    newest = ledger.read_bytes()
    ledger.write_bytes(older)
    for to in ("2b.voile", "2.voile"):
        with pytest.raises(PromiseError, match=r"older copy.*'.*2\.voile' is view 2") as refused:
            view(table(102), tmp_path / to, overwrite=True)
        assert "put the newest copy back" in str(refused.value.hint)
    # Views that went elsewhere are found where the views before them are.
    (elsewhere := tmp_path / "elsewhere").mkdir()
    moved = elsewhere / "people.series"
    moved.write_bytes(older)
    with pytest.raises(PromiseError, match="older copy"):
        view(table(102), elsewhere / "2.voile", ledger=moved)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "1.voile", "2.voile", "elsewhere", "people.series",
    ]  # fmt: skip
    ledger.write_bytes(newest)
    with pytest.raises(PromiseError, match="are spent"):
        view(table(102), tmp_path / "3.voile")


def test_a_counter_elsewhere_notices_an_older_copy_of_the_ledger(tmp_path: Path) -> None:
    """Even if every view was moved away."""
    (safe := tmp_path / "safe").mkdir()
    ledger, counter = tmp_path / "people.series", safe / "people.counter"
    view(table(100), tmp_path / "1.voile", counter=counter)
    older = ledger.read_bytes()
    assert view(table(101), tmp_path / "2.voile").series is not None  # it need not be repeated
    for name in ("1.voile", "2.voile"):
        shutil.rmtree(tmp_path / name)
    newest = ledger.read_bytes()
    ledger.write_bytes(older)
    with pytest.raises(PromiseError, match=r"older copy.*counts 2 views"):
        view(table(102), tmp_path / "2.voile")
    ledger.write_bytes(newest)
    third = view(table(102), tmp_path / "3.voile").series
    assert third is not None and third["view"] == 3
    counter.unlink()
    with pytest.raises(PromiseError, match=r"people.counter' .* is not there"):
        view(table(103), tmp_path / "4.voile")
    view(table(103), tmp_path / "4.voile", counter=safe / "other.counter")
    assert json.loads((safe / "other.counter").read_text())["view"] == 4


def test_a_counter_may_be_begun_later_and_has_a_place_of_its_own(tmp_path: Path) -> None:
    (safe := tmp_path / "safe").mkdir()
    first = view(table(100), tmp_path / "1.voile").release.path
    refusals: list[tuple[Path, type[Exception], str]] = [
        (tmp_path / "people.counter", UsageError, "beside the ledger"),
        (first / "people.counter", UsageError, "inside the release"),
        (safe / "none" / "people.counter", UsageError, "no folder"),
        (tmp_path / "text" / "x", UsageError, "no counter of a series"),
    ]
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "x").write_text("{}")
    for counter, kind, words in refusals:
        with pytest.raises(kind, match=words) as refused:
            view(table(101), tmp_path / "2.voile", counter=counter)
        assert isinstance(refused.value, UsageError) and refused.value.hint
    counter = safe / "people.counter"
    view(table(101), tmp_path / "2.voile", counter=counter)
    assert json.loads(counter.read_text())["view"] == 2
    with pytest.raises(UsageError, match="is the counter of the series 'people', not of 'towns'"):
        view(table(101), tmp_path / "t.voile", series="towns", counter=counter)
    with pytest.raises(UsageError, match=r"counter=.* belongs to"):
        view(table(101), tmp_path / "t.voile", series=None, counter=counter)


def test_a_view_that_nobody_saw_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (safe := tmp_path / "safe").mkdir()
    counter = safe / "people.counter"
    for number in (1, 2):
        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(OSError("no space")))
            with pytest.raises(OSError, match="no space"):
                view(table(100 + number), tmp_path / f"{number}.voile", counter=counter)
        assert counter.exists() == (number > 1)
        done = view(table(100 + number), tmp_path / f"{number}.voile", counter=counter).series
        assert done is not None and (done["view"], done["identical"]) == (number, False)


def test_nothing_is_written_into_a_release(tmp_path: Path) -> None:
    release = view(table(100), tmp_path / "1.voile").release.path
    inside: list[tuple[Path, dict[str, Any]]] = [
        (release / "2.voile", {}),
        (release / "data" / "2.voile", {}),
        (release / "data" / "2.voile", {"series": None}),
        (tmp_path / "2.voile", {"ledger": release / "people.series"}),
        (tmp_path / "2.voile", {"ledger": release / "data" / "people.series"}),
        (tmp_path / "2.voile", {"ledger": tmp_path / "2.voile" / "people.series"}),
        (tmp_path / "2.voile", {"ledger": tmp_path / "2.voile" / "data" / "people.series"}),
    ]
    for to, options in inside:
        with pytest.raises(UsageError, match="inside the release") as refused:
            view(table(101), to, **options)
        assert refused.value.hint
    voile.verify(release)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["1.voile", "people.series"]


def test_nobody_else_looks_into_a_view_before_it_is_in_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rights: list[int] = []
    true_plan, true_rename = SeriesLedger.plan, Path.rename

    def staged() -> list[int]:
        return [stat.S_IMODE(p.stat().st_mode) for p in tmp_path.glob(".*.partial-*")]

    def plan(self: SeriesLedger, *args: Any) -> None:
        rights.extend(staged())
        true_plan(self, *args)

    def rename(self: Path, target: Path) -> Path:
        rights.extend(staged())
        return true_rename(self, target)

    def unable(*_: Path) -> bool:
        rights.extend(staged())
        return False

    monkeypatch.setattr(SeriesLedger, "plan", plan)
    monkeypatch.setattr(Path, "rename", rename)
    monkeypatch.setattr(system, "exchanged", unable)
    wishes: list[dict[str, Any]] = [{}, {"overwrite": True}, {"series": None}]
    for number, options in enumerate(wishes):
        to = tmp_path / ("plain.voile" if "series" in options else "1.voile")
        release = view(table(100, number), to, **options).release
        assert stat.S_IMODE(release.path.stat().st_mode) == 0o755
    # planned, renamed; planned, exchanged, or aside and renamed; renamed
    assert rights == [0o700] * 7


def test_differences_of_tables() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        a, b = (np.sort(rng.integers(0, 12, rng.integers(0, 15)).astype(np.uint64)) for _ in "ab")
        counted = sum(abs(int((a == t).sum()) - int((b == t).sum())) for t in range(12))
        assert differences(a, b) == counted


# ---------------------------------------------------------------------- two at once, and crashes


def test_who_comes_second_is_refused(tmp_path: Path) -> None:
    view(table(100), tmp_path / "1.voile")
    with (
        opened(tmp_path / "people.series"),
        pytest.raises(PromiseError, match="another run is publishing"),
    ):
        view(table(101), tmp_path / "2.voile")
    assert view(table(101), tmp_path / "2.voile").series is not None


OWNERS: dict[str, Any] = {"publishing": publishing, "Ledger": SeriesLedger, "Path": Path}


def die_at(folder: str, owner: str, name: str, after: str) -> None:
    """Publish, and die without a word before, or after, that function is called."""
    true = getattr(OWNERS[owner], name)

    def deadly(*args: Any, **kwargs: Any) -> Any:
        if after == "True":
            true(*args, **kwargs)
        os._exit(9)

    setattr(OWNERS[owner], name, deadly)
    view(table(101), Path(folder) / "2.voile")


def killed(folder: Path, owner: str, name: str, *, after: bool) -> None:
    code = "import sys; from tests.kinds.views.test_ledger import die_at; die_at(*sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder), owner, name, str(after)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 9, done.stderr


@pytest.mark.parametrize(
    ("owner", "name", "after", "spent", "in_place"),
    [
        ("publishing", "write_descriptions", False, 1, False),
        ("Ledger", "plan", True, 2, False),
        ("Path", "rename", True, 2, True),
    ],
)
def test_a_run_that_dies_never_forgets_what_may_have_been_seen(
    tmp_path: Path, owner: str, name: str, after: bool, spent: int, in_place: bool
) -> None:
    first = view(table(100), tmp_path / "1.voile").release
    killed(tmp_path, owner, name, after=after)
    for left in tmp_path.glob(".*.partial-*"):
        assert stat.S_IMODE(left.stat().st_mode) == 0o700
    assert (tmp_path / "2.voile").exists() == in_place
    if in_place:  # the ledger learns that it was released, and gives it again
        again = view(table(101), tmp_path / "2b.voile").series
        assert again is not None
        assert (again["view"], again["identical"]) == (2, True)
    elif spent == 2:  # nobody can tell whether it was seen: the same table gets no other view free
        with pytest.raises(UsageError, match=r"not changed since view 2.*is not there"):
            view(table(101), tmp_path / "2b.voile")
    next_ = view(table(102), tmp_path / "3.voile")
    assert next_.series is not None
    assert next_.series["view"] == spent + 1
    voile.verify(next_.release.path)
    # A view that may have been seen is in the histories, and its tuples count as seen.
    assert next_.release.histories is not None
    history = next_.release.histories.history
    assert history.views == spent + 1
    shown = history.keys[history.counts[:, 0] > 0]
    assert np.array_equal(shown, np.unique(first.keys()))
    if in_place:
        middle = voile.open(tmp_path / "2.voile").keys()
        assert np.array_equal(history.keys[history.counts[:, 1] > 0], np.unique(middle))


def test_a_view_that_could_not_be_put_in_place_is_not_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view(table(100), tmp_path / "1.voile")

    def full(*_: Path) -> None:
        raise OSError(28, "no space left")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", full)
        with pytest.raises(OSError, match="no space left"):
            view(table(101), tmp_path / "2.voile")
    found = view(table(102), tmp_path / "2.voile")
    assert found.series is not None
    assert found.series["view"] == 2


def test_a_first_view_that_fails_leaves_a_series_that_has_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Staging, "_replace", None)
        patched.setattr(Path, "rename", None)
        with pytest.raises(TypeError):
            view(table(100), tmp_path / "1.voile")
    found = view(table(101), tmp_path / "1.voile", posterior=0.4, views=2)
    assert found.series is not None
    assert (found.series["view"], found.series["views"]) == (1, 2)


# ---------------------------------------------------------------------- what is published


def resealed(release: Path, **changes: Any) -> None:
    """Change the part about the series in a manifest, as one who can seal it would."""
    manifest = ViewManifest.model_validate_json((release / MANIFEST).read_bytes())
    assert manifest.parameters.series is not None
    part = manifest.parameters.series.model_copy(update=changes)
    parameters = manifest.parameters.model_copy(update={"series": part})
    sealed = manifest.model_copy(update={"parameters": parameters}).sealed()
    (release / MANIFEST).write_text(sealed.text(), encoding="utf-8")


FORGED: list[tuple[dict[str, Any], str]] = [
    ({"posterior": 0.01}, "the parameters contradict each other"),
    ({"seen": 0.01}, "do not keep"),
    ({"unseen": [1e-6] * 4}, "do not keep"),
    ({"view": 3}, "counts, not all 0"),
    ({"view": 5}, "view 5 of a series of 4"),
    ({"views": 5}, "4 noises for 5 views"),
    ({"seen_tuples": 3}, "tuples that were seen before"),
    ({"changes_at_most": 0}, "never changes has no second view"),
    ({"always_fresh": True}, "does not say all that the release discloses"),
]


def test_verify_recomputes_what_a_series_promises(tmp_path: Path) -> None:
    view(table(100), tmp_path / "1.voile")
    release = view(table(101), tmp_path / "2.voile").release.path
    voile.verify(release)
    whole = (release / MANIFEST).read_bytes()
    for changes, message in FORGED:
        resealed(release, **changes)
        with pytest.raises(ReleaseError, match=message):
            voile.verify(release)
        (release / MANIFEST).write_bytes(whole)


def with_history(release: Path, rows: pa.Table) -> None:
    """Put another history into a release, and seal it."""
    path = release / "history" / "part-00000.parquet"
    pq.write_table(rows, path, store_schema=False, write_statistics=False)
    manifest = ViewManifest.model_validate_json((release / MANIFEST).read_bytes())
    files = [
        file_entry(release, path, len(rows)) if file.path.startswith("history") else file
        for file in manifest.files
    ]
    sealed = manifest.model_copy(update={"files": files}).sealed()
    (release / MANIFEST).write_text(sealed.text(), encoding="utf-8")


def test_histories_must_agree_with_the_rows(tmp_path: Path) -> None:
    release = view(table(100), tmp_path / "1.voile").release.path
    rows = pq.read_table(release / "history" / "part-00000.parquet")
    with_history(release, rows.slice(1))
    with pytest.raises(ReleaseError, match="does not agree with the rows"):
        voile.verify(release)


@pytest.fixture(scope="module")
def two_views(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The second view of a series."""
    folder = tmp_path_factory.mktemp("series")
    view(table(20), folder / "1.voile")
    return view(table(21), folder / "2.voile").release.path


@pytest.mark.parametrize(
    "forged",
    ["-1,2", "99999999999,1", "1" * 400, ",".join("1" * 400), None, "1_0,1", "٣,1", "1,2,3", "",
     "a,b", "0,0", "1.5,1", "0,4294967295"],
)  # fmt: skip
def test_forged_histories_are_refused_in_words(
    two_views: Path, tmp_path: Path, forged: str | None
) -> None:
    release = Path(shutil.copytree(two_views, tmp_path / "2.voile"))
    rows = pq.read_table(release / "history" / "part-00000.parquet")
    texts = [forged, *rows["voile_history"].to_pylist()[1:]]
    place = rows.schema.get_field_index("voile_history")
    field = pa.field("voile_history", pa.string(), nullable=forged is None)
    with_history(release, rows.set_column(place, field, pa.array(texts, pa.string())))
    with pytest.raises(ReleaseError, match="history"):
        voile.verify(release)
    if forged != "0,4294967295":  # a history; only that it contradicts the rows is wrong
        with pytest.raises(ReleaseError, match="history/"):
            voile.open(release).query("select count(*) from people")


def test_what_an_attack_computes_is_the_law_of_a_history(tmp_path: Path) -> None:
    for rows in ("set", "multiset"):
        folder = tmp_path / rows
        folder.mkdir()
        for i in (1, 2):
            people = table(100, start=i)
            release = view(people, folder / f"{i}.voile", rows=rows, simulate_seed=i).release
        mechanism = release.mechanism
        assert isinstance(mechanism, Series)
        assert release.histories is not None
        keys = np.arange(2000, dtype=np.uint64)
        codes = TupleIndex(SCHEMA.sizes).decode(keys)
        shown = release.histories.of(codes)
        assert shown[:, -1].sum() == release.manifest.rows
        assert np.array_equal(release.seen(codes), shown)  # a column for each view
        for since, seen in ((1, None), (2, None), (2, release.seen(codes))):
            likely = release.evidence(codes, seen, since=since)
            for records in (0, 1) if rows == "set" else (0, 1, 2):
                course = (records if since == 1 else 0, records)
                expected = histories(mechanism.noise, course, int(shown.max()))
                exact = [float(expected[tuple(h)]) for h in shown.tolist()]
                assert np.exp(likely(records)) == pytest.approx(exact, rel=1e-9)
        for wrong in (0, 3):
            with pytest.raises(UsageError, match=f"since view {wrong}"):
                release.evidence(codes, since=wrong)


@pytest.mark.parametrize(
    ("rows", "changes"), [("multiset", None), ("multiset", 4), ("multiset", 0), ("set", 4)]
)
def test_answers_cover_the_last_table(tmp_path: Path, rows: str, changes: int | None) -> None:
    """Ten groups of every third view of a few series: at least 0.8, by intervals for 0.9."""
    covered = total = 0
    chosen = set()
    for seed in range(3):
        starts = (0, 0, 0) if changes == 0 else (0, 2, 4)
        for i, start in enumerate(starts):
            people = table(400, start)
            done = view(people, tmp_path / f"{seed}-{i}.voile", rows=rows, simulate_seed=seed,
                        changes_at_most=changes, always_fresh=True,
                        ledger=tmp_path / f"{seed}.series")  # fmt: skip
        answer = done.release.query(
            "select town, count(*) as n from people where town < 't2' group by town", 0.9
        )
        chosen |= {note for note in answer.notes if "view" in note}
        towns = people["town"].to_pylist()
        for row in answer.rows:
            low, high = row["n"].interval()
            covered += low <= towns.count(row["town"]) <= high
            total += 1
    assert total >= 30
    assert proportion_at_least(covered, total, 0.9)
    # Multisets that change: several equal records that come and go are not accounted for.
    together = changes == 0 or (rows == "set" and changes is not None)
    assert any("together" in note for note in chosen) == together
    whole = done.release.query("select count(*) from people")
    assert any("together" in note for note in whole.notes) == together
    assert (whole.scalar.bound is None) == together  # it is about the last view alone


def test_combining_views_is_better_and_says_so(tmp_path: Path) -> None:
    errors = {}
    for changes in (None, 0):
        for i in range(4):
            release = view(table(400), tmp_path / f"{changes}-{i}.voile", changes_at_most=changes,
                           simulate_seed=3, always_fresh=True,
                           ledger=tmp_path / f"{changes}.series").release  # fmt: skip
        answer = release.query("select count(*) from people where age < 50")
        errors[changes] = answer.stderr
        explained = release.explain("select count(*) from people where age < 50")
        assert explained["estimate"] == pytest.approx(answer.value)
    assert errors[0] < 0.5 * errors[None]


def test_sums_averages_and_quantiles_of_a_series(tmp_path: Path) -> None:
    view(table(1500), tmp_path / "1.voile", simulate_seed=1, changes_at_most=50)
    people = table(1510, start=20)
    release = view(people, tmp_path / "2.voile", simulate_seed=1).release
    ages = people["age"].to_numpy()
    answer = release.query(
        "select count(*) as n, sum(age) as s, avg(age) as a, median(age) as m from people", 0.95
    )
    (row,) = answer.rows
    for name, truth in (
        ("n", len(ages)), ("s", ages.sum()), ("a", ages.mean()), ("m", np.median(ages)),
    ):  # fmt: skip
        low, high = row[name].interval()
        assert low <= truth <= high
        assert row[name].stderr > 0
    towns = pa.table({"town": ["t1", "t2"], "region": ["north", "north"]})
    joined = release.query(
        "select count(*) from people join towns on people.town = towns.town where region = 'north'",
        tables={"towns": towns},
    )
    low, high = joined.interval()
    assert low <= sum(t in ("t1", "t2") for t in people["town"].to_pylist()) <= high


def test_a_series_cannot_be_refined(tmp_path: Path) -> None:
    release = view(table(100), tmp_path / "1.voile").release
    with pytest.raises(UsageError, match="a release of a series cannot be refined"):
        release.query("select count(*) from people", refine=True)


def test_a_domain_of_several_words(tmp_path: Path) -> None:
    """Keys that no machine word holds."""
    wide = Schema.from_dict(
        {
            "attributes": [
                {"name": f"c{i}", "kind": "integer", "range": [0, 2**31]} for i in range(4)
            ]
        }
    )
    rng = np.random.default_rng(4)
    people = pa.table({f"c{i}": rng.integers(0, 2**31, 200) for i in range(4)})
    options: dict[str, Any] = {
        "schema": wide,
        "prior": 1e-36,
        "weak": True,
        "series": "wide",
        "changes_at_most": 2,
    }
    publish_table(people, to=tmp_path / "1.voile", **options)
    assert publish_table(people, to=tmp_path / "1b.voile", **options).series == {
        "name": "wide", "view": 1, "views": 4, "spent": 1, "identical": True,
    }  # fmt: skip
    release = publish_table(people.slice(1), to=tmp_path / "2.voile", **options).release
    voile.verify(release)
    low, high = release.query("select count(*) from wide").interval()
    assert low <= 199 <= high


def test_every_estimate_is_a_sum_of_scores(tmp_path: Path) -> None:
    """By hand from history/, as the README of the release says."""
    for i, start in enumerate((0, 10)):
        release = view(table(400, start), tmp_path / f"{i}.voile", simulate_seed=2).release
    assert release.histories is not None
    mechanism = release.mechanism
    assert isinstance(mechanism, Series)
    history = release.histories.history
    seen = history.counts[:, :-1].any(axis=1)
    y = history.counts[:, -1]
    fresh, again = mechanism.on_unseen, mechanism.on_seen
    scores = np.where(
        seen,
        (y - again.noise_mean) / again.excess + fresh.noise_mean / fresh.excess,
        y / fresh.excess,
    )
    by_hand = scores.sum() - fresh.noise_mean / fresh.excess * SCHEMA.size
    assert release.query("select count(*) from people").value == pytest.approx(by_hand)
