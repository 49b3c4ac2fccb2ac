"""What a release of rows that were perturbed one by one says about itself."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from voile.kinds.manifest import Disclosed, ManifestPart, read_off_disclosed
from voile.kinds.people import PeopleManifest, ProtectedPeople
from voile.kinds.perturbed.retention import ColumnNoise, Local, Replace, Retention, WholeRows
from voile.schema import Schema


class ColumnPart(ManifestPart):
    """How one column was perturbed."""

    retention: float = Field(gt=0, le=1, description="Chance that a value is kept")
    replace: Replace = Field(
        description="Where other values come from: uniform over the domain, a declared "
        "distribution, or the column itself, drawn (identity) or permuted (swap)"
    )
    parts: list[int] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="declared: the chances of the values, in proportion",
    )


class LocalParameters(ManifestPart):
    """How rows were perturbed."""

    columns: dict[str, ColumnPart] = Field(description="Of every column; none with `joint`")
    joint: float | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="frapp: chance that a whole row is kept",
    )
    collected: bool = Field(
        description="True: rows were perturbed by those they are about; False: in one place"
    )
    suppressed_below: int | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="Values that fewer rows have were made NULL before",
    )
    row_key: str | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="The column by which this part is joined with others",
    )


class LocalGuarantee(ManifestPart):
    """What is promised about one row, or about one person."""

    kind: Literal["local"] = "local"
    epsilon: float | None = Field(
        description="Local differential privacy of a row, or of all rows of a person, but for "
        "public columns; null where no ε holds"
    )
    columns: dict[str, float | None] = Field(
        description="The same for each column; null where none holds"
    )
    unit: str


class LocalManifest(PeopleManifest):
    """Rows that were perturbed one by one."""

    method: Literal["retention", "frapp"]
    parameters: LocalParameters
    guarantee: LocalGuarantee

    @property
    def mechanism(self) -> Local:
        """The mechanism with these parameters."""
        return mechanism_of(self.parameters, self.schema_)

    def check(self) -> None:
        """Refuse parameters that no mechanism has."""
        if (self.method == "frapp") != (self.parameters.joint is not None):
            raise ValueError(f"method {self.method} does not go with these parameters")
        self.check_people()
        if self.people is not None and (self.parameters.collected or self.parameters.row_key):
            raise ValueError("rows that were sent or have a key are not those of a person")
        _ = self.mechanism


def mechanism_of(parameters: LocalParameters, schema: Schema) -> Local:
    """The mechanism that parameters mean on a schema."""
    if parameters.joint is not None:
        if parameters.columns:
            raise ValueError("whole rows are perturbed, or columns, not both")
        return WholeRows(parameters.joint, tuple(schema.sizes))
    if list(parameters.columns) != schema.names:
        raise ValueError("parameters.columns are not the columns of the schema")
    return Retention(
        tuple(
            ColumnNoise(a.size, c.retention, c.replace, None if c.parts is None else tuple(c.parts))
            for a, c in zip(schema, parameters.columns.values(), strict=True)
        )
    )


def columns_of(mechanism: Local, schema: Schema) -> dict[str, ColumnPart]:
    """As they are written down."""
    if isinstance(mechanism, WholeRows):
        return {}
    return {
        name: ColumnPart(
            retention=c.retention,
            replace=c.replace,
            parts=None if c.parts is None else list(c.parts),
        )
        for name, c in zip(schema.names, mechanism.columns, strict=True)
    }


def local_guarantee(
    mechanism: Local, schema: Schema, *, collected: bool, people: ProtectedPeople | None = None
) -> LocalGuarantee:
    """The promise as it is written down; of several rows of a person, each spends its own ε."""
    most = 1 if people is None else people.rows_per_person
    per_column = {} if isinstance(mechanism, WholeRows) else {
        name: finite(most * column.epsilon())
        for name, column in zip(schema.names, mechanism.columns, strict=True)
    }  # fmt: skip
    where = "by whoever it is about" if collected else "before the table left its holder"
    return LocalGuarantee(
        epsilon=finite(most * mechanism.epsilon()),
        columns=per_column,
        unit=f"the values of {'one row' if people is None else people.one}, perturbed {where}, but "
        f"for columns that are public; that the {'rows are' if most > 1 else 'row is'} there is "
        "told",
    )


def finite(epsilon: float) -> float | None:
    """A number as JSON has it: None where it is infinite."""
    return epsilon if math.isfinite(epsilon) else None


def locally_disclosed(
    schema: Schema, parameters: LocalParameters, mechanism: Local, nulls: str
) -> list[Disclosed]:
    """What the release tells outside its promise, with why."""
    found = [Disclosed(what="the number of rows", why="every row is there, perturbed")]
    if nulls == "drop":
        why = "--nulls drop leaves the others out; --nulls as-value avoids that"
        found = [Disclosed(what="the number of rows in which nothing is missing", why=why)]
    if parameters.row_key is not None:
        why = "the parts of a table are joined by it; use a pseudonym, and combine the parts"
        found.append(Disclosed(what=f"{parameters.row_key} of every row", why=why))
    if isinstance(mechanism, Retention):
        for name, column in zip(schema.names, mechanism.columns, strict=True):
            if column.public and column.size > 1:
                why = "it was declared public: its retention is 1"
                found.append(Disclosed(what=f"{name} of every row", why=why))
            elif not column.local:
                why = f"replacements are the column's own values ({column.replace})"
                found.append(
                    Disclosed(what=f"about how often each value of {name} occurs", why=why)
                )
    return found + read_off_disclosed(schema)
