"""The rows that are found most easily: those that few columns single out, in words."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.arrow import arrow_array
from voile.engines import connect
from voile.evaluate.risk.assess import columns_of
from voile.evaluate.risk.disclosure import Cells, cells_of, coded_rows, combined
from voile.evaluate.risk.uniqueness import feasible, singled_out
from voile.records import Record

MISSING = "missing"
"""How a NULL is called."""


@dataclass(frozen=True)
class ExposedRow(Record):
    """A row that a few columns single out. It is about one person: do not publish it."""

    known: dict[str, str]
    """The columns that are enough to know, with the values that only this row has."""
    learnt: dict[str, str]
    """What whoever knows them learns."""

    json_keys = ("known", "learnt", "sentence")

    @property
    def sentence(self) -> str:
        """The same in words."""
        known = " and ".join(f"{name} {value}" for name, value in self.known.items())
        if not self.learnt:
            return f"Only one row has {known}."
        told = ", ".join(f"{name} is {value}" for name, value in self.learnt.items())
        return f"Only one row has {known}. Whoever knows this learns: {told}."


def most_exposed(
    table: object,
    *,
    qi: Sequence[str] | None = None,
    sensitive: Sequence[str] | str = (),
    number: int = 10,
    largest: int = 3,
) -> list[ExposedRow]:
    """Rows that the fewest columns single out, up to `number` of them.

    Each is listed once, with the first of the smallest sets of columns that single it out, of up
    to `largest` columns. Rows of a set are taken in the order of their values.
    """
    private = connect(table)
    own = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    names = columns_of(private, qi, own)
    texts = combined(private, [*names, *own])
    cells = cells_of(coded_rows(texts, None, names, own).units)
    found = list(itertools.islice(singles(cells, len(names), largest), number))
    if not found:
        return []
    units = unit_of_class(cells)
    rows = texts.take(arrow_array(units[[place for place, _ in found]])).to_pydict()
    values = {name: rows[f"c{i}"] for i, name in enumerate([*names, *own])}

    def said(name: str, row: int) -> str:
        value = values[name][row]
        return MISSING if value is None else str(value)

    return [
        ExposedRow(
            {names[j]: said(names[j], row) for j in chosen}, {name: said(name, row) for name in own}
        )
        for row, (_, chosen) in enumerate(found)
    ]


def singles(cells: Cells, columns: int, largest: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Classes of one row, each with the first of the smallest sets that single it out."""
    looked = feasible(columns, len(cells.rows), largest)
    done = np.zeros(len(cells.rows), dtype=np.bool_)
    for size in range(1, looked + 1):
        for chosen in itertools.combinations(range(columns), size):
            sizes = [cells.sizes[j] for j in chosen]
            single = singled_out(cells.codes[list(chosen)], sizes, cells.rows) & ~done
            done |= single
            for place in np.flatnonzero(single).tolist():
                yield place, chosen


def unit_of_class(cells: Cells) -> npt.NDArray[np.int64]:
    """A unit of each class; a class of one row has one."""
    found = np.empty(len(cells.rows), dtype=np.int64)
    found[cells.classes] = np.arange(len(cells.classes))
    return found
