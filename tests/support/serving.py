"""What the tests of servers of noisy counts share: a table, a server of it, and requests to it."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.support.collecting import Answer, one
from tests.support.collecting import ask as send
from tests.support.processes import Listening, place_of, started
from voile.serve.app import make_app
from voile.serve.creation import begin
from voile.serve.opened import opened
from voile.serve.query_service import QueryService
from voile.serve.setting import Setting
from voile.serve.workers import QuestionTrial
from voile.web.limits import Rate, WorkPool

GENEROUS = Rate(1e6, 10**6)
CITIES = ["Aachen", "Bergen", "Cork", "Delft"]
CODEBOOK: dict[str, Any] = {
    "attributes": [
        {"name": "age", "kind": "integer", "range": [0, 99]},
        {"name": "sex", "kind": "categorical", "values": ["Female", "Male"]},
        {"name": "city", "kind": "categorical", "values": CITIES},
        {"name": "smoker", "kind": "boolean", "values": [False, True]},
        {"name": "hours", "kind": "integer", "range": [0, 60]},
    ]
}


def table(seed: int = 1, rows: int = 500) -> pa.Table:
    """People of the codebook; with another seed other people of the same one."""
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "age": chance.integers(0, 100, rows),
            "sex": np.array(["Female", "Male"])[chance.integers(0, 2, rows)],
            "city": np.array(CITIES)[chance.integers(0, 4, rows)],
            "smoker": chance.random(rows) < 0.3,
            "hours": chance.integers(0, 61, rows),
        }
    )


def begun(folder: Path, *, seed: int = 1, queries: int = 100, **options: Any) -> Setting:
    """A server of that table in a new folder."""
    given: dict[str, Any] = {"delta": 1.0, "schema": CODEBOOK, "name": "people"} | options
    setting, _ = begin(folder, table(seed), queries=queries, **given)
    return setting


@dataclass(frozen=True)
class Served:
    """A server without a network, and whom it knows."""

    service: QueryService
    app: Any
    analyst: str
    admin: str

    def request(
        self,
        method: str,
        path: str,
        data: Any = None,
        token: str | None = None,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        address: str = "127.0.0.1",
    ) -> Answer:
        found: Answer = one(self.sending(method, path, data, token, body, headers, address))
        return found

    def sending(
        self,
        method: str,
        path: str,
        data: Any = None,
        token: str | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        address: str = "127.0.0.1",
    ) -> Any:
        sent = body if body is not None else b"" if data is None else json.dumps(data).encode()
        own = {} if token is None else {"authorization": f"Bearer {token}"}
        place, _, asked = path.partition("?")

        async def app(scope: Any, receive: Any, reply: Any) -> None:
            await self.app(scope | {"query_string": asked.encode()}, receive, reply)

        return send(app, method, place, sent, own | dict(headers or {}), address=address)

    def query(self, sql: str, token: str | None = None, **parts: Any) -> Answer:
        return self.request("POST", "/query", {"sql": sql} | parts, token or self.analyst)


@contextmanager
def served(
    folder: Path, *, rate: Rate = GENEROUS, threads: int = 8, questions: QuestionTrial | None = None
) -> Iterator[Served]:
    """The server of a folder that was begun, an analyst (anna) and an admin (olga)."""
    with opened(folder) as service:
        pool = WorkPool(threads, 500)
        try:
            analyst, _ = service.ledger.issue("anna")
            admin, _ = service.ledger.issue("olga", role="admin")
            app = make_app(service, rate, pool, questions=questions)
            yield Served(service, app, analyst, admin)
        finally:
            pool.close()


# ---------------------------------------------------------------------- over a network


class Running(Listening):
    """`voile serve run` in a process of its own."""

    def ask(
        self,
        sql: str,
        token: str,
        connection: http.client.HTTPConnection | None = None,
        **parts: Any,
    ) -> tuple[int, Any]:
        body, headers = json.dumps({"sql": sql} | parts), {"Authorization": f"Bearer {token}"}
        return self.send("/query", body, headers, connection)


@contextmanager
def running(
    folder: Path, *options: str, context: ssl.SSLContext | None = None
) -> Iterator[Running]:
    """`voile serve run` on any free port."""
    with started("serve", "run", str(folder), "--port", "0", "--json", *options) as (process, data):
        yield Running(process, data, *place_of(data["url"]), context)
