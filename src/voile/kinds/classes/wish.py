"""What a steward asks for when rows are to be grouped, checked before the table is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from voile.engines.table import NULLS, Nulls, Table
from voile.errors import PromiseError, UsageError, did_you_mean
from voile.kinds.options import check_options
from voile.kinds.views.wish import columns_option
from voile.recoding import Recode
from voile.schema import Schema

Grouping = Literal["mondrian", "anatomy", "fulldomain", "suppress", "freeshape", "trivial"]
GROUPINGS: tuple[str, ...] = get_args(Grouping)
Cuts = Literal["median", "information", "certainty", "hierarchy"]
ByAttribute = float | Mapping[str, float]


@dataclass(frozen=True)
class GroupWish:
    """Which columns are what, what every class must have, and how classes are found.

    l, t, semantic and alpha are numbers for all sensitive attributes, or by attribute.
    """

    method: Grouping = "mondrian"
    qi: Sequence[str] = ()
    sensitive: Sequence[str] = ()
    insensitive: Sequence[str] = ()
    """Columns that are shown as they are."""
    identifiers: Sequence[str] = ()
    """Columns that are left out."""
    recode: Recode | None = None
    k: int | None = None
    l: ByAttribute | None = None  # noqa: E741  (the requirement's name)
    l_measure: str = "frequency"
    c: float | None = None
    """recursive (c, ℓ)-diversity's c."""
    t: ByAttribute | None = None
    t_distance: str = "js"
    semantic: ByAttribute | None = None
    absent: str = "forbidden"
    alpha: ByAttribute | None = None
    presence: tuple[float, float] | None = None
    population: Any = None
    """A public table with the same quasi-identifiers, for presence."""
    cuts: str | None = None
    relaxed: bool = False
    suppression: float = 0.0
    """fulldomain: the share of rows that may be left out."""
    suppressed: str | None = None
    """fulldomain: whether rows that may be left out are removed, or shown with '*' everywhere."""
    loss: str | None = None
    """fulldomain: what the best levels are best in."""
    hierarchies: Mapping[str, Any] | None = None
    schema: Schema | str | Path | Mapping[str, Any] | None = None
    nulls: Nulls = "error"
    name: str | None = None
    simulate_seed: int | None = None

    @classmethod
    def of(cls, options: dict[str, Any]) -> GroupWish:
        check_options(cls, options)
        lists = ("qi", "sensitive", "insensitive", "identifiers")
        single = {n: [options[n]] for n in lists if isinstance(options.get(n), str)}
        return cls(**{**options, **single})

    def __post_init__(self) -> None:
        if self.method not in GROUPINGS:
            raise UsageError(
                f"method {self.method!r} is not known",
                hint=did_you_mean(self.method, list(GROUPINGS)),
            )
        if self.nulls not in NULLS:
            raise UsageError(f"nulls {self.nulls!r} is not known", hint=f"use {', '.join(NULLS)}")
        if self.recode not in (None, *get_args(Recode)):
            raise UsageError(
                f"recode {self.recode!r} is not known", hint="use generalize or bucketize"
            )
        self._check_columns()
        self._check_readings()
        self._check_method()
        self._check_presence()

    def _check_columns(self) -> None:
        if not self.qi:
            raise UsageError(
                "no quasi-identifiers were named",
                hint="--qi age,sex,zip: what others may know of a person",
            )
        parts = {"--qi": self.qi, "--sensitive": self.sensitive,
                 "--insensitive": self.insensitive, "--identifiers": self.identifiers}  # fmt: skip
        seen: dict[str, str] = {}
        for option, names in parts.items():
            for name in names:
                if name in seen:
                    raise UsageError(
                        f"column {name!r} is in {seen[name]} and in {option}",
                        hint="every column is one of them",
                    )
                seen[name] = option

    def _check_readings(self) -> None:
        """How something is measured is said for nothing where it is not asked for."""
        for option, given, usual, of, asked in (
            ("--l-measure", self.l_measure, "frequency", "--l", self.l),
            ("--t-distance", self.t_distance, "js", "--t", self.t),
            ("--absent", self.absent, "forbidden", "--semantic", self.semantic),
        ):
            if given != usual and asked is None:
                raise UsageError(
                    f"{option} {given} is given, and {of} is not", hint=f"give {of}, too"
                )

    def _check_method(self) -> None:
        own = {
            "--cuts": (self.cuts, ["mondrian"]),
            "--relaxed": (self.relaxed or None, ["mondrian"]),
            "--suppression": (self.suppression or None, ["fulldomain", "suppress"]),
            "--suppressed": (self.suppressed, ["fulldomain", "suppress"]),
            "--loss": (self.loss, ["fulldomain", "suppress"]),
        }
        for option, (value, methods) in own.items():
            if value is not None and self.method not in methods:
                raise UsageError(
                    f"{option} belongs to --method {' or '.join(methods)}",
                    hint=f"leave {option} out",
                )
        if self.cuts not in (None, *get_args(Cuts)):
            raise UsageError(
                f"cuts {self.cuts!r} are not known", hint=f"use {', '.join(get_args(Cuts))}"
            )
        if self.relaxed and self.cuts not in (None, "median"):
            raise UsageError(
                f"--relaxed does not go with --cuts {self.cuts}", hint="leave one of them out"
            )
        if not 0 <= self.suppression < 1:
            raise UsageError(
                f"suppression {self.suppression} must lie in [0, 1)", hint="0.02: one row in fifty"
            )
        if self.method in ("anatomy", "freeshape"):
            if self.recode == "generalize":
                raise UsageError(
                    f"--method {self.method} makes buckets, whose ranges would tell nothing",
                    hint="leave --recode out, or use --method mondrian",
                )
            if not self.sensitive:
                raise UsageError(
                    f"--method {self.method} needs a sensitive attribute",
                    hint="--sensitive disease",
                )
        if self.recoded == "bucketize" and not self.sensitive:
            raise UsageError(
                "--recode bucketize hides which sensitive value is whose, and none was named",
                hint="--sensitive disease",
            )

    def _check_presence(self) -> None:
        if (self.presence is None) != (self.population is None):
            raise UsageError(
                "--presence and --population go together",
                hint="--presence 0.01,0.2 --population people.csv",
            )
        if self.presence is not None and self.recoded == "bucketize":
            raise PromiseError(
                "bucketized rows show everyone's quasi-identifiers, and so who is there",
                hint="--recode generalize can keep δ-presence",
            )
        if self.presence is not None and self.relaxed:
            raise UsageError("--presence does not go with --relaxed", hint="leave one of them out")

    @property
    def recoded(self) -> Recode:
        if self.recode is not None:
            return self.recode
        return "bucketize" if self.method in ("anatomy", "freeshape") else "generalize"

    @property
    def listed(self) -> list[str]:
        """The columns of the release."""
        return [*self.qi, *self.sensitive, *self.insensitive]

    @property
    def requires(self) -> dict[str, Any]:
        """What `requirements_of` takes."""
        names = ("k", "l", "l_measure", "c", "t", "t_distance", "semantic", "absent", "alpha",
                 "presence")  # fmt: skip
        return {name: getattr(self, name) for name in names}


def check_roles(table: Table, wish: GroupWish) -> None:
    """Every column of the table has been given its part: none is published unawares."""
    table.check_columns([*wish.listed, *wish.identifiers])
    named = {*wish.listed, *wish.identifiers}
    if left := [name for name in table.columns if name not in named]:
        raise UsageError(
            f"it was not said what these columns are: {', '.join(left)}",
            hint=f"--identifiers {columns_option(left)} leaves them out, --insensitive shows them "
            "as they are; what others may know of a person belongs to --qi",
        )
