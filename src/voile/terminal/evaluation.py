"""What people see of the losses of a release."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from voile.terminal import table_of
from voile.terminal.escaping import console
from voile.terminal.progress import whole_numbers
from voile.units import chance, counted, percent, rounded

if TYPE_CHECKING:
    from voile.evaluate.attack.beliefs import Attack, Belief
    from voile.evaluate.audit.answers import AnswersAudit
    from voile.evaluate.audit.method import MethodAudit
    from voile.evaluate.frontier.portfolio import Point
    from voile.evaluate.frontier.result import Frontier
    from voile.evaluate.losses.measured import Losses
    from voile.evaluate.risk import Risk
    from voile.kinds.beliefs import BeliefBounds


def loss_view(losses: Losses) -> Any:
    """Both axes, then all other measures with what each means, then whom it shows worst."""
    from rich.console import Group
    from rich.markup import escape

    from voile.evaluate.losses.page import measures

    about = f"{losses.sensitive} given {', '.join(losses.qi)}"
    parts: list[Any] = [
        f"[bold]{escape(losses.release)}[/bold] ({losses.kind}, {counted(losses.rows, 'row')}): "
        f"{escape(about)}",
        table_of(["measure", "value", "what it is"], [list(each) for each in measures(losses)]),
    ]
    if losses.worst:
        rows = [
            [escape(one.population), f"{one.rows:,}", rounded(one.loss)] for one in losses.worst
        ]
        parts.append(table_of(["shown worst", "rows", "loss"], rows))
    return Group(*parts)


# --------------------------------------------------------------- what people see of a table's risk


SETS_SHOWN = 8
WIDE = 100
"""Columns from which on there is room to say what numbers mean."""


def risk_view(risk: Risk) -> Any:
    """The most important sentence, all numbers, class sizes, and what singles rows out."""
    from rich.console import Group
    from rich.markup import escape

    from voile.evaluate.risk.page import facts, meaning

    colour = "bold red" if risk.k < 2 else "bold"
    rows = [[escape(name), escape(value), escape(meaning(name))] for name, value in facts(risk)]
    return Group(
        f"[{colour}]{escape(risk.headline())}[/{colour}]",
        numbers_view(rows),
        sizes_view(risk),
        *sets_view(risk),
    )


def numbers_view(rows: list[list[str]]) -> Any:
    """Names and numbers whole; what they mean in the room that is left."""
    from rich import box
    from rich.table import Table

    from voile.terminal.progress import is_narrow

    table = Table(box=box.SIMPLE_HEAD, show_header=False)
    for style in ("", "bold"):
        table.add_column(style=style, no_wrap=True)
    if not is_narrow(WIDE):
        table.add_column(style="dim")
    for name, value, meant in rows:
        table.add_row(*((name, value) if is_narrow(WIDE) else (name, value, meant)))
    return table


def sizes_view(risk: Risk) -> Any:
    """Classes by their size, with bars."""
    from voile.evaluate.risk.page import size_words

    groups = [g for g in risk.class_sizes() if g["rows"]]
    most = max(g["rows"] or 0 for g in groups)
    rows = [
        [size_words(g["from"] or 1, g["to"]), f"{g['classes']:,}", f"{g['rows']:,}",
         percent((g["rows"] or 0) / risk.rows, rough=True),
         "█" * round(24 * (g["rows"] or 0) / most)]
        for g in groups
    ]  # fmt: skip
    return whole_numbers(["class of", "classes", "rows", "share", ""], rows, numeric={0, 1, 2, 3})


def sets_view(risk: Risk) -> list[Any]:
    """The columns that single rows out, alone or together."""
    from rich.markup import escape

    found = risk.unique_sets
    if not found.rows:
        return [f"No row is singled out by {found.largest} columns or fewer."]
    most = sorted(found.sets, key=lambda s: -s.minimal)[:SETS_SHOWN]
    rows = [
        [escape(" + ".join(s.columns)), f"{s.minimal:,}", f"{s.rows:,}"] for s in most if s.minimal
    ]
    headings = ["columns that together single rows out", "rows,\nno fewer do", "rows\nin all"]
    shares = ", ".join(
        f"{escape(c.column)} {percent(c.share, rough=True)}" for c in found.columns[:5] if c.minimal
    )
    return [
        whole_numbers(headings, rows, numeric={1, 2}),
        f"Columns that contribute most: {shares} of the scores.",
    ]


# ------------------------------------------------------ what people see of the frontier of a table


def frontier_view(found: Frontier) -> Any:
    """The efficient points, then which one to publish and how."""
    from rich.console import Group
    from rich.markup import escape
    from rich.text import Text

    best = [p for p, good in zip(found.points, found.efficient, strict=True) if good]
    rows = [
        [escape(asked(p)), p.method, p.recode or "–", f"{p.p_loss:.4f}", f"{p.u_loss:.5f}",
         number_or_dash(found.above(p), "z.5f"), number_or_dash(p.classes, ",")]
        for p in sorted(best, key=lambda p: p.p_loss)
    ]  # fmt: skip
    headings = ["efficient", "method", "recode", "P_loss", "U_loss", "above", "classes"]
    parts: list[Any] = [
        f"[bold]{escape(found.name)}[/bold]: {escape(found.sensitive)} given "
        f"{escape(', '.join(found.qi))}; {len(found.points)} releases measured, {len(best)} of "
        f"them efficient, on {found.populations:,} populations",
        table_of(headings, rows),
        Text(found.in_words(), style="bold"),
    ]
    if found.recommended is not None:
        command = found.recommended.command  # in one line, so that it can be copied
        parts.append(Text(command, style="cyan", no_wrap=True, overflow="ignore"))
    parts.append(Text(found.meaning, style="dim"))
    if found.refused:
        parts.append(
            Text(f"{len(found.refused)} could not be: {found.refused[0].why}", style="dim")
        )
    return Group(*parts)


def asked(point: Point) -> str:
    """What it was asked to promise, in few words."""
    own = ("k", "l", "t", "semantic", "absent", "posterior", "retention")
    named = [f"{n} {point.parameters[n]}" for n in own if n in point.parameters]
    return ", ".join(named) or "–"


def number_or_dash(value: float | None, form: str) -> str:
    """A number in this format, or a dash where there is none."""
    return "–" if value is None else format(value, form)


class points_bar:  # noqa: N801  (used as a function)
    """A bar of points on a terminal, silence in a pipe."""

    def __enter__(self) -> points_bar:
        self._bar: Any = None
        if sys.stderr.isatty():
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
            from rich.progress import TimeRemainingColumn as Remaining

            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining(),
                console=console(stderr=True), transient=True,
            )  # fmt: skip
            self._bar.start()
        return self

    def start(self, what: str, total: int) -> None:
        """Begin a bar of so many points."""
        if self._bar:
            self._task = self._bar.add_task(what, total=total)

    def advance(self, count: int) -> None:
        """Count points."""
        if self._bar:
            self._bar.advance(self._task, count)

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()


# ---------------------------------------------------- what people see of an attack and of an audit


def belief_view(found: BeliefBounds) -> Any:
    """What anyone can come to believe, by what they believed before."""
    from rich.console import Group

    posterior = {(one.prior, one.eta): one.posterior for one in found.bounds}
    headings = ["before", *(f"but for {eta:g}" if eta else "always" for eta in found.chances)]
    rows = [
        [f"{prior:g}", *(f"{posterior[prior, eta]:.4g}" for eta in found.chances)]
        for prior in found.priors
    ]
    return Group(
        f"What anyone who knows every other row can come to believe of one row ({found.unit}), "
        "at most:",
        whole_numbers(headings, rows, numeric=set(range(len(headings)))),
        found.about,
    )


def attack_view(attack: Attack, show: int) -> Any:
    """What the adversary ends up knowing, then people and tuples, worst first."""
    from rich.console import Group
    from rich.markup import escape

    from voile.evaluate.attack.page import guess_words, seen_words, verdict, who

    colour = "bold red" if attack.exposures.exposed else "bold"
    parts: list[Any] = [
        f"[{colour}]{escape(attack.exposures.headline())}[/{colour}]",
        escape(who(attack)),
    ]
    if attack.people:
        rows = [
            [escape(p.name), f"{p.candidates:,}", escape(guess_words(p)), percent(p.best.prior),
             percent(p.best.posterior), f"× {p.best.gain:,.3g}"]
            for p in attack.people[:show]
        ]  # fmt: skip
        headings = ["who", "candi-\ndates", "best guess of what was unknown", "before", "after",
                    "gain"]  # fmt: skip
        parts.append(whole_numbers(headings, rows, numeric={1, 3, 4, 5}))
    rows = [
        [escape(b.name), escape(b.words), seen_words(b), percent(b.prior),
         percent(b.posterior), mark(b)]
        for b in attack.beliefs[:show]
    ]  # fmt: skip
    headings = ["who", "tuple", "seen", "before", "after", ""]
    parts.append(whole_numbers(headings, rows, numeric={2, 3, 4}))
    parts += summary(attack, min(show, len(attack.beliefs)))
    parts.append(escape(verdict(attack)))
    return Group(*parts)


def mark(belief: Belief) -> str:
    """What a belief is marked with."""
    if belief.positive_leak:
        return "[red]positive leak[/red]"
    if belief.negative_leak:
        return "[magenta]negative leak[/magenta]"
    return "" if belief.covered else "[dim]prior above d[/dim]"


def summary(attack: Attack, shown: int) -> list[str]:
    """How many tuples leaked, in a sentence."""
    tally, promise = attack.tally, attack.promise
    rest = f" ({tally.tuples - shown:,} not shown)" if tally.tuples > shown else ""
    return [
        f"[bold]{tally.tuples:,} tuples[/bold]{rest}, {tally.above_posterior:,} of them now above "
        f"γ = {chance(promise.posterior)}. Of the {tally.covered:,} covered (prior at most "
        f"d = {promise.prior:.3g}): {tally.positive_leaks:,} positive and "
        f"{tally.negative_leaks:,} negative leaks. Of the {tally.uncovered:,} not covered: "
        f"{tally.uncovered_above:,} above γ."
    ]


def audit_view(audited: MethodAudit | AnswersAudit) -> Any:
    """The two bounds, what they say, and what was tested at all."""
    from rich.console import Group
    from rich.markup import escape

    rows = [
        [b.side, f"{b.bound:.4g}", "∞" if b.promised is None else f"{b.promised:.4g}",
         f"{b.with_record:,}", f"{b.without_record:,}",
         "[red]broken[/red]" if b.broken else "[green]consistent[/green]"]
        for b in audited.bounds
    ]  # fmt: skip
    bound, judged = f"bound\n(failure\n{audited.failure:g})", f"of {audited.bounds[0].runs:,}"
    headings = [
        audited.measure,
        bound,
        "promised",
        f"with it,\n{judged}",
        f"without,\n{judged}",
        "",
    ]
    lines = [audited.scope, *audited.explain().splitlines()]
    return Group(
        whole_numbers(headings, rows, numeric={0, 1, 2, 3, 4, 5}), *[escape(line) for line in lines]
    )
