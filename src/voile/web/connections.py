"""Connections that are bounded: how many are open, of whom, and how long they may say nothing.

A connection costs the one who opens it next to nothing. So each has a time to send a whole head of
a request, and an address has a number of connections. Where that is reached, the one that has been
waiting longest for a request is closed for the new one: whoever opens many and says nothing loses
these, and not the others who send requests from there.

Connections are counted where they are accepted, before TLS: a client that never ends the handshake
counts, too.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from voile.system import here as system
from voile.web.limits import party

PER_ADDRESS, CONNECTIONS = 128, 1000
"""Open at a time, of one address and of all."""
HEAD_SECONDS = 10.0
"""To send a whole head, from when a connection is opened or the first byte of the next request."""
REQUEST_SECONDS = 120.0
"""For a request to be answered and the answer to be read, body and all."""
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 21\r\nconnection: close\r\nretry-after: 1\r\n\r\ntoo many connections\n"
)


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections may be open at a time."""

    each: int = PER_ADDRESS
    """Of one address."""
    together: int = CONNECTIONS
    proxy: str | None = None
    """The address of a proxy, whose connections are of many people."""
    head_seconds: float = HEAD_SECONDS
    request_seconds: float = REQUEST_SECONDS


Peer = tuple[str, int]
"""The address and the port at the other end."""


class AcceptedSocket(socket.socket):
    """A connection that says when it is closed."""

    owner = ""
    """Whose it is: the address, or the network of it."""
    peer: Peer = ("", 0)
    on_close: Callable[[AcceptedSocket], None] | None = None
    timer: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Close it, and count it no more."""
        super().close()
        if self.on_close is not None:
            forget, self.on_close = self.on_close, None
            forget(self)


Line = OrderedDict[AcceptedSocket, None]


class OpenConnections:
    """All connections of a server; used by one loop."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._by_peer: dict[Peer, AcceptedSocket] = {}
        self._open: dict[str, set[AcceptedSocket]] = {}
        self._count = 0
        self._silent: dict[str, Line] = {}
        """By address those that wait for a request; the first waits longest."""

    def __len__(self) -> int:
        return self._count

    def admit(self, accepted: socket.socket, peer: Any) -> AcceptedSocket | None:
        """The connection, counted; None if it was turned away."""
        found = AcceptedSocket(fileno=accepted.detach())
        found.owner, found.peer = party(str(peer[0])), (str(peer[0]), int(peer[1]))
        if not self._has_room(found.owner):
            turn_away(found)
            return None
        found.on_close = self._forget
        self._open.setdefault(found.owner, set()).add(found)
        self._by_peer[found.peer] = found
        self._count += 1
        self._await_head(found)
        return found

    def awaits_head(self, peer: Peer | None) -> None:
        """The next request has begun to come; what comes of it later gains no time."""
        if peer and (found := self._by_peer.get(peer)) and found.timer is None:
            self._await_head(found)

    def rests(self, peer: Peer | None) -> None:
        """Its request was answered; until the next one begins it may be closed for others."""
        if peer and (found := self._by_peer.get(peer)):
            self._stop_timer(found)
            self._silent.setdefault(found.owner, OrderedDict())[found] = None

    def works(self, peer: Peer | None) -> None:
        """The head of a request has come."""
        if peer and (found := self._by_peer.get(peer)):
            self._leave_line(found)
            self._within(found, self.limits.request_seconds)

    def _has_room(self, owner: str) -> bool:
        own, limits = len(self._open.get(owner, ())), self.limits
        proxied = limits.proxy is not None and owner == party(limits.proxy)
        if own >= limits.each and not proxied and not self._drop(owner):
            return False
        return self._count < limits.together or self._drop(self._largest())

    def _await_head(self, connection: AcceptedSocket) -> None:
        self._silent.setdefault(connection.owner, OrderedDict())[connection] = None
        self._within(connection, self.limits.head_seconds)

    def _within(self, connection: AcceptedSocket, seconds: float) -> None:
        """End it unless something else is said of it in time."""
        self._stop_timer(connection)
        loop = asyncio.get_running_loop()
        connection.timer = loop.call_later(seconds, end, connection)

    def _stop_timer(self, connection: AcceptedSocket) -> None:
        if connection.timer is not None:
            connection.timer.cancel()
            connection.timer = None

    def _drop(self, owner: str) -> bool:
        """End the one of an address that has been waiting for a request for longest."""
        line = self._silent.get(owner)
        if not line:
            return False
        longest = next(iter(line))
        self._uncount(longest)
        end(longest)
        return True

    def _largest(self) -> str:
        """The address with most connections that wait for a request."""
        return max(self._silent, key=lambda owner: len(self._silent[owner]), default="")

    def _leave_line(self, connection: AcceptedSocket) -> None:
        line = self._silent.get(connection.owner)
        if line is not None and connection in line:
            del line[connection]
            if not line:
                del self._silent[connection.owner]

    def _uncount(self, connection: AcceptedSocket) -> None:
        self._leave_line(connection)
        own = self._open.get(connection.owner, set())
        if connection in own:
            own.remove(connection)
            self._count -= 1
            if not own:
                del self._open[connection.owner]

    def _forget(self, connection: AcceptedSocket) -> None:
        self._uncount(connection)
        self._stop_timer(connection)
        if self._by_peer.get(connection.peer) is connection:
            del self._by_peer[connection.peer]


def end(connection: AcceptedSocket) -> None:
    """Shut a connection down; its reader sees the end and closes it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def turn_away(connection: socket.socket) -> None:
    """Say that there are too many, where that can be said at once, and close."""
    with suppress(OSError):
        connection.setblocking(False)
        connection.send(BUSY)
    connection.close()


class Listener(socket.socket):
    """A listening socket that gives only the connections that are admitted."""

    connections: OpenConnections | None = None
    last: threading.Timer | None = None
    """Ends the process, once a signal came."""

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection that is not turned away."""
        while True:
            accepted, peer = super().accept()
            if self.connections is None:
                return accepted, peer
            if (found := self.connections.admit(accepted, peer)) is not None:
                return found, peer


def guarded(connections: OpenConnections) -> type[asyncio.Protocol]:
    """uvicorn's protocol, which says what becomes of each connection."""

    class GuardedProtocol(H11Protocol):
        def data_received(self, data: bytes) -> None:
            rested = self._rests()
            super().data_received(data)
            if not self._rests():
                connections.works(self.client)
            elif rested and self.cycle is not None:
                connections.awaits_head(self.client)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self._rests():
                connections.rests(self.client)

        def _rests(self) -> bool:
            """Whether no request is being answered."""
            return self.cycle is None or self.cycle.response_complete

    return GuardedProtocol


def allow_files(most: int) -> None:
    """Let this process have so many files open, where the system lets it."""
    system.limit_files(most)
