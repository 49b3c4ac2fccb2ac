"""What a formula of a query asks for, as numbers on the classes of the columns that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.answering.axes import ClassAxis, DomainArrays, check_states, whole_axis
from voile.answering.cells import ClassFunctions, parts_of
from voile.answering.conjuncts.joints import TableCells
from voile.answering.conjuncts.planning import Places
from voile.answering.conjuncts.source import ConjunctSource
from voile.answering.totals import ListedGroups
from voile.arrays import Floats
from voile.query.predicate import Expression, Term
from voile.query.query import Query


@dataclass(frozen=True, eq=False)
class TableQuery:
    """Terms on the classes of all columns that they, the condition and the groups read."""

    axes: tuple[ClassAxis, ...]
    functions: ClassFunctions
    groups: ListedGroups
    number: npt.NDArray[np.int64]
    """The group of every combination of classes; −1 for none."""
    payoffs: tuple[Floats, ...]
    """For each term, what a row adds to it."""

    def cells(self, payoffs: Sequence[Floats]) -> tuple[Places, TableCells]:
        """The axes that it depends on, and the combinations of their classes that count."""
        number, whole = self.number, [np.broadcast_to(p, self.number.shape) for p in payoffs]
        read = tuple(j for j in range(len(self.axes)) if depends([number, *whole], j))
        first = tuple(slice(None) if j in read else slice(0, 1) for j in range(len(self.axes)))
        flat = number[first].ravel()
        counts = np.flatnonzero(flat >= 0)
        places = np.unravel_index(counts, number[first].shape) if self.axes else ()
        return read, TableCells(
            tuple(np.asarray(p, np.int64) for p in places),
            flat[counts],
            len(self.groups),
            np.stack([p[first].ravel()[counts] for p in whole]),
        )


def depends(arrays: Sequence[npt.NDArray[np.generic]], axis: int) -> bool:
    """Whether some array differs along an axis."""
    return any(bool((a != a.take([0], axis=axis)).any()) for a in arrays)


def asked_of(
    query: Query, terms: Sequence[Term], source: ConjunctSource, more: Sequence[Expression] = ()
) -> TableQuery:
    """`more` are expressions that cut the domain as groups do."""
    parts = parts_of(query.predicate, (*query.groups, *more), terms)
    evaluator = DomainArrays(source.engine.domain, source.schema)
    names = parts.attributes(source.schema)
    axes = tuple(whole_axis(name, parts, source.schema, evaluator) for name in names)
    check_states(axes)
    functions = ClassFunctions(axes, source.schema, evaluator)
    listed, number = functions.listing(query.groups, functions.truth(query.predicate))
    payoffs = tuple(functions.function(query.predicate, term)[0] for term in terms)
    return TableQuery(axes, functions, listed, number, payoffs)
