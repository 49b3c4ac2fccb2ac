"""Refusals of servers, and the limits behind them: rates of requests, and work in turns."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import re
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
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


# ---------------------------------------------------------------------- turns
# Who waits for whom: each caller has a line of its own, and the lines take turns.


class Turns:
    """Slots that callers take in turn, for coroutines of one loop.

    A caller who has much waiting waits behind it, and others do not: the lines are served one
    after the other, and no caller holds more than `each` slots at a time.
    """

    def __init__(self, slots: int, waiting: int, *, each: int | None = None) -> None:
        self._free = slots
        self._each = each or slots
        self._most_waiting = waiting
        self._waiting = 0
        self._held: Counter[str] = Counter()
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def take(self, who: str) -> None:
        """Wait for a slot; refused where too much is waiting, `who` having most of it."""
        if self._free and self._held[who] < self._each and who not in self._lines:
            self._hold(who)
            return
        self._check_waiting(who)
        future = asyncio.get_running_loop().create_future()
        self._lines.setdefault(who, deque()).append(future)
        self._waiting += 1
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.give(who)  # it came at the same moment
            else:
                self._leave(who, future)
            raise

    def give(self, who: str) -> None:
        """Give a slot back, to the next in turn."""
        self._free += 1
        self._held[who] -= 1
        if not self._held[who]:
            del self._held[who]
        self._next()

    def _hold(self, who: str) -> None:
        self._free -= 1
        self._held[who] += 1

    def _check_waiting(self, who: str) -> None:
        """Refuse whoever has more waiting than a fair share, where all together have too much."""
        own = len(self._lines.get(who, ()))
        share = self._most_waiting // (len(self._lines) + (who not in self._lines))
        if self._waiting >= self._most_waiting and own >= share:
            raise unavailable("too many requests at once", hint="try again", retry_after=1)
        if self._waiting >= 2 * self._most_waiting:
            raise unavailable("too many requests at once", hint="try again", retry_after=1)

    def _leave(self, who: str, future: asyncio.Future[None]) -> None:
        line = self._lines.get(who)
        if line is not None and future in line:
            line.remove(future)
            self._waiting -= 1
            if not line:
                del self._lines[who]

    def _next(self) -> None:
        for who in list(self._lines):
            if not self._free:
                return
            if self._held[who] < self._each and (future := self._first(who)) is not None:
                self._hold(who)
                future.set_result(None)

    def _first(self, who: str) -> asyncio.Future[None] | None:
        """Whoever waits longest in a line, which then is the last in turn."""
        line = self._lines.pop(who)
        found = None
        while line and found is None:
            self._waiting -= 1
            if not (first := line.popleft()).done():  # else its caller is gone
                found = first
        if line:
            self._lines[who] = line
        return found


# ---------------------------------------------------------------------- pool
# Work that would block, on a few threads; beyond a number of waiting jobs it is refused.


Result = TypeVar("Result")


class WorkPool:
    """Runs functions in threads for coroutines of one loop; callers take turns."""

    def __init__(self, threads: int, waiting: int, *, each: int | None = None) -> None:
        """`each` is how many threads one caller may use at a time; all of them if None."""
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="question")
        self._turns = Turns(threads, waiting, each=each)

    async def run(self, work: Callable[[], Result], who: str = "") -> Result:
        """What `work` returns; it is done to its end even if nobody waits for it any more."""
        await self._turns.take(who)
        future = asyncio.get_running_loop().run_in_executor(self._threads, work)
        future.add_done_callback(partial(self._done, who))
        return await asyncio.shield(future)

    def _done(self, who: str, future: asyncio.Future[Result]) -> None:
        self._turns.give(who)
        if not future.cancelled():
            future.exception()  # the caller has seen it or is gone: asyncio need not warn

    def close(self) -> None:
        """Wait for the work that was taken, and end the threads."""
        self._threads.shutdown()

    def give_up(self) -> None:
        """End without waiting: what is at work goes on, what waits is not begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)
