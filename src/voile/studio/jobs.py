"""Jobs: work that a page waits for, watches and may cancel, and that a reload does not lose."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from voile.errors import VoileError

State = Literal["running", "done", "failed", "cancelled"]
KEPT = 64
"""Jobs whose results are kept; the oldest goes first."""
AT_ONCE = 1.5
"""Seconds that a page waits for work that is mostly short."""
COUNTED = 50
"""Parts up to which they are counted; more are told in per cent."""
LAST_WORDS = 2000
"""Characters of what a process said before it failed."""


@dataclass(eq=False)
class Job:
    """One piece of work, and what came of it.

    What `Jobs` hands out is the job as it was at that moment: a page that decided by its state what
    to show must not find another state while it is drawn.
    """

    id: str
    task: str
    title: str
    state: State = "running"
    what: str = "starting"
    done: int = 0
    total: int = 0
    data: Any = None
    error: str = ""
    hint: str = ""
    changes: list[dict[str, Any]] = field(default_factory=list)
    """What would help, where a promise was refused as useless."""
    begun: float = field(default_factory=time.monotonic)
    ended: float | None = None
    process: subprocess.Popen[str] | None = None
    then: Callable[[Any], None] | None = None
    """Is called with its data before anyone sees that it is done."""
    live: Job | None = None
    """The job that goes on, where this one shows a moment of it."""

    def moment(self) -> Job:
        """The job as it is now: its state is written last, so that what belongs to it is there."""
        now = copy.copy(self)
        now.live = self
        return now

    def wait(self, seconds: float) -> Job:
        """Give short work the time to end, so that a page need not show how far it is."""
        live = self.live or self
        until = time.monotonic() + seconds
        while live.running and time.monotonic() < until:
            time.sleep(0.02)
        return live.moment()

    @property
    def running(self) -> bool:
        """Whether it is still at work."""
        return self.state == "running"

    @property
    def ok(self) -> bool:
        """Whether its data are there."""
        return self.state == "done"

    @property
    def per_cent(self) -> int | None:
        """How far it is; None where that is not known."""
        return min(100, 100 * self.done // self.total) if self.total > 1 else None

    @property
    def measure(self) -> str:
        """How far it is, in words: so many of a few parts, else per cent; empty where not known."""
        if self.per_cent is None:
            return ""
        if self.total <= COUNTED:
            return f"{min(self.done, self.total)} of {self.total}"
        return f"{self.per_cent} %"

    @property
    def seconds(self) -> int:
        """How long it has taken so far."""
        return int((self.ended or time.monotonic()) - self.begun)


class Jobs:
    """All jobs of a studio, each known by what it does: the same work is not done twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._spare: subprocess.Popen[str] | None = None
        self._closed = False
        self._watchers: dict[threading.Thread, Job] = {}

    def find(self, task: str, arguments: Mapping[str, Any]) -> Job | None:
        """The job that does this, or did it."""
        return self.get(identity(task, arguments))

    def get(self, id_: str) -> Job | None:
        """The job of this id."""
        job = self._jobs.get(id_)
        return None if job is None else job.moment()

    def start(
        self,
        task: str,
        arguments: Mapping[str, Any],
        *,
        title: str,
        secret: Mapping[str, Any] | None = None,
        again: bool = False,
        then: Callable[[Any], None] | None = None,
    ) -> Job:
        """Begin the work, unless it is done or under way; `again` does what failed once more.

        `secret` arguments go to the process and nowhere else. `then` is called with what it found,
        also where nobody looks any more.
        """
        key = identity(task, arguments)
        with self._lock:
            known = self._jobs.get(key)
            if known is not None and (known.running or not again):
                return known.moment()
            job = Job(key, task, title, then=then)
            self._jobs.pop(key, None)
            self._jobs[key] = job
            self._forget_oldest()
            job.process = process = self._take_process()
            asked = {"task": task, "arguments": {**arguments, **(secret or {})}}
            watcher = threading.Thread(target=watch, args=(job, process, asked), daemon=True)
            watcher.start()
            self._watchers = {t: j for t, j in self._watchers.items() if t.is_alive()}
            self._watchers[watcher] = job
        return job.moment()

    def cancel(self, id_: str) -> None:
        """End the work; what it had begun to write is removed or never opens."""
        job = self._jobs.get(id_)
        if job is not None and job.running and job.process is not None:
            job.state, job.ended = "cancelled", time.monotonic()
            job.process.terminate()

    def forget(self, id_: str) -> None:
        """Forget a job that has ended, so that the same work is begun anew."""
        with self._lock:
            job = self._jobs.get(id_)
            if job is not None and not job.running:
                del self._jobs[id_]

    def warm(self) -> None:
        """Have a process ready, so that the first job need not wait for imports."""
        with self._lock:
            if self._spare is None and not self._closed:
                self._spare = new_process()

    def close(self) -> None:
        """End every process."""
        with self._lock:
            self._closed = True
            spare, self._spare = self._spare, None
        if spare is not None:
            end(spare)
        for watcher, job in [*self._watchers.items()]:
            if job.process is not None:
                job.process.kill()
            watcher.join(timeout=5)

    def _take_process(self) -> subprocess.Popen[str]:
        process, self._spare = self._spare or new_process(), None
        if process.poll() is not None:
            end(process)
            process = new_process()
        if not self._closed:
            self._spare = new_process()
        return process

    def _forget_oldest(self) -> None:
        ended = [key for key, job in self._jobs.items() if not job.running]
        for key in ended[: max(0, len(self._jobs) - KEPT)]:
            del self._jobs[key]


