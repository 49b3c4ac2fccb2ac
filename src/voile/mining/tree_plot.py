"""A tree as a picture: from the left to the right, a box for every node.

A box says what leads to it, how many rows it has, and which classes they are.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voile.evaluate.drawing import (
    INK,
    METHOD_COLOURS,
    SOFT,
    Rows,
    inline_chart,
    load_altair,
    theme,
)
from voile.evaluate.page_pictures import PicturePanel, figure
from voile.evaluate.pages import (
    NextStep,
    Report,
    head_cell,
    notes,
    number_cell,
    row,
    table,
    text_cell,
    write_report,
)
from voile.mining.binning import class_in_words, value_in_words
from voile.mining.tree import Node, Tree, narrowed

if TYPE_CHECKING:
    import altair as alt

    from voile.mining.report import TreeReport

# In pixels.
WIDTH, HEIGHT, BAR = 296, 68, 9
ACROSS, DOWN = WIDTH + 62, HEIGHT + 16
INSIDE = 12
CLASS_ROOM = 152
"""For the class and its share, at the right."""
DARKER = ["#003F63", "#8A3A00", "#00543D", "#7D3F62", "#8A5F00", "#1F5F85"]
"""The colours of pictures once more, for classes beyond the sixth."""
FEWEST = 6
"""Classes with a colour of their own, if there are so many and fewer are predicted."""
COLOURS = [*METHOD_COLOURS[:-1], *DARKER]
OTHERS = "others"
CAPTION = (
    "Rows and shares: estimate ± standard error. Bars: estimated share of each class; bold, the "
    "class that is predicted. Made with Voile."
)

STYLE = """
.scroll figure { margin: .6rem 0; } .scroll svg { max-width: none; height: auto; }
.scroll svg text { font-size: 10.8px; }
"""
"""A tree is read at its own size, and scrolls in its box; letters may be wider than ours."""


@dataclass(frozen=True)
class Box:
    """A node with its place: `left` and `middle` in pixels, and what leads there."""

    node: Node
    left: float
    middle: float
    text: str
    parent: Box | None


def write(found: TreeReport, path: Path, *, overwrite: bool) -> Path:
    """The tree as a report, or as a picture, as the file's name says."""
    return write_report(
        path, lambda: report(found), lambda: draw(found.tree, subtitle=found.subtitle),
        overwrite=overwrite,
    )  # fmt: skip


def report(found: TreeReport) -> Report:
    """The tree, and its leaves as rules."""
    tree = found.tree
    rows = [
        row(
            head_cell(" and ".join(rule.conditions) or "all rows"),
            text_cell(value_in_words(rule.label)),
            *(number_cell(text) for text in (f"{rule.rows:,.0f}", f"{rule.stderr:,.0f}",
                                             f"{rule.share:.1%}", f"{rule.share_stderr:.1%}")),
        )
        for rule in tree.rules()
    ]  # fmt: skip
    headings = ["if", "class", "rows", "±", "share of the class", "±"]
    spoken = "A tree of boxes, from the left to the right. Its leaves are in the table of rules."
    drawn = PicturePanel("The tree", plain(tree), spoken, CAPTION, None)
    step = NextStep(
        "Find rules for other columns, too:", shlex.join(["voile", "rules", found.release])
    )
    return Report(
        f"Tree for {tree.target.name}",
        title_of(tree),
        " ".join(found.subtitle),
        [
            f'<div class="scroll" role="region" tabindex="0" aria-label="The tree">{figure(drawn)}'
            "</div>",
            table("Leaves as rules", headings, rows, {2, 3, 4, 5}),
            notes(found.notes),
        ],
        [step],
        "Made with Voile from perturbed rows.",
        style=STYLE,
    )


def title_of(tree: Tree) -> str:
    """What a tree predicts."""
    return f"A decision tree for {tree.target.name}"


def draw(tree: Tree, *, subtitle: Sequence[str]) -> alt.HConcatChart:
    """The tree with its title and caption."""
    drawn = theme(plain(tree), title=title_of(tree), subtitle=subtitle, caption=CAPTION)
    # A page draws it in SVG, which keeps pointing right at any size.
    return drawn.properties(usermeta={"embedOptions": {"renderer": "svg"}})


def plain(tree: Tree) -> Any:
    """The boxes and what joins them."""
    alt = load_altair()
    boxes = placed(tree)
    width = max(box.left for box in boxes) + WIDTH
    height = max(box.middle for box in boxes) + HEIGHT / 2
    across = alt.X("x:Q", scale=alt.Scale(domain=[0, width], nice=False), axis=None)
    down = alt.Y("y:Q", scale=alt.Scale(domain=[height, 0], nice=False), axis=None)
    layers = [
        lines(alt, boxes, tree).encode(x=across, y=down),
        frames(boxes).encode(x=across, y=down),
        bars(alt, boxes, tree).encode(x=across, y=down),
        *(text.encode(x=across, y=down) for text in texts(boxes, tree)),
    ]
    return alt.layer(*layers).properties(width=width, height=height)


def placed(tree: Tree) -> list[Box]:
    """Leaves below each other, every other node in the middle of its children."""
    found: list[Box] = []
    leaves = 0

    def place(node: Node, path: dict[str, Any], level: int, parent: Box | None, text: str) -> Box:
        nonlocal leaves
        at = len(found)
        found.append(Box(node, level * ACROSS, 0.0, text, parent))
        middles = []
        for answer, child in node.children:
            assert node.split is not None  # noqa: S101
            below = narrowed(path, node.split, answer=answer)
            name = node.split.binning.name
            words = tree.binnings[name].words(below[name])
            middles.append(place(child, below, level + 1, found[at], words).middle)
        if middles:
            middle = sum(middles) / len(middles)
        else:
            middle, leaves = leaves * DOWN + HEIGHT / 2, leaves + 1
        found[at] = Box(node, level * ACROSS, middle, text, parent)
        return found[at]

    place(tree.root, {}, 0, None, "all rows")
    return found


