"""What people see of a table's risk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal.narrow import whole_numbers

if TYPE_CHECKING:
    from voile.evaluate.risk import Risk

SETS_SHOWN = 8
WIDE = 100
"""Columns from which on there is room to say what numbers mean."""


def risk_view(risk: Risk) -> Any:
    """The most important sentence, all numbers, class sizes, and what singles rows out."""
    from rich.console import Group
    from rich.markup import escape

    from voile.evaluate.risk.wording import facts, meaning

    colour = "bold red" if risk.k < 2 else "bold"
    rows = [[escape(name), escape(value), escape(meaning(name))] for name, value in facts(risk)]
    return Group(
        f"[{colour}]{escape(risk.headline())}[/{colour}]",
        numbers_view(rows),
        sizes_view(risk),
        *sets_view(risk),
    )


def numbers_view(rows: list[list[str]]) -> Any:
    """Names and numbers whole; what they mean in the room that is left."""
    from rich import box
    from rich.table import Table

    from voile.terminal.narrow import is_narrow

    table = Table(box=box.SIMPLE_HEAD, show_header=False)
    for style in ("", "bold"):
        table.add_column(style=style, no_wrap=True)
    if not is_narrow(WIDE):
        table.add_column(style="dim")
    for name, value, meant in rows:
        table.add_row(*((name, value) if is_narrow(WIDE) else (name, value, meant)))
    return table


def sizes_view(risk: Risk) -> Any:
    from voile.evaluate.risk.found import percent
    from voile.evaluate.risk.plot import size_words

    groups = [g for g in risk.class_sizes() if g["rows"]]
    most = max(g["rows"] or 0 for g in groups)
    rows = [
        [size_words(g["from"] or 1, g["to"]), f"{g['classes']:,}", f"{g['rows']:,}",
         percent((g["rows"] or 0) / risk.rows), "█" * round(24 * (g["rows"] or 0) / most)]
        for g in groups
    ]  # fmt: skip
    return whole_numbers(["class of", "classes", "rows", "share", ""], rows, numeric={0, 1, 2, 3})


def sets_view(risk: Risk) -> list[Any]:
    """The columns that single rows out, alone or together."""
    from rich.markup import escape

    from voile.evaluate.risk.found import percent

    found = risk.unique_sets
    if not found.rows:
        return [f"No row is singled out by {found.largest} columns or fewer."]
    most = sorted(found.sets, key=lambda s: -s.minimal)[:SETS_SHOWN]
    rows = [
        [escape(" + ".join(s.columns)), f"{s.minimal:,}", f"{s.rows:,}"] for s in most if s.minimal
    ]
    headings = ["columns that together single rows out", "rows,\nno fewer do", "rows\nin all"]
    shares = ", ".join(
        f"{escape(c.column)} {percent(c.share)}" for c in found.columns[:5] if c.minimal
    )
    return [
        whole_numbers(headings, rows, numeric={1, 2}),
        f"Columns that contribute most: {shares} of the scores.",
    ]
