"""The kubelet's PodResources, kept from being listed while an Allocate is in flight: then, if another pod
ends at that moment, the kubelet forgets the units that it is handing out."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from deviceplugin.units.owners import Listing
from edgeshare.contract.accelerator_kind import RESOURCES
from edgeshare.kubelet.podresources import PodResources, Units


class InFlight:
    """The Allocates that are in flight, of all resources: the kubelet forgets the units of any."""

    def __init__(self) -> None:
        self._in_flight = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self.last_s = 0.0
        """When the last one was answered, on the event loop's clock."""

    @contextmanager
    def allocating(self) -> Iterator[None]:
        """Holds listings back while it is entered."""
        self._in_flight += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._in_flight -= 1
            self.last_s = asyncio.get_running_loop().time()
            if not self._in_flight:
                self._quiet.set()

    async def none(self) -> None:
        """Returns once there is none."""
        while self._in_flight:
            await self._quiet.wait()


class Listings:
    """PodResources as the plugin may use it."""

    def __init__(self, pod_resources: PodResources, in_flight: InFlight) -> None:
        self._pod_resources = pod_resources
        self._in_flight = in_flight

    def allocating(self) -> AbstractContextManager[None]:
        """Holds listings back while it is entered."""
        return self._in_flight.allocating()

    @property
    def last_allocate_s(self) -> float:
        """When an Allocate was answered last, on the event loop's clock."""
        return self._in_flight.last_s

    async def list(self) -> Listing:
        """Who has which units, of all pods; raises Unavailable."""
        await self._in_flight.none()
        return await self._pod_resources.list()

    async def get(self, namespace: str, pod: str) -> Units | None:
        """Who has which units, in one pod; harmless at any time. None where the kubelet has no such pod;
        raises Unavailable."""
        return await self._pod_resources.get(namespace, pod)

    async def others(self) -> dict[str, frozenset[str]]:
        """The ids of the devices of resources that are not ours; harmless at any time. Raises Unavailable."""
        others = await self._pod_resources.others()
        return {resource: ids for resource, ids in others.items() if resource not in RESOURCES}
