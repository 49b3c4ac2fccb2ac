"""How an answer from a generalized or bucketized release comes about, for reading."""

from __future__ import annotations

from typing import Any

from voile.estimate import number
from voile.terminal import key_values, table_of


def class_explanation_view(found: dict[str, Any]) -> Any:
    """The conditions, what the release leaves open of them, and the totals."""
    from rich.console import Group
    from rich.markup import escape

    parts: list[Any] = []
    if found["atoms"]:
        rows = [
            [escape(a["condition"]), ", ".join(map(escape, a["reads"]))] for a in found["atoms"]
        ]
        parts.append(table_of(["condition", "reads"], rows))
    shown, left_open = (escape(", ".join(found[key])) or "nothing" for key in ("shown", "open"))
    parts.append(
        key_values(
            {
                "rows": f"{found['rows']:,} in {found['classes']:,} classes, {found['recode']}d",
                "shown exactly": shown,
                "left open": left_open,
                "assumed": escape(found["assumption"]),
            }
        )
    )
    rows = [
        [escape(total["of"]), *(number(total[key]) for key in ("estimate", "certain_low",
                                                               "certain_high"))]
        for column in found["columns"]
        for total in column["totals"]
    ]  # fmt: skip
    if rows:
        parts.append(table_of(["total", "expected", "at least", "at most"], rows))
    if found["groups"]:
        parts.append("[dim]figures are of all groups together[/dim]")
    return Group(*parts)
