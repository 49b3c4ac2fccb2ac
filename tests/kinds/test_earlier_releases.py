"""Releases that an earlier Voile wrote open, verify and answer as they did when they were written.

`fixtures/version1/` holds a small release of every kind, written by version 0.1.0 from six hundred
rows of the Adult table, and beside each what it answered then (`NAME.asked.json`). They are never
written anew: what was published stays readable.
"""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import voile
from tests.support.paths import TESTS
from tests.support.running import told

FOLDER = TESTS / "fixtures" / "version1"
RELEASES = sorted(path.name for path in FOLDER.glob("*.voile"))
METHODS = {
    "alphabeta", "retention", "frapp", "conjuncts",
    "mondrian", "anatomy", "fulldomain", "suppress", "freeshape",
}  # fmt: skip
"""Every method that version 0.1.0 could publish, but for `trivial`, whose release is one class."""
WORDS = ("covers", "notes", "assumption")
"""What may be said in better words."""

ASSUMED = ("stderr", "low", "high")
"""What classes of version 1 stated of estimates that they leave open, and covered as little as a
quarter of the truth on real tables: they have no error model, and it is not stated any more."""


def same(found: Any, wanted: Any) -> bool:
    """Equal, numbers up to rounding."""
    if isinstance(wanted, dict) and wanted.get("certain_low") != wanted.get("certain_high"):
        if any(found[key] is not None for key in ASSUMED):
            return False
        wanted = {key: value for key, value in wanted.items() if key not in ASSUMED}
    if isinstance(wanted, dict) and {"estimate", "low", "high"} <= wanted.keys():
        if not narrower(found, wanted):
            return False
        wanted = {key: value for key, value in wanted.items() if key not in ASSUMED}
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict)
            and set(wanted) <= set(found)
            and all(same(found[key], wanted[key]) for key in wanted if key not in WORDS)
        )
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, float) and not isinstance(found, bool):
        return math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-9)
    return bool(found == wanted)


def narrower(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """The interval as it was, or a sharper one: version 1 stated bounds where laws are known."""
    if all(same(found[key], wanted[key]) for key in ASSUMED):
        return True
    if not found["stderr"] <= wanted["stderr"] * 1.05:  # a median's is read off its interval
        return False
    slack = 0.05 * (wanted["high"] - wanted["low"]) + 1e-9
    return bool(
        wanted["low"] - slack <= found["low"] <= found["estimate"] <= found["high"]
        and found["high"] <= wanted["high"] + slack
    )


def test_there_is_a_release_of_every_method() -> None:
    assert {voile.open(FOLDER / name).manifest.method for name in RELEASES} == METHODS


@pytest.mark.parametrize("name", RELEASES)
def test_it_verifies_and_answers_as_it_did(name: str) -> None:
    release = voile.verify(FOLDER / name)
    assert release.describe()
    asked = json.loads((FOLDER / name).with_suffix(".asked.json").read_text(encoding="utf-8"))
    assert len(asked) >= 4
    for one in asked:
        answer = release.query(one["sql"], method=one["method"]).to_dict()
        assert same(answer, one["answer"]), f"{one['sql']}: {answer}"
        assert release.explain(one["sql"])


@pytest.mark.parametrize("name", RELEASES)
def test_every_command_on_releases_takes_it(name: str) -> None:
    where = str(FOLDER / name)
    assert told(["verify", where])["ok"]
    assert told(["describe", where])["format"] == "voile-release"
    assert isinstance(told(["guarantees", where]), list)
    assert told(["guarantees", where, "--not-promised"])
    assert told(["query", where, f"select count(*) from {voile.open(where).name}"])["rows"]


def test_the_comparison_can_fail() -> None:
    asked = json.loads((FOLDER / "view.asked.json").read_text(encoding="utf-8"))
    wrong = json.loads(json.dumps(asked[0]["answer"]).replace("1", "2"))
    assert same(asked[0]["answer"], asked[0]["answer"])
    assert not same(wrong, asked[0]["answer"])


def test_a_series_that_an_earlier_version_began_goes_on(tmp_path: Path) -> None:
    """Unchanged rows give the view that was published then; changed rows give the next one."""
    shutil.copy(FOLDER / "monthly.series", tmp_path)
    shutil.copytree(FOLDER / "series.voile", tmp_path / "series.voile")
    with closing(sqlite3.connect(tmp_path / "monthly.series")) as ledger, ledger:
        place = str(tmp_path / "series.voile")  # where it lay then is not on this machine
        ledger.execute("update views set path = ? where number = 2", (place,))
    options: dict[str, Any] = {
        "series": "monthly", "views": 3, "changes_at_most": 50, "prior": 0.01,
        "simulate_seed": 11, "ledger": tmp_path / "monthly.series",
    }  # fmt: skip
    rows = voile.read(FOLDER / "later.csv")
    second = voile.publish(rows, to=tmp_path / "two.voile", **options)
    assert second.to_arrow().equals(voile.open(FOLDER / "series.voile").to_arrow())
    changed = pd.read_csv(FOLDER / "later.csv").iloc[20:]
    third = voile.verify(voile.publish(changed, to=tmp_path / "three.voile", **options).path)
    assert third.manifest.parameters.model_dump()["series"]["view"] == 3


def test_a_saved_recoding_is_applied(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "patients.csv", tmp_path)
    told([
        "generalize", str(tmp_path / "patients.csv"), "-o", str(tmp_path / "coarse.csv"),
        "--apply", str(FOLDER / "patients.recoding"),
    ])  # fmt: skip
    assert len((tmp_path / "coarse.csv").read_text().splitlines()) == 401
