"""The options of noisy views."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from pydantic import Field, model_validator

from voile.errors import UsageError, spelled
from voile.kinds.options import (
    ColumnsOption,
    EpsilonOption,
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
from voile.options.choices import Adversary, Form, Nulls

POSTERIOR = 0.2
EPSILON_PRIOR = 0.01
"""d of a view that promises ε: small enough that records are kept as often as ε allows, nearly."""
SERIES = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def epsilon_promise(epsilon: float) -> tuple[float, float]:
    """(d, γ) of a view that is ε-differentially private for adding or removing a record."""
    from voile.privacy.guarantee import after  # noqa: PLC0415  (flags load without it)

    return EPSILON_PRIOR, after(EPSILON_PRIOR, epsilon)


class ViewOptions(Options):
    """All that a steward asks of a view, checked before the table is read.

    The prior is `prior`, or `prior_factor`·n/m (10 if neither is given). `rows` is the form, and
    is the steward's choice, never the data's: the choice would leak.
    """

    method: Annotated[Literal["alphabeta"], Flag("How the view is made.")] = "alphabeta"
    prior_factor: Annotated[
        float | None,
        Flag("k: protect beliefs up to d = k·n/m (10 if not given).", hint="the paper's is 10"),
        Field(gt=0, allow_inf_nan=False),
    ] = None
    prior: Annotated[float | None, Flag("d: protect beliefs up to this (instead of a factor).")] = (
        None
    )
    posterior: Annotated[float, Flag("γ: no such belief may exceed this.")] = POSTERIOR
    epsilon: EpsilonOption = None
    adversary: Annotated[Adversary, Flag("independent or exclusive.")] = "independent"
    retention: Annotated[
        float | None,
        Flag(
            "Chance that a record is kept (the best one; the paper's is 0.5).",
            hint="the paper's is 0.5",
        ),
        Field(gt=0, le=1),
    ] = None
    max_view_ratio: Annotated[
        float | None, Flag("At most this many rows out per row in, on average.")
    ] = None
    noise_prior: Annotated[
        Any,
        Flag(
            "Shape the noise: chances by attribute (YAML, JSON), a public table with the "
            "same columns, or 'product' for the table's own marginals, which are then disclosed."
        ),
    ] = None
    noise_floor: Annotated[float | None, Flag("Share of shaped noise spread evenly (0.1).")] = None
    columns: ColumnsOption = None
    schema_: SchemaOption = Field(default=None, alias="schema")
    rows: Annotated[Form | None, Flag("multiset, or set for tables without repetitions.")] = (
        "multiset"
    )
    distinct: Annotated[bool, Flag("With --rows set: drop repeated rows.")] = False
    nulls: NullsOption = "error"
    series: Annotated[
        str | None, Flag("One of many views of a changing table: the series' name.")
    ] = None
    views: Annotated[
        int | None, Flag("With --series: views it may have in all (4 if not given).")
    ] = None
    changes_at_most: Annotated[
        int | None,
        Flag(
            "With --series: rows added or removed between views, at most; public.",
            hint="count the rows that are added and those that are removed; 0 means never",
        ),
        Field(ge=0),
    ] = None
    always_fresh: Annotated[bool, Flag("With --series: a new view of unchanged data too.")] = False
    ledger: Annotated[
        str | Path | None,
        Flag("With --series: its secret file (NAME.series beside the release)."),
    ] = None
    counter: Annotated[
        str | Path | None,
        Flag("With --series: a file elsewhere that notices an older copy of the ledger."),
    ] = None
    person: PersonOption = None
    rows_per_person: RowsPerPersonOption = None
    weak: WeakOption = False
    name: NameOption = None
    simulate_seed: SeedOption = None

    @model_validator(mode="after")
    def _check(self) -> ViewOptions:
        self._check_promise()
        self._check_shape()
        self._check_series()
        self._check_person()
        if self.distinct and self.rows != "set":
            raise UsageError(
                f"{spelled('distinct', True)} belongs to {spelled('rows', 'set')}",
                hint=f"add {spelled('rows', 'set')}, or leave it out",
            )
        return self

    def _check_promise(self) -> None:
        from voile.privacy.guarantee import DGamma  # noqa: PLC0415  (flags load without it)

        if self.epsilon is not None:
            for name in self.given("prior_factor", "prior", "posterior"):
                raise UsageError(
                    f"{spelled('epsilon')} and {spelled(name)} are two promises",
                    hint="give one of them",
                )
            if self.adversary == "exclusive" or self.series is not None:
                other = spelled("series") if self.series else spelled("adversary", "exclusive")
                raise UsageError(
                    f"{other} does not go with {spelled('epsilon')}",
                    hint=f"state the promise with {spelled('prior')} and {spelled('posterior')}",
                )
        if self.prior_factor is not None and self.prior is not None:
            raise UsageError(
                f"{spelled('prior')} and {spelled('prior_factor')} were both given",
                hint="give one of them",
            )
        # Any prior below the posterior will do where it is not known yet.
        DGamma(self.prior or self.posterior / 2, self.posterior, self.adversary)

    def _check_person(self) -> None:
        """Where a person's rows are not those of one group of records, nothing is known of them."""
        check_person(self)
        if self.person is None:
            return
        if self.series is not None:
            raise UsageError(
                f"{spelled('person')} does not go with {spelled('series')}: other rows of a person "
                "would be kept for each view",
                hint="leave one of them out",
            )
        if self.form == "set":
            raise UsageError(
                f"{spelled('person')} is for {spelled('rows', 'multiset')}: a tuple of a set may "
                "be of several people",
                hint=f"leave {spelled('rows')} out",
            )
        if self.noise_prior is not None and (self.rows_per_person or 1) > 1:
            raise UsageError(
                f"{spelled('rows_per_person', self.rows_per_person)} does not go with "
                f"{spelled('noise_prior')}: what shaped noise promises is about one record",
                hint=f"{spelled('rows_per_person', 1)}, or even noise",
            )

    def _check_shape(self) -> None:
        shaped = spelled("noise_prior")
        if self.noise_prior is None:
            if self.noise_floor is not None:
                raise UsageError(f"{spelled('noise_floor')} belongs to {shaped}", hint="give both")
            return
        if self.form == "set":
            raise UsageError(
                f"{shaped} is for {spelled('rows', 'multiset')}",
                hint="a likely tuple needs several copies of noise, which a set cannot hold",
            )
        if self.max_view_ratio is not None:
            raise UsageError(
                f"{spelled('max_view_ratio')} does not go with {shaped}",
                hint=f"a smaller {spelled('retention')} makes the view smaller",
            )

    def _check_series(self) -> None:
        if self.series is None:
            for name in self.given("views", "changes_at_most", "always_fresh", "ledger", "counter"):
                raise UsageError(
                    f"{spelled(name)} belongs to {spelled('series')}", hint="name the series"
                )
            return
        if not SERIES.fullmatch(self.series):
            raise UsageError(
                f"{self.series!r} cannot name a series",
                hint="use letters, digits, '-', '_' and '.', such as people-by-quarter",
            )
        if self.views is not None:
            from voile.privacy.series import check_views  # noqa: PLC0415  (flags load without it)

            check_views(self.views)
        for name in self.given("noise_prior", "max_view_ratio"):
            raise UsageError(
                f"{spelled(name)} does not go with {spelled('series')}", hint="leave one out"
            )

    @property
    def form(self) -> Form:
        """Whether the table may repeat a row; as a multiset it may."""
        return self.rows or "multiset"

    @property
    def drop_nulls(self) -> bool:
        """Whether rows with NULLs are left out."""
        return self.nulls == "drop"

    @property
    def tells_rows(self) -> bool:
        """Whether a published parameter is a function of n, from which n follows."""
        by_factor = self.prior is None and self.epsilon is None
        return by_factor or self.max_view_ratio is not None


class ViewKeywords(TypedDict, total=False):
    """The same as keywords, but for those of `publish` itself."""

    prior: float | None
    epsilon: float | None
    adversary: Adversary
    max_view_ratio: float | None
    noise_prior: Any
    noise_floor: float | None
    schema: SchemaSource | None
    distinct: bool
    nulls: Nulls
    series: str | None
    views: int | None
    changes_at_most: int | None
    always_fresh: bool
    ledger: str | Path | None
    counter: str | Path | None
    person: str | None
    rows_per_person: int | None
    weak: bool
    name: str | None


class ViewTableKeywords(ViewKeywords, total=False):
    """All options of a view as keywords."""

    method: Literal["alphabeta"]
    prior_factor: float | None
    posterior: float
    retention: float | None
    columns: Sequence[str] | None
    rows: Form | None
    simulate_seed: int | None
