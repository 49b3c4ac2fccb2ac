"""Tables that a narrow terminal does not cut: numbers stay whole, texts are broken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

NARROW = 90
"""Columns below which wide tables are turned."""


def whole_numbers(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: Collection[int],
    **options: Any,
) -> Any:
    """A table whose columns `numeric` are as wide as their numbers, whatever the terminal is."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, **options)
    for place, heading in enumerate(headings):
        if place in numeric:
            table.add_column(heading, justify="right", no_wrap=True, overflow="fold")
        else:
            table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def is_narrow() -> bool:
    from rich.console import Console

    return Console().width < NARROW
