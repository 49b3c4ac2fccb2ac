"""What people see: results, notes, tables, progress. No arithmetic."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from voile.estimate import Answer
    from voile.inspection import Inspection
    from voile.publishing import Publication


def show(data: Any, view: Any) -> None:
    """A result on standard output: JSON where asked for, else what `view` makes."""
    if data is not None:
        show_lines([json.dumps(data, ensure_ascii=False, indent=2)])
        return
    from rich.console import Console

    console = Console()
    console.on_broken_pipe = broken_pipe  # type: ignore[method-assign]
    with until_the_pipe_breaks():
        console.print(view(), crop=False)


def show_lines(lines: list[str]) -> None:
    """Lines of a result as they are, not broken to fit the screen."""
    with until_the_pipe_breaks():
        for line in lines:
            print(line)


@contextmanager
def until_the_pipe_breaks() -> Iterator[None]:
    """Who reads no further has what they wanted; 1 would say that the data say no."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(128 + signal.SIGPIPE) from None


def broken_pipe() -> None:
    raise BrokenPipeError


def say(text: str) -> None:
    """Everything that is not a result; lines are not cut, so that commands can be copied."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(text, style="dim", markup=False)


def complain(message: str, hint: str = "") -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"[bold red]error:[/bold red] {escape(message)}")
    if hint:
        console.print(f"[bold]hint:[/bold] {escape(hint)}")


def table_of(headings: list[str], rows: list[list[str]], **options: Any) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, **options)
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(*row)
    return table


def key_values(data: dict[str, Any]) -> Any:
    return table_of(["", ""], [[key, f"{value}"] for key, value in data.items()], show_header=False)


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


def inspection_view(found: Inspection) -> Any:
    from rich.console import Group
    from rich.markup import escape

    from voile.inspection import bars, example

    rows = [
        [
            escape(p.name) + (" [red]identifier?[/red]" if p.looks_like_identifier else ""),
            p.kind or f"[red]{escape(p.sql_type)}[/red]",
            values_text(p.distinct, size),
            f"{p.nulls:,}" if p.nulls else "",
            escape(str(example(p)) if example(p) is not None else ""),
            bars(p.histogram),
        ]
        for p, size in zip(found.profiles, found.sizes, strict=True)
    ]
    headings = ["attribute", "kind", "values", "NULLs", "most frequent", ""]
    return Group(table_of(headings, rows, title=escape(found.name)), *facts(found))


def values_text(distinct: int, size: int | None) -> str:
    """How many values occur, and how many the domain has where that differs."""
    if size is None or size == distinct:
        return f"{distinct:,}"
    return f"{distinct:,} of {size:,}" if size > distinct else f"{distinct:,} in {size:,} bins"


def facts(found: Inspection) -> list[str]:
    from rich.markup import escape

    from voile.publishing.wish import columns_option
    from voile.schema.schema import large

    data = found.to_dict()
    feasible = data["feasible"]
    lines = [
        f"n = {found.rows:,} rows, {found.duplicates:,} of them repeat another row"
        + (f"; {found.complete_rows:,} are without NULLs" * (found.complete_rows < found.rows)),
        f"m = {large(found.domain_size)} possible tuples, n/m = {data['density']:.3g}",
    ]
    if found.identifiers:
        lines.append(
            f"[yellow]leave out {escape(', '.join(found.identifiers))}[/yellow]: nearly every row "
            f"has its own value. Then m = {large(found.publishable_size)} and "
            f"{found.publishable_duplicates:,} rows repeat another: "
            f"--columns {escape(columns_option(found.publishable))}"
        )
    if "boundary" in feasible:
        lines.append(found.boundary.in_words())
    if feasible["possible"]:
        lines.append(
            f"feasible: --prior-factor 10 --posterior 0.2 (d = {feasible['prior']:.3g}) takes "
            f"about {feasible['expected_rows']:,.0f} rows; standard error of a count at most "
            f"{feasible['largest_stderr']:,.0f}; any prior factor below "
            f"{feasible['largest_prior_factor']:.4g}"
        )
    else:
        lines.append(
            f"[red]not feasible[/red]: {escape(feasible['why'])} ({escape(feasible['hint'])})"
        )
    return lines


def publication_view(done: Publication) -> Any:
    from rich.console import Group
    from rich.markup import escape

    from voile.schema.schema import large

    manifest = done.release.manifest
    g, p = manifest.guarantee, manifest.parameters
    rows = [
        ["release", escape(str(done.release.path))],
        ["rows", f"{done.rows_in:,} in, {manifest.rows:,} out"
                 + (f" ({done.rows_dropped:,} left out)" if done.rows_dropped else "")],
        ["domain", f"{large(int(manifest.domain_size))} tuples"],
        ["promise", f"beliefs up to {g.prior:.3g} stay below {g.posterior:.3g} "
                    f"({g.adversary} adversaries, {p.form})"],
        ["parameters", f"retention {p.retention:.6g}, noise {p.noise:.6g}"],
        *([["series", series_line(done.series)]] if done.series else []),
        *[["disclosed", escape(d.what)] for d in manifest.disclosed],
        *[["note", escape(note)] for note in done.notes],
    ]  # fmt: skip
    if manifest.simulated:
        rows.append(["[red]simulated[/red]", "made from a chosen seed: protects nobody"])
    return Group(table_of(["", ""], rows, show_header=False))


def series_line(series: dict[str, Any]) -> str:
    told = "the identical view again, nothing spent" if series["identical"] else "a new view"
    return f"{series['name']}: view {series['view']} of at most {series['views']}, {told}"


class progress_bar:  # noqa: N801  (used as a function)
    """Bars with rows/s and time left on a terminal, silence in a pipe."""

    def __enter__(self) -> progress_bar:
        self._bar: Any = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed:,.0f}/{task.total:,.0f} rows"),
                TextColumn("{task.fields[speed]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
        return self

    def start(self, what: str, total: int) -> None:
        if self._bar:
            self._task = self._bar.add_task(what, total=total, speed="")

    def advance(self, count: int) -> None:
        if self._bar:
            self._bar.advance(self._task, count)
            speed = self._bar.tasks[self._task].speed or 0
            self._bar.update(self._task, speed=f"{speed:,.0f} rows/s" if speed else "")

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()


class fitting_progress:  # noqa: N801  (used as a function)
    """A bar for each step of a fit on a terminal, silence elsewhere."""

    def __enter__(self) -> fitting_progress:
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self._bars = Progress(console=Console(stderr=True), transient=True)
            self._bars.start()
        return self

    def __call__(self, step: str, done: float) -> None:
        if self._bars is None:
            return
        if step not in self._tasks:
            self._tasks[step] = self._bars.add_task(step, total=1.0)
        self._bars.update(self._tasks[step], completed=done)

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()


def refinement_view(data: dict[str, Any]) -> Any:
    """What was fitted, and how the size of the model was chosen."""
    from rich.console import Group

    rows = [
        [str(t["components"]), f"{t['held_out']:.5f}", f"{t['gain']:+.5f} ± {t['gain_error']:.5f}"]
        for t in data["trials"]
    ]
    told = f"{data['components']} components, fitted in {data['seconds']:.0f} s"
    told += f", kept in {data['path']}" if data["path"] else ""
    return Group(table_of(["components", "held-out log density", "gain"], rows), told)
