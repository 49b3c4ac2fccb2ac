"""An interrupted frontier stops at once, and what was measured is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from voile.evaluate.frontier.running import in_threads

FOR_A_LONG_TIME = 60.0


def test_every_task_is_done_and_errors_are_raised() -> None:
    done: list[int] = []
    stop = threading.Event()
    in_threads([lambda i=i: done.append(i) for i in range(20)], 3, stop)  # type: ignore[misc]
    assert sorted(done) == list(range(20)) and stop.is_set()

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        in_threads([fail], 1, threading.Event())


def test_an_error_does_not_wait_for_other_tasks() -> None:
    free, stop = threading.Event(), threading.Event()

    def fail() -> None:
        raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        in_threads([lambda: free.wait(FOR_A_LONG_TIME), fail, fail], 2, stop)
    assert time.monotonic() - begun < FOR_A_LONG_TIME / 4 and stop.is_set()
    free.set()


def test_an_interrupted_command_ends_at_once_and_keeps_its_points(tmp_path: Path) -> None:
    """Free shapes of Adult take far longer than is waited for here."""
    folder, scratch = tmp_path / "f", tmp_path / "scratch"
    scratch.mkdir()
    words = ["frontier", "dataset:adult/frontier", "--sensitive", "occupation", "--qi",
             "age,workclass,education,marital_status,race,sex", "-o", str(folder), "--jobs", "2",
             "--methods", "trivial,alphabeta,freeshape",
             "--grid", "t=0.03,0.05,0.075;posterior=0.2"]  # fmt: skip
    program = "import sys; from voile.cli import main; sys.argv[0] = 'voile'; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    ) as running:
        kept = folder / "points.jsonl"
        for _ in range(600):  # until the first point is there
            if kept.exists() and len(kept.read_bytes().splitlines()) > 1:
                break
            time.sleep(0.1)
        begun = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=FOR_A_LONG_TIME)
        waited = time.monotonic() - begun
    assert running.returncode == 128 + signal.SIGINT, told
    assert " ".join(told.split()).startswith("interrupted; what was measured is kept in")
    assert told.count("\n") < 5, told  # and nothing else
    assert [str(p.relative_to(scratch)) for p in scratch.rglob("*")] == []
    assert waited < 5
    head, *points = [json.loads(line) for line in kept.read_text().splitlines()]
    assert "about" in head and points
