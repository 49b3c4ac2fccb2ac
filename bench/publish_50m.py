"""Publishing a table of 5·10⁷ rows end to end in bounded memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.child import best, highest_peak, run, run_rounds
from bench.result import Result, memory_limit

NAME = "publish_50m"
GIB = 2**30


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    rows = 2_000_000 if quick else 50_000_000
    with tempfile.TemporaryDirectory(prefix="voile-bench-") as folder:
        path = str(Path(folder) / "large.parquet")
        run("publish_work:make_large", rows=rows, path=path)
        done = run_rounds(
            {
                "declared": ("publish_work:publish_large", {"path": path, "declared": True}),
                "inferred": ("publish_work:publish_large", {"path": path, "declared": False}),
            },
            min(rounds, 2),
        )
    found = []
    for schema, outcomes in done.items():
        ours, peak = best(outcomes, "rate").value, highest_peak(outcomes)
        what = f"{ours['rows_in']:,} rows, a view of {ours['rows']:,}, {schema} schema"
        found += [
            Result(NAME, what, "s", ours["seconds"], peak_memory=peak, details=ours),
            Result(NAME, "the same, rows of the table a second", "rows/s", ours["rate"]),
            memory_limit(NAME, f"peak memory of it, {schema} schema", peak, 2 * GIB),
        ]
    return found
