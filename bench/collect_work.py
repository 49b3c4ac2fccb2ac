"""The tasks of `collect`: a server in a process of its own, and clients that keep it busy."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.http_load import load, served

if TYPE_CHECKING:
    from voile.client import Spec

ECHO = """
import socket, sys
import uvicorn
from fastapi import FastAPI, Request, Response

app = FastAPI()

@app.post("/v1/rows")
async def echo(request: Request) -> Response:
    return Response(await request.body(), media_type="application/json")

listener = socket.socket(proto=socket.IPPROTO_TCP)
listener.bind(("127.0.0.1", 0))
listener.listen(100)
host, port = listener.getsockname()
print(f'{{"listening": "http://{host}:{port}"}}', flush=True)
config = uvicorn.Config(app, log_level="critical", access_log=False)
uvicorn.Server(config).run(sockets=[listener])
"""


def collector(rows: int, requests: int, connections: int) -> dict[str, Any]:
    """Every row checked, and on disk before the answer."""
    spec = survey()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "spec.json").write_bytes(spec.raw)
        command = [
            sys.executable, "-m", "voile.cli", "collect", "--spec", str(folder / "spec.json"),
            "--store", str(folder / "store"), "--listen", "127.0.0.1:0", "--json",
            "--rate", "1000000/s", "--burst", "1000000",
        ]  # fmt: skip
        with served(command) as port:
            measured = load(port, messages(spec, rows, requests), connections)
            check_count(port, rows * requests)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return measured | {
        "rate": rows * requests / measured["seconds"],
        "server_peak": peak if sys.platform == "darwin" else peak * 1024,
    }


def echo(rows: int, requests: int, connections: int) -> dict[str, Any]:
    """The same bytes, not looked at."""
    with served([sys.executable, "-c", ECHO]) as port:
        measured = load(port, messages(survey(), rows, requests), connections)
    return measured | {"rate": rows * requests / measured["seconds"]}


def survey() -> Spec:
    """A specification with a column of every kind."""
    from voile.client import Spec

    def column(name: str, kind: str, domain: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": name, "kind": kind, "domain": domain, "null": False, "retention": 0.5,
            "replace": "uniform",
        }  # fmt: skip

    def grid(low: int, per: int, count: int) -> dict[str, int]:
        return {"low": low, "step": 1, "per": per, "count": count}

    return Spec.from_dict(
        {
            "format": "voile-perturbation",
            "version": 1,
            "name": "benchmark",
            "columns": [
                column("age", "integer", grid(17, 1, 74)),
                column("hours", "numeric", grid(0, 100, 10_001)),
                column("sex", "categorical", {"values": ["Female", "Male"]}),
                column("smokes", "boolean", {"values": [False, True]}),
                column("born", "date", {"first": "1950-01-01", "count": 20_000}),
                column("pay", "numeric", {"edges": [0, 1000, 2000.5, 9000]}),
            ],
        }
    )


def messages(spec: Spec, rows: int, requests: int) -> list[bytes]:
    """Whole HTTP requests, made before anything is timed."""
    from voile.client import submission

    row = {"age": 40, "hours": 12.5, "sex": "Male", "smokes": True, "born": "1980-05-05", "pay": 9}
    bodies = (submission([row] * rows, spec) for _ in range(requests))
    return [
        b"POST /v1/rows HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        for body in bodies
    ]


def check_count(port: int, wanted: int) -> None:
    """Refuse a store with another number of rows than was sent."""
    import urllib.request

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/count") as answer:
        found = json.load(answer)["rows"]
    if found != wanted:
        raise RuntimeError(f"the store has {found} rows, not {wanted}")
