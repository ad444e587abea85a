"""Who is being admitted: of the pods that the kubelet lists, the one with a container that has no units yet and asks
for just as many."""

import asyncio
from typing import TYPE_CHECKING

from deviceplugin.kinds import Kind
from deviceplugin.ledger import Terms
from deviceplugin.owners import Listing
from deviceplugin.pods import asks_at_all, parse_terms, waiting_container
from edgeshare.errors import EdgeshareError

if TYPE_CHECKING:
    # Where there is no cluster its client is not loaded: it is a third of the plugin's memory.
    from edgeshare.kube import Kube


class Applicants:
    """Remembers which pods ask for nothing, so that each pod of the node is read once."""

    def __init__(self, kube: "Kube | None", kind: Kind) -> None:
        self._kube = kube
        self._kind = kind
        self._ask_for_nothing: set[tuple[str, str]] = set()

    async def terms(self, listing: Listing, size: int) -> Terms | None:
        """What the container asks for that is being given ``size`` units; None where that cannot be told."""
        if self._kube is None:
            return None
        self._ask_for_nothing &= set(listing)
        try:
            found = await self._find(self._kube, listing, size)
            if not found and self._ask_for_nothing:
                # Somebody is being admitted: perhaps a pod with the name of one that asked for nothing.
                self._ask_for_nothing.clear()
                found = await self._find(self._kube, listing, size)
        except EdgeshareError:
            # The container's start asks again, and says what is wrong.
            return None
        # Several that ask for the same are as good as one.
        return found[0] if found and all(terms == found[0] for terms in found) else None

    async def _find(self, kube: "Kube", listing: Listing, size: int) -> list[Terms]:
        found: list[Terms] = []
        for (namespace, name), containers in listing.items():
            if (namespace, name) in self._ask_for_nothing or (containers and all(containers.values())):
                continue
            pod = await asyncio.to_thread(kube.pod, namespace, name)
            if pod is not None and not asks_at_all(pod, self._kind):
                self._ask_for_nothing.add((namespace, name))
            elif pod is not None and (container := waiting_container(pod, containers, size, self._kind)):
                found.append(parse_terms(pod, container, size, self._kind))
        return found
