"""Waiting for what tells nobody when it comes to be so."""

import asyncio
import time
from collections.abc import Callable

from tests.kit.processes.errors import NodeError

LOOK_S = 0.1
PATIENCE_S = 60
"""No test waits longer for anything; what is awaited takes milliseconds."""
COME_S = 120  # a safety limit: what is waited for takes seconds


def until(true: Callable[[], bool], what: str, look_s: float = LOOK_S) -> None:
    """Return when something is so. Raises NodeError where it does not come to be so."""
    deadline_s = time.monotonic() + COME_S
    while not true():
        if time.monotonic() > deadline_s:
            raise NodeError(f"not within {COME_S} s: {what}")
        time.sleep(look_s)


async def until_true(true: Callable[[], object]) -> None:
    """The same, while everything else of the loop goes on. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110 - what tells nobody has to be looked at again
            await asyncio.sleep(0.02)
