"""What the tests of PostgreSQL's protocol share: servers in this process, and a client in bytes."""

from __future__ import annotations

import atexit
import socket
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from voile.dbapi.results import Field, ResultSet, nothing, rows_result
from voile.errors import QueryError
from voile.wire.admission import OpenGuard, WireGuard
from voile.wire.catalogue.answers import PostgresCatalogue
from voile.wire.server import WireOptions, WireServer, running

PEOPLE = (
    Field("age", pa.int64()), Field("sex", pa.string()), Field("hours", pa.float64()),
    Field("smoker", pa.bool_()), Field("born", pa.date32()), Field("seen", pa.timestamp("us")),
)  # fmt: skip
TABLES = {"people": PEOPLE}
CATALOGUE = PostgresCatalogue(TABLES)
"""Shared by all tests of a process: making one takes a third of a second."""
atexit.register(CATALOGUE.close)


@dataclass
class FakeSession:
    """Answers what a test says, in place of a release."""

    answers: dict[str, ResultSet] = field(default_factory=dict)
    asked: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    tables: Mapping[str, Sequence[Field]] = field(default_factory=lambda: dict(TABLES))
    closed: int = 0
    interrupted: int = 0

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> ResultSet:
        self.asked.append((sql, tuple(parameters)))
        if "slow" in sql:
            self.begun.set()
            assert self.gate.wait(30)
        if "nope" in sql:
            raise QueryError(
                "there is no column 'nope'\n  its text", hint="age", start=sql.index("nope")
            )
        if "broken" in sql:
            raise RuntimeError("a secret that nobody should read")
        if sql.upper().startswith(("SET", "RESET")):
            return nothing("SET", "noted")
        return self.answers.get(sql, COUNTED)

    def fields(
        self,
        sql: str,
        parameters: Sequence[Any] = (),  # noqa: ARG002
    ) -> tuple[Field, ...]:
        if "nope" in sql:
            raise QueryError("there is no column 'nope'", start=sql.index("nope"))
        return self.answers.get(sql, COUNTED).fields

    def interrupt(self) -> None:
        self.interrupted += 1

    def close(self) -> None:
        self.closed += 1


COUNTED = rows_result([Field("n", pa.float64())], [(12.5,)], "a notice")


def numbers(count: int) -> ResultSet:
    return rows_result([Field("i", pa.int64())], [(i,) for i in range(count)])


@contextmanager
def served(
    session: FakeSession | None = None, guard: WireGuard | None = None, **options: Any
) -> Iterator[WireServer]:
    """A server of a fake table, in a thread of this process."""
    found = session or FakeSession()
    notes: list[str] = []
    how = WireOptions(port=0, **options)
    server = WireServer(how, guard or OpenGuard(), lambda _: found, CATALOGUE, notes.append)
    with running(server):
        yield server
    found.gate.set()


# ---------------------------------------------------------------------- a client in bytes


def message(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return kind + struct.pack("!i", len(body) + 4) + body


def startup(**parameters: str) -> bytes:
    given = {"user": "anna", "database": "voile"} | parameters
    pairs = b"".join(f"{name}\0{value}\0".encode() for name, value in given.items()) + b"\0"
    return struct.pack("!ii", len(pairs) + 8, 196_608) + pairs


def parse(sql: str, name: str = "", types: Sequence[int] = ()) -> bytes:
    numbers_of = struct.pack(f"!h{len(types)}I", len(types), *types)
    return message(b"P", f"{name}\0{sql}\0".encode(), numbers_of)


def bind(
    values: Sequence[bytes | None] = (),
    portal: str = "",
    name: str = "",
    formats: Sequence[int] = (),
    results: Sequence[int] = (),
) -> bytes:
    sent = b"".join(
        struct.pack("!i", -1) if one is None else struct.pack("!i", len(one)) + one
        for one in values
    )
    head = struct.pack(f"!h{len(formats)}h", len(formats), *formats)
    tail = struct.pack(f"!h{len(results)}h", len(results), *results)
    return message(b"B", f"{portal}\0{name}\0".encode(), head, struct.pack("!h", len(values)), sent,
                   tail)  # fmt: skip


def describe(kind: str, name: str = "") -> bytes:
    return message(b"D", f"{kind}{name}\0".encode())


def execute(most: int = 0, portal: str = "") -> bytes:
    return message(b"E", f"{portal}\0".encode(), struct.pack("!i", most))


SYNC, FLUSH, TERMINATE = message(b"S"), message(b"H"), message(b"X")


def query(sql: str) -> bytes:
    return message(b"Q", f"{sql}\0".encode())


class ByteClient:
    """A connection whose messages a test writes itself."""

    def __init__(self, port: int, *, start: bool = True) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.key = b""
        if start:
            self.send(startup())
            self.until_ready()

    def __enter__(self) -> ByteClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, *parts: bytes) -> None:
        self.socket.sendall(b"".join(parts))

    def exactly(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            more = self.socket.recv(count - len(found))
            if not more:
                raise EOFError
            found += more
        return found

    def read(self) -> tuple[str, bytes]:
        kind = self.exactly(1)
        (size,) = struct.unpack("!i", self.exactly(4))
        body = self.exactly(size - 4)
        if kind == b"K":
            self.key = body
        return kind.decode(), body

    def until_ready(self) -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = []
        while not found or found[-1][0] != "Z":
            found.append(self.read())
        return found

    def ask(self, *parts: bytes) -> list[tuple[str, bytes]]:
        """What comes back until the server is ready."""
        self.send(*parts)
        return self.until_ready()

    def ended(self) -> bool:
        """Whether the server closes the connection, having said something or not."""
        try:
            while self.socket.recv(4096):
                pass
        except (ConnectionError, TimeoutError):
            return not isinstance(self.socket, TimeoutError)
        return True


def kinds(found: Sequence[tuple[str, bytes]]) -> str:
    """The letters of messages."""
    return "".join(kind for kind, _ in found)


def said(body: bytes) -> dict[str, str]:
    """The fields of an error or a notice."""
    parts = body.rstrip(b"\0").split(b"\0")
    return {part[:1].decode(): part[1:].decode() for part in parts}


def error_of(found: Sequence[tuple[str, bytes]]) -> dict[str, str]:
    """The first error among messages."""
    return next(said(body) for kind, body in found if kind == "E")


def rows_of(found: Sequence[tuple[str, bytes]]) -> list[list[bytes | None]]:
    """The rows among messages."""
    rows = []
    for kind, body in found:
        if kind != "D":
            continue
        (count,), at = struct.unpack("!h", body[:2]), 2
        row: list[bytes | None] = []
        for _ in range(count):
            (size,) = struct.unpack("!i", body[at : at + 4])
            at += 4
            row.append(None if size < 0 else body[at : at + size])
            at += max(size, 0)
        rows.append(row)
    return rows
