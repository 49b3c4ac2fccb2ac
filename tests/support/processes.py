"""A server of ours in a process of its own, and talking to it over the network."""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Listening:
    """A command that answers until it is stopped, and the line of JSON it began with."""

    process: subprocess.Popen[str]
    data: Mapping[str, Any]
    host: str
    port: int
    context: ssl.SSLContext | None = None

    def connect(self) -> http.client.HTTPConnection:
        if self.context:
            return http.client.HTTPSConnection(
                self.host, self.port, timeout=20, context=self.context
            )
        return http.client.HTTPConnection(self.host, self.port, timeout=20)

    def send(
        self,
        path: str,
        body: bytes | str,
        headers: Mapping[str, str],
        connection: http.client.HTTPConnection | None = None,
    ) -> tuple[int, Any]:
        """POST, on a connection of its own if none is given; the status and the JSON."""
        used = connection or self.connect()
        try:
            used.request("POST", path, body, {"Content-Type": "application/json", **headers})
            response = used.getresponse()
            return response.status, json.loads(response.read())
        finally:
            if connection is None:
                used.close()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors


@contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The command and its first line of JSON; it is killed at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "voile.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=plain(),
    )
    try:
        assert process.stdout
        line = process.stdout.readline()
        if not line:
            raise AssertionError(process.communicate()[1])
        yield process, json.loads(line)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def place_of(url: str) -> tuple[str, int]:
    host, port = url.partition("://")[2].rsplit(":", 1)
    return host, int(port)


def plain() -> dict[str, str]:
    """What a command must know to write long lines without colours."""
    return os.environ | {"NO_COLOR": "1", "COLUMNS": "200"}
