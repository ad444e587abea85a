"""Troubles of this node that are nobody's request: said in the log, and as events of the node. The same one is told
once, until it is over."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from enum import StrEnum

logger = logging.getLogger(__name__)

PENDING_MAX = 64
"""Events that wait for an API server; of more, the oldest are in the log alone."""


class Reason(StrEnum):
    """Why there is an event, as its `reason` says."""

    CONFIG_REFUSED = "ConfigRefused"
    """The changed file is wrong: what it said before holds."""
    CONFIG_UNKNOWN = "ConfigUnknown"
    """The node's label names a config that the file has not: the one before holds."""
    DEVICE_MISSING = "ConfiguredDeviceMissing"
    """The configuration names a device that is not there, or leaves none."""
    DEVICE_CONTESTED = "DeviceAdvertisedTwice"
    """Another device plugin of the node hands a device out, too."""
    CDI_REFUSED = "CDISpecNotWritten"
    """Containers that name their devices to the Container Device Interface cannot start."""
    DRIVER_BROKEN = "AcceleratorDriverBroken"
    """There is a driver, and it does not answer."""


class NodeEvents:
    """Tells troubles: at once in the log; ``write`` makes events of them, when the API server can be asked."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        """Set when there is something to write."""
        self._told: dict[Reason, frozenset[str]] = {}
        self._pending: deque[tuple[Reason, str]] = deque(maxlen=PENDING_MAX)

    def tell(self, reason: Reason, messages: Collection[str]) -> None:
        """All that is wrong of this kind as of now; each in a line that says what, where, and what to do."""
        for message in messages:
            if message not in self._told.get(reason, ()):
                logger.warning("%s", message)
                self._pending.append((reason, message))
                self.news.set()
        self._told[reason] = frozenset(messages)

    def are_there(self, *reasons: Reason) -> bool:
        """Whether something is wrong, of any of these kinds."""
        return any(self._told.get(reason) for reason in reasons)

    async def write(self, warn: Callable[[str, str], Awaitable[None]]) -> None:
        """Writes what was told and not yet written, by ``warn(reason, message)``; raises what that raises, and
        keeps it then."""
        self.news.clear()
        while self._pending:
            await warn(*self._pending[0])
            self._pending.popleft()
