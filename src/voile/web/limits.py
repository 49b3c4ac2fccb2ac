"""Refusals of servers, and the limits behind them: rates of requests, and work that waits."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar

from voile.errors import UsageError, VoileError, spelled


class RefusalError(VoileError):
    """A request that a server refuses, with the HTTP status.

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
    """The refusal of requests that come too fast; one more is allowed in `seconds`."""
    return RefusalError(
        HTTPStatus.TOO_MANY_REQUESTS,
        f"too many requests {who}",
        hint=hint,
        retry_after=math.ceil(seconds),
    )


# ---------------------------------------------------------------------- rate
# How many requests are allowed: a bucket of permits for each address or name, in bounded memory.


ADDRESSES = 2**16
"""Addresses that are remembered. The one unseen for longest is dropped, and starts afresh."""
PERIODS = {"s": 1.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Rate:
    """So many requests a second in the long run, and at most `burst` at once."""

    per_second: float
    burst: int

    def __post_init__(self) -> None:
        if not (0 < self.per_second < math.inf):
            raise UsageError(f"a rate of {self.per_second:g} per second", hint="such as 50/s")
        if self.burst < 1:
            raise UsageError(f"{spelled('burst', self.burst)} lets nobody in", hint="at least 1")

    @classmethod
    def read(cls, text: str, burst: int) -> Rate:
        """A rate as people write it: 50/s, 30/min, 1000/h."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)/(s|min|h)", text.strip())
        if not found or float(found[1]) == 0:
            raise UsageError(
                f"{spelled('rate', text)} is not a rate", hint="such as 50/s, 30/min or 1000/h"
            )
        return cls(float(found[1]) / PERIODS[found[2]], burst)


class RateLimiter:
    """One bucket for each address or other name of a caller; safe for threads."""

    def __init__(
        self,
        rate: Rate,
        *,
        clock: Callable[[], float] = time.monotonic,
        addresses: int = ADDRESSES,
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._addresses = addresses
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Permits that were left, and when; the most recent address is last."""
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._buckets)

    def wait(self, address: str, *, take: bool = True) -> float:
        """0.0 if there is a permit, which is taken; else the seconds until there will be one."""
        key, now = party(address), self._clock()
        with self._lock:
            left, then = self._buckets.pop(key, (float(self._rate.burst), now))
            left = min(self._rate.burst, left + max(0.0, now - then) * self._rate.per_second)
            there = left >= 1
            self._buckets[key] = (left - (there and take), now)
            if len(self._buckets) > self._addresses:
                self._buckets.popitem(last=False)
        return 0.0 if there else (1 - left) / self._rate.per_second


def party(address: str) -> str:
    """What shares a bucket: an IPv4 address, or the 64-bit network that one IPv6 customer has."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped:
            return str(found.ipv4_mapped)
        return str(ipaddress.IPv6Network((int(found) >> 64 << 64, 64)))
    return str(found)


# ---------------------------------------------------------------------- pool
# Work that would block, on a few threads; beyond a number of waiting jobs it is refused.


Result = TypeVar("Result")


class WorkPool:
    """Runs functions in threads for coroutines of one loop."""

    def __init__(self, threads: int, waiting: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="question")
        self._most = threads + waiting
        self._taken = 0

    async def run(self, work: Callable[[], Result]) -> Result:
        """What `work` returns; it is done to its end even if nobody waits for it any more."""
        if self._taken >= self._most:
            raise unavailable("too many requests at once", hint="try again", retry_after=1)
        self._taken += 1
        future = asyncio.get_running_loop().run_in_executor(self._threads, work)
        future.add_done_callback(self._done)
        return await asyncio.shield(future)

    def _done(self, future: asyncio.Future[Result]) -> None:
        self._taken -= 1
        if not future.cancelled():
            future.exception()  # the caller has seen it or is gone: asyncio need not warn

    def close(self) -> None:
        """Wait for the work that was taken, and end the threads."""
        self._threads.shutdown()
