"""The collector: takes perturbed rows over HTTP and keeps them, until they are released.

What serves is in `server` (it needs the extra `server`), what releases in `releasing`: neither
loads the other.
"""

from __future__ import annotations

from voile.collect.store import Added, Snapshot, Store, Writer, opened, snapshot

__all__ = ["Added", "Snapshot", "Store", "Writer", "opened", "snapshot"]
