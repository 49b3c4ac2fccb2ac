"""How an answer comes about, as a typed object: a common part, and a kind's own.

`to_dict` gives its JSON. `sections` gives the same for reading, in parts that every terminal or
page can show without knowing the kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from voile.answering.columns import EstimatedColumn
from voile.answering.source import check
from voile.answering.walk import AnswerWalk, KindEvidence, KindSource, helped
from voile.errors import QueryError
from voile.estimate import finite
from voile.query.aggregate import Formula
from voile.query.predicate import Term, in_words, wording
from voile.query.query import Query
from voile.records import Record

ALL_GROUPS = "figures are of all groups together"


@dataclass(frozen=True)
class SectionTable:
    """Rows of text under headings; without headings, names and their values."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    kind: Literal["table"] = "table"


@dataclass(frozen=True)
class SectionLine:
    """A line of text."""

    text: str
    style: Literal["", "bold", "dim"] = ""
    kind: Literal["line"] = "line"


Section = SectionTable | SectionLine


def name_values(values: dict[str, str]) -> SectionTable:
    """Names and their values, without headings."""
    return SectionTable((), tuple(values.items()))


@dataclass(frozen=True)
class ExplainedCondition(Record):
    """A condition of the query, and the columns that it reads."""

    condition: str
    reads: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ExplainedColumn(Record):
    """A column of the answer."""

    name: str
    estimate: float | None
    stderr: float | None
    covers: str


@dataclass(frozen=True, kw_only=True)
class Explanation(Record, ABC):
    """The figures behind an answer; with GROUP BY, those of all groups together."""

    atoms: tuple[ExplainedCondition, ...]
    groups: tuple[str, ...]
    columns: Sequence[ExplainedColumn]

    @property
    def name(self) -> str:
        """The name of the first column."""
        return self.columns[0].name

    @property
    def estimate(self) -> float | None:
        """The estimate of the first column."""
        return self.columns[0].estimate

    @property
    def stderr(self) -> float | None:
        """The standard error of the first column."""
        return self.columns[0].stderr

    @abstractmethod
    def own_sections(self) -> list[Section]:
        """What the kind shows, between the conditions and the remark about groups."""

    def sections(self) -> list[Section]:
        """All of it, for reading."""
        found = self.own_sections()
        if self.atoms:
            rows = tuple((atom.condition, ", ".join(atom.reads)) for atom in self.atoms)
            found.insert(0, SectionTable(("condition", "reads"), rows))
        return [*found, SectionLine(ALL_GROUPS, "dim")] if self.groups else found


# ---------------------------------------------------------------------- making one

KindExplanation = Callable[[Query, AnswerWalk[KindEvidence]], Explanation]
"""From the query as it was written, and the walk of the same query without its groups."""


def explain_from(
    evidence: Callable[[Query, KindSource], KindEvidence],
    explanation: KindExplanation[KindEvidence],
    query: Query,
    source: KindSource,
) -> Explanation:
    """The figures behind a query; with GROUP BY, those of all groups together."""
    check(query, source.engine)
    if query.has_whole_totals:
        raise QueryError(
            "a total of all groups beside those of each is not explained",
            hint="explain the two totals one by one",
        )
    whole = ungrouped(query)
    with helped():
        return explanation(query, AnswerWalk(whole, evidence(whole, source)))


def ungrouped(query: Query) -> Query:
    """The same of all groups together."""
    return replace(
        query,
        groups=(),
        columns=tuple(c for c in query.columns if not isinstance(c.source, int)),
        having=None,
        order=(),
        limit=None,
        offset=0,
        sets=(),
    )


def estimated_columns(
    walk: AnswerWalk[KindEvidence],
) -> list[tuple[str, Formula, EstimatedColumn]]:
    """The name, the formula and the estimate of each column of the answer."""
    columns = [(c.name, c.source) for c in walk.query.columns]
    return [(n, f, walk.column(f)) for n, f in columns if not isinstance(f, int)]


def first(column: EstimatedColumn) -> tuple[float | None, float | None]:
    """The estimate and the standard error of the only group, as JSON has them."""
    return finite(float(column.value[0])), finite(float(column.stderr[0]))


def conditions_of(query: Query) -> tuple[ExplainedCondition, ...]:
    """The conditions of a query, with the attributes that each reads."""
    return tuple(ExplainedCondition(wording(a), tuple(a.attributes)) for a in query.conditions)


def groups_of(query: Query) -> tuple[str, ...]:
    """What a query groups by, in its own words."""
    return tuple(g.canonical for g in query.groups)


def describe(term: Term) -> str:
    """What a total is of."""
    what = f"sum of {' * '.join(wording(v) for v in term.values)}" if term.values else "rows"
    return f"{what} where {in_words(term.predicate)}" if term.predicate else what
