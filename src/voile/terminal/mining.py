"""What people see of trees and of association rules."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from voile.estimate import number
from voile.terminal import key_values, say, say_notes, show, table_of
from voile.terminal.answers import show_answer
from voile.terminal.progress import whole_numbers
from voile.units import counted

if TYPE_CHECKING:
    from voile.mining.report import TreeAccuracy, TreeReport
    from voile.mining.rules import BoundedSupport, FoundRules
    from voile.mining.tree import Node, Tree
    from voile.remote.across import BudgetUse, MiningResult, TesterResult
    from voile.remote.client import Cost, Reply
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


def accuracy_line(name: str, accuracy: TreeAccuracy) -> str:
    """How often the tree is right, in a line."""
    low, high = accuracy.interval
    return (
        f"{name} {accuracy.accuracy:.4f} ({low:.4f}–{high:.4f}) on "
        f"{counted(accuracy.rows, 'row')}; the most frequent class alone {accuracy.majority:.4f}"
    )


def branches(tree: Tree) -> Any:
    """The tree, branch by branch."""
    from rich.tree import Tree as Branches

    top = Branches(node_line(tree, tree.root, "all rows"), guide_style="dim")
    add_children(tree, tree.root, {}, top)
    return top


def add_children(tree: Tree, node: Node, path: dict[str, Any], branch: Any) -> None:
    """Add what lies below a node."""
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
    label = escape(class_in_words(tree.classes[node.majority], share, node.share_stderr))
    label = label if node.children else f"[bold]{label}[/bold]"
    return f"{escape(text)}  [dim]{node.rows:,.0f}{error} rows[/dim]  {label}"


def rules_view(found: FoundRules) -> Any:
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


def percent(value: BoundedSupport) -> str:
    """A share with its interval below."""
    return f"{value.estimate:.1%}\n[dim]{value.low:.1%}–{value.high:.1%}[/dim]"


def times(value: BoundedSupport) -> str:
    """A lift with its interval below."""
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
    say_notes(plan.notes)


def plan_view(plan: MiningPlan) -> Any:
    """What each server would be asked, and what it has left."""
    from rich.console import Group
    from rich.markup import escape

    rows = [
        [side.name, escape("\n".join(side.conditions)), f"{plan.asked(side):,}",
         f"{side.remaining:,}" + " [red]not enough[/red]" * (
             side.remaining < plan.asked(side))]
        for side in plan.sides
    ]  # fmt: skip
    lines = [
        f"{plan.halves:,} halves of {plan.rows:,} rows; standard error up to {plan.error:.2g}",
        *notes(plan.notes),
    ]
    return Group(table_of(["server", "counts of", "questions", "budget left"], rows), *lines)


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
    """What the tester found, and what it took from the budgets."""
    from rich.console import Group
    from rich.markup import escape

    lines = [
        f"[bold]{escape(tested.expression)}[/bold]: the tester accepts a random half with "
        f"probability {tested.acceptance:.3g}, one of {1 / max(tested.acceptance, 1e-300):,.0f}",
    ]
    if tested.accepted is None:
        lines.append(
            f"[red]none[/red] of the {tested.tried:,} halves was accepted; it says nothing"
        )
    else:
        lines.append(
            f"half {escape(tested.accepted)} was the first accepted of {tested.tried:,}: "
            f"Δ = {tested.delta:.3g} ± {tested.stderr:.3g}, "
            f"{'above' if tested.above else 'not above'} {tested.threshold:g}"
        )
    return Group(*lines, shares_table(tested), spent_table(tested.spent))


def shares_table(found: MiningResult | TesterResult) -> Any:
    """Estimated shares of rows, with their standard errors."""
    from rich.markup import escape

    rows = [
        [one.server, escape(one.sql), number(one.value, one.stderr), f"{one.stderr:.2g}"]
        for one in found.shares
    ]
    return table_of(["server", "condition", "share of rows", "±"], rows)


def spent_table(spent: dict[str, BudgetUse]) -> Any:
    """What each server charged."""
    rows = [
        [name, f"{one.asked:,}", f"{one.charged:,}", f"{one.remaining:,}"]
        for name, one in spent.items()
    ]
    return table_of(["server", "asked", "charged", "budget left"], rows)


def notes(texts: tuple[str, ...]) -> list[str]:
    """Notes, as they are printed."""
    from rich.markup import escape

    return [f"[dim]note: {escape(note)}[/dim]" for note in texts]


# ----------------------------------------------------------------------
# what people see of a server that they ask


def show_reply(reply: Reply, *, as_csv: bool, as_json: bool) -> None:
    """The answer, and beside it what it took from the budget."""
    if as_json:
        show(reply.to_dict(), None)
        return
    show_answer(reply.estimates, output=None, as_csv=as_csv, as_json=False)
    free = "free: it was answered before" if reply.numbers else "free: it is public"
    took = f"charged {reply.charged:,}" if reply.charged else free
    say(f"{took}; {reply.remaining:,} left")


def cost_view(cost: Cost) -> Any:
    """What a question would cost."""
    from rich.console import Group
    from rich.markup import escape

    parts = [price(cost)]
    if cost.known and cost.cost:
        parts.append(f"totals that were answered before, and are free: {cost.known:,}")
    known = {name: error for name, error in cost.stderr.items() if error is not None}
    parts += [f"standard error of {escape(name)}: {error:,.4g}" for name, error in known.items()]
    return Group(*parts, *(f"[dim]note: {escape(note)}[/dim]" for note in cost.notes))


def price(cost: Cost) -> str:
    """A cost in words."""
    if not cost.cost:
        return "free: it was answered before"
    if not cost.affordable:
        return f"it cannot be asked: it would cost {cost.cost:,}, and {cost.remaining:,} are left"
    return f"it would cost {cost.cost:,} of the {cost.remaining:,} that are left"


def budget_view(found: dict[str, Any]) -> Any:
    """What an analyst may still ask."""
    bounds = {name: found.get(name) for name in ("group", "everyone")}
    rows = [
        [safe(found.get("analyst", "")), *budget_cells(found)],
        *([safe(bound.get("name") or name), *budget_cells(bound)]
          for name, bound in bounds.items() if isinstance(bound, dict)),
    ]  # fmt: skip
    return table_of(["budget of", "answers", "used", "left"], rows)


def budget_cells(found: dict[str, Any]) -> list[str]:
    """A budget's numbers."""
    queries, used = found.get("queries"), found.get("used")
    left = found.get("remaining", found.get("left"))
    if left is None and isinstance(queries, int) and isinstance(used, int):
        left = queries - used
    return [figure(queries, "no bound of their own"), figure(used), figure(left)]


