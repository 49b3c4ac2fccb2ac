"""Starting a command again and again."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from typing import Any


def started(arguments: list[str], runs: int) -> dict[str, Any]:
    """Seconds by the clock of each start; one before them fills the system's cache of files."""
    seconds = [once(arguments) for _ in range(runs + 1)][1:]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {
        "best": min(seconds),
        "median": statistics.median(seconds),
        "rate": 1 / min(seconds),
        "peak": peak if sys.platform == "darwin" else peak * 1024,
    }


def once(arguments: list[str]) -> float:
    """Seconds of one start."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "voile.cli", *arguments],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - start
