"""10⁸ noise tuples over Adult's domain to Parquet, beside pyarrow alone and Algorithm 2."""

from __future__ import annotations

from bench.child import best, highest_peak, run, run_rounds
from bench.result import Result, at_least, memory_limit

NAME = "noise_1e8"
GB = 10**9
SLICE = 12
"""Ages of 72: a sixth of D, with which the peers stay in memory and within patience."""
FEW = 1
"""Ages for np.unique, which is slower still."""


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
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
    rates = {name: float(best(outcomes, "rate").value["rate"]) for name, outcomes in done.items()}
    return results(rates, rows, highest_peak(done["ours"]), best(done["ours"], "rate").value)


def results(
    rates: dict[str, float], rows: float, peak: int, details: dict[str, object]
) -> list[Result]:
    wrote = f"{rows:.0e} noise rows to Parquet".replace("e+0", "e")
    drew = "drawing alone, nothing written"
    ours, draw = rates["ours"], rates["draw"]
    return [
        at_least(0.7, NAME, wrote, ours, rates["pyarrow"],
                 "pyarrow, columns in memory", peak_memory=peak, details=details),
        Result(NAME, wrote, "rows/s", ours, rates["defaults"],
               "the same, pyarrow's own settings", peak_memory=peak),
        memory_limit(NAME, "peak memory of it", peak, GB),
        at_least(10, NAME, drew, draw, rates["numpy"], "Algorithm 2, NumPy, sorting"),
        at_least(10, NAME, drew, draw, rates["unique"], "Algorithm 2, NumPy, np.unique"),
        at_least(10, NAME, drew, draw, rates["loop"], "Algorithm 2 as printed, a tuple at a time"),
        at_least(10, NAME, wrote, ours, rates["both"], "Algorithm 2, sorting, our Parquet"),
        at_least(10, NAME, wrote, ours, rates["numpy"], "Algorithm 2, sorting, no Parquet"),
        at_least(10, NAME, wrote, ours, rates["unique"], "Algorithm 2, np.unique, no Parquet"),
    ]  # fmt: skip


def profile(*, quick: bool) -> list[str]:
    """Where the processor's time goes, for whoever wants to make it less."""
    done = run("noise_work:ours_profiled", rows=2e6 if quick else 1e8).value
    stages: dict[str, float] = done["stages"]
    rest = done["cpu_seconds"] - sum(stages.values())
    nano = 1e9 / done["rows"]
    lines = [
        f"{name:<30}{seconds:8.2f} s {seconds / done['cpu_seconds']:6.1%} {seconds * nano:7.1f} ns/row"
        for name, seconds in (stages | {"everything else": rest}).items()
    ]
    total = f"{done['cpu_seconds']:.2f} s of processor time in {done['seconds']:.2f} s"
    return [f"Profile of {done['rows']:,} noise rows: {total}", *lines]
