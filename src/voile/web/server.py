"""A web server around an application, from the first request to the last."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

CONNECTIONS = 1000
"""Open at a time; more are turned away with 503."""
GRACE = 10
"""Seconds that requests have to end when a server stops."""


def settings(
    app: object, proxy: str | None, *, certificate: Path | None = None, key: Path | None = None
) -> uvicorn.Config:
    """No log (it would hold addresses), and no belief in headers that anybody can write."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="off",
        proxy_headers=proxy is not None,
        forwarded_allow_ips=proxy,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=GRACE,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )


class WebServer(uvicorn.Server):
    """Says when it is ready, and takes a signal for the usual end of its work."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        asked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.getsignal(number) for number in asked}
        for number in asked:
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)

    def _stop(self) -> None:
        self.force_exit = self.should_exit  # who asks twice does not want to wait
        self.should_exit = True
