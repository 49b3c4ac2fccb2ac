"""Questions tried in processes that can be killed, each analyst's in a line of its own.

Reading a question may take any time and memory: that is what SQL can do. So a server does not read
it itself. A few processes do, which hold the public domain alone (see `voile.serve.worker`); one
that reaches its limit is killed, the question is refused, and another takes its place. Analysts
take turns: who has a hundred questions waiting waits for those, and nobody else does.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import json
import os
import pickle
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Protocol, cast

from voile.errors import QueryError, UsageError
from voile.serve.question import LONGEST, Question, selected
from voile.serve.setting import Setting
from voile.serve.shapes import KnownQuestions, declared_name
from voile.serve.worker import LENGTH, SECONDS, Failed, Refused, TooMuch, bare, receive, send
from voile.system import here as system
from voile.web.limits import Rate, RateLimiter, RefusalError, Turns, too_often, unavailable
from voile.web.requests import ending

WORKERS = 2
"""Questions that are tried at a time, of different analysts; one more process stands by."""
WAITING = 512
"""Questions that wait for a worker."""
SLOW = 0.5
"""Seconds after which a worker gives way to others."""
STOPPED = Rate(0.1, 5)
"""Questions of one analyst that fail or end a worker: each further one has to wait."""
PASSED_ON = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR",
             "SYSTEMROOT", "TEMP", "TMP", "VIRTUAL_ENV", "TZ")  # fmt: skip
"""What a worker gets of the environment: others may be secrets."""
RUN = "from voile.serve.worker import main; main()"
START = 60.0
"""Seconds to start."""


class QuestionTrial(Protocol):
    """Where questions are read."""

    async def read(self, who: str, sql: str, subset: Any) -> Question:
        """The question, or a refusal that does not depend on the rows."""

    def known(self, sql: str, subset: Any) -> Question | None:
        """The question, if it can be read at once and without SQL; from any thread."""


class WorkerGoneError(Exception):
    """The worker ended before it answered."""


class Worker:
    """One process, and the socket to it."""

    def __init__(self, setting: Setting) -> None:
        own, other = socket.socketpair()
        with other:
            environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
            # Arrow's own pool reserves more at once than a question may take.
            environment["ARROW_DEFAULT_MEMORY_POOL"] = "system"
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
            command = [sys.executable, "-P", "-c", RUN]
            self._process = system.start_with_socket(command, other, environment)
        self._own = own
        send(own, json.dumps(setting.to_public()).encode())
        self.slow = False

    def wait_until_ready(self) -> None:
        """Wait for what is loaded once."""
        self._own.settimeout(START)
        try:
            ready = receive(self._own) is not None
        except OSError:
            ready = False
        if not ready:
            self.close()
            raise UsageError(
                "the process that tries questions does not start",
                hint=f"see whether {sys.executable} can import voile.serve.worker",
            )
        self._own.setblocking(False)

    async def ask(self, message: bytes) -> bytes:
        """The reply to a message."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._own, LENGTH.pack(len(message)) + message)
        (length,) = LENGTH.unpack(await self._exactly(LENGTH.size))
        return bytes(await self._exactly(length))

    async def _exactly(self, size: int) -> bytearray:
        loop, found = asyncio.get_running_loop(), bytearray(size)
        view, place = memoryview(found), 0
        while place < size:
            count = await loop.sock_recv_into(self._own, view[place:])
            if not count:
                raise WorkerGoneError
            place += count
        return found

    def give_way(self) -> None:
        """Let others have the processor first: this question is a long one."""
        self.slow = True
        system.let_go_first(self._process)

    def kill(self) -> None:
        """End it, whatever it does; whoever waits for its answer sees that it is gone."""
        with suppress(OSError):
            self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End it, where nobody waits for its answer."""
        self.kill()
        self._own.close()


class QuestionWorkers:
    """Reads questions in worker processes; for coroutines of one loop."""

    def __init__(self, setting: Setting, workers: int = WORKERS) -> None:
        self._setting = setting
        self._turns = Turns(workers, WAITING, each=1)
        self._stopped = RateLimiter(STOPPED)
        self._questions = KnownQuestions(setting)
        self._closed = False
        self._lock = threading.Lock()
        """Of what threads that start workers share with the loop."""
        self._all: set[Worker] = set()
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._wanting: list[asyncio.Future[Worker]] = []
        started = [self._begin() for _ in range(workers + 1)]
        try:
            for worker in started:
                worker.wait_until_ready()
        except UsageError:
            self.close()
            raise
        self._idle += started

    async def read(self, who: str, sql: str, subset: Any) -> Question:
        """The question, or a refusal that does not depend on the rows."""
        if len(sql) > LONGEST:
            raise QueryError(
                f"the question has {len(sql):,} characters", hint=f"at most {LONGEST:,}"
            )
        if (found := self.known(sql, subset)) is not None:
            return found
        rows = selected(self._setting, subset)
        await self._turns.take(who)
        try:
            if (found := self.known(sql, subset)) is not None:  # one like it was read meanwhile
                return found
            self._check_stopped(who)
            question, size = await self._tried(who, sql, declared_name(rows))
        finally:
            self._turns.give(who)
        self._questions.keep(sql, question, size)
        return question.about(rows)

    def known(self, sql: str, subset: Any) -> Question | None:
        """The question, if it or one like it was read before."""
        return self._questions.known(sql, subset)

    def _check_stopped(self, who: str) -> None:
        """Refuse whose questions were stopped again and again."""
        if seconds := self._stopped.wait(who, take=False):
            raise too_often("that failed or were stopped at their limit", seconds)

    def close(self) -> None:
        """Kill all workers; who still waits is refused."""
        with self._lock:
            self._closed = True
            ended = list(self._all)
            self._all.clear()
        for worker in ended:
            worker.kill()
            if worker not in self._busy:
                worker.close()
        self._idle.clear()
        for future in self._wanting:
            if not future.done():
                future.set_exception(stopping())

    # ------------------------------------------------------------------ one question

    async def _tried(self, who: str, sql: str, declared: str | None) -> tuple[Question, int]:
        worker = await self._worker()
        self._busy.add(worker)
        done, reply = False, None
        try:
            found = await self._answered(worker, json.dumps([sql, declared or "all"]).encode())
            reply = unpickled(found)
            done = not isinstance(reply, TooMuch)
        except Exception:  # too late, gone, or what it sends is no reply
            if self._closed:
                raise stopping() from None
            self._stopped.wait(who)
            raise too_much() from None
        finally:
            self._give_back(worker, whole=done)
        if isinstance(reply, Refused):
            raise reply.error()
        if isinstance(reply, TooMuch | Failed):
            self._stopped.wait(who)
            raise too_much() if isinstance(reply, TooMuch) else faulty(reply.kind)
        return cast(Question, reply), len(found)

    async def _answered(self, worker: Worker, message: bytes) -> bytes:
        slow = asyncio.get_running_loop().call_later(SLOW, worker.give_way)
        try:
            async with asyncio.timeout(SECONDS):
                return await worker.ask(message)
        finally:
            slow.cancel()

    # ------------------------------------------------------------------ workers

    def _begin(self) -> Worker:
        with self._lock:
            if self._closed:
                raise stopping()
            worker = Worker(self._setting)
            self._all.add(worker)
            return worker

    async def _worker(self) -> Worker:
        """A worker that has nothing to do."""
        if self._closed:
            raise stopping()
        if self._idle:
            return self._idle.pop()
        future: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        self._wanting.append(future)
        return await future

    def _give_back(self, worker: Worker, *, whole: bool) -> None:
        """Let the worker go on with the next question, or end it and start another."""
        self._busy.discard(worker)
        if whole and not worker.slow:
            self._offer(worker)
            return
        with self._lock:
            known = worker in self._all
            self._all.discard(worker)
        worker.close()
        if known:
            # Not on this thread: nobody else should wait for what it loads.
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._replace, args=[loop], daemon=True).start()

    def _replace(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(UsageError, OSError, RuntimeError, RefusalError):
            worker = self._begin()
            worker.wait_until_ready()
            loop.call_soon_threadsafe(self._offer, worker)

    def _offer(self, worker: Worker) -> None:
        while self._wanting:
            future = self._wanting.pop(0)
            if not future.done():
                future.set_result(worker)
                return
        self._idle.append(worker)


def too_much() -> QueryError:
    """The refusal of a question that ended a worker."""
    return QueryError(
        "the question takes too much time or memory on the public domain, and was stopped",
        hint="ask with simpler expressions, or about fewer columns in one condition",
    )


def faulty(kind: str) -> RefusalError:
    """The refusal of a question that made an error of ours, of this type."""
    return unavailable(
        f"the server failed on this question ({kind})",
        hint="ask it in other words, and report it to the server's steward",
        retry_after=60,
    )


def stopping() -> RefusalError:
    """The refusal of all questions when a server stops."""
    return ending("the server")


# ---------------------------------------------------------------------- what a worker sends


TRUSTED = "voile."
PLAIN: dict[tuple[str, str], Any] = {
    (kind.__module__, kind.__name__): kind
    for kind in (date, datetime, time, timedelta, Decimal, set, frozenset, bytearray)
}
NUMPY = frozenset({"_reconstruct", "_frombuffer", "scalar", "dtype", "ndarray"})


class ReplyReader(pickle.Unpickler):
    """Reads what a worker sends: data, and no function but those that make arrays.

    A worker has computed what an analyst wrote. Whatever that did to it, it reaches no further.
    """

    def find_class(self, module: str, name: str) -> Any:
        """A class of data by its name."""
        return data_class(module, name)


@lru_cache(maxsize=1024)
def data_class(module: str, name: str) -> Any:
    """The class, if it is one of data."""
    if (module, name) in PLAIN:
        return PLAIN[module, name]
    if module.startswith(TRUSTED):
        found = getattr(importlib.import_module(module), name, None)
        if found is bare or (is_dataclass(found) and isinstance(found, type)):
            return found
    elif module.startswith("numpy") and name in NUMPY:
        return getattr(importlib.import_module(module), name)
    raise pickle.UnpicklingError(f"{module}.{name} is no data")


def unpickled(message: bytes) -> Any:
    """What a worker sent."""
    return ReplyReader(io.BytesIO(message)).load()
