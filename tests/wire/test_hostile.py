"""Bytes of anybody's: what is not the protocol, what never ends, and too much of everything."""

from __future__ import annotations

import random
import socket
import struct

import pytest

from tests.support.soak import rounds
from tests.support.wire import (
    SYNC,
    ByteClient,
    bind,
    describe,
    error_of,
    execute,
    kinds,
    message,
    parse,
    query,
    rows_of,
    said,
    served,
    startup,
)
from voile.errors import VoileError
from voile.wire import messages

TLS, GSS = (struct.pack("!ii", 8, code) for code in (80_877_103, 80_877_104))
NO_STARTUP = {
    "http": b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
    "tls without asking": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "negative length": struct.pack("!ii", -1, 196_608),
    "shorter than itself": struct.pack("!ii", 7, 196_608),
    "longer than allowed": struct.pack("!ii", 4097, 196_608) + bytes(4089),
    "for ever the same question": TLS * 50,
    "cancel of the wrong size": struct.pack("!ii", 12, 80_877_102) + bytes(4),
    "cancel of nobody": struct.pack("!ii", 16, 80_877_102) + bytes(8),
}
REFUSED = {
    "version 2": struct.pack("!ii", 9, 131_072) + b"\0",
    "no user": struct.pack("!ii", 9, 196_608) + b"\0",
    "no end": struct.pack("!ii", 12, 196_608) + b"user",
    "no value": struct.pack("!ii", 13, 196_608) + b"user\0",
    "twice": struct.pack("!ii", 8 + 15, 196_608) + b"user\0a\0user\0a\0\0",
    "more after the end": struct.pack("!ii", 8 + 10, 196_608) + b"user\0a\0\0\0\0",
    "not UTF-8": struct.pack("!ii", 8 + 9, 196_608) + b"user\0\xff\xff\0\0",
    "replication": startup(replication="database"),
    "another encoding": startup(client_encoding="LATIN1"),
}


@pytest.mark.parametrize("sent", NO_STARTUP.values(), ids=NO_STARTUP)
def test_what_begins_no_connection_ends_it(sent: bytes) -> None:
    with served() as server, ByteClient(server.port, start=False) as client:
        client.send(sent)
        assert client.ended()
        with ByteClient(server.port) as other:
            assert rows_of(other.ask(query("select 1"))) == [[b"1"]]


