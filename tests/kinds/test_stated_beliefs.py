"""A release says in its own files what its promise means in beliefs, and what its steward chose."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import voile
from tests.kinds.test_choosing import people
from tests.support.running import voile as run
from voile.kinds.beliefs import StatedBeliefs
from voile.kinds.choosing import EpsilonPromise
from voile.kinds.manifest import CHOSEN
from voile.privacy.gaussian import any_rise_chance, rise_chance
from voile.privacy.spent import Spent

BELIEFS = (
    "that someone is in the table: 1 % becomes at most 2.7 %, 10 % becomes at most 23 %",
    "a value of someone known to be there: 10 % becomes at most 45 %",
)


def released(folder: Path, width: int, **options: Any) -> tuple[str, dict[str, Any]]:
    """README.md and manifest.json of a release that was made without naming a method."""
    voile.publish(people(8_000, width), to=folder, name="t", simulate_seed=2, **options)
    return (folder / "README.md").read_text(), json.loads((folder / "manifest.json").read_text())


def stated_eta(readme: str) -> float:
    found = re.search(r"\(except with probability ([0-9.e-]+)\)\.", readme)
    assert found is not None
    return float(found[1])


def test_with_normal_noise_the_exception_is_the_tail_of_the_loss(tmp_path: Path) -> None:
    readme, manifest = released(tmp_path / "t.voile", 6)
    assert manifest["parameters"]["noise"] == "gaussian"
    assert all(part in readme for part in BELIEFS)
    mu, eta = manifest["guarantee"]["mu"], stated_eta(readme)
    delta = manifest["guarantee"]["delta"]
    assert eta > rise_chance(mu, 1.0) > 10 * delta  # what δ would have hidden
    assert eta <= (any_rise_chance(2 * mu, 2.0) + delta) * 1.05
    assert "larger than δ" in readme


def test_with_geometric_noise_only_a_threshold_is_an_exception(tmp_path: Path) -> None:
    readme, manifest = released(tmp_path / "t.voile", 2)
    assert manifest["parameters"]["noise"] == "geometric"
    assert all(part in readme for part in BELIEFS)
    spent = manifest["parameters"]["schema_account"]["delta"]
    assert stated_eta(readme) == pytest.approx(spent, rel=0.05)
    assert manifest["guarantee"]["delta"] == spent < 1e-9


def test_a_declared_domain_with_geometric_noise_has_no_exception(tmp_path: Path) -> None:
    frame = people(3_000, 2)
    values = [{"name": n, "kind": "categorical", "values": sorted(set(frame[n]))} for n in frame]
    done: Any = voile.publish(
        frame, schema={"attributes": values}, to=tmp_path / "t.voile", simulate_seed=1
    )
    readme = (tmp_path / "t.voile" / "README.md").read_text()
    assert "except with" not in readme and all(part in readme for part in BELIEFS)
    assert done.manifest.guarantee.delta == 0


def test_what_the_steward_chose_is_listed(tmp_path: Path) -> None:
    readme, manifest = released(tmp_path / "t.voile", 4, columns=["c0", "c2"], nulls="drop")
    assert [one["why"] for one in manifest["disclosed"]] == [CHOSEN] * 3
    for part in ("c0 (categorical), c2 (", "NULLs: rows with one were left out",
                 "columns left out: c1, c3", "nothing beyond the promise"):  # fmt: skip
        assert part in readme
    assert run("verify", "t.voile", cwd=tmp_path).returncode == 0


def test_the_promise_states_the_delta_that_is_spent() -> None:
    looked = EpsilonPromise(1.0, 1e-9, Spent(epsilon=0.1, delta=3e-11))
    assert looked.to_dict()["delta"] == looked.to_dict()["except_with"] == 3e-11
    assert EpsilonPromise(1.0, 1e-9, Spent(mu=0.01, delta=3e-11)).to_dict()["delta"] == 1e-9


def test_beliefs_near_certainty_are_written_as_such() -> None:
    assert "1 % becomes at most 99.9956 %" in StatedBeliefs(14.626, 29.3, 0.0).in_words()
    assert "at most 100 %" not in StatedBeliefs(40.0, 80.0, 0.0).in_words()


def test_groups_of_others_are_explained(tmp_path: Path) -> None:
    release = voile.publish(people(3_000, 2), name="t", simulate_seed=1, to=tmp_path / "t.voile")
    grouped = release.query("select c0, count(*) from t group by c0")
    assert [row["c0"] for row in grouped.rows][-1] == "other"
    assert sum("'other' of c0: all values that too few rows have" in n for n in grouped.notes) == 1
    assert not any("other" in note for note in release.query("select count(*) from t").notes)
