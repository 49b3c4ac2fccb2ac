"""What people see of simulated walks of confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal import table_of

if TYPE_CHECKING:
    from voile.evaluate.sulq.simulation import Outcome, Simulation


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
        f"a belief from {setup.prior:.4g} beyond {found.limit:.4g}, with a chance of at most "
        f"η = {setup.eta:g}",
        chances(found),
        f"seen: {setup.walkers:,} walkers, 95 % intervals; weighed: as many, led towards δ",
    )


def chances(found: Simulation) -> Any:
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
    share, low, high = (getattr(one.measured, f"{when}{end}") for end in ("", "_low", "_high"))
    return f"{number(share)} ({number(low)} to {number(high)})"


def weighed(rare: Any) -> str:
    return f"{number(rare.chance)} ± {number(rare.error)}"


def number(x: float) -> str:
    return "0" if x == 0 else f"{x:.3g}"
