"""kill -9 at any moment: nothing half-written opens, and the register lacks nothing that left."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.support.killed import check
from tests.support.paths import ROOT
from tests.support.soak import rounds


def killed(folder: Path, number: int, register: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.support.killed", str(folder), str(number), "18"],
        cwd=ROOT, env=os.environ | {"VOILE_REGISTER": str(register)}, text=True,
        capture_output=True, check=False,
    )  # fmt: skip


def test_killed_at_any_moment_it_never_forgets(tmp_path: Path, register: Path) -> None:
    """Three programs at once in each round: 6 kills with `make test`, 1,020 with `make soak`."""
    done = killed(tmp_path, rounds(2, 340), register)
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(register) as connection:
        events = dict(
            connection.execute("SELECT what, count(*) FROM events GROUP BY what").fetchall()
        )
        entries = connection.execute("SELECT count(*) FROM entries").fetchone()[0]
    assert entries >= events["left"] >= 1
    assert notices_what_is_missing(tmp_path, register)


def notices_what_is_missing(folder: Path, register: Path) -> bool:
    """Power: with an entry taken out, the same check fails."""
    with sqlite3.connect(register) as connection:
        (entry,) = connection.execute(
            "SELECT id FROM entries WHERE what LIKE '%/v1000001.voile%'"
        ).fetchone()
        for table, column in (("events", "entry"), ("links", "entry"), ("entries", "id")):
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", [entry])
    try:
        check(folder)
    except AssertionError as error:
        return "the register lacks it" in str(error)
    return False
