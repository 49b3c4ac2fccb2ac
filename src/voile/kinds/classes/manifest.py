"""What a release of grouped rows says about itself."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from voile.kinds.manifest import (
    Disclosed,
    LaterKeys,
    Manifest,
    ManifestPart,
    free_name,
    read_off_disclosed,
)
from voile.options.choices import Method
from voile.privacy.requirements import Requirement, requirement_from_dict
from voile.recoding import Recode
from voile.schema import Range, Schema
from voile.schema.attribute import Attribute

CLASS_FILES, SENSITIVE_FILES = "classes/", "sensitive/"
"""Where a generalized release keeps its boxes, and a bucketized one its sensitive values."""
ROWS, POPULATION = "rows", "population"
UNIT = "the classes that are shown, in which every person of the table has one row"


MOST_ERROR = 1e6
"""Beyond which a number of an error model says nothing; a forged manifest has none."""
ErrorNumber = Annotated[float, Field(ge=0, le=MOST_ERROR, allow_inf_nan=False)]


class ClassErrorModel(ManifestPart):
    """What the steward measured of real errors on random questions, in three rounded numbers."""

    spread: ErrorNumber = Field(
        description="The error that grows with the root of the rows left open, in standard "
        "errors of the assumption"
    )
    share: ErrorNumber = Field(
        description="The error that grows with the rows left open, as a share of them"
    )
    fitted: ErrorNumber | None = Field(
        description="The errors of --method entropy as a multiple of the others; null: not measured"
    )


class ClassParameters(ManifestPart):
    """How rows were grouped, and what is shown of each class."""

    recode: Recode = Field(
        description="generalize: quasi-identifiers as ranges; bucketize: which sensitive value of "
        "a class is whose is not shown"
    )
    qi: list[str] = Field(description="The quasi-identifiers, in the order in which they were cut")
    sensitive: list[str]
    insensitive: list[str] = Field(description="Columns that are shown as they are")
    exact: list[str] = Field(description="Quasi-identifiers that are shown as they are")
    classes: int = Field(ge=1)
    class_column: str = Field(description="The column with the number of a row's class")
    orders: dict[str, list[int]] = Field(
        description="The order of a column's values, as places in its domain, where it is another"
    )
    by_frequency: list[str] = Field(
        description="Columns whose order is that of how frequent their values are"
    )
    groups: dict[str, dict[str, list[int]]] = Field(
        description="By column, names that stand for several values, with their first and last "
        "place in the column's order"
    )
    cuts: str | None = Field(description="mondrian: which cuts were tried first")
    relaxed: bool = Field(description="mondrian: True where rows with equal values were divided")
    levels: dict[str, int] | None = Field(
        description="fulldomain: the level of its hierarchy that each column is shown at"
    )
    population: bool = Field(
        description="True: classes/ says how many rows of a public table lie in each class"
    )
    removed: int = Field(ge=0, description="Rows that were left out, for no class could hold them")
    error_model: ClassErrorModel | None = Field(
        default=None, description="Since version 2: errors of answers; null: none is stated"
    )
    weak: bool = Field(
        default=False, description="Since version 2: published although the promise says nothing"
    )


class Required(ManifestPart):
    """One requirement, and what the classes have."""

    requirement: dict[str, Any] = Field(
        description="kind, its parameters, and the number of the sensitive attribute"
    )
    attribute: str | None = Field(description="The sensitive attribute that it is about")
    measured: float = Field(description="The worst class's size, share or distance")


class ClassGuarantee(ManifestPart):
    """What every class of rows has."""

    kind: Literal["classes"] = "classes"
    requirements: list[Required]
    unit: str


class ClassManifest(Manifest):
    """Rows that were grouped into classes."""

    method: Method
    parameters: ClassParameters
    guarantee: ClassGuarantee
    since_2: ClassVar[LaterKeys] = {**Manifest.since_2, "parameters": {"error_model", "weak"}}

    def check(self) -> None:
        """Refuse parameters that do not fit the schema, or requirements that are none."""
        schema, p = self.schema_, self.parameters
        if [*p.qi, *p.sensitive, *p.insensitive] != schema.names:
            raise ValueError("the parameters do not name the columns of the schema")
        if p.classes > max(1, self.rows):
            raise ValueError(f"{p.classes:,} classes are more than {self.rows:,} rows")
        for name, order in p.orders.items():
            if sorted(order) != list(range(schema[name].size)):
                raise ValueError(f"the order of {name!r} is not one of its values")
        if not set(p.by_frequency) <= set(p.qi):
            raise ValueError("only quasi-identifiers have an order")
        if not set(p.exact) <= set(p.qi):
            raise ValueError("only quasi-identifiers are listed as exact")
        _ = self.requirements

    @property
    def requirements(self) -> list[Requirement]:
        """What every class meets."""
        return [requirement_from_dict(r.requirement) for r in self.guarantee.requirements]

    def named(self, entry: Required) -> str:
        """The name of a requirement among those of the options."""
        kind = str(entry.requirement["kind"])
        several = len(self.parameters.sensitive) > 1 and entry.attribute is not None
        return f"{kind}:{entry.attribute}" if several else kind

    @property
    def generalized(self) -> list[str]:
        """The quasi-identifiers that are shown as ranges."""
        p = self.parameters
        if p.recode == "bucketize":
            return []
        return [name for name in p.qi if name not in p.exact]

    @property
    def rows_column(self) -> str:
        """How many rows it is about, in classes/ and sensitive/."""
        return free_name(ROWS, self.schema_.names)

    @property
    def population_column(self) -> str:
        """The column of classes/ with the rows of the public table."""
        return free_name(POPULATION, self.schema_.names)

    def end_columns(self, name: str) -> tuple[str, str]:
        """The columns of classes/ with the first and last place of a generalized column."""
        names = self.schema_.names
        return free_name(f"{name}:low", names), free_name(f"{name}:high", names)

    @property
    def class_attribute(self) -> Attribute:
        """The attribute of class numbers."""
        p = self.parameters
        return Attribute(p.class_column, "integer", Range(0, p.classes - 1))


def class_column(names: list[str]) -> str:
    """A name for the column of class numbers that no column of the table has."""
    return free_name("class", names)


def grouped_disclosed(schema: Schema, parameters: ClassParameters, nulls: str) -> list[Disclosed]:
    """What the release discloses exactly, with why."""
    p = parameters
    found = [Disclosed(what="the number of rows of every class", why="every row is shown")]
    if nulls == "drop":
        why = "--nulls drop leaves the others out; --nulls as-value avoids that"
        found.append(Disclosed(what="the number of rows in which nothing is missing", why=why))
    if p.removed:
        why = "answers are not about them, which whoever counts must know"
        found.append(Disclosed(what="the number of rows that were left out", why=why))
    if p.error_model is not None:
        why = "intervals are made of it; --no-error-model leaves it out"
        what = "how far answers on random questions are off, as three rounded numbers"
        found.append(Disclosed(what=what, why=why))
    if p.recode == "bucketize":
        why = "rows are bucketized; --recode generalize shows ranges"
        found += [Disclosed(what=f"{name} of every row", why=why) for name in p.qi]
    else:
        found += [
            Disclosed(what=f"{name} of every row", why="no class needed a range")
            for name in p.exact
        ]
    why = "unordered values are cut from the most frequent on; a hierarchy avoids that"
    found += [
        Disclosed(what=f"which values of {name} are more frequent", why=why)
        for name in p.by_frequency
    ]
    found += [
        Disclosed(what=f"{name} of every row", why="it was declared insensitive")
        for name in p.insensitive
    ]
    found += [
        Disclosed(
            what=f"how often each value of {name} occurs in every class",
            why="it is what the table is published for",
        )
        for name in p.sensitive
    ]
    return found + read_off_disclosed(schema)
