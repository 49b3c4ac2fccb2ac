"""The tasks of `serve`: a server in a process of its own, and clients that keep it busy."""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from bench.http_load import load, served

DATASET = "dataset:adult/frontier"
BARE = """
import asyncio, json, sys
from concurrent.futures import ThreadPoolExecutor
import duckdb
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from voile.web.limits import Rate
from voile.web.server import Address, WebOptions, listening, run_server, url_of

table = duckdb.connect(sys.argv[1], read_only=True)
app = FastAPI()
threads = ThreadPoolExecutor(32)

def count(sql):
    cursor = table.cursor()
    try:
        return cursor.execute(sql).fetchall()
    finally:
        cursor.close()

@app.post("/query")
async def query(request: Request):
    body = json.loads(await request.body())
    found = await asyncio.get_running_loop().run_in_executor(threads, count, body["sql"])
    return JSONResponse({"answer": found})

options = WebOptions(Address("127.0.0.1", 0), Rate(1e6, 10**6))
with listening(options) as listener:
    ready = lambda: print(json.dumps({"url": url_of(listener, options)}), flush=True)
    run_server(app, options, listener, ready)
"""
"""A count service without privacy: the same SQL on the same rows, behind the same web server."""


def noisy(requests: int, connections: int, shapes: str = "one", workers: int = 1) -> dict[str, Any]:
    """Every answer parsed, checked, counted, made noisy, and on disk before it leaves."""
    with begun(requests) as (folder, token):
        command = [
            sys.executable, "-m", "voile.cli", "serve", "run", str(folder), "--port", "0",
            "--json", "--rate", "1000000/s", "--burst", "1000000", "--workers", str(workers),
        ]  # fmt: skip
        asked = SHAPES[shapes](requests)
        with served(command) as port:
            measured = load(port, messages(asked, token), connections)
        if shapes == "one":
            check_charged(folder, requests)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return measured | {
        "rate": requests / measured["seconds"],
        "server_peak": peak if sys.platform == "darwin" else peak * 1024,
    }


def bare(requests: int, connections: int, shapes: str = "one") -> dict[str, Any]:
    """The true counts, of any query."""
    with tempfile.TemporaryDirectory() as made:
        file = Path(made) / "adult.duckdb"
        copy_table(file)
        with served([sys.executable, "-c", BARE, str(file)]) as port:
            asked = SHAPES[shapes](requests)
            measured = load(port, messages(asked, "none"), connections)
    return measured | {"rate": requests / measured["seconds"]}


def copy_table(file: Path) -> None:
    """The rows in a DuckDB file of their own, by their names."""
    import duckdb

    import voile

    source = voile.read(DATASET)
    rows, _ = source.rows(list(source.columns), drop_nulls=False)
    with duckdb.connect(file) as connection:
        connection.register("read", rows)
        connection.execute("CREATE TABLE adult AS SELECT * FROM read")


@contextmanager
def begun(queries: int) -> Iterator[tuple[Path, str]]:
    """A server's folder, and a token for it."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "server"
        printed("serve", "init", str(folder), "--table", DATASET, "--name", "adult",
             "--queries", str(queries), "--delta", "1")  # fmt: skip
        yield folder, printed("serve", "token", str(folder), "--analyst", "anna")["token"]


def printed(*arguments: str) -> Any:
    """The JSON that a command of the CLI prints."""
    done = subprocess.run(
        [sys.executable, "-m", "voile.cli", *arguments, "--json"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def questions(count: int) -> list[str]:
    """Counts that all differ in what they mean, so that no stored answer is any use."""
    races = ["White", "Black", "Other", "Asian-Pac-Islander", "Amer-Indian-Eskimo"]
    kinds = ["Private", "Local-gov", "State-gov", "Federal-gov", "Self-emp-inc", "Without-pay"]
    spans = [(low, high) for low in range(17, 80) for high in range(low + 2, 90, 3)]
    listed = [
        f"select count(*) from adult where age between {low} and {high} and race = '{race}' "
        f"and workclass <> '{kind}'"
        for (low, high), race, kind in product(spans, races, kinds)
    ]
    return listed[:: max(1, len(listed) // count)][:count]


def many_shapes(count: int) -> list[str]:
    """Counts and sums whose conditions are put together in different ways, each new."""
    chosen = random.Random(1)  # noqa: S311  (questions, no secrets)
    found: dict[str, None] = {}
    frames = [
        "select count(*) from adult where {}",
        "select count(*) as people from adult where {}",
        "select education, count(*) from adult where {} group by education",
    ]

    def comparison() -> str:
        low = chosen.randrange(17, 70)
        return chosen.choice(
            [
                f"age between {low} and {low + chosen.randrange(2, 20)}",
                f"age > {low}",
                f"age <= {low}",
                f"age in ({low}, {low + 3}, {low + 9})",
                "race = 'White'",
                "race in ('Black', 'Other')",
                "workclass <> 'Private'",
                "sex = 'Female'",
                f"not age between {low} and {low + 9}",
            ]
        )

    while len(found) < count:
        parts = [comparison() for _ in range(chosen.randrange(2, 5))]
        joined = chosen.choice(["{} and {}", "({} or {})"]).format(*parts[:2])
        where = f" {chosen.choice(['and', 'or'])} ".join([joined, *parts[2:]])
        frame = chosen.choices(frames, [10, 10, 1])[0]
        # Groups under a condition that nobody can satisfy are refused: one comparison for these.
        found[frame.format(parts[0] if "group" in frame else where)] = None
    return list(found)


SHAPES = {"one": questions, "new": many_shapes}


def messages(queries: Sequence[str], token: str) -> list[bytes]:
    """Whole HTTP requests, made before anything is timed."""
    bodies = [json.dumps({"sql": sql}).encode() for sql in queries]
    return [
        b"POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
        % (token.encode(), len(body), body)
        for body in bodies
    ]


def check_charged(folder: Path, wanted: int) -> None:
    """Refuse a server that charged another number of answers."""
    found = printed("serve", "status", str(folder))["everyone"]["used"]
    if found != wanted:
        raise RuntimeError(f"{found} answers were charged, not {wanted}")
