"""The account of a data set as a page: what has left, when, and what it added up to.

It is made from the register, which is private, and is not to be published.
"""

from __future__ import annotations

import html
import math
import shlex
from collections.abc import Iterator, Sequence

from voile.evaluate.pages import (
    NextStep,
    Report,
    figures,
    head_cell,
    heading,
    headline,
    number_cell,
    row,
    table,
    text_cell,
)
from voile.register.accounts import UNIT_WORDS, UNITS, DataSetAccount, rounded_up
from voile.units import counted

WIDE, HIGH, EDGE = 720, 260, 44
STYLE = """
.account { background: var(--card); border: 1px solid var(--line); border-radius: 12px; }
.account svg { display: block; width: 100%; height: auto; }
.account text { font-size: 13px; fill: var(--soft); } .axis { stroke: var(--soft); }
.account .line { fill: none; stroke: var(--accent); stroke-width: 2.5; }
.dot { fill: var(--accent); } .limit { stroke: var(--bad); stroke-width: 2; stroke-dasharray: 6 5; }
.when { white-space: nowrap; }
@media (max-width: 40rem) { .account text { font-size: 24px; } }
"""


def account_page(account: DataSetAccount) -> bytes:
    """The page of one data set, in one file that loads nothing."""
    return report(account).page()


def report(account: DataSetAccount) -> Report:
    """What has left, when, and what it added up to."""
    excess = account.excess()
    return Report(
        f"What has left of {account.data_set}",
        f"What has left of {account.data_set}",
        f"{also_called(account)}From the steward's register.",
        [
            headline(beyond(excess) or account.summary, warning=bool(excess)),
            figures(numbers(account)),
            chart(account),
            heading("Releases"),
            table("Releases, with the total after each",
                  ["when (UTC)", "what", "where", "promise", "total ε", "recognised", "state"],
                  list(departures(account)), {4}),
            heading("Totals"),
            table("Totals by unit",
                  ["between tables that differ by", "adds up to", "how", "apart"],
                  list(totals(account))),
            conditions(account),
        ],
        steps(account),
        "Made with Voile from the steward's register: personal data, not to be published.",
        style=STYLE,
    )  # fmt: skip


def steps(account: DataSetAccount) -> list[NextStep]:
    """What a steward does next: a limit where there is none, else the same as data."""
    name = account.data_set
    again = NextStep("The same as data:", shlex.join(["voile", "register", "show", name, "--json"]))
    if account.limit is not None:
        return [again]
    total = account.unit_total(account.unit).sum.epsilon or 1.0
    round_up = f"{math.ceil(total * 1.5):g}"
    line = ["voile", "register", "limit", name, "--epsilon", round_up, "--unit", account.unit]
    return [
        NextStep("Refuse releases that would cost more, all together:", shlex.join(line)),
        again,
    ]


def also_called(account: DataSetAccount) -> str:
    """Its further names."""
    listed = ", ".join(account.aliases)
    return f"Also called {listed}. " if listed else ""


def beyond(excess: str) -> str:
    """That the limit is exceeded by what has left already."""
    return f"{excess}, which is beyond the limit already" if excess else ""


def numbers(account: DataSetAccount) -> Iterator[tuple[str, str, bool]]:
    """The figures at the top."""
    yield f"{len(account.left):,}", "left", False
    total = account.unit_total(account.unit)
    if total.sum.epsilon is not None:
        at = f" at δ = {total.sum.delta:.3g}" if total.sum.delta else ""
        yield rounded_up(total.sum.epsilon), f"ε{at}, {UNIT_WORDS[account.unit]}", False
    if account.beliefs is not None:
        yield (
            f"{account.beliefs.posterior:.3g}",
            f"the most that a belief of {account.beliefs.prior:.2g} may become",
            False,
        )
    if total.apart:
        yield f"{len(total.apart):,}", "promise nothing that adds up", True
    if account.limit is not None:
        yield f"{account.limit.epsilon:g}", "limit of ε", bool(account.excess())


