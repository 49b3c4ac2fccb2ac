"""The protocol, message by message."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from tests.support.wire import (
    CATALOGUE,
    FLUSH,
    SYNC,
    TERMINATE,
    ByteClient,
    FakeSession,
    bind,
    describe,
    error_of,
    execute,
    kinds,
    message,
    numbers,
    parse,
    query,
    rows_of,
    served,
    startup,
)
from voile.dbapi.results import Field, rows_result
from voile.dbapi.session import SqlSession, SqlSource
from voile.errors import QueryError
from voile.wire.conversation import Conversation, WireCaller
from voile.wire.messages import WireError
from voile.wire.statements import statements_of


def test_a_client_is_greeted_with_what_it_must_know() -> None:
    with served() as server, ByteClient(server.port, start=False) as client:
        found = client.ask(startup(application_name="tests", client_encoding="'utf-8'"))
    settings = dict(body[:-1].split(b"\0") for kind, body in found if kind == "S")
    assert settings[b"server_version"].startswith(b"15")
    assert settings[b"client_encoding"] == b"UTF8"
    assert settings[b"application_name"] == b"tests"
    assert settings[b"standard_conforming_strings"] == b"on"
    assert kinds(found).startswith("R")
    assert kinds(found).endswith("KZ")


def test_simple_queries() -> None:
    with served() as server, ByteClient(server.port) as client:
        found = client.ask(query("select count(*) as n from people"))
        assert kinds(found) == "NTDCZ"
        assert rows_of(found) == [[b"12.5"]]
        assert found[3] == ("C", b"SELECT 1\0")
        assert found[-1] == ("Z", b"I")
        assert kinds(client.ask(query(" ; "))) == "IZ"
        several = client.ask(query("begin; select 1 as a; commit"))
        assert kinds(several) == "CTDCCZ"


def test_an_error_says_state_place_and_hint_and_ends_the_text() -> None:
    with served() as server, ByteClient(server.port) as client:
        found = client.ask(query("select 1; select nope from people; select 2"))
        assert kinds(found) == "TDCEZ"
        wrong = error_of(found)
        assert wrong["C"] == "42703"
        assert wrong["P"] == str("select 1; select nope".index("nope") + 1)
        assert wrong["H"] == "age"
        assert "\n" not in wrong["M"]


def test_a_fault_of_ours_is_told_without_its_words() -> None:
    notes: list[str] = []
    with served() as server, ByteClient(server.port) as client:
        server.note = notes.append
        wrong = error_of(client.ask(query("select broken from people")))
        assert wrong["C"] == "XX000"
        assert "secret" not in str(wrong)
        assert client.ask(query("select 1"))[-1] == ("Z", b"I")
    assert "secret" in notes[0]


def test_a_failed_transaction_answers_nothing_until_it_ends() -> None:
    with served() as server, ByteClient(server.port) as client:
        assert client.ask(query("begin"))[-1] == ("Z", b"T")
        assert client.ask(query("savepoint a"))[-1] == ("Z", b"T")
        assert client.ask(query("select nope from people"))[-1] == ("Z", b"E")
        assert error_of(client.ask(query("select 1")))["C"] == "25P02"
        assert client.ask(query("rollback to savepoint a"))[-1] == ("Z", b"T")
        assert client.ask(query("select nope from people"))[-1] == ("Z", b"E")
        ended = client.ask(query("commit"))
        assert ended == [("C", b"ROLLBACK\0"), ("Z", b"I")]


def test_extended_queries_in_bytes() -> None:
    session = FakeSession()
    sql = "select age, sex, hours, smoker, born from people where age > $1 and sex = $2"
    row = (41, "Female", 37.5, True, __import__("datetime").date(1990, 5, 17))
    fields = [Field(n, t) for n, t in zip(
        ("age", "sex", "hours", "smoker", "born"),
        (pa.int64(), pa.string(), pa.float64(), pa.bool_(), pa.date32()), strict=True,
    )]  # fmt: skip
    session.answers[sql] = rows_result(fields, [row])
    with served(session) as server, ByteClient(server.port) as client:
        values = [struct.pack("!q", 40), b"Female"]
        found = client.ask(
            parse(sql), describe("S"), bind(values, formats=[1, 0], results=[1]), execute(), SYNC
        )
    assert kinds(found) == "1tT2DCZ"
    assert found[1][1] == struct.pack("!hII", 2, 20, 25), "types are those of the columns"
    assert session.asked == [(sql, (40, "Female"))]
    assert rows_of(found) == [[
        struct.pack("!q", 41), b"Female", struct.pack("!d", 37.5), b"\1", struct.pack("!i", -3516),
    ]]  # fmt: skip


def test_errors_are_skipped_until_sync() -> None:
    session = FakeSession()
    with served(session) as server, ByteClient(server.port) as client:
        found = client.ask(
            parse("select nope from people"), bind(), execute(), parse("select 1"), bind(),
            execute(), SYNC,
        )  # fmt: skip
        assert kinds(found) == "12EZ"
        assert kinds(client.ask(parse("select 1"), bind(), execute(), SYNC)) == "12DCZ"


def test_portals_are_suspended_and_go_on() -> None:
    session = FakeSession()
    session.answers["select i from people"] = numbers(5)
    with served(session) as server, ByteClient(server.port) as client:
        client.ask(query("begin"))
        first = client.ask(parse("select i from people", "s"), bind((), "p", "s"),
                           execute(2, "p"), SYNC)  # fmt: skip
        assert kinds(first) == "12DDsZ"
        assert kinds(client.ask(execute(2, "p"), SYNC)) == "DDsZ"
        last = client.ask(execute(2, "p"), SYNC)
        assert kinds(last) == "DCZ"
        client.ask(query("commit"))
        assert error_of(client.ask(execute(2, "p"), SYNC))["C"] == "34000", "it ends with it"
        assert [sql for sql, _ in session.asked] == ["BEGIN", "select i from people", "COMMIT"]


def test_statements_and_portals_are_closed_and_bounded() -> None:
    with served() as server, ByteClient(server.port) as client:
        client.ask(parse("select 1", "a"), SYNC)
        assert error_of(client.ask(parse("select 1", "a"), SYNC))["C"] == "42P05"
        assert kinds(client.ask(message(b"C", b"Sa\0"), parse("select 1", "a"), SYNC)) == "31Z"
        found = client.ask(*(parse("select 1", f"s{i}") for i in range(600)), SYNC)
        assert kinds(found) == "1" * 499 + "EZ"
        assert error_of(found)["C"] == "53400"


def test_statements_are_forgotten_in_sql_too() -> None:
    """Drivers that keep a hundred statements forget the oldest so; pools forget all of them."""
    with served() as server, ByteClient(server.port) as client:

        def prepared(name: str) -> bool:
            found = client.ask(describe("S", name), SYNC)
            assert "E" not in kinds(found) or error_of(found)["C"] == "26000"
            return "E" not in kinds(found)

        client.ask(*(parse("select 1", name) for name in ("_pg3_0", "Kept", "last")), SYNC)
        assert kinds(client.ask(query('deallocate "_pg3_0"'))) == "CZ"
        assert [prepared(name) for name in ("_pg3_0", "Kept", "last")] == [False, True, True]
        assert error_of(client.ask(query("deallocate kept")))["C"] == "26000", "as it is spelled"
        client.ask(parse("deallocate prepare last"), bind(), execute(), SYNC)
        assert not prepared("last")
        assert error_of(client.ask(query("deallocate")))["C"] == "42601"
        client.ask(query("discard plans"))
        assert prepared("Kept")
        for forgets in ("discard all", "DEALLOCATE ALL"):
            client.ask(query(forgets))
            assert not prepared("Kept"), forgets
            assert "E" not in kinds(client.ask(parse("select 1", "Kept"), SYNC))


def test_what_cannot_be_described_or_bound() -> None:
    with served() as server, ByteClient(server.port) as client:
        for wrong, state in (
            (describe("S", "none"), "26000"),
            (describe("P", "none"), "34000"),
            (execute(0, "none"), "34000"),
            (bind((), "", "none"), "26000"),
            (parse("select 1; select 2"), "42601"),
            (parse("select 1") + bind([b"1"]), "08P01"),
            (parse("select $1::int") + bind([b"x"]), "22P02"),
            (parse("select $1::int") + bind([b"123"], formats=[1]), "22P03"),
            (parse("select 'unclosed"), "42601"),
            (parse("copy people from stdin") + bind() + execute(), "0A000"),
            (parse("delete from people") + bind() + execute(), "25006"),
            (parse("frobnicate") + bind() + execute(), "42601"),
        ):
            assert error_of(client.ask(wrong, SYNC))["C"] == state


def test_messages_that_need_no_answer() -> None:
    with served() as server, ByteClient(server.port) as client:
        assert kinds(client.ask(FLUSH, message(b"d", b"data"), message(b"c"), SYNC)) == "Z"
        assert kinds(client.ask(message(b"F", b"\0\0\0\0"))) == "EZ"
        client.send(TERMINATE)
        assert client.ended()


def test_settings() -> None:
    session = FakeSession()
    with served(session) as server, ByteClient(server.port) as client:
        changed = client.ask(query("set application_name to 'me'"))
        assert kinds(changed) == "SCZ"
        assert rows_of(client.ask(query("show application_name"))) == [[b"me"]]
        assert rows_of(client.ask(query("select current_setting('application_name')"))) == [[b"me"]]
        assert kinds(client.ask(query("set voile.charge = on"))) == "NCZ"
        assert session.asked == [("set voile.charge = on", ())]
        for wrong, state in (
            ("set client_encoding = 'LATIN1'", "22023"), ("set server_version = '9'", "55P02"),
            ("set datestyle = 'German'", "22023"), ("show nothing_like_it", "42704"),
            ("set statement_timeout = 'soon'", "22023"), ("set", "42601"),
        ):  # fmt: skip
            assert error_of(client.ask(query(wrong)))["C"] == state, wrong


def test_no_reset_of_a_pool_leaves_a_connection_able_to_spend() -> None:
    session = SqlSession(SqlSource({}))
    talk = Conversation(session, CATALOGUE, WireCaller("anna", "voile"))

    def said(sql: str) -> bool:
        for one in statements_of(sql):
            talk.run(one)
        return session.settings.charge

    for reset in ("discard all", "reset all", "RESET\nALL", "reset voile.charge"):
        assert said("set application_name = 'me'; set voile.charge = on"), reset
        assert not said(reset), reset
        assert ((talk.settings.get("application_name") or "") == "") is ("voile" not in reset)
    assert not said("begin; set voile.charge = on; rollback")
    assert said("begin; set voile.charge = on; commit")
    assert said("discard plans")
    said("discard all")
    with pytest.raises(QueryError, match="holds for a session"):
        said("begin; set local voile.charge = on")
    talk.failed()
    assert not said("commit") and talk.status == "I"
    with pytest.raises(WireError, match="not followed by a setting"):
        said("reset /* nothing */ all_of_it")


def test_cursors_in_sql() -> None:
    session = FakeSession()
    session.answers["select i from people"] = numbers(5)
    with served(session) as server, ByteClient(server.port) as client:
        client.ask(query("begin"))
        client.ask(query('declare "c" no scroll cursor with hold for select i from people'))
        assert len(rows_of(client.ask(query('fetch forward 3 from "c"')))) == 3
        assert rows_of(client.ask(query("fetch all in c"))) == [[b"3"], [b"4"]]
        assert client.ask(query("fetch c"))[-2] == ("C", b"FETCH 0\0")
        assert kinds(client.ask(describe("P", "c"), SYNC)) == "TZ", "a cursor is a portal"
        assert client.ask(query("close c"))[0] == ("C", b"CLOSE CURSOR\0")
        assert error_of(client.ask(query("fetch c")))["C"] == "34000"


def test_results_of_many_rows_are_whole_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    session = FakeSession()
    session.answers["select i from people"] = numbers(2345)
    with served(session) as server, ByteClient(server.port) as client:
        found = rows_of(client.ask(query("select i from people")))
        assert found == [[str(i).encode()] for i in range(2345)]
        monkeypatch.setattr("voile.wire.conversation.MOST_ROWS", 2344)
        assert error_of(client.ask(query("select i from people")))["C"] == "54000"


def test_a_statement_is_cancelled_by_whoever_knows_its_key() -> None:
    session = FakeSession()
    with served(session) as server, ByteClient(server.port) as client:
        with ByteClient(server.port) as own:
            client.send(query("select slow from people"))
            assert session.begun.wait(20)
            wrong = client.key[:4] + bytes(4)
            for key in (wrong, own.key, client.key):
                with ByteClient(server.port, start=False) as other:
                    other.send(struct.pack("!ii", 16, 80_877_102) + key)
                    assert other.ended()
        found = client.until_ready()
        assert error_of(found)["C"] == "57014"
        assert session.interrupted == 1, "nobody waits for its thread"
        session.gate.set()
        assert rows_of(client.ask(query("select 1"))) == [[b"1"]]


def test_a_statement_has_its_time_and_others_go_on() -> None:
    session = FakeSession()
    with served(session, seconds=30.0) as server, ByteClient(server.port) as client:
        client.ask(query("set statement_timeout = 20"))
        client.send(query("select slow from people"))
        with ByteClient(server.port) as other:
            assert rows_of(other.ask(query("select 2"))) == [[b"2"]]
        assert error_of(client.until_ready())["C"] == "57014"
        assert session.interrupted == 1
        session.gate.set()
