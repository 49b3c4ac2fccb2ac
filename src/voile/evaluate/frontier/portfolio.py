"""The portfolio: which groupings are tried, and with which requirements."""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voile.errors import UsageError, did_you_mean, spelled
from voile.kinds.domain import columns_option
from voile.kinds.kind import FrontierMethod, Kind
from voile.kinds.registry import kinds
from voile.privacy.guarantee import LOG_RATIO, PROBABILITY, NumberRange

if TYPE_CHECKING:
    from voile.evaluate.frontier.subject import Subject

KINDS = ("k", "l", "t", "semantic")
"""The requirements on classes that a grid has values of."""
STRONGER = {"k": max, "l": max, "t": min, "semantic": min}
"""Which of two values of a requirement asks for more."""
POSSIBLE = {
    "k": NumberRange(1, with_low=True, whole=True),
    "l": NumberRange(1, with_low=True),
    "t": NumberRange(0, math.log(2), with_low=True, with_high=True),
    "semantic": LOG_RATIO,
    "posterior": PROBABILITY,
    "retention": NumberRange(0, 1, with_low=True, with_high=True),
}
"""What each may be at all; whether a table can have it is found out."""

Grid = Mapping[str, Sequence[float]]

GRIDS: dict[str, Grid] = {
    "quick": {"k": (10, 100, 1000), "l": (3, 4, 5), "t": (0.05, 0.1, 0.2, 0.3), "semantic": (2,),
              "posterior": (0.2, 0.5, 0.8), "retention": (0.5, 0.7, 0.9)},
    "paper": {
        "k": (10, 50, 100, 200, 500, 1000, 2000, 5000),
        "l": (3, 3.5, 4, 4.25, 4.5, 4.75, 5, 5.5),
        "t": (0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4),
        "semantic": (1, 1.2, 1.4, 1.5, 1.7, 1.9, 2, 2.1),
        "posterior": (0.2, 0.5, 0.8, 0.95),
        "retention": (0.1, 0.3, 0.5, 0.7, 0.9),
    },
    "fine": {
        "k": (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000),
        "l": (2, 2.5, 3, 3.25, 3.5, 3.75, 4, 4.25, 4.5, 4.75, 5, 5.25, 5.5, 6),
        "t": (0.02, 0.03, 0.04, 0.05, 0.06, 0.075, 0.0875, 0.1, 0.125, 0.15, 0.175, 0.2, 0.25,
              0.3, 0.35, 0.4),
        "semantic": (0.5, 0.75, 1, 1.2, 1.4, 1.5, 1.7, 1.9, 2, 2.1, 2.5, 3, 4),
        "posterior": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95),
        "retention": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    },
}  # fmt: skip
"""'paper' has the values of the study that the two losses are from."""


def frontier_methods() -> dict[str, FrontierMethod]:
    """The ways to publish that can be tried, of all kinds of releases; classes come first."""
    found = {name: how for kind in kinds() for name, how in kind.frontier().items()}
    return dict(sorted(found.items(), key=lambda item: not item[1].recodes))


def kind_for(name: str) -> Kind[Any]:
    """The kind of release that a method makes."""
    return next(kind for kind in kinds() if name in kind.frontier())


@dataclass(frozen=True)
class Candidate:
    """A release to be tried; a grouping is found once, and shown in one way or both."""

    method: str
    asked: Mapping[str, Any] = field(default_factory=dict)
    """Options of publishing that say what it must promise."""

    @property
    def how(self) -> FrontierMethod:
        """The method with its options."""
        return frontier_methods()[self.method]

    @property
    def options(self) -> dict[str, Any]:
        """All options of publishing."""
        return {**self.how.options, **self.asked}


def candidates(
    methods: Sequence[str], grid: Grid, also: Mapping[str, float] | None = None
) -> list[Candidate]:
    """Every method with every value of the grid that goes with it.

    `also` is what a steward asks of every release, besides.
    """
    also = also or {}
    found = []
    for name in methods:
        method = frontier_methods()[name]
        asked = [{}] if not method.varied else [
            options
            for kind in method.varied
            for value in grid.get(kind, method.values.get(kind, ()))
            if not method.whole or value == int(value)
            for options in with_readings(kind, value)
        ]  # fmt: skip
        found += [Candidate(name, stronger(options, also)) for options in asked]
    return [candidate for candidate, _ in itertools.groupby(found)]


def with_readings(kind: str, value: float) -> list[dict[str, Any]]:
    """The options of a requirement; semantic privacy can be read in two ways."""
    if kind == "k":
        return [{"k": int(value)}]
    if kind == "semantic":
        return [{"semantic": value, "absent": absent} for absent in ("forbidden", "ignored")]
    return [{kind: value}]


def stronger(options: Mapping[str, Any], also: Mapping[str, float]) -> dict[str, Any]:
    """Both, where a kind is in both the stronger of the two."""
    joined = dict(options)
    for kind, value in also.items():
        joined[kind] = STRONGER[kind](joined[kind], value) if kind in joined else value
    return joined


def check_methods(names: Sequence[str] | str | None) -> list[str]:
    """The methods that were named; if none was, all that need not be."""
    known = frontier_methods()
    if names is None:
        return [name for name, method in known.items() if not method.named]
    listed = [names] if isinstance(names, str) else list(names)
    for name in listed:
        if name not in known:
            raise UsageError(f"there is no method {name!r}", hint=did_you_mean(name, list(known)))
    if not listed:
        raise UsageError("no method was named", hint=f"use {', '.join(known)}")
    return list(dict.fromkeys(listed))


