"""The options of noisy marginals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from pydantic import Field, model_validator

from voile.errors import UsageError, spelled
from voile.kinds.options import (
    PATH,
    ColumnsOption,
    EpsilonOption,
    NameOption,
    NullsOption,
    PersonOption,
    RowsPerPersonOption,
    SchemaOption,
    SchemaShareOption,
    SchemaSource,
    SeedOption,
    WeakOption,
    check_person,
)
from voile.options import Flag, Options, Reader, split_names
from voile.options.choices import MarginalNoise, Nulls, Unit

EPSILON, DELTA = 1.0, 1e-9
HIGHEST_ORDER = 4
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-3, 100.0
SMALLEST_RHO, LARGEST_RHO = 1e-10, 5000.0
"""Beyond these, noise is too large to be drawn, or there is none."""


def table_sets(flag: str, text: str) -> tuple[tuple[str, ...], ...]:
    """Sets of columns, as in 'age,sex;education,salary'."""
    found = tuple(tuple(split_names(part)) for part in text.split(";") if part.strip())
    if not found:
        raise UsageError(f"{flag} names no columns", hint=f"write {flag} 'age,sex;education'")
    return found


class MarginalOptions(Options):
    """Noisy tables of every few columns, and a model fitted to them.

    The promise is (ε, δ), or ρ of zCDP, or with `pure` ε alone. Nothing here may be chosen by
    looking at the table: neither the tables nor the order nor the workload.
    """

    method: Annotated[Literal["marginals", "full-table"], Flag("How rows are counted.")] = (
        "marginals"
    )
    columns: ColumnsOption = None
    schema_: SchemaOption = Field(default=None, alias="schema")
    nulls: NullsOption = "error"
    epsilon: EpsilonOption = None
    delta: Annotated[
        float | None,
        Flag("conjuncts: δ, by which log-odds of a belief may rise (1 if not given). "
             "marginals: δ of (ε, δ) (1e-9 if not given)."),
    ] = None  # fmt: skip
    rho: Annotated[
        float | None,
        Flag("conjuncts, marginals: ρ of zCDP over all tables, instead of δ or ε.",
             hint="0.5 is usual; a smaller one promises more"),
        Field(gt=0, allow_inf_nan=False),
    ] = None  # fmt: skip
    pure: Annotated[
        bool, Flag("marginals: ε alone, with δ = 0: geometric noise, which is larger.")
    ] = False
    noise: Annotated[
        MarginalNoise | None,
        Flag("conjuncts: binomial or gaussian. marginals: gaussian or geometric."),
    ] = None
    order: Annotated[
        int | None,
        Flag("marginals: tables of up to so many columns (chosen from budget and size).",
             hint=f"1 to {HIGHEST_ORDER}; 3 is usual"),
        Field(ge=1, le=HIGHEST_ORDER),
    ] = None  # fmt: skip
    tables: Annotated[
        Sequence[Sequence[str]] | None,
        Flag("marginals: the tables to publish, as in 'age,sex;education,salary'.",
             reads=Reader(str, table_sets)),
    ] = None  # fmt: skip
    workload: Annotated[
        str | Path | Sequence[str] | None,
        Flag("marginals: a file of SQL questions, one a line, that matter most.", reads=PATH),
    ] = None
    unit: Annotated[
        Unit,
        Flag("marginals: who is protected: a row that is added or removed (add-remove), or one "
             "that is exchanged for another (exchange; discloses the number of rows)."),
    ] = "add-remove"  # fmt: skip
    bin_means: Annotated[
        bool,
        Flag("marginals: measure where in their bins numbers lie, from a twentieth of the budget "
             "where that makes averages sharper, or do not.",
             name="--bin-means/--no-bin-means"),
    ] = True  # fmt: skip
    person: PersonOption = None
    rows_per_person: RowsPerPersonOption = None
    schema_share: SchemaShareOption = None
    weak: WeakOption = False
    name: NameOption = None
    simulate_seed: SeedOption = None

    @model_validator(mode="after")
    def _check(self) -> MarginalOptions:
        given = [n for n in ("epsilon", "rho") if getattr(self, n) is not None]
        if len(given) > 1:
            raise UsageError(
                f"{spelled('epsilon')} and {spelled('rho')} were both given",
                hint="give one of them",
            )
        if self.rho is not None and (self.pure or self.delta is not None):
            other = spelled("pure", True) if self.pure else spelled("delta")
            raise UsageError(
                f"{other} does not go with {spelled('rho')}", hint="leave one of them out"
            )
        if self.pure and self.delta is not None:
            raise UsageError(
                f"{spelled('pure', True)} promises ε with δ = 0, and {spelled('delta')} was given",
                hint="leave one of them out",
            )
        if self.pure and self.noise == "gaussian":
            raise UsageError(
                f"{spelled('noise', 'gaussian')} keeps no ε with δ = 0, as {spelled('pure', True)} "
                "promises",
                hint="leave one of them out",
            )
        if self.rho is not None and self.noise == "geometric":
            raise UsageError(
                f"{spelled('rho')} is for normal noise, and {spelled('noise', 'geometric')} was "
                "given",
                hint=f"state the promise with {spelled('epsilon')}",
            )
        check_person(self)
        self._check_range()
        self._check_tables()
        return self

    def _check_tables(self) -> None:
        """One option says which tables there are; another would be left unread."""
        given = [n for n in ("tables", "workload", "order") if getattr(self, n) is not None]
        if given and self.method == "full-table":
            raise UsageError(
                f"{spelled(given[0])} does not go with {spelled('method', 'full-table')}: there is "
                "one table, of all columns",
                hint=f"say {spelled('method', 'marginals')}",
            )
        if len(given) > 1:
            one, other = given[:2]
            hints = {"tables": "the tables say how many columns they have"}
            raise UsageError(
                f"{spelled(one)} and {spelled(other)} were both given",
                hint=hints.get(one, "give one of them") if other == "order" else "give one of them",
            )

    def _check_range(self) -> None:
        if self.delta is not None and not 0 < self.delta < 0.5:
            raise UsageError(
                f"{spelled('delta', self.delta)} is not between 0 and ½",
                hint="1e-9 is usual: less than one in the number of people",
            )
        if self.epsilon is not None and not SMALLEST_EPSILON <= self.epsilon <= LARGEST_EPSILON:
            raise UsageError(
                f"{spelled('epsilon', self.epsilon)} is not between {SMALLEST_EPSILON:g} and "
                f"{LARGEST_EPSILON:g}",
                hint="1 is usual; a smaller one promises more",
            )
        if self.rho is not None and not SMALLEST_RHO <= self.rho <= LARGEST_RHO:
            raise UsageError(
                f"{spelled('rho', self.rho)} is not between {SMALLEST_RHO:g} and {LARGEST_RHO:g}",
                hint="0.02 is about ε = 1; a smaller one promises more",
            )

    @property
    def geometric(self) -> bool:
        """Whether noise is geometric."""
        return self.pure or self.noise == "geometric"

    @property
    def drop_nulls(self) -> bool:
        """Whether rows with a NULL are left out."""
        return self.nulls == "drop"


class MarginalKeywords(TypedDict, total=False):
    """The same as keywords."""

    columns: Sequence[str] | None
    schema: SchemaSource | None
    nulls: Nulls
    epsilon: float | None
    delta: float | None
    rho: float | None
    pure: bool
    noise: MarginalNoise | None
    order: int | None
    tables: Sequence[Sequence[str]] | None
    workload: str | Path | Sequence[str] | None
    unit: Unit
    bin_means: bool
    person: str | None
    rows_per_person: int | None
    schema_share: float | None
    weak: bool
    name: str | None
    simulate_seed: int | None
