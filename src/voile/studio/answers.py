"""Questions to releases, each release in a process of its own.

Whatever a question takes, the studio goes on: the process is ended, and another takes its place.
The process opens the release and nothing else; lines of JSON go in and out.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal

from voile.errors import UsageError, VoileError

State = Literal["running", "done", "failed", "cancelled"]
KEPT = 200
"""Answers that are remembered of one release."""
OPENED = 4
"""Answers that a process keeps as they are, to write them as files."""
WAITING = 100
"""Questions in line."""
PLAIN_LINES = 4
"""Of what is promised in plain words; README.md has all."""
SECONDS = 900.0
"""For a question of a person, who can cancel it."""
BAR_SECONDS = 40.0
"""For the bars of a column, which nobody asked for by hand."""


@dataclass(eq=False)
class Asked:
    """One question to a release, and what came of it."""

    request: Mapping[str, Any]
    limit: float
    state: State = "running"
    data: Any = None
    error: str = ""
    hint: str = ""
    start: int | None = None
    """Where in the SQL the error is."""
    lasting: bool = True
    """Whether the same question would come to the same again."""
    begun: float = field(default_factory=time.monotonic)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def running(self) -> bool:
        """Whether it is in line or at work."""
        return self.state == "running"

    @property
    def ok(self) -> bool:
        """Whether its data are there."""
        return self.state == "done"

    @property
    def seconds(self) -> int:
        """How long it takes already."""
        return int(time.monotonic() - self.begun)

    def wait(self, seconds: float) -> Asked:
        """Itself, when it has ended or the time is over."""
        self.over.wait(seconds)
        return self

    def result(self, seconds: float) -> Any:
        """Its data, waited for; what is wrong is raised."""
        if self.wait(seconds).running:
            raise UsageError("the answer takes too long", hint="ask again a little later")
        if not self.ok:
            raise VoileError(self.error or "the question was cancelled", hint=self.hint)
        return self.data

    def end(self, state: State, **found: Any) -> None:
        """Say what came of it, once."""
        if self.running:
            for name, value in found.items():
                setattr(self, name, value)
            self.state = state
            self.over.set()


class Asker:
    """One release, and the process that answers for it: one question after the other."""

    def __init__(self, path: Path, command: Sequence[str] = ()) -> None:
        self.stamp = stamp_of(path)
        self.history: OrderedDict[tuple[str, float], Asked] = OrderedDict()
        """What was asked by hand, the newest last."""
        self.latest: Asked | None = None
        self._command = [*command] or [
            sys.executable,
            "-P",
            "-m",
            "voile.studio.answers",
            str(path),
        ]
        self._line: SimpleQueue[Asked | None] = SimpleQueue()
        self._known: OrderedDict[str, Asked] = OrderedDict()
        self._lock = threading.Lock()
        self._current: Asked | None = None
        self._process: subprocess.Popen[str] | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def ask(self, request: Mapping[str, Any], limit: float = SECONDS) -> Asked:
        """The question, begun now unless it is known; one that was ended by force begins anew."""
        key = json.dumps(request, sort_keys=True)
        with self._lock:
            known = self._known.get(key)
            if known is not None and (known.running or known.lasting):
                self._known.move_to_end(key)
                return known
            if sum(one.running for one in self._known.values()) >= WAITING:
                raise UsageError("too many questions wait", hint="wait for those, or cancel one")
            asked = self._known[key] = Asked(request, limit)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        self._line.put(asked)
        return asked

    def cancel(self, asked: Asked) -> None:
        """Give up a question, and end the process if it is at work on it."""
        self._stop(asked, "cancelled", error="the question was cancelled", hint="")

    def close(self) -> None:
        """End the process and every question."""
        self._closed = True
        with self._lock:
            waiting = [one for one in self._known.values() if one.running]
        for asked in waiting:
            asked.end("cancelled", lasting=False)
        self._kill()
        self._line.put(None)
        self._thread.join(timeout=5)

    def _stop(self, asked: Asked, state: State, **why: Any) -> None:
        with self._lock:
            at_work = self._current is asked and asked.running
            asked.end(state, lasting=False, **why)
        if at_work:
            self._kill()

    def _kill(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            process.kill()

    def _end_process(self) -> None:
        """Whoever takes the questions ends the process for good: the next has another."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _work(self) -> None:
        """Take one question after the other."""
        while (asked := self._line.get()) is not None and not self._closed:
            if not asked.running:  # cancelled while it waited
                continue
            with self._lock:
                self._current = asked
            late = threading.Timer(asked.limit, self._too_late, [asked])
            late.daemon = True
            late.start()
            self._answer(asked)
            late.cancel()
        self._end_process()

    def _too_late(self, asked: Asked) -> None:
        self._stop(
            asked, "failed", error=f"no answer came within {asked.limit:.0f} s",
            hint="ask for fewer groups; `voile query` in a shell has no limit",
        )  # fmt: skip

    def _answer(self, asked: Asked) -> None:
        """Send the question to the process, and hear what it says."""
        try:
            process = self._running()
            assert process.stdin and process.stdout  # noqa: S101  (pipes were asked for)
            process.stdin.write(json.dumps(asked.request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            self._end_process()
            asked.end(
                "failed", error="the process that answers has ended", lasting=False,
                hint="it may need more memory: ask for fewer groups",
            )  # fmt: skip
            return
        found = json.loads(line)
        asked.end("failed" if "error" in found else "done", **found)

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(  # noqa: S603  (our own program)
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                encoding="utf-8",
            )  # fmt: skip
            if self._closed:
                self._process.kill()
        return self._process


class Askers:
    """The askers of all releases that are open; one whose release has changed begins anew."""

    def __init__(self) -> None:
        self._known: dict[Path, Asker] = {}
        self._lock = threading.Lock()

    def of(self, path: Path) -> Asker:
        """Whoever answers for the release in that folder."""
        with self._lock:
            found = self._known.get(path)
            if found is None or found.stamp != stamp_of(path):
                if found is not None:
                    found.close()
                found = self._known[path] = Asker(path)
            return found

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            known, self._known = self._known, {}
        for asker in known.values():
            asker.close()


def stamp_of(path: Path) -> list[int]:
    """Changes when the release does."""
    try:
        found = (path / "manifest.json").stat()
    except OSError:
        return []
    return [found.st_mtime_ns, found.st_size]


# ---------------------------------------------------------------------- the process


class Opened:
    """A release in the process that answers for it."""

    def __init__(self, path: str) -> None:
        import voile  # noqa: PLC0415  (what is heavy is loaded in the process alone)

        self.release = voile.open(path)
        self._answers: OrderedDict[tuple[str, float], Any] = OrderedDict()

    def about(self) -> dict[str, Any]:
        """What the release is, and what it promises, in words."""
        release = self.release
        manifest = release.manifest
        return {
            "name": release.name,
            "kind": release.kind,
            "method": manifest.method,
            "rows": manifest.rows,
            "rows_behind": release.rows_behind,
            "promise": release.promise_in_short,
            "plain": in_plain_words(release),
            "promised": [one.explain for one in release.promised()],
            "not_promised": [one.explain for one in release.not_promised()],
            "unprotected": release.unprotected,
            "simulated": manifest.simulated,
            "notes": list(release.notes),
            "describe": release.describe(),
            "attributes": release.schema.to_dict()["attributes"],
        }

    def answer(self, sql: str, confidence: float) -> dict[str, Any]:
        """What `voile query --json` prints, and how many cells a spreadsheet would compute."""
        found = self._asked(sql, confidence)
        return {**found.to_dict(), "columns": dict(found.columns), "formulas": found.formulas}

    def file(self, sql: str, confidence: float, form: str) -> str:
        """The same as a file, in base 64."""
        found = self._asked(sql, confidence)
        match form:
            case "csv" | "safe.csv":
                content = found.to_csv(safe=form == "safe.csv").encode()
            case "parquet":
                content = found.to_parquet()
            case _:
                content = json.dumps(found.to_dict(), ensure_ascii=False, indent=2).encode()
        return base64.b64encode(content).decode()

    def _asked(self, sql: str, confidence: float) -> Any:
        key = (sql, confidence)
        if key not in self._answers:
            self._answers[key] = self.release.query(sql, confidence)
            while len(self._answers) > OPENED:
                self._answers.popitem(last=False)
        return self._answers[key]


def in_plain_words(release: Any) -> list[str]:
    """What is promised, in the words of README.md."""
    beliefs = release.stated_beliefs()
    if beliefs is not None:
        return [f"{(said := beliefs.in_words())[:1].upper()}{said[1:]}."]
    _, _, rest = release.describe().partition("## What is promised\n")
    section = rest.partition("\n## ")[0].strip()
    lines = [part.strip() for part in section.split("\n")]
    return [line for line in lines if line and line[0] not in "-|*"][:PLAIN_LINES]


def replied(opened: list[Opened], path: str, request: dict[str, Any]) -> dict[str, Any]:
    """What the process says to one line; the release is opened for the first."""
    try:
        if not opened:
            opened.append(Opened(path))
        return {"data": getattr(opened[0], request.pop("do"))(**request)}
    except VoileError as error:
        start = getattr(error, "start", None)
        return {"error": error.message, "hint": error.hint, "start": start}
    except MemoryError:
        return {"error": "there is not enough memory", "hint": "ask for fewer groups"}


def main() -> None:
    """Answer line by line, until the studio ends."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no message
    path, lines, opened = sys.argv[1], SimpleQueue[str](), list[Opened]()
    threading.Thread(target=hear, args=(lines,), daemon=True).start()
    while True:
        found = replied(opened, path, json.loads(lines.get()))
        out.write(json.dumps(found) + "\n")
        out.flush()


def hear(lines: SimpleQueue[str]) -> None:
    """Take in lines; the studio keeps our standard input open as long as it lives."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
