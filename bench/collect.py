"""Rows a second that a collector takes, beside a server that only sends back what it is sent."""

from __future__ import annotations

from bench.child import best, run_rounds
from bench.result import Result, rates

NAME = "collect"
CONNECTIONS = 16
REQUESTS = {1: 3000, 100: 600, 1000: 100}
"""Rows of a request, and how many requests are sent in all: about a second each."""


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    """Rows a second, for requests of one row and of many."""
    requests = {rows: count // 10 for rows, count in REQUESTS.items()} if quick else REQUESTS
    return [
        line for rows, count in requests.items() for line in compared(rows, count, min(rounds, 2))
    ]


def compared(rows: int, requests: int, rounds: int) -> list[Result]:
    """The collector beside an echo, for one size of request."""
    given = {"rows": rows, "requests": requests, "connections": CONNECTIONS}
    done = run_rounds(
        {
            "collector": ("collect_work:collector", given),
            "echo": ("collect_work:echo", given),
        },
        rounds,
    )
    return [
        rates(
            NAME,
            f"{requests:,} requests of {rows:,} row{'s' * (rows > 1)}, {CONNECTIONS} connections",
            best(done["collector"]),
            best(done["echo"]),
            "a FastAPI echo",
            aim=0.5,
            peak_memory=max(outcome.value["server_peak"] for outcome in done["collector"]),
        )
    ]
