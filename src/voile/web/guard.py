"""Around an application: the rate of each address, and an answer whatever happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus

from fastapi.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from voile.web.rate import RateLimiter
from voile.web.refusal import RefusalError, too_often, unavailable


class Guard:
    """Refuses who asks too often, and turns every fault of ours into a 503.

    `free` are paths that may be asked at any rate: machines ask them, and they cost nothing.
    `what` is the server's name in words, `slower` the hint to whoever asks too often.
    """

    def __init__(
        self,
        app: ASGIApp,
        buckets: RateLimiter,
        note: Callable[[str], None],
        *,
        what: str,
        free: tuple[str, ...] = (),
        slower: str = "wait as Retry-After says",
    ) -> None:
        self._app = app
        self._buckets = buckets
        self._note = note
        self._what = what
        self._free = free
        self._slower = slower

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] not in self._free:
            client = scope.get("client")
            seconds = self._buckets.wait(client[0] if client else "")
            if seconds:
                who = "from this address"
                await refused(too_often(who, seconds, self._slower))(scope, receive, send)
                return
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception as error:
            # Its kind only: a message could hold what somebody has sent.
            self._note(f"a request failed: {type(error).__name__}")
            if not begun:
                await refused(fault(self._what))(scope, receive, send)


def fault(what: str) -> RefusalError:
    return unavailable(f"{what} failed", hint="try again later", retry_after=60)


def refused(error: RefusalError) -> Response:
    """A refusal as the answer to a request.

    In ASCII: its words may hold what was sent, such as half a character, which UTF-8 cannot say.
    """
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(
        json.dumps({"error": error.message, "hint": error.hint}),
        status_code=error.status,
        headers=headers,
        media_type="application/json",
    )
