"""Which devices other device plugins of this node hand out, as the kubelet tells."""

import asyncio
import logging
from collections.abc import Mapping

from deviceplugin.listings import Listings
from edgeshare.errors import Unavailable

logger = logging.getLogger(__name__)

ASK_S = 10
"""How often the kubelet is asked: it answers 100 calls a second for everybody."""

KEPT_S = 300
"""What was once seen is believed for so long. After its start a kubelet knows no other plugin for a while, and it keeps
the devices of one that ended for five minutes itself."""


class Rivals:
    """Remembers what it saw."""

    def __init__(self, listings: Listings) -> None:
        self._listings = listings
        self._seen_s: dict[tuple[str, str], float] = {}
        self._asked_s: float | None = None
        self._said = ""

    async def look(self) -> Mapping[str, frozenset[str]]:
        """The ids of the devices of each resource that is not ours."""
        now_s = asyncio.get_running_loop().time()
        if self._asked_s is None or now_s >= self._asked_s + ASK_S:
            try:
                others = await self._listings.others()
            except Unavailable as error:
                if str(error) != self._said:
                    self._said = str(error)
                    logger.warning("not known whether another device plugin has these devices too: %s", error)
            else:
                self._asked_s, self._said = now_s, ""
                self._seen_s |= {(resource, device): now_s for resource, ids in others.items() for device in ids}
        self._seen_s = {key: seen_s for key, seen_s in self._seen_s.items() if now_s < seen_s + KEPT_S}
        resources = {resource for resource, _ in self._seen_s}
        return {name: frozenset(device for resource, device in self._seen_s if resource == name) for name in resources}
