"""Attacks on a server: SQL that reaches for more, questions that fail on some rows, guessed tokens.

Two tables of one schema must refuse the same questions in the same words, and refuse before any
row is looked at: then no refusal tells anything about rows.
"""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.serving import CODEBOOK, Served, begun, served, table
from voile.errors import QueryError
from voile.query import parse
from voile.serve import api
from voile.serve.api import GUESSES
from voile.serve.creation import begin
from voile.web.limits import Rate

FOREIGN = [
    # other tables, and what the engine knows of itself
    "select count(*) from duckdb_tables()",
    "select count(*) from duckdb_settings()",
    "select count(*) from duckdb_secrets()",
    "select count(*) from pragma_table_info('rows')",
    "select count(*) from people, people as other",
    "select count(*) from people join people as p on p.age = people.age",
    "select count(*) from people cross join range(1000000)",
    "select count(*) from people union select count(*) from entries",
    "select count(*) from people union all select 1",
    "select count(*) from people intersect select 1",
    "select count(*) from people except select 0",
    "with x as (select * from people, entries) select count(*) from x",
    "with x as (select * from read_csv('/etc/passwd')) select count(*) from x",
    "with people as (select * from ledger.entries) select count(*) from people",
    "with recursive x as (select 1 union all select * from x) select count(*) from x",
    "select count(*) from (select * from people, people as other)",
    "select count(*) from (select * from sqlite_master)",
    "select count(*) from people where age in (select age from people)",
    "select count(*) from people where exists (select 1 from people where age = 5)",
    "select count(*) from people where age = (select max(age) from people)",
    "select count(*) from people tablesample 10%",
    "select count(*) from people using sample 1",
    "select count(*) from people limit (select max(age) from people)",
    # files and networks
    "select count(*) from read_csv('/etc/passwd')",
    "select count(*) from read_text('/etc/passwd')",
    "select count(*) from read_blob('/proc/self/environ')",
    "select count(*) from glob('/*')",
    "select count(*) from read_parquet('http://127.0.0.1:1/x')",
    "select count(*) from people where city in (select content from read_text('/etc/passwd'))",
    "select count(*) from people where getenv('HOME') = '/root'",
    "copy people to '/tmp/stolen.csv'",
    "copy (select * from people) to '/dev/stdout'",
    "export database '/tmp/stolen'",
    "attach '/tmp/other.duckdb'",
    "install httpfs",
    "load httpfs",
    # other statements, one behind the other
    "select count(*) from people; select 1",
    "select count(*) from people; drop table rows",
    "select count(*) from people where age > 1; attach 'x'",
    "drop table rows",
    "delete from rows",
    "update rows set age = 1",
    "insert into rows values (1)",
    "create table x as select * from rows",
    "pragma database_list",
    "set enable_external_access = true",
    "reset all",
    "call pragma_version()",
    "explain select count(*) from people",
    "describe people",
    "show tables",
    "prepare p as select 1",
    "select * from people",
    "select age from people",
    "select distinct city from people",
    "select age, sex from people group by age, sex having count(*) = 1",
    # comments and quotes
    "select count(*) from people where city = 'x' union select 1 --",
    # the hidden columns
    'select count(*) from people where "voile row hash" > 0',
    "select count(*) from people where rowid = 5",
    "select count(*) from people where rowid < 10 and age > 3",
    # functions of the system, of time, of chance
    "select count(*) from people where random() < 0.5",
    "select count(*) from people where current_user = 'root'",
    "select count(*) from people where now() > date '2000-01-01'",
    "select count(*) from people where uuid() > 'a'",
    "select count(*) from people where current_setting('threads') = '1'",
    "select count(*) from people where pg_sleep(10) is null",
    "select count(*) from people where sleep(10) = 0",
    "select count(*) from people where error('age') is null",
    "select count(*) from people where nextval('s') = 1",
    # aggregates and windows that show single rows
    "select max(age) from people",
    "select min(age) from people",
    "select list(age) from people",
    "select string_agg(city, ',') from people",
    "select first(city) from people",
    "select any_value(age) from people",
    "select arg_max(city, age) from people",
    "select mode(age) from people",
    "select count(*) over () from people",
    "select row_number() over () from people",
    "select count(distinct age) from people",
    "select count(*) from people order by age",
    # too much work
    "select age, hours, city, sex, count(*) from people group by age, hours, city, sex",
    "select count(*) from people where " + "(" * 3000 + "age > 1" + ")" * 3000,
    "select count(*) from people where " + "not " * 2000 + "age > 1",
    "select count(*) from people where length(repeat('a', 2000000000)) > age",
]
"""Must be refused: they reach for what is not theirs, or for single rows, or for too much work."""

