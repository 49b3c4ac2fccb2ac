"""voile tree and voile rules as someone types them, right and wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import voile
from voile.cli import app
from voile.errors import UsageError, VoileError
from voile.mining import ExactCounts, Limits, grow, tree_plot
from voile.mining.tree_plot import HEIGHT, WIDTH, placed
from voile.schema import Attribute, Range, Schema, Values

COLUMNS = ("age", "education_num", "sex", "salary")
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mining") / "people.voile"
    voile.perturb("dataset:adult/train", 0.6, columns=COLUMNS, simulate_seed=1, to=path)
    return path


@pytest.fixture
def run() -> Run:
    def told(*arguments: object) -> Any:
        done = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    return told


def test_a_tree_with_its_accuracy_and_the_tables_own_beside(release: Path, run: Run) -> None:
    tables = ("--test", "dataset:adult/test", "--beside", "dataset:adult/train")
    found = run("tree", release, "--target", "salary", "--depth", 2, *tables, "--json")
    assert found["classes"] == ["<=50K", ">50K"]
    assert found["columns"] == ["age", "education_num", "sex"]
    assert found["accuracy"] > found["majority_accuracy"] == pytest.approx(12435 / 16281)
    assert found["accuracy_low"] < found["accuracy"] < found["accuracy_high"]
    assert found["rows_tested"] == 16281
    assert found["rows_unknown"] == 0
    assert found["beside"]["agreement"] > 0.9
    assert abs(found["beside"]["accuracy"] - found["accuracy"]) < 0.02
    leaves = [rule["rows"] for rule in found["rules"]]
    assert len(leaves) == 4
    assert sum(leaves) == pytest.approx(32561)
    assert found["tree"]["rows"] == 32561
    first = found["tree"]["children"][0]
    assert {"answer", "rows", "stderr", "class", "share", "share_stderr", "shares"} <= set(first)
    assert first["proof"] in ("node", "all rows")
    assert {child["ended"] for child in first["children"]} == {"depth"}
    assert all(0 < rule["share"] <= 1 and rule["stderr"] > 0 for rule in found["rules"])
    assert all(0 < rule["share_stderr"] < 0.2 for rule in found["rules"])


def test_a_leafs_conditions_are_a_query_with_the_same_answer(release: Path, run: Run) -> None:
    arguments = ("--target", "salary", "--depth", 2, "--method", "inversion", "--json")
    found = run("tree", release, *arguments)
    for rule in found["rules"]:
        sql = f"select count(*) as n from t where {' and '.join(rule['conditions'])}"
        (told,) = voile.open(release).query(sql).to_dict()["rows"]
        assert told["n"]["estimate"] == pytest.approx(rule["rows"])
        assert told["n"]["stderr"] == pytest.approx(rule["stderr"])


def test_rules_with_intervals(release: Path, run: Run) -> None:
    found = run("rules", release, "--support", 0.1, "--longest", 2, "--json")
    assert found["tested"] > len(found["rules"]) > 0
    assert found["notes"]
    for rule in found["rules"]:
        assert len(rule["conditions"]) == 1
        assert rule["support"]["estimate"] >= 0.1
        assert rule["confidence"]["estimate"] >= 0.6
        for kind in ("support", "confidence", "lift"):
            assert rule[kind]["low"] <= rule[kind]["estimate"] <= rule[kind]["high"]


def test_people_see_a_tree_and_a_table(release: Path) -> None:
    told = CliRunner().invoke(app, ["tree", str(release), "--target", "salary"])
    assert told.exit_code == 0
    assert "├── " in told.stdout
    assert re.search(r"all rows +32,561 rows", told.stdout)
    assert " ± " in told.stdout
    told = CliRunner().invoke(app, ["rules", str(release), "--longest", "2"])
    assert "confidence" in told.stdout
    none = CliRunner().invoke(app, ["rules", str(release), "--support", "0.99"])
    assert "no rule reaches" in none.stdout


def test_pictures_are_written_whole_and_not_over_others(release: Path, tmp_path: Path) -> None:
    pytest.importorskip("altair")
    path = tmp_path / "tree.svg"
    arguments = ["tree", str(release), "--target", "salary", "--depth", "2", "--plot", str(path)]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    text = path.read_text(encoding="utf-8")
    assert "A decision tree for salary" in text
    assert "all rows" in text
    with pytest.raises(UsageError, match="exists already"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert CliRunner().invoke(app, [*arguments, "--overwrite"]).exit_code == 0


def test_a_page_is_no_wider_than_its_window(release: Path, tmp_path: Path) -> None:
    pytest.importorskip("altair")
    path = tmp_path / "tree.html"
    arguments = ["tree", str(release), "--target", "salary", "--depth", "1", "--plot", str(path)]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    page = path.read_text(encoding="utf-8")
    assert "<script" not in page
    assert re.search(r'<div class="scroll"[^>]*><figure>.*<svg', page, re.DOTALL)


def test_rows_of_another_class_are_told(release: Path, tmp_path: Path) -> None:
    table = tmp_path / "few.csv"
    lines = ["age,education_num,sex,salary", "20,9,Male,<=50K", "20,9,Male,<=50K", "30,9,Male,?"]
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    arguments = ["tree", str(release), "--target", "salary", "--depth", "1", "--test", str(table)]
    told = CliRunner().invoke(app, arguments)
    assert "0.6667 (0.2077–0.9385) on 3 rows" in told.stdout
    assert "count as wrong: 1 of 3" in told.stderr
    table.write_text("\n".join([lines[0], lines[3]]) + "\n", encoding="utf-8")
    with pytest.raises(VoileError, match="the first 'salary' is \\?") as refused:
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert refused.value.hint == "the release has classes such as <=50K, >50K"


def test_a_tree_of_noise_is_not_shown(tmp_path: Path, run: Run) -> None:
    rng = np.random.default_rng(4)
    rows = [f"{a},{b}" for a, b in rng.integers([0, 18], [30, 21], (2000, 2))]
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *rows]) + "\n", encoding="utf-8")
    noise = tmp_path / "noise.voile"
    voile.perturb(tmp_path / "t.csv", 0.5, simulate_seed=1, to=noise)
    told = CliRunner().invoke(app, ["tree", str(noise), "--target", "y", "--min-support", "50"])
    assert re.fullmatch(r"all rows  2,000 rows  class \d\d: \d+ ± \d %\n", told.stdout)
    assert "no split of all rows is beyond its error" in told.stderr
    found = run("tree", noise, "--target", "y", "--min-support", 50, "--json")
    assert found["tree"]["ended"] == "errors"
    assert found["level"] == 0.95
    assert "beyond its error" in found["notes"][0]
    loose = run("tree", noise, "--target", "y", "--min-support", 50, "--level", 0, "--json")
    assert loose["tree"]["proof"] == "none"


def test_no_two_boxes_of_a_picture_touch() -> None:
    rng = np.random.default_rng(1)
    names = Values(tuple("abcdefgh"))
    schema = Schema(
        (
            Attribute("number", "integer", Range(0, 99)),
            Attribute("letter", "categorical", names, ordered=False),
            Attribute("kind", "categorical", Values(tuple(map(str, range(9)))), ordered=False),
        )
    )
    number, letter = rng.integers(0, 100, 5000), rng.integers(0, 8, 5000)
    kind = (number // 12 + letter // 3 + rng.integers(0, 2, 5000)) % 9
    counts = ExactCounts(schema, {"number": number, "letter": letter, "kind": kind})
    tree = grow(counts, "kind", limits=Limits(depth=4, min_support=50))
    boxes = placed(tree)
    assert len(boxes) > 20
    for at, one in enumerate(boxes):
        for other in boxes[:at]:
            beside = abs(one.left - other.left) >= WIDTH
            below = abs(one.middle - other.middle) >= HEIGHT
            assert beside or below
    predicted = {str(rule.label) for rule in tree.rules()}
    assert len(predicted) > 6
    assert predicted <= set(tree_plot.colours(tree))
    assert len(set(tree_plot.colours(tree).values())) == len(tree_plot.colours(tree))


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["tree", "R", "--target", "pay"], "no attribute 'pay'", 2),
        (["tree", "R", "--target", "salary", "--columns", "salary"], "cannot predict itself", 2),
        (["tree", "R", "--target", "salary", "--depth", "0"], "depth of 0", 2),
        (["tree", "R", "--target", "salary", "--min-support", "-1"], "support of -1", 2),
        (["tree", "R", "--target", "salary", "--bins", "1"], "1 bins", 2),
        (["tree", "R", "--target", "salary", "--level", "1"], "level of 1 ", 2),
        (["tree", "R", "--target", "salary", "--method", "guess"], "method 'guess'", 2),
        (["tree", "R", "--target", "salary", "--test", "nowhere.csv"], "nowhere.csv", 2),
        (["tree", "R", "--target", "salary", "--test", "dataset:scores"], "no column 'salary'", 2),
        (["tree", "R", "--target", "salary", "--beside", "dataset:scores"], "no column", 2),
        (["tree", "R", "--target", "salary", "--plot", "R/tree.svg"], "inside the release", 2),
        (["tree", "R", "--target", "salary", "--plot", "tree.gif"], "ends in .gif", 2),
        (["tree", "nothing.voile", "--target", "salary"], "no release 'nothing.voile'", 2),
        (["rules", "R", "--support", "7"], "support of 7", 2),
        (["rules", "R", "--confidence", "-1"], "confidence of -1", 2),
        (["rules", "R", "--columns", "age"], "needs two columns", 2),
        (["rules", "R", "--longest", "1"], "1 items", 2),
    ],
)
def test_what_is_wrong_is_named(
    release: Path, arguments: list[str], message: str, code: int
) -> None:
    given = [argument.replace("R", str(release), 1) if argument[0] == "R" else argument
             for argument in arguments]  # fmt: skip
    with pytest.raises(VoileError, match=re.escape(message)) as told:
        CliRunner().invoke(app, given, catch_exceptions=False)
    assert told.value.exit_code == code


def test_a_noisy_view_is_no_table_of_perturbed_rows(tmp_path: Path) -> None:
    view = tmp_path / "scores.voile"
    voile.publish("dataset:scores", prior_factor=1, posterior=0.9).save(view)
    command = [sys.executable, "-m", "voile.cli", "tree", str(view), "--target", "score"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "locally perturbed rows" in done.stderr
    assert "voile perturb" in done.stderr
