"""The task of `hostile`: an analyst's questions, while another sends the worst that are known."""

from __future__ import annotations

import itertools
import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from bench.http_load import read_answer, send_all, served
from bench.serve_work import begun, messages, printed, questions

ALL = "workclass || education || marital_status || occupation || age"
LONG = f"lpad({ALL}, 1000, 'ab')"
WORST = (
    # long texts, made longer, on as many combinations as are tried
    f"select count(*) from adult where length(regexp_replace({LONG}, '(a|b)+?c*', 'xy', 'g')) "
    "> {n}",
    f"select count(*) from adult where regexp_matches({LONG}, '(a?){{{{1,60}}}}(b|a){{{{1,60}}}}') "
    "and age > {n}",
    f"select sum(length(replace(replace({LONG}, 'a', 'bb'), 'b', 'cc'))) from adult "
    "where age > {n}",
    # what blocked servers before texts and patterns were bounded
    "select count(*) from adult where damerau_levenshtein(sex || '" + "x" * 2400 + "', sex || '"
    + "y" * 2400 + "') > {n}",
    # much to parse, many totals, many groups
    "select count(*) from adult where " + " or ".join(f"age = {k % 90}" for k in range(600))
    + " or age > {n}",
    "select " + ", ".join(f"sum(age * {k} + {{n}})" for k in range(45)) + " from adult",
    "select age, occupation, education, count(*) from adult where age > {n} group by 1, 2, 3",
)  # fmt: skip
"""The worst questions that are known; {n} makes each a new one."""
HALF = b"POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
FAR = "127.0.0.2"
"""Where the other's connections come from, where loopback has such addresses."""


def hostile(requests: int, senders: int, half_open: int, rounds: int = 2) -> dict[str, Any]:
    """p99 of an analyst in quiet, and beside another who tries to stop the server."""
    with begun(4 * rounds * requests) as (folder, anna):
        mallory = printed("serve", "token", str(folder), "--analyst", "mallory")["token"]
        command = [
            sys.executable, "-m", "voile.cli", "serve", "run", str(folder), "--port", "0",
            "--json", "--rate", "1000000/s", "--burst", "1000000",
        ]  # fmt: skip
        sent = messages(questions(2 * rounds * requests), anna)
        shares = [sent[n * requests : (n + 1) * requests] for n in range(2 * rounds)]
        quiet, beside = list[float](), list[float]()
        with served(command) as port:
            send_all(port, messages(["select count(*) from adult where age < 0"], anna), [])
            for first, second in zip(shares[::2], shares[1::2], strict=True):
                send_all(port, first, quiet)
                with attacked(port, mallory, senders, half_open):
                    send_all(port, second, beside)
    if len(quiet) + len(beside) != len(sent):
        raise RuntimeError(f"{len(quiet)} and {len(beside)} of {len(sent)} were answered well")
    return {
        "quiet_p99_ms": p99(quiet), "p99_ms": p99(beside), "rate": 1e3 / p99(beside),
        "quiet_median_ms": median(quiet), "median_ms": median(beside),
    }  # fmt: skip


def p99(waits: list[float]) -> float:
    """Milliseconds that one in a hundred waits for longer."""
    return 1e3 * sorted(waits)[int(0.99 * len(waits))]


def median(waits: list[float]) -> float:
    """Milliseconds that half of them wait for longer."""
    return 1e3 * sorted(waits)[len(waits) // 2]


@contextmanager
def attacked(port: int, token: str, senders: int, half_open: int) -> Iterator[None]:
    """While this lasts, worst questions come over so many connections, and others say nothing."""
    over, numbers = threading.Event(), itertools.count(1)
    threads = [
        threading.Thread(target=attack, args=(port, token, over, numbers)) for _ in range(senders)
    ]
    with ExitStack() as stack:
        for _ in range(half_open):
            stack.enter_context(opened(port)).sendall(HALF)
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()


def opened(port: int) -> socket.socket:
    """A connection from another address, where there is one."""
    with suppress(OSError):
        return socket.create_connection(("127.0.0.1", port), 60, source_address=(FAR, 0))
    return socket.create_connection(("127.0.0.1", port), 60)


def attack(port: int, token: str, over: threading.Event, numbers: Iterator[int]) -> None:
    """Ask the worst questions one after the other, as dry runs and not."""
    while not over.is_set():
        number = next(numbers)
        sql = WORST[number % len(WORST)].format(n=number % 17)
        body = json.dumps({"sql": sql, "dry_run": True}).encode()
        with suppress(OSError), opened(port) as connection:
            connection.sendall(
                b"POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
                % (token.encode(), len(body), body)
            )
            connection.settimeout(20.0)
            with connection.makefile("rb") as answers:
                read_answer(answers)
