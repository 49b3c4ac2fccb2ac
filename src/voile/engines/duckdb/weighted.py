"""A release's rows that lie elsewhere: brought here as combinations of values, and summed here.

An expression must have one value, whichever engine counts. So no other engine computes one: it
groups the rows by the columns that a question reads, which is a matter of equality alone, and
DuckDB computes the sums over the combinations, each times the rows that it stands for.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from voile.engines.duckdb.rows import DuckRows
from voile.query.predicate import Expression, Predicate, attributes
from voile.query.quoting import quote_identifier
from voile.query.rows import HISTORY, SCORE, SPREAD, Flags, Key, RowSums, ShiftedValue, WeightedTerm
from voile.schema import Attribute, Schema

WHOLE = 2**17
"""Tuples of a domain that is brought here as a whole by the first question."""
DERIVED = 2**20
"""Combinations of more columns from which those of fewer are made: sooner than by asking again."""
KEPT = 10**7
"""Combinations that are kept, in all tables."""
COPIES = "voile_rows"
"""The column that says how many rows a combination stands for; with _ behind it where an attribute
is called so."""
Grouped = Callable[[tuple[str, ...], str], pa.Table]
"""The combinations of some columns that occur, and a column of this name: how many rows have each.
"""


@dataclass(frozen=True)
class HeldTable:
    """A table of combinations in DuckDB."""

    name: str
    rows: int


class WeightedRows(DuckRows):
    """Rows of a release that somebody else groups; what is asked of all rows is not for it."""

    def __init__(
        self,
        grouped: Grouped,
        schema: Schema,
        scores: pa.Table | None = None,
        beside: pa.Table | None = None,
    ) -> None:
        """`scores` and `beside` are as in DuckRows."""
        super().__init__([], schema, beside=beside)
        self._grouped = grouped
        self._of_histories = scores is not None
        self._beside_too = beside is not None
        if scores is not None:
            self.scored = True
            self._keep("scores of histories", scores)
        taken = {name.casefold() for name in schema.names}
        self._copies = COPIES
        while self._copies in taken:
            self._copies += "_"
        self._held: OrderedDict[frozenset[str], HeldTable] = OrderedDict()

    def sums(
        self, where: Predicate | None, keys: Sequence[Expression], sums: Sequence[WeightedTerm]
    ) -> RowSums:
        """Aggregates of the rows that pass, for each combination of keys that occurs."""
        read = {name for key in keys for name in key.attributes}
        for predicate in (where, *(one.term.predicate for one in sums)):
            read |= attributes(predicate) if predicate is not None else set()
        read |= {name for one in sums for value in one.term.values for name in value.attributes}
        return self._sums_over(self._scored_rows(read), where, keys, sums, self._copies)

    def histogram(
        self, keys: Sequence[Key], products: Sequence[Sequence[ShiftedValue]]
    ) -> pa.Table:
        """Sums of products over all rows, by the keys that occur: k0, k1, … and s0, s1, …"""
        read = {name for key in keys for name in read_by(key)}
        read |= {name for factors in products for f in factors for name in f.value.attributes}
        return self._histogram_of(self._table(read), keys, products, self._copies)

    def foreign_among(self, attribute: Attribute, values: pa.Table) -> bool:
        """Whether one of these values, in a column of the attribute's name, is outside its domain.

        They are values that rows have, each once or more.
        """
        found = f"SELECT EXISTS (SELECT 1 FROM incoming WHERE {self._foreign(attribute)}) AS found"
        return bool(self._with(values, found)["found"][0].as_py())

    # ------------------------------------------------------------------ combinations

    def _scored_rows(self, names: Iterable[str]) -> str:
        """What sums are taken over: combinations, with the scores that rows have."""
        if self._of_histories:
            table = self._table({*names, HISTORY})
            scored = f'SELECT * FROM {table} JOIN "scores of histories" USING ({HISTORY})'
            return f"({scored})"
        table = self._table(names)
        if not self._beside_too:
            return table
        listed = ", ".join([*map(quote_identifier, sorted(names)), SCORE, SPREAD])
        return (
            f"(SELECT *, 1.0 AS {SCORE}, 0.0 AS {SPREAD} FROM {table} UNION ALL BY NAME "
            f'SELECT {listed}, 1 AS {self._copies} FROM "rows beside")'
        )

    def _table(self, names: Iterable[str]) -> str:
        """The table of these columns' combinations, brought here unless it is known already."""
        wanted = frozenset(names)
        if wanted not in self._held:
            wider = [self._held[held] for held in self._held if held > wanted]
            source = min(wider, key=lambda one: one.rows, default=None)
            if source is not None and source.rows <= DERIVED:
                self._derive(wanted, source)
            elif not wider and self.schema.size <= WHOLE and not wanted >= {*self.schema.names}:
                self._table(wanted | {*self.schema.names})
                return self._table(wanted)
            else:
                self._bring(wanted)
        self._held.move_to_end(wanted)
        return self._held[wanted].name

    def _bring(self, wanted: frozenset[str]) -> None:
        order = [name for name in (*self.schema.names, HISTORY) if name in wanted]
        table = self._grouped(tuple(order), self._copies)
        name = name_of(wanted)
        self._keep(name, table)
        self._note(wanted, HeldTable(quote_identifier(name), table.num_rows))

    def _derive(self, wanted: frozenset[str], source: HeldTable) -> None:
        """Combinations of fewer columns, from those of more."""
        columns = ", ".join(map(quote_identifier, sorted(wanted)))
        listed, by = (f"{columns}, ", f" GROUP BY {columns}") if columns else ("", "")
        name = quote_identifier(name_of(wanted))
        self._con.execute(
            f"CREATE TABLE {name} AS SELECT {listed}sum({self._copies})::BIGINT AS {self._copies} "
            f"FROM {source.name}{by} HAVING sum({self._copies}) > 0"
        )
        rows = self._con.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
        self._note(wanted, HeldTable(name, rows))

    def _note(self, wanted: frozenset[str], table: HeldTable) -> None:
        self._held[wanted] = table
        while sum(one.rows for one in self._held.values()) > KEPT and len(self._held) > 1:
            _, dropped = self._held.popitem(last=False)
            self._con.execute(f"DROP TABLE {dropped.name}")


def name_of(columns: Iterable[str]) -> str:
    """What the table of these columns is called: always the same, as are its rows."""
    return f"rows by {json.dumps(sorted(columns))}"


def read_by(key: Key) -> set[str]:
    """The attributes that a key reads."""
    if not isinstance(key, Flags):
        return set(key.attributes)
    parts = [*key.conditions, *([] if key.value is None else [key.value])]
    return {name for part in parts for name in part.attributes}
