"""A hierarchy as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voile.kinds.classes.column_hierarchy import ColumnHierarchy

MOST_CHILDREN = 60
"""Of one node; the rest are counted."""
MOST_LINES = 200
"""Levels that would make the tree longer are not shown."""


def hierarchy_view(found: ColumnHierarchy) -> Any:
    """The groups from the top down, each with its rows."""
    from rich.console import Group
    from rich.text import Text
    from rich.tree import Tree

    levels = found.levels
    top = Tree(line(levels.labels[-1][0], int(found.counts.sum()), name=found.attribute.name))
    add_children(top, found, levels.height, 0, lowest_shown(found))
    sizes = " → ".join(f"{len(labels):,}" for labels in levels.labels)
    note = f"{found.way.removeprefix('--')}: {sizes} groups; rows beside each"
    return Group(top, Text(note, style="dim"))


def lowest_shown(found: ColumnHierarchy) -> int:
    """The finest level that fits the screen with all above it, at least the one under '*'."""
    sizes = [len(labels) for labels in found.levels.labels]
    fitting = [level for level in range(len(sizes)) if sum(sizes[level:]) <= MOST_LINES]
    return min([*fitting, found.levels.height - 1])


def add_children(tree: Any, found: ColumnHierarchy, level: int, node: int, lowest: int) -> None:
    """The nodes of the level below that lie in this node, and what lies in them."""
    from rich.text import Text

    if level <= lowest:
        return
    levels, below = found.levels, level - 1
    in_order = levels.nodes[below][levels.leaves]
    inside = in_order[levels.nodes[level][levels.leaves] == node]
    children = list(dict.fromkeys(inside.tolist()))
    if [levels.labels[below][child] for child in children] == [levels.labels[level][node]]:
        add_children(tree, found, below, children[0], lowest)  # said already
        return
    rows, values = found.rows(below), found.values(below)
    for child in children[:MOST_CHILDREN]:
        hidden = int(values[child]) if below == lowest > 0 else 0
        here = tree.add(line(levels.labels[below][child], int(rows[child]), hidden=hidden))
        add_children(here, found, below, child, lowest)
    if len(children) > MOST_CHILDREN:
        tree.add(Text(f"… {len(children) - MOST_CHILDREN:,} more", style="dim"))


def line(label: str, rows: int, *, name: str = "", hidden: int = 0) -> Any:
    from rich.text import Text

    text = Text(f"{name} " if name else "", style="bold")
    text.append(label or "''", style="not bold")
    values = f" of {hidden:,} values" if hidden > 1 else ""
    return text.append(f"  {rows:,}{values}", style="dim not bold")
