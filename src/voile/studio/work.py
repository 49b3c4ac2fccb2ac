"""Long work in a process of its own, so that it can be cancelled: one task from stdin, then exit.

A line of JSON comes in: the task and its arguments. Lines of JSON go out: how far it is, and in
the end what it found or why it failed. Arguments may hold a passphrase; they are on no command
line and in no file.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from voile.errors import VoileError
from voile.progress import Progress

TASK = re.compile(r"(\w+)\.(\w+)")
"""SCREEN.NAME: the function NAME_task of a screen's module. It takes a `Progress` and keywords, and
returns plain data."""
TRIES = 50
"""To remove a folder into which another thread still writes."""
SELDOM = 0.1
"""Seconds between two lines about progress."""


class ReportedProgress:
    """Says how far a step is, a few times a second."""

    def __init__(self, send: Callable[[Mapping[str, Any]], None]) -> None:
        self._send = send
        self._what, self._total, self._done, self._last = "", 0, 0, 0.0

    def start(self, what: str, total: int) -> None:
        """A step begins."""
        self._what, self._total, self._done = what, total, 0
        self._say()
        self._last = 0.0  # what is done already may follow at once

    def advance(self, count: int) -> None:
        """So many more parts are done."""
        self._done += count
        if time.monotonic() - self._last > SELDOM:
            self._say()

    def _say(self) -> None:
        self._last = time.monotonic()
        self._send({"what": self._what, "done": self._done, "total": self._total})


def run(task: str, arguments: Mapping[str, Any], progress: Progress) -> Any:
    """What a task finds."""
    found = TASK.fullmatch(task)
    assert found is not None, task  # noqa: S101  (tasks are named in our own code alone)
    module = importlib.import_module(f"voile.studio.screens.{found[1]}")
    return getattr(module, f"{found[2]}_task")(progress, **arguments)


def main() -> None:
    """Wait for a task, do it, and say what came of it."""
    import voile.inspection  # noqa: PLC0415  (loaded while nobody waits)
    import voile.publishing  # noqa: F401, PLC0415

    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no message
    line = sys.stdin.readline()
    if not line.endswith("\n"):  # the studio died before it had said all
        remove_folder()
        return
    threading.Thread(target=end_with_parent, daemon=True).start()
    lock = threading.Lock()

    def send(data: Mapping[str, Any]) -> None:
        with lock:
            out.write(json.dumps(data) + "\n")
            out.flush()

    asked = json.loads(line)
    answer = done(asked, ReportedProgress(send))
    remove_folder()  # before anybody hears that it is done, and also where nobody does
    with suppress(BrokenPipeError):
        send(answer)


def done(asked: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """A task, and the line that says what came of it."""
    try:
        return {"result": run(asked["task"], asked["arguments"], progress)}
    except VoileError as error:
        changes = [one.to_dict() for one in getattr(error, "changes", ())]
        return {"error": error.message, "hint": error.hint, "changes": changes}
    except MemoryError:
        return {"error": "there is not enough memory", "hint": "choose fewer columns"}
    except BaseException:  # the studio has gone, or a fault of ours: rows do not stay
        remove_folder()
        raise


def end_with_parent() -> None:
    """The studio keeps our standard input open as long as it lives."""
    sys.stdin.read()
    remove_folder()
    os._exit(1)


def remove_folder() -> None:
    """Remove what a trial left, also where nobody is there any more to do it."""
    if len(sys.argv) < 2:
        return
    for _ in range(TRIES):
        shutil.rmtree(sys.argv[1], ignore_errors=True)
        if not Path(sys.argv[1]).exists():
            break


if __name__ == "__main__":
    main()
