"""The shell's own commands, and the bars that it draws of answers."""

from __future__ import annotations

import io
import itertools
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group
from rich.markup import escape
from rich.text import Text

from voile import formulas
from voile.engines import read_all
from voile.engines.rows import check_table_name
from voile.errors import UsageError, VoileError, did_you_mean
from voile.estimate import Answer, checked_confidence, number, shown
from voile.evaluate import answer_plot
from voile.evaluate.answer_plot import BETWEEN, Bar, Panel, drawing
from voile.evaluate.drawing import FORMATS, load_altair
from voile.files import lies_within, write_whole
from voile.schema import Attribute, Bins, Interval, Range, WholeBins
from voile.schema.attribute import value_words
from voile.schema.schema import summary
from voile.shell.session import EndOfSession, Session, is_command
from voile.terminal import complain, say, table_of
from voile.terminal.escaping import console
from voile.terminal.progress import fitting_progress
from voile.units import counted

MOST_BARS = 50
LONGEST_LABEL = 28
NARROWEST = 16
BAR_STYLE, WHISKER_ON_BAR, WHISKER, ZERO = "blue", "bold white on blue", "bold", "dim"


@dataclass(frozen=True)
class Marks:
    """What bars are drawn with."""

    bar: str
    line: str
    low: str
    high: str
    point: str
    to_left: str
    to_right: str
    zero: str
    cross: str


DRAWN = Marks("█", "─", "├", "┤", "●", "◀", "▶", "│", "┼")
ASCII = Marks("#", "-", "[", "]", "o", "<", ">", "|", "+")


def print_bars(answer: Answer, sql: str, printer: Console) -> None:
    """One line for each estimate: its name, the bar with its whisker, the number."""
    what = drawing(answer, sql, most_bars=MOST_BARS)
    marks = DRAWN if printer.encoding.lower().startswith("utf") else ASCII
    for panel in what.panels:
        grouped = BETWEEN.join(name for name in (what.groups, what.colours) if name)
        title = f"{panel.name} by {grouped}" if grouped else panel.name
        printer.print(Text(title, style="bold"))
        print_panel(panel, printer, marks)
    for note in what.notes:
        printer.print(Text(note, style="dim"))


