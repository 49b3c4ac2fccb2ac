"""Who makes answers: this process, or several that share the ledger with it.

The server itself takes requests, knows tokens and rates, and has questions read. What is then done
to answer one is here: find what was answered before, hold a part of the budget, count, add noise,
have it written, and reply once it is on disk. `AnswererProcesses` hands that to processes of their
own. All limits stay where requests come in; an analyst's questions go to two of the processes, so
that of one analyst two answers are made at a time, however many processes there are.

Each process charges by itself, in the one ledger: what may be charged is decided there, inside a
transaction. A process that is killed has told nothing that is not on disk; who waited for it is
told to ask again, and what was charged by then is free.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pickle
import socket
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol

from voile.errors import UsageError, VoileError, spelled
from voile.serve.api import Api, BegunAnswer
from voile.serve.ledger.base import LedgerError, RolledBackError, WouldWaitError
from voile.serve.opened import opened
from voile.serve.question import Question
from voile.serve.shapes import KnownQuestions
from voile.serve.wire import QuestionBody
from voile.serve.worker import LARGEST, encoded, receive, send, spare_collections
from voile.serve.workers import START, unpickled
from voile.system import here as system
from voile.web.limits import Rate, RefusalError, Turns, WorkPool, unavailable
from voile.web.requests import ending

FEW = 50
"""Rows of an answer that is written where requests are read: it takes less than to hand it over."""
THREADS, EACH, WAITING = 8, 2, 504
"""Answers at work in one process, of all and of one analyst, and in line for it."""
TOGETHER, OF_ONE = 256, 128
"""Questions that processes have at a time, of all and of one analyst; most wait for the disk."""
PROCESSES = 2
"""How many make the answers of one analyst."""
MOST = 64
"""Processes of one server."""
HEAD = struct.Struct(">QQ")
"""Before each message: its length, and which question it is about."""
RUN = "from voile.serve.answerers import main; main()"
END = 2.0
"""Seconds to end."""
NO_RATE = Rate(1e9, 10**9)
"""Rates are looked after where requests come in."""


class AnswerMaker(Protocol):
    """Makes answers."""

    async def answer(
        self, who: str, asked: QuestionBody, question: Question | None = None
    ) -> bytes | None:
        """The answer as JSON, once it is on disk; None if the question must be read first."""


class LocalAnswerer:
    """Makes answers in this process."""

    def __init__(
        self, api: Api, pool: WorkPool, known: Callable[[str, Any], Question | None]
    ) -> None:
        """`known` gives questions that can be read at once."""
        self._api, self._pool, self._known = api, pool, known

    async def answer(
        self, who: str, asked: QuestionBody, question: Question | None = None
    ) -> bytes | None:
        """The answer as JSON, once it is on disk; None if the question must be read first."""
        if question is None:
            subset = asked.rows()
            try:
                question = self._known(asked.sql, subset)
            except VoileError as error:
                self._api.refuse(who, error, asked)
            if question is None:
                return None
        begun = await self._begun(who, asked, question)
        if begun.recorded is not None:
            with suppress(Exception):  # `finish` says what it was
                await asyncio.shield(asyncio.wrap_future(begun.recorded))
        if begun.rows <= FEW:
            return in_json(begun.finish())
        return await self._pool.run(lambda: in_json(begun.finish()), who)

    async def _begun(self, who: str, asked: QuestionBody, question: Question) -> BegunAnswer:
        """Short ones on this thread, the others in a line."""
        with suppress(WouldWaitError), self._api.at_once():
            return self._api.begin(who, asked, question, at_once=True)
        return await self._pool.run(partial(self._api.begin, who, asked, question), who)


def in_json(data: Mapping[str, Any]) -> bytes:
    """The data as JSON."""
    return json.dumps(data, allow_nan=False).encode()


# ---------------------------------------------------------------------- several processes


class GoneError(Exception):
    """The process ended before it answered."""


class AnswererProcess:
    """One process that makes answers, and the socket to it."""

    def __init__(self, folder: Path) -> None:
        self._own, other = socket.socketpair()
        with other:
            path = os.pathsep.join(filter(None, sys.path))
            self.process = system.start_with_socket(
                [sys.executable, "-P", "-c", RUN, str(folder)],
                other,
                os.environ | {"PYTHONPATH": path},
            )
        self._connecting = asyncio.Lock()
        self._writer: asyncio.StreamWriter | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._reading: asyncio.Task[None] | None = None
        self.gone = False

    def __len__(self) -> int:
        return len(self._waiting)

    def wait_until_ready(self) -> None:
        """Wait until it has read the table and opened the ledger."""
        self._own.settimeout(START)
        try:
            said = receive(self._own)
        except OSError:
            said = None
        if said != b"ready":
            self.close()
            why = said.decode() if said else "it ended"
            raise UsageError(
                f"a process that makes answers does not start: {why}",
                hint="see whether voile serve run works with --workers 1",
            )
        self._own.setblocking(False)

    async def ask(self, message: Any) -> Any:
        """What it replies; a GoneError if it ended."""
        writer = await self._connected()
        if self.gone:
            raise GoneError
        self._number += 1
        number = self._number
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()
        content = pickle.dumps(message, protocol=5)
        writer.write(HEAD.pack(len(content), number) + content)
        try:
            return await reply
        finally:
            self._waiting.pop(number, None)

    async def _connected(self) -> asyncio.StreamWriter:
        """The socket as a stream of the loop that runs; made once, whoever asks first."""
        async with self._connecting:
            if self._writer is None:
                reader, self._writer = await asyncio.open_connection(sock=self._own)
                self._reading = asyncio.create_task(self._read(reader))
            return self._writer

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                length, number = HEAD.unpack(await reader.readexactly(HEAD.size))
                reply = pickle.loads(await reader.readexactly(length))  # noqa: S301  (our own)
                waiting = self._waiting.get(number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
        except (OSError, asyncio.IncompleteReadError):
            pass  # it ended
        finally:
            self.gone = True
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(GoneError())

    def hang_up(self) -> None:
        """Let it end: it writes what it has begun."""
        with suppress(OSError):
            self._own.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End it, soon."""
        self.hang_up()
        try:
            self.process.wait(END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._own.close()


class AnswererProcesses:
    """Makes answers in several processes; for coroutines of one loop."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        self._turns = Turns(TOGETHER, WAITING, each=OF_ONE)
        self._closed = False
        self._lock = threading.Lock()
        self.all = [AnswererProcess(folder) for _ in range(workers)]
        try:
            for one in self.all:
                one.wait_until_ready()
        except UsageError:
            self.close()
            raise

    async def answer(
        self, who: str, asked: QuestionBody, question: Question | None = None
    ) -> bytes | None:
        """The answer as JSON, once it is on disk; None if the question must be read first."""
        read = None if question is None else encoded(question)
        if read is not None and len(read) > LARGEST:
            read = None
        await self._turns.take(who)
        try:
            found = await self._of(who).ask((who, asked, read))
        except GoneError:
            self._replace_ended()
            raise ending("the server") if self._closed else lost() from None
        finally:
            self._turns.give(who)
        return made_of(found)

    def _of(self, who: str) -> AnswererProcess:
        """The process with less to do, of those that answer this analyst."""
        first, count = zlib.crc32(who.encode("utf-8", "surrogatepass")), len(self.all)
        own = [self.all[(first + i) % count] for i in range(min(PROCESSES, count))]
        there = [one for one in own if not one.gone]
        if not there:
            self._replace_ended()
            raise lost()
        return min(there, key=len)

    def _replace_ended(self) -> None:
        """Start another process for each that ended, not on this thread."""
        threading.Thread(target=self._replace, daemon=True).start()

    def _replace(self) -> None:
        with self._lock:
            for place, one in enumerate(self.all):
                if one.gone and not self._closed:
                    with suppress(UsageError, OSError):
                        other = AnswererProcess(self._folder)
                        other.wait_until_ready()
                        self.all[place] = other
                        one.close()

    def close(self) -> None:
        """End all processes; what they have begun is written."""
        self._closed = True
        for one in self.all:
            one.hang_up()
        for one in self.all:
            one.close()


def told(error: Exception) -> tuple[Any, ...]:
    """An error as plain data; of one that is no refusal its type alone, for it may quote."""
    match error:
        case RefusalError():
            return "refused", error.message, error.hint, int(error.status), error.retry_after
        case LedgerError():
            return "ledger", error.message, error.hint, error.lasting
        case RolledBackError():
            return "rolled back", error.message, error.hint
        case UsageError():
            return "usage", error.message, error.hint
        case _:
            return "failed", type(error).__name__


def made_of(reply: tuple[Any, ...]) -> bytes | None:
    """What a process made; raises what it was refused for."""
    match reply:
        case ("made", made):
            return None if made is None else bytes(made)
        case ("refused", message, hint, status, retry_after):
            raise RefusalError(HTTPStatus(status), message, hint=hint, retry_after=retry_after)
        case ("ledger", message, hint, lasting):
            raise LedgerError(message, hint=hint, lasting=lasting)
        case ("rolled back", message, hint):
            raise RolledBackError(message, hint=hint)
        case ("usage", message, hint):
            raise UsageError(message, hint=hint)
        case _:
            raise RuntimeError(*reply[1:])


def lost() -> RefusalError:
    """The refusal of a question whose process ended."""
    return unavailable(
        "the process that was to answer ended",
        hint="ask again: an answer that was charged is free",
        retry_after=1,
    )


# ---------------------------------------------------------------------- in such a process


class AnswerLoop:
    """Answers what the server hands over, until that is gone."""

    def __init__(self, answerer: LocalAnswerer, known: KnownQuestions) -> None:
        self._answerer, self._known = answerer, known
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, connection: socket.socket) -> None:
        """Take questions; at the end finish those that were begun."""
        connection.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=connection)
        with suppress(OSError, asyncio.IncompleteReadError, EOFError):
            while True:
                length, number = HEAD.unpack(await reader.readexactly(HEAD.size))
                message = pickle.loads(await reader.readexactly(length))  # noqa: S301  (our own)
                task = asyncio.create_task(self._reply(writer, number, *message))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _reply(
        self,
        writer: asyncio.StreamWriter,
        number: int,
        who: str,
        asked: QuestionBody,
        read: bytes | None,
    ) -> None:
        try:
            found: tuple[Any, ...] = ("made", await self._answered(who, asked, read))
        except Exception as error:
            found = told(error)
        content = pickle.dumps(found, protocol=5)
        with suppress(OSError, RuntimeError):
            writer.write(HEAD.pack(len(content), number) + content)
            await writer.drain()

    async def _answered(self, who: str, asked: QuestionBody, read: bytes | None) -> bytes | None:
        if read is None:
            return await self._answerer.answer(who, asked)
        question = unpickled(read)  # what an analyst wrote had a part in it
        self._known.keep(asked.sql, question, len(read))
        return await self._answerer.answer(who, asked, question)


def work(connection: socket.socket, folder: Path) -> None:
    """Make answers about the table of a folder, beside other processes."""
    try:
        with suppress(BrokenPipeError), opened(folder, "beside") as service:
            pool, known = WorkPool(THREADS, WAITING, each=EACH), KnownQuestions(service.setting)
            answerer = LocalAnswerer(Api(service, NO_RATE), pool, known.known)
            spare_collections()
            send(connection, b"ready")
            asyncio.run(AnswerLoop(answerer, known).run(connection))
            pool.close()
            gc.unfreeze()
    except VoileError as error:
        with suppress(OSError):
            send(connection, error.message.encode())


def main() -> None:
    """Work for the server at the other end of the socket."""
    with system.inherited_socket(sys.argv[2]) as connection:
        work(connection, Path(sys.argv[1]))


def check_workers(workers: int) -> None:
    """Refuse numbers of processes that make no sense."""
    if not 1 <= workers <= MOST:
        raise UsageError(
            f"{spelled('workers', workers)} is no number of processes",
            hint=f"1 to {MOST}; as many as there are cores",
        )
