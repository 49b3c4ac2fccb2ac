"""Counting a condition on the public domain beside listing it, inclusion-exclusion and a BDD."""

from __future__ import annotations

from bench.child import Outcome, highest_peak, run_rounds
from bench.result import Result

NAME = "domain_count"
WHAT = {
    "chain": "a < b and b < c and c < d",
    "sum": "a + b + c + d + e < 100",
    "pair": "a < b",
    "dnf": "20 clauses on 6 attributes",
}
FULL = {"chain": 1000, "sum": 1000, "pair": 10**6, "dnf": 1000}
"""Values of each attribute."""
LIMITS = {"chain": 0.05, "sum": 0.05, "pair": 0.5, "dnf": 0.05}
"""Seconds that an answer may take."""
LISTED = {"chain": 400, "sum": 60, "pair": 40_000, "dnf": 20}
"""Values such that the cross join ends in this life."""
BESIDE = {"inclusion_exclusion": "inclusion-exclusion", "diagram": "a BDD (dd)"}


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    """The times of every case and way."""
    full = dict.fromkeys(FULL, 40) if quick else FULL
    listed = dict.fromkeys(LISTED, 12) if quick else LISTED
    tasks = {}
    for case in WHAT:
        tasks[f"{case} ours"] = task("ours", case, full[case])
        tasks[f"{case} diagram"] = task("diagram", case, full[case])
        tasks[f"{case} ours listed"] = task("ours", case, listed[case])
        tasks[f"{case} cross_join"] = task("cross_join", case, listed[case])
    tasks["dnf inclusion_exclusion"] = task("inclusion_exclusion", "dnf", full["dnf"])
    done = {name: fastest(outcomes) for name, outcomes in run_rounds(tasks, rounds).items()}
    return [line for case in WHAT for line in lines(case, full[case], listed[case], done)]


def task(way: str, case: str, size: int) -> tuple[str, dict[str, object]]:
    """The task of one way to count a case."""
    return f"domain_work:{way}", {"case": case, "size": size}


def fastest(outcomes: list[Outcome]) -> tuple[Outcome, int]:
    """The fastest run, and the highest peak; a peer that is not installed has no time."""
    ordered = sorted(outcomes, key=lambda outcome: outcome.value["seconds"] or 0.0)
    return ordered[0], highest_peak(outcomes)


def lines(case: str, full: int, listed: int, done: dict[str, tuple[Outcome, int]]) -> list[Result]:
    """Ours beside its limit, beside the cross join on fewer values, and beside the others."""
    ours, peak = done[f"{case} ours"]
    took, limit = ours.value["seconds"], LIMITS[case]
    what = f"{WHAT[case]}, {full:,} values"
    found = [
        Result(
            NAME, what, "ms", 1000 * took, 1000 * limit, "the limit", "≤ 1 ×", took <= limit, peak,
            ours.others, ours.value,
        ),
        beside_listing(case, listed, done),
    ]  # fmt: skip
    for way, name in BESIDE.items():
        if f"{case} {way}" in done:
            peer = done[f"{case} {way}"][0]
            if peer.value["seconds"] is not None:
                found.append(pair(what, ours, peer, name))
    return found


def beside_listing(case: str, size: int, done: dict[str, tuple[Outcome, int]]) -> Result:
    """Ours beside DuckDB's cross join, which must count the same."""
    ours, peer = done[f"{case} ours listed"][0], done[f"{case} cross_join"][0]
    assert ours.value["count"] == peer.value["count"]
    slow = peer.value["seconds"] > 1
    what = f"{WHAT[case]}, {size:,} values"
    return pair(what, ours, peer, "DuckDB's cross join", aim=0.01 if slow else None)


def pair(what: str, ours: Outcome, peer: Outcome, name: str, *, aim: float | None = None) -> Result:
    """Both times in milliseconds; the aim is the largest ratio wanted."""
    a, b = 1000 * ours.value["seconds"], 1000 * peer.value["seconds"]
    return Result(
        name=NAME,
        what=what,
        unit="ms",
        ours=a,
        peer=b,
        peer_name=name,
        aim="" if aim is None else f"≤ {aim:g} ×",
        met=None if aim is None else a <= aim * b,
        others=max(ours.others, peer.others),
        details={"ours": ours.value, "peer": peer.value},
    )
