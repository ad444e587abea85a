"""Waiting for whichever comes first."""

import asyncio


async def first_of(*events: asyncio.Event, timeout_s: float | None = None) -> None:
    """Returns when one of the events is set, or after ``timeout_s``."""
    tasks = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