def check_also(also: Mapping[str, float] | None) -> Mapping[str, float]:
    """What every release must have besides, if that can be."""
    for kind, value in (also or {}).items():
        check_kind(kind, KINDS, "what every release must have")
        POSSIBLE[kind].check(kind, value)
    return also or {}


def read_grid(text: str | Grid) -> Grid:
    """A grid by its name, or as 'k=10,50;t=0.1,0.2'."""
    if not isinstance(text, str):
        return {kind: read_values(kind, values) for kind, values in text.items()}
    if text in GRIDS:
        return GRIDS[text]
    found: dict[str, tuple[float, ...]] = {}
    for part in text.split(";"):
        kind, equals, values = part.partition("=")
        if not equals:
            raise UsageError(
                f"{spelled('grid', text)} is neither a name nor KIND=VALUES",
                hint=f"use {', '.join(GRIDS)}, or 'k=10,50;t=0.1,0.2'",
            )
        found[kind.strip()] = read_values(kind.strip(), values.split(","))
    return found


def read_values(kind: str, values: Any) -> tuple[float, ...]:
    """Numbers that the requirement can have."""
    check_kind(kind, varied(), "the grid")
    listed = (values,) if isinstance(values, str | int | float) else values
    found = tuple(number(kind, value) for value in listed)
    for value in found if kind in POSSIBLE else ():
        POSSIBLE[kind].check(kind, value, " (in the grid)")
    return found


def varied() -> list[str]:
    """All that a grid may have values of; what kinds of other packages vary, they check."""
    others = [name for how in frontier_methods().values() for name in how.varied]
    return list(dict.fromkeys([*POSSIBLE, *others]))


def check_kind(kind: str, known: Sequence[str], where: str) -> None:
    """Refuse a requirement that is not known, with the nearest that is."""
    if kind not in known:
        raise UsageError(
            f"{kind!r} is nothing that can stand in {where}",
            hint=did_you_mean(kind, list(known)),
        )


def number(kind: str, text: Any) -> float:
    """A value of the grid as a number."""
    try:
        return float(text)
    except (TypeError, ValueError):
        raise UsageError(
            f"the grid has {kind} = {str(text).strip()!r}, which is not a number",
            hint="separate values by commas and requirements by semicolons: 'k=10,50;t=0.1,0.2'",
        ) from None


# ----------------------------------------------------------------------
# the command that publishes a point of the frontier


RELEASE = "R.voile"


def publishing_command(subject: Subject, options: Mapping[str, Any]) -> str:
    """`voile publish …` of classes, with everything that the point was measured with."""
    shared = subject.options
    words = ["voile", "publish", subject.source, "-o", RELEASE, "--method", options["method"]]
    for name, columns in (
        ("--qi", shared.qi),
        ("--sensitive", shared.sensitive),
        ("--identifiers", shared.identifiers),
    ):
        if columns:
            words += [name, unquoted(columns_option(list(columns)))]
    words += [word for name, value in options.items() for word in option(name, value)]
    for column, file in (shared.hierarchies or {}).items():
        if isinstance(file, str | Path):
            words += ["--hierarchy", f"{column}={file}"]
    return shlex.join([*words, *domain(subject)])


def noisy_command(subject: Subject, command: str, options: Mapping[str, Any]) -> str:
    """`voile publish …` or `voile perturb …` of a release that is not made of classes."""
    method = ["--method", options["method"]] if "method" in options else []
    words = ["voile", command, subject.source, "-o", RELEASE, *method]
    return shlex.join([*words, *noise(subject, options)])


def noise(subject: Subject, options: Mapping[str, Any]) -> list[str]:
    """Quasi-identifiers and the sensitive column are columns like any other."""
    columns = [*subject.options.qi, *subject.options.sensitive]
    asked = [word for name, value in options.items() for word in option(name, value)]
    return ["--columns", unquoted(columns_option(columns)), *asked, *domain(subject)]


def option(name: str, value: object) -> list[str]:
    """The method is named first."""
    return [] if name == "method" else [f"--{name.replace('_', '-')}", spelt(value)]


def domain(subject: Subject) -> list[str]:
    """How the table's values are read."""
    options = subject.options
    words = ["--schema", str(options.schema_)] if isinstance(options.schema_, str | Path) else []
    words += [] if options.nulls == "error" else ["--nulls", options.nulls]
    return [*words, *subject.reading.words()]


def unquoted(option: str) -> str:
    """As the program sees it: quotes of the shell are put around it again at the end."""
    return " ".join(shlex.split(option))


def spelt(value: object) -> str:
    """A value as a flag takes it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


# ----------------------------------------------------------------------
# a point of the frontier: a release that could be published, and what it loses


@dataclass(frozen=True)
class Point:
    """A release that could be published, on the two axes."""

    method: str
    parameters: Mapping[str, Any]
    """The options of publishing that make it: what is required, how it is shown."""
    requirement: str
    """What it promises, in words."""
    p_loss: float
    u_loss: float
    classes: int | None
    """None where rows are not grouped."""
    rows: int
    """That are shown; some methods leave rows out, and noise adds some."""
    seconds: float
    command: str
    p_loss_permitted: float | None = None
    """The worst that noise could ever show; None for classes, which are all shown."""

    @property
    def recode(self) -> str | None:
        """How classes are shown; None where there are none."""
        return self.parameters.get("recode")

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return asdict(self)
