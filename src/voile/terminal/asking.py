"""What people see of a server that they ask."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from voile.terminal import key_values, say, show, table_of
from voile.terminal.answers import show_answer

if TYPE_CHECKING:
    from voile.remote.client import Cost, Reply


def show_reply(reply: Reply, *, as_csv: bool, as_json: bool) -> None:
    """The answer, and beside it what it took from the budget."""
    if as_json:
        show(reply.to_dict(), None)
        return
    show_answer(reply.estimates, output=None, as_csv=as_csv, as_json=False)
    took = f"charged {reply.charged:,}" if reply.charged else "free: it was answered before"
    say(f"{took}; {reply.remaining:,} left")


def cost_view(cost: Cost) -> Any:
    from rich.console import Group
    from rich.markup import escape

    parts = [price(cost)]
    if cost.known and cost.cost:
        parts.append(f"totals that were answered before, and are free: {cost.known:,}")
    known = {name: error for name, error in cost.stderr.items() if error is not None}
    parts += [f"standard error of {escape(name)}: {error:,.4g}" for name, error in known.items()]
    return Group(*parts, *(f"[dim]note: {escape(note)}[/dim]" for note in cost.notes))


def price(cost: Cost) -> str:
    if not cost.cost:
        return "free: it was answered before"
    if not cost.affordable:
        return f"it cannot be asked: it would cost {cost.cost:,}, and {cost.remaining:,} are left"
    return f"it would cost {cost.cost:,} of the {cost.remaining:,} that are left"


def budget_view(found: dict[str, Any]) -> Any:
    bounds = {name: found.get(name) for name in ("group", "everyone")}
    rows = [
        [safe(found.get("analyst", "")), *budget_cells(found)],
        *([safe(bound.get("name") or name), *budget_cells(bound)]
          for name, bound in bounds.items() if isinstance(bound, dict)),
    ]  # fmt: skip
    return table_of(["budget of", "answers", "used", "left"], rows)


def budget_cells(found: dict[str, Any]) -> list[str]:
    queries, used = found.get("queries"), found.get("used")
    left = found.get("remaining", found.get("left"))
    if left is None and isinstance(queries, int) and isinstance(used, int):
        left = queries - used
    return [figure(queries, "no bound of their own"), figure(used), figure(left)]


def about_view(found: dict[str, Any]) -> Any:
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
        f"in log-odds, but with a chance of η = {figure(found.get('eta'))}"
        + (
            ", at any time" if found.get("anytime") else " after all answers, 2η at any time before"
        ),
    }
    if isinstance(promise, dict) and isinstance(promise.get("epsilon"), float):
        facts["which is"] = (
            f"ε = {figure(promise['epsilon'])} at δ = {figure(promise.get('delta'))}, "
            "in the words of differential privacy"
        )
    facts |= {f"subset {safe(s['name'])}": f"{figure(s['rows'])} rows with {safe(s['sql'])}"
              for s in found.get("subsets", [])}  # fmt: skip
    return Group(Schema.from_dict(found["schema"]), key_values(facts))


def rows_each(per_person: Any) -> str:
    if not isinstance(per_person, int) or per_person <= 1:
        return ""
    return f", up to {per_person:,} rows of each: further ones were left out"


def error_of(stderr: Any) -> str:
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
    return f"half:{safe(subset.get('half'))}" if isinstance(subset, dict) else safe(subset or "all")


def moment(at: Any) -> str:
    """A time of the ledger, in the reader's own zone."""
    if not isinstance(at, int | float):
        return safe(at or "")
    return dt.datetime.fromtimestamp(at, dt.UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def figure(told: Any, otherwise: str = "") -> str:
    """A number for reading, or a word as it is."""
    if told is None:
        return otherwise
    if isinstance(told, bool) or not isinstance(told, int | float):
        return safe(told)
    return f"{told:,}" if isinstance(told, int) else f"{told:,.6g}"


def safe(told: Any) -> str:
    """A server's words, which can neither be markup nor steer the terminal."""
    from rich.markup import escape

    from voile.remote.connection import plain

    return escape(plain(told))
