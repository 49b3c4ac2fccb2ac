"""Connections that are opened and say nothing: bounded, and in nobody else's way."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.soak import rounds
from voile.web.connections import ConnectionLimits, Listener, OpenConnections
from voile.web.limits import Rate
from voile.web.server import Address, WebOptions, WebServer, listening, settings

OPTIONS = WebOptions(Address("127.0.0.1", 0), Rate(1e6, 10**6))
ATTACKER, ANALYST = "127.0.0.2", "127.0.0.3"


async def hello(_scope: object, _receive: object, send: Any) -> None:
    """An application that says hello."""
    head = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]}
    await send(head)
    await send({"type": "http.response.body", "body": b"hello"})


class InThread(WebServer):
    """A server that leaves signals to the main thread."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.contextmanager
def serving(limits: ConnectionLimits, app: object = hello) -> Iterator[tuple[int, Listener]]:
    """A server in a thread: its port, and its listener."""
    begun = threading.Event()
    with listening(OPTIONS) as listener:
        listener.connections = OpenConnections(limits)
        config = settings(app, OPTIONS, listener.connections)
        server = InThread(config, begun.set, lambda: None)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        assert begun.wait(30)
        try:
            yield listener.getsockname()[1], listener
        finally:
            server.should_exit = True
            thread.join(30)


def opened(port: int, source: str, said: bytes = b"") -> socket.socket:
    """A connection that has said no more than this."""
    made = socket.create_connection(("127.0.0.1", port), 20, source_address=(source, 0))
    if said:
        made.sendall(said)
    return made


def asked(port: int, source: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=20, source_address=(source, 0)
    )
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def is_closed(connection: socket.socket, seconds: float = 10.0) -> bool:
    """Whether the other side has closed it, or does so in time."""
    connection.settimeout(seconds)
    try:
        while connection.recv(4096):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def test_half_open_connections_keep_nobody_out() -> None:
    """Neither others, nor those who share the attacker's address."""
    count = rounds(150, 1010)
    with serving(ConnectionLimits(each=64, together=100, head_seconds=600)) as (port, listener):
        half = [opened(port, ATTACKER, b"GET / HTTP/1.1\r\nHost: x\r\n") for _ in range(count)]
        try:
            assert asked(port, ANALYST) == (200, b"hello")
            assert asked(port, ATTACKER) == (200, b"hello")
            assert listener.connections is not None
            assert len(listener.connections) <= 65
        finally:
            for one in half:
                one.close()


def test_many_addresses_together_keep_nobody_out() -> None:
    with serving(ConnectionLimits(each=10, together=40, head_seconds=600)) as (port, _):
        half = [opened(port, f"127.0.1.{n % 20 + 1}") for n in range(100)]
        try:
            for _ in range(5):
                assert asked(port, ANALYST) == (200, b"hello")
        finally:
            for one in half:
                one.close()


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_a_head_must_come_in_time(said: bytes) -> None:
    limits = ConnectionLimits(head_seconds=0.5)
    with serving(limits) as (port, _), opened(port, ATTACKER, said) as silent:
        assert is_closed(silent)


WHOLE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("before", [0, 1, 2])
def test_bytes_one_by_one_do_not_gain_time(before: int) -> None:
    """Nor after whole requests: uvicorn stops its own clock at the first byte of the next."""
    limits = ConnectionLimits(head_seconds=1.0)
    with serving(limits) as (port, _), opened(port, ATTACKER) as slow:
        for _ in range(before):
            slow.sendall(WHOLE)
            while b"hello" not in slow.recv(4096):
                pass
        began = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() - began < 20:
                slow.sendall(b"G")
                time.sleep(0.05)
        assert time.monotonic() - began < 15


def test_who_works_is_not_closed_for_others_and_more_are_turned_away() -> None:
    """Where all connections of an address are at work, a further one is refused in words."""

    async def slow(scope: object, receive: object, send: Any) -> None:
        await asyncio.sleep(3)
        await hello(scope, receive, send)

    with serving(ConnectionLimits(each=3), slow) as (port, _):
        busy = [opened(port, ATTACKER, WHOLE) for _ in range(3)]
        time.sleep(0.5)
        with opened(port, ATTACKER) as fourth:
            assert b"503" in fourth.recv(4096)
        for one in busy:
            assert b"200" in one.recv(4096)
            one.close()


def test_a_proxy_has_many_connections() -> None:
    limits = ConnectionLimits(each=5, together=100, head_seconds=600, proxy=ATTACKER)
    with serving(limits) as (port, listener):
        half = [opened(port, ATTACKER) for _ in range(30)]
        assert asked(port, ATTACKER)[0] == 200
        assert listener.connections is not None
        assert len(listener.connections) >= 30
        for one in half:
            one.close()
