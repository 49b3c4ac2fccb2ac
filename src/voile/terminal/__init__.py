"""What people see: results, notes, tables. No arithmetic."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from voile.system.here import BROKEN_PIPE
from voile.terminal.escaping import console, escaped, json_text


def show(data: Any, view: Any) -> None:
    """A result on standard output: JSON where asked for, else what `view` makes."""
    if data is not None:
        show_lines([json_text(data, indent=2)])
        return
    printer = console()
    printer.on_broken_pipe = broken_pipe  # type: ignore[method-assign]
    with until_the_pipe_breaks():
        printer.print(view(), crop=False)


def show_lines(lines: list[str]) -> None:
    """Lines of a result as they are, not broken to fit the screen."""
    with until_the_pipe_breaks():
        for line in lines:
            print(escaped(line))


@contextmanager
def until_the_pipe_breaks() -> Iterator[None]:
    """Who reads no further has what they wanted; 1 would say that the data say no."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(BROKEN_PIPE) from None


def broken_pipe() -> None:
    """Raise what Rich would swallow."""
    raise BrokenPipeError


def say(text: str) -> None:
    """Everything that is not a result; lines are not cut, so that commands can be copied."""
    printer = console(stderr=True, highlight=False, soft_wrap=True)
    printer.print(text, style="dim", markup=False)


def say_notes(notes: Iterable[str]) -> None:
    """Each note in a line of its own."""
    for note in notes:
        say(f"note: {note}")


def complain(message: str, hint: str = "") -> None:
    """An error and its hint on standard error."""
    from rich.markup import escape

    printer = console(stderr=True, highlight=False, soft_wrap=True)
    printer.print(f"[bold red]error:[/bold red] {escape(message)}")
    if hint:
        printer.print(f"[bold]hint:[/bold] {escape(hint)}")


def table_of(headings: list[str], rows: list[list[str]], **options: Any) -> Any:
    """A table of texts."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, **options)
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(*row)
    return table


def key_values(data: dict[str, Any]) -> Any:
    """Names and values, without headings."""
    return table_of(["", ""], [[key, f"{value}"] for key, value in data.items()], show_header=False)
