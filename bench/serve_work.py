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
    """Counts of one shape, no two of which mean the same: the constants alone differ."""
    return [f"select count(*) from adult where {one}" for one in told_apart(count)]


def told_apart(count: int) -> list[str]:
    """Conditions on age, race and workclass, each true of other people than all the rest."""
    races = ["White", "Black", "Other", "Asian-Pac-Islander", "Amer-Indian-Eskimo"]
    kinds = ["Private", "Local-gov", "State-gov", "Federal-gov", "Self-emp-inc", "Without-pay"]
    spans = [(low, high) for low in range(17, 80) for high in range(low + 2, 90, 3)]
    listed = [
        f"age between {low} and {high} and race = '{race}' and workclass <> '{kind}'"
        for (low, high), race, kind in product(spans, races, kinds)
    ]
    return listed[:: max(1, len(listed) // count)][:count]


FRAMES = (
    "select count(*) from adult where {}",
    "select count(*) as people from adult where {}",
    "select sum(age) from adult where {}",
    "select education, count(*) from adult where {} group by education",
)


def new_conditions(count: int) -> list[str]:
    """Counts and sums in four frames; no two mean the same, and conditions join in many ways."""
    chosen = random.Random(1)  # noqa: S311  (questions, no secrets)
    plain = {
        "sex": ["sex = 'Female'", "not sex = 'Female'", "sex in ('Male')"],
        "marital_status": [
            "marital_status <> 'Widowed'",
            "marital_status in ('Divorced', 'Separated')",
            "marital_status not in ('Never-married', 'Widowed')",
            "not marital_status = 'Divorced'",
        ],
    }

    def further() -> str:
        """A condition that somebody meets, on columns that the first part does not read."""
        parts = [chosen.choice(plain[name]) for name in chosen.sample(sorted(plain), 2)]
        some = parts[: chosen.randrange(1, 3)]
        joined = f" {chosen.choice(['and', 'or'])} ".join(some)
        return joined if len(some) == 1 else f"({joined})"

    found = []
    for one in told_apart(count):
        parts = [one.partition(" and workclass")[0], further()]
        kind = one.partition("workclass <> ")[2]
        parts.append(chosen.choice([f"workclass <> {kind}", f"not workclass = {kind}"]))
        chosen.shuffle(parts)
        found.append(chosen.choices(FRAMES, [10, 10, 5, 1])[0].format(" and ".join(parts)))
    return found


NEVER_READ_BEFORE = (
    "select count(*) as answer_{n} from adult where {where} and marital_status <> 'Widowed'",
    "select sum(age * (age - {rest})) as years_{n} from adult where {where} and sex = 'Female'",
    "select count(*) from adult where {where} and lower(sex) = 'female'",
    "select count(*) from adult where {where} and education like '%{letter}%'",
    "select count(*) filter (where sex = 'Male') from adult where {where}",
    "select sum(case when education = 'Bachelors' then 2 else 1 end) from adult where {where}",
    "select count(*) from adult where {where} and length(marital_status) > {rest} + 5",
    "select sex, count(*) as people_{n} from adult where {where} group by sex order by 2 desc",
    "select count(*) from (select * from adult where {where}) as rows_{n} where sex = 'Male'",
)
"""Each is left to the processes that parse and bind SQL: see `voile.serve.shapes`."""


def new_shapes(count: int) -> list[str]:
    """Counts and sums that nothing read before helps with: each is parsed, bound and charged."""
    return [
        NEVER_READ_BEFORE[n % len(NEVER_READ_BEFORE)].format(
            n=n, where=where, rest=n % 5, letter="aehos"[n // 7 % 5]
        )
        for n, where in enumerate(told_apart(count))
    ]


SHAPES = {"one": questions, "conditions": new_conditions, "new": new_shapes}


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
