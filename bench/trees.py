"""Trees from perturbed rows of Adult beside the tree of the rows themselves."""

from __future__ import annotations

from bench.child import Outcome, run
from bench.result import Result

NAME = "trees"
SEEDS = (1, 2, 3, 4, 5)
RETENTIONS = (0.2, 0.3, 0.5, 0.8, 1.0)
METHODS = ("stopped", "em", "inversion")


def benchmark(*, quick: bool, rounds: int) -> list[Result]:  # noqa: ARG001
    """Once, with several seeds, however many rounds: accuracy does not depend on the machine."""
    seeds = SEEDS[:1] if quick else SEEDS
    retentions = (0.3,) if quick else RETENTIONS
    found = []
    for clear in (True, False):
        for retention in retentions:
            options = {"retention": retention, "clear": clear, "seeds": seeds, "methods": METHODS}
            found += lines(retention, clear, run("trees_work:accuracies", **options))
    return found


def lines(retention: float, clear: bool, outcome: Outcome) -> list[Result]:
    """The accuracy of each method beside the tree of the true rows."""
    value = outcome.value
    which = "class public" if clear else "class perturbed"
    return [
        Result(
            name=NAME,
            what=f"Adult, p = {retention:g}, {which}: right, {method}",
            unit="%",
            ours=100 * value["accuracy"][method],
            peer=100 * value["raw"],
            peer_name="the rows' own tree",
            peak_memory=outcome.peak,
            others=outcome.others,
            details=value if method == METHODS[0] else {},
        )
        for method in (METHODS if retention < 1 else METHODS[:1])
    ]
