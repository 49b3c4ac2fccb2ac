"""Noise shaped by a prior beside even noise: errors over all selections of Adult."""

from __future__ import annotations

from bench.child import Outcome, run
from bench.result import Result

NAME = "shaped"
SEEDS = (1, 2, 3)
PLACES = {0: "all counts", 1: "counts ≥ 1", 100: "counts ≥ 100", 1000: "counts ≥ 1000"}


def benchmark(*, quick: bool, rounds: int) -> list[Result]:  # noqa: ARG001
    """Once, with several seeds: errors do not depend on the machine."""
    seeds = SEEDS[:1] if quick else SEEDS
    found = []
    for retention in (None, 0.5):
        options = {"seeds": seeds, "retention": retention}
        even = run("shaped_work:errors", **options)
        shaped = run("shaped_work:errors", noise_prior="product", **options)
        found += lines("largest a" if retention is None else f"a = {retention:g}", shaped, even)
    return found


def lines(which: str, shaped: Outcome, even: Outcome) -> list[Result]:
    """Errors and rows of shaped noise beside even noise."""
    ours, peer = shaped.value, even.value
    errors = [
        Result(
            name=NAME,
            what=f"Adult, k = 10, {which}: mean error of {place}",
            unit="rows",
            ours=ours["errors"][str(limit)],
            peer=peer["errors"][str(limit)],
            peer_name="even noise",
            peak_memory=shaped.peak,
            others=shaped.others,
            details={"shaped": ours, "even": peer} if not limit else {},
        )
        for limit, place in PLACES.items()
    ]
    size = Result(
        name=NAME,
        what=f"Adult, k = 10, {which}: rows of the view",
        unit="rows",
        ours=ours["rows"],
        peer=peer["rows"],
        peer_name="even noise",
    )
    return [*errors, size]
