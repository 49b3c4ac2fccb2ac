"""Programs that publish and are killed: python -m tests.support.killed FOLDER ROUNDS SEED.

Voile is imported once, and each program is a fork of that: starting is most of what a small one
does. Several run at once on one register, and each is killed at a random moment, or exactly between
two steps. After every round a further fork looks at all that is there, as a stranger would.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

import voile
import voile.kinds.classes.generalizing
import voile.kinds.perturbed.publishing
import voile.kinds.views.series_publishing
import voile.register.register
import voile.register.sketch
from voile.errors import PromiseError, VoileError
from voile.register import Register, SpendingLimit
from voile.register.hashes import HashKeys, text_hashes
from voile.register.keys import FingerprintKey
from voile.register.register import RegisterEntry

AT_ONCE = 3
MANY = 10
"""Rounds from which on every program is tried before and after, and not most of them."""


def perturb(folder: Path, number: int) -> None:
    voile.perturb(folder / "people.csv", 0.5, to=folder / f"p{number}.voile", columns=["ill"])


def publish(folder: Path, number: int) -> None:
    voile.publish(
        folder / "people.csv", to=folder / f"v{number}.voile", columns=["age", "ill"], prior=0.01
    )


def replace(folder: Path, number: int) -> None:
    del number
    voile.perturb(
        folder / "people.csv", 0.4, to=folder / "again.voile", columns=["ill"], overwrite=True
    )


def generalize(folder: Path, number: int) -> None:
    made = voile.generalize(
        folder / "people.csv", qi=["age"], sensitive=["ill"], identifiers=["zip"], k=5
    )
    made.write(folder / f"g{number}.csv")


def series(folder: Path, number: int) -> None:
    name = f"s{number // 6}"
    voile.publish(
        folder / f"people{number % 2}.csv", to=folder / f"{name}-{number}.voile", series=name,
        columns=["age", "ill"], prior=0.01, views=12,
    )  # fmt: skip


def steward(folder: Path, number: int) -> None:
    register = Register.open()
    register.set_limit("others", SpendingLimit(9_000.0 + number % 7))
    register.backup(folder / "copy.db", overwrite=True)


PROGRAMS: tuple[Callable[[Path, int], None], ...] = (
    perturb, publish, replace, generalize, series, steward,
)  # fmt: skip


def die(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def after(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, and then the end."""

    def run(*arguments: Any, **named: Any) -> Any:
        function(*arguments, **named)
        return die()

    return run


def killed_exactly(place: int) -> None:
    """Die before or after one step between the register and the name; at others, do not."""
    steps = (
        ("reserve", die),
        ("reserve", after(RegisterEntry.reserve)),  # it is entered, and has no name yet
        ("left", die),  # it has its name
        ("left", after(RegisterEntry.left)),
    )
    if place < len(steps):
        setattr(RegisterEntry, *steps[place])


def forked(work: Callable[[], None]) -> int:
    """The id of a process that does this, and nothing of ours afterwards."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except (PromiseError, VoileError) as refusal:
        code = 0  # busy, or spent: nothing left
        if os.environ.get("VOILE_TELL"):
            print(refusal, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    os._exit(code)


def ended(child: int) -> int:
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def check(folder: Path) -> None:
    """Nothing half-written opens, and the register has all that is there to be seen."""
    place = Path(os.environ["VOILE_REGISTER"])
    known = set()
    if place.exists():
        with sqlite3.connect(place) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        known = {
            one.what_is.digest for account in Register.open().accounts() for one in account.left
        }
    for path in sorted(folder.glob("*.voile")):
        if path.name.startswith("."):
            continue
        digest = voile.verify(path).manifest.digest
        assert digest in known, f"{path.name} left, and the register lacks it"
    for path in sorted(folder.glob("g*.csv")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert digest in known, f"{path.name} left, and the register lacks it"


def warm() -> None:
    """Load what is compiled, so that programs need not; no thread is started."""
    key = FingerprintKey(bytes(32))
    text_hashes(pa.array(["x"]), HashKeys.of(key).values)


def prepare(folder: Path) -> None:
    rng = np.random.default_rng(1)
    for name in ("people", "people0", "people1"):
        table = pa.table({
            "age": rng.integers(20, 40, 120), "zip": np.arange(120),
            "ill": rng.choice(["yes", "no"], 120),
        })  # fmt: skip
        pacsv.write_csv(table, folder / f"{name}.csv")


def timed(program: Callable[[Path, int], None], folder: Path, at: int) -> float:
    """How long a program takes that is left alone."""
    start = time.monotonic()
    if ended(forked(lambda: program(folder, at))):
        raise SystemExit(1)
    return time.monotonic() - start


def main(folder: Path, rounds: int, seed: int) -> int:
    coins = random.Random(seed)  # noqa: S311
    warm()
    if code := ended(forked(lambda: prepare(folder))):
        return code
    for at, program in enumerate(PROGRAMS if rounds >= MANY else (), 10**4):
        timed(program, folder, at)  # compiles what was not compiled before
    longest = 1.2 * max(
        timed(program, folder, at)
        for at, program in enumerate(PROGRAMS, 10**5)
        if rounds >= MANY or program in (replace, generalize, series)
    )
    for number in range(rounds):
        running = []
        for place in range(AT_ONCE):
            program = coins.choice(PROGRAMS)
            exactly = coins.randrange(8)

            def work(
                program: Callable[[Path, int], None] = program,
                exactly: int = exactly,
                at: int = AT_ONCE * number + place,
            ) -> None:
                killed_exactly(exactly)
                program(folder, at)

            running.append((forked(work), coins.random() * longest))
        start = time.monotonic()
        for child, moment in sorted(running, key=lambda one: one[1]):
            time.sleep(max(0.0, start + moment - time.monotonic()))
            os.kill(child, signal.SIGKILL)
        codes = [ended(child) for child, _ in running]
        if any(code not in (0, -signal.SIGKILL) for code in codes):
            return 1
        if (number % 5 == 4 or number == rounds - 1) and ended(forked(lambda: check(folder))):
            return 1
    for at, program in enumerate(PROGRAMS, 10**6):  # whatever was left, work goes on
        if rounds < MANY and program in (replace, generalize):
            continue
        if ended(forked(partial(program, folder, at))):
            return 1
    return ended(forked(lambda: check(folder)))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
