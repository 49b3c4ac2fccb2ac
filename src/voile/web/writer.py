"""The one thread that writes: it commits together what many threads have handed in meanwhile."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from voile.errors import VoileError

Job = TypeVar("Job")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class WriterLimits:
    """How much a writer takes; each job has a weight, 1 unless it is said otherwise."""

    group: int
    """Weight that one commit takes, or one job if that has more."""
    waiting: int | None = None
    """Weight that may wait for the disk. More is refused, so that memory stays bounded."""
    soon: int = 0
    """Jobs that nobody waits for. Further ones are dropped."""
    later: float = 0.0
    """Seconds that such jobs wait for others to be committed with."""


class GroupWriter(Generic[Job, Outcome]):
    """Takes jobs from any thread, in the order they come, and commits many of them at once.

    `commit` gives the outcome of each job, an exception if it was refused; all is on disk then.
    `refusal` makes the error for a job that comes after closing (true), or when too much waits.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Job]], Sequence[Outcome | Exception]],
        limits: WriterLimits,
        *,
        name: str,
        refusal: Callable[[bool], VoileError],
        weigh: Callable[[Job], int] = lambda _: 1,
    ) -> None:
        self._commit, self._limits, self._refusal, self._weigh = commit, limits, refusal, weigh
        self._queue: deque[tuple[Job, Future[Outcome] | None]] = deque()
        self._weight = 0
        self._soon = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def add(self, job: Job) -> Future[Outcome]:
        """Queue a job; the future is done when all of it is on disk."""
        future: Future[Outcome] = Future()
        with self._changed:
            if self._closed or self._is_full(job):
                raise self._refusal(self._closed)
            self._put(job, future)
        return future

    def add_soon(self, job: Job) -> None:
        """Queue a job that nobody waits for, unless too many of them wait already."""
        with self._changed:
            if not self._closed and self._soon < self._limits.soon:
                self._soon += 1
                self._put(job, None)

    def close(self) -> None:
        """Take nothing more, write what is waiting, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _is_full(self, job: Job) -> bool:
        most = self._limits.waiting
        return most is not None and bool(self._queue) and self._weight + self._weigh(job) > most

    def _put(self, job: Job, future: Future[Outcome] | None) -> None:
        self._queue.append((job, future))
        self._weight += self._weigh(job)
        self._changed.notify()

    def _run(self) -> None:
        while group := self._next():
            wanted = [(job, future) for job, future in group if is_wanted(future)]
            if wanted:
                self._write(wanted)

    def _next(self) -> list[tuple[Job, Future[Outcome] | None]]:
        """Wait for jobs and take those that fit a commit; none when all is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            self._changed.wait_for(self._is_urgent, timeout=self._limits.later)
            group: list[tuple[Job, Future[Outcome] | None]] = []
            weight = 0
            while self._queue and (not group or weight + self._next_weight() <= self._limits.group):
                weight += self._next_weight()
                group.append(self._queue.popleft())
            self._weight -= weight
            self._soon -= sum(future is None for _, future in group)
            return group

    def _next_weight(self) -> int:
        return self._weigh(self._queue[0][0])

    def _is_urgent(self) -> bool:
        """Whether somebody waits for one of the jobs."""
        return self._closed or self._soon < len(self._queue)

    def _write(self, group: list[tuple[Job, Future[Outcome] | None]]) -> None:
        outcomes: Sequence[Outcome | Exception]
        try:
            outcomes = self._commit([job for job, _ in group])
        except Exception as error:  # whatever it is, the callers that wait must get it
            outcomes = [error] * len(group)
        for (_, future), outcome in zip(group, outcomes, strict=True):
            if future is None:
                continue
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


def is_wanted(future: Future[Outcome] | None) -> bool:
    """Whether a job is still to be done: its caller may have cancelled it."""
    return future is None or future.set_running_or_notify_cancel()
