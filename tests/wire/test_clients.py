"""Tools as people have them, talking to a real release: psql, psycopg, SQLAlchemy, pandas, JDBC."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import voile
from tests.support.postgres import find_program
from tests.support.serving import table
from voile.wire.opening import AnswerOptions, releases_server
from voile.wire.server import WireOptions, WireServer, running

TOKEN = "a-token-that-nobody-guesses"  # noqa: S105
ALL = "select count(*) as n from people"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A release of the tests' people."""
    place = tmp_path_factory.mktemp("wire") / "people.voile"
    columns = ["age", "sex", "city", "smoker", "hours"]
    options: dict[str, Any] = {"qi": columns, "k": 5, "register": False, "name": "people"}
    return voile.publish(table(), "mondrian", to=place, **options)


@pytest.fixture(scope="module")
def server(people: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireServer]:
    """It is asked with a token."""
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.write_text(TOKEN)
    options = WireOptions(port=0)
    with (
        releases_server([people.path], options, token_file=tokens) as made,
        running(made) as found,
    ):
        yield found


def url(server: WireServer, scheme: str = "postgresql") -> str:
    return f"{scheme}://anna:{TOKEN}@127.0.0.1:{server.port}/voile"


def count_of(people: Any, condition: str = "") -> float:
    """What the release itself answers."""
    found: float = people.query(f"{ALL} {condition}").value
    return found


# ---------------------------------------------------------------------- psql


