"""A hierarchy for a column of a table, built by a steward's options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.engines.table import Table
from voile.errors import SchemaError, UsageError
from voile.files import check_free
from voile.hierarchies import (
    calendar,
    default_levels,
    equal_depth,
    equal_width,
    masked,
    multiples,
    prefixes,
    read_hierarchies,
    read_hierarchy,
    read_mapping,
    suggested,
    write_hierarchy,
)
from voile.kinds.classes.options import HierarchyOptions
from voile.schema import Attribute, Schema
from voile.schema.hierarchy import Hierarchy, Levels

MOST_ROWS = 1_000_000
"""A file has a row for each value; larger domains are better built by arithmetic each time."""


@dataclass(frozen=True, eq=False)
class ColumnHierarchy:
    """A column's hierarchy, and the rows of the table under each of its nodes."""

    attribute: Attribute
    levels: Levels
    way: str
    counts: npt.NDArray[np.int64]
    """(values,): the rows that have each value, by code."""

    def rows(self, level: int) -> npt.NDArray[np.int64]:
        """The rows under every node of a level."""
        return self._summed(level, self.counts)

    def values(self, level: int) -> npt.NDArray[np.int64]:
        """How many values lie under every node of a level."""
        return self._summed(level, np.ones_like(self.counts))

    def _summed(self, level: int, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        nodes, labels = self.levels.nodes[level], self.levels.labels[level]
        return np.bincount(nodes, numbers, len(labels)).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; the values themselves are only counted."""
        levels = []
        for level in range(1, self.levels.height + 1):
            found = zip(
                self.levels.labels[level],
                self.values(level).tolist(),
                self.rows(level).tolist(),
                strict=True,
            )
            groups = [{"label": label, "values": v, "rows": r} for label, v, r in found]
            levels.append({"level": level, "groups": groups})
        return {
            "column": self.attribute.name,
            "kind": self.attribute.kind,
            "values": self.levels.size,
            "built": self.way,
            "derived_from_rows": self.levels.derived,
            "levels": levels,
        }

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write it as CSV, in the form of ARX."""
        if self.levels.size > MOST_ROWS:
            raise UsageError(
                f"{self.attribute.name!r} has {self.levels.size:,} values, too many for a file",
                hint="declare bins for it in a codebook: `voile schema`",
            )
        write_hierarchy(Hierarchy.of(self.levels.paths()), path, overwrite=overwrite)


def column_hierarchy(
    table: Table, column: str, options: HierarchyOptions, schema: Schema | None = None
) -> ColumnHierarchy:
    """Build the hierarchy of the options, and count the table's rows under it. NULL is a value."""
    way = options.way
    names = [column] if options.suggest_by is None else [column, options.suggest_by]
    table.check_columns(names)
    used = Schema(tuple(attribute_of(table, name, schema) for name in names))
    attribute = used[column]
    joint = joint_counts(table, used)
    if way:
        levels = built(attribute, options, joint)
    else:
        shipped = read_hierarchies({}, used.select([column]), table.dataset)
        way = "shipped" if column in shipped else "usual"
        levels = shipped.get(column) or default_levels(attribute)
    return ColumnHierarchy(attribute, levels, way, joint.sum(axis=1))


def attribute_of(table: Table, name: str, schema: Schema | None) -> Attribute:
    """As the codebook declares it, else as the table has it."""
    if schema is not None and name in schema.names:
        return schema[name]
    return table.infer([name], "as-value")[name]


def joint_counts(table: Table, used: Schema) -> npt.NDArray[np.int64]:
    """(values of the first column, values of the second): rows; one column of them for none."""
    return table.counts(used, drop_nulls=False).reshape(used.sizes[0], -1)


def built(attribute: Attribute, options: HierarchyOptions, joint: npt.NDArray[np.int64]) -> Levels:
    """The hierarchy by the one way that the options name."""
    fanout = 2 if options.fanout is None else options.fanout
    if options.equal_width is not None:
        found = equal_width(attribute, options.equal_width, fanout)
    elif options.equal_depth is not None:
        found = equal_depth(attribute, joint.sum(axis=1), options.equal_depth, fanout)
    elif options.multiples is not None:
        found = multiples(attribute, options.multiples)
    elif options.mask is not None:
        found = masked(attribute, options.mask)
    elif options.prefixes is not None:
        found = prefixes(attribute, options.prefixes)
    elif options.suggest_by is not None:
        found = suggested(attribute, joint, fanout)
    elif options.mapping is not None:
        found = bound(read_mapping(options.mapping), attribute, options.mapping)
    elif options.file is not None:
        found = bound(read_hierarchy(options.file), attribute, options.file)
    else:
        found = calendar(attribute)
    return found


def bound(hierarchy: Hierarchy, attribute: Attribute, path: str | Path) -> Levels:
    """On the column's values; an error names the file."""
    try:
        return hierarchy.bind(attribute)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error.message}", hint=error.hint) from None


def check_target(path: Path, *, overwrite: bool) -> None:
    """Refuse before any work is done."""
    if path.is_dir():
        raise UsageError(f"{str(path)!r} is a folder", hint="name a file: age.csv")
    check_free(path, overwrite=overwrite)
