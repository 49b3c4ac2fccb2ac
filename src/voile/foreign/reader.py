"""The process that reads one file: `python -m voile.foreign.reader`, with a request as JSON.

It bounds its own memory before it opens anything, and writes an Arrow file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa

from voile.errors import UsageError, VoileError, in_shell
from voile.foreign import METADATA, WORKBOOKS, ForeignTable, R
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


def main() -> int:
    """Read what the request names; what went wrong is JSON as well."""
    asked = json.loads(sys.stdin.read())
    system.limit_memory(asked.get("memory", MEMORY))
    try:
        with in_shell() if asked["shell"] else nullcontext():
            found = read(Path(asked["file"]), asked["member"], asked["options"])
        facts = json.dumps(found.facts()).encode()
        rows = found.rows.replace_schema_metadata({METADATA: facts})
        with pa.OSFile(asked["to"], "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows)
    except VoileError as error:
        kind, message, hint = type(error).__name__, error.message, error.hint
        print(json.dumps({"error": kind, "message": message, "hint": hint}))
        return 1
    except MemoryError:
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
