"""The options of `voile loss` and `voile frontier`, which Python's functions share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Required, TypedDict

from pydantic import Field

from voile.kinds.options import (
    HierarchiesOption,
    NullsOption,
    NullTextOption,
    SchemaOption,
    SchemaSource,
)
from voile.options import NAMES, Flag, MaybeNames, Names, Options
from voile.options.choices import Nulls

MIN_SUPPORT, QUERIES, SELECTIVITY = 0.05, 1000, 0.05
"""Where nothing is said."""
SupportOption = Annotated[
    float,
    Flag(
        "Populations of at least this share of the rows are large.", hint="0.05: one row in twenty"
    ),
    Field(gt=0, le=1),
]


class LossOptions(Options):
    """What is measured of a release, against the table that it was made of."""

    sensitive: Annotated[
        str | None, Flag("The sensitive column (that of the release, if it has one).")
    ] = None
    qi: Annotated[
        MaybeNames,
        Flag("Quasi-identifiers: a,b,c (those of the release, or all others).", reads=NAMES),
    ] = None
    min_support: SupportOption = MIN_SUPPORT
    hierarchies: HierarchiesOption = None
    queries: Annotated[int, Flag("Random counts to ask; 0 leaves them out.")] = QUERIES
    dimension: Annotated[
        int | None, Flag("Quasi-identifiers that a count asks about (4).")
    ] = None  # fmt: skip
    selectivity: Annotated[float, Flag("Share of the domain that a count asks for, about.")] = (
        SELECTIVITY
    )
    null_text: NullTextOption = ()


class LossKeywords(TypedDict, total=False):
    """The same as keywords."""

    sensitive: str | None
    qi: Sequence[str] | None
    min_support: float
    hierarchies: Mapping[str, Any] | None
    queries: int
    dimension: int | None
    selectivity: float
    null_text: Sequence[str]


class SubjectOptions(Options):
    """How a table is read whose releases are measured, and which populations count."""

    sensitive: Annotated[str, Flag("The sensitive column.")]
    qi: Annotated[
        Names, Flag("Quasi-identifiers, what others may know of a person: a,b,c.", reads=NAMES)
    ]
    identifiers: Annotated[
        Names, Flag("Columns that are left out, as all are that have no role.", reads=NAMES)
    ] = ()
    min_support: SupportOption = MIN_SUPPORT
    hierarchies: HierarchiesOption = None
    schema_: SchemaOption = Field(default=None, alias="schema")
    nulls: NullsOption = "error"
    null_text: NullTextOption = ()


class SubjectKeywords(TypedDict, total=False):
    """The same as keywords."""

    sensitive: Required[str]
    qi: Required[Sequence[str]]
    identifiers: Sequence[str]
    min_support: float
    hierarchies: Mapping[str, Any] | None
    schema: SchemaSource | None
    nulls: Nulls
    null_text: Sequence[str]


class FrontierOptions(SubjectOptions):
    """Which releases of a table are measured, and which of them may be recommended."""

    methods: Annotated[
        MaybeNames,
        Flag(
            "Of mondrian, information, anatomy, fulldomain, trivial (these if none is named), "
            "freeshape (takes minutes), alphabeta, retention.",
            reads=NAMES,
        ),
    ] = None
    grid: Annotated[
        str | Mapping[str, Sequence[float]],
        Flag("paper, quick, fine, or values: 'k=10,50;t=0.1,0.2'."),
    ] = "paper"
    also: Annotated[
        Mapping[str, float] | None,
        Flag("What every release has besides, such as k = 10.", name="--k, --l, --t"),
    ] = None
    most_p_loss: Annotated[
        float | None,
        Flag("Recommend nothing with a larger P_loss.", hint="it lies between 0 and ln 2"),
        Field(ge=0, allow_inf_nan=False),
    ] = None
    jobs: Annotated[int | None, Flag("Threads (as many as there are cores).")] = None


class FrontierKeywords(SubjectKeywords, total=False):
    """The same as keywords."""

    methods: Sequence[str] | None
    grid: str | Mapping[str, Sequence[float]]
    also: Mapping[str, float] | None
    most_p_loss: float | None
    jobs: int | None
