"""Publishing Adult as the paper does (k = 10, γ = 0.2), from the file to the verified release."""

from __future__ import annotations

from bench.child import best, highest_peak, run_rounds
from bench.result import Result, rates

NAME = "publish_adult"


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    """Publishing Adult beside DuckDB, which copies the view's rows."""
    times = {"times": 2 if quick else 5}
    done = run_rounds(
        {
            "ours": ("publish_work:publish_adult", times),
            "copy": ("publish_work:copy_adult", times),
        },
        rounds,
    )
    ours, copy = best(done["ours"]), best(done["copy"])
    what = f"{ours.value['rows_in']:,} rows, a view of {ours.value['rows']:,}"
    peer = "DuckDB copying the view"
    return [
        Result(
            name=NAME,
            what=what,
            unit="s",
            ours=ours.value["seconds"],
            peer=copy.value["seconds"],
            peer_name=peer,
            peak_memory=highest_peak(done["ours"]),
            others=max(ours.others, copy.others),
        ),
        rates(NAME, "rows of the view a second", ours, copy, peer),
    ]
