"""What people see of mining across servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.estimate import number
from voile.terminal import say, table_of

if TYPE_CHECKING:
    from voile.remote.across import BudgetUse, MiningResult, TesterResult
    from voile.remote.plan import MiningPlan


def say_plan(plan: MiningPlan) -> None:
    """Before anything is asked: how much of each budget, and how near it will come."""
    for side in plan.sides:
        asked = plan.asked(side)
        say(f"{side.name} is asked {asked:,} question{'s' * (asked != 1)}, and its budget has "
            f"{side.remaining:,} left")  # fmt: skip
    if plan.halves:
        say(f"{plan.halves:,} halves, seed {plan.seed}; standard error up to {plan.error:.2g}")
    for note in plan.notes:
        say(f"note: {note}")


def plan_view(plan: MiningPlan) -> Any:
    from rich.console import Group
    from rich.markup import escape

    rows = [
        [side.name, escape("\n".join(side.conditions)), f"{plan.asked(side):,}",
         f"{side.remaining:,}" + " [red]not enough[/red]" * (
             side.remaining < plan.asked(side))]
        for side in plan.sides
    ]  # fmt: skip
    told = [
        f"{plan.halves:,} halves of {plan.rows:,} rows; standard error up to {plan.error:.2g}",
        *notes(plan.notes),
    ]
    return Group(table_of(["server", "counts of", "questions", "budget left"], rows), *told)


def mined_view(mined: MiningResult, said: int) -> Any:
    """What was found; the first `said` notes were said before asking."""
    from rich.console import Group
    from rich.markup import escape

    parts: list[Any] = [f"[bold]{escape(str(mined))}[/bold]"]
    if mined.halves:
        unrelated = number(mined.independent, mined.stderr)
        parts.append(f"{unrelated} if the two sides had nothing to do with each other")
    rows = [
        [escape(one.given), escape(one.then), number(one.delta, one.stderr),
         number(one.stderr, one.stderr),
         f"{number(one.low, one.stderr)} … {number(one.high, one.stderr)}"]
        for one in mined.implications
    ]  # fmt: skip
    if rows:
        parts.append(table_of(["given", "then", "Δ", "±", "interval"], rows))
    return Group(*parts, shares_table(mined), spent_table(mined.spent), *notes(mined.notes[said:]))


def tested_view(tested: TesterResult) -> Any:
    from rich.console import Group
    from rich.markup import escape

    told = [
        f"[bold]{escape(tested.expression)}[/bold]: the tester accepts a random half with "
        f"probability {tested.acceptance:.3g}, one of {1 / max(tested.acceptance, 1e-300):,.0f}",
    ]
    if tested.accepted is None:
        told.append(f"[red]none[/red] of the {tested.tried:,} halves was accepted; it says nothing")
    else:
        told.append(
            f"half {escape(tested.accepted)} was the first accepted of {tested.tried:,}: "
            f"Δ = {tested.delta:.3g} ± {tested.stderr:.3g}, "
            f"{'above' if tested.above else 'not above'} {tested.threshold:g}"
        )
    return Group(*told, shares_table(tested), spent_table(tested.spent))


def shares_table(found: MiningResult | TesterResult) -> Any:
    from rich.markup import escape

    rows = [
        [one.server, escape(one.sql), number(one.value, one.stderr), f"{one.stderr:.2g}"]
        for one in found.shares
    ]
    return table_of(["server", "condition", "share of rows", "±"], rows)


def spent_table(spent: dict[str, BudgetUse]) -> Any:
    rows = [
        [name, f"{one.asked:,}", f"{one.charged:,}", f"{one.remaining:,}"]
        for name, one in spent.items()
    ]
    return table_of(["server", "asked", "charged", "budget left"], rows)


def notes(told: tuple[str, ...]) -> list[str]:
    from rich.markup import escape

    return [f"[dim]note: {escape(note)}[/dim]" for note in told]
