"""The portfolio: which groupings are tried, and with which requirements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from voile.errors import UsageError, did_you_mean
from voile.privacy.guarantee import LOG_RATIO, PROBABILITY, NumberRange
from voile.recoding import Recode

BOTH: tuple[Recode, ...] = ("generalize", "bucketize")
KINDS = ("k", "l", "t", "semantic")
"""The requirements on classes that a grid has values of."""
VARIED = (*KINDS, "posterior", "retention")
"""All that a grid has values of: γ of noisy views and the retention of perturbed rows, too."""
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


@dataclass(frozen=True)
class Method:
    """A way to publish: the options of publishing, and what of the grid goes with it."""

    about: str
    options: Mapping[str, Any]
    kinds: tuple[str, ...]
    recodes: tuple[Recode, ...] = ()
    """How its classes are shown; none where it makes no classes but noise."""
    whole: bool = False
    """Whether its requirements take whole numbers only."""
    named: bool = False
    """Whether it is measured only where it is named: it is slow, or promises something else."""
    looks: bool = False
    """Whether sensitive values decide which rows share a class."""


METHODS: dict[str, Method] = {
    "mondrian": Method("Mondrian", {"method": "mondrian"}, KINDS, BOTH),
    "information": Method(
        "Mondrian with information cuts", {"method": "mondrian", "cuts": "information"},
        ("l", "t"), BOTH, looks=True,
    ),
    "freeshape": Method(
        "free-shape buckets", {"method": "freeshape"}, ("t",), ("bucketize",), named=True,
        looks=True,
    ),
    "anatomy": Method("Anatomy", {"method": "anatomy"}, ("l",), ("bucketize",), whole=True),
    "fulldomain": Method(
        "full-domain generalization", {"method": "fulldomain", "suppression": 0.02},
        ("k", "l", "t"), ("generalize",),
    ),
    "trivial": Method("trivial anonymization", {"method": "trivial"}, (), ("generalize",)),
    "alphabeta": Method(
        "noisy views", {"method": "alphabeta", "prior_factor": 10.0}, ("posterior",), named=True
    ),
    "retention": Method("perturbed rows", {}, ("retention",), named=True),
}  # fmt: skip


@dataclass(frozen=True)
class Candidate:
    """A release to be tried; a grouping is found once, and shown in one way or both."""

    method: str
    asked: Mapping[str, Any] = field(default_factory=dict)
    """Options of publishing that say what it must promise."""

    @property
    def how(self) -> Method:
        return METHODS[self.method]

    @property
    def options(self) -> dict[str, Any]:
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
        method = METHODS[name]
        asked = [{}] if not method.kinds else [
            options
            for kind in method.kinds
            for value in grid.get(kind, ())
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
    if names is None:
        return [name for name, method in METHODS.items() if not method.named]
    listed = [names] if isinstance(names, str) else list(names)
    for name in listed:
        if name not in METHODS:
            raise UsageError(f"there is no method {name!r}", hint=did_you_mean(name, list(METHODS)))
    if not listed:
        raise UsageError("no method was named", hint=f"use {', '.join(METHODS)}")
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
                f"--grid {text!r} is neither a name nor KIND=VALUES",
                hint=f"use {', '.join(GRIDS)}, or 'k=10,50;t=0.1,0.2'",
            )
        found[kind.strip()] = read_values(kind.strip(), values.split(","))
    return found


def read_values(kind: str, values: Any) -> tuple[float, ...]:
    """Numbers that the requirement can have."""
    check_kind(kind, VARIED, "the grid")
    listed = (values,) if isinstance(values, str | int | float) else values
    found = tuple(number(kind, value) for value in listed)
    for value in found:
        POSSIBLE[kind].check(kind, value, " (in the grid)")
    return found


def check_kind(kind: str, known: Sequence[str], where: str) -> None:
    if kind not in known:
        raise UsageError(
            f"{kind!r} is nothing that can stand in {where}",
            hint=did_you_mean(kind, list(known)),
        )


def number(kind: str, text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        raise UsageError(
            f"the grid has {kind} = {str(text).strip()!r}, which is not a number",
            hint="separate values by commas and requirements by semicolons: 'k=10,50;t=0.1,0.2'",
        ) from None
