"""Checking the histories of a series."""

from __future__ import annotations

import numpy as np

from voile.errors import ReleaseError
from voile.kinds.views.histories import Histories
from voile.kinds.views.release import ViewRelease
from voile.mechanisms.alphabeta import distinct


def check_histories(release: ViewRelease, histories: Histories) -> None:
    """Each tuple stands there once, in the order of D, and the last counts are this view's."""
    history = histories.history
    if not np.array_equal(distinct(np.sort(history.keys)), history.keys):
        raise ReleaseError("history/ is not in the order of the domain, or has a tuple twice")
    seen = int(history.counts[:, :-1].any(axis=1).sum())
    series = release.manifest.parameters.series
    if series is None or seen != series.seen_tuples:
        raise ReleaseError(f"history/ has {seen:,} tuples that were seen before this view")
    shown = history.keys[history.counts[:, -1] > 0]
    if int(history.counts[:, -1].sum(dtype=np.int64)) != release.manifest.rows:
        raise ReleaseError("history/ does not agree with the rows in data/")
    rows = np.repeat(shown, history.counts[history.counts[:, -1] > 0, -1])
    if not np.array_equal(rows, release.keys()):
        raise ReleaseError("history/ does not agree with the rows in data/")
