"""The one thread that writes: it commits together what many threads have asked for meanwhile."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from voile.errors import VoileError
from voile.serve.ledger.base import LedgerError
from voile.serve.ledger.store import Run

GROUP = 256
"""Jobs that one transaction takes."""
NOTES = 10_000
"""Lines of the log that may wait for the disk. Nobody waits for them; further ones are dropped."""

LATER = 0.1
"""Seconds that lines of the log wait for a job to be committed with."""

Job = Callable[[Run], Any]
Commit = Callable[[Sequence[Job]], list[Any]]
"""What became of each job, a VoileError if it was refused; all is on disk."""


class Writer:
    """Does jobs from any thread, in the order they come, one transaction for many."""

    def __init__(self, commit: Commit) -> None:
        self._commit = commit
        self._queue: deque[tuple[Job, Future[Any] | None]] = deque()
        self._notes = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="voile-ledger", daemon=True)
        self._thread.start()

    def do(self, job: Job) -> Any:
        """Wait until the job is done and on disk."""
        future: Future[Any] = Future()
        with self._changed:
            if self._closed:
                raise LedgerError("the server is stopping", hint="try again later")
            self._queue.append((job, future))
            self._changed.notify()
        return future.result()

    def do_soon(self, job: Job) -> None:
        """Do not wait for the job, and do not care whether it could be done."""
        with self._changed:
            if not self._closed and self._notes < NOTES:
                self._notes += 1
                self._queue.append((job, None))
                self._changed.notify()

    def close(self) -> None:
        """Take nothing more, write what is waiting, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while group := self._next():
            self._write(group)

    def _next(self) -> list[tuple[Job, Future[Any] | None]]:
        """Wait for jobs and take those that fit a transaction; none when all is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            self._changed.wait_for(self._is_urgent, timeout=LATER)
            group = [self._queue.popleft() for _ in range(min(GROUP, len(self._queue)))]
            self._notes -= sum(future is None for _, future in group)
            return group

    def _is_urgent(self) -> bool:
        """Whether somebody waits, not for lines of the log only."""
        return self._closed or self._notes < len(self._queue)

    def _write(self, group: list[tuple[Job, Future[Any] | None]]) -> None:
        try:
            outcomes = self._commit([job for job, _ in group])
        except Exception as error:  # whatever it is, who waits must hear of it
            outcomes = [error] * len(group)
        for (_, future), outcome in zip(group, outcomes, strict=True):
            if future is None:
                continue
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


def attempt(run: Run, job: Job, spoils: Callable[[Exception], bool]) -> Any:
    """What a job gives, or its refusal: then nothing of it stays, and the others go on.

    An error that `spoils` the whole transaction is for all of them.
    """
    run("SAVEPOINT job")
    try:
        outcome = job(run)
    except VoileError as error:
        run("ROLLBACK TO SAVEPOINT job")
        outcome = error
    except Exception as error:
        if spoils(error):
            raise
        run("ROLLBACK TO SAVEPOINT job")
        outcome = LedgerError(f"the ledger cannot take this: {error}", hint="ask in other words")
    run("RELEASE SAVEPOINT job")
    return outcome
