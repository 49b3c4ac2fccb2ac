"""Answers and how they came about, as people see them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from voile.answering.explanation import Explanation, Section
    from voile.estimate import Answer
from voile.terminal import say, say_notes, show, show_lines, table_of

UNCOVERED = "the interval does not cover that"
"""How a note says what the sentence about the intervals must not claim."""


def show_answer(
    answer: Answer,
    *,
    output: Path | None,
    as_csv: bool,
    as_json: bool,
    csv_safe: bool = False,
) -> None:
    """An answer where and how it is wanted, and beside it what should be known about it."""
    if output:
        write_answer(answer, output, csv_safe=csv_safe)
    if as_json:
        show(answer.to_dict(), None)
        return
    say_notes(answer.notes)
    if as_csv:
        show_csv(answer, csv_safe=csv_safe)
    elif not output:
        show(None, lambda: answer)
    if not answer.rows:
        say("no group is left: there is nothing to estimate")
        return
    if answer.assumption:
        say(f"assumed: {answer.assumption}")
    say(covers_sentence(answer))
    for value in answer.rows[0].values() if answer.rows else ():
        bound = getattr(value, "bound", None)
        if bound:
            say(
                f"any one count is within about {bound.error:,.0f} of the truth with "
                f"probability {1 - bound.epsilon:.4g} (ρ = {bound.rho:.3g}; {bound.theorem}, "
                "as corrected)"
            )
            break


def covers_sentence(answer: Answer) -> str:
    """What the intervals cover; not what a note says that they do not."""
    together = answer.covers.startswith("all ")
    one = "the interval covers" if len(answer.rows) == 1 else "each interval covers"
    said = f"{'together the intervals cover' if together else one} {answer.covers}"
    apart = any(UNCOVERED in note for note in answer.notes)
    return f"{said}; what a note above excepts is not covered" if apart else said


def about(answer: Answer) -> dict[str, Any]:
    """What should be known beside the numbers of an answer."""
    return {key: value for key, value in answer.to_dict().items() if key != "rows"}


def show_csv(answer: Answer, *, csv_safe: bool = False) -> None:
    """An answer as CSV; what a terminal would act upon is escaped, as everywhere."""
    show_lines(answer.to_csv(safe=csv_safe).removesuffix("\n").split("\n"))


def write_answer(answer: Answer, path: Path, *, csv_safe: bool = False) -> None:
    """The answer as a file of the kind that its name says."""
    from voile.errors import UsageError
    from voile.files import write_whole

    match path.suffix.lower():
        case ".csv":
            content = answer.to_csv(safe=csv_safe).encode()
            say_formulas(0 if csv_safe else answer.formulas)
        case ".json":
            content = json.dumps(answer.to_dict(), ensure_ascii=False, indent=2).encode()
        case ".parquet":
            content = answer.to_parquet()
        case other:
            raise UsageError(
                f"{str(path)!r} ends in {other or 'nothing'}",
                hint="name it .csv, .parquet or .json",
            )
    write_whole(path, content)
    say(f"wrote {path}")
    if path.suffix.lower() == ".csv":  # which has no place for it
        beside = path.with_name(f"{path.name}.about.json")
        write_whole(beside, json.dumps(about(answer), ensure_ascii=False, indent=2).encode())
        say(f"wrote {beside}: what the intervals cover, and notes")


def say_formulas(cells: int) -> None:
    """Warn of cells of a CSV file that a spreadsheet would compute."""
    from voile.errors import spelled
    from voile.formulas import note

    if cells:
        say(f"note: {note(cells)}; {spelled('csv_safe', True)} puts an apostrophe in front")


def explanation_view(found: Explanation) -> Any:
    """How an estimate comes about, from the conditions to the error."""
    from rich.console import Group

    return Group(*map(section_view, found.sections()))


def section_view(section: Section) -> Any:
    """A table or a line of an explanation."""
    from rich.markup import escape

    if section.kind == "line":
        text = escape(section.text)
        return f"[{section.style}]{text}[/{section.style}]" if section.style else text
    rows = [[escape(cell) for cell in row] for row in section.rows]
    if section.headings:
        return table_of(list(section.headings), rows)
    return table_of(["", ""], rows, show_header=False)
