"""Where a job finds the keys of its coins, on whichever machine it runs.

A job carries a vault, and no key. On a cluster the keys are an artifact of the connection, sealed;
what opens it is in the job. In this process they are held in memory while the release is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from voile.noise.subkeys import Subkeys

HELD: dict[str, Subkeys] = {}
"""Keys of jobs that run in this process, by the name of their vault."""


@dataclass(frozen=True)
class HeldVault:
    """Keys in the memory of this process."""

    name: str

    def open(self) -> Subkeys:
        """The keys."""
        return HELD[self.name]


@dataclass(frozen=True)
class ArtifactVault:
    """Keys in a sealed file that came with the connection."""

    name: str
    opener: bytes

    def open(self) -> Subkeys:
        """The keys."""
        from pyspark import SparkFiles  # noqa: PLC0415  (on an executor)

        return Subkeys.opened(Path(SparkFiles.get(self.name)).read_bytes(), self.opener)

    def __repr__(self) -> str:
        return f"ArtifactVault({self.name!r})"


Vault = HeldVault | ArtifactVault