NAMES = ["rows2", "People", "main.people", '"rows"', '"the people"']
"""There is one table, and any plain name will do for it."""
CATALOGS = [
    "information_schema.tables", "INFORMATION_SCHEMA.columns", "temp.people", "a.main.people",
    "sqlite_master", "pg_catalog.pg_tables", "pg_tables", "duckdb_tables", '"information_schema"',
    "'/etc/passwd'", "'ledger.sqlite'", '"/etc/passwd"', '"people; drop table rows"', "read_csv",
]  # fmt: skip
"""What is not that table, and must not be answered as if it were."""

TEMPTING = [
    # fail on some values, if anything fails
    "select count(*) from people where 1 / age > 0",
    "select count(*) from people where 100 // (age - 50) > 1",
    "select count(*) from people where 7 % age = 1",
    "select count(*) from people where cast(city as integer) > 1",
    "select count(*) from people where city::date > date '2000-01-01'",
    "select count(*) from people where sqrt(age - 50) > 1",
    "select count(*) from people where ln(age) > 1",
    "select count(*) from people where exp(age * 100) > 1",
    "select count(*) from people where (age * 1000)::tinyint > 0",
    "select count(*) from people where age * 9223372036854775807 > 0",
    "select count(*) from people where chr(age - 50) = 'a'",
    "select count(*) from people where case when age > 50 then 1 / (age - 99) else 1 end > 0",
    "select count(*) from people where case when age = 7 then cast(city as int) else 1 end > 0",
    "select sum(1 / (age - 50)) from people",
    "select sum(ln(age)) from people",
    "select sum(exp(age * 20)) from people",
    "select sum(hours / age) from people",
    "select avg(cast(city as integer)) from people",
    "select sum(age * 1e308) from people",
    "select count(*) / (count(*) - count(*)) from people",
    "select sum(hours) / count(*) from people where age = 200",
    "select count(*) from people where age > 1000",
    "select city, avg(hours) from people where age = 99 group by city",
    "select 1 / (age - 50) as x, count(*) from people group by x",
    "select age // 10 as decade, count(*) from people group by decade",
    # regular expressions and long texts
    "select count(*) from people where regexp_matches(city, '(a+)+$')",
    "select count(*) from people where city similar to '((a*)*)*b'",
    "select count(*) from people where city like '" + "%a" * 300 + "'",
    "select count(*) from people where city = '" + "a" * 9000 + "'",
    "select count(*) from people where age in (" + ", ".join(map(str, range(1500))) + ")",
    "select count(*) from people where city = 'Cork' or '1' = '1'",
    "select count(*) from people where city = ''''",
    "select count(*) from people where city = '\x00'",
    "select count(*) from people where city = '🧵\u202e'",
    'select count(*) from "people" where "age" > 3 -- a comment',
    "select count(*) from people where age > 1 /* */ ; -- drop",
    "select count(*) from people where city = '' or 1 = 1; --'",
    "select count(*) from people where " + " and ".join(["age > 1"] * 600),
    "select count(*) from people where true",
    "select count(*) from people where null",
    "select count(*) from people where age",
    "select",
    "😀",
    "\x00",
    "'",
    "--",
]
"""May be answered or refused, but alike on all tables."""


