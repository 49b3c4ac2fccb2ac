"""The demonstration: a table published as it is by default, questions, the frontier, an attack.

Holds true counts beside estimates: what it writes shows how Voile works and is not publishable.
"""

from __future__ import annotations

import random
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voile.engines import connect
from voile.engines.table import Table
from voile.errors import UsageError, VoileError
from voile.estimate import Answer, Estimate, number
from voile.evaluate.attack import LeftOutAttack, attack_left_out
from voile.evaluate.counts_plot import draw_counts
from voile.evaluate.drawing import load_altair
from voile.evaluate.felt import FeltError, felt_counts, felt_of
from voile.evaluate.frontier import Frontier, find_frontier
from voile.evaluate.frontier.page import write_frontier
from voile.kinds.automatic import publish_best
from voile.kinds.choosing import MethodChoice, in_per_cent, rounded
from voile.kinds.release import Release
from voile.progress import Progress
from voile.query.quoting import bare_identifier, literal
from voile.schema import Schema
from voile.schema.attribute import Attribute, plain

TABLE = "dataset:health"
LEFT_OUT = 10
"""One in so many people is left out before the table is published, and attacked all the same."""
FEWEST = 500
"""People: with fewer, an attack on a tenth of them shows nothing."""
LISTED = range(2, 13)
"""How many values a column has whose counts are shown, or that is guessed."""
TRIED = 6
"""Columns of numbers whose average is tried."""
CLASSED = 5
"""Columns that the frontier generalizes at most."""


@dataclass(frozen=True)
class DemoQuestion:
    """A question, its answer, and the truth of each of its groups."""

    sql: str
    answer: Answer
    truth: tuple[tuple[Any, ...], ...]
    """In the same rows and columns; None where the table has no such group."""

    @property
    def covered(self) -> tuple[int, int]:
        """How many intervals hold the truth, and how many there are."""
        hits = [inside(value, true) for value, true in self.pairs() if true is not None]
        return sum(hits), len(hits)

    def pairs(self) -> Iterator[tuple[Estimate, Any]]:
        """Every estimate beside the truth."""
        for row, truth in zip(self.answer.rows, self.truth, strict=True):
            for value, true in zip(row.values(), truth, strict=True):
                if isinstance(value, Estimate):
                    yield value, true

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        truth = [[plain(value) for value in row] for row in self.truth]
        return {"sql": self.sql, **self.answer.to_dict(), "truth": truth}

    def __rich__(self) -> Any:
        from rich import box  # noqa: PLC0415  (only when printed)
        from rich.table import Table as View  # noqa: PLC0415

        view = View(box=box.SIMPLE_HEAD, padding=(0, 1))
        for name in self.answer.rows[0]:
            view.add_column(name, justify="right", no_wrap=True)
        for row, truth in zip(self.answer.rows, self.truth, strict=True):
            view.add_row(*map(beside, row.values(), truth))
        return view


def inside(value: Estimate, truth: Any) -> bool:
    """Whether the interval holds the truth."""
    low, high = value.interval()
    return bool(low <= truth <= high)


def beside(value: Any, truth: Any) -> str:
    """An estimate with its interval, green where that covers the truth, and the truth."""
    if not isinstance(value, Estimate):
        return str(value)
    low, high = value.interval()
    known = "no such row" if truth is None else f"truth {number(truth)}"
    hit = "dim" if truth is None else "green" if inside(value, truth) else "red"
    return (
        f"[bold]{number(value.value)}[/bold], {known}\n"
        f"[{hit}]{number(low)} … {number(high)}[/{hit}]"
    )


