"""Killing a process that answers from a ledger, at random and between every two lines.

python -m tests.support.serve_faults lines|kills FOLDER [--rounds 1000] [--seed 1] prints what was
seen, as JSON. In a process of its own, since it forks: a child is killed within milliseconds of its
birth.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import linecache
import os
import random
import shutil
import signal
import sqlite3
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import voile.serve.ledger
import voile.web.writer
from tests.support.ledgers import begun, counter_says, question
from voile.serve.ledger import ExhaustedError, StoredEntry, open_ledger, recover
from voile.serve.setting import LEDGER, Setting

WATCHED = (str(Path(voile.serve.ledger.__file__).parent), voile.web.writer.__file__)
"""Where a kill may come: the code of the ledger, and the writer that commits for it."""
THREADS = 4
LIFE = 0.02
"""Seconds for which a child answers before it is killed, at most."""
ASKED = 600
"""Different questions that are asked, of which fewer can be answered."""
OPENED = b"open\n"

Say = Callable[[str], None]


def forked(work: Callable[[Say], None]) -> tuple[int, int]:
    """Start a child; its id, and where one reads what it says."""
    here, there = os.pipe()
    child = os.fork()
    if child:
        os.close(there)
        return child, here
    try:
        os.close(here)

        def say(line: str) -> None:
            os.write(there, f"{line}\n".encode())  # in one piece, and at once

        work(say)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(70)


def heard(child: int, here: int) -> tuple[list[str], int]:
    """All that a child said until its end, and how it ended."""
    with os.fdopen(here, "rb") as pipe:
        lines = pipe.read().decode().splitlines()
    return lines, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def answers(lines: list[str]) -> dict[str, tuple[int, str]]:
    """What a child said that it has let out: number and answer by key."""
    told = [json.loads(line) for line in lines if line.endswith("]")]
    return {key: (number, answer) for key, number, answer in told}


# --------------------------------------------------------------------------------- looking at it


ROWS = """
SELECT number, key, question, answer, analyst, group_name, at, digest FROM entries ORDER BY number
"""


def rows_of(folder: Path, setting: Setting) -> dict[str, tuple[int, str]]:
    """Number and answer by key, of a ledger that is sound."""
    with closing(sqlite3.connect(folder / LEDGER)) as base:
        assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = base.execute(ROWS).fetchall()
    return checked(rows, setting, folder / "counter")


def checked(
    rows: list[tuple[Any, ...]], setting: Setting, *counters: Path
) -> dict[str, tuple[int, str]]:
    """Checks the chain and the counters without the ledger's own code."""
    digest = hashlib.sha256(f"voile ledger {setting.id}".encode()).hexdigest()
    digests = [digest]
    for place, (number, *parts, kept) in enumerate(rows, start=1):
        line = json.dumps([digest, number, *parts], separators=(",", ":"))
        digest = hashlib.sha256(line.encode()).hexdigest()
        assert (number, kept) == (place, digest), "the chain is broken"
        digests.append(digest)
    assert len(rows) <= setting.queries, "one more than T"
    for counter in counters:
        said = counter_says(counter)
        assert said["number"] <= len(rows), "the ledger is behind the counter"
        assert digests[said["number"]] == said["digest"], "the counter is not of this ledger"
    return {row[1]: (row[0], row[3]) for row in rows}


def check_let_out(folder: Path, setting: Setting, let_out: dict[str, tuple[int, str]]) -> int:
    """What has left is in the ledger as it left, and the counter has seen it."""
    rows = rows_of(folder, setting)
    for key, told in let_out.items():
        assert rows.get(key) == told, f"{told} has left, the ledger has {rows.get(key)}"
    counted = counter_says(folder / "counter")["number"]
    assert max((number for number, _ in let_out.values()), default=0) <= counted
    return len(rows)


# --------------------------------------------------------------------------------- at random