def about_view(found: dict[str, Any]) -> Any:
    """What a server says of itself."""
    from rich.console import Group

    from voile.schema import Schema

    promise = found.get("promise")
    facts = {
        "table": f"{safe(found.get('name', ''))}, about {figure(found.get('people'))} people"
        f"{rows_each(found.get('per_person'))}",
        "answers": f"{figure(found.get('queries'))} at most, ever, from all analysts together",
        "noise": f"{safe(found.get('noise', ''))}, variance {figure(found.get('variance'))} "
        f"where one person changes a count by 1{error_of(found.get('stderr'))}",
        "promise": f"no belief about a person rises by more than δ = {figure(found.get('delta'))} "
        f"in log-odds, except with probability at most η = {figure(found.get('eta'))}"
        + (
            ", at any time" if found.get("anytime") else " after all answers, 2η at any time before"
        ),
    }
    if found.get("epsilon") is not None:
        facts["promise"] = (
            f"(ε, δ)-differential privacy with ε = {figure(found['epsilon'])} and "
            f"δ = {figure(found.get('epsilon_delta'))}, for all answers together and at any time. "
            f"It follows: {facts['promise']}"
        )
    elif isinstance(promise, dict) and isinstance(promise.get("epsilon"), float):
        facts["which is"] = (
            f"ε = {figure(promise['epsilon'])} at δ = {figure(promise.get('delta'))}, "
            "in the words of differential privacy"
        )
    facts |= {f"subset {safe(s['name'])}": f"{figure(s['rows'])} rows with {safe(s['sql'])}"
              for s in found.get("subsets", [])}  # fmt: skip
    return Group(Schema.from_dict(found["schema"]), key_values(facts))


def rows_each(per_person: Any) -> str:
    """How many rows a person may have, where it is more than one."""
    if not isinstance(per_person, int) or per_person <= 1:
        return ""
    return f", up to {per_person:,} rows of each: further ones were left out"


def error_of(stderr: Any) -> str:
    """The standard error of a count, where the server says it."""
    return f"; a count has a standard error of {figure(stderr)}" if stderr is not None else ""


def history_view(found: list[dict[str, Any]]) -> Any:
    """One line for each answer of the ledger; a question may have taken several."""
    rows = []
    for one in found:
        question = one.get("question")
        question = question if isinstance(question, dict) else {}
        asked = [figure(one.get("number")), moment(one.get("at")), safe(question.get("sql", ""))]
        rows.append([*asked, rows_of(question.get("subset"))])
    return table_of(["answer", "when", "asked for", "rows"], rows)


def rows_of(subset: Any) -> str:
    """Which rows a question was about."""
    return f"half:{safe(subset.get('half'))}" if isinstance(subset, dict) else safe(subset or "all")


def moment(at: Any) -> str:
    """A time of the ledger, in the reader's own zone."""
    if not isinstance(at, int | float):
        return safe(at or "")
    return dt.datetime.fromtimestamp(at, dt.UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def figure(value: Any, otherwise: str = "") -> str:
    """A number for reading, or a word as it is."""
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, int | float):
        return safe(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def safe(value: Any) -> str:
    """A server's words, which can neither be markup nor steer the terminal."""
    from rich.markup import escape

    from voile.remote.connection import plain

    return escape(plain(value))
