"""The command line as a user sees it: output, errors, exit codes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import voile
from voile.cli.program import FIRST, HOMES

SEED = ["--simulate-seed", "1"]


def data(*arguments: str, cwd: Path | None = None) -> Any:
    done = voile(*arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("cli") / "adult.voile"
    published = data(
        "publish", "dataset:adult/boundary", "-o", str(path),
        "--prior-factor", "10", "--posterior", "0.2", "--retention", "0.5", *SEED,
    )  # fmt: skip
    assert published["release"] == str(path)
    assert published["method"] == "alphabeta"
    assert published["rows_in"] == 30162
    assert published["domain_size"] == "648023040"
    assert published["parameters"]["retention"] == 0.5
    assert published["guarantee"]["posterior"] == 0.2
    assert published["simulated"] is True
    return str(path)


def test_inspect_json() -> None:
    found = data("inspect", "dataset:adult/boundary")
    assert found["rows"] == 30162
    assert found["domain_size"] == "648023040"
    assert found["duplicates"] == 10660
    ages = found["attributes"][0]
    assert (ages["name"], ages["kind"], ages["size"], ages["nulls"]) == ("age", "integer", 72, 0)
    assert sum(ages["histogram"]) == 30162
    assert found["feasible"]["boundary"] == pytest.approx(1.18485419912084)
    assert found["feasible"]["possible"] is True


def test_inspect_shows_identifiers_and_what_to_do(tmp_path: Path) -> None:
    lines = ["id,city,age"] + [f"P{i},{'NY' if i % 2 else 'LA'},{i % 50}" for i in range(400)]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    done = voile("inspect", "people.csv", cwd=tmp_path)
    assert "identifier?" in done.stdout
    assert "leave out id" in done.stdout
    assert "--columns city,age" in done.stdout
    found = data("inspect", "people.csv", cwd=tmp_path)
    assert found["identifiers"] == ["id"]
    assert found["publishable"] == {
        "columns": ["city", "age"],
        "domain_size": "100",
        "duplicates": 350,
    }


def test_inspect_survives_what_cannot_be_published(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"tags": [["a"], ["b"]], "empty": pa.nulls(2, pa.string()), "x": [1, 2]})
    pq.write_table(table, tmp_path / "odd.parquet")
    found = data("inspect", "odd.parquet", cwd=tmp_path)
    assert [a["kind"] for a in found["attributes"]] == ["unsupported", "categorical", "integer"]
    assert found["feasible"]["possible"] is False
    assert voile("inspect", "odd.parquet", cwd=tmp_path).returncode == 0


def test_schema_edit_publish_query(tmp_path: Path) -> None:
    """A steward's path: CSV, codebook, edit, publish, verify, describe, count."""
    rows = [f"{20 + i % 30},{'yes' if i % 3 else 'no'},{i % 7 / 2}" for i in range(3000)]
    (tmp_path / "t.csv").write_text("age,smokes,score\n" + "\n".join(rows))
    written = data("schema", "t.csv", "-o", "schema.yaml", cwd=tmp_path)
    assert written["attributes"][0]["public"] == "active"
    codebook = (tmp_path / "schema.yaml").read_text()
    edited = codebook.replace("active", "declared").replace('"no", "yes"', '"no", "yes", "often"')
    (tmp_path / "schema.yaml").write_text(edited)
    promise = ["--prior", "0.01", "--posterior", "0.3"]
    published = data(
        "publish", "t.csv", "--schema", "schema.yaml", "-o", "t.voile", *promise, cwd=tmp_path
    )
    assert published["disclosed"] == []
    assert data("verify", "t.voile", cwd=tmp_path)["ok"] is True
    answer = data("query", "t.voile", "select count(*) from t where age < 30", cwd=tmp_path)
    count = answer["rows"][0]["count"]
    assert count["low"] <= count["estimate"] <= count["high"]
    assert abs(count["estimate"] - 1000) < 6 * count["stderr"]
    shown = voile("describe", "t.voile", cwd=tmp_path)
    for heading in ("What is promised", "What is not promised", "How to count from it without"):
        assert heading in shown.stdout


def test_query_json_keys(release: str) -> None:
    sql = "select count(*) from adult where age between 25 and 45 and sex = 'Female'"
    answer = data("query", release, sql, "--confidence", "0.9")
    assert set(answer) == {"rows", "confidence", "covers"}
    assert answer["confidence"] == 0.9
    assert set(answer["rows"][0]["count"]) == {"estimate", "stderr", "low", "high", "bound"}
    named = data("query", release, sql.replace("count(*)", "count(*) as women"))
    assert "women" in named["rows"][0]
    explained = data("explain", release, sql)
    assert explained["estimate"] == answer["rows"][0]["count"]["estimate"]
    assert {"n_view", "n_domain"} <= set(explained)