def answer_fast(folder: Path, setting: Setting, say: Say, seed: int) -> None:
    """Answer from several threads until the budget is gone; tell every answer that is let out."""
    with open_ledger(folder, setting, serving=True) as ledger:
        say(OPENED.decode().strip())

        def tell(kept: StoredEntry) -> None:
            say(json.dumps([kept.entry.key, kept.number, kept.entry.answer]))

        def record(thread: int) -> None:
            coins = random.Random(f"{seed} {thread}")  # noqa: S311
            with suppress(ExhaustedError):
                while True:
                    names = coins.sample(range(ASKED), coins.randint(1, 3))
                    entries = [question(name, answer=coins.random()) for name in names]
                    for kept in ledger.record(f"analyst {thread}", entries).kept.values():
                        tell(kept)
            say("exhausted")

        def find() -> None:
            """Who asks again hears an answer as soon as it is there, and not too soon."""
            keys = [question(name).key for name in range(ASKED)]
            while True:
                for kept in ledger.find(keys).values():
                    if kept.entry.key not in told:
                        told.add(kept.entry.key)
                        tell(kept)

        told: set[str] = set()
        threading.Thread(target=find, daemon=True).start()
        threads = [threading.Thread(target=record, args=(n,)) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(60)  # until it is killed


def kills(place: Path, rounds: int, seed: int) -> dict[str, int]:
    """Kill a child that answers, again and again on the same ledger until that is exhausted."""
    coins = random.Random(seed)  # noqa: S311
    seen = {"kills": 0, "let_out": 0, "kept": 0, "exhausted": 0}
    while seen["kills"] < rounds:
        folder = place / f"server {seen['kills']}"
        setting = begun(folder, queries=150)
        let_out: dict[str, tuple[int, str]] = {}
        over = False
        kept = 0
        while not over and seen["kills"] < rounds:
            start = coins.randrange(2**32)
            child, here = forked(lambda say: answer_fast(folder, setting, say, start))  # noqa: B023
            if coins.random() < 0.9:  # else while it is being opened, perhaps after a kill
                assert os.read(here, len(OPENED)) == OPENED
            time.sleep(coins.uniform(0, LIFE))
            os.kill(child, signal.SIGKILL)
            lines, code = heard(child, here)
            assert code == -signal.SIGKILL, code
            let_out |= answers(lines)
            kept = check_let_out(folder, setting, let_out)
            over = "exhausted" in lines and kept == setting.queries
            seen["kills"] += 1
        seen["let_out"] += len(let_out)
        seen["kept"] += kept
        seen["exhausted"] += over
        shutil.rmtree(folder)
    return seen


# --------------------------------------------------------------------------------- every line


class Killer:
    """Kills its process before the n-th line that any thread comes to in the ledger's code."""

    def __init__(self, nth: int, say: Say) -> None:
        self.left = nth
        self.say = say
        self.armed = False
        self._lock = threading.Lock()

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(WATCHED):
            return None
        if event == "line":
            with self._lock:
                self.left -= self.armed
                if self.armed and self.left == 0:
                    self.die(frame)
        return self

    def disarm(self) -> None:
        """Kill no more; who is about to be killed comes no further than here."""
        with self._lock:
            self.armed = False

    def die(self, frame: FrameType) -> None:
        name = Path(frame.f_code.co_filename).name
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        self.say(f"at {name}: {line}")
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)  # whatever else this process does, it does no more

    def watch(self) -> None:
        sys.settrace(self)
        threading.settrace(self)


def ask_once(folder: Path, setting: Setting, say: Say, nth: int) -> None:
    """A question of three totals, one of which is known."""
    killer = Killer(nth, say)
    killer.watch()
    with open_ledger(folder, setting, serving=True) as ledger:
        killer.armed = True
        done = ledger.record("ann", [question(n, answer=f"first {n}") for n in (0, 1, 2)])
        killer.disarm()
        for kept in done.kept.values():
            say(json.dumps([kept.entry.key, kept.number, kept.entry.answer]))


def recover_once(folder: Path, setting: Setting, say: Say, nth: int) -> None:
    killer = Killer(nth, say)
    killer.watch()
    killer.armed = True
    say(f"lost {recover(folder, setting).lost}")


def every_line(
    place: Path, prepared: Path, setting: Setting, work: Callable[..., None]
) -> list[tuple[str, list[str], Path]]:
    """Kill before the first line, before the second, … until it comes to its end unharmed."""
    runs = []
    for nth in range(1, 10_000):
        folder = place / f"{work.__name__} {nth}"
        shutil.copytree(prepared, folder)
        lines, code = heard(*forked(lambda say: work(folder, setting, say, nth)))  # noqa: B023
        where = next((line[3:] for line in lines if line.startswith("at ")), "")
        assert code == (-signal.SIGKILL if where else 0), (code, lines)
        runs.append((where, [line for line in lines if not line.startswith("at ")], folder))
        if not where:
            return runs
    raise AssertionError("it has no end")


def lines(place: Path) -> dict[str, Any]:
    """For each line before which it was killed: how many entries there were then."""
    prepared = place / "prepared"
    setting = begun(prepared, queries=5)
    with open_ledger(prepared, setting, serving=True) as ledger:
        ledger.record("ann", [question(0, answer="zero")])
        shutil.copy(prepared / LEDGER, place / "backup")
    found = []
    for where, told, folder in every_line(place, prepared, setting, ask_once):
        let_out = answers(told)
        entries = check_let_out(folder, setting, let_out)
        found.append((where, entries, len(let_out), ask_again(folder, setting)))
    return {"asked": found, "recovered": recovered_lines(place, setting)}


def ask_again(folder: Path, setting: Setting) -> list[str]:
    """What is answered after the kill, to the same question with other noise."""
    with open_ledger(folder, setting, serving=True) as ledger:
        done = ledger.record("ann", [question(n, answer=f"second {n}") for n in (0, 1, 2)])
        assert done.budgets.everyone.used == 3
        return [done.kept[question(n).key].entry.answer for n in (0, 1, 2)]


def recovered_lines(place: Path, setting: Setting) -> list[tuple[str, int]]:
    """Killed while recovering an old copy, then recovered: how many entries that makes."""
    prepared = place / "old"
    shutil.copytree(place / "prepared", prepared)
    with open_ledger(prepared, setting, serving=True) as ledger:
        ledger.record("ann", [question(1), question(2)])
    with open_ledger(place / "prepared", setting, serving=True):
        pass  # closes the file, so that it is a whole copy
    shutil.copy(place / "prepared" / LEDGER, prepared / LEDGER)
    found = []
    for where, _, folder in every_line(place, prepared, setting, recover_once):
        recover(folder, setting)
        found.append((where, len(rows_of(folder, setting))))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["lines", "kills"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.what == "lines":
        print(json.dumps(lines(given.folder)))
    else:
        print(json.dumps(kills(given.folder, given.rounds, given.seed)))


if __name__ == "__main__":
    main()
