"""Tables that a narrow terminal does not cut: numbers stay whole, texts are broken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

NARROW = 80
"""Columns below which tables of texts become lists."""


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


def table_or_list(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    """Rows of texts beside each other, the first whole; below each other where there is no room."""
    from rich.console import Group
    from rich.padding import Padding

    if not is_narrow():
        return whole_texts(headings, rows)
    parts: list[Any] = ["", f"[bold]{headings[0]}[/bold]"]
    for first, *others in rows:
        parts.append(" ".join(first.split()))
        told = [f"[dim]{name}[/dim] {cell}".strip() for name, cell in zip(
            headings[1:], others, strict=True) if cell]  # fmt: skip
        parts += [Padding(text, (0, 0, 0, 4)) for text in told]
    return Group(*parts, "")


def whole_texts(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    """A table whose first column is not broken."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(headings[0], no_wrap=True, overflow="fold")
    for heading in headings[1:]:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def is_narrow(columns: int = NARROW) -> bool:
    from rich.console import Console

    return Console().width < columns
