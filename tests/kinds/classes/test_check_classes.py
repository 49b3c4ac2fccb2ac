"""A checker without our code measures the same classes: tools/check_classes.py."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tools.check_classes import Release as Checked
from tools.check_classes import distance

import voile
from tests.support.paths import TESTS
from tests.support.soak import rounds
from voile.errors import PromiseError, UsageError
from voile.kinds.classes.release import ClassRelease
from voile.privacy.requirements import Requirement
from voile.privacy.requirements.sensitive import L, T, earth_mover_hierarchical

CHECKER = TESTS.parent / "tools" / "check_classes.py"
FIXTURES = ("mondrian", "anatomy", "bucketized", "fulldomain", "suppress", "freeshape")
METHODS = ("mondrian", "mondrian", "bucketized", "anatomy", "fulldomain", "suppress", "freeshape",
           "trivial")  # fmt: skip


def test_it_does_without_our_code() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import runpy, sys; sys.argv = ['x', sys.argv[1]]\n"
         f"try: runpy.run_path({str(CHECKER)!r}, run_name='__main__')\n"
         "except SystemExit as left: assert not left.code\n"
         "assert not any(name.partition('.')[0] == 'voile' for name in sys.modules)",
         str(TESTS / "fixtures" / "version1" / "mondrian.voile")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "as stated" in done.stdout


@pytest.mark.parametrize("name", FIXTURES)
def test_it_agrees_with_releases_of_an_earlier_voile(name: str) -> None:
    assert Checked(TESTS / "fixtures" / "version1" / f"{name}.voile").report()["agrees"]


def table(seed: random.Random) -> pd.DataFrame:
    """People with numbers, texts, a Boolean and NULLs."""
    rows = seed.choice((40, 150, 400))
    hidden = [f"s{i}" for i in range(seed.randint(3, 8))]
    missing = seed.choice((0.0, 0.1))

    def some(values: list[Any]) -> list[Any]:
        return [None if seed.random() < missing else seed.choice(values) for _ in range(rows)]

    return pd.DataFrame({
        "age": pd.array(some([*range(20, 60, 3)]), dtype="Int64"),
        "city": some(["Rome", "Oslo", "Bern", "Kyiv"]),
        "member": pd.array(some([True, False]), dtype="boolean"),
        "illness": some(hidden + hidden[:2]),
        "grade": pd.array(some([1, 2, 3, 4, 5]), dtype="Int64"),
    })  # fmt: skip


def published(seed: random.Random, to: Path) -> ClassRelease | None:
    """A release of random rows by a random method; None where no classes keep what was asked."""
    method = seed.choice(METHODS)
    qi = seed.sample(["age", "city", "member"], seed.randint(1, 3))
    given: dict[str, Any] = {"qi": qi, "nulls": "as-value", "method": method}
    given["sensitive"] = ["illness"] if method == "anatomy" else seed.choice(
        [["illness"], ["grade"], ["illness", "grade"]])  # fmt: skip
    columns = [*qi, *given["sensitive"]]
    if method == "bucketized":
        given |= {"method": "mondrian", "recode": "bucketize"}
    if method == "anatomy":
        given["l"] = 2
    elif method == "freeshape":
        given["t"] = 0.5
    else:
        given |= seed.choice([
            {"k": seed.randint(2, 6)}, {"k": 3, "l": 2, "l_measure": "distinct"},
            {"l": 1.5, "l_measure": "entropy"}, {"l": 2, "l_measure": "recursive", "c": 3.0},
            {"t": 0.6}, {"t": 0.8, "t_distance": "emd-ordered"}, {"k": 2, "t": 0.9,
             "t_distance": "variational"}, {"k": 2, "alpha": 0.9}, {"semantic": 2.5},
        ])  # fmt: skip
    if method in ("fulldomain", "suppress", "mondrian") and seed.random() < 0.5:
        given["suppression"] = 0.9
    try:
        made = voile.publish(table(seed)[columns], to=to, name="people", register=False, **given)
    except (PromiseError, UsageError):  # some do not go together
        return None
    assert isinstance(made, ClassRelease)
    return made


def figure(release: ClassRelease, requirement: Requirement) -> float:
    return requirement.worst(requirement.measured(release.histograms))


def test_it_agrees_on_random_releases_of_all_methods(tmp_path: Path) -> None:
    seed, wanted = random.Random(18), rounds(10, 220)  # noqa: S311
    seen: list[str] = []
    while len(seen) < wanted:
        release = published(seed, tmp_path / f"{seed.random()}.voile")
        if release is None:
            continue
        checked = Checked(release.path)
        found = checked.report()
        assert found["agrees"], json.dumps(found["requirements"])
        assert found["classes"] == release.manifest.parameters.classes
        assert found["k"] == release.histograms.rows.min()
        for place, name in enumerate(release.manifest.parameters.sensitive):
            measured = found["attributes"][name]
            for measure, value in measured["l"].items():
                assert value == pytest.approx(figure(release, L(1, measure, attribute=place)))
            for kind, value in measured["t"].items():
                assert value == pytest.approx(figure(release, T(0.0, kind, place)), abs=1e-9)
            ratio = checked.worst({"kind": "l", "measure": "recursive", "l": 2}, name)
            assert ratio == pytest.approx(figure(release, L(2, "recursive", 1.0, place)))
        seen.append(release.manifest.method)
    if wanted > 100:
        assert set(seen) == {*METHODS} - {"bucketized"}


def test_distances_in_a_hierarchy_agree() -> None:
    source = np.random.default_rng(5)
    for _ in range(50):
        tree = ((0, 0, 1, 1, 2, 2), (0, 0, 0, 0, 1, 1))
        counts, overall = source.integers(0, 9, 6) + 1, source.integers(0, 9, 6) + 1
        extra = counts / counts.sum() - overall / overall.sum()
        ours = earth_mover_hierarchical(extra[None, :], tree)[0]
        theirs = distance(counts.tolist(), overall.tolist(), "emd-hierarchical", tree)
        assert theirs == pytest.approx(ours)


def test_a_release_that_lies_is_noticed(tmp_path: Path) -> None:
    release = None
    seed = random.Random(4)  # noqa: S311
    while release is None:
        release = published(seed, tmp_path / "x.voile")
    path = release.path / "manifest.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    data["guarantee"]["requirements"][0]["measured"] += 1
    path.write_text(json.dumps(data), encoding="utf-8")
    assert not Checked(release.path).report()["agrees"]
