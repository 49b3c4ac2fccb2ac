"""What the holder of a table is told when it has left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from voile.kinds.release import Release


@dataclass(frozen=True)
class Done:
    """A release that was made; unlike it, this may hold true counts."""

    release: Release
    rows_in: int
    rows_dropped: int
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        manifest = self.release.manifest
        return {
            "release": str(self.release.path),
            "method": manifest.method,
            "rows_in": self.rows_in,
            "rows_dropped": self.rows_dropped,
            "rows_out": manifest.rows,
            "domain_size": manifest.domain_size,
            "parameters": manifest.parameters.model_dump(),
            "guarantee": manifest.guarantee.model_dump(),
            "simulated": manifest.simulated,
            "nulls": manifest.nulls,
            "disclosed": [d.model_dump() for d in manifest.disclosed],
            "notes": list(self.notes),
        }
