"""What people see of an attack and of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal.narrow import whole_numbers

if TYPE_CHECKING:
    from voile.evaluate.attack.attacked import Attack
    from voile.evaluate.attack.beliefs import Belief
    from voile.evaluate.audit.answers import AnswersAudit
    from voile.evaluate.audit.method import MethodAudit


def attack_view(attack: Attack, show: int) -> Any:
    """What the adversary ends up knowing, then people and tuples, worst first."""
    from rich.console import Group
    from rich.markup import escape

    from voile.evaluate.attack.page import guess_words, percent, seen_words, verdict, who

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
    if belief.positive_leak:
        return "[red]positive leak[/red]"
    if belief.negative_leak:
        return "[magenta]negative leak[/magenta]"
    return "" if belief.covered else "[dim]prior above d[/dim]"


def summary(attack: Attack, shown: int) -> list[str]:
    from voile.privacy.guarantee import chance

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
    told = [audited.scope, *audited.explain().splitlines()]
    return Group(
        whole_numbers(headings, rows, numeric={0, 1, 2, 3, 4, 5}), *[escape(line) for line in told]
    )
