"""What a kind of release supplies, for its queries to be answered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from voile.answering.columns import EstimatedColumn, Flags, terms_of
from voile.answering.source import DomainSource, weight_range
from voile.answering.totals import ListedGroups, check_lookups
from voile.arrays import Floats
from voile.errors import QueryError
from voile.estimate import Bound
from voile.query.aggregate import Formula, Quantile
from voile.query.predicate import Atom, Expression, Term
from voile.query.query import Query

MOST_TERMS = 24
MOST_GROUPS = 5_000
Ranges = dict[Term, tuple[float, float]]


class Evidence(ABC):
    """What one source says about one query: estimates for all groups, and words about them."""

    @property
    @abstractmethod
    def groups(self) -> ListedGroups:
        """The groups that the answer may have."""
        ...

    @abstractmethod
    def column(self, formula: Formula) -> EstimatedColumn:
        """The estimates of a formula of totals, without quantiles."""

    @abstractmethod
    def values(self, formula: Formula, quantiles: Mapping[Quantile, Floats]) -> Floats:
        """The estimates of a formula with quantiles, whose values are given."""

    @abstractmethod
    def quantile(self, formula: Quantile) -> EstimatedColumn:
        """Estimates of a quantile for all groups."""
        ...

    @abstractmethod
    def empty(self) -> Flags:
        """Groups that surely have no row, which SQL would not list."""

    @abstractmethod
    def covers(self, estimated: Sequence[EstimatedColumn]) -> str:
        """What the intervals of these columns cover."""

    @abstractmethod
    def notes(self, estimated: Sequence[EstimatedColumn]) -> list[str]:
        """What an analyst should know about these columns."""

    @property
    def nothing(self) -> str:
        """Why no row can satisfy the condition, where that is so."""
        return ""

    @property
    def exact_covers(self) -> str:
        """What is said in place of `covers` where all estimates are the truth."""
        return ""

    def assumption(self, estimated: Sequence[EstimatedColumn]) -> str:  # noqa: ARG002
        """What the estimates rest on besides the source."""
        return ""

    @property
    def bound(self) -> Bound | None:
        """A statement about the error of every count, where the literature has one."""
        return None


def term_sets(query: Query) -> list[tuple[Term, ...]]:
    """The totals that each formula is made of."""
    sets = [terms_of(f) for f in dict.fromkeys(query.formulas)]
    if max(map(len, sets), default=0) > MOST_TERMS:
        raise QueryError(
            f"one formula combines more than {MOST_TERMS} aggregates",
            hint="ask for them one by one",
        )
    return sets


def distinct(sets: Sequence[Sequence[Term]]) -> tuple[Term, ...]:
    """All terms, each once."""
    return tuple(dict.fromkeys(term for some in sets for term in some))


def paired(sets: Sequence[Sequence[Term]], order: Sequence[Term]) -> list[tuple[int, int]]:
    """The places of each two terms that meet in a formula, whose covariance is needed."""
    place = {term: i for i, term in enumerate(order)}
    found = [(place[a], place[b]) for some in sets for a in some for b in some]
    return [pair for pair in dict.fromkeys(found) if pair[0] <= pair[1]]


def checked_ranges(query: Query, terms: Sequence[Term], source: DomainSource) -> Ranges:
    """Between which numbers the weight of each term lies; too many lookups are refused."""
    check_lookups(terms)
    return {t: weight_range(t, query.predicate, source, query.sql) for t in terms}


def columns_read(query: Query) -> set[str]:
    """The columns that any part of a query reads."""
    parts: list[Atom | Expression] = [*query.conditions, *query.values, *query.groups]
    return {name for part in parts for name in part.attributes}


def check_groups(number: int) -> None:
    """Where every group costs work: refuse more than one would read."""
    if number > MOST_GROUPS:
        raise QueryError(
            f"GROUP BY makes {number:,} groups, more than {MOST_GROUPS:,}",
            hint="group by fewer columns, or by coarser ones, as in floor(age / 10)",
        )
