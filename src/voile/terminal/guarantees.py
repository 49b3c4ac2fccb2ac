"""Promises as people see them: what follows from what, by which theorem, and what does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal import table_of

if TYPE_CHECKING:
    from voile.privacy.conversions import Consequences, Conversion
    from voile.privacy.statements import Statement


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
            escape(spelled(step.conclusion, digits=6)),
            escape(step.theorem.formula),
            escape(step.theorem.cite),
        ]
        for step in found.steps
    ]
    if rows:
        parts.append(table_of(["step", "formula", "theorem"], rows))
    parts += [f"if {escape(found.condition)}"] if found.condition else []
    parts.append(
        "tight: a mechanism exists for which nothing stronger of this kind holds"
        if found.tight
        else "valid; not known to be tight"
    )
    parts += [
        f"printed: {escape(p.where)} = {', '.join(f'{v:.6g}' for v in p.values.values())}"
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
            escape(spelled(c.guarantee, digits=6)),
            "tight" if c.tight else "valid",
            escape(c.theorem) + (f"\n[dim]if {escape(c.condition)}[/dim]" if c.condition else ""),
        ]
        for c in found.follows
    ]
    parts: list[Any] = [f"[bold]{escape(spelled(found.source))}[/bold]", ""]
    parts.append(escape(found.source.explain()))
    if follows:
        parts.append(table_of(["follows", "", "by"], follows))
    if found.open:
        rows = [[escape(o.target), ", ".join(o.needs), escape(o.theorem)] for o in found.open]
        parts.append(table_of(["follows, with --to", "for any", "by"], rows))
    if found.refused:
        rows = [
            [escape(", ".join(sorted(r.targets))), escape(r.reason), escape(r.counterexample)]
            for r in found.refused
        ]
        parts.append(table_of(["does not follow", "because", "counterexample"], rows))
    return Group(*parts)


def statements_view(found: list[Statement], *, simulated: bool) -> Any:
    """What a release promises, and what not."""
    from rich.console import Group
    from rich.markup import escape

    promised = [s for s in found if s.bounds is not None]
    conditions = [] if simulated else list(dict.fromkeys(s.condition for s in promised))
    notes = [condition for condition in conditions if condition]
    numbers = {note: f" ({i})" for i, note in enumerate(notes, start=1)}
    rows = [
        [
            escape(short(s.data)) + numbers.get(s.condition, ""),
            escape(s.against),
            escape(s.theorem),
        ]
        for s in promised
    ]
    heading = "[red]would be promised[/red]" if simulated else "promised, strongest first"
    parts: list[Any] = []
    if simulated:
        parts.append("[red]simulated: made from a chosen seed; this release promises nothing[/red]")
    parts.append(table_of([heading, "against", "by"], rows))
    parts += [f"({i}) {escape(note)}" for i, note in enumerate(notes, start=1)]
    denied = [
        [escape(short(s.data)), escape(s.against), escape(f"{s.explain} ({s.theorem})")]
        for s in found
        if s.bounds is None
    ]
    parts.append(table_of(["[red]not[/red] promised", "against", "because"], denied))
    return Group(*parts)


def short(data: dict[str, Any]) -> str:
    """A guarantee's data as text, without the adversary, which has its own column."""
    given = ", ".join(
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in data.items()
        if name not in ("kind", "adversary") and value is not None
    )
    return f"{data['kind']}({given})" if given else str(data["kind"])
