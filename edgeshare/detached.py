"""A call that may never come back: a driver's, when its kernel module hangs."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

CLOSE_S = 2.0
"""So long a process waits, at its end, for a call that may never come back."""


def call(function: Callable[[], T]) -> asyncio.Future[T]:
    """What a function returns, called in a thread of its own. Unlike for asyncio's threads, the
    process does not wait for it when it ends."""
    outcome: Future[T] = Future()

    def run() -> None:
        # From here on it has one, whether or not somebody still waits for it.
        outcome.set_running_or_notify_cancel()
        try:
            outcome.set_result(function())
        except Exception as error:  # whoever awaits it raises it
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return asyncio.wrap_future(outcome)


async def result(function: Callable[[], T]) -> T:
    """What a function returns that may take as long as it likes. Who is cancelled meanwhile ends when the call is over,
    so that what it uses can be closed, or else after CLOSE_S."""
    called = call(function)
    try:
        return await asyncio.shield(called)
    finally:
        await asyncio.wait([called], timeout=CLOSE_S)


async def close(function: Callable[[], None]) -> None:
    """Waits for what a process does last, for CLOSE_S at most: it ends without it where that does not come back."""
    await asyncio.wait([call(function)], timeout=CLOSE_S)
