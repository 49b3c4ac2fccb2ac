"""10⁸ noise tuples over Adult's domain to Parquet, beside pyarrow alone and Algorithm 2."""

from __future__ import annotations

from bench.child import Outcome, best, highest_peak, run, run_rounds
from bench.result import Result, memory_limit, rates

NAME = "noise_1e8"
GB = 10**9
SLICE = 12
"""Ages of 72: a sixth of D, with which the peers stay in memory and within patience."""
FEW = 1
"""Ages for np.unique, which is slower still."""


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    """Rows a second of drawing and writing noise, beside the peers."""
    rows = 2e6 if quick else 1e8
    whole = {"rows": rows}
    part = {"rows": rows, "ages": SLICE}
    done = run_rounds(
        {
            "ours": ("noise_work:ours", whole),
            "draw": ("noise_work:ours_draw", whole),
            "pyarrow": ("noise_work:pyarrow_alone", part | {"defaults": False}),
            "defaults": ("noise_work:pyarrow_alone", part | {"defaults": True}),
            "numpy": ("noise_work:numpy_draw", part | {"unique": "np.sort"}),
            "unique": ("noise_work:numpy_draw", whole | {"ages": FEW, "unique": "np.unique"}),
            "both": ("noise_work:numpy_and_parquet", part | {"unique": "np.sort"}),
            "loop": ("noise_work:loop_draw", {"rows": 2e4 if quick else 2e5}),
        },
        rounds,
    )
    fastest = {name: best(outcomes) for name, outcomes in done.items()}
    return results(fastest, f"{int(rows):,}", highest_peak(done["ours"]))


def results(fastest: dict[str, Outcome], count: str, peak: int) -> list[Result]:
    """The lines of the table, from the fastest run of each task."""

    def written(peer: str, peer_name: str, aim: float | None = None) -> Result:
        what = f"{count} noise rows to Parquet"
        ours = fastest["ours"]
        return rates(NAME, what, ours, fastest[peer], peer_name, aim=aim, peak_memory=peak)

    def drawn(peer: str, peer_name: str, aim: float) -> Result:
        what = f"{count} noise rows, only drawn"
        return rates(NAME, what, fastest["draw"], fastest[peer], peer_name, aim=aim)

    return [
        written("pyarrow", "pyarrow, columns in memory", 0.7),
        written("defaults", "the same, pyarrow's own settings"),
        memory_limit(NAME, "peak memory", peak, GB),
        written("both", "Algorithm 2 (sort) + our Parquet", 10),
        written("numpy", "Algorithm 2 (sort), only drawn", 10),
        drawn("numpy", "Algorithm 2 (sort), only drawn", 10),
        drawn("unique", "Algorithm 2 (np.unique), only drawn", 10),
        drawn("loop", "Algorithm 2 tuple by tuple, only drawn", 10),
    ]


def profile(*, quick: bool) -> list[str]:
    """Where the processor's time goes, for whoever wants to make it less."""
    done = run("noise_work:ours_profiled", rows=2e6 if quick else 1e8).value
    stages: dict[str, float] = done["stages"]
    rest = done["cpu_seconds"] - sum(stages.values())
    nano = 1e9 / done["rows"]
    cpu = done["cpu_seconds"]
    lines = [
        f"    {name:<30}{seconds:8.2f} s {seconds / cpu:6.1%} {seconds * nano:7.1f} ns/row"
        for name, seconds in (stages | {"everything else": rest}).items()
    ]
    total = f"{cpu:.2f} s of processor time in {done['seconds']:.2f} s"
    return [f"Profile of {done['rows']:,} noise rows: {total}", *lines]
