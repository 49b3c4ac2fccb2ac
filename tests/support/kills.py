"""Runs that are killed at random moments, and what is found after each of them.

A program of its own: it loads everything once and forks. A child publishes over a name that exists,
or begins one; it is killed with SIGKILL; another child looks at what is there. A third of the kills
come at any moment, a third after the new release is sealed, a third just when a name changes.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import voile
from voile.kinds import staging
from voile.kinds.views.series_ledger import opened
from voile.system import here as system

ROWS, VIEWS = 300, 12


def people(start: int) -> pa.Table:
    """A table that is another one for every start."""
    numbers = [(start + i) * 37 % 2000 for i in range(ROWS)]
    return pa.table({"town": [f"t{n // 100}" for n in numbers], "age": [n % 100 for n in numbers]})


def view(folder: Path, number: int) -> None:
    voile.publish(people(number), prior=0.01, to=folder / "r.voile", overwrite=True)


def classes(folder: Path, number: int) -> None:
    voile.publish(
        people(number),
        method="mondrian",
        qi=["age", "town"],
        k=5,
        to=folder / "r.voile",
        overwrite=True,
    )


def perturbed(folder: Path, number: int) -> None:
    voile.perturb(people(number), 0.5, to=folder / "r.voile", overwrite=True)


def series(folder: Path, number: int) -> None:
    voile.publish(
        people(number), prior=0.01, to=folder / "r.voile", overwrite=True, series="people",
        views=VIEWS,
    )  # fmt: skip


def generalized(folder: Path, number: int) -> None:
    voile.generalize(people(number), qi=["age", "town"], k=5).write(
        folder / "r.csv", overwrite=True
    )


def found_release(folder: Path) -> str | None:
    """The digest of a sound release, or None where there is no name; nothing else opens."""
    target = folder / "r.voile"
    for left in folder.glob(".*.partial-*"):
        try:
            voile.open(left)
        except voile.VoileError:
            continue
        raise AssertionError(f"{left} opens")
    staging.put_back(target)
    if not target.exists():
        return None
    voile.verify(target)
    return voile.open(target).manifest.digest


def found_view(folder: Path) -> str | None:
    """The same of a series, whose ledger knows the view that is there."""
    digest = found_release(folder)
    if digest is not None:
        part: Any = voile.open(folder / "r.voile").manifest.parameters
        with opened(folder / "people.series") as ledger:
            assert ledger.knows(part.series.view, digest)
            assert ledger.last is not None and ledger.last.number >= part.series.view
    return digest


def found_table(folder: Path) -> str | None:
    """A table that is whole: all rows, in classes of five."""
    target = folder / "r.csv"
    if not target.exists():
        return None
    lines = target.read_text().splitlines()
    assert len(lines) == ROWS + 1 and lines[-1].count(",") == lines[0].count(",")
    return "\n".join(lines)


@dataclass(frozen=True)
class Job:
    """What is run and killed, and how what is left is examined."""

    run: Callable[[Path, int], None]
    found: Callable[[Path], str | None] = found_release
    lasts: int | None = None
    """How many runs can succeed in one folder."""


JOBS = {
    "publish": Job(view),
    "classes": Job(classes),
    "perturb": Job(perturbed),
    "generalize": Job(generalized, found_table),
    "series": Job(series, found_view, VIEWS),
}


def forked(work: Callable[[], Any]) -> tuple[int, int]:
    """A child that does this, and the pipe on which it tells the outcome."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    code = 1
    try:
        os.write(writing, json.dumps(work()).encode())
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def outcome(child: int, reading: int) -> tuple[int, Any]:
    """How a child ended (its signal as a negative number), and what it told."""
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, json.loads(told) if told else None


@dataclass
class Trial:
    """One job in one folder, killed again and again."""

    job: Job
    home: Path
    rng: random.Random
    number: int = 0
    spent: int = 0
    before: str | None = None
    usual: float = 1.0
    counts: dict[str, int] = field(default_factory=lambda: {"old": 0, "new": 0, "done": 0})

    def __post_init__(self) -> None:
        self._fresh()
        code, modules = outcome(*forked(self._work))
        assert code == 0
        for module in modules:  # so that no child has to load them again
            with suppress(Exception):
                importlib.import_module(module)
        began = time.monotonic()
        assert outcome(*forked(self._work))[0] == 0
        self.usual = time.monotonic() - began
        self._look()

    def _fresh(self) -> None:
        self.number += 1
        self.folder, self.spent, self.before = self.home / str(self.number), 0, None
        self.folder.mkdir()

    def _work(self) -> list[str]:
        self.job.run(self.folder, self.number)
        return [name for name in sys.modules if not name.startswith(("_", "tests"))]

    def kill_once(self) -> None:
        self.number += 1
        self.spent += 1
        if self.job.lasts is not None and self.spent >= self.job.lasts:
            self._fresh()
        child, reading = forked(self._work)
        self._wait()
        os.kill(child, signal.SIGKILL)
        code, _ = outcome(child, reading)
        assert code in (0, -signal.SIGKILL), f"the run failed by itself: {code}"
        before, now = self.before, self._look()
        assert now is not None or before is None, "the name is gone"
        self.counts["done" if code == 0 else "old" if now == before else "new"] += 1

    def _wait(self) -> None:
        """Until any moment; or some time after the new release is sealed; or as names change."""
        mode = self.rng.choice(["any", "sealed", "changes"])
        if mode != "any":
            before = self._state()
            self._until(lambda: self._sealed() if mode == "sealed" else self._state() != before)
        longest = {"any": 1.1 * self.usual, "sealed": self.usual, "changes": 0.003}[mode]
        time.sleep(self.rng.uniform(0, longest))

    def _until(self, reached: Callable[[], bool]) -> None:
        latest = time.monotonic() + 5 * self.usual
        while time.monotonic() < latest and not reached():
            time.sleep(0.0002)

    def _sealed(self) -> bool:
        return any(self.folder.glob(".*.partial-*/manifest.json")) or any(
            self.folder.glob(".r.csv.*")
        )

    def _state(self) -> list[tuple[str, int]]:
        """Which file or folder has the name, or was moved aside."""
        names = [path for path in self.folder.iterdir() if ".partial-" not in path.name]
        found = []
        for path in names:
            with suppress(FileNotFoundError):
                if path.name.startswith((".r.voile.replaced-", "r.")):
                    found.append((path.name, path.stat().st_ino))
        return sorted(found)

    def _look(self) -> str | None:
        code, self.before = outcome(*forked(lambda: self.job.found(self.folder)))
        assert code == 0, f"what is left in {self.folder} is not sound"
        for left in self.folder.glob(".*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        return self.before


def main(home: str, kills: str, seed: str, can: str) -> None:
    """So many kills, spread over all jobs; prints how they ended, as JSON."""
    if can == "False":  # as where the system cannot exchange two names
        system.exchanged = lambda *_: False
    rng = random.Random(int(seed))  # noqa: S311
    trials = {}
    for name, job in JOBS.items():
        (place := Path(home) / name).mkdir()
        trials[name] = Trial(job, place, rng)
    for turn in range(int(kills)):
        list(trials.values())[turn % len(trials)].kill_once()
    print(json.dumps({name: trial.counts for name, trial in trials.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
