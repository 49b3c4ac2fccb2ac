"""Where a job finds the keys of its coins, on whichever machine it runs.

A job carries a vault, and no key. On a cluster the keys are an artifact of the connection, sealed;
what opens it is in the job. In this process they are held in memory while the release is made.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

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


DELETED = pa.schema([pa.field("deleted", pa.int64())])
LEAST = 0.1
"""Seconds that a task of a deletion takes: else one executor could take those of all."""


@dataclass(frozen=True)
class Deletion:
    """Deletes the files of keys from the executor that it runs on."""

    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """How many there were."""
        from pyspark import SparkFiles  # noqa: PLC0415  (on an executor)

        for _ in batches:
            pass
        deleted = 0
        for name in self.names:
            with suppress(OSError):
                Path(SparkFiles.get(name)).unlink()
                deleted += 1
        time.sleep(LEAST)
        yield pa.RecordBatch.from_arrays([pa.array([deleted], pa.int64())], schema=DELETED)
