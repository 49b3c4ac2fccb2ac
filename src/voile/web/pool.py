"""Work that would block: done by a few threads, and no more of it taken than they can do soon."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from voile.web.refusal import unavailable

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
            future.exception()  # whoever waited has seen it, or is gone

    def close(self) -> None:
        self._threads.shutdown()
