"""How often one may ask: a bucket of permits for each address or name, in bounded memory."""

from __future__ import annotations

import ipaddress
import math
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from voile.errors import UsageError

ADDRESSES = 2**16
"""Addresses that are remembered. Who has been away longest is forgotten, and begins anew."""
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
            raise UsageError(f"--burst {self.burst} lets nobody in", hint="at least 1")

    @classmethod
    def read(cls, text: str, burst: int) -> Rate:
        """A rate as people write it: 50/s, 30/min, 1000/h."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)/(s|min|h)", text.strip())
        if not found or float(found[1]) == 0:
            raise UsageError(
                f"--rate {text!r} is not a rate", hint="such as 50/s, 30/min or 1000/h"
            )
        return cls(float(found[1]) / PERIODS[found[2]], burst)


class RateLimiter:
    """One bucket for each address, or whatever else names who asks; for any thread."""

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
        """Permits that were left, and when; the address that asked last is the last."""
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
    """Who shares a bucket: an IPv4 address, or the 64-bit network that one IPv6 customer has."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped:
            return str(found.ipv4_mapped)
        return str(ipaddress.IPv6Network((int(found) >> 64 << 64, 64)))
    return str(found)
