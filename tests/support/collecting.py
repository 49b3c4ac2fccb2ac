"""What the tests of the collector share: a survey, submissions, and requests without a network."""

from __future__ import annotations

import asyncio
import http.client
import json
import sqlite3
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tests.support.processes import Listening, place_of, started
from voile.client import Spec, Submission
from voile.collect.server import RequestLimits, make_app
from voile.collect.store import DATABASE, Writer, opened
from voile.web.limits import Rate, RateLimiter

SURVEY: dict[str, Any] = {
    "format": "voile-perturbation",
    "version": 1,
    "name": "health survey",
    "columns": [
        {"name": "age", "kind": "integer", "domain": {"low": 17, "step": 1, "per": 1, "count": 74},
         "null": False, "retention": 0.3, "replace": "uniform"},
        {"name": "hours", "kind": "numeric",
         "domain": {"low": 0, "step": 1, "per": 10000, "count": 1000001},
         "null": False, "retention": 0.5, "replace": "uniform"},
        {"name": "sex", "kind": "categorical", "domain": {"values": ["Female", "Male"]},
         "null": True, "retention": 0.5, "replace": [1, 3, 1]},
    ],
    "joint": None,
}  # fmt: skip
SIZES = (74, 1_000_001, 3)
"""Codes of each column, NULL included."""
GENEROUS = Rate(1e6, 10**6)
Result = TypeVar("Result")


def survey() -> Spec:
    return Spec.from_dict(SURVEY)


def some_submission(
    spec: Spec, rows: int, generator: np.random.Generator
) -> tuple[bytes, list[str]]:
    """A valid payload of rows of the survey, and its ids in hex."""
    ids = [generator.bytes(16).hex() for _ in range(rows)]
    values = [
        [
            int(generator.integers(17, 91)),
            int(generator.integers(0, 1_000_001)) / 10_000,
            [None, "Female", "Male"][generator.integers(3)],
        ]
        for _ in range(rows)
    ]
    return payload(spec, ids, values), ids


def payload(spec: Spec, ids: Sequence[str], values: Sequence[Any], **changed: Any) -> bytes:
    rows = [{"id": one, "values": given} for one, given in zip(ids, values, strict=True)]
    parts = {"format": "voile-rows", "version": 1, "spec": spec.digest, "rows": rows}
    return json.dumps(parts | changed).encode()


def codes_submission(ids: Sequence[bytes], codes: Sequence[Sequence[int]]) -> Submission:
    return Submission(list(ids), np.array(codes, dtype=np.int64).reshape(len(ids), -1))


def stored(folder: Path) -> dict[str, bytes]:
    """What a store's file holds, by id in hex, read by SQLite alone."""
    connection = sqlite3.connect(folder / DATABASE)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        found = {bytes(key).hex(): codes for key, codes in connection.execute("SELECT * FROM rows")}
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if "arrivals" in tables:  # on disk, and not in their places yet
            for ids, codes in connection.execute("SELECT ids, codes FROM arrivals"):
                width = 16 * len(codes) // len(ids)
                for i in range(len(ids) // 16):
                    key = ids[16 * i : 16 * i + 16].hex()
                    assert key not in found
                    found[key] = codes[width * i : width * (i + 1)]
        return found
    finally:
        connection.close()


# ---------------------------------------------------------------------- without a network


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@contextmanager
def application(
    folder: Path,
    *,
    limits: RequestLimits | None = None,
    rate: Rate = GENEROUS,
    origins: tuple[str, ...] = (),
    **options: Any,
) -> Iterator[Any]:
    """A collector's application on a store of the survey."""
    with opened(folder, survey(), **options) as store:
        writer = Writer(store)
        try:
            yield make_app(writer, RateLimiter(rate), limits=limits, origins=origins)
        finally:
            writer.close()


async def ask(
    app: Any,
    method: str,
    path: str,
    body: bytes | Sequence[bytes] = b"",
    headers: Mapping[str, str] | None = None,
    *,
    address: str = "127.0.0.1",
    complete: bool = True,
    pause: asyncio.Event | None = None,
) -> Answer:
    """One request; `headers` replace those of a JSON body, an empty one is left out.

    A body of several chunks arrives in pieces, all but the first after `pause` is set; one that
    is not complete ends with a disconnect.
    """
    chunks = [body] if isinstance(body, bytes) else list(body)
    usual = {"content-type": "application/json", "content-length": str(sum(map(len, chunks)))}
    given = {k: v for k, v in (usual | dict(headers or {})).items() if v}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
        "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "client": (address, 50_000), "server": ("127.0.0.1", 8400),
        "headers": [(k.lower().encode(), v.encode("latin-1")) for k, v in given.items()],
    }  # fmt: skip
    incoming = arriving(chunks, complete, pause)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, incoming.__anext__, send)
    start = sent[0]
    found = {k.decode(): v.decode() for k, v in start["headers"]}
    return Answer(start["status"], found, b"".join(m.get("body", b"") for m in sent[1:]))


async def arriving(
    chunks: Sequence[bytes], complete: bool, pause: asyncio.Event | None
) -> AsyncIterator[Any]:
    for place, chunk in enumerate(chunks):
        if place and pause:
            await pause.wait()
        more = not complete or place + 1 < len(chunks)
        yield {"type": "http.request", "body": chunk, "more_body": more}
    if complete:
        await asyncio.sleep(3600)  # a client that waits for its answer
    yield {"type": "http.disconnect"}


def together(*requests: Coroutine[Any, Any, Result]) -> list[Result]:
    async def run() -> list[Result]:
        return list(await asyncio.gather(*requests))

    return asyncio.run(run())


def one(request: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(request)


# ---------------------------------------------------------------------- over a network


class Running(Listening):
    """A collector in a process of its own."""

    def post(
        self, body: bytes, connection: http.client.HTTPConnection | None = None
    ) -> tuple[int, Any]:
        return self.send("/v1/rows", body, {}, connection)


@contextmanager
def collector(folder: Path, *options: str) -> Iterator[Running]:
    """`voile collect` on any free port."""
    with started(
        "collect", "--store", str(folder), "--listen", "127.0.0.1:0", "--json", *options
    ) as (process, data):
        assert data["listening"] == data["url"]
        yield Running(process, data, *place_of(data["url"]))