def course(account: DataSetAccount) -> list[float]:
    """What had added up after each of the releases."""
    found = []
    for number in range(1, len(account.left) + 1):
        so_far = DataSetAccount(account.data_set, account.left[:number], account.limit)
        found.append(so_far.unit_total(account.unit).sum.epsilon or 0.0)
    return found


def chart(account: DataSetAccount) -> str:
    """The total over time, in steps, and the limit."""
    values = course(account)
    if not values or not max(values):
        return ""
    limit = account.limit.epsilon if account.limit else 0.0
    top = 1.15 * max([*values, limit])
    start, end = account.left[0].at, account.left[-1].at
    span = (end - start) or 1.0

    def x(at: float) -> float:
        return EDGE + (WIDE - 2 * EDGE) * (at - start) / span

    def y(value: float) -> float:
        return HIGH - EDGE + (2 * EDGE - HIGH) * value / top

    places = [(x(one.at), y(value)) for one, value in zip(account.left, values, strict=True)]
    return "".join(drawn(account, places, values, y(limit) if limit else None))


def drawn(
    account: DataSetAccount,
    places: Sequence[tuple[float, float]],
    values: Sequence[float],
    limit: float | None,
) -> Iterator[str]:
    """The parts of the picture."""
    spoken = f"The total over time, in steps; it ends at ε = {rounded_up(values[-1])}"
    yield f'<div class="account"><svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{spoken}">'
    yield across_line("axis", HIGH - EDGE)
    if limit is not None:
        yield across_line("limit", limit)
        yield f'<text x="{EDGE}" y="{limit - 6:.1f}">limit</text>'
    path = f"M{places[0][0]:.1f} {HIGH - EDGE}"
    for across, up in places:
        path += f" H{across:.1f} V{up:.1f}"
    yield f'<path class="line" d="{path} H{WIDE - EDGE}"/>'
    for (across, up), one, value in zip(places, account.left, values, strict=True):
        label = html.escape(f"{one.when}: {one.title}, ε = {rounded_up(value)}")
        yield f'<circle class="dot" cx="{across:.1f}" cy="{up:.1f}" r="5">'
        yield f"<title>{label}</title></circle>"
    yield f'<text x="{EDGE}" y="{HIGH - 18}">{account.left[0].when[:10]}</text>'
    last = account.left[-1].when[:10]
    yield f'<text x="{WIDE - EDGE}" y="{HIGH - 18}" text-anchor="end">{last}</text>'
    yield f'<text x="{WIDE - EDGE}" y="{places[-1][1] - 10:.1f}" text-anchor="end">'
    yield f"ε = {rounded_up(values[-1])}</text></svg></div>"


def across_line(kind: str, at: float) -> str:
    """A line from side to side."""
    return f'<line class="{kind}" x1="{EDGE}" y1="{at:.1f}" x2="{WIDE - EDGE}" y2="{at:.1f}"/>'


def departures(account: DataSetAccount) -> Iterator[str]:
    """A row for each release."""
    for one, total in zip(account.left, course(account), strict=True):
        state = "; ".join([one.state, *one.notes])
        yield row(
            f'<th scope="row" class="when">{one.when.replace("T", " ")[:16]}</th>',
            *map(text_cell, (one.title, one.what_is.path, one.promise)),
            number_cell(rounded_up(total) if total else "–"),
            *map(text_cell, (one.how, state)),
        )


def totals(account: DataSetAccount) -> Iterator[str]:
    """A row for each unit."""
    for unit in UNITS:
        total = account.unit_total(unit)
        epsilon = total.sum.epsilon
        at = f" at δ = {total.sum.delta:.3g}" if total.sum.delta else ""
        shown = "nothing" if epsilon is None else f"ε = {rounded_up(epsilon)}{at}"
        apart = counted(len(total.apart), "release") if total.apart else ""
        cells = map(text_cell, (shown, total.sum.way, apart))
        yield row(head_cell(UNIT_WORDS[unit]), *cells)


def conditions(account: DataSetAccount) -> str:
    """What the promises presuppose."""
    if not account.conditions:
        return ""
    listed = "".join(f"<li>{html.escape(one)}</li>" for one in account.conditions)
    return f"{heading('What the promises presuppose')}<ul>{listed}</ul>"
