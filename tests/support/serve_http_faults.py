"""Killing a server that answers over HTTP, at random moments under load.

python -m tests.support.serve_http_faults FOLDER [--kills 30] [--seed 1] prints what was seen, as
JSON. In a process of its own, since it forks: all is loaded already when a server begins.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.serve_faults import rows_of
from tests.support.serving import begun
from voile.privacy.interactive.promise import account
from voile.serve.server import serve
from voile.serve.setting import Setting
from voile.serve.steward import issue_token
from voile.web.limits import Rate
from voile.web.server import Address, WebOptions

QUERIES, CLIENTS, LIFE = 60, 4, 0.25
"""T, threads that ask, and the seconds for which a server answers before it is killed, at most."""


@dataclass
class Seen:
    """What came back, over all kills."""

    kills: int = 0
    answers: int = 0
    """That reached a client; not counting what was free."""
    servers: int = 0
    """Ledgers that were begun, each asked until it was exhausted."""
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def kills(place: Path, wanted: int, seed: int) -> dict[str, Any]:
    """Kill servers until it is enough; every ledger is checked after each."""
    coins = random.Random(seed)  # noqa: S311
    setting = begun(place / "begun", queries=QUERIES)
    token, _ = issue_token(place / "begun", "anna", queries=None, group=None, role="analyst",
                           scopes=None, seconds=None)  # fmt: skip
    account(setting.noise, setting.variance, setting.queries)  # kept for all children
    seen = Seen()
    while seen.kills < wanted:
        folder = Path(shutil.copytree(place / "begun", place / f"server {seen.servers}"))
        seen.servers += 1
        told: dict[int, Any] = {}
        while seen.kills < wanted and 429 not in seen.statuses:
            one_kill(folder, token, coins, told, seen)
            check(folder, setting, told, seen)
        seen.answers += len(told)
        seen.statuses.pop(429, None)
        shutil.rmtree(folder)
    return {"kills": seen.kills, "answers": seen.answers, "servers": seen.servers,
            "statuses": dict(seen.statuses), "wrong": seen.wrong}  # fmt: skip


def one_kill(
    folder: Path, token: str, coins: random.Random, told: dict[int, Any], seen: Seen
) -> None:
    child, port = started(folder)
    seeds = [coins.random() for _ in range(CLIENTS)]
    clients = [
        threading.Thread(target=ask_on, args=(port, token, each, told, seen)) for each in seeds
    ]
    for client in clients:
        client.start()
    time.sleep(coins.uniform(0, LIFE))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for client in clients:
        client.join()
    seen.kills += 1


def started(folder: Path) -> tuple[int, int]:
    """A server in a child of this process, and its port; no thread is alive when it is forked."""
    here, there = os.pipe()
    child = os.fork()
    if not child:
        try:
            serve(
                folder,
                WebOptions(Address("127.0.0.1", 0), Rate(1e6, 10**6)),
                ready=lambda found: void(os.write(there, found.url.encode() + b"\n")),
                note=print,
            )
        except BaseException:
            traceback.print_exc()
        os._exit(70)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        return child, int(pipe.readline().decode().rsplit(":", 1)[1])


def void(_: object) -> None:
    """For what is called for its effect."""


def ask_on(port: int, token: str, seed: float, told: dict[int, Any], seen: Seen) -> None:
    """Ask new and old questions until the server is gone; note every answer that was charged."""
    coins = random.Random(seed)  # noqa: S311
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    try:
        while True:
            low, high = coins.randrange(60), coins.randrange(60)
            sql = f"select count(*) from people where age > {low} and hours < {high}"
            connection.request("POST", "/query", json.dumps({"sql": sql}), headers)
            response = connection.getresponse()
            found = json.loads(response.read())
            seen.statuses[response.status] += 1
            if response.status == 200:
                (number,) = found["numbers"]
                if told.setdefault(number, found["answer"]) != found["answer"]:
                    seen.wrong.append(f"entry {number} was told in two ways")
    except (OSError, http.client.HTTPException, ValueError):
        pass  # the server is gone, perhaps in the middle of an answer
    finally:
        connection.close()


def check(folder: Path, setting: Setting, told: dict[int, Any], seen: Seen) -> None:
    """All that was told is in the ledger as it was told; and there are at most T entries."""
    try:
        kept = {number: json.loads(answer) for number, answer in rows_of(folder, setting).values()}
    except AssertionError as error:
        seen.wrong.append(str(error))
        return
    for number, answer in told.items():
        if kept.get(number) != [answer]:
            seen.wrong.append(f"{answer} was told as entry {number}; there is {kept.get(number)}")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--kills", type=int, default=30)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    found = kills(given.folder, given.kills, given.seed)
    print(json.dumps(found))
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
