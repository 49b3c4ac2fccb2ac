"""What people see of an attack and of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal import table_of

if TYPE_CHECKING:
    from voile.evaluate.audit import Audit
    from voile.evaluate.beliefs import Attack, Belief


def attack_view(attack: Attack, show: int) -> Any:
    """People and tuples, worst first, and what it means for the promise."""
    from rich.console import Group
    from rich.markup import escape

    from voile.evaluate.attack_page import guess_words, percent, verdict, who

    parts: list[Any] = [escape(who(attack))]
    if attack.people:
        rows = [
            [escape(p.name), f"{p.candidates:,}", escape(guess_words(p)), percent(p.best.prior),
             percent(p.best.posterior), f"× {p.best.gain:,.3g}"]
            for p in attack.people[:show]
        ]  # fmt: skip
        headings = [
            "who",
            "candidates",
            "best guess of what was unknown",
            "before",
            "after",
            "gain",
        ]
        parts.append(table_of(headings, rows))
    rows = [
        [escape(b.name), escape(b.words), str(b.seen), percent(b.prior),
         percent(b.posterior), mark(b)]
        for b in attack.beliefs[:show]
    ]  # fmt: skip
    parts.append(table_of(["who", "tuple", "seen", "before", "after", ""], rows))
    parts += summary(attack, min(show, len(attack.beliefs)))
    parts.append(escape(verdict(attack)))
    return Group(*parts)


def mark(belief: Belief) -> str:
    if belief.positive_leak:
        return "[red]positive leak[/red]"
    if belief.negative_leak:
        return "[magenta]negative leak[/magenta]"
    return "" if belief.covered else "[dim]prior above d[/dim]"


def summary(attack: Attack, shown: int) -> list[str]:
    tally = attack.tally
    rest = f" ({tally.tuples - shown:,} not shown)" if tally.tuples > shown else ""
    return [
        f"[bold]{tally.tuples:,} tuples[/bold]{rest}: {tally.positive_leaks:,} positive and "
        f"{tally.negative_leaks:,} negative leaks; {tally.tuples - tally.covered:,} priors above "
        f"d = {attack.promise.prior:.3g}"
    ]


def audit_view(found: Audit) -> Any:
    from rich.console import Group
    from rich.markup import escape

    rows = [
        [b.side, f"{b.bound:.4g}", "∞" if b.promised is None else f"{b.promised:.4g}",
         f"{b.with_record:,} of {b.runs:,}", f"{b.without_record:,} of {b.runs:,}",
         "[red]broken[/red]" if b.broken else "[green]consistent[/green]"]
        for b in (found.high, found.low)
    ]  # fmt: skip
    headings = ["likelihood ratio", "certain bound", "promised", "with it", "without it", ""]
    return Group(table_of(headings, rows), *[escape(line) for line in found.explain().splitlines()])
