"""The options of rows that are perturbed one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Required, TypedDict

from pydantic import Field, field_validator, model_validator

from voile.errors import UsageError, spelled
from voile.kinds.options import (
    ColumnsOption,
    NameOption,
    NullsOption,
    PersonOption,
    RowsPerPersonOption,
    SchemaOption,
    SchemaSource,
    SeedOption,
    check_person,
)
from voile.options import BY_COLUMN, Flag, Options, Reader, by_name
from voile.options.choices import Nulls

WORDS = ("uniform", "identity", "swap")
CHANCES = (".yaml", ".yml", ".json")
"""What a file of chances is called like."""


def replacement(flag: str, given: list[str]) -> Any:
    """A word for all, words by column, or one file."""
    if len(given) == 1 and Path(given[0]).suffix.lower() in CHANCES:
        return Path(given[0])
    return by_name(flag, given, str)


class PerturbOptions(Options):
    """Which columns are perturbed, and how.

    `retention` is one number for all columns, or a mapping by name in which None stands for the
    others; columns that are in neither are public. `replace` likewise: uniform, identity or swap;
    a file or a mapping of chances makes it a declared distribution.
    """

    retention: Annotated[
        float | Mapping[str, float] | Mapping[str | None, float],
        Flag(
            "Chance that a value is kept: 0.3 for all columns, age=0.5 for one. 1, and columns "
            "that nothing is said of, are public.",
            hint="1 leaves a column as it is; 0.3 keeps about a third",
            reads=BY_COLUMN,
        ),
    ]
    replace: Annotated[
        Any,
        Flag(
            "Where other values come from: uniform, identity or swap, for all or as age=swap; or "
            "a file of chances (YAML, JSON).",
            reads=Reader(list[str], replacement),
        ),
    ] = "uniform"
    columns: ColumnsOption = None
    schema_: SchemaOption = Field(default=None, alias="schema")
    nulls: NullsOption = "error"
    whole_rows: Annotated[
        bool, Flag("Keep or replace the whole row (FRAPP's γ-diagonal matrix).")
    ] = False
    row_key: Annotated[
        str | None,
        Flag("A column by which this part is joined with others; stays as it is."),
    ] = None
    suppress_below: Annotated[
        int | None,
        Flag("With identity or swap: make values NULL that fewer rows have.", hint="such as 5"),
        Field(ge=2),
    ] = None
    most_epsilon: Annotated[
        float | None,
        Flag(
            "Refuse retentions with a larger local ε for a row, or for a person.", hint="such as 8"
        ),
        Field(gt=0),
    ] = None
    person: PersonOption = None
    rows_per_person: RowsPerPersonOption = None
    name: NameOption = None
    simulate_seed: SeedOption = None

    @field_validator("retention", mode="before")
    @classmethod
    def _check_retention(cls, given: Any) -> Any:
        by_column = given if isinstance(given, Mapping) else {None: given}
        for name, retention in by_column.items():
            where = "" if name is None else f" of {name!r}"
            number = isinstance(retention, int | float) and not isinstance(retention, bool)
            if not number or not 0 < retention <= 1:
                raise UsageError(
                    f"the retention{where} is {retention!r}, which must lie in (0, 1]",
                    hint="1 leaves a column as it is; 0.3 keeps about a third",
                )
        return given

    @model_validator(mode="after")
    def _check(self) -> PerturbOptions:
        check_person(self)
        if self.person is not None and self.row_key is not None:
            raise UsageError(
                f"{spelled('row_key')} does not go with {spelled('person')}: each part would keep "
                "other rows of a person",
                hint="perturb a table that has all columns, or leave one of them out",
            )
        if self.distribution is None:
            self._check_words()
        whole = spelled("whole_rows")
        if self.whole_rows and (
            self.distribution is not None or set(self.words.values()) != {"uniform"}
        ):
            raise UsageError(
                f"{whole} replaces by uniform tuples", hint=f"leave {spelled('replace')} out"
            )
        if self.whole_rows and set(self.retentions) != {None}:
            raise UsageError(
                f"{whole} keeps or replaces all columns together",
                hint=f"give one {spelled('retention')}",
            )
        return self

    def _check_words(self) -> None:
        for name, word in self.words.items():
            where = "" if name is None else f" for {name!r}"
            if word not in WORDS:
                raise UsageError(
                    f"{spelled('replace', word)}{where} is not known",
                    hint=f"use {', '.join(WORDS)}, or a file of chances (.yaml or .json)",
                )

    @property
    def retentions(self) -> Mapping[str | None, float]:
        """The retention of each column, and under None that of all others."""
        given = self.retention
        if isinstance(given, Mapping):
            return {name: kept for name, kept in given.items()}  # noqa: C416  (keys may be None)
        return {None: given}

    @property
    def distribution(self) -> Path | Mapping[str, Any] | None:
        """A declared distribution, where one is given."""
        given = self.replace
        if isinstance(given, Path | str) and Path(given).suffix.lower() in CHANCES:
            return Path(given)
        if isinstance(given, Mapping) and any(not isinstance(v, str) for v in given.values()):
            return given
        return None

    @property
    def words(self) -> Mapping[str | None, str]:
        """How each column's values are replaced, and under None those of all others."""
        given = self.replace
        return given if isinstance(given, Mapping) else {None: str(given)}


class PerturbKeywords(TypedDict, total=False):
    """Options as keywords, but for those that functions have themselves."""

    schema: SchemaSource | None
    nulls: Nulls
    whole_rows: bool
    row_key: str | None
    suppress_below: int | None
    most_epsilon: float | None
    person: str | None
    rows_per_person: int | None
    name: str | None


class PerturbTableKeywords(PerturbKeywords, total=False):
    """All options of perturbed rows as keywords."""

    retention: Required[float | Mapping[str, float] | Mapping[str | None, float]]
    replace: Any
    columns: Sequence[str] | None
    simulate_seed: int | None


class SpecKeywords(TypedDict, total=False):
    """Options of a survey's spec as keywords, but for its name and its codebook."""

    retention: Required[float | Mapping[str, float] | Mapping[str | None, float]]
    replace: Any
    columns: Sequence[str] | None
    whole_rows: bool
    most_epsilon: float | None
