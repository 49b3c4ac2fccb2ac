"""What people see of trees and of association rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal.narrow import whole_numbers
from voile.units import counted

if TYPE_CHECKING:
    from voile.mining.assess import Accuracy
    from voile.mining.associations import Found
    from voile.mining.intervals import Bounded
    from voile.mining.report import TreeReport
    from voile.mining.tree import Node, Tree

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

    from voile.mining.wording import class_in_words

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
