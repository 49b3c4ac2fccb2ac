"""The demonstration on its own table and on others, and the attack that is part of it."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voile
from tests.support.running import voile as command
from voile.engines import connect
from voile.errors import UsageError
from voile.evaluate.attack import LeftOutAttack, attack_left_out
from voile.evaluate.demo import Demonstration, run
from voile.progress import Silent

PEOPLE = 3000


def test_the_demonstration_publishes_asks_attacks_and_draws(tmp_path: Path) -> None:
    done = command("demo", "-o", "out", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["people"] == 5638 - 563
    assert len(result["questions"]) == 3
    # Of some 900 intervals that hold the truth in 95 % or more, in fresh releases.
    assert result["felt"]["counts"] > 500
    assert result["felt"]["coverage"] > 0.9
    # Five standard errors of a difference of two shares: a false alarm less than once in 10⁶.
    attack = result["attack"]
    assert abs(attack["inside"] - attack["outside"]) < 5 * attack["stderr"]
    assert attack["alone"] > 0.9
    drawn = [tmp_path / file for file in result["files"] if not file.endswith(".csv")]
    assert {file.suffix for file in drawn} == {".png", ".html"}
    assert all(file.stat().st_size > 50_000 for file in drawn)
    assert (tmp_path / "out" / "frontier" / "points.csv").stat().st_size > 1_000
    verified = command("verify", result["release"], "--json", cwd=tmp_path)
    assert json.loads(verified.stdout)["ok"] is True
    assert result["next"] == "voile studio out/health.voile"


def shown(result: Demonstration) -> str:
    from rich.console import Console

    console = Console(width=300, file=io.StringIO())
    with console.capture() as captured:
        console.print(result)
    return captured.get()


def odd(path: Path) -> str:
    """Names that SQL reads as something else, NULLs, dates and fractions."""
    rng = np.random.default_rng(3)
    town = rng.choice(["Aš", "O'Brien", 'the "old" one', "<b>"], PEOPLE, p=[0.4, 0.3, 0.2, 0.1])
    size = pa.array(rng.normal(170, 9, PEOPLE).round(1), mask=rng.random(PEOPLE) < 0.2)
    columns = {
        "select": pa.array(town.tolist()),
        "Größe (cm)": size,
        "born": pa.array(rng.integers(0, 20_000, PEOPLE), pa.int32()).cast(pa.date32()),
        "well": pa.array((rng.random(PEOPLE) < 0.7).tolist()),
    }
    pq.write_table(pa.table(columns), path / "odd table.parquet")
    return str(path / "odd table.parquet")


def numbers(path: Path) -> str:
    """No column of a few values."""
    rng = np.random.default_rng(4)
    columns = {name: rng.integers(0, 1000, PEOPLE) for name in ("a", "b", "c")}
    pq.write_table(pa.table(columns), path / "numbers.parquet")
    return str(path / "numbers.parquet")


@pytest.mark.parametrize("made", [odd, numbers])
def test_any_table(made: object, tmp_path: Path) -> None:
    assert callable(made)
    result = run(tmp_path / "out", Silent(), made(tmp_path))
    assert result.people == 2700
    assert result.felt.coverage is not None
    assert result.felt.coverage > 0.9
    assert result.attack is not None
    assert len(result.questions) == (3 if made is odd else 1)
    text = shown(result)
    lines = [line for line in text.splitlines() if line.startswith("voile query")]
    for question, line in zip(result.questions, lines, strict=True):
        hits, asked = question.covered
        assert hits >= asked - 2  # of ten intervals or fewer; three misses: less than once in 80
        assert shlex.split(line) == ["voile", "query", str(result.release), question.sql]
    assert result.studio in text


def test_what_is_no_table_for_a_demonstration(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="6 rows, too few"):
        run(tmp_path / "out", Silent(), "dataset:scores")
    assert not (tmp_path / "out").exists()
    done = command("demo", "nowhere.csv", "-o", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "nowhere.csv" in done.stderr
    assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------------- the attack


def attacked(epsilon: float) -> LeftOutAttack:
    """Sixty people with twenty columns that say nothing of each other, and as many others."""
    rng = np.random.default_rng(11)
    columns = {f"c{i:02}": rng.choice(["a", "b", "c"], 600) for i in range(21)}
    people = pa.table(columns)
    inside, outside = connect(people.slice(0, 60)), connect(people.slice(60))
    schema = voile.Schema.from_dict(
        {
            "version": 1,
            "attributes": [
                {"name": name, "kind": "categorical", "values": ["a", "b", "c"]}
                for name in people.column_names
            ],
        }
    )
    release = voile.publish(
        inside, method="marginals", order=2, epsilon=epsilon, schema=schema,
        simulate_seed=5, weak=epsilon > 10,
    )  # fmt: skip
    return attack_left_out(release, inside, outside, "c00")


def test_the_attack_finds_people_in_counts_that_are_nearly_exact() -> None:
    """What it finds of people outside is chance: one in three."""
    found = attacked(100.0)
    assert found.inside > found.outside + 5 * found.stderr
    assert abs(found.outside - 1 / 3) < 5 * found.stderr


def test_the_attack_fails_where_the_promise_holds() -> None:
    found = attacked(1.0)
    assert abs(found.inside - found.outside) < 5 * found.stderr
