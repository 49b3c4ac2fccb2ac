"""The collector: takes perturbed rows over HTTP and keeps them, until they are released.

What serves is in `server` (it needs the extra `server`), what releases in `releasing`: neither
loads the other.
"""

from __future__ import annotations

from voile.collect.store import (
    Snapshot,
    Store,
    SubmissionReceipt,
    Writer,
    opened,
    snapshot,
)

Added = SubmissionReceipt
"""The name that older programs import."""

__all__ = ["Added", "Snapshot", "Store", "SubmissionReceipt", "Writer", "opened", "snapshot"]
