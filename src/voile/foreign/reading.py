"""Other programs' files, read by a process of their own that sends a stream of Arrow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

import voile.errors
from voile.errors import TableError, VoileError, is_shell
from voile.extras import check_installed
from voile.foreign import PACKAGES, READY, R

KINDS = {name: getattr(voile.errors, name) for name in voile.errors.__all__ if name[0].isupper()}
"""The errors that the process may hand over, by name."""


@contextmanager
def rows_of(file: Path, member: str, options: Mapping[str, Any]) -> Iterator[Any]:
    """The rows of a file as a stream of Arrow: a sheet or object of it where one is named.

    They come through a pipe: no copy of them is on disk, and the reader ends when nobody listens.
    """
    package = PACKAGES[file.suffix.lower()]
    also = ("pandas",) if file.suffix.lower() in R else ()
    check_installed(f"reading {file.suffix.lower()}", (package, *also), "files")
    asked = {"file": str(file), "member": member, "options": dict(options), "shell": is_shell()}
    # Where the package lies: a program may have put it on its path by itself.
    home = str(Path(voile.errors.__file__).parents[1])
    paths = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as warned,
        subprocess.Popen(
            # -P: no module of the folder in which a strange file may lie.
            [sys.executable, "-P", "-m", "voile.foreign.reader"],
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=warned,
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None  # noqa: S101
        try:
            with process.stdin as told, suppress(OSError):
                told.write(json.dumps(asked).encode())
            said = process.stdout.readline()
            if said != READY:
                status = process.wait()
                warned.seek(0)
                raise refusal(file, status, said.decode(errors="replace"), warned.read())
            try:
                yield pa.ipc.open_stream(process.stdout)
            except pa.ArrowInvalid:  # it ended in the midst
                raise refusal(file, 3, "", "") from None
        finally:
            process.kill()


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
