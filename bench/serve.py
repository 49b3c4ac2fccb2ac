"""Questions a second that a server answers, beside a service that counts without privacy."""

from __future__ import annotations

from bench.child import Outcome, best, run_rounds
from bench.result import Result

NAME = "serve"
CLIENTS = (8, 64)
REQUESTS = 3000
LEAST_SHARE = {"new": 0.5, "conditions": 0.5, "one": 0.8}
"""The aims, of the bare service's rate: where every question is new, and where shapes repeat."""
MOST_P99 = {8: 50.0, 64: 150.0}
"""Milliseconds, by the number of clients."""
SHAPES = {
    "new": "questions, each of a new shape",
    "conditions": "questions, each with a new condition, in four frames",
    "one": "questions of one shape",
}
"""No two questions of a run mean the same, so that every one of them is charged."""
WORKERS = (1, 2)


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    """Answers a second and waiting, for few clients and for many."""
    requests = REQUESTS // 10 if quick else REQUESTS
    return [
        line
        for clients in (CLIENTS[:1] if quick else CLIENTS)
        for shapes in SHAPES
        for line in compared(clients, requests, shapes, min(rounds, 2))
    ]


def compared(clients: int, requests: int, shapes: str, rounds: int) -> list[Result]:
    """Noisy answers beside bare ones, for so many clients; by one process and by two."""
    given = {"requests": requests, "connections": clients, "shapes": shapes}
    tasks = {f"noisy {n}": ("serve_work:noisy", given | {"workers": n}) for n in WORKERS}
    done = run_rounds(tasks | {"bare": ("serve_work:bare", given)}, rounds)
    lines = []
    for workers in WORKERS:
        all_ours, peer = done[f"noisy {workers}"], best(done["bare"])
        what = f"{requests:,} {SHAPES[shapes]}, 45,222 rows, {clients} clients, workers {workers}"
        lines.append(throughput(what, best(all_ours), peer, all_ours, LEAST_SHARE[shapes]))
        lines.append(waiting(what, best(all_ours), peer, clients))
    return lines


def throughput(
    what: str, ours: Outcome, peer: Outcome, all_ours: list[Outcome], least: float
) -> Result:
    """Answers a second."""
    rate, beside = float(ours.value["rate"]), float(peer.value["rate"])
    return Result(
        NAME,
        what,
        "answers/s",
        rate,
        beside,
        "FastAPI and DuckDB alone",
        f"≥ {least:g} ×",
        rate >= least * beside,
        peak_memory=max(one.value["server_peak"] for one in all_ours),
        others=max(ours.others, peer.others),
        details={"ours": ours.value, "peer": peer.value},
    )


def waiting(what: str, ours: Outcome, peer: Outcome, clients: int) -> Result:
    """How long the slowest one in a hundred waits."""
    most = MOST_P99[clients]
    p99 = float(ours.value["p99_ms"])
    return Result(
        NAME,
        f"{what}: 99 % answered within",
        "ms",
        p99,
        float(peer.value["p99_ms"]),
        "FastAPI and DuckDB alone",
        f"≤ {most:g} ms",
        p99 <= most,
        others=max(ours.others, peer.others),
    )
