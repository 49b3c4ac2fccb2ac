"""Run the pieces of all figures in processes, and keep results so that a run can resume."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from voile.errors import UsageError, spelled
from voile.evaluate.frontier.running import check_jobs
from voile.journal import Journal, OtherJournalError
from voile.progress import Progress, Silent
from voile.reproduce.figure import Figure, Part, Run
from voile.reproduce.verdict import Reproduction
from voile.reproduce.writing import as_json, check_folder, write_finding, write_gallery

KEPT = ".parts.jsonl"


def reproduce(
    figures: Sequence[Figure],
    folder: str | Path,
    *,
    run: Run | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Reproduction]:
    """Make the figures' data, pictures and verdicts in `folder`, and a page that shows them all.

    Pieces of work run in processes, one a core unless `jobs` says how many. Their results are kept
    in the folder: a run that was interrupted goes on, and the same run again is done at once.
    """
    place, wanted, number = Path(folder), run or Run(), check_jobs(jobs)
    check_folder(place)
    with journal(place) as kept, workers(number) as pool:
        one = ReproductionRun(figures, wanted, place, kept, progress or Silent())
        done = one.all(pool, number)
    write_gallery(place)
    return done


class ReproductionRun:
    """One run of `reproduce`: which work waits, and which results are there."""

    def __init__(
        self,
        figures: Sequence[Figure],
        run: Run,
        folder: Path,
        kept: Journal,
        progress: Progress,
    ) -> None:
        self.figures, self.run, self.folder = figures, run, folder
        self.kept, self.progress = kept, progress
        self.parts = {figure.name: list(figure.parts(run)) for figure in figures}
        self.waiting: deque[Part | Figure] = deque()
        self.done: dict[str, Reproduction] = {}

    def all(self, pool: ProcessPoolExecutor, jobs: int) -> list[Reproduction]:
        """Do all the work that is not kept, and return the results in the order of the figures."""
        pieces = {part.key: part for parts in self.parts.values() for part in parts}
        self.progress.start("reproducing", len(pieces) + len(self.figures))
        self.waiting.extend(part for key, part in pieces.items() if key not in self.kept.known)
        self.progress.advance(len(pieces) - len(self.waiting))
        self.conclude()
        awaited: dict[Future[Any], Part | Figure] = {}
        while self.waiting or awaited:
            # One more than there are processes, so that none waits, and what is ready goes first.
            while self.waiting and len(awaited) <= jobs:
                task = self.waiting.popleft()
                awaited[self.send(task, pool)] = task
            ready, _ = wait(awaited, return_when=FIRST_COMPLETED)
            for future in ready:
                task = awaited.pop(future)
                self.take(task, outcome(future, task))
        return [self.done[figure.name] for figure in self.figures]

    def send(self, task: Part | Figure, pool: ProcessPoolExecutor) -> Future[Any]:
        """Give a task to the pool."""
        if isinstance(task, Part):
            return pool.submit(task.work, **task.given)
        results = [self.kept.known[part.key] for part in self.parts.pop(task.name)]
        return pool.submit(finish, task, self.run, results, self.folder)

    def take(self, task: Part | Figure, result: Any) -> None:
        """Keep the result of a task, and see which figures are now ready."""
        self.progress.advance(1)
        if isinstance(task, Figure):
            self.done[task.name] = result
        else:
            # As it will be read again: a run that goes on must not see other types than this one.
            self.kept.keep(task.key, json.loads(as_json(result, task.key)))
            self.conclude()

    def conclude(self) -> None:
        """Put figures whose pieces are all done first in the queue."""
        for figure in self.figures:
            parts = self.parts.get(figure.name)
            if parts is None or figure in self.waiting:
                continue
            if all(part.key in self.kept.known for part in parts):
                self.waiting.appendleft(figure)


def outcome(future: Future[Any], task: Part | Figure) -> Any:
    """The result of a task; an error names the task."""
    try:
        return future.result()
    except BrokenProcessPool:
        raise UsageError(
            "a worker process ended unexpectedly; most likely memory ran out",
            hint=f"run it again, with {spelled('jobs', 1)}: what was done is kept. A script "
            "calls `reproduce` "
            "under `if __name__ == '__main__':`, since its processes import it",
        ) from None
    except Exception as error:
        error.add_note(f"in {task.name if isinstance(task, Figure) else task.key}")
        raise


def finish(figure: Figure, run: Run, results: Sequence[Any], folder: Path) -> Reproduction:
    """Conclude a figure and write its files; runs in a worker process."""
    return write_finding(figure, figure.conclude(run, results), run, folder)


@contextmanager
def workers(number: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with this one, also when it is interrupted."""
    others = set(multiprocessing.active_children())  # whoever calls this may have some
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(number, mp_context=context, initializer=begin_work)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    pool.shutdown()


def begin_work() -> None:
    """Use one thread, as each core has a process, and leave interrupts to the parent."""
    import numba  # noqa: PLC0415  (only in workers)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    numba.set_num_threads(1)


@contextmanager
def journal(folder: Path) -> Iterator[Journal]:
    """Results that were kept; dropped if another version of Voile made them."""
    digest = program()
    try:
        opened = Journal(folder / KEPT, digest).__enter__()
    except OtherJournalError:
        opened = Journal(folder / KEPT, digest, overwrite=True).__enter__()
    try:
        yield opened
    finally:
        opened.__exit__(None, None, None)


def program() -> str:
    """A digest of Voile's own source."""
    root = Path(__file__).parent.parent
    whole = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        whole.update(file.read_bytes())
    return whole.hexdigest()
