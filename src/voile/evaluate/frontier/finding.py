"""The frontier of a table, for Python and for the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from voile.errors import UsageError
from voile.evaluate.frontier.portfolio import (
    Grid,
    candidates,
    check_also,
    check_methods,
    read_grid,
)
from voile.evaluate.frontier.result import Frontier
from voile.evaluate.frontier.running import KEPT, OTHER, Keeper, check_jobs, run
from voile.evaluate.frontier.subject import read_subject
from voile.journal import Forgetful, Journal
from voile.progress import Progress, Silent


def find_frontier(
    table: Any,
    *,
    sensitive: str,
    qi: Sequence[str] | str,
    methods: Sequence[str] | str | None = None,
    grid: str | Grid = "paper",
    min_support: float = 0.05,
    hierarchies: Mapping[str, Any] | None = None,
    schema: Any = None,
    nulls: str = "error",
    null_text: Sequence[str] = (),
    also: Mapping[str, float] | None = None,
    most_p_loss: float | None = None,
    folder: str | Path | None = None,
    overwrite: bool = False,
    jobs: int | None = None,
    source: str | None = None,
    progress: Progress | None = None,
) -> Frontier:
    """Measure a portfolio of releases of the table, and certify what none can be below.

    `also` is what every release must have besides, such as {"k": 10}. With a folder, points are
    kept there as they are found, and a run that was interrupted goes on.
    """
    told = progress or Silent()
    known = (qi,) if isinstance(qi, str) else tuple(qi)
    asked = candidates(check_methods(methods), read_grid(grid), check_also(also))
    if not asked:
        raise UsageError(
            "the grid has no value for any of these methods",
            hint="add one, such as --grid 't=0.1,0.2'",
        )
    check_jobs(jobs)
    if most_p_loss is not None and not most_p_loss >= 0:
        raise UsageError(f"no P_loss is at most {most_p_loss:g}", hint="it lies between 0 and ln 2")
    subject = read_subject(
        table, source=source, sensitive=sensitive, qi=known, min_support=min_support,
        hierarchies=hierarchies, schema=schema, nulls=nulls, null_text=null_text, progress=told,
    )  # fmt: skip
    place: AbstractContextManager[Keeper] = (
        nullcontext(Forgetful())
        if folder is None
        else Journal(Path(folder) / KEPT, subject.digest, overwrite=overwrite, other=OTHER)
    )
    with place as keeper:
        measured = run(subject, asked, keeper, told, jobs=jobs)
    return Frontier(
        subject.prepared.name, subject.units.rows, known, sensitive, min_support,
        subject.populations.number, subject.revealed, subject.raw_p_loss, measured.points,
        measured.refused, measured.certified, most_p_loss, subject.prepared.notes,
    )  # fmt: skip


def frontier(table: Any, *, sensitive: str, qi: Sequence[str] | str, **options: Any) -> Any:
    """A tidy pandas DataFrame: one row for each release that was measured, best first.

    `attrs` hold the certified frontier and the recommendation. Options are those of
    `find_frontier`. Computed from the private table: not for publishing.
    """
    try:
        import pandas  # noqa: PLC0415  (not needed by anything else)
    except ImportError as missing:
        raise UsageError(
            "voile.frontier gives a pandas DataFrame, and pandas is not installed",
            hint="pip install pandas, or use `voile frontier … --json`",
        ) from missing
    found = find_frontier(table, sensitive=sensitive, qi=qi, **options)
    frame = pandas.DataFrame(found.rows_of_table())
    told = found.to_dict()
    frame.attrs = {name: told[name] for name in told if name != "points"}
    return frame