@dataclass(frozen=True)
class Demonstration:
    """All that the demonstration made and measured."""

    source: str
    release: Path
    people: int
    columns: int
    choice: MethodChoice
    felt: FeltError
    questions: tuple[DemoQuestion, ...]
    attack: LeftOutAttack | None
    frontier: Frontier | None
    """Releases as classes of rows, on the axes of privacy and utility."""
    files: tuple[Path, ...]
    seconds: float

    @property
    def studio(self) -> str:
        """The command that opens the release in a browser."""
        return shlex.join(["voile", "studio", str(self.release)])

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            "table": self.source,
            "release": str(self.release),
            "people": self.people,
            "method": self.choice.chosen.method,
            "why": self.choice.why,
            "expected_error": rounded(self.choice.chosen.expected_error),
            "promise": self.choice.promise.to_dict(),
            "felt": self.felt.to_dict(),
            "questions": [question.to_dict() for question in self.questions],
            "attack": None if self.attack is None else self.attack.to_dict(),
            "frontier": None if self.frontier is None else self.frontier.in_words(),
            "files": [str(file) for file in self.files],
            "next": self.studio,
            "seconds": self.seconds,
        }

    def __rich__(self) -> Any:
        from rich.console import Group  # noqa: PLC0415  (only when printed)

        return Group(*self.published(), *self.asked(), *self.attacked(), *self.ended())

    def published(self) -> Iterator[str]:
        """What was published, and how far off its counts are."""
        promise, felt = self.choice.promise, self.felt
        yield f"[bold]1  voile publish {self.source}[/bold]"
        yield (
            f"{self.people:,} people, {self.columns} columns, no option. Their values were learnt "
            f"with noise, the method was chosen: {self.choice.chosen.about}."
        )
        yield f"Promised, with ε = {promise.epsilon:g}: {promise.in_words()}."
        if felt.both is not None:
            yield (
                f"Of {felt.counts:,} counts that hold 1 % of the rows or more, the middle one is "
                f"off by [bold]{in_per_cent(felt.both)}[/bold]; "
                f"{100 * (felt.coverage or 0.0):.1f} % lie in their 95 % interval."
            )

    def asked(self) -> Iterator[Any]:
        """The questions, each estimate with its interval beside the truth."""
        from rich.markup import escape  # noqa: PLC0415  (only when printed)

        yield "\n[bold]2  Questions, each answer beside the truth[/bold]"
        for question in self.questions:
            yield f"[dim]{escape(command(self.release, question.sql))}[/dim]"
            yield question

    def attacked(self) -> Iterator[str]:
        """What an attack found of people in the table, and of others."""
        found = self.attack
        if found is None:
            return
        yield "[bold]3  An attack[/bold]"
        names = f"{len(found.known)} other columns"
        yield (
            f"Someone knows the {names} of everybody, and is after [bold]{found.column}[/bold]. "
            f"In the table, names removed, {100 * found.alone:.0f} % of the people are alone with "
            "what is known: their value can be read."
        )
        gap = 100 * (found.inside - found.outside)
        chance = abs(gap) <= 200 * found.stderr
        yield (
            f"From the release the guess is right for [bold]{100 * found.inside:.1f} %[/bold] of "
            f"the people in it, and for [bold]{100 * found.outside:.1f} %[/bold] of "
            f"{found.left_out:,} others who were left out of it: {gap:+.1f} ± "
            f"{100 * found.stderr:.1f} points. Always guessing the most frequent value is right "
            f"for {100 * found.likeliest:.1f} %. "
            + (
                "[bold]It fails:[/bold] what it finds holds for people outside the table as well."
                if chance
                else "That is more than chance, and no more than the promise allows."
            )
        )

    def ended(self) -> Iterator[str]:
        """Other ways, the files, and what to do next."""
        from rich.markup import escape  # noqa: PLC0415  (only when printed)

        if self.frontier is not None:
            yield "\n[bold]4  Or as classes of rows[/bold]"
            yield (
                "P_loss says how far a belief about one person moves, U_loss how far off estimates "
                "about many people are."
            )
            yield (
                f"{len(self.frontier.points)} releases measured. {escape(self.frontier.in_words())}"
            )
        yield ""
        yield from (f"[bold]{file}[/bold]" for file in self.files)
        yield f"next: [bold]{escape(self.studio)}[/bold]"
        yield (
            "[dim]Intervals in green cover the truth; one in twenty may miss it. "
            f"{self.seconds:.1f} s.[/dim]"
        )


def command(release: Path, sql: str) -> str:
    """What asks a question in a shell, as one would type it."""
    if any(sign in sql for sign in '"$`\\!'):
        return shlex.join(["voile", "query", str(release), sql])
    return f'{shlex.join(["voile", "query", str(release)])} "{sql}"'


def run(output: Path, progress: Progress, source: str = TABLE) -> Demonstration:
    """Leave some people out, publish the others, ask, attack, and draw."""
    load_altair()  # refuses before any work is done
    began = time.monotonic()
    table = connect(source)
    kept, others = left_out(table)
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"{table.name}.voile"
    nulls: dict[str, Any] = {"nulls": "as-value"} if kept.null_counts(list(kept.columns)) else {}
    done = publish_best(kept, to=path, overwrite=True, progress=progress, name=table.name, **nulls)
    assert done.choice is not None  # noqa: S101
    release, schema = done.release, done.release.schema
    counts = list(felt_counts(release, kept))
    guessed = guessed_column(schema)
    questions = tuple(asked(sql, release, kept) for sql in questions_of(release, guessed))
    files = draw_counts(counts, schema, output / "estimates") if counts else []
    attack = None if guessed is None else attack_left_out(release, kept, others, guessed)
    frontier = None if guessed is None else frontier_of(kept, table.name, guessed, progress)
    if frontier is not None:
        (output / "frontier").mkdir(exist_ok=True)
        files = [*files, *write_frontier(frontier, output / "frontier")]
    return Demonstration(
        source, path, len(kept), len(schema.names), done.choice, felt_of(counts),
        questions, attack, frontier, tuple(files), time.monotonic() - began,
    )  # fmt: skip