def psql(server: WireServer, *commands: str, output: str = "-At") -> tuple[str, str]:
    given = [word for command in commands for word in ("-c", command)]
    done = subprocess.run(
        [find_program("psql"), "-X", output, url(server), *given],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.stdout, done.stderr


def test_psql_asks_and_looks_around(server: WireServer, people: Any) -> None:
    commands = (r"\dt", r"\d people", r"\dn", r"\l", r"\df", r"\du", r"\dp people", r"\d+ people")
    out, wrong = psql(server, *commands, f"{ALL} where age < 30")
    assert wrong == "" or all(line.startswith("NOTICE") for line in wrong.splitlines())
    lines = out.splitlines()
    assert lines[0] == "public|people|table|voile"
    assert lines[1:6] == [
        "age|bigint|||", "sex|text|||", "city|text|||", "smoker|boolean|||", "hours|bigint|||",
    ]  # fmt: skip
    assert "public|voile" in lines
    assert float(lines[-1]) == pytest.approx(count_of(people, "where age < 30"))


def test_psql_shows_where_a_query_is_wrong(server: WireServer, tmp_path: Path) -> None:
    copied = rf"\copy people to '{tmp_path / 'people'}'"  # psql makes the file before it asks
    out, wrong = psql(server, "select count(*) from people where agee < 30", copied)
    assert "ERROR:" in wrong
    assert "LINE 1: select count(*) from people where agee < 30" in wrong
    assert "COPY is not answered here" in wrong
    assert out == ""


# ---------------------------------------------------------------------- Python


def test_psycopg(server: WireServer, people: Any) -> None:
    psycopg = pytest.importorskip("psycopg")
    from psycopg.types import TypeInfo

    with psycopg.connect(url(server)) as connection:
        asked = f"{ALL} where age < %s and sex = %s"
        found = connection.execute(asked, (30, "Male")).fetchone()[0]
        assert found == pytest.approx(count_of(people, "where age < 30 and sex = 'Male'"))
        for binary in (False, True):
            rows = connection.execute("select age, city from people limit %s", (3,), binary=binary)
            assert [type(value) for value in rows.fetchone()] == [str, str]
        assert TypeInfo.fetch(connection, "hstore") is None
        assert TypeInfo.fetch(connection, "float8").array_oid == 1022
        with connection.cursor(name="few") as cursor:
            cursor.itersize = 2
            cursor.execute("select distinct city from people order by city")
            assert [city for (city,) in cursor] == ["Aachen", "Bergen", "Cork", "Delft"]
        with pytest.raises(psycopg.errors.UndefinedTable), connection.transaction():
            connection.execute("select count(*) from nobody")
        with connection.pipeline():
            first, second = connection.execute("select 1"), connection.execute(ALL)
        assert (first.fetchone(), second.fetchone()) == ((1,), (pytest.approx(500),))


def test_sqlalchemys_own_dialect_reflects_and_asks(server: WireServer, people: Any) -> None:
    sa = pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    engine = sa.create_engine(url(server, "postgresql+psycopg"))
    look = sa.inspect(engine)
    assert look.get_table_names() == ["people"]
    assert look.get_view_names() == []
    assert look.get_pk_constraint("people")["constrained_columns"] == []
    assert (look.get_indexes("people"), look.get_foreign_keys("people")) == ([], [])
    known = sa.Table("people", sa.MetaData(), autoload_with=engine)
    kinds = {column.name: type(column.type).__name__ for column in known.columns}
    assert kinds == {"age": "BIGINT", "sex": "TEXT", "city": "TEXT", "smoker": "BOOLEAN",
                     "hours": "BIGINT"}  # fmt: skip
    asked = sa.select(sa.func.count()).select_from(known).where(known.c.smoker.is_(True))
    with engine.connect() as connection:
        found = connection.execute(asked).scalar()
        by_city = sa.select(known.c.city, sa.func.avg(known.c.age)).group_by(known.c.city)
        assert len(connection.execute(by_city).all()) == 4
    engine.dispose()
    assert found == pytest.approx(count_of(people, "where smoker"))


def test_intervals_can_be_asked_for_by_the_steward_and_by_a_client(people: Any) -> None:
    psycopg = pytest.importorskip("psycopg")
    options, answers = WireOptions(port=0), AnswerOptions(intervals=True, confidence=0.9)
    with (
        releases_server([people.path], options, trust=True, answers=answers) as made,
        running(made) as server,
        psycopg.connect(f"host=127.0.0.1 port={server.port} user=me") as connection,
    ):
        said: list[str] = []
        connection.add_notice_handler(lambda notice: said.append(notice.message_primary))
        found = connection.execute(f"{ALL} where age < 30")
        assert [column.name for column in found.description] == ["n", "n_stderr", "n_low", "n_high"]
        assert "0.9" in said[0]
        connection.execute("set voile.intervals = off")
        assert len(connection.execute(ALL).description) == 1


def test_a_client_comes_with_settings_of_its_own(server: WireServer) -> None:
    psycopg = pytest.importorskip("psycopg")

    def columns(connection: Any) -> list[str]:
        return [column.name for column in connection.execute(ALL).description]

    wanted = "-c voile.intervals=on -c voile.confidence=0.9 -c geqo=off"
    with psycopg.connect(url(server), options=wanted, autocommit=True) as connection:
        said: list[str] = []
        connection.add_notice_handler(lambda notice: said.append(notice.message_primary))
        assert columns(connection) == ["n", "n_stderr", "n_low", "n_high"]
        assert "0.9" in said[0]
        connection.execute("discard all")  # as pools do: what it came with holds
        assert len(columns(connection)) == 4
        connection.execute("set client_min_messages = warning")
        said.clear()
        connection.execute("set voile.intervals = off")
        assert columns(connection) == ["n"]
        connection.execute("select * from people limit 1")  # of which a notice says what rows are
        assert not said
        connection.execute("reset client_min_messages")
        connection.execute("select * from people limit 1")
        assert said
    for wrong, words in (
        ("-c voile.charge=on", "voile.charge is none of the settings that a client may come with"),
        ("-c voile.intervals=perhaps", "perhaps"),
        ("-c voile.nothing=1", "voile.nothing"),
    ):
        with pytest.raises(psycopg.OperationalError, match=words):
            psycopg.connect(url(server), options=wrong)


# ---------------------------------------------------------------------- JDBC


def driver() -> str | None:
    """PostgreSQL's JDBC driver, from Maven's local files or Debian's."""
    kept = Path.home() / ".m2/repository/org/postgresql/postgresql"
    debian = Path("/usr/share/java/postgresql.jar")
    found = sorted(kept.glob("*/postgresql-*[0-9].jar")) or [debian] * debian.exists()
    return str(found[-1]) if found else None


@pytest.mark.skipif(not (shutil.which("java") and driver()), reason="needs Java and the driver")
def test_jdbc(server: WireServer, people: Any) -> None:
    place = f"jdbc:postgresql://127.0.0.1:{server.port}/voile?sslmode=disable"
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", str(driver()),
         str(Path(__file__).with_name("Metadata.java")), place, TOKEN],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    male = count_of(people, "where age >= 30 and city <> 'Cork' and sex = 'Male'")
    assert lines[:10] == [
        "PostgreSQL public", "catalogs: voile", "schemas: information_schema pg_catalog public",
        "tables: people TABLE",
        "columns: age int8 1 sex text 2 city text 3 smoker bool 4 hours int8 5", "keys:",
        "imported:", "indexes:", "rights: SELECT", "types: true false",
    ], done.stderr  # fmt: skip
    answers = lines[10:16]
    assert len(set(answers)) == 1, "as texts and as bytes"
    assert float(answers[0].split()[-1]) == pytest.approx(male)
    assert lines[16:] == ["cities: Aachen Bergen Cork Delft", "refused: 42703", "valid: true"]