def colours(tree: Tree) -> dict[str, str]:
    """A colour for each class that is predicted, then the most frequent ones; grey for the rest."""
    shares, rows = tree.root.shares, dict.fromkeys(range(len(tree.root.shares)), 0.0)
    for _, node in tree.nodes():
        rows[node.majority] += node.rows
    order = sorted(rows, key=lambda place: (-rows[place], -shares[place]))
    names = [value_in_words(tree.classes[place]) for place in order]
    predicted = sum(found > 0 for found in rows.values())
    named = names[: min(max(predicted, FEWEST), len(COLOURS))]
    own = dict(zip(named, COLOURS, strict=False))
    return own if len(own) == len(names) else own | {OTHERS: METHOD_COLOURS[-1]}


def lines(alt: Any, boxes: Sequence[Box], tree: Tree) -> Any:
    """From each node to its children, as wide as rows go that way."""
    by_node = {id(box.node): box for box in boxes}
    rows: Rows = []
    for number, box in enumerate(boxes):
        if box.parent is None:
            continue
        parent = by_node[id(box.parent.node)]
        start, end = parent.left + WIDTH, box.left
        half = (start + end) / 2
        share = min(max(box.node.rows / max(tree.root.rows, 1.0), 0.0), 1.0)
        corners = [(start, parent.middle), (half, parent.middle), (half, box.middle)]
        rows += [
            {"line": number, "at": at, "x": x, "y": y, "share": share}
            for at, (x, y) in enumerate([*corners, (end, box.middle)])
        ]
    width = alt.Size("share:Q", scale=alt.Scale(domain=[0, 1], range=[1.2, 16]), legend=None)
    return (
        inline_chart(rows)
        .mark_trail(color="#C9D3DD")
        .encode(detail="line:N", order="at:Q", size=width)
    )


def frames(boxes: Sequence[Box]) -> Any:
    """The boxes of the nodes."""
    rows = [
        {
            "x": box.left,
            "x2": box.left + WIDTH,
            "y": box.middle - HEIGHT / 2,
            "y2": box.middle + HEIGHT / 2,
            "what leads here": box.text,
        }
        for box in boxes
    ]
    return (
        inline_chart(rows)
        .mark_rect(fill="white", stroke=SOFT, strokeWidth=1, cornerRadius=5)
        .encode(x2="x2:Q", y2="y2:Q", tooltip="what leads here:N")
    )


def bars(alt: Any, boxes: Sequence[Box], tree: Tree) -> Any:
    """The classes of a node, side by side along the lower edge of its box."""
    known = colours(tree)
    rows: Rows = []
    for box in boxes:
        shares = dict.fromkeys(known, 0.0)
        for label, share in zip(tree.classes, box.node.shares, strict=True):
            shares[value_in_words(label) if value_in_words(label) in known else OTHERS] += share
        left, room = box.left + INSIDE, WIDTH - 2 * INSIDE
        for name, share in shares.items():
            low = box.middle + HEIGHT / 2 - 8
            rows.append(
                {"x": left, "x2": left + share * room, "y": low - BAR, "y2": low, "class": name,
                 "share": round(share, 4)}
            )  # fmt: skip
            left += share * room
    scale = alt.Scale(domain=list(known), range=list(known.values()))
    legend = alt.Legend(title=tree.target.name, orient="top", symbolType="square", offset=14)
    return (
        inline_chart(rows)
        .mark_rect()
        .encode(
            x2="x2:Q",
            y2="y2:Q",
            color=alt.Color("class:N", scale=scale, legend=legend),
            tooltip=["class:N", alt.Tooltip("share:Q", format=".1%")],
        )
    )


def texts(boxes: Sequence[Box], tree: Tree) -> list[Any]:
    """What leads to a node above; its rows at the left, its class at the right."""
    above, left, right = list[dict[str, Any]](), list[dict[str, Any]](), list[dict[str, Any]]()
    for box in boxes:
        node = box.node
        first, second = box.middle - HEIGHT / 2 + 17, box.middle - HEIGHT / 2 + 36
        start, end = box.left + INSIDE, box.left + WIDTH - INSIDE
        error = f" ± {node.stderr:,.0f}" if node.stderr else ""
        label, own = tree.classes[node.majority], node.shares[node.majority]
        share = class_in_words(label, own, node.share_stderr)
        above.append({"x": start, "y": first, "text": box.text})
        left.append({"x": start, "y": second, "text": f"{node.rows:,.0f}{error} rows"})
        right.append({"x": end, "y": second, "text": share})
    look, room = {"fontSize": 12.5, "baseline": "middle"}, WIDTH - 2 * INSIDE
    return [
        inline_chart(rows).mark_text(**look, **own).encode(text="text:N")
        for rows, own in (
            (above, {"align": "left", "color": INK, "fontWeight": 600, "limit": room}),
            (left, {"align": "left", "color": SOFT, "limit": room - CLASS_ROOM - 4}),
            (right, {"align": "right", "color": INK, "fontWeight": 600, "limit": CLASS_ROOM}),
        )
    ]
