"""What a ledger does to its disk, and what a disk may do to it.

python -m tests.support.serve_disk synced|power|failing|read-only FOLDER prints what was seen, as
JSON. A small library that stands between the process and the disk (serve_shim.c) tells of every
call and can fail one; from what it tells, serve_power.py rebuilds the disk as a power cut could
leave it.
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import errno
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.ledgers import SETTING, begun, question
from tests.support.serve_faults import Say, check_let_out, forked, heard
from tests.support.serve_power import Call, cuts, read_log, sound
from voile.errors import VoileError
from voile.serve.ledger import Ledger, open_ledger
from voile.serve.setting import Setting

QUERIES = 40
NOBODY = 65534


def built(folder: Path) -> Path:
    """The library between; 77 is how one says that there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        sys.exit(77)
    library = folder / "shim.so"
    source = Path(__file__).with_name("serve_shim.c")
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run([*command, "-ldl", "-lpthread"], check=True)
    return library


class Shim:
    """The library that this process was started with."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)

    def start(self, folder: Path, log: Path) -> None:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._library.shim_start(str(folder).encode(), handle)

    def mark(self, text: str) -> None:
        self._library.shim_mark(text.encode())

    def skip_syncs(self) -> None:
        self._library.shim_skip_syncs(1)

    def fail(self, nth: int, error: int) -> None:
        self._library.shim_fail(ctypes.c_long(nth), error)

    def calls(self) -> int:
        return int(self._library.shim_calls())


# --------------------------------------------------------------------------------- what was done


WORDS = {"O": "open", "T": "truncate", "W": "write", "S": "sync", "R": "rename", "U": "unlink"}


def synced(calls: list[Call]) -> list[list[str]]:
    """Between every two answers: what was done to the disk, in words."""
    answers: list[list[str]] = [[]]
    for call in calls:
        if call.what == "M":
            answers[-1].append("answer")
            answers.append([])
        else:
            answers[-1].append(f"{WORDS[call.what]} {call.name} {call.other}".strip())
    return answers[1:-1]  # the first has what opening does, the last what closing does


# --------------------------------------------------------------------------------- power cuts


def power(place: Path, library: Path) -> dict[str, int]:
    """As it is; and, to see that this can fail, without syncs and with SQLite's weaker ones."""
    found: dict[str, int] = {"queries": QUERIES}
    for kind, keeps in (("sound", (0.0, 0.5, 1.0)), ("no-sync", (0.0,)), ("normal", (0.0,))):
        setting, log, before = watched(place, library, f"answer-{kind}")
        seen = cuts(before, place, setting, read_log(log), keeps)
        found |= seen if kind == "sound" else {f"wrong_{kind}": seen["wrong"]}
    return found


def watched(place: Path, library: Path, work: str) -> tuple[Setting, Path, Path]:
    """Do some work with the library between: its setting, its log, the folder before it."""
    folder = place / work
    setting = begun(folder, queries=QUERIES)
    before = shutil.copytree(folder, place / f"{work} before")
    log = place / f"{work} log"
    inside(library, work, folder, log)
    return setting, log, before


# --------------------------------------------------------------------------------- inside


