"""Workbooks, and tables of SPSS, Stata and R: read by a process of their own."""

from __future__ import annotations

import json
from pathlib import Path

from voile.engines.duckdb.sources import cells
from voile.engines.duckdb.sources.common import Connection, check_names, copy_stream
from voile.engines.duckdb.sources.text import TextNotes, columns_of, settle
from voile.engines.duckdb.sources.typed import MEANINGS, refuse_options, remove_texts
from voile.foreign import METADATA, WORKBOOKS
from voile.foreign.reading import rows_of
from voile.options.reading import ReadingOptions

LAYOUT = {True: ("header", "skip"), False: ("encoding",)}
"""Options that say how a workbook is written, and how other files are."""


def attach_foreign(
    con: Connection, file: Path, member: str, options: ReadingOptions, made: TextNotes
) -> None:
    """Copy a sheet, or the table of another program, into the temporary table `source`."""
    is_workbook = file.suffix.lower() in WORKBOOKS
    refuse_options(options, str(file), LAYOUT[is_workbook])
    given = options.given_keywords()
    layout = {name: given[name] for name in LAYOUT[is_workbook] if name in given}
    with rows_of(file, member, layout) as rows:
        check_names(rows.schema.names, str(file))
        facts = json.loads(rows.schema.metadata[METADATA])
        copy_stream(con, rows.read_all())
    made.notes.extend(facts["notes"])
    made.labels, made.categories = facts["labels"], facts["categories"]
    made.has_codes = not is_workbook
    if is_workbook:
        read_cells(con, facts["mixed"], options, made)


def read_cells(con: Connection, mixed: list[str], options: ReadingOptions, made: TextNotes) -> None:
    """Read columns of mixed cells as a text file's would be; those of texts where options say so.

    A sheet may hold NA among numbers, as a text file may, and nobody has declared what it means.
    """
    made.is_text = True
    remove_texts(con, options.null_text)
    texts = columns_of(con, "VARCHAR")
    asked = any(name in MEANINGS for name in options.given_keywords())
    found = cells.look(con, texts if asked else [name for name in texts if name in mixed])
    settle(con, found, cells.decide(list(found.values()), options, ","), options, made)
