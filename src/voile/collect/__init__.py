"""The collector: takes perturbed rows over HTTP, keeps them, and releases what it has.

Serving needs the extra `server`; reading a store out does not, so what serves is imported from
`voile.collect.serving`.
"""

from __future__ import annotations

from voile.collect.releasing import Collected, release_collected
from voile.collect.snapshot import Snapshot, snapshot
from voile.collect.store import Added, Store, opened
from voile.collect.writer import Writer

__all__ = [
    "Added",
    "Collected",
    "Snapshot",
    "Store",
    "Writer",
    "opened",
    "release_collected",
    "snapshot",
]
