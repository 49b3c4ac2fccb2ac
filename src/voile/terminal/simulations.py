"""What people see of simulations: reconstructed columns, and walks of confidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from voile.terminal import table_of
from voile.terminal.progress import whole_numbers

if TYPE_CHECKING:
    from voile.evaluate.reconstruction.server import Guesses
    from voile.evaluate.reconstruction.simulating import Attempt, Reconstruction
    from voile.evaluate.sulq.simulation import Outcome, Simulation
    from voile.reproduce import Figure, Reproduced

FITS = {"lsq": "least squares", "lp": "linear programming"}


def reconstruction_view(found: Reconstruction) -> Any:
    """What came back at every size of the noise, beside guessing and beside what is possible."""
    from rich.console import Group

    rows = [
        [attempt.noise, f"{attempt.questions:,}", f"{attempt.size:,.4g}", f"{attempt.roots:.3g}",
         recovered(attempt), f"{attempt.ceiling:.3f}"]
        for attempt in found.attempts
    ]  # fmt: skip
    headings = ["noise", "questions", "size", "in √n", "recovered", "most, on\naverage"]
    size = "the largest error" if found.law == "uniform" else "the standard deviation"
    runs = (
        "1 run" if found.runs == 1 else f"{found.runs:,} runs, ± the standard error of their mean"
    )
    return Group(
        f"[bold]{found.rows:,} rows[/bold] of one secret bit, {FITS[found.method]}, {found.law} "
        f"noise (size: {size}); {runs}",
        whole_numbers(headings, rows, numeric={1, 2, 3, 4, 5}),
        f"Guessing the commoner value gets {found.guess:.3f} right. Most: what someone who "
        "knows every other row gets right on average; by luck a few runs may get more.",
    )


def recovered(attempt: Attempt) -> str:
    """The share that came back, with its error."""
    spread = "" if attempt.stderr is None else f" ± {attempt.stderr:.3f}"
    return f"{attempt.recovered:.3f}{spread}"


def guesses_view(found: Guesses) -> Any:
    """What came back from a server."""
    from rich.console import Group
    from rich.markup import escape

    from voile.terminal import key_values

    facts = {
        "condition": escape(found.condition),
        "rows": f"{found.rows:,}",
        "questions answered": f"{found.questions:,} ({found.charged:,} of them new, "
                              f"{found.remaining:,} left)",
        "noise": f"{found.noise}, variance {found.variance:,.4g}, {found.roots:.3g}√n",
    }  # fmt: skip
    if found.recovered is None or found.guess is None or found.ceiling is None:
        return Group(key_values(facts), "Without --truth nobody knows how many guesses are right.")
    facts["recovered"] = f"{found.recovered:.4f} of the rows"
    facts["by guessing"] = f"{found.guess:.4f}"
    facts["at most"] = f"{found.ceiling:.4f} on average, by someone who knows every other row"
    return key_values(facts)


# ------------------------------------------------ what people see of simulated walks of confidence


def simulation_view(found: Simulation) -> Any:
    """The verdict, then what was seen beside what is bounded, for both noises."""
    from rich.console import Group

    setup = found.setup
    noise = f"{setup.noise} noise of variance {found.chosen.variance:,.6g}"
    verdict = (
        f"[bold]{noise} keeps the promise[/]"
        if found.keeps
        else f"[bold red]{noise} does not keep the promise: "
        f"it needs {found.needed.variance:,.6g}[/]"
    )
    return Group(
        verdict,
        f"after {setup.queries:,} answers conf is to have risen by more than δ = {setup.delta:g}, "
        f"a belief from {setup.prior:.4g} beyond {found.limit:.4g}, with probability at most "
        f"η = {setup.eta:g}",
        chances(found),
        f"seen: {setup.walkers:,} walkers, 95 % intervals; weighed: as many, led towards δ",
    )


def chances(found: Simulation) -> Any:
    """Chances seen and bounded, for both noises."""
    both = [found.chosen, found.beside]
    rows = [
        ["at the end", "seen", *(interval(one, "end") for one in both)],
        ["", "weighed", *(weighed(one.rare_end) for one in both)],
        ["", "exactly", *(number(one.bounds.end) for one in both)],
        ["", "by the normal law", *(number(one.bounds.normal) for one in both)],
        ["at any time", "seen", *(interval(one, "anytime") for one in both)],
        ["", "weighed", *(weighed(one.rare_anytime) for one in both)],
        ["", "at most", *(number(one.bounds.anytime) for one in both)],
        ["any property, any time", "at most", *(number(one.bounds.any_property) for one in both)],
    ]
    headings = [f"V = {one.variance:,.6g}" for one in both]
    return table_of(["conf above δ", "", *headings], rows)


def interval(one: Outcome, when: str) -> str:
    """A share with its interval."""
    share, low, high = (getattr(one.measured, f"{when}{end}") for end in ("", "_low", "_high"))
    return f"{number(share)} ({number(low)} to {number(high)})"


def weighed(rare: Any) -> str:
    """A weighted chance with its error."""
    return f"{number(rare.chance)} ± {number(rare.error)}"


def number(x: float) -> str:
    """Three digits."""
    return "0" if x == 0 else f"{x:.3g}"


# ----------------------------------------------------------------------
# figures of the papers on a terminal: what is printed, what was measured, how they agree


STYLES = {"agrees": "green", "differs": "yellow", "fails": "bold red", "not judged": "dim"}


def list_view(figures: Sequence[Figure]) -> Any:
    """All figures by paper."""
    from rich.console import Group
    from rich.text import Text

    papers = dict.fromkeys(figure.paper for figure in figures)
    return Group(
        *(
            part
            for paper in papers
            for part in (
                Text(paper, style="bold"),
                table_of(
                    ["", ""],
                    [[f.name, f.what] for f in figures if f.paper == paper],
                    show_header=False,
                ),
            )
        )
    )


def reproduced_view(found: Sequence[Reproduced]) -> Any:
    """One figure in full, several as a line each and in full what does not agree."""
    from rich.console import Group

    if len(found) == 1:
        return figure_view(found[0])
    unsound = [figure_view(one) for one in found if one.sound is False]
    return Group(summary(found), *unsound)


def summary(found: Sequence[Reproduced]) -> Any:
    """A line for each figure."""
    from rich.text import Text

    from voile.reproduce.verdict import sign

    view = table_of(["", "", "as printed", "verdict"], [])
    view.columns[2].justify = "right"
    for one in found:
        compared = [check.agrees for check in one.checks if check.agrees is not None]
        verdict = sign(one.agrees, one.sound)
        view.add_row(
            one.name,
            one.what,
            f"{sum(compared)} of {len(compared)}" if one.judged else "",
            Text(verdict, STYLES[verdict]),
        )
    return view


def figure_view(found: Reproduced) -> Any:
    """A figure's checks, and why some do not agree."""
    from rich.console import Group
    from rich.text import Text

    from voile.reproduce.verdict import sign
    from voile.reproduce.writing import measured, printed

    view = table_of(["", "the paper", "measured", "verdict"], [])
    for what, check in found.measured.items():
        verdict = sign(check["agrees"], check["sound"])
        shown = "–" if check["agrees"] is None and check["sound"] else verdict
        # As Text: what stands in brackets is no markup.
        cells = (what, printed(found.printed[what]), measured(check))
        view.add_row(*map(Text, cells), Text(shown, STYLES[verdict]))
    reasons = [
        Text(f"{what}: {check['why']}", style="dim")
        for what, check in found.measured.items()
        if check["why"]
    ]
    return Group(Text(found.title, style="bold"), Text(found.paper, style="dim"), view, *reasons)
