"""What a release's rows owe: expressions are typed, summed and counted on them.

And what is owed without rows, by the public domain alone. An engine implements the abstract
methods; the others are made of them.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.arrays import Ints
from voile.errors import UsageError
from voile.query.predicate import Expression, Predicate
from voile.query.rows import Key, RowSums, ShiftedValue, WeightedTerm
from voile.query.value_types import ValueType
from voile.schema import Keys, Schema, TupleIndex

if TYPE_CHECKING:
    from voile.query.domain import DomainEngine

TABLE_NAME = re.compile(r"[A-Za-z_]\w*")


def check_table_name(name: str) -> None:
    """Refuse what an analyst cannot call a table in a query without quotes."""
    if not TABLE_NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a table", hint="use letters, digits and _: regions"
        )


class PublicDomain(Protocol):
    """Expressions on the public domain; private or published rows play no part.

    What it computes reaches no file and no other table than those that it was given.
    """

    schema: Schema
    domain: DomainEngine
    """Evaluates expressions on the domains of attributes."""

    @abstractmethod
    def types(self, expressions: Sequence[Expression]) -> list[ValueType]:
        """The type of each expression of a row; what does not fit the table is refused."""

    @abstractmethod
    def cuts_a_bin(self, expression: Expression) -> bool:
        """Whether an expression of binned attributes differs at the ends of a bin."""

    @abstractmethod
    def on_tuples(self, expressions: Sequence[Expression], tuples: pa.Table) -> list[pa.Array]:
        """Each expression on tuples that are given by their values, also within bins."""

    @abstractmethod
    def add_table(self, name: str, table: pa.Table) -> tuple[str, ...]:
        """Put a table of the analyst's own beside it; the names of its columns."""

    @abstractmethod
    def interrupt(self) -> None:
        """End what another thread is computing here, with an error for that one."""


class ReleaseRows(PublicDomain, Protocol):
    """The rows of a release, which everyone may see.

    Rows may lie in many places; what is computed from them does not depend on their order. They may
    have a score: then a row counts as so many, and adds its spread to the variance of its tuple's
    noise (see voile.query.rows).
    """

    scored: bool

    @abstractmethod
    def sums(
        self, where: Predicate | None, keys: Sequence[Expression], sums: Sequence[WeightedTerm]
    ) -> RowSums:
        """Sums over the rows that pass, for each combination of keys that occurs."""

    @abstractmethod
    def histogram(
        self, keys: Sequence[Key], products: Sequence[Sequence[ShiftedValue]]
    ) -> pa.Table:
        """Sums of products over all rows, by keys: columns k0, k1, … and s0, s1, …"""

    @abstractmethod
    def counts(self, codes: Sequence[npt.NDArray[Any]]) -> Ints:
        """How many rows are each of these tuples.

        codes[j][i] is the place of tuple i in the domain of attribute j.
        """

    @abstractmethod
    def outside(self) -> str | None:
        """The first attribute that has a row with a value outside its domain, if any."""

    @abstractmethod
    def coded(self) -> Iterator[list[Ints]]:
        """Every row's place in each attribute's domain, a batch at a time.

        In the order of the files, where the engine has one.
        """

    def codes(self) -> list[npt.NDArray[Any]]:
        """The places of all rows at once, in narrow numbers, a column at a time."""
        kinds = [np.int32 if a.size < 2**31 else np.int64 for a in self.schema]
        columns: list[list[npt.NDArray[Any]]] = [[np.empty(0, kind)] for kind in kinds]
        for batch in self.coded():
            for parts, kind, code in zip(columns, kinds, batch, strict=True):
                parts.append(code.astype(kind))
        found = []
        while columns:  # of a column that is joined, the parts are let go
            found.append(np.concatenate(columns.pop(0)))
        return found

    def keys(self) -> Keys:
        """The keys of all rows, eight bytes each, in the order of `coded`."""
        index = TupleIndex(self.schema.sizes)
        parts = [index.encode(batch) for batch in self.coded()]
        return np.concatenate([np.empty(0, index.key_type), *parts])
