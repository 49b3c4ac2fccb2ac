"""Promises as people see them: what follows from what, by which theorem, and what does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal.progress import table_or_list
from voile.units import chance

if TYPE_CHECKING:
    from voile.privacy.guarantee import Guarantee
    from voile.privacy.guarantees.conversions import Consequences, Conversion
    from voile.privacy.guarantees.statements import Statement


def conversion_view(found: Conversion) -> Any:
    """One conversion: the result, its words, and each step."""
    from rich.console import Group
    from rich.markup import escape

    from voile.privacy import spelled

    parts: list[Any] = [
        escape(spelled(found.source, digits=6)),
        f"  ⇒ [bold]{escape(spelled(found.guarantee, digits=6))}[/bold]",
        "",
        escape(found.guarantee.explain()),
    ]
    rows = [
        [
            escape(in_lines(step.conclusion)),
            escape(step.theorem.formula),
            escape(step.theorem.cite),
        ]
        for step in found.steps
    ]
    if rows:
        parts.append(table_or_list(["step", "formula", "theorem"], rows))
    parts += [f"if {escape(found.condition)}"] if found.condition else []
    parts.append(
        "tight: a mechanism exists for which nothing stronger of this kind holds"
        if found.tight
        else "valid; not known to be tight"
    )
    parts += [
        f"printed: {escape(p.where)} = {', '.join(chance(v, 6) for v in p.values.values())}"
        for step in found.steps
        for p in step.theorem.printed(step.source)
    ]
    return Group(*parts)


def consequences_view(found: Consequences) -> Any:
    """All that follows, what would with a choice, and what does not."""
    from rich.console import Group
    from rich.markup import escape

    from voile.privacy import spelled

    follows = [
        [
            escape(in_lines(c.guarantee)),
            "tight" if c.tight else "valid",
            escape(c.theorem) + (f"\n[dim]if {escape(c.condition)}[/dim]" if c.condition else ""),
        ]
        for c in found.follows
    ]
    parts: list[Any] = [f"[bold]{escape(spelled(found.source))}[/bold]", ""]
    parts.append(escape(found.source.explain()))
    if follows:
        parts.append(table_or_list(["follows", "", "by"], follows))
    if found.open:
        rows = [[escape(o.target), ", ".join(o.needs), escape(o.theorem)] for o in found.open]
        parts.append(table_or_list(["follows, with --to", "for any", "by"], rows))
    if found.refused:
        rows = [
            [escape(",\n".join(sorted(r.targets))), escape(r.reason), escape(r.counterexample)]
            for r in found.refused
        ]
        parts.append(table_or_list(["does not follow", "because", "counterexample"], rows))
    return Group(*parts)


def statements_view(kept: list[Statement], denied: list[Statement], *, simulated: bool) -> Any:
    """What a release promises, in plain words first, and what not."""
    from rich.console import Group

    parts: list[Any] = []
    if simulated:
        parts.append("[red]simulated: made from a chosen seed; this release promises nothing[/red]")
    if kept:
        parts += promised_view(kept, simulated=simulated)
    parts.append(denied_view(denied))
    return Group(*parts)


def promised_view(kept: list[Statement], *, simulated: bool) -> list[Any]:
    """The first statement in words, then all of them; their conditions as numbered notes."""
    from rich.markup import escape

    conditions = [] if simulated else list(dict.fromkeys(s.condition for s in kept))
    notes = [condition for condition in conditions if condition]
    numbers = {note: f" ({i})" for i, note in enumerate(notes, start=1)}
    rows = [
        [
            escape(short(s.data)) + numbers.get(s.condition, "")
            + ("\n[yellow]says next to nothing[/yellow]" if s.says_little else ""),
            escape(s.against),
            escape(s.theorem),
        ]
        for s in kept
    ]  # fmt: skip
    heading = "[red]would be promised[/red]" if simulated else "promised"
    return [
        escape(kept[0].explain),
        "",
        "The promise as written first, then what follows from how it is kept, strongest first:",
        table_or_list([heading, "against", "by"], rows),
        *(f"({i}) {escape(note)}" for i, note in enumerate(notes, start=1)),
    ]


def denied_view(denied: list[Statement]) -> Any:
    """What is not promised, and why."""
    from rich.markup import escape

    rows = [
        [escape(short(s.data)), escape(s.against), escape(f"{s.explain} ({s.theorem})")]
        for s in denied
    ]
    return table_or_list(["[red]not[/red] promised", "against", "because"], rows)


def short(data: dict[str, Any]) -> str:
    """A guarantee's data as text, without the adversary, which has its own column."""

    given = ",\n  ".join(
        f"{name}={chance(value, 6)}" if isinstance(value, float) else f"{name}={value}"
        for name, value in data.items()
        if name not in ("kind", "adversary") and value is not None
    )
    return f"{data['kind']}({given})" if given else str(data["kind"])


def in_lines(guarantee: Guarantee) -> str:
    """A guarantee's text with a line for each parameter."""
    from voile.privacy import spelled

    return spelled(guarantee, digits=6).replace(", ", ",\n  ")
