"""Questions a second that a server answers, beside a service that counts without privacy."""

from __future__ import annotations

from bench.child import Outcome, best, run_rounds
from bench.result import Result

NAME = "serve"
CLIENTS = (8, 64)
REQUESTS = 3000
LEAST_SHARE, MOST_P99 = 0.5, 50.0
"""The aims: of the bare service's rate, and milliseconds with 8 clients."""


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    """Answers a second and waiting, for few clients and for many."""
    requests = REQUESTS // 10 if quick else REQUESTS
    return [line for clients in CLIENTS for line in compared(clients, requests, min(rounds, 2))]


def compared(clients: int, requests: int, rounds: int) -> list[Result]:
    """Noisy answers beside bare ones, for so many clients."""
    given = {"requests": requests, "connections": clients}
    done = run_rounds(
        {"noisy": ("serve_work:noisy", given), "bare": ("serve_work:bare", given)}, rounds
    )
    ours, peer = best(done["noisy"]), best(done["bare"])
    what = f"{requests:,} different counts, 45,222 rows, {clients} clients"
    return [throughput(what, ours, peer, done["noisy"]), waiting(what, ours, peer, clients)]


def throughput(what: str, ours: Outcome, peer: Outcome, all_ours: list[Outcome]) -> Result:
    """Answers a second."""
    rate, beside = float(ours.value["rate"]), float(peer.value["rate"])
    return Result(
        NAME,
        what,
        "answers/s",
        rate,
        beside,
        "FastAPI and DuckDB alone",
        f"≥ {LEAST_SHARE:g} ×",
        rate >= LEAST_SHARE * beside,
        peak_memory=max(one.value["server_peak"] for one in all_ours),
        others=max(ours.others, peer.others),
        details={"ours": ours.value, "peer": peer.value},
    )


def waiting(what: str, ours: Outcome, peer: Outcome, clients: int) -> Result:
    """How long the slowest one in a hundred waits."""
    bound = clients == CLIENTS[0]
    p99 = float(ours.value["p99_ms"])
    return Result(
        NAME,
        f"{what}: 99 % answered within",
        "ms",
        p99,
        float(peer.value["p99_ms"]),
        "FastAPI and DuckDB alone",
        f"≤ {MOST_P99:g} ms" if bound else "",
        p99 <= MOST_P99 if bound else None,
        others=max(ours.others, peer.others),
    )
