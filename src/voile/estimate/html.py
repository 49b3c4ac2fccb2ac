"""Answers as HTML for notebooks: in light and in dark, without a script and without a style sheet.

Colours are those of the page around it, made fainter, so that both themes read well.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from voile.estimate.estimate import Estimate, number, shown

FAINT = "opacity:.65"
LINE = "border-bottom:1px solid color-mix(in srgb,currentColor 25%,transparent)"
RIGHT = "text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"
LEFT = "text-align:left"
MOST_ROWS = 200
"""More are left out of the page; the answer has them."""


def answer_html(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, bool],
    *,
    caption: str,
    notes: Sequence[str],
) -> str:
    """A table: of each estimate the number, its standard error and its interval."""
    names = columns or {
        name: isinstance(v, Estimate) for name, v in (rows[0] if rows else {}).items()
    }
    head = "".join(heading(name, numbers=numbers) for name, numbers in names.items())
    body = "".join(
        f"<tr>{''.join(cells(row[name], numbers=names[name]) for name in names)}</tr>"
        for row in rows[:MOST_ROWS]
    )
    left = len(rows) - MOST_ROWS
    more = [f"{left:,} more rows are in the answer"] if left > 0 else []
    said = "".join(paragraph(f"note: {note}") for note in [*more, *notes])
    return (
        f'<table style="background:transparent;color:inherit;border-collapse:collapse">'
        f'<caption style="caption-side:bottom;{LEFT};{FAINT}">{html.escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{said}"
    )


def paragraph(text: str) -> str:
    """A line below the table."""
    return f'<p style="margin:.3em 0;{FAINT}">{html.escape(text)}</p>'


def heading(name: str, *, numbers: bool) -> str:
    """The head of a column; an estimate has its error and its interval beside it."""
    if not numbers:
        return f'<th scope="col" style="{LEFT};{LINE}">{html.escape(name)}</th>'
    beside = "".join(
        f'<th scope="col" style="{RIGHT};{LINE};{FAINT};font-weight:normal">{word}</th>'
        for word in ("±", "interval")
    )
    return f'<th scope="col" style="{RIGHT};{LINE}">{html.escape(name)}</th>{beside}'


def cells(value: Any, *, numbers: bool) -> str:
    """A cell of a group's key, or three of an estimate."""
    if not isinstance(value, Estimate):
        blank = '<td colspan="2"></td>' if numbers else ""
        return f'<td style="{LEFT}">{html.escape(shown(value))}</td>{blank}'
    low, high = value.interval()
    error, interval = number(value.stderr, value.stderr), "no interval"
    if value.is_stated and not math.isnan(low):
        interval = f"{number(low, value.stderr)} – {number(high, value.stderr)}"
    if value.certain:
        least, most = (number(x, value.stderr) for x in value.certain)
        interval += f"; certainly {least} – {most}"
    main = number(value.value, value.stderr)
    return (
        f'<td style="{RIGHT}"><b>{html.escape(main)}</b></td>'
        f'<td style="{RIGHT};{FAINT}">{html.escape(error)}</td>'
        f'<td style="{RIGHT};{FAINT}">{html.escape(interval)}</td>'
    )
