"""The one thread that writes: it commits together what many requests have handed in meanwhile."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future

from voile.client import Submission
from voile.collect.store import Added, Store
from voile.web.limits import RefusalError, unavailable

GROUP = 20_000
"""Rows that one transaction takes, or one submission if that has more."""
WAITING = 200_000
"""Rows that may wait for the disk. More are refused, so that memory stays bounded."""

Waiting = tuple[Submission, Future[Added]]


class Writer:
    """Takes submissions from any thread; each has a future that is done when all is on disk."""

    def __init__(self, store: Store, *, group: int = GROUP, waiting: int = WAITING) -> None:
        self.store = store
        self._group = group
        self._most = waiting
        self._queue: deque[Waiting] = deque()
        self._rows = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="voile-writer", daemon=True)
        self._thread.start()

    def add(self, submission: Submission) -> Future[Added]:
        """Queue a submission, or refuse it when the disk is too far behind."""
        future: Future[Added] = Future()
        with self._changed:
            if self._closed:
                raise unavailable("the collector is stopping", hint="try again", retry_after=10)
            if self._queue and self._rows + len(submission.ids) > self._most:
                raise unavailable("too many rows are waiting", hint="try again", retry_after=1)
            self._queue.append((submission, future))
            self._rows += len(submission.ids)
            self._changed.notify()
        return future

    def close(self) -> None:
        """Take nothing more, write what is waiting, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while group := self._next():
            wanted = [item for item in group if item[1].set_running_or_notify_cancel()]
            if wanted:
                self._write(wanted)

    def _next(self) -> list[Waiting]:
        """Wait for submissions and take those that fit a transaction; none when all is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            group: list[Waiting] = []
            rows = 0
            while self._queue and (not group or rows + len(self._queue[0][0].ids) <= self._group):
                group.append(self._queue.popleft())
                rows += len(group[-1][0].ids)
            self._rows -= rows
            return group

    def _write(self, group: list[Waiting]) -> None:
        try:
            outcomes = self.store.add([submission for submission, _ in group])
        except Exception as error:  # whatever it is, who waits must hear of it
            for _, future in group:
                future.set_exception(error)
            return
        for (_, future), outcome in zip(group, outcomes, strict=True):
            if isinstance(outcome, RefusalError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
