"""Around the application: the rate of each address, and an answer whatever happens."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from http import HTTPStatus

from fastapi.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from voile.collect.rate import Buckets
from voile.collect.refusal import RefusalError, unavailable

FREE = ("/v1/health",)
"""What may be asked at any rate: machines ask it, and it costs nothing."""


class Guard:
    """Refuses who asks too often, and turns every fault of ours into a 503."""

    def __init__(self, app: ASGIApp, buckets: Buckets, note: Callable[[str], None]) -> None:
        self._app = app
        self._buckets = buckets
        self._note = note

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if too_often := self._too_often(scope):
            await refused(too_often)(scope, receive, send)
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
                await refused(fault())(scope, receive, send)

    def _too_often(self, scope: Scope) -> RefusalError | None:
        if scope["path"] in FREE:
            return None
        client = scope.get("client")
        seconds = self._buckets.wait(client[0] if client else "")
        if not seconds:
            return None
        return RefusalError(
            HTTPStatus.TOO_MANY_REQUESTS,
            "too many requests from this address",
            hint="send several rows in one request, or wait as Retry-After says",
            retry_after=math.ceil(seconds),
        )


def fault() -> RefusalError:
    return unavailable("the collector failed", hint="try again later", retry_after=60)


def refused(error: RefusalError) -> Response:
    """A refusal as the answer to a request.

    In ASCII: its words may hold what was sent, such as half a character, which UTF-8 cannot say.
    """
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    return Response(
        json.dumps({"error": error.message, "hint": error.hint}),
        status_code=error.status,
        headers=headers,
        media_type="application/json",
    )
