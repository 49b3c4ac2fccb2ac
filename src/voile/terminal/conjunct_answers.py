"""How an answer from tables of counts comes about, for reading."""

from __future__ import annotations

from typing import Any

from voile.terminal import key_values, table_of

FACTS = ("rows", "arity", "halves", "noise_sd")


def conjunct_explanation_view(found: dict[str, Any]) -> Any:
    from rich.console import Group
    from rich.markup import escape

    parts: list[Any] = []
    if found["atoms"]:
        rows = [
            [escape(a["condition"]), ", ".join(map(escape, a["reads"]))] for a in found["atoms"]
        ]
        parts.append(table_of(["condition", "reads"], rows))
    parts.append(key_values({name: f"{found[name]:,.6g}" for name in FACTS}))
    for column in found["columns"]:
        parts.append(f"[bold]{escape(column['name'])}[/bold]")
        parts += [f"  {escape(line)}" for line in lines(column)]
    if found["groups"]:
        parts.append("[dim]figures are of all groups together[/dim]")
    return Group(*parts)


def lines(column: dict[str, Any]) -> list[str]:
    """What a column is made of, and where its error is from."""
    found = [f"{total['of']}: {total['estimate']:,.6g}" for total in column.get("totals", [])]
    if column.get("tables"):
        found.append(f"from the tables of {listed(column['tables'])}")
    found += [
        f"by halves, {split['weight']:.0%}: {listed(split['left'])} with {listed(split['right'])}"
        for split in column.get("splits", [])
    ]
    errors = {name: value for name, value in column.get("errors", {}).items() if value}
    if errors:
        told = ", ".join(f"{name} {value:,.4g}" for name, value in errors.items())
        found.append(f"the error of the first: {told} (squares add up)")
    return found


def listed(tables: list[list[str]]) -> str:
    return ", ".join(f"({', '.join(some)})" for some in tables)