def test_results_go_to_stdout_and_the_rest_to_stderr(release: str) -> None:
    done = voile("query", release, "select count(*) from adult where sex = 'Male'")
    assert "estimate" in done.stdout
    assert "interval covers" not in done.stdout
    assert "interval covers" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["inspect", "nowhere.csv"], 2, "nowhere.csv"),
        (["inspect", "dataset:adlt"], 2, "did you mean 'adult'"),
        (["inspect", "dataset:adult", "--columns", "agee"], 2, "did you mean 'age'"),
        (["publish", "dataset:adult", "-o", "x.voile"], 1, "NULLs in 'workclass' (2,799 rows)"),
        (["publish", "dataset:adult/boundary", "-o", "x.voile", "--posterior", "7"], 2, "γ = 7"),
        (["publish", "dataset:adult/boundary", "-o", "x.voile", "--prior-factor", "9999"], 1,
         "--prior-factor below"),
        (["publish", "dataset:adult/boundary", "-o", "x.voile", "--retention", "0.9999"], 1,
         "Theorem 4.3"),
        (["publish", "dataset:adult/boundary", "-o", "no/x.voile"], 2, "no folder"),
        (["publish", "dataset:adult/boundary", "-o", "x.voile", "--nulls", "maybe"], 2, "maybe"),
        (["publish", "dataset:adult/boundary", "-o", "x.voile", "--rows", "set"], 1,
         "10,660 of 30,162 rows repeat"),
        (["verify", "nowhere.voile"], 2, "no release"),
        (["query", "nowhere.voile", "select 1"], 2, "no release"),
        (["publish"], 2, "TABLE"),
        (["nonsense"], 2, "nonsense"),
    ],
)  # fmt: skip
def test_wrong_input_says_what_to_do(
    arguments: list[str], code: int, says: str, tmp_path: Path
) -> None:
    done = voile(*arguments, cwd=tmp_path)
    assert done.returncode == code
    assert says in " ".join(done.stderr.split())
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("select count(*) from adult where aeg > 3", "did you mean 'age'"),
        ("select max(age) from adult", "use quantile_disc"),
        ("drop table adult", "DROP"),
        ("select count(*) from adult where", "not SQL"),
    ],
)
def test_wrong_sql_exits_2_with_a_hint(release: str, sql: str, says: str) -> None:
    done = voile("query", release, sql)
    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())


def test_wrong_confidence(release: str) -> None:
    done = voile("query", release, "select count(*) from t", "--confidence", "95")
    assert done.returncode == 2
    assert "between 0 and 1" in done.stderr


def test_help_loses_nothing_to_markup() -> None:
    shown = voile("publish", "--help-all").stdout.replace("│", " ")
    assert "(10 if not given)" in " ".join(shown.split())
    assert voile("--version").stdout.startswith("voile 0.")


def test_a_domain_too_large_for_floats_is_refused(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(400)]
    rows = [",".join(str((i * j) % 10) for j in range(1, 401)) for i in range(30)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + "\n".join(rows))
    found = data("inspect", "wide.csv", cwd=tmp_path)
    assert found["feasible"]["possible"] is False
    assert "10^" in found["feasible"]["why"]
    view = ["--method", "alphabeta"]
    done = voile("publish", "wide.csv", "-o", "w.voile", *view, cwd=tmp_path)
    assert done.returncode == 1
    assert "more than can be handled" in done.stderr


def test_a_folder_that_only_looks_like_a_release_is_not_replaced(
    release: str, tmp_path: Path
) -> None:
    app = tmp_path / "app"
    app.mkdir()
    (app / "manifest.json").write_text("{}")
    (app / "thesis.txt").write_text("precious")
    again = ["publish", "dataset:adult/boundary", "--overwrite", *SEED, "-o"]
    done = voile(*again, str(app))
    assert done.returncode == 2
    assert "not a sound release" in done.stderr
    assert (app / "thesis.txt").read_text() == "precious"
    shutil.copytree(release, tmp_path / "r.voile")
    (tmp_path / "r.voile" / "notes.txt").write_text("mine")
    done = voile(*again, str(tmp_path / "r.voile"))
    assert done.returncode == 2
    assert "notes.txt does not belong" in done.stderr


