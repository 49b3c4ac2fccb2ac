"""python -m bench [NAME …] [--quick] [--json | --markdown] [--verbose]: all in one table.

Without a name it runs all but spark, which takes hours.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence

from rich.console import Console

from bench import (
    collect,
    coverage,
    domain_count,
    first_minutes,
    groupings,
    hostile,
    local,
    marginals,
    noise_1e8,
    privacy,
    publish_50m,
    publish_adult,
    query,
    reconstruct,
    refine,
    reproduce,
    serve,
    shaped,
    spark,
    start,
    trees,
)
from bench.markdown import as_markdown
from bench.result import Result
from bench.show import as_json, details, show

BENCHMARKS = {
    module.NAME: module
    for module in (
        start,
        first_minutes,
        coverage,
        publish_adult,
        noise_1e8,
        publish_50m,
        query,
        domain_count,
        refine,
        shaped,
        marginals,
        privacy,
        local,
        reconstruct,
        collect,
        serve,
        hostile,
        trees,
        groupings,
        spark,
        reproduce,
    )
}

BY_NAME_ALONE = (spark.NAME,)
"""It takes hours."""


def arguments() -> argparse.Namespace:
    """The command's arguments; unknown benchmarks are refused."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="small sizes, once: does it run?")
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")
    parser.add_argument("--markdown", action="store_true", help="print RESULTS.md's table")
    parser.add_argument("--verbose", action="store_true", help="add details and a profile")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each task; the best counts")
    given = parser.parse_args()
    if unknown := set(given.names) - set(BENCHMARKS):
        parser.error(f"no benchmark {unknown.pop()!r}; there is {', '.join(BENCHMARKS)}")
    return given


def measure(names: Sequence[str], *, quick: bool, rounds: int) -> list[Result]:
    """The results of the named benchmarks."""
    status = Console(stderr=True)
    results: list[Result] = []
    for name in names:
        began = time.monotonic()
        with status.status(f"{name} …"):
            results += BENCHMARKS[name].benchmark(quick=quick, rounds=rounds)
        status.print(f"{name}: {time.monotonic() - began:,.0f} s", highlight=False)
    return results


def explain(results: Sequence[Result], *, quick: bool) -> None:
    """What --verbose adds."""
    for result in results:
        if result.details:
            print("\n".join(details(result)) + "\n")
    if any(result.name == noise_1e8.NAME for result in results):
        print("\n".join(noise_1e8.profile(quick=quick)))


def main() -> int:
    """Measure and print, in the form that was chosen."""
    given = arguments()
    names = given.names or [name for name in BENCHMARKS if name not in BY_NAME_ALONE]
    with tempfile.TemporaryDirectory(prefix="voile-bench-") as own:
        os.environ["VOILE_REGISTER"] = f"{own}/register.db"  # not that of whoever measures
        results = measure(names, quick=given.quick, rounds=1 if given.quick else given.rounds)
    if given.json:
        print(as_json(results, quick=given.quick))
        return 0
    if given.markdown:
        print(as_markdown(results, quick=given.quick))
        return 0
    show(results, quick=given.quick)
    if given.verbose:
        explain(results, quick=given.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
