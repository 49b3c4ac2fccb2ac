"""The process that reads one file: `python -m voile.foreign.reader`, with a request as JSON.

It bounds its own memory before it opens anything. It says that it is ready, and sends a stream of
Arrow; or it says in JSON what is wrong.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from voile.errors import UsageError, VoileError, in_shell
from voile.foreign import METADATA, READY, WORKBOOKS, ForeignTable, R
from voile.system import here as system

MEMORY = 6 * 2**30
"""What the process may take besides what it has when it begins."""


def read(file: Path, member: str, options: Mapping[str, Any]) -> ForeignTable:
    """The table of a file, by its ending."""
    ending = file.suffix.lower()
    if ending in WORKBOOKS:
        from voile.foreign.workbooks import read_workbook  # noqa: PLC0415  (an optional package)

        return read_workbook(file, member, options)
    if ending in R:
        from voile.foreign.rdata import read_rdata  # noqa: PLC0415

        return read_rdata(file, member, options)
    from voile.foreign.labelled import read_labelled  # noqa: PLC0415

    if member:
        raise UsageError(
            f"{file} holds one table, so '::{member}' names nothing in it",
            hint=f"name the file alone: {file}",
        )
    return read_labelled(file, options)


def own_output() -> BinaryIO:
    """Standard output for us alone: what a library prints goes to standard error."""
    mine = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(mine, "wb")


def main() -> int:
    """Read what the request names; what went wrong is JSON as well."""
    asked, out = json.loads(sys.stdin.read()), own_output()
    system.limit_memory(asked.get("memory", MEMORY))
    try:
        with in_shell() if asked["shell"] else nullcontext():
            found = read(Path(asked["file"]), asked["member"], asked["options"])
        facts = json.dumps(found.facts()).encode()
        rows = found.rows.replace_schema_metadata({METADATA: facts})
        out.write(READY)
        with pa.ipc.new_stream(out, rows.schema) as writer:
            writer.write_table(rows)
        out.close()
    except VoileError as error:
        kind, message, hint = type(error).__name__, error.message, error.hint
        out.write(json.dumps({"error": kind, "message": message, "hint": hint}).encode() + b"\n")
        out.close()
        return 1
    except MemoryError:
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
