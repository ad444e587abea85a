"""Keeping what lies at the API server as it should be."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from edgeshare.contract.errors import EdgeshareError
from edgeshare.log_trouble import Trouble
from edgeshare.waiting import ended, first_of

logger = logging.getLogger(__name__)

PAUSE_S = 1
"""At least this long between two looks, of which each may write much."""

AGAIN_S = 30
"""What could not be written is tried again after so long."""


async def keep(
    look: Callable[[], Awaitable[None]],
    next_changes: Callable[[], Sequence[asyncio.Event]],
    complaint: str,
    stop: asyncio.Event,
    *,
    pause_s: float = PAUSE_S,
    every_s: float | None = None,
    again_s: float = AGAIN_S,
) -> None:
    """Looks now, at each change and every ``every_s``, until ``stop``, with at least ``pause_s`` in between. What
    ``look`` cannot do it says by raising an EdgeshareError: the log has it once, after ``complaint``, and it looks
    again after ``again_s``. A look that is under way at ``stop`` is cancelled: an API server that does not answer keeps
    nobody from ending."""
    trouble = Trouble(logger, complaint)
    while not stop.is_set():
        changes = next_changes()
        looking = asyncio.ensure_future(look())
        try:
            await first_of(stop, looking)
        finally:
            if not looking.done():
                await ended(looking)
        if looking.cancelled():
            return
        try:
            looking.result()
            trouble.over()
        except EdgeshareError as error:
            trouble.fails(error)
        await first_of(stop, timeout_s=pause_s)
        await first_of(stop, *changes, timeout_s=again_s if trouble.count else every_s)