def left_out(table: Table) -> tuple[Table, Table]:
    """The people who are published, and one in ten who are not; the same at every run."""
    if len(table) < FEWEST:
        raise UsageError(
            f"the table has {len(table):,} rows, too few for a demonstration",
            hint=f"take one of {FEWEST} rows or more, or see it on {TABLE}: leave the table out",
        )
    rows, _ = table.rows(list(table.columns))
    chosen = random.Random(0).sample(range(len(rows)), len(rows) // LEFT_OUT)  # noqa: S311
    out = np.zeros(len(rows), bool)
    out[chosen] = True
    return connect(rows.filter(~out)), connect(rows.filter(out))


# ---------------------------------------------------------------------- questions


def guessed_column(schema: Schema) -> str | None:
    """The last column with a few listed values, or with a few values at all; None without one."""
    few = [a for a in schema.attributes if a.size in LISTED]
    listed = [a for a in few if a.kind in ("categorical", "boolean")]
    return (listed or few)[-1].name if few else None


def questions_of(release: Release, guessed: str | None) -> list[str]:
    """Three questions that fit the release's columns: counts, a condition, an average by group."""
    table = bare_identifier(release.name)
    schema = release.schema
    asked = []
    if guessed is not None:
        column = bare_identifier(guessed)
        asked.append(f"select {column}, count(*) from {table} group by {column} order by {column}")
    few = [a for a in schema.attributes if a.size in LISTED and a.kind == "categorical"]
    edges = {a.name: edge for a in schema.attributes if (edge := middle_edge(a)) is not None}
    if few and edges:
        number_, group = next(iter(edges)), min(few, key=lambda a: a.size)
        value = literal(next(iter(group)))
        asked.append(
            f"select count(*) from {table} where {bare_identifier(number_)} >= {edges[number_]} "
            f"and {bare_identifier(group.name)} = {value}"
        )
        asked.append(sharpest_average(release, group, list(edges)[:TRIED]))
    return asked


def middle_edge(attribute: Attribute) -> str | None:
    """A number in the middle of a column's domain, as SQL; where it has bins, an edge of one."""
    if attribute.kind not in ("integer", "numeric") or attribute.size < 4:
        return None
    edges = getattr(attribute.domain, "edges", None)
    if edges is None:
        values = [value for value in attribute if isinstance(value, int | float)]
        return f"{values[len(values) // 2]:g}" if values else None
    return f"{edges[len(edges) // 2]:g}"


def sharpest_average(release: Release, group: Attribute, columns: Sequence[str]) -> str:
    """The average by group of the column whose averages are known best, relative to their size.

    Without the group that stands for values which are not listed: it may be nobody's.
    """
    by = bare_identifier(group.name)
    listed = "" if group.other is None else f"where {by} <> {literal(group.other)} "

    def about(column: str) -> str:
        return (
            f"select {by}, avg({bare_identifier(column)}) from {bare_identifier(release.name)} "
            f"{listed}group by {by} order by {by}"
        )

    def off(column: str) -> float:
        found = [v for row in release.query(about(column)).rows for v in row.values()]
        estimates = [v for v in found if isinstance(v, Estimate)]
        return float(np.median([v.stderr / max(abs(v.value), 1e-9) for v in estimates]))

    return about(min(columns, key=off))


def asked(sql: str, release: Release, table: Table) -> DemoQuestion:
    """A question's answer, and the truth of each of its groups."""
    answer = release.query(sql)
    groups = [name for name, value in answer.rows[0].items() if not isinstance(value, Estimate)]
    known = {row[: len(groups)]: row for row in as_published(table, release).run(sql)}
    truth = []
    for row in answer.rows:
        key = tuple(row[name] for name in groups)
        truth.append(known.get(key, (*key, *(None for _ in range(len(row) - len(groups))))))
    return DemoQuestion(sql, answer, tuple(truth))


def as_published(table: Table, release: Release) -> Table:
    """The table with values that the release does not list as what stands for them there."""
    rows, _ = table.rows(list(release.schema.names))
    for i, attribute in enumerate(release.schema.attributes):
        if attribute.other is None:
            continue
        values, held = list(attribute), rows.column(attribute.name)
        listed = pc.is_in(held, pa.array(values, pa.string()))
        texts = pc.if_else(pc.fill_null(listed, False), held.cast(pa.string()), attribute.other)
        rows = rows.set_column(i, attribute.name, texts)
    return connect(rows)


def frontier_of(table: Table, name: str, sensitive: str, progress: Progress) -> Frontier | None:
    """Classes of rows of some columns, many releases; None where the table is not for them."""
    columns = [name for name in table.columns if name != sensitive][:CLASSED]
    try:
        found = find_frontier(
            table,
            sensitive=sensitive,
            qi=columns,
            methods=["mondrian", "information", "trivial"],
            grid="quick",
            progress=progress,
        )
    except VoileError:  # NULLs, or columns that classes are not made of
        return None
    return replace(found, name=name)
