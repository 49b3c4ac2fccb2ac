"""Many requests over HTTP at once, and how long their answers took."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass


@contextmanager
def served(command: Sequence[str]) -> Iterator[int]:
    """The port of a server that is ready; its first line of JSON names it."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout
        ready = json.loads(process.stdout.readline())
        yield int((ready.get("listening") or ready["url"]).rsplit(":", 1)[1])
    finally:
        process.terminate()
        process.communicate(timeout=30)


def load(port: int, requests: list[bytes], connections: int) -> dict[str, float]:
    """Send all of them, shared among connections, each waiting for its answer."""
    waits: list[float] = []
    shares = [requests[n::connections] for n in range(connections)]
    threads = [threading.Thread(target=send_all, args=(port, share, waits)) for share in shares]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    if len(waits) != len(requests):
        raise RuntimeError(f"only {len(waits)} of {len(requests)} requests were answered well")
    waits.sort()
    return {
        "seconds": seconds,
        "requests_per_second": len(requests) / seconds,
        "median_ms": 1e3 * waits[len(waits) // 2],
        "p99_ms": 1e3 * waits[int(0.99 * len(waits))],
    }


def send_all(port: int, requests: list[bytes], waits: list[float]) -> None:
    """Send requests over one connection, and note how long each waits."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection.makefile("rb") as answers:
            for request in requests:
                began = time.perf_counter()
                connection.sendall(request)
                if not read_answer(answers):
                    return
                waits.append(time.perf_counter() - began)


def read_answer(answers: Any) -> bool:
    """Read one answer to its end; whether it was 200."""
    fine = b" 200 " in answers.readline()
    length = 0
    while (line := answers.readline()) not in (b"\r\n", b""):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    answers.read(length)
    return fine