@pytest.mark.parametrize("sent", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_at_the_beginning_is_told_why(sent: bytes) -> None:
    with served() as server, ByteClient(server.port, start=False) as client:
        client.send(sent)
        kind, body = client.read()
        assert kind == "E"
        assert said(body)["S"] == "FATAL"
        assert client.ended()


def test_encryption_is_refused_in_words_where_there_is_none() -> None:
    with served() as server, ByteClient(server.port, start=False) as client:
        client.send(GSS)
        assert client.exactly(1) == b"N"
        client.send(TLS)
        assert client.exactly(1) == b"N"
        assert kinds(client.ask(startup())).endswith("Z")


def test_options_of_later_protocols_are_negotiated_away() -> None:
    sent = startup(**{"_pq_.command_tag_format": "no"})
    newer = sent[:4] + struct.pack("!i", 196_610) + sent[8:]
    with served() as server, ByteClient(server.port, start=False) as client:
        found = client.ask(newer)
        assert found[0][0] == "v"
        assert struct.unpack("!ii", found[0][1][:8]) == (0, 1)


@pytest.mark.parametrize(
    "sent",
    [
        b"Q" + struct.pack("!i", 3),
        b"Q" + struct.pack("!i", 2**20 + 5),
        b"Q" + struct.pack("!i", -5),
        b"?" + struct.pack("!i", 4),
        message(b"Q", b"no end"),
        message(b"P", b"\0select 1\0", struct.pack("!h", 1001)),
        message(b"P", b"\0select 1\0", struct.pack("!h", -1)),
        message(b"B", b"\0\0", struct.pack("!hh", 0, 1), struct.pack("!i", 2**30)),
        message(b"B", b"\0\0", struct.pack("!hh", 1, 2)),
        message(b"D", b"X\0"),
        message(b"S", b"more"),
    ],
)
def test_messages_that_are_none_end_the_connection_with_a_word(sent: bytes) -> None:
    with served() as server, ByteClient(server.port) as client:
        client.send(sent)
        kind, body = client.read()
        assert (kind, said(body)["C"]) == ("E", "08P01")
        assert client.ended()


def test_texts_that_are_not_utf8_fail_alone() -> None:
    with served() as server, ByteClient(server.port) as client:
        assert error_of(client.ask(message(b"Q", b"select '\xff'\0")))["C"] == "22021"
        found = client.ask(message(b"P", b"\0select '\xff'\0\0\0"), bind(), SYNC)
        assert kinds(found) == "EZ"
        assert rows_of(client.ask(query("select 1"))) == [[b"1"]]


def test_half_open_connections_cost_nobody_else_anything() -> None:
    """500 that say nothing, a byte, or half a packet: who has something to say still gets in."""
    idle = []
    with served(admission_seconds=60.0) as server:
        try:
            for number in range(500):
                one = socket.create_connection(("127.0.0.1", server.port), timeout=20)
                one.sendall(startup()[: number % 3 * 7])
                idle.append(one)
                if number % 100 == 99:
                    with ByteClient(server.port) as client:
                        assert rows_of(client.ask(query("select 1"))) == [[b"1"]]
            assert len(server._clients) <= server.options.each
        finally:
            for one in idle:
                one.close()


def test_half_open_connections_end_when_their_time_is_up() -> None:
    with served(admission_seconds=0.05) as server:
        for sent in (b"", startup()[:9], TLS):
            with ByteClient(server.port, start=False) as client:
                client.send(sent)
                assert client.ended()


def test_clients_that_are_let_in_stay_and_others_are_turned_away() -> None:
    with served(connections=2) as server, ByteClient(server.port) as one, ByteClient(server.port):
        with ByteClient(server.port, start=False) as late:
            kind, body = late.read()
            assert (kind, said(body)["C"]) == ("E", "53300")
        assert rows_of(one.ask(query("select 1"))) == [[b"1"]]


def test_a_client_that_reads_nothing_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voile.wire.connection.SENDING_SECONDS", 0.2)
    with served() as server, ByteClient(server.port) as deaf:
        deaf.send(
            query("select repeat('x', 1000) from pg_class a, pg_class b, pg_class c limit 100000")
        )
        with ByteClient(server.port) as other:
            assert rows_of(other.ask(query("select 1"))) == [[b"1"]]


# ---------------------------------------------------------------------- fuzz


SEEDS = [
    query("select 1; select count(*) from people"), parse("select $1::int", "a", [23]), SYNC,
    bind([b"12", None], "p", "a", [0, 1], [1]), describe("S", "a"), execute(3, "p"),
    message(b"C", b"Pp\0"), message(b"F", bytes(9)), message(b"p", b"SCRAM-SHA-256\0\0\0\0\5n,,n="),
]  # fmt: skip


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The bytes with some changed, left out, repeated or put in."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(found) + 1)
        match chance.randrange(4):
            case 0:
                found[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del found[at : at + chance.randint(1, 6)]
            case 2:
                found[at:at] = found[at : at + chance.randint(1, 9)]
            case _:
                found[at:at] = struct.pack("!i", chance.choice([-1, 0, 2**31 - 1, 65_536]))
    return bytes(found)


def test_readers_of_messages_refuse_and_never_fail() -> None:
    chance = random.Random(1)  # noqa: S311
    for _ in range(rounds(4_000, 400_000)):
        body = mutated(chance.choice(SEEDS), chance)
        try:
            messages.read_message(body[:1], body[5:])
            messages.Startup.read(196_608, body[1:])
        except VoileError:
            pass


def test_connections_survive_or_end_whatever_comes() -> None:
    chance = random.Random(2)  # noqa: S311
    faults: list[str] = []
    with served() as server:
        server.note = faults.append
        for _ in range(rounds(60, 5_000)):
            with ByteClient(server.port) as client:
                sent = b"".join(
                    mutated(one, chance) if chance.random() < 0.4 else one
                    for one in chance.choices(SEEDS, k=chance.randint(1, 8))
                )
                try:
                    client.send(sent)
                    client.socket.shutdown(socket.SHUT_WR)
                    assert client.ended()
                except ConnectionError:
                    pass
        with ByteClient(server.port) as client:
            assert rows_of(client.ask(query("select 1"))) == [[b"1"]]
    assert faults == []
