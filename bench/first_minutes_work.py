"""What a new user does with a table: look, publish by the command that is offered, and count."""

from __future__ import annotations

import json
import resource
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

COMMAND = "from voile.cli import main; main()"
"""What `voile` runs."""


def tried(*, table: str, folder: str, seed: int) -> dict[str, Any]:
    """Inspect, publish as the last line says, and compare counts with the table."""
    place = str(Path(folder) / f"{Path(table).stem}-{seed}.voile")
    looked, found = said("inspect", table, "--json")
    if looked != 0:
        return {"accepted": False, "why": found}
    offered = shlex.split(json.loads(found)["next"])[1:]
    started = time.perf_counter()
    words = [*offered, "-o", place, "--simulate-seed", str(seed), "--json"]
    published, text = said(*words)
    seconds = time.perf_counter() - started
    if published != 0:
        return {"accepted": False, "why": text.strip().splitlines()[0], "seconds": seconds,
                **taken(), "command": shlex.join(offered)}  # fmt: skip
    made = json.loads(text)
    return {
        "accepted": True,
        "command": shlex.join(offered),
        "method": made["method"],
        "about": made["considered"][0]["about"],
        "expected_error": made["expected_error"],
        "epsilon": made["guarantee"]["epsilon"],
        "rows": made["rows_in"],
        "seconds": seconds,
        **taken(),
        **felt(table, offered, place),
    }


def felt(table: str, offered: list[str], place: str) -> dict[str, Any]:
    """What counts of 1 % of the rows or more are off by, and how many intervals hold them."""
    import voile
    from voile.evaluate.felt import felt_error

    release = voile.open(place)
    read = voile.read(table, na=True) if "--na" in offered else voile.read(table)
    found = felt_error(release, read, drop_nulls=release.manifest.nulls == "drop")
    return found.to_dict()


def said(*words: str) -> tuple[int, str]:
    """The exit code of a command in a process of its own, and what it wrote."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr


def taken() -> dict[str, float]:
    """What the commands took so far: processor seconds, and the largest memory in bytes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = used.ru_maxrss if sys.platform == "darwin" else used.ru_maxrss * 1024
    return {"cpu": used.ru_utime + used.ru_stime, "peak": peak}
