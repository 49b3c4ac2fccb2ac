"""One kind of release on one table: how often its intervals cover, release by release."""

from __future__ import annotations

import json
import math
import time
import zlib
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

LEVEL = 0.95
MISS = 0.025
"""The chance that a share is above what is given as its upper bound."""
ASKED, FRESH = 8, 8
"""Questions of each release by groups, and under random conditions."""
MOST_ROWS = 30_000


def kinds() -> dict[str, Any]:
    """The names of all kinds."""
    from tests.support.published import KINDS

    return {"kinds": list(KINDS)}


def counted(
    *, folder: str, table: str, kind: str, groups: list[str], values: list[str], tuned: bool,
    seeds: list[int],
) -> dict[str, Any]:  # fmt: skip
    """Every statistic by sizes of counts and numbers of columns, written into the folder."""
    started = time.perf_counter()
    found, refused = covered(Path(folder) / f"{table}.csv", kind, groups, values, seeds)
    cells = [
        {"statistic": statistic, "part": part, "releases": list(tally.releases.values()),
         "widths": tally.widths}
        for (statistic, part, _), tally in found.tallies.items()
    ]  # fmt: skip
    about = {"table": table, "kind": kind, "tuned": tuned, "cells": cells, "seeds": seeds}
    file = Path(folder) / f"{table}, {kind}.cells.json"
    file.write_text(json.dumps(about), "utf-8")
    return {"seconds": time.perf_counter() - started, "refused": refused}


def covered(file: Path, kind: str, groups: list[str], values: list[str], seeds: list[int]) -> Any:
    """The tallies, and why a release was refused if one was."""
    from functools import partial

    import numpy as np
    from tests.support.coverage import Coverage, fresh, questions
    from tests.support.published import KINDS, as_published, in_steps

    from voile.errors import VoileError

    way, refused = KINDS[kind], ""
    read = rows_of(file, groups, values)
    frame = read if way.raw else in_steps(read, values)
    found = Coverage(frame)
    for number in seeds:
        # Coins are those of a seed, and tables and kinds are to be independent of each other.
        seed = zlib.crc32(f"{file.stem} {kind} {number}".encode())
        rng, rows = np.random.default_rng(seed), way.table(frame, seed)
        with TemporaryDirectory(prefix="voile-coverage-") as folder:
            try:
                release = way.publish(rows, seed, Path(folder))
            except VoileError as refusal:
                refused = str(refusal)
                continue
            shown = as_published(rows, release.schema)
            middles = {name: float(shown[name].median()) for name in values}
            every = questions(groups, middles)
            asked = [every[i] for i in sorted(rng.permutation(len(every))[:ASKED])]
            asked += fresh(shown, groups, middles, FRESH, rng)
            found.add(partial(release.query, **way.ask), asked, (LEVEL,), shown)
    return found, refused


def rows_of(file: Path, groups: list[str], values: list[str]) -> Any:
    """The columns that are asked about, of some rows where there are very many."""
    import pandas as pd

    read = pd.read_csv(file)[[*groups, *values]]
    read = read.sample(min(len(read), MOST_ROWS), random_state=1).reset_index(drop=True)
    kinds = {"f": int, "b": str}
    changed = {n: kinds[read[n].dtype.kind] for n in groups if read[n].dtype.kind in kinds}
    return read.astype(changed)


def pooled(*, folder: str) -> dict[str, Any]:
    """All that was written, by table and over the tables of either sort."""
    from tests.support.coverage import Tally
    from tests.support.published import KINDS

    tallies: dict[tuple[Any, ...], Tally] = defaultdict(Tally)
    for file in sorted(Path(folder).glob("*.cells.json")):
        about = json.loads(file.read_text("utf-8"))
        for cell in about["cells"]:
            parts = ["", about["table"]] if cell["part"] == "all" else [""]
            for table in parts:
                tally = tallies[
                    about["kind"], cell["statistic"], about["tuned"], table, cell["part"]
                ]
                for number, counts in enumerate(cell["releases"]):
                    tally.releases[about["table"], number] = counts
                tally.widths += cell["widths"]
    return {"cells": [
        {"kind": kind, "statistic": statistic, "tuned": tuned, "table": table, "part": part,
         "intervals": tally.total, "releases": len(tally.releases), "covered": 100 * tally.share,
         "at_most": 100 * tally.at_most(MISS),
         "width": None if math.isnan(tally.width) else tally.width, "of_noise": KINDS[kind].sharp}
        for (kind, statistic, tuned, table, part), tally in sorted(tallies.items())
    ]}  # fmt: skip
