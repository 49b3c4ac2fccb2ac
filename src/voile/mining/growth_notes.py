"""Why a tree does not go on, in words."""

from __future__ import annotations

from collections.abc import Iterator

from voile.mining.growing import Limits
from voile.mining.tree import Ended, Path, Proof, Tree


def growth_notes(tree: Tree, limits: Limits) -> Iterator[str]:
    """A note for each reason but the depth, which was asked for, and one on weaker proofs."""
    if not tree.root.children:
        yield f"no split of all rows {whole_reason(tree, limits)}"
        return
    reasons = {
        Ended.ERRORS: "is beyond its error",
        Ended.SUPPORT: f"leaves {least(limits)} on each side",
    }
    for ended, reason in reasons.items():
        leaves = [path for path, node in tree.nodes() if node.ended is ended]
        if not leaves:
            continue
        rest = len(leaves) - 1
        others = f", nor of {rest} other {'leaf' if rest == 1 else 'leaves'}," if rest else ""
        yield f"no split of {place(tree, leaves[0])}{others} {reason}"
    borrowed = [(p, n.split) for p, n in tree.nodes() if n.split and n.split.proof is Proof.ALL]
    if borrowed:
        path, split = borrowed[0]
        rest = len(borrowed) - 1
        others = f", and {rest} other split{'s' * (rest > 1)}," if rest else ""
        yield (
            f"the split of {place(tree, path)} by {split.binning.name}{others} may be chance by "
            "itself: it is proven among all rows, and the node differs the same way"
        )


def place(tree: Tree, path: Path) -> str:
    """A node, by what leads there."""
    told = " and ".join(tree.binnings[name].words(mask) for name, mask in path.items())
    return f"“{told}”" if told else "all rows"


def whole_reason(tree: Tree, limits: Limits) -> str:
    """Why there is no split at all, and what to change."""
    if tree.root.ended is Ended.ERRORS:
        return (
            f"is beyond its error: what the columns tell of {tree.target.name} may be chance; "
            "more rows or a higher retention tell more, and --level 0 takes the best split all "
            "the same"
        )
    if tree.root.ended is Ended.SUPPORT:
        return f"leaves {least(limits)} on each side: lower --min-support, or publish more rows"
    return "makes the classes less mixed"


def least(limits: Limits) -> str:
    """The rows that a leaf must have."""
    rows = limits.min_support
    if not rows:
        return "more rows than twice their error"
    return f"{rows:,.0f} row{'s' * (rows != 1)}, and more than twice their error,"
