"""PostgreSQL's clients of a server: what they ask goes through the application like any request.

So rates, permissions, charges and the log are those of HTTP, and nothing about them is said twice.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from typing import Any

from voile.client.strict import read_json
from voile.dbapi.domain import TimedDomain
from voile.dbapi.session import SqlSession
from voile.dbapi.sources import ServedTable, attribute_field
from voile.remote.client import Server
from voile.remote.connection import (
    MOST_BYTES,
    Connections,
    HttpReply,
    ServerAddress,
    ServerError,
    refusal,
)
from voile.schema import Schema
from voile.serve.setting import Setting
from voile.wire.catalogue.answers import PostgresCatalogue
from voile.wire.server import WireOptions, WireServer, running

HERE = ServerAddress("this server", secure=False, host="localhost", port=None, prefix="")
SECONDS = 90.0
"""For one request; a statement is given up before."""


class InnerRequests(Connections):
    """Requests of one token to an application of this process, from any thread."""

    def __init__(self, inner: InnerApp, token: str) -> None:
        """The address is shown in errors alone: nothing is sent over a network."""
        super().__init__(HERE, token, ca=None, timeout=SECONDS)
        self._inner, self._token = inner, token

    def reply(self, method: str, path: str, body: bytes | None) -> HttpReply:
        """What the application replies."""
        return self._inner.ask(method, path, body or b"", self._token)

    def _exchange(self, method: str, path: str, body: bytes | None) -> HttpReply:
        return self.reply(method, path, body)


class InnerServer(Server):
    """The server that this process is, asked as any other."""

    def __init__(self, lines: InnerRequests) -> None:
        self._lines = lines


class InnerTable(ServedTable):
    """The table of this process's own server, as one client asks it.

    What clients write is strangers' SQL, and the server's process must not suffer from it: the
    application is asked for the price first, which its own bounds hold for. The domain is one for
    all clients.
    """

    def __init__(self, server: Server, domain: TimedDomain, typed: dict[str, Any]) -> None:
        super().__init__(server)
        self.domain = domain
        self.typed = typed

    def vouch(self, sql: str) -> None:
        """Have the application try the question, which is free."""
        self.server.cost(sql)


class InnerApp:
    """An application, called from threads that are not its own."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.loop: asyncio.AbstractEventLoop | None = None
        """Where the application runs; none before it does."""
        self._asked: set[Future[HttpReply]] = set()
        self._turn = threading.Lock()
        self._ended = False

    def begin(self) -> None:
        """The application runs, in the loop that this is called in."""
        self.loop = asyncio.get_running_loop()

    def ask(self, method: str, path: str, body: bytes, token: str) -> HttpReply:
        """The reply to a request."""
        future = self._begun(self._call(method, path, body, token))
        try:
            return future.result(SECONDS)
        except (TimeoutError, CancelledError):
            future.cancel()
            raise ServerError("no answer in time", hint="ask again: answers are kept") from None
        finally:
            with self._turn:
                self._asked.discard(future)

    def _begun(self, call: Coroutine[Any, Any, HttpReply]) -> Future[HttpReply]:
        with self._turn:
            if self.loop is None or self._ended:
                call.close()
                raise ServerError("the server is starting or stopping", hint="ask again")
            future = asyncio.run_coroutine_threadsafe(call, self.loop)
            self._asked.add(future)
            return future

    def end(self) -> None:
        """Nobody need wait any more: the application has stopped."""
        with self._turn:
            self._ended = True
            asked = list(self._asked)
        for future in asked:
            future.cancel()

    async def _call(self, method: str, path: str, body: bytes, token: str) -> HttpReply:
        headers = {"authorization": f"Bearer {token}", "host": "127.0.0.1"}
        if body:
            headers |= {"content-type": "application/json", "content-length": str(len(body))}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
            "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"",
            "root_path": "", "server": ("127.0.0.1", 0),
            # Rates are by token: where the client is, is known to its own connection alone.
            "client": (f"postgres {token.partition('.')[0][:16]}", 0),
            "headers": [(k.encode(), v.encode("latin-1")) for k, v in headers.items()],
        }  # fmt: skip
        unread, sent = [body], []

        async def receive() -> Mapping[str, Any]:
            if unread:
                return {"type": "http.request", "body": unread.pop(), "more_body": False}
            return await asyncio.Future()  # the client waits for its answer

        async def send(message: Mapping[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        data = b"".join(message.get("body", b"") for message in sent[1:])
        found = {key.decode().lower(): value.decode() for key, value in sent[0]["headers"]}
        content = dict(read_json(data, "the reply", MOST_BYTES))
        return HttpReply(int(sent[0]["status"]), content, found.get("retry-after"))


class LedgerGuard:
    """Lets in whoever has a token of the server's; it keeps digests, so it must be told them."""

    scram = None
    asks = True

    def __init__(self, inner: InnerApp) -> None:
        self._inner = inner

    def admits(self, token: str) -> bool:
        """Whether the token is valid now."""
        if not (token.isascii() and token.isprintable() and " " not in token):
            return False
        lines = InnerRequests(self._inner, token)
        found = lines.reply("GET", "/schema", None)
        if found.status not in (200, 401):
            raise refusal(lines.address, found)
        return found.status == 200


@contextmanager
def postgres_clients(
    options: WireOptions, setting: Setting, inner: InnerApp, note: Callable[[str], None]
) -> Iterator[WireServer]:
    """Answer them while the block runs."""
    schema = Schema.from_dict(json.loads(json.dumps(setting.to_public()))["schema"])
    catalogue = PostgresCatalogue({setting.name: tuple(map(attribute_field, schema))})

    domain, typed = TimedDomain(schema), dict[str, Any]()

    def session(token: str) -> SqlSession:
        server = InnerServer(InnerRequests(inner, token))
        return SqlSession(InnerTable(server, domain, typed))

    with running(WireServer(options, LedgerGuard(inner), session, catalogue, note)) as server:
        try:
            yield server
        finally:
            catalogue.close()
