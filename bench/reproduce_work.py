"""Making the papers' figures and tables again, from nothing."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any


def reproduced(words: list[str]) -> dict[str, Any]:
    """Seconds by the clock; verdicts that are not sound are named, and fail no timing."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "voile.cli", "reproduce", *words, "-o", folder, "--json"],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - start
    figures = json.loads(done.stdout)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {
        "seconds": seconds,
        "rate": 1 / seconds,
        "figures": len(figures),
        "unsound": [one["name"] for one in figures if not sound(one)],
        "peak": peak if sys.platform == "darwin" else peak * 1024,
    }


def sound(figure: dict[str, Any]) -> bool:
    """Whether no check of a figure fails; those of a quick run are not judged."""
    return all(check["sound"] is not False for check in figure["measured"].values())
