"""A process that tries questions on the public domain, and is killed where one takes too much.

It has the public side of a server and nothing else: no rows, no ledger, no tokens, and none of the
server's environment. `voile.serve.workers` starts it, with the number of a socket as argument.
"""

from __future__ import annotations

import gc
import io
import json
import os
import pickle
import re
import socket
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from voile.errors import QueryError, UsageError, VoileError
from voile.query.predicate import Atom, Expression
from voile.query.quoting import quote_identifier
from voile.serve.question import Question, QuestionReader
from voile.serve.setting import Setting
from voile.system import here as system

LENGTH = struct.Struct(">Q")
"""Before each message: its length."""
CPU_SECONDS, SECONDS = 3.0, 6.0
"""Of the processor and of the clock: a worker that takes more for one question is killed."""
MEMORY = 2**30
"""Bytes that a question may need beyond what a worker has anyway."""
OUT_OF_MEMORY = re.compile(
    "out of memory|bad_alloc|could not allocate|failed to allocate", re.IGNORECASE
)
"""What DuckDB says where it has no more memory."""
LARGEST = 2**26
"""Bytes of a question as it was read: all its tables together."""


@dataclass(frozen=True)
class TooMuch:
    """What a worker says of a question that needs too much memory, before it ends."""


@dataclass(frozen=True)
class Refused:
    """An error as it is sent back; `usage` says that the request itself was wrong."""

    message: str
    hint: str
    usage: bool

    def error(self) -> VoileError:
        """The error that it was."""
        return (UsageError if self.usage else QueryError)(self.message, hint=self.hint)


@dataclass(frozen=True)
class Failed:
    """A fault of ours; its type only, for the message could quote the question."""

    kind: str


Reply = Question | Refused | Failed | TooMuch


def send(connection: socket.socket, message: bytes) -> None:
    """Send one message."""
    connection.sendall(LENGTH.pack(len(message)))
    connection.sendall(message)


def receive(connection: socket.socket) -> bytes | None:
    """Wait for one message; None where the other side is gone."""
    head = receive_exactly(connection, LENGTH.size)
    return None if head is None else receive_exactly(connection, LENGTH.unpack(head)[0])


def receive_exactly(connection: socket.socket, size: int) -> bytes | None:
    """So many bytes; None where the other side is gone."""
    found = bytearray()
    while len(found) < size:
        part = connection.recv(min(size - len(found), 2**20))
        if not part:
            return None
        found += part
    return bytes(found)


def reply_to(reader: QuestionReader, sql: str, subset: Any) -> Reply:
    """The question as it was read, or why not."""
    try:
        return reader.read(sql, subset).without_expected()
    except Exception as error:
        if is_out_of_memory(error):
            return TooMuch()
        if isinstance(error, VoileError):
            return Refused(error.message, error.hint, isinstance(error, UsageError))
        return Failed(type(error).__name__)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, says that there is no more memory."""
    while error is not None:
        if isinstance(error, MemoryError) or OUT_OF_MEMORY.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


class ReplyWriter(pickle.Pickler):
    """Writes replies; of an expression how it is written, and not its tree."""

    def reducer_override(self, found: Any) -> Any:
        """How an expression is made again: see `bare`."""
        if isinstance(found, Expression):
            own = (found.canonical, found.attributes, found.text, found.start)
            return bare, (isinstance(found, Atom), *own)
        return NotImplemented


def bare(
    atom: bool, canonical: str, attributes: tuple[str, ...], text: str, start: int | None
) -> Expression:
    """An expression as it is written, for whoever has no use for its tree."""
    kind = Atom if atom else Expression
    return kind.from_canonical(canonical, attributes, text, start)


def encoded(reply: Reply) -> bytes:
    """The reply in bytes; refused if it would be too many."""
    written = io.BytesIO()
    try:
        ReplyWriter(written, protocol=5).dump(reply)
    except MemoryError:
        return pickle.dumps(TooMuch())
    if written.tell() <= LARGEST:
        return written.getvalue()
    return pickle.dumps(
        Refused(
            "the question depends on too many combinations of values",
            "ask about fewer columns at once, or for fewer totals in one question",
            usage=False,
        )
    )


def warm_up(setting: Setting) -> list[str]:
    """Questions that load what is loaded once, and reserve what is reserved once."""
    columns = [quote_identifier(name) for name in setting.schema.names]
    asked = [f"{name} is not null" for name in columns]
    return ["select count(*) from people", *(f"select count(*) from people where {one}" for one in
            (asked[0], " or ".join(asked[:2])))]  # fmt: skip


def spare_collections() -> None:
    """Keep objects that live until the end out of garbage collections, which delay answers."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def work(connection: socket.socket) -> None:
    """Try questions until the server is gone."""
    first = receive(connection)
    if first is None:
        return
    reader = QuestionReader(Setting.from_dict(json.loads(first)), time.process_time)
    for sql in warm_up(reader.setting):
        reader.read(sql)
    system.limit_memory(MEMORY)
    spare_collections()
    system.arm_alarms()
    send(connection, b"ready")
    while (message := receive(connection)) is not None:
        system.set_alarms(CPU_SECONDS, SECONDS)
        reply = reply_to(reader, *json.loads(message))
        send(connection, encoded(reply))
        system.set_alarms(0, 0)
        if isinstance(reply, TooMuch):
            return


def main() -> None:
    """Work for the server at the other end of the socket."""
    with system.inherited_socket(sys.argv[1]) as connection, suppress(OSError):
        work(connection)
    os._exit(0)  # nothing is left to be tidied up
