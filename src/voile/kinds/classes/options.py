"""The options of classes of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from voile.errors import PromiseError, UsageError, spelled
from voile.kinds.options import (
    HierarchiesOption,
    NameOption,
    NullsOption,
    SchemaOption,
    SchemaSource,
    SeedOption,
)
from voile.options import NAMES, NUMBERS, WHOLE_NUMBERS, Flag, Names, Options
from voile.options.choices import Cuts, Loss, Method, Nulls, Recode, Suppressed
from voile.options.requirements import RequirementKeywords, RequirementOptions

BUCKETS = ("anatomy", "freeshape")
"""Methods that make buckets."""
OWN: dict[str, tuple[str, ...]] = {
    "cuts": ("mondrian",),
    "relaxed": ("mondrian",),
    "suppression": ("fulldomain", "suppress"),
    "suppressed": ("fulldomain", "suppress"),
    "loss": ("fulldomain", "suppress"),
}
"""Options that only some methods have."""


VACUOUS: Mapping[str, tuple[Callable[[float, RequirementOptions], bool], float]] = {
    "k": (lambda number, _: number <= 1, 10),
    "l": (lambda number, _: number <= 1, 3),
    "t": (lambda number, of: number >= (math.log(2) if of.t_distance == "js" else 1), 0.2),
    "semantic": (lambda number, of: of.absent == "ignored" and number >= 10, 1),
    "alpha": (lambda number, _: number >= 1, 0.5),
}
"""Which values of a requirement every class meets, and one that promises something."""


class RoleOptions(Options):
    """Which columns are what, and how they are shown."""

    method: Annotated[Method, Flag("How rows are grouped.")] = "mondrian"
    qi: Annotated[
        Names,
        Flag("Quasi-identifiers, what others may know of a person: age,sex,zip.", reads=NAMES),
    ] = ()
    sensitive: Annotated[Names, Flag("Sensitive attributes: disease or a,b.", reads=NAMES)] = ()
    insensitive: Annotated[Names, Flag("Columns that are shown as they are.", reads=NAMES)] = ()
    identifiers: Annotated[Names, Flag("Columns that are left out.", reads=NAMES)] = ()
    recode: Annotated[
        Recode | None,
        Flag("generalize: show ranges; bucketize: hide which value is whose."),
    ] = None


class ClassOptions(RequirementOptions, RoleOptions):
    """Which columns are what, what every class must have, and how classes are found."""

    population: Annotated[Any, Flag("With --presence: a public table of everybody.")] = None
    cuts: Annotated[
        Cuts | None, Flag("mondrian: boxes, certainty, median, information or hierarchy.")
    ] = None
    relaxed: Annotated[bool, Flag("mondrian: rows with equal values may be divided.")] = False
    suppression: Annotated[
        float,
        Flag("fulldomain, suppress: share of rows that may be left out.",
             hint="0.02: one row in fifty"),
        Field(ge=0, lt=1),
    ] = 0.0  # fmt: skip
    suppressed: Annotated[
        Suppressed | None, Flag("With --suppression: such rows are removed, or shown as *.")
    ] = None
    loss: Annotated[
        Loss | None, Flag("fulldomain: ncp, discernibility, levels or entropy is least.")
    ] = None
    error_model: Annotated[
        bool,
        Flag("State errors measured on random questions as three rounded numbers, or do not.",
             name="--error-model/--no-error-model"),
    ] = True  # fmt: skip
    weak: Annotated[
        bool, Flag("Publish although the promise says nothing; the release is marked.")
    ] = False
    hierarchies: HierarchiesOption = None
    schema_: SchemaOption = Field(default=None, alias="schema")
    nulls: NullsOption = "error"
    name: NameOption = None
    simulate_seed: SeedOption = None

    @classmethod
    def instead(cls, name: str) -> str:
        """What to use instead of --columns."""
        if name != "columns":
            return ""
        return (
            f"of classes, {spelled('qi')} and {spelled('sensitive')} name columns, "
            f"{spelled('identifiers')} leaves them out"
        )

    @model_validator(mode="after")
    def _check(self) -> ClassOptions:
        self._check_columns()
        self._check_method()
        self._check_buckets()
        self._check_presence()
        self._check_weak()
        return self

    def _check_weak(self) -> None:
        """Refuse requirements that every class meets, unless others promise something."""
        if self.weak or self.simulate_seed is not None or not is_vacuous(self):
            return
        name, shown, some = vacuous(self)[0]
        raise PromiseError(
            f"{shown} promises nothing: every class meets it",
            hint=f"{spelled(name, some)} promises something; {spelled('weak', True)} publishes "
            "nevertheless",
        )

    def _check_columns(self) -> None:
        if not self.qi:
            raise UsageError(
                "no quasi-identifiers were named",
                hint=f"{spelled('qi', ['age', 'sex', 'zip'])}: what others may know of a person",
            )
        seen: dict[str, str] = {}
        for role in ("qi", "sensitive", "insensitive", "identifiers"):
            for name in getattr(self, role):
                if name in seen:
                    raise UsageError(
                        f"column {name!r} is in {spelled(seen[name])} and in {spelled(role)}",
                        hint="every column is one of them",
                    )
                seen[name] = role

    def _check_method(self) -> None:
        for name in self.given(*OWN):
            if self.method not in OWN[name]:
                methods = " or ".join(spelled("method", method) for method in OWN[name])
                raise UsageError(
                    f"{spelled(name)} belongs to {methods}", hint=f"leave {spelled(name)} out"
                )
        if self.relaxed and self.cuts not in (None, "median"):
            raise UsageError(
                f"{spelled('relaxed', True)} does not go with {spelled('cuts', self.cuts)}",
                hint="leave one of them out",
            )

    def _check_buckets(self) -> None:
        named = spelled("sensitive", "disease")
        if self.method in BUCKETS:
            if self.recode == "generalize":
                raise UsageError(
                    f"{spelled('method', self.method)} makes buckets, whose ranges would show "
                    "nothing",
                    hint=f"leave {spelled('recode')} out, or use {spelled('method', 'mondrian')}",
                )
            if not self.sensitive:
                raise UsageError(
                    f"{spelled('method', self.method)} needs a sensitive attribute", hint=named
                )
        if self.recoded == "bucketize" and not self.sensitive:
            raise UsageError(
                f"{spelled('recode', 'bucketize')} hides which sensitive value is whose, and none "
                "was named",
                hint=named,
            )

    def _check_presence(self) -> None:
        presence, population = spelled("presence"), spelled("population")
        if (self.presence is None) != (self.population is None):
            raise UsageError(
                f"{presence} and {population} go together",
                hint=f"{spelled('presence', (0.01, 0.2))} {spelled('population', 'people.csv')}",
            )
        if self.presence is not None and self.recoded == "bucketize":
            raise PromiseError(
                "bucketized rows show everyone's quasi-identifiers, and so who is there",
                hint=f"{spelled('recode', 'generalize')} can keep δ-presence",
            )
        if self.presence is not None and self.cuts == "boxes":
            raise UsageError(
                f"{presence} does not go with {spelled('cuts', 'boxes')}: a share of the public "
                "table is counted in whole regions, and boxes may overlap",
                hint=f"use {spelled('cuts', 'certainty')}, as without {spelled('cuts')}",
            )
        if self.presence is not None and self.relaxed:
            raise UsageError(
                f"{presence} does not go with {spelled('relaxed', True)}",
                hint="leave one of them out",
            )

    @property
    def recoded(self) -> Recode:
        """How classes are shown: the option, or what the method implies."""
        if self.recode is not None:
            return self.recode
        return "bucketize" if self.method in BUCKETS else "generalize"

    @property
    def cuts_made(self) -> Cuts | None:
        """The cuts of Mondrian: the option, or those that lose least of what can be had."""
        if self.method != "mondrian" or self.cuts is not None:
            return self.cuts
        if self.relaxed or self.recoded == "bucketize":  # buckets show no box
            return "median"
        return "boxes" if self.presence is None else "certainty"

    @property
    def of_single_rows(self) -> bool:
        """Whether rows that are alike are dealt out one by one."""
        return self.relaxed or self.method in BUCKETS

    @property
    def listed(self) -> list[str]:
        """The columns of the release."""
        return [*self.qi, *self.sensitive, *self.insensitive]


def vacuous(options: RequirementOptions) -> list[tuple[str, str, float]]:
    """Requirements that every class meets: the option, as it was given, and a better value."""
    found = []
    for name, (is_void, some) in VACUOUS.items():
        given = getattr(options, name)
        for of, value in given.items() if isinstance(given, Mapping) else (("", given),):
            if value is not None and is_void(value, options):
                found.append((name, spelled(name, {of: value} if of else value), some))
    return found


def is_vacuous(options: RequirementOptions) -> bool:
    """Whether some requirement is given, and every class meets all that are."""
    each = [getattr(options, name) for name in ("k", "l", "t", "semantic", "alpha", "presence")]
    given = sum(len(x) if isinstance(x, Mapping) else 1 for x in each if x is not None)
    return given > 0 and len(vacuous(options)) == given


class GroupKeywords(RequirementKeywords, total=False):
    """Options of classes as keywords, but for those that functions have themselves."""

    insensitive: Sequence[str]
    identifiers: Sequence[str]
    recode: Recode | None
    population: Any
    cuts: Cuts | None
    relaxed: bool
    suppression: float
    suppressed: Suppressed | None
    loss: Loss | None
    error_model: bool
    weak: bool
    hierarchies: Mapping[str, Any] | None
    schema: SchemaSource | None
    nulls: Nulls
    name: str | None
    simulate_seed: int | None


class ClassKeywords(GroupKeywords, total=False):
    """Options of `publish` where it makes classes."""

    qi: Sequence[str]
    sensitive: Sequence[str]


class GroupTableKeywords(ClassKeywords, total=False):
    """Options of `group_table`."""

    method: Method


class GeneralizeKeywords(GroupKeywords, total=False):
    """Options of `generalize`."""

    method: Method


# ----------------------------------------------------------------------
# the options of building a hierarchy for a column


WAYS = ("equal_width", "equal_depth", "multiples", "dates", "mask", "prefixes", "mapping",
        "suggest_by", "file")  # fmt: skip
JOINING = ("equal_width", "equal_depth", "suggest_by")


class HierarchyOptions(Options):
    """At most one way to build it; none means the shipped or the usual one."""

    equal_width: Annotated[
        int | None, Flag("So many ranges that are equally wide, then joined.")
    ] = None
    equal_depth: Annotated[
        int | None, Flag("So many ranges with equally many rows, then joined.")
    ] = None
    multiples: Annotated[
        Sequence[float] | None, Flag("Ranges that begin at multiples: 5,10,20.", reads=NUMBERS)
    ] = None
    dates: Annotated[bool, Flag("day → month → quarter → year.")] = False
    mask: Annotated[str | None, Flag("Hide one character after the other, from right or left.")] = (
        None
    )
    prefixes: Annotated[
        Sequence[int] | None,
        Flag("Keep the first so many characters: 3,2,1.", reads=WHOLE_NUMBERS),
    ] = None
    mapping: Annotated[
        str | Path | None,
        Flag("YAML or JSON: the values of each group, or the group of each value."),
    ] = None
    suggest_by: Annotated[
        str | None, Flag("Join values whose rows are alike in this sensitive column.")
    ] = None
    file: Annotated[str | Path | None, Flag("A hierarchy in ARX's CSV form.", name="--from")] = None
    fanout: Annotated[int | None, Flag("How many groups are joined into one (2 if not given).")] = (
        None
    )

    @model_validator(mode="after")
    def _check(self) -> HierarchyOptions:
        ways = self.given(*WAYS)
        if len(ways) > 1:
            raise UsageError(
                f"{' and '.join(map(self.spelled, ways))} are two ways to build one hierarchy",
                hint="give one",
            )
        if self.fanout is not None and not {*ways} & {*JOINING}:
            raise UsageError(
                f"{self.spelled('fanout')} says how many groups are joined into one",
                hint=f"it goes with {', '.join(map(self.spelled, JOINING[:-1]))} or "
                f"{self.spelled(JOINING[-1])}",
            )
        return self

    @property
    def way(self) -> str:
        """The one way that is given, as its flag is called; empty for none."""
        ways = self.given(*WAYS)
        return {"file": "--from"}.get(ways[0], f"--{ways[0].replace('_', '-')}") if ways else ""
