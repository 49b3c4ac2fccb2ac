"""Options that several kinds share: the columns, their domain, NULLs, the name, and simulations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import Field

from voile.errors import UsageError, spelled
from voile.options import NAMES, Flag, MaybeNames, Names, Options, Reader
from voile.options.choices import Nulls

if TYPE_CHECKING:
    from voile.learning import LearntSchema
    from voile.schema import Schema

    SchemaSource = Schema | LearntSchema | str | Path | Mapping[str, Any]
    """A domain, where it is declared, or 'active': what the table holds."""
else:
    SchemaSource = Any  # checked where it is read; models must load without it

PATH = Reader(Path, lambda _, path: path)


def hierarchy_files(_: str, given: list[str]) -> dict[str, str]:
    """COLUMN=FILE.csv by column."""
    from voile.hierarchies import hierarchy_options  # noqa: PLC0415  (flags load without it)

    return hierarchy_options(given)


ColumnsOption = Annotated[
    MaybeNames, Flag("Columns to use: a,b,c (quote names with commas).", reads=NAMES)
]
SchemaOption = Annotated[
    SchemaSource | None,
    Flag("A codebook that declares the domain, or active: what the table holds.", reads=PATH),
]
NullsOption = Annotated[Nulls, Flag("error, drop or as-value.")]
NameOption = Annotated[str | None, Flag("The table's name in SQL.")]
NullTextOption = Annotated[
    Names,
    Flag("Text that means NULL, e.g. '?'.", reads=Reader(list[str], lambda _, given: given)),
]
SeedOption = Annotated[
    int | None, Flag("For simulations: coins from this seed. Protects nobody; is marked.")
]
MOST_ROWS_PER_PERSON = 10_000
PersonOption = Annotated[
    str | None,
    Flag("The column that says whose a row is, where people have several; it is not published."),
]
RowsPerPersonOption = Annotated[
    int | None,
    Flag(
        "With --person: rows of each person that are kept, chosen by chance (1 if not given).",
        hint="1 or a few: noise grows with it",
    ),
    Field(ge=1, le=MOST_ROWS_PER_PERSON),
]
HierarchiesOption = Annotated[
    Mapping[str, Any] | None,
    Flag(
        "COLUMN=FILE.csv: its coarser values; see voile hierarchy.",
        name="--hierarchy",
        reads=Reader(list[str], hierarchy_files),
    ),
]


class DomainOptions(Options):
    """The columns of a table and their domain, for those who ask for nothing else."""

    columns: ColumnsOption = None
    schema_: SchemaOption = Field(default=None, alias="schema")
    nulls: NullsOption = "error"


# ---------------------------------------------------------------------- people with several rows


class PersonOptions(Protocol):
    """Options that name the column of people."""

    @property
    def person(self) -> str | None:
        """The column that says whose a row is."""

    @property
    def rows_per_person(self) -> int | None:
        """How many rows of each are kept; 1 if not given."""


def check_person(options: PersonOptions) -> None:
    """Refuse options about people that contradict each other."""
    person, columns = options.person, getattr(options, "columns", None)
    if person is None and options.rows_per_person is not None:
        raise UsageError(
            f"{spelled('rows_per_person')} needs {spelled('person')}",
            hint=f"name the column that says whose a row is: {spelled('person', 'COLUMN')}",
        )
    if person is not None and columns is not None and person in columns:
        others = [name for name in columns if name != person]
        raise UsageError(
            f"column {person!r} says whose a row is, and cannot be published",
            hint=f"leave it out: {spelled('columns', others)}"
            if others
            else f"name other {spelled('columns')}",
        )
