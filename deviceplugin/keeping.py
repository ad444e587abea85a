"""Keeping what lies at the API server as it should be."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from deviceplugin.waiting import first_of
from edgeshare.errors import Unavailable

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
) -> None:
    """Looks now and at each change, until ``stop``. What ``look`` cannot do it says by raising Unavailable: the log has
    it once, after ``complaint``."""
    said = ""
    while not stop.is_set():
        changes = next_changes()
        try:
            await look()
            said = ""
        except Unavailable as error:
            if str(error) != said:
                said = str(error)
                logger.warning("%s: %s", complaint, error)
        await first_of(stop, timeout_s=PAUSE_S)
        await first_of(stop, *changes, timeout_s=AGAIN_S if said else None)
