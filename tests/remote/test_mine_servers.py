"""Mining two servers that run in processes of their own, and what users type wrongly."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tests.support.processes import plain
from tests.support.running import told
from tests.support.serving import running
from voile.asking import mine
from voile.cli import app
from voile.errors import VoileError
from voile.remote.client import Server
from voile.serve.creation import begin
from voile.serve.steward import ledger_of

ROWS = 4000
RNG = np.random.default_rng(4)
SMOKER = RNG.random(ROWS) < 0.4
CANCER = RNG.random(ROWS) < np.where(SMOKER, 0.7, 0.1)
AGE = RNG.integers(0, 100, ROWS)
TRUTH = float((SMOKER & CANCER).mean())
BOOLEAN = {"kind": "boolean", "values": [False, True]}
LEFT = {"attributes": [{"name": "smoker"} | BOOLEAN,
                       {"name": "age", "kind": "integer", "range": [0, 99]}]}  # fmt: skip
RIGHT = {"attributes": [{"name": "cancer"} | BOOLEAN]}


@dataclass(frozen=True)
class Pair:
    """Two servers of different columns of the same people, and their tokens in files."""

    folder: Path
    urls: dict[str, str]

    @property
    def options(self) -> list[str]:
        given = [("--db", f"{name}={url}") for name, url in self.urls.items()]
        given += [("--token-file", f"{name}={self.file(name)}") for name in self.urls]
        return [word for pair in given for word in pair]

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.token"

    def server(self, name: str) -> Server:
        return Server(self.urls[name], self.file(name).read_text(encoding="ascii").strip())


def begun(folder: Path, name: str, table: pa.Table, schema: object) -> Path:
    place = folder / name
    begin(place, table, schema=schema, queries=700, delta=8.0, name=name)  # type: ignore[arg-type]
    ledger = ledger_of(place)
    token, _ = ledger.issue("anna")
    ledger.close()
    (folder / f"{name}.token").write_text(token + "\n", encoding="ascii")
    return place


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    one = begun(folder, "A", pa.table({"smoker": SMOKER, "age": AGE}), LEFT)
    other = begun(folder, "B", pa.table({"cancer": CANCER}), RIGHT)
    generous = ("--rate", "5000/s", "--burst", "5000")
    with running(one, *generous) as first, running(other, *generous) as second:
        yield Pair(folder, {"A": first.data["url"], "B": second.data["url"]})


def test_two_servers_together(pair: Pair) -> None:
    found = told(["mine", "A.smoker and B.cancer", *pair.options, "--halves", "150", "--seed", "1"])
    truth = found["probability"]
    assert abs(truth["estimate"] - TRUTH) < 5 * truth["stderr"]
    assert truth["stderr"] < 0.06
    assert found["queries"]["A"]["charged"] == found["queries"]["B"]["charged"] == 151
    assert found["observed_stderr"] == pytest.approx(truth["stderr"], rel=0.4)

    # The same seed is free, and so is every other function of the same two conditions.
    with pair.server("A") as one, pair.server("B") as other:
        servers = {"A": one, "B": other}
        again = mine(servers, "A.smoker and B.cancer", halves=150, seed="1")
        assert again.value == truth["estimate"]
        xor = mine(servers, "A.smoker xor B.cancer", halves=150, seed="1")
        assert {s.charged for s in (*again.spent.values(), *xor.spent.values())} == {0}
        assert abs(xor.value - float((SMOKER ^ CANCER).mean())) < 5 * xor.stderr
        rest = mine(servers, "not (A.smoker xor B.cancer)", halves=150, seed="1")
        assert rest.value == pytest.approx(1 - xor.value)


def test_an_interrupted_command_says_how_to_go_on(pair: Pair) -> None:
    left = told(["ask", pair.urls["A"], "--budget", "--token-file", str(pair.file("A"))])
    wanted = ["mine", "A.age < 50 and B.cancer", *pair.options, "--halves", "300"]
    command = [sys.executable, "-m", "voile.cli", *wanted, "--seed", "stop"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env=plain())  # fmt: skip
    with pair.server("A") as one:
        started = one.budget()["remaining"]
        while one.budget()["remaining"] > started - 20 and process.poll() is None:
            time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGINT
    assert "go on, free of charge, with --seed stop --halves 300" in errors
    found = told([*wanted, "--seed", "stop"])
    assert found["queries"]["A"]["charged"] <= 301 - 20
    assert found["queries"]["A"]["remaining"] == left["remaining"] - 301


def test_a_plan_asks_nothing(pair: Pair) -> None:
    with pair.server("A") as one:
        before = one.budget()["remaining"]
        found = told(["mine", "A.smoker and B.cancer", *pair.options, "--error", "0.01",
                      "--dry-run"])  # fmt: skip
        assert one.budget()["remaining"] == before
    assert found["halves"] > 1000
    assert found["expected_error"] <= 0.01
    assert not found["queries"]["A"]["enough"]


# ---------------------------------------------------------------------- what users type wrongly


def refused(*arguments: str) -> VoileError:
    result = CliRunner().invoke(app, ["mine", *arguments])
    assert isinstance(result.exception, VoileError), (result.output, result.exception)
    assert result.exception.hint
    assert result.output == ""
    return result.exception


HERE = ["--db", "A=http://127.0.0.1:1", "--db", "B=http://127.0.0.1:2"]
TOKENS = ["--token", "A=x", "--token", "B=x"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--db", "A"], "--db 'A' is not NAME=VALUE"),
        (["--db", "=http://x"], "is not NAME=VALUE"),
        (["--db", "1x=http://127.0.0.1:1", "--token", "1x=x"], "'1x' is no name"),
        (["--db", "A=http://127.0.0.1:1", "--db", "a=http://127.0.0.1:2"], "names 'a' twice"),
        (HERE, "there is no token for A"),
        ([*HERE, "--token", "A=x"], "there is no token for B"),
        ([*HERE, *TOKENS, "--token", "C=x"], "--token is for 'C'"),
        ([*HERE, "--token-file", "A=no such file"], "cannot be read"),
        ([*HERE, *TOKENS, "--token-file", "A=f"], "exclude each other"),
        ([*HERE, *TOKENS, "--halves", "10"], "cannot be reached"),
        ([*HERE, *TOKENS, "--confidence", "2"], "confidence 2.0"),
        (["--db", "A=ftp://x", "--token", "A=x"], "is not the address of a server"),
        (["--db", "A=http://example.org", "--token", "A=x"], "is not encrypted"),
    ],
)
def test_wrong_options(arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("VOILE_TOKEN")]:
        monkeypatch.delenv(name)
    assert words in str(refused("A.smoker and B.cancer", *arguments))


def test_a_wrong_token(pair: Pair) -> None:
    urls = [word for name, url in pair.urls.items() for word in ("--db", f"{name}={url}")]
    error = refused("A.smoker and B.cancer", *urls, *TOKENS, "--halves", "10")
    assert error.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["A.smoker and B.cancr", "--halves", "9"], "did you mean 'cancer'", 2),
        (["A.smoker and B.cancer"], "neither --halves nor --error", 2),
        (["A.smoker and B.cancer", "--halves", "100000"], "nothing was asked", 1),
        (["A.smoker xor B.cancer", "--halves", "9", "--tester"], "is not a condition of one", 2),
        (["A.age > B.cancer", "--halves", "9"], "at once", 2),
    ],
)
def test_wrong_expressions_and_budgets(
    pair: Pair, arguments: list[str], words: str, code: int
) -> None:
    error = refused(*arguments, *pair.options)
    assert words in str(error)
    assert error.exit_code == code


def test_the_tester_from_the_command_line(pair: Pair) -> None:
    arguments = ["A.smoker and B.cancer", *pair.options, "--tester", "--seed", "1", "--json"]
    result = CliRunner().invoke(app, ["mine", *arguments, "--halves", "60", "--bias", "0.05"])
    assert result.exit_code == 0, result.exception
    found = json.loads(re.sub(r"^[^{]*", "", result.output, count=1))
    assert found["accepted"] is not None
    assert found["tried"] >= 1
    assert 0.2 < found["acceptance"] < 0.5


def test_what_people_see(pair: Pair) -> None:
    arguments = ["A.smoker and B.cancer", *pair.options, "--seed", "1", "--halves", "50"]
    result = CliRunner().invoke(app, ["mine", *arguments])
    assert result.exit_code == 0, result.exception
    for words in ("Pr[A.smoker and B.cancer]", "given", "Δ", "share of rows", "budget left"):
        assert words in result.output
