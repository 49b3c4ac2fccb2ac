"""A refusal with the status that HTTP has for it."""

from __future__ import annotations

import math
from http import HTTPStatus

from voile.errors import VoileError


class RefusalError(VoileError):
    """What a server says instead of doing what was asked.

    `retry_after` is in seconds, for refusals that pass by themselves.
    """

    def __init__(
        self, status: HTTPStatus, message: str, *, hint: str, retry_after: int | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.retry_after = retry_after


def unavailable(message: str, *, hint: str, retry_after: int | None = None) -> RefusalError:
    """The server cannot do this now, whatever the request is."""
    return RefusalError(HTTPStatus.SERVICE_UNAVAILABLE, message, hint=hint, retry_after=retry_after)


def too_often(who: str, seconds: float, hint: str = "wait as Retry-After says") -> RefusalError:
    """Requests came faster than they may; in `seconds` there is room for one more."""
    return RefusalError(
        HTTPStatus.TOO_MANY_REQUESTS,
        f"too many requests {who}",
        hint=hint,
        retry_after=math.ceil(seconds),
    )
