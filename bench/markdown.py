"""Results as RESULTS.md keeps them."""

from __future__ import annotations

from collections.abc import Sequence

from bench.machine import described, machine
from bench.result import Result
from bench.show import quantity, size, times

HEAD = """| benchmark | ours | beside | | ratio | aim | our peak |
|---|---|---|---|---|---|---|"""


def as_markdown(results: Sequence[Result], *, quick: bool) -> str:
    """The machine, how busy others kept it, and a line for each result."""
    lines = [f"Measured on: {described(machine())}.", ""]
    if quick:
        lines += ["With --quick: too small to judge by.", ""]
    if results:
        shares = [result.others for result in results]
        lines += [f"Other processes had {min(shares):.0%} to {max(shares):.0%} of the machine.", ""]
    named = [""] + [result.name for result in results]
    rows = [
        row(result, first=result.name != before)
        for before, result in zip(named, results, strict=False)
    ]
    return "\n".join([*lines, HEAD, *rows])


def row(result: Result, *, first: bool) -> str:
    """One result as a line of the table."""
    name = f"**{result.name}**, " if first else ""
    cells = [
        f"{name}{result.what}",
        quantity(result.ours, result.unit),
        quantity(result.peer, result.unit),
        result.peer_name,
        times(result.ratio),
        judged(result),
        size(result.peak_memory),
    ]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def judged(result: Result) -> str:
    """The aim, and whether it is met."""
    if result.met is None:
        return "–"
    return f"{result.aim}: {'met' if result.met else '**missed**'}"
