"""Other programs' files, read by a process of their own that leaves an Arrow file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import voile.errors
from voile.errors import TableError, VoileError, is_shell
from voile.extras import check_installed
from voile.foreign import PACKAGES, R

KINDS = {name: getattr(voile.errors, name) for name in voile.errors.__all__ if name[0].isupper()}
"""The errors that the process may hand over, by name."""


def to_arrow(file: Path, member: str, options: Mapping[str, Any], target: Path) -> Path:
    """Have a file turned into an Arrow file: a sheet or object of it where one is named."""
    package = PACKAGES[file.suffix.lower()]
    also = ("pandas",) if file.suffix.lower() in R else ()
    check_installed(f"reading {file.suffix.lower()}", (package, *also), "files")
    asked = {
        "file": str(file),
        "member": member,
        "options": dict(options),
        "to": str(target),
        "shell": is_shell(),
    }
    # Where the package lies: a program may have put it on its path by itself.
    home = str(Path(voile.errors.__file__).parents[1])
    paths = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "voile.foreign.reader"],
        input=json.dumps(asked),
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise refusal(file, done.returncode, done.stdout, done.stderr)
    return target


def refusal(file: Path, status: int, said: str, warned: str) -> VoileError:
    """What the process refused, or why it came to no end of its own."""
    if status == 1 and said.startswith("{"):
        found = json.loads(said)
        kind: type[VoileError] = KINDS[found["error"]]
        return kind(found["message"], hint=found["hint"])
    lines = warned.strip().splitlines() or [""]
    if status == 3 or status < 0 or "memory" in warned or "MemoryError" in warned:
        return TableError(
            f"{file} needs more memory than reading a file may take, or is damaged",
            hint="save its table as a text file (.csv), and read that",
        )
    return TableError(
        f"{file} cannot be read: {lines[-1] or 'its reader ended'}",
        hint="open it in the program that wrote it, and save it again",
    )
