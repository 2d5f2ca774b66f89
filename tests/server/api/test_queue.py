"""The queue: bounded, and fair between analysts."""

from __future__ import annotations

import asyncio

import pytest
from tests import loops

from privet.server.queue import FairQueue, Full


class Room:
    """A queue, who has a slot of it, and in which order they got one."""

    def __init__(self, slots: int, waiting: int = 100, each: int = 100) -> None:
        self.queue = FairQueue(slots, waiting, each)
        self.order: list[str] = []
        self.leave: dict[asyncio.Task[None], asyncio.Event] = {}

    async def enter(self, who: str) -> asyncio.Task[None]:
        event = asyncio.Event()

        async def stay() -> None:
            async with self.queue.slot(who):
                self.order.append(who)
                await event.wait()

        task = asyncio.create_task(stay())
        self.leave[task] = event
        await asyncio.sleep(0)
        return task

    async def end(self, task: asyncio.Task[None]) -> None:
        self.leave[task].set()
        await task
        for _ in range(3):
            await asyncio.sleep(0)


def test_analysts_take_turns() -> None:
    async def run() -> list[str]:
        room = Room(1)
        first = await room.enter("ann")
        tasks = [await room.enter(who) for who in ("ann", "ann", "ann", "bob", "bob", "cleo")]
        await room.end(first)
        while len(room.order) < 7:
            done = [task for task in tasks if not task.done() and room.order]
            for task in done:
                if room.leave[task].is_set():
                    continue
                room.leave[task].set()
            for _ in range(20):
                await asyncio.sleep(0)
        return room.order

    assert loops.run(run()) == ["ann", "ann", "bob", "cleo", "ann", "bob", "ann"]


def test_nobody_has_every_slot() -> None:
    async def run() -> None:
        room = Room(3)
        tasks = [await room.enter("ann") for _ in range(5)]
        assert room.order == ["ann", "ann"]
        last = await room.enter("bob")
        assert room.order == ["ann", "ann", "bob"]
        await room.end(last)
        assert room.order == ["ann", "ann", "bob"], "a free slot is not for ann, who has two"
        await room.end(tasks[0])
        assert room.order == ["ann", "ann", "bob", "ann"]
        for task in tasks[1:]:
            room.leave[task].set()
        await asyncio.gather(*tasks)

    loops.run(run())


def test_it_is_bounded_for_each_and_for_all() -> None:
    async def run() -> None:
        room = Room(1, waiting=3, each=2)
        tasks = [await room.enter("ann") for _ in range(3)]
        with pytest.raises(Full) as full:
            await room.queue.slot("ann").__aenter__()
        assert full.value.yours
        tasks.append(await room.enter("bob"))
        with pytest.raises(Full) as full:
            await room.queue.slot("cleo").__aenter__()
        assert not full.value.yours
        assert room.queue.length == 3
        # who leaves the line makes room, and takes no slot
        tasks[2].cancel()
        await asyncio.gather(tasks[2], return_exceptions=True)
        assert room.queue.length == 2
        tasks.append(await room.enter("cleo"))
        for task in tasks:
            room.leave[task].set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert room.order == ["ann", "ann", "bob", "cleo"]
        assert room.queue.length == 0
        again = await room.enter("ann")
        assert room.order[-1] == "ann"
        await room.end(again)

    loops.run(run())


def test_a_slot_that_comes_as_one_gives_up_is_not_lost() -> None:
    async def run() -> None:
        room = Room(1)
        slot = room.queue.slot("ann")
        await slot.__aenter__()
        second = await room.enter("bob")
        await slot.__aexit__(None, None, None)  # bob has his turn, and has not noticed yet
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        third = await room.enter("cleo")
        assert room.order == ["cleo"]
        await room.end(third)

    loops.run(run())
