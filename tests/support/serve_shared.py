"""Killing servers that share a ledger in PostgreSQL.

python -m tests.support.serve_shared FOLDER URL [--rounds 30] [--seed 1] prints what was seen, as
JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from tests.support.ledgers import begun
from tests.support.serve_faults import (
    OPENED,
    ROWS,
    Say,
    answer_fast,
    answers,
    checked,
    forked,
    heard,
)
from voile.serve.setting import Setting

LIFE = 0.1


def kept(url: str, setting: Setting, folders: list[Path]) -> dict[str, tuple[int, str]]:
    with psycopg.connect(url) as base:
        base.execute(f"SET search_path TO voile_{setting.id}")
        rows = base.execute(ROWS.encode()).fetchall()
    return checked(rows, setting, *(folder / "counter" for folder in folders))


def answering(folder: Path, setting: Setting, coins: random.Random) -> Callable[[Say], None]:
    start = coins.randrange(2**32)
    return lambda say: answer_fast(folder, setting, say, start)


def shared(place: Path, url: str, rounds: int, seed: int) -> dict[str, int]:
    """Two servers answer at once; each is killed at a moment of its own."""
    coins = random.Random(seed)  # noqa: S311
    folders = [place / "one", place / "two"]
    setting = begun(folders[0], queries=150, ledger=url)
    folders[1].mkdir()
    (folders[1] / "counter").write_bytes((folders[0] / "counter").read_bytes())
    let_out: dict[str, tuple[int, str]] = {}
    seen = {"kills": 0, "by_both": 0}
    for _ in range(rounds):
        children = [forked(answering(folder, setting, coins)) for folder in folders]
        for _, here in children:
            assert os.read(here, len(OPENED)) == OPENED
        told = []
        for child, here in coins.sample(children, 2):
            time.sleep(coins.uniform(0, LIFE))
            os.kill(child, signal.SIGKILL)
            lines, code = heard(child, here)
            assert code == -signal.SIGKILL
            told.append(answers(lines))
            seen["kills"] += 1
        seen["by_both"] += bool(told[0] and told[1])
        for one in told:
            let_out |= one
        rows = kept(url, setting, folders)
        assert all(rows.get(key) == answer for key, answer in let_out.items())
    return seen | {"let_out": len(let_out), "kept": len(kept(url, setting, folders))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("url")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(json.dumps(shared(given.folder, given.url, given.rounds, given.seed)))


if __name__ == "__main__":
    main()
