"""The kubelet's PodResources, kept from being listed while an Allocate is in flight: then, if another pod
ends at that moment, the kubelet forgets the units that it is handing out."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from deviceplugin.owners import Listing
from edgeshare.podresources import PodResources, Units


class Listings:
    """PodResources as the plugin may use it."""

    def __init__(self, pod_resources: PodResources) -> None:
        self._pod_resources = pod_resources
        self._in_flight = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    @contextmanager
    def allocating(self) -> Iterator[None]:
        """Holds listings back while it is entered."""
        self._in_flight += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._quiet.set()

    async def list(self) -> Listing:
        """Who has which units, of all pods; raises Unavailable."""
        while self._in_flight:
            await self._quiet.wait()
        return await self._pod_resources.list()

    async def get(self, namespace: str, pod: str) -> Units | None:
        """Who has which units, in one pod; harmless at any time. None where the kubelet has no such pod;
        raises Unavailable."""
        return await self._pod_resources.get(namespace, pod)

    async def others(self) -> dict[str, frozenset[str]]:
        """The ids of other resources' devices; harmless at any time. Raises Unavailable."""
        return await self._pod_resources.others()