def other_people() -> pa.Table:
    """As different as the schema allows: everybody is 0 years old, in one city, and works 60 h."""
    rows = table(2)
    same = pa.array([0] * len(rows))
    return rows.set_column(0, "age", same).set_column(
        2, "city", pa.array(["Delft"] * len(rows))
    ).set_column(4, "hours", pa.array([60] * len(rows)))  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Servers of two tables of one schema, and nothing else in common."""
    place = tmp_path_factory.mktemp("two")
    begun(place / "one", queries=1000)
    begin(place / "other", other_people(), schema=CODEBOOK, name="people", queries=1000, delta=1.0)
    return place / "one", place / "other"


@pytest.fixture(scope="module")
def both(folders: tuple[Path, Path]) -> Iterator[tuple[Served, Served]]:
    with served(folders[0]) as one, served(folders[1]) as other:
        yield one, other


class Spy:
    """Stands before the rows of all servers, and notes every look at them."""

    def __init__(self, servers: Sequence[Served], monkeypatch: pytest.MonkeyPatch) -> None:
        self.looked: list[str] = []
        for server in servers:
            monkeypatch.setattr(server.service, "_rows", Watched(server.service._rows, self.looked))


class Watched:
    def __init__(self, rows: Any, looked: list[str]) -> None:
        self._rows, self._looked = rows, looked

    def __getattr__(self, name: str) -> Any:
        self._looked.append(name)
        return getattr(self._rows, name)


@pytest.mark.parametrize("sql", FOREIGN, ids=range(len(FOREIGN)))
def test_sql_that_reaches_for_more_is_refused_without_a_look(
    both: tuple[Served, Served], sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = Spy(both, monkeypatch)
    used = [server.service.ledger.budgets("anna").everyone.used for server in both]
    began = time.perf_counter()
    answers = [server.query(sql) for server in both]
    assert time.perf_counter() - began < 5
    assert [answer.status for answer in answers] == [403, 403]
    assert answers[0].data == answers[1].data
    assert set(answers[0].data) == {"error", "hint"}
    assert spy.looked == []
    assert used == [server.service.ledger.budgets("anna").everyone.used for server in both]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_that_of_the_one_table(
    both: tuple[Served, Served], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for server in both:
        meant = server.query("select count(*) from people where age > 50").data
        spy = Spy([server], monkeypatch)
        found = server.query(f"select count(*) from {name} where age > 50").data
        assert (found["answer"], found["numbers"]) == (meant["answer"], meant["numbers"])
        assert found["charged"] == 0
        assert spy.looked == []


@pytest.mark.parametrize("name", CATALOGS)
def test_what_is_not_the_table_is_not_answered_as_the_table(
    both: tuple[Served, Served], name: str
) -> None:
    answers = [server.query(f"select count(*) from {name}") for server in both]
    assert [answer.status for answer in answers] == [403, 403]
    assert answers[0].data["error"].startswith("there is no table")
    assert answers[0].data["hint"].startswith("write from people, or")  # what it is called
    with pytest.raises(QueryError, match="there is no table"):  # of a release, too
        parse(f"select count(*) from {name}", both[0].service.setting.schema)


def test_there_are_enough_attempts() -> None:
    assert len({*FOREIGN, *TEMPTING, *NAMES, *CATALOGS}) >= 130


@pytest.mark.parametrize("sql", TEMPTING, ids=range(len(TEMPTING)))
@pytest.mark.parametrize("dry_run", [True, False])
def test_refusals_do_not_depend_on_the_rows(
    both: tuple[Served, Served], sql: str, dry_run: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = Spy(both, monkeypatch)
    one, other = (server.query(sql, dry_run=dry_run) for server in both)
    assert one.status == other.status
    assert one.status in (200, 403)
    if one.status == 403:
        assert one.data == other.data
    else:
        # What does not come from the noisy numbers is the same too: costs, groups, columns.
        assert shape(one.data) == shape(other.data)
    # Only what is charged is counted: repeated questions are answered from the ledger.
    charged = [found.data.get("charged", 0) for found in (one, other)]
    assert charged[0] == charged[1]
    assert bool(spy.looked) == (charged[0] > 0)


NUMBERS = ("remaining", "notes")
"""Notes of an answer say what was done to its noisy numbers."""


def shape(found: Any) -> Any:
    """An answer without its numbers."""
    if isinstance(found, dict):
        return {key: shape(value) for key, value in found.items() if key not in NUMBERS}
    if isinstance(found, list):
        return [shape(value) for value in found]
    return found if isinstance(found, str | bool) else None


def test_nothing_failed_while_rows_were_counted(both: tuple[Served, Served]) -> None:
    """The last line of defence, counting no row, was never needed."""
    for server in both:
        assert not [event for _, event in server.service.ledger.events() if event.what == "failed"]


@pytest.mark.parametrize(
    "subset",
    [
        "everyone", "ALL", "all; drop table rows", "' or 1=1 --", "half", {"half": "x" * 201},
        "age > 3", "\x00",
    ],
)  # fmt: skip
def test_subsets_that_are_not_there(both: tuple[Served, Served], subset: Any) -> None:
    one, other = (server.query("select count(*) from people", subset=subset) for server in both)
    assert one.status == other.status
    assert one.status in (400, 403)
    assert one.data == other.data


@pytest.mark.parametrize("seed", ["'; drop table rows; --", "\\", "%s", "\x00", "é" * 200, "0"])
def test_a_seed_is_only_ever_hashed(both: tuple[Served, Served], seed: str) -> None:
    found = both[0].query("select count(*) from people where age > 9", subset={"half": seed})
    assert found.status == 200
    assert both[0].query("select count(*) from people where age > 9").status == 200


# ---------------------------------------------------------------------- tokens


SLOW = Rate(1e-3, GUESSES.burst)
"""As many wrong tokens at once, and then so few that the test's own time does not matter."""


