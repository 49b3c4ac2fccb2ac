"""People with several rows: which of them are kept, and who is protected then.

A promise of one row is worth less to whoever has many. So at most c rows of each person are kept,
and what is promised holds for all that one person can do to these. Which rows are kept is decided
by coins of the rows themselves: neither by their order nor by what they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from voile.engines.table import Table
from voile.errors import TableError, UsageError, spelled
from voile.kinds.domain import is_active, read_schema
from voile.kinds.manifest import Manifest, ManifestPart
from voile.noise import Key
from voile.options.choices import MOST_ROWS_PER_PERSON
from voile.records import Record
from voile.units import counted

if TYPE_CHECKING:
    from voile.privacy.guarantees.statements import Statement

PURPOSE = "rows of a person"


class ProtectedPeople(ManifestPart):
    """Who is protected: a person, of whom at most so many rows were kept."""

    column: str = Field(
        min_length=1, max_length=1000, description="The column that says whose a row is"
    )
    rows_per_person: int = Field(
        ge=1, le=MOST_ROWS_PER_PERSON, description="At most so many rows of each person were kept"
    )

    @property
    def one(self) -> str:
        """Whom the promise is about."""
        most = self.rows_per_person
        return f"one person with {'one row' if most == 1 else f'up to {most:,} rows'}"

    @property
    def kept(self) -> str:
        """What was done to the table, as a sentence."""
        return (
            f"People may have several rows; the column {self.column} says whose a row is. At most "
            f"{counted(self.rows_per_person, 'row')} of each person were kept, chosen by chance: "
            "every count is of the rows that were kept."
        )


class PeopleManifest(Manifest):
    """A manifest of a release that may protect people with several rows."""

    people: ProtectedPeople | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="Since version 2: who is protected, where people may have several rows",
    )

    @property
    def rows_per_person(self) -> int:
        """c: rows that one person can have in what was published."""
        return 1 if self.people is None else self.people.rows_per_person

    def check_people(self) -> None:
        """Refuse a release that shows whose its rows are."""
        names = [str(one.get("name")) for one in self.attributes]
        if self.people is not None and self.people.column in names:
            raise ValueError(f"{self.people.column!r} says whose a row is, and is published")


def about_people(found: Sequence[Statement], people: ProtectedPeople | None) -> list[Statement]:
    """Statements about a person, where they were made of what a person can do."""
    if people is None:
        return list(found)
    word = f"'record' and 'row' stand for all rows of {people.one}"
    return [replace(one, condition="; ".join(filter(None, (one.condition, word)))) for one in found]


def kept_lines(people: ProtectedPeople | None) -> list[str]:
    """What a release says of its people, for README.md."""
    return [] if people is None else ["## Whose rows they are", people.kept, ""]


# ---------------------------------------------------------------------- options


def people_of(options: Any) -> ProtectedPeople | None:
    """Who is protected, as options say."""
    person = getattr(options, "person", None)
    if person is None:
        return None
    return ProtectedPeople(column=person, rows_per_person=options.rows_per_person or 1)


# ---------------------------------------------------------------------- the rows that are kept


@dataclass(frozen=True)
class PeopleCount(Record):
    """How many people there are, and what was left out of their rows: for the steward."""

    column: str
    rows_per_person: int
    people: int
    rows_left_out: int

    @property
    def words(self) -> str:
        """In a line."""
        people = "1 person" if self.people == 1 else f"{self.people:,} people"
        most = counted(self.rows_per_person, "row")
        return f"{people}, at most {most} of each; {counted(self.rows_left_out, 'row')} left out"


@dataclass(frozen=True, eq=False)
class BoundedRows:
    """A table with at most so many rows of each person, in place of the table that it is of.

    `publish` takes it as it takes a table: methods that are compared read the same rows.
    """

    source: Table
    """The table as it was."""
    table: Table
    """The rows that were kept, without the column that says whose they are."""
    count: PeopleCount

    @property
    def name(self) -> str:
        """The table's."""
        return self.source.name


def bounded(table: Table, person: str, rows_per_person: int, key: Key) -> BoundedRows:
    """At most so many rows of each person; which, is decided by coins of the key."""
    table.check_columns([person])
    if missing := table.null_counts([person]).get(person, 0):
        raise TableError(
            f"column {person!r} says whose a row is, and is NULL in {counted(missing, 'row')}",
            hint="leave such rows out of the table, or write into each of them whose it is: a "
            "value of its own, where it is a person of its own",
        )
    if len(table.columns) == 1:
        raise TableError(
            f"column {person!r} says whose a row is, and there is no other column",
            hint=f"name another {spelled('person')}, or a table with more columns",
        )
    salt = key.stream(PURPOSE).words(4).tobytes().hex()
    found = table.at_most(person, rows_per_person, salt)
    left_out = len(table) - len(found.table)
    return BoundedRows(
        table, found.table, PeopleCount(person, rows_per_person, found.values, left_out)
    )


def declared_names(schema: Any) -> list[str]:
    """The columns of a domain that is declared or was learnt; none where it is to be read off."""
    if schema is None or is_active(schema):
        return []
    return read_schema(getattr(schema, "schema", schema)).names


def kept_rows(table: Table | BoundedRows, options: Any) -> BoundedRows | None:
    """The rows that options keep; None where they name no people."""
    people = people_of(options)
    if isinstance(table, BoundedRows):
        if people is None or (table.count.column, table.count.rows_per_person) != (
            people.column,
            people.rows_per_person,
        ):
            raise UsageError(
                f"the rows of {table.name!r} were kept for other people than the options name",
                hint=f"give {spelled('person', table.count.column)} and "
                f"{spelled('rows_per_person', table.count.rows_per_person)}",
            )
        return table
    if people is None:
        return None
    if people.column in declared_names(getattr(options, "schema_", None)):
        raise UsageError(
            f"column {people.column!r} says whose a row is, and is in the schema",
            hint="leave it out of the codebook",
        )
    seed = getattr(options, "simulate_seed", None)
    key = Key.fresh() if seed is None else Key.from_seed(seed)
    return bounded(table, people.column, people.rows_per_person, key)