def print_panel(panel: Panel, printer: Console, marks: Marks) -> None:
    """The bars of one column, one line for each estimate."""
    labels = [label_of(bar) for bar in panel.bars]
    longest = min(max(map(cell_len, labels)), LONGEST_LABEL, printer.width // 3)
    numbers = [number_of(bar, large=panel.large) for bar in panel.bars]
    width = printer.width - longest - max(map(cell_len, numbers)) - 4
    for bar, label, value in zip(panel.bars, labels, numbers, strict=True):
        line = Text(no_wrap=True, overflow="crop")
        line.append(f" {fitted(label, longest)} ")
        line.append_text(bar_text(bar, panel, max(width, NARROWEST), marks))
        line.append(f" {value}")
        printer.print(line)


def label_of(bar: Bar) -> str:
    """The group that a bar is of."""
    return BETWEEN.join(part for part in (bar.group, bar.colour) if part)


def number_of(bar: Bar, *, large: bool) -> str:
    """The estimate at the end of a bar."""
    return f"{bar.value:,.0f}" if large and math.isfinite(bar.value) else number(bar.value)


def fitted(label: str, width: int) -> str:
    """The label cut or padded to a width, without control characters."""
    # Control characters in a value of someone's table must not reach the terminal.
    clean = "".join(c if c.isprintable() else "�" for c in label)
    return set_cell_size(clean if cell_len(clean) <= width else clean[: width - 1] + "…", width)


def bar_text(bar: Bar, panel: Panel, width: int, marks: Marks) -> Text:
    """The bar from 0 to the estimate; over it, the interval from end to end."""
    low, high = panel.reach
    # Arrows have a place of their own at either end, beyond all estimates.
    first = int(any(b.low < low for b in panel.bars))
    last = width - 1 - any(b.high > high for b in panel.bars)

    def cell(x: float) -> int:
        if not low <= x <= high:
            return 0 if x < low else width - 1
        return first + round((x - low) / (high - low) * (last - first))

    zero = cell(0.0)
    cells: list[tuple[str, str]] = [(" ", "")] * width
    filled = range(0)
    if math.isfinite(bar.value):
        ends = sorted((zero, cell(bar.value)))
        filled = range(ends[0], ends[1] + 1)
    for i in filled:
        cells[i] = (marks.bar, BAR_STYLE)
    cells[zero] = (marks.zero, ZERO) if zero not in filled or len(filled) == 1 else cells[zero]
    if not (math.isnan(bar.low) or math.isnan(bar.high)):
        left, right = cell(bar.low), cell(bar.high)
        line = dict.fromkeys(range(left, right + 1), marks.line)
        line[left] = marks.to_left if bar.low < low else marks.low
        line[right] = marks.to_right if bar.high > high else marks.high
        if left < zero < right:
            line[zero] = marks.cross
        if math.isfinite(bar.value):
            line[cell(bar.value)] = marks.point
        for i, mark in line.items():
            cells[i] = (mark, WHISKER_ON_BAR if i in filled else WHISKER)
    text = Text()
    for style, run in itertools.groupby(cells, key=lambda cell: cell[1]):
        text.append("".join(mark for mark, _ in run), style=style)
    return text


# ---------------------------------------------------------------------- commands
# The commands of the shell, which begin with a dot or a backslash.


MOST_VALUES = 500
"""Values of an attribute that `\\d NAME` lists."""


@dataclass(frozen=True)
class Command:
    """A command: how it is written, what it does, what it may be followed by."""

    usage: str
    about: str
    run: Callable[[Session, str], None]
    argument: str = ""
    """For completion: attribute, sql, switch, file or with."""


def perform(session: Session, statement: str) -> bool:
    """Run SQL or a command; a refusal is shown, and only makes this False."""
    started = time.perf_counter()
    try:
        if is_command(statement):
            run_command(session, statement)
            return True
        session.ask(statement)
    except VoileError as error:
        complain(error.message, error.hint)
        return False
    if session.timing:
        say(f"{time.perf_counter() - started:.3f} s")
    return True


def run_command(session: Session, statement: str) -> None:
    """Run one of the shell's own commands."""
    name, _, rest = statement.rstrip().removesuffix(";").partition(" ")
    command = COMMANDS.get(name) or COMMANDS.get(ALIASES.get(name, ""))
    if command is None:
        known = [*COMMANDS, *ALIASES]
        raise UsageError(f"there is no command {name}", hint=did_you_mean(name, known))
    try:
        command.run(session, rest.strip())
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise UsageError(f"{where}{error.strerror or error}") from None


# ---------------------------------------------------------------------- attributes


def show_attributes(session: Session, name: str) -> None:
    """All attributes, or one of them, or one of the analyst's tables."""
    if not name:
        session.print(
            session.release.schema.to_dict(),
            lambda: Group(session.release.schema, *tables_view(session)),
        )
        return
    wanted = unquoted(name, '"')
    by_name = {known.casefold(): known for known in session.release.schema.names}
    if wanted in session.tables:
        table = session.tables[wanted]
        columns = [[escape(c.name), str(c.type)] for c in table.schema]
        session.print(
            {"name": wanted, "columns": table.column_names},
            lambda: table_of(["column", "type"], columns, title=escape(wanted)),
        )
        return
    attribute = session.release.schema[by_name.get(wanted.casefold(), wanted)]
    session.print(attribute.to_dict(), lambda: attribute_view(attribute))


def tables_view(session: Session) -> list[str]:
    """A line for each of the analyst's own tables."""
    return [
        f"{escape(name)}: your own table, {counted(table.num_rows, 'row')}: "
        f"{escape(', '.join(table.column_names))}"
        for name, table in session.tables.items()
    ]


def attribute_view(attribute: Attribute) -> Any:
    """An attribute's facts, and its values if they are listed."""
    facts = [
        ["kind", attribute.kind],
        ["size", f"{attribute.size:,}"],
        ["known", "from a codebook" if attribute.public == "declared" else "from the table"],
    ]
    if isinstance(attribute.domain, Range | Interval):  # whose ends say it all
        facts.insert(2, ["domain", escape(summary(attribute))])
        return table_of(["", ""], facts, show_header=False, title=escape(attribute.name))
    more = attribute.size - MOST_VALUES
    return Group(
        table_of(["", ""], facts, show_header=False, title=escape(attribute.name)),
        escape(", ".join(values_of(attribute))),
        *([f"[dim]… and {more:,} more[/dim]"] if more > 0 else []),
    )


def values_of(attribute: Attribute) -> list[str]:
    """The attribute's first values, or its bins."""
    if isinstance(attribute.domain, WholeBins):
        return [*itertools.islice(value_words(attribute), MOST_VALUES)]
    if isinstance(attribute.domain, Bins):
        edges = attribute.domain.edges
        pairs = itertools.islice(itertools.pairwise(edges), MOST_VALUES)
        return [f"[{a:g}, {b:g})" for a, b in pairs] + ["NULL"] * attribute.null
    return [shown(value) for value in itertools.islice(attribute, MOST_VALUES)]


def show_help(session: Session, _: str) -> None:
    """List the commands."""
    rows = [[escape(c.usage), escape(c.about)] for c in COMMANDS.values()]
    data = {c.usage: c.about for c in COMMANDS.values()}
    opening = (
        "SQL ends with [bold];[/bold] or a blank line: "
        f"select count(*) from {escape(session.release.name)} where …;"
    )
    session.print(data, lambda: Group(opening, table_of(["", ""], rows, show_header=False)))


def explain(session: Session, sql: str) -> None:
    """How an estimate comes about: that of `sql`, else the last one."""
    if not sql:
        session.last()
    session.explain(sql or session.sql)


# ---------------------------------------------------------------------- settings


def set_confidence(session: Session, text: str) -> None:
    """Set the confidence of intervals, or say it."""
    if text:
        try:
            wanted = float(text)
        except ValueError:
            raise UsageError(f"{text!r} is not a number", hint=".confidence 0.9") from None
        session.confidence = checked_confidence(wanted)
    say(f"the confidence of intervals is {session.confidence:.6g}")


def switch(name: str, what: str) -> Callable[[Session, str], None]:
    """A command that turns a setting of the session on or off, or says it."""

    def run(session: Session, text: str) -> None:
        if text:
            setattr(session, name, on_or_off(name, text))
        say(f"{what}: {'on' if getattr(session, name) else 'off'}")

    return run


def on_or_off(name: str, text: str) -> bool:
    """What the text says; anything but on and off is refused."""
    if text.lower() not in ("on", "off"):
        raise UsageError(f".{name} is on or off, not {text!r}")
    return text.lower() == "on"


def set_refine(session: Session, text: str) -> None:
    """Fits the model first, if it is not there yet, which takes a while."""
    if text and on_or_off("refine", text):
        release = session.release
        if not release.refines:
            raise UsageError(
                f"{release.name!r} is {release.kind}, and is not refined",
                hint=f"try .method {release.ways[-1]}" if release.ways else "",
            )
        with fitting_progress() as progress:
            release.refine(progress)
    if text:
        session.refine = on_or_off("refine", text)
    refined = session.release.is_refined if session.refine is None else session.refine
    say(f"refined estimates: {'on' if refined else 'off'}")


def set_method(session: Session, text: str) -> None:
    """Choose the estimator, or say which it is."""
    release = session.release
    if not release.ways:
        raise UsageError(
            f"{release.kind} has one estimator", hint="try .refine on" if release.refines else ""
        )
    if text and text not in release.ways:
        raise UsageError(f"method {text!r} is not known", hint=f"use {' or '.join(release.ways)}")
    session.method = text or session.method
    say(f"counts are reconstructed by {session.method or release.ways[0]}")


def set_table(session: Session, text: str) -> None:
    """Load a table of the analyst's own, or list them."""
    if not text:
        for line in tables_view(session) or ["no tables of your own: .with NAME=FILE"]:
            say(line)
        return
    name, equals, file = (part.strip() for part in text.partition("="))
    if not equals or not file:
        raise UsageError(f"{text!r} is not NAME=FILE", hint=".with regions=regions.csv")
    table = bring(session, name, unquoted(file))
    say(f"{name}: {counted(table.num_rows, 'row')}: {', '.join(table.column_names)}")


def bring(session: Session, name: str, file: str) -> Any:
    """Read a table now, so that errors in it are reported now."""
    check_table_name(name)
    table = read_all(file)
    # A new mapping: the release caches by the mapping that it has seen.
    session.tables = {**session.tables, name: table}
    return table


# ---------------------------------------------------------------------- output


def set_table_mode(session: Session, _: str) -> None:
    """Print answers as tables."""
    session.mode = "table"


def json_mode(session: Session, file: str) -> None:
    """Print answers as JSON; with a file, write the last one."""
    if not file:
        session.mode = "json"
        return
    text = json.dumps(session.last().to_dict(), ensure_ascii=False, indent=2) + "\n"
    save(session, file, text.encode())


def csv_mode(session: Session, file: str) -> None:
    """Print answers as CSV; with a file, write the last one."""
    if not file:
        session.mode = "csv"
        return
    save(session, file, session.last().to_csv().encode())
    if session.last().formulas:
        say(f"note: {formulas.note(session.last().formulas)}")


def save_parquet(session: Session, file: str) -> None:
    """Write the last answer as Parquet."""
    if not file:
        raise UsageError("which file?", hint=".parquet answer.parquet")
    content = io.BytesIO()
    pq.write_table(session.last().to_arrow(), content)
    save(session, file, content.getvalue())


def save(session: Session, file: str, content: bytes) -> None:
    """Write a file, whole or not at all, and say so."""
    path = outside(session, Path(unquoted(file)).expanduser())
    say(f"wrote {write_whole(path, content)}")


def outside(session: Session, path: Path) -> Path:
    """The path, if it is not inside the release: one more file there would look like damage."""
    if lies_within(path, session.release.path):
        raise UsageError(f"{str(path)!r} lies in the release", hint="write it elsewhere")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {str(path.parent)!r}")
    return path


def plot(session: Session, file: str) -> None:
    """Bars in the terminal at once, and a picture in a file."""
    answer = session.last()
    wanted = Path(unquoted(file)).expanduser() if file else None
    kind = wanted.suffix.lstrip(".").lower() if wanted else "png"
    if kind not in FORMATS:
        raise UsageError(
            f"{str(wanted)!r} does not say what picture to make",
            hint="end it in " + ", ".join(f".{known}" for known in FORMATS),
        )
    # In JSON and CSV mode only data goes to standard output.
    print_bars(answer, session.sql, console(stderr=session.mode != "table", highlight=False))
    try:
        load_altair()
    except UsageError as missing:
        if wanted:
            raise
        say(f"no picture: {missing.message} ({missing.hint})")
        return
    path = outside(session, wanted or free_name(session.release.name))
    say(f"wrote {answer_plot.save(answer, session.sql, path)}")


def free_name(name: str) -> Path:
    """NAME-1.png, or the next number that is free."""
    plain = "".join(c if c.isalnum() or c in "-_" else "-" for c in name) or "answer"
    return next(path for i in itertools.count(1) if not (path := Path(f"{plain}-{i}.png")).exists())


def leave(_: Session, __: str) -> None:
    """End the session."""
    raise EndOfSession


def unquoted(text: str, quotes: str = "'\"") -> str:
    """The text without the quotes around it."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in quotes:
        return text[1:-1]
    return text


COMMANDS = {
    "\\d": Command("\\d [NAME]", "the attributes, or one of them with its values",
                   show_attributes, "attribute"),
    ".plot": Command(".plot [FILE]", "draw the last answer here, and as .png, .svg, .pdf or .html",
                     plot, "file"),
    ".explain": Command(".explain [SQL]", "how the last estimate, or that of SQL, comes about",
                        explain, "sql"),
    ".confidence": Command(".confidence [C]", "of the intervals, as in .confidence 0.9",
                           set_confidence),
    ".simultaneous": Command(".simultaneous on|off", "intervals that hold for all groups at once",
                             switch("simultaneous", "simultaneous intervals"), "switch"),
    ".refine": Command(".refine on|off", "estimates weighed against a model fitted to the release",
                       set_refine, "switch"),
    ".method": Command(".method inversion|em", "how perturbed rows are reconstructed",
                       set_method),
    ".with": Command(".with [NAME=FILE]", "a table of your own, to join or look up in",
                     set_table, "with"),
    ".table": Command(".table", "print answers as tables", set_table_mode),
    ".json": Command(".json [FILE]", "print answers as JSON; with FILE, write the last one",
                     json_mode, "file"),
    ".csv": Command(".csv [FILE]", "print answers as CSV; with FILE, write the last one",
                    csv_mode, "file"),
    ".parquet": Command(".parquet FILE", "write the last answer as Parquet", save_parquet, "file"),
    ".timing": Command(".timing on|off", "say how long each answer took",
                       switch("timing", "timing"), "switch"),
    ".help": Command(".help", "this list (also \\?)", show_help),
    ".quit": Command(".quit", "end the session (also \\q, Ctrl-D)", leave),
}  # fmt: skip
ALIASES = {"\\?": ".help", "\\h": ".help", "\\q": ".quit", ".exit": ".quit", ".d": "\\d"}
