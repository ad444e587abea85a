"""One resource as the kubelet gets it: its devices, who has them, the kubelet's calls for it, its registration."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from deviceplugin.admission.admission import Admission
from deviceplugin.admission.comparison import Comparison
from deviceplugin.admission.identity import Identity
from deviceplugin.admission.prestart import PreStart
from deviceplugin.allocations.lifetimes import Lifetimes
from deviceplugin.allocations.manager_client import Manager
from deviceplugin.allocations.store import Store
from deviceplugin.counters import Counters
from deviceplugin.devices.device_list import Devices
from deviceplugin.kubelet.registration import Lifecycle
from deviceplugin.kubelet.service import Service
from deviceplugin.kubelet.unit_list import UnitList
from deviceplugin.live_config import Settings
from deviceplugin.pods.applicants import Applicants
from deviceplugin.pods.pod_watch import BoundPods
from deviceplugin.pods.podresources import InFlight, Listings
from edgeshare.contract.accelerator_kind import AcceleratorKind
from edgeshare.kube.kube import Kube
from edgeshare.kubelet.podresources import PodResources
from edgeshare.waiting import first_of


class Resource:
    """The parts that serve one kind of device, put together."""

    def __init__(
        self,
        kind: AcceleratorKind,
        devices: Devices,
        store: Store,
        pod_resources_socket: Path,
        in_flight: InFlight,
        manager: Manager,
        cluster: tuple[Kube | None, str],
        pods: BoundPods | None,
        plugins_dir: Path,
        allocated: asyncio.Event,
        counters: Counters,
        settings: Settings,
    ) -> None:
        """``devices`` are those of this kind; ``allocated`` is set after each Allocate."""
        self.kind = kind
        self.store = store
        self._devices = devices
        self._allocated = allocated
        self._counters = counters
        kube, node_name = cluster
        self.listings = Listings(PodResources(pod_resources_socket, kind.resource), in_flight)
        self._lifetimes = Lifetimes(kube, pods, manager)
        identity = Identity(self.listings, store.ledger, kube, node_name, pods, kind, self._lifetimes)
        applicants = Applicants(pods, store.ledger, self.listings.get, kind)
        self._admission = Admission(devices, store, self.listings, applicants, self._lifetimes)
        self._comparison = Comparison(devices, store, self.listings, identity, self._lifetimes, manager)
        self._pre_start = PreStart(devices, store, identity, self._comparison, manager)
        self._units = UnitList(devices, store, pods, settings)
        self._lifecycle = Lifecycle(plugins_dir, kind.resource, self._make_service, f"edgeshare-{kind.prefix}-")

    @property
    def is_made(self) -> bool:
        """Whether there is anything to tell the kubelet: devices, or containers that have them."""
        return bool(self._devices.now) or bool(len(self.store.ledger))

    @property
    def not_ready(self) -> str:
        """Why the kubelet has no list; empty while its stream is open and the list sent."""
        return self._lifecycle.not_ready

    async def run(self, stop: asyncio.Event, registered: Callable[[str], None], *, always: bool) -> None:
        """Serves and registers until ``stop``, from when there is something to tell, or ``always``; calls
        ``registered`` with a line of text each time that it is."""

        def tell() -> None:
            self._lifetimes.kubelet_started()
            registered(f"{len(self._devices.now)} {self.kind.word}s registered as {self.kind.resource}")

        while not (always or self.is_made or stop.is_set()):
            await first_of(stop, self._devices.next_change())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._units.run(stop))
            await self._lifecycle.run(stop, tell)

    async def compare(self) -> None:
        """As ``Comparison.compare``."""
        await self._comparison.compare()

    def _make_service(self) -> Service:
        return Service(self._units, self._admission, self._pre_start, self._allocated, self._counters)
