"""Waiting for whichever comes first, for an end, and for a change."""

import asyncio
import signal
from typing import Any

Awaited = asyncio.Event | asyncio.Future[Any]


def is_done(awaited: Awaited) -> bool:
    """Whether an event is set, or a task has ended."""
    return awaited.is_set() if isinstance(awaited, asyncio.Event) else awaited.done()


async def first_of(*awaited: Awaited, timeout_s: float | None = None) -> None:
    """Returns when one of the events is set or one of the tasks has ended, or after ``timeout_s``."""
    waits = [asyncio.create_task(each.wait()) for each in awaited if isinstance(each, asyncio.Event)]
    tasks = [each for each in awaited if not isinstance(each, asyncio.Event)]
    try:
        await asyncio.wait([*waits, *tasks], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def told_to_end() -> asyncio.Event:
    """Set at SIGTERM, and at SIGINT; from now on neither ends the process otherwise."""
    told, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    return told


async def ended(task: asyncio.Task[Any]) -> None:
    """Tells a task to end and returns when it has; how it did is for whoever asks the task."""
    task.cancel()
    await asyncio.wait([task])


class Change:
    """Tells all who wait for it that something is no longer what it was."""

    def __init__(self) -> None:
        self.next = asyncio.Event()
        """Set at the next: asked for before one looks, it tells of whatever comes from then on."""

    def tell(self) -> None:
        """Wakes whoever waits for a change."""
        self.next.set()
        self.next = asyncio.Event()
