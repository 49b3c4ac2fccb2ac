"""A figure or a table of a paper: the pieces of work that make it, and the result."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from voile.errors import UsageError
from voile.reproduce.verdict import Check

WORDS = {"fig": "Figure", "table": "Table", "thm": "Theorem", "example": "Example"}
"""How names say what the papers call things: fig2a is Figure 2(a), thm41 is Theorem 4.1."""

APART = 1000
"""How far apart the seeds of two runs are: no figure repeats so often."""

Columns = Mapping[str, Sequence[Any]]
"""A table to be written as CSV: names to values, all of one length."""


def columns_from(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """Rows as columns with these names."""
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def rows_at(columns: Columns, places: Sequence[int]) -> dict[str, list[Any]]:
    """The rows of a table at these places."""
    return {name: [values[place] for place in places] for name, values in columns.items()}


@dataclass(frozen=True)
class Run:
    """How much work to do, and with which seed."""

    quick: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        if self.seed < 1:
            raise UsageError(f"seed {self.seed} is too small", hint="use 1 or more")

    @property
    def first(self) -> int:
        """The seed of the first repetition, and of work that is done once.

        Runs with different seeds share no repetition: they are different experiments.
        """
        return 1 + APART * (self.seed - 1)

    def seeds(self, full: int, quick: int) -> range:
        """One seed for each repetition: `full` of them, or `quick` in a quick run."""
        return range(self.first, self.first + (quick if self.quick else full))


@dataclass(frozen=True)
class Part:
    """A piece of work: a function of a module, and what it is called with.

    It runs in a process of its own and its result, which is written as JSON, is kept: so both are
    plain. What several pieces need (a table, its true counts) the module keeps with `lru_cache`.
    """

    work: Callable[..., Any]
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The work and its arguments as text: the key of a kept result."""
        return f"{self.work.__module__}.{self.work.__name__} {json.dumps(dict(self.given))}"


@dataclass(frozen=True)
class Finding:
    """The result of the pieces: numbers, checks, and a picture.

    `tables` are CSV files: "" is NAME.csv, "x" is NAME-x.csv. `picture` makes an Altair chart, to
    which title, subtitle and caption are added in the common style.
    """

    checks: tuple[Check, ...]
    tables: Mapping[str, Columns]
    picture: Callable[[], Any]
    title: str
    subtitle: str | Sequence[str]


@dataclass(frozen=True)
class Figure:
    """A figure: `parts` lists the work, `conclude` makes the finding from its results."""

    name: str
    paper: str
    what: str
    parts: Callable[[Run], Sequence[Part]]
    conclude: Callable[[Run, Sequence[Any]], Finding]

    @property
    def label(self) -> str:
        """What the paper calls it, and what it shows."""
        called = re.fullmatch(r"\w+-([a-z]+)(\d+)([a-z]?)", self.name)
        if called is None or called[1] not in WORDS:
            return self.what
        number = ".".join(called[2]) if called[1] in ("thm", "example") else called[2]
        return f"{WORDS[called[1]]} {number}{f'({called[3]})' if called[3] else ''}: {self.what}"
