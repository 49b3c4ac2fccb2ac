"""Publishing a table of 5·10⁷ rows end to end in bounded memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.child import Outcome, best, highest_peak, run, run_rounds
from bench.result import Result, memory_limit

NAME = "publish_50m"
GIB = 2**30


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    """A large table, with a declared schema and with an inferred one."""
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
    return [result for schema, outcomes in done.items() for result in results(schema, outcomes)]


def results(schema: str, outcomes: list[Outcome]) -> list[Result]:
    """Seconds, rows a second and memory of one schema."""
    ours, peak = best(outcomes), highest_peak(outcomes)
    value, others = ours.value, ours.others
    what = f"{value['rows_in']:,} rows, {schema} schema"
    return [
        Result(NAME, what, "s", value["seconds"], others=others, details=value),
        Result(NAME, "rows of the table a second", "rows/s", value["rate"], others=others),
        memory_limit(NAME, "peak memory", peak, 2 * GIB),
    ]
