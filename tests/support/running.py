"""A command as a user runs it, but in this process: nothing is started, nothing imported again."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest.mock import patch

from voile.cli import Ending, common, main
from voile.system import here as system

SIGNALS = system.ENDING


def voile(
    *arguments: str, cwd: Path | None = None, columns: int = 100, text: str = ""
) -> CompletedProcess[str]:
    """The exit code and what was written, from the program's own `main`.

    Where a process is the point (signals, pipes, what is imported), start one instead.
    """
    out, err = stream(), stream()
    with (
        contextlib.chdir(cwd or Path.cwd()),
        patch.dict(os.environ, {"COLUMNS": str(columns), "NO_COLOR": "1"}),
        patch.object(sys, "argv", ["voile", *arguments]),
        patch.object(sys, "stdin", stream(text)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        left_as_it_was(),
    ):
        code = exit_code()
    return CompletedProcess(["voile", *arguments], code, written(out), written(err))


def told(arguments: Sequence[str]) -> Any:
    """What a command says with --json."""
    done = voile(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def exit_code() -> int:
    try:
        main()
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    return 0


def stream(text: str = "") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8", write_through=True)


def written(to: io.TextIOWrapper) -> str:
    to.seek(0)
    return to.read()


@contextlib.contextmanager
def left_as_it_was() -> Iterator[None]:
    """What a process takes with it when it ends: handlers of signals, notes for them, limits.

    This process goes on: `Ending.leave` would end it in place of pytest.
    """
    handlers, limits = [signal.getsignal(number) for number in SIGNALS], gc.get_threshold()
    try:
        with patch.object(Ending, "leave", lambda _: None):
            yield
    finally:
        for number, handler in zip(SIGNALS, handlers, strict=True):
            signal.signal(number, handler)
        gc.set_threshold(*limits)
        common.KEPT.clear()
        common.PLACES.clear()
