"""Publishing Adult as the paper does (k = 10, γ = 0.2), from the file to the verified release."""

from __future__ import annotations

from bench.child import best, highest_peak, run_rounds
from bench.result import Result

NAME = "publish_adult"


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    times = 2 if quick else 5
    done = run_rounds(
        {
            "ours": ("publish_work:publish_adult", {"times": times}),
            "copy": ("publish_work:copy_adult", {"times": times}),
        },
        rounds,
    )
    ours, copy = best(done["ours"], "rate").value, best(done["copy"], "rate").value
    what = f"{ours['rows_in']:,} rows, a view of {ours['rows']:,}"
    return [
        Result(
            NAME, what, "s", ours["seconds"], copy["seconds"], "DuckDB copying the view",
            peak_memory=highest_peak(done["ours"]), details=ours,
        ),
        Result(
            NAME, "the same, view rows a second", "rows/s", ours["rate"], copy["rate"],
            "DuckDB copying the view",
        ),
    ]  # fmt: skip
