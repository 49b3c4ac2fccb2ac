"""Hierarchies in files, in the form that ARX reads and writes.

One row for each value, from the value to the top, with ';' between the levels and no header.
Files with commas or tabs instead, or with a byte order mark, are read too.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from voile.errors import SchemaError, UsageError
from voile.files import write_whole
from voile.schema.hierarchy import Hierarchy

SEPARATORS = (";", "\t", ",")
"""In the order in which they are tried: a label may well contain a comma."""


def read_hierarchy(path: str | Path) -> Hierarchy:
    """The hierarchy of a file; errors name the file and the row."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read the hierarchy {str(path)!r}: {error.strerror}", hint="check its name"
        ) from None
    try:
        return hierarchy_from_csv(content)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error.message}", hint=error.hint) from None


def hierarchy_from_csv(content: bytes) -> Hierarchy:
    """Read a hierarchy in ARX's CSV form: a line for each value, from itself to the coarsest."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SchemaError(
            f"byte {error.start} of the hierarchy is not UTF-8", hint="save the file as UTF-8"
        ) from None
    return Hierarchy.of(rows_of(text))


def rows_of(text: str) -> list[list[str]]:
    """The rows, apart at the first separator that makes all of them equally long."""
    tried = [split_rows(text, separator) for separator in SEPARATORS]
    for rows in tried:
        if rows and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1:
            return rows
    # Let the separator that is used most complain of the row that is amiss.
    return max(tried, key=lambda rows: sum(map(len, rows)))


def split_rows(text: str, separator: str) -> list[list[str]]:
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=False)
        return [row for row in reader if row]
    except csv.Error as error:
        raise SchemaError(
            f"the hierarchy is no CSV file: {error}", hint="put one value in each row"
        ) from None


def hierarchy_to_csv(hierarchy: Hierarchy) -> bytes:
    """A hierarchy in ARX's CSV form, which `hierarchy_from_csv` reads back unchanged."""
    lines = (";".join(map(quoted, path)) + "\n" for path in hierarchy.paths)
    return "".join(lines).encode("utf-8")


def quoted(text: str) -> str:
    """In quotes where it would be read as something else; csv.writer lets a lone \\r pass."""
    if text.startswith("\ufeff") or any(character in text for character in ';"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def write_hierarchy(hierarchy: Hierarchy, path: str | Path, *, overwrite: bool = False) -> None:
    """Write the file, whole or not at all."""
    write_whole(Path(path), hierarchy_to_csv(hierarchy), overwrite=overwrite)
