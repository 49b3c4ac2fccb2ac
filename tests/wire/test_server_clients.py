"""Tools that ask a server of noisy answers: psql, psycopg and JDBC, beside several processes."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.postgres import find_program
from tests.support.serving import Running, begun, running
from tests.wire.test_clients import driver
from voile.serve.steward import issue_token

ASKED = "select sex, count(*) as n from people where age < {} group by sex order by sex"
CHARGE = "set voile.charge = on"


@dataclass(frozen=True)
class Asked:
    """`voile serve run --workers 2 --wire`, and the token of an analyst."""

    server: Running
    token: str

    @property
    def wire(self) -> int:
        return int(self.server.data["wire"])

    def used(self) -> int:
        """Answers that were charged so far."""
        connection = self.server.connect()
        connection.request("GET", "/budget", headers={"Authorization": f"Bearer {self.token}"})
        found: int = json.loads(connection.getresponse().read())["used"]
        connection.close()
        return found

    def by_http(self, age: int) -> dict[str, float]:
        """What the server's own protocol answers; what it charged is seen in `used`."""
        status, found = self.server.ask(ASKED.format(age), self.token)
        assert status == 200, found
        return {row["sex"]: row["n"]["estimate"] for row in found["rows"]}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    folder = tmp_path_factory.mktemp("served") / "counts"
    begun(folder, queries=30, register=False)
    token, _ = issue_token(
        folder, "anna", queries=20, group=None, role="analyst", scopes=None, seconds=None
    )
    with running(folder, "--workers", "2", "--wire", "0") as server:
        yield Asked(server, token)
        code, said = server.stop()
    assert code == 0, said


def test_several_processes_answer_both_protocols_from_one_ledger(asked: Asked) -> None:
    psycopg = pytest.importorskip("psycopg")
    place = f"host=127.0.0.1 port={asked.wire} dbname=voile user=anna password={asked.token}"
    before = asked.used()
    with psycopg.connect(place, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="would be charged"):
            connection.execute(ASKED.format(21))
        assert asked.used() == before
        connection.execute(CHARGE)
        for age in range(21, 25):
            by_wire = dict(connection.execute(ASKED.format(age)).fetchall())
            assert by_wire == asked.by_http(age)
        assert asked.used() == before + 4, "asked again by the other protocol, it is free"
        first = asked.by_http(25)
        assert dict(connection.execute(ASKED.format(25)).fetchall()) == first
        assert asked.used() == before + 5


def test_psql_asks_a_server(asked: Asked) -> None:
    place = f"postgresql://anna:{asked.token}@127.0.0.1:{asked.wire}/voile"
    before = asked.used()
    question = ASKED.format(31)
    given = [word for one in (r"\dt", r"\d people", question, CHARGE, question)
             for word in ("-c", one)]  # fmt: skip
    done = subprocess.run(
        [find_program("psql"), "-X", "-At", place, *given],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[:3] == ["public|people|table|voile", "age|bigint|||", "sex|text|||"]
    assert "the question would be charged 1 answer" in done.stderr
    answer = dict(line.split("|") for line in lines[-2:])
    assert {sex: float(n) for sex, n in answer.items()} == asked.by_http(31)
    assert asked.used() == before + 1


@pytest.mark.skipif(not (shutil.which("java") and driver()), reason="needs Java and the driver")
def test_jdbc_asks_a_server(asked: Asked) -> None:
    place = f"jdbc:postgresql://127.0.0.1:{asked.wire}/voile?sslmode=disable"
    before = asked.used()
    question = ASKED.format(41)
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", str(driver()),
         str(Path(__file__).with_name("Statements.java")), place, asked.token,
         question, CHARGE, question, question],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    expected = asked.by_http(41)
    assert lines[:2] == ["refused: 53400", "rows:"], done.stderr
    assert lines[2] == lines[3], "asked again, it is free"
    words = lines[2].removeprefix("rows: ").split()
    assert dict(zip(words[::2], map(float, words[1::2]), strict=True)) == expected
    assert asked.used() == before + 1


R = """
given <- commandArgs(trailingOnly = TRUE)
connection <- DBI::dbConnect(RPostgres::Postgres(), host = "127.0.0.1", port = as.integer(given[1]),
                             dbname = "voile", user = "anna", password = given[2])
DBI::dbExecute(connection, given[3])
found <- DBI::dbGetQuery(connection, given[4])
cat(paste(found$sex, found$n), sep = "\n")
DBI::dbDisconnect(connection)
"""


def rpostgres() -> str | None:
    """R, where it has RPostgres."""
    program = shutil.which("Rscript")
    asks = [str(program), "-e", "quit(status = !requireNamespace('RPostgres', quietly = TRUE))"]
    there = program and subprocess.run(asks, check=False, capture_output=True).returncode == 0
    return program if there else None


@pytest.mark.skipif(rpostgres() is None, reason="needs R and its package RPostgres")
def test_r_asks_a_server(asked: Asked, tmp_path: Path) -> None:
    script = tmp_path / "ask.R"
    script.write_text(R, encoding="utf-8")
    done = subprocess.run(
        [str(rpostgres()), str(script), str(asked.wire), asked.token, CHARGE, ASKED.format(51)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    answer = dict(line.split() for line in done.stdout.splitlines())
    assert {sex: float(n) for sex, n in answer.items()} == asked.by_http(51), done.stderr
