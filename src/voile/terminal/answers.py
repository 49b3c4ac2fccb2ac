"""Answers and how they came about, as people see them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from voile.estimate import Answer
from voile.terminal import key_values, say, show, table_of


def show_answer(answer: Answer, *, output: Path | None, as_csv: bool, as_json: bool) -> None:
    """An answer where and how it is wanted, and beside it what should be known about it."""
    if output:
        write_answer(answer, output)
    if as_json:
        show(answer.to_dict(), None)
        return
    for note in answer.notes:
        say(f"note: {note}")
    if as_csv:
        print(answer.to_csv(), end="")
    elif not output:
        show(None, lambda: answer)
    if not answer.rows:
        say("no group is left: there is nothing to estimate")
        return
    if answer.assumption:
        say(f"assumed: {answer.assumption}")
    together = answer.covers.startswith("all ")
    one = "the interval covers" if len(answer.rows) == 1 else "each interval covers"
    say(f"{'together the intervals cover' if together else one} {answer.covers}")
    for value in answer.rows[0].values() if answer.rows else ():
        bound = getattr(value, "bound", None)
        if bound:
            say(
                f"any one count is within about {bound.error:,.0f} of the truth with "
                f"probability {1 - bound.epsilon:.4g} (ρ = {bound.rho:.3g}; {bound.theorem}, "
                "as corrected)"
            )
            break


def write_answer(answer: Answer, path: Path) -> None:
    """The answer as a file of the kind that its name says."""
    import io

    from voile.errors import UsageError
    from voile.files import write_whole

    match path.suffix.lower():
        case ".csv":
            content = answer.to_csv().encode()
        case ".json":
            content = json.dumps(answer.to_dict(), ensure_ascii=False, indent=2).encode()
        case ".parquet":
            import pyarrow.parquet as pq

            buffer = io.BytesIO()
            pq.write_table(answer.to_arrow(), buffer)
            content = buffer.getvalue()
        case other:
            raise UsageError(
                f"{str(path)!r} ends in {other or 'nothing'}",
                hint="name it .csv, .parquet or .json",
            )
    write_whole(path, content)
    say(f"wrote {path}")


def explanation_view(found: dict[str, Any]) -> Any:
    """How an estimate comes about, from the conditions to the error."""
    from rich.console import Group
    from rich.markup import escape

    if "recode" in found:
        from voile.terminal.class_answers import class_explanation_view

        return class_explanation_view(found)
    if "arity" in found:
        from voile.terminal.conjunct_answers import conjunct_explanation_view

        return conjunct_explanation_view(found)
    if "axes" in found:
        from voile.terminal.perturbing import local_explanation_view

        return local_explanation_view(found)
    parts: list[Any] = []
    if found["atoms"]:
        rows = [
            [escape(a["condition"]), ", ".join(map(escape, a["reads"]))] for a in found["atoms"]
        ]
        parts.append(table_of(["condition", "reads"], rows))
    rows = [
        [escape(", ".join(p["attributes"])), p["method"], f"{p['width']:,}", f"{p['cost']:,.0f}",
         escape("\n".join(p["steps"]))]
        for p in found["plan"]["parts"]
    ]  # fmt: skip
    if rows:
        parts.append(table_of(["the domain over", "summed by", "width", "cost", "steps"], rows))
    free = found["plan"]["free"]
    if free:
        parts.append(f"any value of {escape(', '.join(free))}")
    facts = {k: v for k, v in found.items() if isinstance(v, int | float)}
    parts.append(
        key_values({k: f"{v:,}" if v == int(v) else f"{v:,.6g}" for k, v in facts.items()})
    )
    for column in found["columns"]:
        parts.append(f"[bold]{escape(column['name'])}[/bold]")
        parts += [f"  {escape(t['of'])}: {escape(t['arithmetic'])}" for t in column["totals"]]
        errors = [f"{name} {value:,.4g}" for name, value in column["errors"].items() if value]
        if errors:
            parts.append(f"  its error comes from: {', '.join(errors)} (squares add up)")
    if found["groups"]:
        parts.append("[dim]figures are of all groups together[/dim]")
    return Group(*parts)