def identity(task: str, arguments: Mapping[str, Any]) -> str:
    """The same for the same work."""
    text = json.dumps([task, arguments], sort_keys=True, default=str)
    return hashlib.sha256(SALT + text.encode()).hexdigest()[:32]


SALT = secrets.token_bytes(16)
"""So that the address of a job says nothing of its arguments."""


def new_process() -> subprocess.Popen[str]:
    """A process that waits for a task, with a folder of its own for what it writes on the way.

    What is tried on a private table must not outlive the process, however that ends.
    """
    folder = tempfile.mkdtemp(prefix="voile-studio-")
    return subprocess.Popen(  # noqa: S603  (our own program, and a folder that we made)
        [sys.executable, "-P", "-m", "voile.studio.work", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "TMPDIR": folder},
    )


def remove_folder(process: subprocess.Popen[str]) -> None:
    """Remove what a process that has ended left in its folder."""
    *_, folder = process.args  # type: ignore[misc]
    shutil.rmtree(str(folder), ignore_errors=True)


def watch(job: Job, process: subprocess.Popen[str], asked: Mapping[str, Any]) -> None:
    """Send a task to its process, and hear what it says until it ends."""
    assert process.stdin and process.stdout and process.stderr  # noqa: S101  (pipes were asked for)
    said: list[str] = []
    drain = threading.Thread(target=lambda: said.append(process.stderr.read()), daemon=True)  # type: ignore[union-attr]
    drain.start()
    heard = False
    try:
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            heard = hear(job, json.loads(line)) or heard
    except (OSError, ValueError):
        pass
    process.wait()
    remove_folder(process)
    drain.join(timeout=5)
    if not heard and job.running:
        job.error = "the work ended without an answer"
        job.hint = "".join(said)[-LAST_WORDS:].strip() or "try again; a smaller table may do"
        job.state = "failed"
    job.ended = job.ended or time.monotonic()
    close_pipes(process)


def close_pipes(process: subprocess.Popen[str]) -> None:
    """Let go of what a process that has ended was heard through."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):  # a task that it did not read
                pipe.close()


def end(process: subprocess.Popen[str]) -> None:
    """End a process that nobody watches."""
    process.kill()
    process.wait()
    remove_folder(process)
    close_pipes(process)


def hear(job: Job, line: Mapping[str, Any]) -> bool:
    """Take in one line; whether it was the last."""
    if not job.running:
        return False
    if "result" in line:
        job.data = line["result"]
        state: State = "done"
        try:
            if job.then is not None:
                job.then(job.data)
        except VoileError as error:
            job.error = f"it was done, and could not be noted: {error.message}"
            job.hint = error.hint
            state = "failed"
        job.state, job.ended = state, time.monotonic()
        return True
    if "error" in line:
        job.error, job.hint = line["error"], line.get("hint", "")
        job.changes, job.state, job.ended = line.get("changes", []), "failed", time.monotonic()
        return True
    job.what, job.done, job.total = line["what"], line["done"], line["total"]
    return False
