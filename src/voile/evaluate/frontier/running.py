"""Running the portfolio on all cores, and the certified frontier beside it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from voile.errors import PromiseError, UsageError
from voile.evaluate.frontier.measuring import measure
from voile.evaluate.frontier.mixture import Certified, CertifiedFrontier, LossBound, certify
from voile.evaluate.frontier.portfolio import Candidate, Point
from voile.evaluate.frontier.subject import Subject
from voile.progress import Progress

KEPT = "points.jsonl"
OTHER = "points of another table, or of other columns, hierarchies or support"
P_LOSSES = (0.0025, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.075, 0.1)
"""Where the frontier is certified; its lines bound it everywhere else."""


class Keeper(Protocol):
    """Where what is found is kept: a journal, or nowhere."""

    known: dict[str, Any]

    def keep(self, key: str, found: Any) -> None:
        """Keep what was found under its key."""


class StoppedError(Exception):
    """The run was interrupted, and so this thread ends."""


@dataclass(frozen=True)
class RefusedCandidate:
    """A candidate that no grouping can be: why."""

    method: str
    parameters: dict[str, Any]
    why: str


@dataclass(frozen=True)
class FrontierMeasurements:
    """The points, what was refused, and the certified frontier."""

    points: tuple[Point, ...]
    refused: tuple[RefusedCandidate, ...]
    certified: CertifiedFrontier


def run(
    subject: Subject,
    candidates: Sequence[Candidate],
    keeper: Keeper,
    progress: Progress,
    *,
    jobs: int | None = None,
    p_losses: Sequence[float] = P_LOSSES,
) -> FrontierMeasurements:
    """Measure what is not known yet. What is finished is kept, also if the run is interrupted."""
    number = check_jobs(jobs)
    stop = threading.Event()
    certifying = [p for p in p_losses if certified_key(p) not in keeper.known]
    measuring = [c for c in candidates if key_of(c) not in keeper.known]
    progress.start("measuring", len(p_losses) + len(candidates))
    progress.advance(len(p_losses) - len(certifying) + len(candidates) - len(measuring))

    def keep(key: str, found: Any) -> None:
        stopping(stop)
        keeper.keep(key, found)
        progress.advance(1)

    def keep_certified(found: Certified) -> None:
        keep(certified_key(found.p_loss), asdict(found))

    def measure_one(candidate: Candidate) -> None:
        keep(key_of(candidate), measured_or_refused(subject, candidate))

    certify_all = partial(certify, subject.populations, certifying, report=keep_certified)
    in_threads([certify_all, *(partial(measure_one, c) for c in measuring)], number, stop)
    return collected(subject, candidates, p_losses, keeper)


def check_jobs(jobs: int | None) -> int:
    """How many threads; as many as there are cores if nothing is said."""
    number = jobs if jobs is not None else os.cpu_count() or 1
    if number < 1:
        raise UsageError(f"jobs {number} is too few", hint="1 or more, or leave it out")
    return number


def in_threads(tasks: Sequence[Callable[[], object]], number: int, stop: threading.Event) -> None:
    """Do all tasks, so many at a time; `stop` is set when this ends.

    Whoever is interrupted, or hears of a task's error, does not wait for tasks that are under way:
    their threads do not keep the program from ending.
    """
    waiting: SimpleQueue[Callable[[], object]] = SimpleQueue()
    done: SimpleQueue[BaseException | None] = SimpleQueue()
    for task in tasks:
        waiting.put(task)

    def work() -> None:
        while not stop.is_set():
            try:
                task = waiting.get_nowait()
            except Empty:
                return
            try:
                task()
                done.put(None)
            except BaseException as error:
                stop.set()
                done.put(error)

    for _ in range(min(number, len(tasks))):
        threading.Thread(target=work, daemon=True).start()
    try:
        for _ in tasks:
            if (error := done.get()) is not None:
                raise error
    finally:
        stop.set()


def stopping(stop: threading.Event) -> None:
    """End this thread if the run was stopped."""
    if stop.is_set():
        raise StoppedError


def measured_or_refused(subject: Subject, candidate: Candidate) -> Any:
    """As JSON: points, or why there are none."""
    try:
        return [point.to_dict() for point in measure(subject, candidate)]
    except (PromiseError, UsageError) as error:
        return error.message  # such as an ℓ that is more than there are values


def collected(
    subject: Subject, candidates: Sequence[Candidate], p_losses: Sequence[float], keeper: Keeper
) -> FrontierMeasurements:
    """What was asked for, from all that is known."""
    points: list[Point] = []
    refused: list[RefusedCandidate] = []
    for candidate in candidates:
        found = keeper.known[key_of(candidate)]
        if isinstance(found, str):
            refused.append(RefusedCandidate(candidate.method, dict(candidate.asked), found))
        else:
            points += [Point(**entry) for entry in found]
    if not points:
        raise PromiseError(
            f"nothing that the grid asks for can be: {refused[0].why}", hint="ask for less"
        )
    lines = [keeper.known[certified_key(p)] for p in sorted(p_losses)]
    certified = [Certified(**{**line, "bound": LossBound(**line["bound"])}) for line in lines]
    trivial = CertifiedFrontier(tuple(certified), certify(subject.populations, []).trivial)
    return FrontierMeasurements(tuple(points), tuple(refused), trivial)


def key_of(candidate: Candidate) -> str:
    """What a candidate's points are kept under."""
    return json.dumps([candidate.method, candidate.options], sort_keys=True)


def certified_key(p_loss: float) -> str:
    """What a certified point is kept under."""
    return f"certified {p_loss!r}"
