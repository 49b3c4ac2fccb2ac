"""The account of a data set as a page: what has left, when, and what it added up to.

It is made from the register, which is private, and is not to be published.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from voile.evaluate.pages import figures, headline, page, row, table, text_cell
from voile.register.accounts import UNIT_WORDS, UNITS, DataSetAccount, rounded_up
from voile.units import counted

WIDE, HIGH, EDGE = 720, 260, 44
STYLE = """
:root { color-scheme: light dark; }
svg { width: 100%; height: auto; } svg text { font-size: 13px; fill: #5F6C7B; }
.line { fill: none; stroke: #0072B2; stroke-width: 2.5; } .dot { fill: #0072B2; }
.limit { stroke: #D55E00; stroke-width: 2; stroke-dasharray: 6 5; } .axis { stroke: #9AA5B1; }
@media (prefers-color-scheme: dark) {
  body { background: #12181F; color: #E4E9EE; }
  .lead, small, th, .figure span, svg text { color: #9FB0C0; fill: #9FB0C0; }
  .figure, th, td { border-color: #2B3947; } .first { background: #1E2833; }
  .warning { background: #43261A; } .bad b { color: #FF9A5C; }
  .line { stroke: #56B4E9; } .dot { fill: #56B4E9; } .limit { stroke: #FF9A5C; }
}
td:first-child { white-space: nowrap; }
@media (max-width: 40rem) {
  body { margin: 1.2rem auto; padding: 0 .9rem; } .scroll table { min-width: 44rem; }
  svg text { font-size: 24px; }
}
"""


def account_page(account: DataSetAccount) -> bytes:
    """The page of one data set, in one file that loads nothing."""
    excess = account.excess()
    return page(
        f"What has left of {account.data_set}",
        [
            f"<h1>What has left of {html.escape(account.data_set)}</h1>",
            f'<p class="lead">{also_called(account)}From the steward\'s register: personal data, '
            "not to be published.</p>",
            headline(beyond(excess) or account.summary, warning=bool(excess)),
            figures(numbers(account)),
            chart(account),
            "<h2>Releases</h2>",
            table(["when (UTC)", "what", "where", "promise", "recognised", "state"],
                  list(departures(account)), ()),
            "<h2>Totals</h2>",
            table(["between tables that differ by", "adds up to", "how", "apart"],
                  list(totals(account)), ()),
            conditions(account),
        ],
        width=60,
        style=STYLE,
    )  # fmt: skip


def also_called(account: DataSetAccount) -> str:
    """Its further names."""
    listed = html.escape(", ".join(account.aliases))
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
    yield f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="the total over time">'
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
    yield f"ε = {rounded_up(values[-1])}</text></svg>"


def across_line(kind: str, at: float) -> str:
    """A line from side to side."""
    return f'<line class="{kind}" x1="{EDGE}" y1="{at:.1f}" x2="{WIDE - EDGE}" y2="{at:.1f}"/>'


def departures(account: DataSetAccount) -> Iterator[str]:
    """A row for each release."""
    for one in account.left:
        state = "; ".join([one.state, *one.notes])
        yield row(*map(text_cell, (
            one.when.replace("T", " ")[:16], one.title, one.what_is.path, one.promise, one.how,
            state,
        )))  # fmt: skip


def totals(account: DataSetAccount) -> Iterator[str]:
    """A row for each unit."""
    for unit in UNITS:
        total = account.unit_total(unit)
        epsilon = total.sum.epsilon
        at = f" at δ = {total.sum.delta:.3g}" if total.sum.delta else ""
        shown = "nothing" if epsilon is None else f"ε = {rounded_up(epsilon)}{at}"
        apart = counted(len(total.apart), "release") if total.apart else ""
        yield row(*map(text_cell, (UNIT_WORDS[unit], shown, total.sum.way, apart)))


def conditions(account: DataSetAccount) -> str:
    """What the promises presuppose."""
    if not account.conditions:
        return ""
    listed = "".join(f"<li>{html.escape(one)}</li>" for one in account.conditions)
    return f"<h2>What the promises presuppose</h2><ul>{listed}</ul>"
