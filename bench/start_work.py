"""Starting a command again and again."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from typing import Any


def started(arguments: list[str], runs: int) -> dict[str, Any]:
    """Seconds of each start; one before them fills the system's cache of files."""
    spent = [once(arguments) for _ in range(runs + 1)][1:]
    seconds = [clock for clock, _ in spent]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {
        "best": min(seconds),
        "median": statistics.median(seconds),
        "processor": min(processor for _, processor in spent),
        "rate": 1 / min(seconds),
        "peak": peak if sys.platform == "darwin" else peak * 1024,
    }


def once(arguments: list[str]) -> tuple[float, float]:
    """Seconds of one start: by the clock, and of the processor."""
    start, before = time.perf_counter(), processor()
    subprocess.run(
        [sys.executable, "-m", "voile.cli", *arguments],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - start, processor() - before


def processor() -> float:
    """Seconds of the processor that processes have taken which were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
