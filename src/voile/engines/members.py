"""The rows of a table by the keys of their tuples: counted, changed and written part by part.

`LocalMembers` holds them in this process. An engine of many machines has its own, and leaves the
rows where they are.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from voile.arrays import Ints
from voile.engines.jobs import KeyStep, MadeKeys, PartWriter, added, mixed
from voile.noise import Key
from voile.progress import Progress, Silent
from voile.schema import Keys, TupleIndex

CHUNK = 2**20
"""Keys that are handed to a writer at a time."""


@dataclass(frozen=True)
class WrittenPart:
    """A file that was written."""

    number: int
    path: Path
    rows: int


@dataclass(frozen=True)
class WrittenParts:
    """All files of a release's rows, in order, and what was added up meanwhile."""

    parts: list[WrittenPart]
    figures: dict[str, float]


class Members(Protocol):
    """The rows of a table by key. Nothing of them is shown."""

    sizes: tuple[int, ...]
    """Of the domain that keys are numbers of."""

    @abstractmethod
    def __len__(self) -> int:
        """How many rows."""

    @property
    @abstractmethod
    def keys(self) -> Keys:
        """The keys themselves, sorted, in this process; refused where they lie elsewhere."""

    @abstractmethod
    def distinct(self) -> Members:
        """Each key once."""

    @abstractmethod
    def column_counts(self, columns: Sequence[int]) -> list[Ints]:
        """How often each value of some columns occurs."""

    @abstractmethod
    def stepped(self, step: KeyStep, key: Key, progress: Progress | None = None) -> Members:
        """The keys that a step makes of these; it is done when they are written."""

    @abstractmethod
    def write(
        self, writer: PartWriter, folder: Path, key: Key, progress: Progress | None = None
    ) -> WrittenParts:
        """Write all parts into a folder."""


def part_name(number: int) -> str:
    """What the file of a part is called."""
    return f"part-{number:05d}.parquet"


class LocalMembers(Members):
    """Sorted keys in this process."""

    def __init__(
        self, sizes: Sequence[int], keys: Keys, figures: dict[str, float] | None = None
    ) -> None:
        self.sizes, self._keys = tuple(sizes), keys
        self._figures = figures or {}

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def keys(self) -> Keys:
        """The keys, sorted."""
        return self._keys

    def distinct(self) -> LocalMembers:
        """Each key once."""
        fresh = np.ones(len(self._keys), dtype=np.bool_)
        fresh[1:] = self._keys[1:] != self._keys[:-1]
        return LocalMembers(self.sizes, self._keys[fresh])

    def column_counts(self, columns: Sequence[int]) -> list[Ints]:
        """How often each value of some columns occurs."""
        index = TupleIndex(self.sizes)
        found = [np.zeros(self.sizes[j], np.int64) for j in columns]
        for start in range(0, len(self._keys), CHUNK):
            codes = index.decode(self._keys[start : start + CHUNK])
            for place, j in enumerate(columns):
                found[place] += np.bincount(codes[j], minlength=self.sizes[j])
        return found

    def stepped(self, step: KeyStep, key: Key, progress: Progress | None = None) -> LocalMembers:
        """The keys that a step makes of these, at once, on all cores."""
        bar = progress or Silent()
        bar.start("perturbing", len(self))

        def one(item: tuple[int, Keys]) -> MadeKeys:
            made = step.made(*item, key)
            bar.advance(len(item[1]))
            return made

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = list(pool.map(one, enumerate(self._dealt(step))))
        keys = np.concatenate([some.keys for some in made])
        keys.sort()
        return LocalMembers(self.sizes, keys, added(some.figures for some in made))

    def write(
        self, writer: PartWriter, folder: Path, key: Key, progress: Progress | None = None
    ) -> WrittenParts:
        """Write all parts into a folder, several at a time."""
        bar = progress or Silent()

        def one(item: tuple[int, Keys]) -> tuple[WrittenPart, dict[str, float]]:
            number, keys = item
            path = folder / part_name(number)
            with path.open("wb") as out:
                found = writer.write(number, in_chunks(keys), key, out)
            bar.advance(int(found["rows"]))
            return WrittenPart(number, path, int(found["rows"])), found

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            done = list(pool.map(one, enumerate(self._dealt(writer))))
        return WrittenParts(
            [part for part, _ in done], added([self._figures, *(f for _, f in done)])
        )

    def _dealt(self, into: KeyStep | PartWriter) -> list[Keys]:
        """The keys by their parts, each sorted."""
        if into.parts == 1:
            return [self._keys]
        if into.starts is not None:
            return np.split(self._keys, np.searchsorted(self._keys, into.starts[1:]))
        index = TupleIndex(self.sizes)
        numbers = np.concatenate([
            mixed(index, some, into.parts).astype(np.uint32) for some in in_chunks(self._keys)
        ] or [np.empty(0, np.uint32)])  # fmt: skip
        order = np.argsort(numbers, kind="stable")
        return np.split(
            self._keys[order], np.searchsorted(numbers[order], np.arange(1, into.parts))
        )


def in_chunks(keys: Keys) -> Iterator[Keys]:
    """Keys in pieces of bounded size."""
    return (keys[start : start + CHUNK] for start in range(0, len(keys), CHUNK))
