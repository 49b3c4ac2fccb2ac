"""A column perturbed at the client and all its frequencies estimated, beside the peers."""

from __future__ import annotations

from importlib.util import find_spec

from bench.child import best, run_rounds
from bench.result import Result, rates

NAME = "local"
SIZES = (10, 100, 1000)
PEERS = {
    "multi_freq_ldpy": ("multi-freq-ldpy, GRR", 50.0),
    "pure_ldp": ("pure-ldp, direct encoding", 50.0),
    "plain_numpy": ("NumPy, default_rng", None),
    "compiled_loop": ("a compiled loop, SplitMix64", None),
}
"""Their names, and the least ratio wanted. None of them tosses secret coins."""
LIBRARIES = ("multi_freq_ldpy", "pure_ldp")
"""Shown only where they are installed; the project does not need them."""


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    """Rows a second for every size of the domain."""
    rows = 1e5 if quick else 1e7
    return [line for size in SIZES for line in lines(size, rows, rounds)]


def lines(size: int, rows: float, rounds: int) -> list[Result]:
    """Rows a second of processor time, of all in turn."""
    peers = [name for name in PEERS if name not in LIBRARIES or find_spec(name)]
    names = ("ours", "ours_perturbing", *peers)
    done = run_rounds(
        {name: (f"local_work:{name}", {"rows": rows, "size": size}) for name in names}, rounds
    )
    fastest = {name: best(outcomes) for name, outcomes in done.items()}
    ours = fastest["ours"]
    what = f"{int(rows):,} rows, domain {size}: perturbed, estimated (CPU)"
    found = [
        rates(NAME, what, ours, fastest[peer], PEERS[peer][0], aim=PEERS[peer][1]) for peer in peers
    ]
    alone = fastest["ours_perturbing"]
    only = Result(
        name=NAME,
        what=what.replace("perturbed, estimated", "only perturbed"),
        unit="rows/s",
        ours=alone.value["rate"],
        others=alone.others,
        details={"ours": alone.value},
    )
    return [*found, only]
