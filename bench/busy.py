"""How much other work the machine did while something was measured: it spoils timings."""

from __future__ import annotations

import os
import resource
from pathlib import Path

STAT = Path("/proc/stat")
IDLE = (3, 4)
"""Columns of the first line of /proc/stat that are no work: idle, waiting for disks."""


class OtherWork:
    """Within it, the share of all cores that processes other than ours used; 0 where unknown."""

    share = 0.0

    def __enter__(self) -> OtherWork:
        self._before = clock()
        return self

    def __exit__(self, *_: object) -> None:
        busy, total, ours = (b - a for a, b in zip(self._before, clock(), strict=True))
        self.share = min(1.0, max(0.0, (busy - ours) / total)) if total > 0 else 0.0


def clock() -> tuple[float, float, float]:
    """Seconds so far that the cores were busy, that they had, and that our children used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if not STAT.exists():
        return 0.0, 0.0, 0.0
    ticks = [int(n) for n in STAT.read_text(encoding="ascii").split("\n")[0].split()[1:9]]
    second = os.sysconf("SC_CLK_TCK")
    idle = sum(ticks[i] for i in IDLE)
    return (sum(ticks) - idle) / second, sum(ticks) / second, used.ru_utime + used.ru_stime