def test_schema_never_replaces_the_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    for more in ([], ["--overwrite"]):
        done = voile("schema", "t.csv", "-o", "t.csv", *more, cwd=tmp_path)
        assert done.returncode == 2
    assert (tmp_path / "t.csv").read_text() == "a,b\n1,2\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    """Stopped while it writes (the promise asks for 40 million rows): no folder, no temporary."""
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "voile.cli", "publish", "dataset:adult/boundary", "-o", "x.voile",
         "--prior-factor", "350"],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp")},
    )  # fmt: skip
    while process.poll() is None and not list(tmp_path.glob(".x.voile.partial-*/data/*")):
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert out == ""
    assert "interrupted; nothing was left behind" in err
    assert [p.name for p in tmp_path.iterdir()] == ["tmp"]
    assert list((tmp_path / "tmp").iterdir()) == []


INTERRUPTED = """
import os, signal, sys
import voile.kinds.staging as staging
true, number = staging.Path.rename, int(sys.argv.pop(1))
def rename(self, target):
    done = true(self, target)
    if "partial" in self.name:
        os.kill(os.getpid(), number)
    return done
staging.Path.rename = rename
from voile.cli.program import FIRST, HOMES
from voile.cli import main
main()
"""


@pytest.mark.parametrize("more", [(), ("--overwrite",), ("--series", "s")])
def test_a_signal_after_the_release_is_in_place_is_too_late(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    """It would be a lie that nothing was left behind: the command ends as it would have."""
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(f"{i % 9},{i % 7}" for i in range(500)))
    command = ["publish", "t.csv", "--prior", "0.01", "-o", "t.voile", "--json", *more]
    if "--overwrite" in more:
        assert voile(*command, cwd=tmp_path).returncode == 0
    before = (tmp_path / "t.voile").stat().st_ino if "--overwrite" in more else None
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(int(signal.SIGINT)), *command],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "nothing was left behind" not in done.stderr
    assert json.loads(done.stdout)["release"] == "t.voile"
    assert (tmp_path / "t.voile").stat().st_ino != before
    left = sorted(p.name for p in tmp_path.iterdir())
    assert left == sorted(["t.csv", "t.voile", *(["s.series"] if "--series" in more else [])])
    assert voile("verify", "t.voile", cwd=tmp_path).returncode == 0


def test_a_weak_promise_is_said_aloud(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(f"{i % 9},{i % 7}" for i in range(500)))
    weak = ["publish", "t.csv", "--prior", "1e-6", "-o", "t.voile"]
    refused = voile(*weak, cwd=tmp_path)
    assert refused.returncode == 1 and "says next to nothing" in refused.stderr
    assert not (tmp_path / "t.voile").exists()
    done = data(*weak, "--weak", cwd=tmp_path)
    assert "The promise is weak" in (tmp_path / "t.voile" / "README.md").read_text()
    assert any("promised against nothing" in note for note in done["notes"])
    assert "A weak promise" in voile("describe", "t.voile", cwd=tmp_path).stdout
    fine = data("publish", "t.csv", "--prior", "0.05", "-o", "u.voile", cwd=tmp_path)
    assert not any("promised against nothing" in note for note in fine["notes"])


def test_options_are_checked_before_the_table(tmp_path: Path) -> None:
    for wrong in (["--posterior", "2"], ["--adversary", "evil"], ["--retention", "5"],
                  ["--prior", "-1"]):  # fmt: skip
        done = voile("publish", "dataset:adult", "-o", "x.voile", *wrong, cwd=tmp_path)
        assert done.returncode == 2
        assert "NULL" not in done.stderr


def test_output_that_cannot_be_written_is_no_traceback(release: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "voile.cli", "verify", release],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_datasets_are_listed() -> None:
    names = [entry["name"] for entry in data("datasets")]
    assert {"dataset:adult", "dataset:adult/boundary", "dataset:scores"} <= set(names)


def test_every_command_has_help() -> None:
    """One screen names them all."""
    listed = voile("--help", columns=80).stdout
    assert set(HOMES) <= set(listed.split())
    assert {name for names in FIRST.values() for name in names} < set(HOMES)
    assert len(listed.splitlines()) <= 40
    assert all(len(line) <= 80 for line in listed.splitlines())
    for command in ("inspect", "publish", "verify", "describe", "query", "datasets", "demo"):
        assert voile(command, "--help").returncode == 0


def test_help_of_a_group_that_is_a_command_names_the_others() -> None:
    shown = voile("register", "--help").stdout
    assert "Usage: voile register [OPTIONS]" in " ".join(shown.split())
    assert "voile register COMMAND --help: show, limit" in " ".join(shown.split())
    assert "COMMAND" not in voile("register", "show", "--help").stdout