def inside(library: Path, work: str, *words: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.serve_disk", work, *map(str, words)],
        env=os.environ | {"LD_PRELOAD": str(library)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


def answer_all(kind: str, folder: Path, log: Path) -> None:
    """Answer all that there is, and mark when an answer leaves."""
    shim = Shim()
    shim.start(folder, log)
    if kind == "no-sync":
        shim.skip_syncs()
    setting = dataclasses.replace(SETTING, queries=QUERIES)
    with open_ledger(folder, setting, serving=True) as ledger:
        base = ledger._store._writing  # type: ignore[attr-defined]
        if kind != "synced":
            base.execute("PRAGMA wal_autocheckpoint = 12")  # so that several happen
        if kind == "normal":
            base.execute("PRAGMA synchronous = NORMAL")
        for number in range(0, QUERIES, 2):
            record_two(ledger, number, shim)


def record_two(ledger: Ledger, number: int, shim: Shim) -> None:
    asked = [question(n, answer=f"{n}" * 400) for n in (number, number + 1)]
    for kept in ledger.record("ann", asked).kept.values():
        shim.mark(json.dumps([kept.entry.key, kept.number, kept.entry.answer]))


def failing(place: Path) -> dict[str, Any]:
    """Fail the first call that an answer makes, the second, …: with a full and a broken disk."""
    prepared = place / "prepared"
    setting = begun(prepared, queries=QUERIES)
    found: dict[str, Any] = {}
    for name, error in (("full", errno.ENOSPC), ("broken", errno.EIO), ("readonly", errno.EROFS)):
        seen: Counter[str] = Counter()
        for nth in range(1, 1000):
            folder = Path(shutil.copytree(prepared, place / f"{name} {nth}"))
            lines, code = heard(*forked(failing_once(folder, setting, nth, error)))
            assert code == 0, (name, nth)
            told = [json.loads(line) for line in lines]
            kept = {key: (n, said) for one in told for key, n, said in one.get("answers", [])}
            check_let_out(folder, setting, kept)
            assert sound(folder, setting, kept), (name, nth)
            if told[0]["calls"] < nth:
                assert "answers" in told[0]
                break
            seen["failed"] += "error" in told[0]
            seen["went_on"] += "error" in told[0] and "answers" in told[1]
        found[name] = dict(seen) | {"calls": nth - 1}
    return found


def failing_once(folder: Path, setting: Setting, nth: int, error: int) -> Callable[[Say], None]:
    def work(say: Say) -> None:
        shim = Shim()
        shim.start(folder, folder.with_name("failing log"))
        with open_ledger(folder, setting, serving=True) as ledger:
            shim.fail(nth, error)
            first = outcome(ledger, 1)
            say(json.dumps(first | {"calls": shim.calls()}))
            shim.fail(-1, 0)
            say(json.dumps(outcome(ledger, 2)))

    return work


def outcome(ledger: Ledger, number: int) -> dict[str, Any]:
    try:
        done = ledger.record("ann", [question(number)])
    except VoileError as error:
        return {"error": type(error).__name__, "message": error.message}
    return {"answers": [[k, kept.number, kept.entry.answer] for k, kept in done.kept.items()]}


# --------------------------------------------------------------------------------- read-only


def read_only(place: Path) -> dict[str, str]:
    """A server that may read its folder and not write it."""
    folder = place / "server"
    setting = begun(folder)
    for path in (*folder.iterdir(), folder, place):
        path.chmod(0o555)

    def work(say: Say) -> None:
        if os.geteuid() == 0:
            os.setuid(NOBODY)
        for serving in (False, True):
            try:
                with open_ledger(folder, setting, serving=serving) as ledger:
                    ledger.set_group("team", 1)
            except VoileError as error:
                say(f"{type(error).__name__}: {error.message}")

    lines, code = heard(*forked(work))
    assert code == 0
    return {"steward": lines[0], "serving": lines[1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what")
    parser.add_argument("folder", type=Path)
    parser.add_argument("log", type=Path, nargs="?")
    given = parser.parse_args()
    what, folder = given.what, given.folder
    if what.startswith("answer-"):
        answer_all(what.removeprefix("answer-"), folder, given.log)
    elif what == "fail-inside":
        print(json.dumps(failing(folder)))
    elif what == "synced":
        _, log, _ = watched(folder, built(folder), "answer-synced")
        print(json.dumps(synced(read_log(log))))
    elif what == "power":
        print(json.dumps(power(folder, built(folder))))
    elif what == "failing":
        print(inside(built(folder), "fail-inside", folder))
    elif what == "read-only":
        print(json.dumps(read_only(folder)))
    else:
        parser.error(f"{what!r} is none of synced, power, failing, read-only")


if __name__ == "__main__":
    main()
