"""A call that may never come back: a driver's, when its kernel module hangs."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

CLOSE_S = 2.0


def call(function: Callable[[], T]) -> asyncio.Future[T]:
    """Its result, from a thread of its own. Unlike asyncio's, the process does not wait for that one when it ends."""
    result: Future[T] = Future()

    def run() -> None:
        # From here on it has a result, whether or not somebody still waits for it.
        result.set_running_or_notify_cancel()
        try:
            result.set_result(function())
        except Exception as error:  # whoever awaits it raises it
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return asyncio.wrap_future(result)


async def close(function: Callable[[], None]) -> None:
    """The same for what a process does last: it ends without it where that does not come back."""
    await asyncio.wait([call(function)], timeout=CLOSE_S)
