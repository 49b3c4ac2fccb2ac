"""Names of columns, where a table's first line may hold them or may be a row."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from voile.errors import TableError, spelled

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def has_header(cells: Sequence[str], shown: object, chosen: str | None) -> bool:
    """Whether the first line names the columns; refused where numbers leave it open.

    `chosen` is what the caller says: yes, no, or nothing.
    """
    if chosen is not None:
        return chosen == "yes"
    numbers = [cell for each in cells if NUMBER.fullmatch(cell := each.strip())]
    if not numbers or are_in_sequence(numbers):
        return True
    both = f"{spelled('header', 'no')} if the first line is a row"
    raise TableError(
        f"a column of {shown} is named {numbers[0]}, a number",
        hint=f"add {both}, or {spelled('header', 'yes')} if it holds the column names",
    )


def are_in_sequence(numbers: Sequence[str]) -> bool:
    """Whether numbers count up evenly, as the years of a wide table do, and rows do not."""
    if len(numbers) < 3 or not all(re.fullmatch(r"0|[1-9]\d{0,3}", each) for each in numbers):
        return False
    steps = {int(b) - int(a) for a, b in itertools.pairwise(numbers)}
    return len(steps) == 1 and min(steps) > 0


def names_of(cells: Sequence[str], *, header: bool) -> tuple[tuple[str, ...], list[str]]:
    """A name for each column that no other has, and what was changed."""
    if not header:
        count = len(cells)
        note = f"there is no header; the columns are called column1 to column{count}"
        return tuple(f"column{i}" for i in range(1, count + 1)), [note]
    names, notes = list[str](), list[str]()
    taken = {cell.strip().lower() for cell in cells}
    seen: set[str] = set()
    for place, cell in enumerate(cells, start=1):
        name = cell.strip()
        if not name:
            name = free(f"column{place}", taken)
            notes.append(f"column {place} has no name and is called {name!r}")
        elif name.lower() in seen:
            name = free(name, taken, first=2)
            notes.append(f"column {place} is a second {cell.strip()!r} and is called {name!r}")
        names.append(name)
        seen.add(name.lower())
        taken.add(name.lower())
    return tuple(names), notes


def free(name: str, taken: set[str], first: int = 1) -> str:
    """The name, or the name with a number, that nothing else has."""
    numbered = (f"{name}_{i}" if i > 1 else name for i in itertools.count(first))
    return next(each for each in numbered if each.lower() not in taken)
