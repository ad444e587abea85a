"""Which devices other device plugins of this node hand out, as the kubelet tells."""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping

from edgeshare.contract.errors import Unavailable
from edgeshare.log_trouble import Trouble

logger = logging.getLogger(__name__)

ASK_S = 5
"""How often the kubelet is asked, at most: it answers 100 calls a second for everybody."""

KEPT_S = 300
"""What was once seen is believed for so long. After its start a kubelet knows no other plugin for a while, and it keeps
the devices of one that ended for five minutes itself."""


class OtherPlugins:
    """Which devices other plugins hand out, as of now or, for a while, as last seen."""

    def __init__(self, ask: Callable[[], Awaitable[Mapping[str, Collection[str]]]]) -> None:
        """``ask`` tells the ids of the devices of each resource that is not ours, or raises Unavailable."""
        self._ask = ask
        self._seen_s: dict[tuple[str, str], float] = {}
        self._asked_s: float | None = None
        self._trouble = Trouble(logger, "not known whether another device plugin has these devices too")

    async def look(self, now_s: float) -> Mapping[str, Collection[str]]:
        """The ids of the devices of each resource that is not ours, as of now or as last seen."""
        if self._asked_s is None or now_s >= self._asked_s + ASK_S:
            try:
                others = await self._ask()
            except Unavailable as error:
                self._trouble.fails(error)
            else:
                self._trouble.over()
                self._asked_s = now_s
                self._seen_s |= {(resource, device): now_s for resource, ids in others.items() for device in ids}
        self._seen_s = {key: seen_s for key, seen_s in self._seen_s.items() if now_s < seen_s + KEPT_S}
        resources = {resource for resource, _ in self._seen_s}
        return {name: {device for resource, device in self._seen_s if resource == name} for name in resources}
