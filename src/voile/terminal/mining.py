"""What people see of trees and of association rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.estimate import number
from voile.terminal import say, table_of
from voile.terminal.narrow import whole_numbers
from voile.units import counted

if TYPE_CHECKING:
    from voile.mining.report import Accuracy, TreeReport
    from voile.mining.rules import Bounded, Found
    from voile.mining.tree import Node, Tree
    from voile.remote.across import BudgetUse, MiningResult, TesterResult
    from voile.remote.plan import MiningPlan

SHOWN = 40
"""Rules in a terminal."""


def tree_view(found: TreeReport) -> Any:
    """The tree, how often it is right, and the table's own where it stands beside."""
    from rich.console import Group

    parts: list[Any] = [branches(found.tree)]
    if found.accuracy:
        parts.append(accuracy_line("accuracy", found.accuracy))
    if found.comparison:
        parts += ["", "[bold]the private table's own tree[/bold]", branches(found.comparison.tree)]
        if found.own_accuracy:
            parts.append(accuracy_line("its accuracy", found.own_accuracy))
        parts.append(f"both trees say the same of {found.comparison.agreement:.1%} of its rows")
    return Group(*parts)


def accuracy_line(name: str, accuracy: Accuracy) -> str:
    low, high = accuracy.interval
    return (
        f"{name} {accuracy.accuracy:.4f} ({low:.4f}–{high:.4f}) on "
        f"{counted(accuracy.rows, 'row')}; the most frequent class alone {accuracy.majority:.4f}"
    )


def branches(tree: Tree) -> Any:
    from rich.tree import Tree as Branches

    top = Branches(node_line(tree, tree.root, "all rows"), guide_style="dim")
    add_children(tree, tree.root, {}, top)
    return top


def add_children(tree: Tree, node: Node, path: dict[str, Any], branch: Any) -> None:
    from voile.mining.tree import narrowed

    for answer, child in node.children:
        assert node.split is not None  # noqa: S101
        below = narrowed(path, node.split, answer=answer)
        name = node.split.binning.name
        line = node_line(tree, child, tree.binnings[name].words(below[name]))
        add_children(tree, child, below, branch.add(line))


def node_line(tree: Tree, node: Node, text: str) -> str:
    """What leads to a node, its rows, and its most frequent class; in bold what is predicted."""
    from rich.markup import escape

    from voile.mining.binning import class_in_words

    error = f" ± {node.stderr:,.0f}" if node.stderr else ""
    share = node.shares[node.majority]
    told = escape(class_in_words(tree.classes[node.majority], share, node.share_stderr))
    told = told if node.children else f"[bold]{told}[/bold]"
    return f"{escape(text)}  [dim]{node.rows:,.0f}{error} rows[/dim]  {told}"


def rules_view(found: Found) -> Any:
    """The rules with the largest lift; what may be chance is dim."""
    from rich.console import Group
    from rich.markup import escape

    if not found.rules:
        return "no rule reaches this support and this confidence"
    rows = []
    for rule in found.rules[:SHOWN]:
        text = escape(rule.text)
        shown = text if rule.lift.low > 1 else f"[dim]{text}[/dim]"
        rows.append([shown, percent(rule.support), percent(rule.confidence), times(rule.lift)])
    table = whole_numbers(["rule", "support", "confidence", "lift"], rows, numeric={1, 2, 3})
    parts: list[Any] = [table]
    if len(found.rules) > SHOWN:
        parts.append(f"… {len(found.rules) - SHOWN:,} more rules with a smaller lift: see --json")
    if any(rule.lift.low <= 1 for rule in found.rules[:SHOWN]):
        parts.append("[dim]dim: the lift may be 1 or less, that is chance[/dim]")
    return Group(*parts)


def percent(value: Bounded) -> str:
    return f"{value.estimate:.1%}\n[dim]{value.low:.1%}–{value.high:.1%}[/dim]"


def times(value: Bounded) -> str:
    return f"{value.estimate:.2f}\n[dim]{value.low:.2f}–{value.high:.2f}[/dim]"


# -------------------------------------------------------- what people see of mining across servers


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
