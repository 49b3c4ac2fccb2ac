"""Hierarchies in files: as ARX writes them, as groups in YAML or JSON, by column of a table."""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from voile.datasets import hierarchies as shipped
from voile.errors import SchemaError, UsageError, did_you_mean, spelled
from voile.files import write_whole
from voile.schema import Attribute, Schema
from voile.schema.attribute import in_words
from voile.schema.hierarchy import EVERYTHING, Hierarchy, Levels

# ---------------------------------------------------------------------- CSV
# Hierarchies in files, in the form that ARX reads and writes.
#
# One row for each value, from the value to the top, with ';' between the levels and no header.
# Files with commas or tabs instead, or with a byte order mark, are read too.


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
    """The rows, split at the first separator that makes all of them equally long."""
    tried = [split_rows(text, separator) for separator in SEPARATORS]
    for rows in tried:
        if rows and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1:
            return rows
    # Read by the separator that is used most, so that the error names the row that differs.
    return max(tried, key=lambda rows: sum(map(len, rows)))


def split_rows(text: str, separator: str) -> list[list[str]]:
    """The rows of a CSV text with this separator."""
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=False)
        return [row for row in reader if row]
    except csv.Error as error:
        raise SchemaError(
            f"the hierarchy is not a CSV file: {error}", hint="put one value in each row"
        ) from None


def hierarchy_to_csv(hierarchy: Hierarchy) -> bytes:
    """A hierarchy in ARX's CSV form, which `hierarchy_from_csv` reads back unchanged."""
    lines = (";".join(map(quoted, path)) + "\n" for path in hierarchy.paths)
    return "".join(lines).encode("utf-8")


def quoted(text: str) -> str:
    """A text for CSV, in quotes where needed; csv.writer would not quote a lone \\r."""
    if text.startswith("\ufeff") or any(character in text for character in ';"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def write_hierarchy(hierarchy: Hierarchy, path: str | Path, *, overwrite: bool = False) -> None:
    """Write the file, whole or not at all."""
    write_whole(Path(path), hierarchy_to_csv(hierarchy), overwrite=overwrite)


# ---------------------------------------------------------------------- mappings
# Hierarchies of categories, from groups that someone wrote down.


BETWEEN = " | "


def mapped(groups: Any) -> Hierarchy:
    """A hierarchy from {value: group}, {group: [values]}, or groups nested to any depth.

    A list inside a list is a group that is called by its values. Where a value has fewer groups
    above it than others, it stands for itself below them.

    >>> mapped({"mammal": ["cat", "dog"], "bird": ["hen"]}).paths[0]
    ('cat', 'mammal', '*')
    """
    if isinstance(groups, Mapping) and all(not is_group(inner) for inner in groups.values()):
        found = [[word(value), word(group)] for value, group in groups.items()]
    elif is_group(groups):
        found = [[leaf, *reversed(above)] for leaf, above in leaves(groups, ())]
    else:
        raise SchemaError(
            f"a mapping is {{group: [values]}} or {{value: group}}, not {groups!r}",
            hint="write 'group: [value, value]' in each line",
        )
    if not found:
        raise SchemaError("the mapping is empty", hint="write 'group: [value, value]'")
    longest = max(map(len, found))
    level = [[path[0]] * (longest - len(path)) + path for path in found]
    return Hierarchy.of([*path, EVERYTHING] for path in level)


def is_group(item: object) -> bool:
    """Whether an item of a mapping holds others."""
    return isinstance(item, Mapping | list | tuple)


def leaves(group: Any, above: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every value with the groups that it lies in, the widest first."""
    if isinstance(group, Mapping):
        for name, inner in group.items():
            yield from leaves(inner if is_group(inner) else [inner], (*above, word(name)))
        return
    for item in group:
        if isinstance(item, Mapping):
            yield from leaves(item, above)
        elif is_group(item):
            inside = BETWEEN.join(leaf for leaf, _ in leaves(item, ()))
            yield from leaves(item, (*above, inside))
        else:
            yield word(item), above


def word(item: Any) -> str:
    """The text of a value or group that YAML or JSON gives."""
    if item is None or isinstance(item, str | bool | int | float | dt.date):
        return in_words(item)
    raise SchemaError(f"{item!r} is neither a value nor a group", hint="put it in quotes")


def read_mapping(path: str | Path) -> Hierarchy:
    """The hierarchy that a YAML or JSON file writes down as groups."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        groups = yaml.safe_load(text)  # JSON is YAML
    except OSError as error:
        raise UsageError(
            f"cannot read the mapping {str(path)!r}: {error.strerror}", hint="check its name"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise SchemaError(f"{path} is neither YAML nor JSON: {first}") from None
    try:
        return mapped(groups)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error.message}", hint=error.hint) from None


# ---------------------------------------------------------------------- by column
# The hierarchies of a table's columns: those that are given, those that ship, the usual ones.


HierarchySource = str | Path | Hierarchy | Levels


def read_hierarchies(
    given: Mapping[str, HierarchySource], schema: Schema, dataset: str = ""
) -> dict[str, Levels]:
    """By column, the hierarchies that are given; of a shipped table, also those shipped with it.

    `dataset` is `Table.dataset`, as 'dataset:adult'. Columns without a hierarchy are not in the
    answer: see `default_levels`.
    """
    for name in given:
        if name not in schema.names:
            raise UsageError(
                f"a hierarchy is given for {name!r}, which is not a column in use",
                hint=did_you_mean(name, schema.names),
            )
    ready = {name: path for name, path in shipped(dataset).items() if name in schema.names}
    found = {name: fitting(path, schema[name]) for name, path in ready.items()}
    return {name: levels for name, levels in found.items() if levels is not None} | {
        name: bound(hierarchy, schema[name]) for name, hierarchy in given.items()
    }


def fitting(path: Path, attribute: Attribute) -> Levels | None:
    """A shipped hierarchy, unless the schema has values that it does not know."""
    try:
        return read_hierarchy(path).bind(attribute)
    except SchemaError:
        return None


def bound(given: HierarchySource, attribute: Attribute) -> Levels:
    """A hierarchy in any form, bound to the attribute; an error names its file."""
    if isinstance(given, Levels):
        if given.size != attribute.size:
            raise SchemaError(
                f"the levels of {attribute.name!r} cover {given.size:,} values, "
                f"the column has {attribute.size:,}",
                hint="bind the hierarchy to this schema's attribute",
            )
        return given
    if isinstance(given, Hierarchy):
        return given.bind(attribute)
    try:
        return read_hierarchy(given).bind(attribute)
    except SchemaError as error:
        where = "" if error.message.startswith(str(given)) else f"{given}: "
        raise SchemaError(where + error.message, hint=error.hint) from None


def hierarchy_options(given: Iterable[str]) -> dict[str, str]:
    """COLUMN=FILE.csv options by column."""
    found: dict[str, str] = {}
    for text in given:
        column, equals, file = text.partition("=")
        if not equals or not column or not file:
            raise UsageError(
                f"{spelled('hierarchies', text, flag='--hierarchy')} is not COLUMN=FILE.csv",
                hint=spelled("hierarchies", {"age": "age.csv"}, flag="--hierarchy"),
            )
        if column in found:
            raise UsageError(
                f"{spelled('hierarchies', flag='--hierarchy')} names {column!r} twice",
                hint="give each column one",
            )
        found[column] = file
    return found
