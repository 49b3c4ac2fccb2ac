"""A query, as it is understood: what to estimate, for which groups, of which rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

from voile.errors import QueryError
from voile.query.aggregate import Formula, Total, leaves, whole_totals
from voile.query.predicate import Atom, Expression, Predicate, atoms, wording


@dataclass(frozen=True)
class OutputColumn:
    """A column of the answer: a group's key by its number, or a formula."""

    name: str
    source: int | Formula


@dataclass(frozen=True)
class Order:
    """What answers are sorted by: a group's key by its number, or a formula."""

    source: int | Formula
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Query:
    """A bound query: what to estimate, of which rows, and how the answer is sorted and cut."""

    sql: str
    predicate: Predicate | None
    columns: tuple[OutputColumn, ...]
    groups: tuple[Expression, ...] = ()
    having: Formula | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    remarks: tuple[str, ...] = ()
    tables: tuple[str, ...] = field(default=())
    """The analyst's own tables that it may read."""
    sets: tuple[tuple[int, ...], ...] = ()
    """With ROLLUP, CUBE or GROUPING SETS: which of the groups' keys each grouping has."""

    @property
    def has_whole_totals(self) -> bool:
        """Whether it asks for totals over more rows than a group's, beside those of groups."""
        return any(map(whole_totals, self.formulas))

    def checked_single(self, what: str) -> Self:
        """The query, where it has one grouping and no totals of more rows; else refused."""
        if self.sets:
            asked = "; ".join(f"group by {keys}" for keys in self._groupings())
            raise QueryError(
                f"{what} takes one grouping at a time", hint=f"ask once for each grouping: {asked}"
            )
        if self.has_whole_totals:
            raise QueryError(
                f"{what} has no totals of all groups beside those of each",
                hint="ask for both: select x, count(*) … group by x and select count(*) …, and "
                "divide them",
            )
        return self

    def _groupings(self) -> list[str]:
        """The columns of each grouping that has any, as they were written."""
        return [", ".join(wording(self.groups[i]) for i in keys) for keys in self.sets if keys]

    @property
    def atoms(self) -> list[Atom]:
        """Every atom of WHERE, once."""
        return list(dict.fromkeys(atoms(self.predicate))) if self.predicate else []

    @property
    def formulas(self) -> Iterator[Formula]:
        """Every formula that must be computed, also those that only filter or sort."""
        if self.having:
            yield self.having
        for source in (*(c.source for c in self.columns), *(o.source for o in self.order)):
            if not isinstance(source, int):
                yield source

    @property
    def conditions(self) -> list[Atom]:
        """Every condition, also those of FILTER."""
        inner = []
        for formula in self.formulas:
            for leaf in leaves(formula):
                only = leaf.term.predicate if isinstance(leaf, Total) else leaf.predicate
                inner += list(atoms(only)) if only else []
        return list(dict.fromkeys([*self.atoms, *inner]))

    @property
    def values(self) -> list[Expression]:
        """Every expression that is summed or ranked."""
        found: list[Expression] = []
        for formula in self.formulas:
            for leaf in leaves(formula):
                found += leaf.term.values if isinstance(leaf, Total) else [leaf.value]
        return list(dict.fromkeys(found))
