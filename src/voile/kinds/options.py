"""Options that several kinds share: the columns, their domain, NULLs, the name, and simulations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeAlias, TypedDict

from pydantic import Field, model_validator

from voile.errors import UsageError, spelled
from voile.options import NAMES, Flag, MaybeNames, Names, Options, Reader
from voile.options.choices import MOST_ROWS_PER_PERSON, Nulls

if TYPE_CHECKING:
    from voile.learning import LearntSchema
    from voile.schema import Schema

    SchemaSource: TypeAlias = Schema | LearntSchema | str | Path | Mapping[str, Any]
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
    int | None, Flag("For simulations: noise from this seed. Protects nobody; is marked.")
]
EpsilonOption = Annotated[
    float | None,
    Flag(
        "ε of differential privacy, for adding or removing a person (1 if not given).",
        hint="1 is usual; a smaller one promises more",
    ),
    Field(gt=0, allow_inf_nan=False),
]
SchemaShareOption = Annotated[
    float | None,
    Flag(
        "The share of the budget that learning the domain may take, where no codebook declares it "
        "(0.1 if not given).",
        hint="0.1 is usual; 0.3 where columns have many values",
    ),
    Field(gt=0, lt=1, allow_inf_nan=False),
]
WeakOption = Annotated[
    bool, Flag("Publish although the promise says nothing; the release is marked.")
]
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


class AutomaticOptions(Options):
    """What a steward says who leaves the method to Voile: the promise, and what is published."""

    method: Annotated[Literal["auto"], Flag("Compare all, and take the best.")] = "auto"
    epsilon: EpsilonOption = None
    delta: Annotated[
        float | None,
        Flag(
            "δ of (ε, δ) (1e-9 if not given). conjuncts: δ, by which log-odds of a belief may "
            "rise (1 if not given).",
            hint="1e-9 is usual: less than one in the number of people",
        ),
        Field(gt=0, lt=0.5),
    ] = None
    columns: ColumnsOption = None
    schema_: SchemaOption = Field(default=None, alias="schema")
    schema_share: SchemaShareOption = None
    nulls: NullsOption = "error"
    on: Annotated[
        Names,
        Flag(
            "SQL whose error matters; repeatable. Else counts of one and two columns.",
            reads=Reader(list[str], lambda _, given: given),
        ),
    ] = ()
    person: PersonOption = None
    rows_per_person: RowsPerPersonOption = None
    weak: WeakOption = False
    yes: Annotated[bool, Flag("Publish also what is of little use, without asking.")] = False
    name: NameOption = None
    simulate_seed: SeedOption = None

    @model_validator(mode="after")
    def _check(self) -> AutomaticOptions:
        check_person(self)
        return self


class AutomaticKeywords(TypedDict, total=False):
    """The same as keywords."""

    epsilon: float | None
    delta: float | None
    columns: Sequence[str] | None
    schema: SchemaSource | None
    schema_share: float | None
    nulls: Nulls
    on: Sequence[str]
    person: str | None
    rows_per_person: int | None
    weak: bool
    yes: bool
    name: str | None
    simulate_seed: int | None


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
