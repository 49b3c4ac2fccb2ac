"""Who waits for whom: callers take turns, and each waits behind their own."""

from __future__ import annotations

import asyncio
import threading

import pytest

from voile.web.limits import RefusalError, Turns, WorkPool


def test_one_caller_waits_behind_their_own_and_nobody_else_does() -> None:
    async def run() -> list[str]:
        turns, done = Turns(1, 100), list[str]()

        async def work(who: str) -> None:
            await turns.take(who)
            await asyncio.sleep(0)
            done.append(who)
            turns.give(who)

        await asyncio.gather(*[work("mallory") for _ in range(20)], work("anna"), work("bob"))
        return done

    done = asyncio.run(run())
    assert len(done) == 22
    assert {"anna", "bob"} <= set(done[:4])  # not behind the other nineteen


def test_no_caller_holds_more_than_their_share() -> None:
    async def run() -> int:
        turns, most, now = Turns(4, 100, each=1), 0, 0

        async def work() -> None:
            nonlocal most, now
            await turns.take("mallory")
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1
            turns.give("mallory")

        await asyncio.gather(*[work() for _ in range(20)])
        return most

    assert asyncio.run(run()) == 1


def test_who_has_most_waiting_is_refused_first() -> None:
    async def run() -> tuple[int, bool]:
        turns = Turns(1, 10)
        await turns.take("mallory")
        waiting = [asyncio.ensure_future(turns.take("mallory")) for _ in range(30)]
        await asyncio.sleep(0)
        refused = sum(one.done() and isinstance(one.exception(), RefusalError) for one in waiting)
        anna = asyncio.ensure_future(turns.take("anna"))
        await asyncio.sleep(0)
        turns.give("mallory")
        turns.give("mallory")
        await asyncio.wait_for(anna, 5)
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return refused, anna.done()

    assert asyncio.run(run()) == (20, True)


def test_who_leaves_the_line_takes_no_slot() -> None:
    async def run() -> None:
        turns = Turns(1, 10)
        await turns.take("anna")
        gone = asyncio.ensure_future(turns.take("bob"))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        turns.give("anna")
        await asyncio.wait_for(turns.take("carl"), 5)

    asyncio.run(run())


def test_threads_are_shared_in_turn() -> None:
    """One caller's long work leaves threads for others."""
    gate = threading.Event()

    async def run() -> str:
        pool = WorkPool(2, 10, each=1)
        blocked = [asyncio.ensure_future(pool.run(gate.wait, "mallory")) for _ in range(5)]
        found = await asyncio.wait_for(pool.run(lambda: "done", "anna"), 30)
        gate.set()
        await asyncio.gather(*blocked)
        pool.close()
        return found

    assert asyncio.run(run()) == "done"


@pytest.mark.parametrize("leave", [0, 3, 9])
def test_slots_are_all_there_again_after_any_cancellations(leave: int) -> None:
    async def run() -> None:
        turns = Turns(3, 100)

        async def work(who: str) -> None:
            await turns.take(who)
            try:
                await asyncio.sleep(0)
            finally:
                turns.give(who)

        tasks = [asyncio.ensure_future(work(str(n % 4))) for n in range(20)]
        await asyncio.sleep(0)
        for task in tasks[leave::3]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (turns._free, turns._waiting) == (3, 0)
        assert not turns._held
        assert not turns._lines

    asyncio.run(run())
