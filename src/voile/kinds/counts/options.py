"""The options of tables of counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict

from pydantic import Field, model_validator

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
    WeakOption,
    check_person,
)
from voile.options import Flag, Options
from voile.options.choices import Noise, Nulls

DELTA, ETA, ARITY = 1.0, 1e-6, 2
MOST_HALVES = 100_000


class CountOptions(Options):
    """Tables of `arity` columns, of `subsets` halves or, if direct, of all rows."""

    method: Annotated[Literal["conjuncts"], Flag("How rows are counted.")] = "conjuncts"
    columns: ColumnsOption = None
    schema_: SchemaOption = Field(default=None, alias="schema")
    nulls: NullsOption = "error"
    arity: Annotated[
        int,
        Flag("conjuncts: a table for every set of so many columns (d).", hint="2 is usual"),
        Field(ge=1),
    ] = ARITY
    subsets: Annotated[
        int | None,
        Flag(
            "conjuncts: of so many random halves of the rows (t; what errs least).",
            hint="leave it out for the number that errs least, or count all rows: direct",
        ),
        Field(ge=2, le=MOST_HALVES),
    ] = None
    direct: Annotated[bool, Flag("conjuncts: of all rows, without halves.")] = False
    delta: Annotated[
        float | None,
        Flag(
            "conjuncts: δ, by which log-odds of a belief may rise (1 if not given). "
            "marginals: δ of (ε, δ) (1e-9 if not given)."
        ),
    ] = None
    eta: Annotated[float, Flag("conjuncts: η, the chance that they rise by more.")] = ETA
    rho: Annotated[
        float | None,
        Flag("conjuncts, marginals: ρ of zCDP over all tables, instead of δ or ε.",
             hint="0.5 is usual; a smaller one promises more"),
        Field(gt=0, allow_inf_nan=False),
    ] = None  # fmt: skip
    noise: Annotated[
        Noise,
        Flag("conjuncts: binomial or gaussian. marginals: gaussian or geometric."),
    ] = "binomial"
    person: PersonOption = None
    rows_per_person: RowsPerPersonOption = None
    weak: WeakOption = False
    name: NameOption = None
    simulate_seed: SeedOption = None

    @model_validator(mode="after")
    def _check(self) -> CountOptions:
        from voile.privacy.interactive.confidence import check_promise  # noqa: PLC0415  (flags load without it)

        check_person(self)
        if self.direct and self.subsets is not None:
            raise UsageError(
                f"{spelled('subsets')} does not go with {spelled('direct', True)}, which counts "
                "all rows "
                "at once",
                hint="leave one of them out",
            )
        if self.rho is not None and self.delta is not None:
            raise UsageError(
                f"{spelled('delta')} and {spelled('rho')} were both given", hint="give one of them"
            )
        check_promise(DELTA if self.delta is None else self.delta, self.eta, 1)
        return self

    @property
    def drop_nulls(self) -> bool:
        """Whether rows with a NULL are left out."""
        return self.nulls == "drop"


class CountKeywords(TypedDict, total=False):
    """The same as keywords."""

    columns: Sequence[str] | None
    schema: SchemaSource | None
    nulls: Nulls
    arity: int
    subsets: int | None
    direct: bool
    delta: float | None
    eta: float
    rho: float | None
    noise: Noise
    weak: bool
    person: str | None
    rows_per_person: int | None
    name: str | None
    simulate_seed: int | None
