"""All that mining asks of a release: estimated counts over products of bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from voile.engines import connect
from voile.errors import UsageError
from voile.kinds.perturbed.joint import JointCounts
from voile.schema import Schema, TupleIndex

Whole = npt.NDArray[np.int64]

METHODS = ("stopped", "em", "inversion")


@runtime_checkable
class Counts(Protocol):
    """Rows that can be counted, exactly or by reconstruction from perturbed ones."""

    @property
    def schema(self) -> Schema:
        """The public domain of the rows."""

    @property
    def rows(self) -> int:
        """How many rows there are."""

    def joint_counts(self, cells: Mapping[str, Whole], method: str = "em") -> JointCounts:
        """Estimated counts over the product of the columns' bins, and how far they may be off.

        cells[name][code] is the bin (0, 1, …) of each code of that column's domain; the axes of
        all arrays are in the order of `cells`.
        """
        ...


@dataclass(frozen=True, eq=False)
class ExactCounts:
    """The counts of a table whose rows are known, each row as the codes of its values."""

    schema: Schema
    codes: Mapping[str, npt.NDArray[Any]]

    @classmethod
    def of_table(cls, source: object, schema: Schema) -> ExactCounts:
        """Read the schema's columns of a table; a value outside their domains is an error."""
        table = connect(source)
        table.check_columns(schema.names)
        keys = table.keys(schema, drop_nulls=False)
        decoded = TupleIndex(schema.sizes).decode(keys)
        return cls(schema, dict(zip(schema.names, decoded, strict=True)))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.codes.values())))

    def joint_counts(
        self,
        cells: Mapping[str, Whole],
        method: str = "em",  # noqa: ARG002  (there is nothing to reconstruct)
    ) -> JointCounts:
        """Counts of the cells, without any error."""
        shape = shape_of(cells)
        place = np.zeros(self.rows, np.int64)
        for size, (name, bins) in zip(shape, cells.items(), strict=True):
            place *= size
            place += bins[self.codes[name]]
        found = np.bincount(place, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)
        return JointCounts.exact(found)


def shape_of(cells: Mapping[str, Whole]) -> tuple[int, ...]:
    """How many bins each column has."""
    return tuple(int(bins.max()) + 1 for bins in cells.values())


def checked_method(method: str) -> str:
    """The method, refused if it is not known."""
    if method not in METHODS:
        raise UsageError(f"method {method!r} is not known", hint=f"use {', '.join(METHODS)}")
    return method


def checked_counts(release: object, path: object = "") -> Counts:
    """A release whose rows can be counted jointly, or why it is not one."""
    if isinstance(release, Counts):
        return release
    kind = getattr(release, "kind", type(release).__name__)
    raise UsageError(
        f"{str(path) or 'this'} is {kind}: trees and rules are made from locally perturbed rows",
        hint="`voile perturb TABLE -o RELEASE` makes such a release",
    )


def chosen_columns(schema: Schema, columns: Sequence[str] | None, *, but: str = "") -> list[str]:
    """The columns that were named, else all of them, without the class column."""
    names = [name for name in schema.names if name != but] if columns is None else list(columns)
    for name in names:
        _ = schema[name]
        if name == but:
            raise UsageError(
                f"{name!r} is the target and cannot predict itself",
                hint="leave it out of the columns",
            )
    if len(set(names)) < len(names):
        raise UsageError(f"a column is named twice: {', '.join(names)}", hint="name each once")
    if not names:
        raise UsageError("no columns are left to choose from", hint="name at least one")
    return names
