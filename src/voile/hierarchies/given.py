"""The hierarchies of a table's columns: those that are given, those that ship, the usual ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from voile.datasets import hierarchies as shipped
from voile.errors import SchemaError, UsageError, did_you_mean
from voile.hierarchies.csvfile import read_hierarchy
from voile.schema import Attribute, Schema
from voile.schema.hierarchy import Hierarchy, Levels

Given = str | Path | Hierarchy | Levels


def read_hierarchies(
    given: Mapping[str, Given], schema: Schema, dataset: str = ""
) -> dict[str, Levels]:
    """By column, the hierarchies that are given; of a shipped table, also those shipped with it.

    `dataset` is `Table.dataset`, as 'dataset:adult'. Columns without a hierarchy are not in the
    answer: see `default_levels`.
    """
    for name in given:
        if name not in schema.names:
            raise UsageError(
                f"a hierarchy is given for {name!r}, which is no column that is used",
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


def bound(given: Given, attribute: Attribute) -> Levels:
    """A hierarchy in any form on the codes of the attribute; an error names its file."""
    if isinstance(given, Levels):
        if given.size != attribute.size:
            raise SchemaError(
                f"the levels of {attribute.name!r} are about {given.size:,} values, "
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
                f"--hierarchy {text!r} is not COLUMN=FILE.csv", hint="--hierarchy age=age.csv"
            )
        if column in found:
            raise UsageError(f"--hierarchy names {column!r} twice", hint="give each column one")
        found[column] = file
    return found