@pytest.fixture
def fresh(folders: tuple[Path, Path], tmp_path: Path) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(api, "GUESSES", SLOW)
        with served(Path(shutil.copytree(folders[0], tmp_path / "server"))) as made:
            yield made


def test_wrong_tokens_are_slowed_down_and_valid_ones_pass(fresh: Served) -> None:
    """Also beyond the rate of an address: who sends wrong tokens locks nobody else out."""
    public = fresh.analyst.partition(".")[0]
    answers = [
        fresh.request("GET", "/budget", token=f"{public}.guess{n}", address="10.9.9.9")
        for n in range(60)
    ]
    statuses = [answer.status for answer in answers]
    assert statuses == [401] * GUESSES.burst + [429] * (60 - GUESSES.burst)
    assert 900 < int(answers[-1].headers["retry-after"]) <= 1000
    for address in ("10.9.9.9", "10.9.9.8"):
        assert fresh.request("GET", "/budget", token=fresh.analyst, address=address).status == 200
    fresh.service.ledger.record("anna", [])  # what was noted before is on disk then
    logged = [event for _, event in fresh.service.ledger.events() if event.who == "10.9.9.9"]
    assert 0 < len(logged) <= GUESSES.burst


def test_wrong_tokens_are_all_answered_alike(fresh: Served) -> None:
    public = fresh.analyst.partition(".")[0]
    expired, _ = fresh.service.ledger.issue("bob", seconds=1e-6)
    gone, _ = fresh.service.ledger.issue("eve")
    fresh.service.ledger.revoke(analyst="eve")
    answers = [
        fresh.request("GET", "/budget", token=token, address=f"10.8.0.{n}")
        for n, token in enumerate(
            ["x", f"{public}.x", f"{'0' * 12}.x", expired, gone, fresh.analyst[:-1] + "~",
             fresh.analyst.upper(), "x" * 5000]
        )
    ]  # fmt: skip
    assert {answer.status for answer in answers} == {401}
    assert len({answer.body for answer in answers}) == 1
    assert len({json.dumps(dict(answer.headers)) for answer in answers}) == 1


def test_a_token_takes_as_long_whether_it_exists_or_not(fresh: Served) -> None:
    """Medians of 400 looks each, taken in turn, differ by less than a half.

    A guess that stopped at the first wrong byte, or skipped the hash, would be several times
    faster; other work on the machine falls on both alike.
    """
    identify = fresh.service.ledger.identify
    public = fresh.analyst.partition(".")[0]
    guesses = {"known id": f"{public}.{'A' * 43}", "no such id": f"{'f' * 12}.{'A' * 43}"}
    took: dict[str, list[float]] = {name: [] for name in guesses}
    for _ in range(400):
        for name, guess in guesses.items():
            began = time.perf_counter()
            identify(guess)
            took[name].append(time.perf_counter() - began)
    known, unknown = (statistics.median(times) for times in took.values())
    assert 0.67 < known / unknown < 1.5


def test_tokens_are_nowhere_in_the_folder(
    folders: tuple[Path, Path], both: tuple[Served, Served]
) -> None:
    for server, folder in zip(both, folders, strict=True):
        server.query("select count(*) from people where age > 77")
        for token in (server.analyst, server.admin):
            secret = token.partition(".")[2].encode()
            for file in folder.rglob("*"):
                if file.is_file():
                    assert secret not in file.read_bytes()
                    assert file.stat().st_mode & 0o077 == 0, file
