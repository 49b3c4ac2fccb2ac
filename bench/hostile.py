"""How long an analyst waits while another tries to stop the server, beside a quiet server."""

from __future__ import annotations

from bench.child import best, run_rounds
from bench.result import Result

NAME = "hostile"
REQUESTS, SENDERS, HALF_OPEN = 400, 16, 500
MOST_RATIO = 3.0
"""The aim: p99 beside the other's worst, of that in quiet."""


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    """p99 of one analyst, with and without the other."""
    given = {
        "requests": 50 if quick else REQUESTS,
        "senders": 4 if quick else SENDERS,
        "half_open": 50 if quick else HALF_OPEN,
    }
    done = run_rounds({"both": ("hostile_work:hostile", given)}, min(rounds, 2))
    found = best(done["both"])
    ours, quiet = float(found.value["p99_ms"]), float(found.value["quiet_p99_ms"])
    return [
        Result(
            NAME,
            f"99 % answered within, beside {given['senders']} connections that send the worst "
            f"questions and {given['half_open']} half-open ones",
            "ms",
            ours,
            quiet,
            "the same server in quiet",
            f"≤ {MOST_RATIO:g} ×",
            ours <= MOST_RATIO * quiet,
            others=found.others,
            details={"ours": found.value},
        )
    ]
