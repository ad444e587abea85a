"""The allocations that are served: each entered in the book, known to its device's arbiter, and with a socket for its
clients."""

import asyncio
import itertools
import resource
import secrets
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from time import monotonic_ns

from cuda_hook import wire
from edgeshare.contract.accelerator_kind import KINDS
from edgeshare.contract.devices import Device
from edgeshare.contract.errors import EdgeshareError
from edgeshare.contract.units import MIB, NS_PER_S, UNITS_PER_DEVICE
from edgeshare.inventory.corals import USB_MODEL
from sharemgr.node.clients.budget import NodePlaces, Part, Queue, Whole, clients_most, pages_of_a_node
from sharemgr.node.clients.client import PAUSE_NS
from sharemgr.node.clients.device import DeviceArbiter
from sharemgr.node.clients.glances import Glances
from sharemgr.node.clients.listener import CONNECTIONS_PER_S
from sharemgr.node.clients.offences import Offences
from sharemgr.node.clients.server import AllocationServer
from sharemgr.node.clients.terms import Terms
from sharemgr.node.config import Config
from sharemgr.node.events import Events, Reason
from sharemgr.node.machine.allocations import Allocation, Book
from sharemgr.node.machine.contexts import ContextSizes
from sharemgr.node.machine.observer import Observation
from sharemgr.node.memory.allowances import Memory
from sharemgr.node.sockets.loop import Loop
from sharemgr.node.turns.account import Reader
from sharemgr.node.turns.gate import Rule
from sharemgr.node.turns.settings import Settings, Share
from sharemgr.node.turns.slices.ends import Ends

POLICIES = {"open": wire.FailurePolicy.OPEN, "closed": wire.FailurePolicy.CLOSED}


class Serving:
    """The allocations that one node serves. All calls are immediate."""

    def __init__(
        self,
        config: Config,
        devices: tuple[Device, ...],
        clients_dir: Path,
        events: Events,
        loop: Loop,
        contexts: ContextSizes,
    ) -> None:
        self.devices = devices
        """As last seen."""
        self.book = Book((), config.default_limit == "lend")
        self.arbiters: dict[str, DeviceArbiter] = {}
        """By device id."""
        self.servers: dict[str, AllocationServer] = {}
        """By allocation id."""
        self.glances = Glances(self.servers)
        """Looks at the driver between those of each second."""
        self.occupied = asyncio.Event()
        """Set while there is an allocation."""
        self.readers: list[Reader] = []
        """Those who follow the turns of all devices."""
        self.inbox = wire.Inbox()
        self._config = config
        self._clients_dir = clients_dir
        self._events = events
        self._loop = loop
        self._contexts = contexts
        self._settings = Settings(
            slice_ns=config.slice_ns,
            window_ns=config.window_ns,
            queue_cap_ns=config.queue_cap_ns,
            anticipation_ns=config.anticipation_ns,
        )
        self._rule = Rule(kappa=config.kappa)
        self._epoch = secrets.randbelow((1 << 32) - 1) + 1
        self._ends = Ends()
        self._client_ids = itertools.count(1)
        records_per_s = config.max_records_per_s
        # One percent of eight devices is guaranteed a dozen a second, which its turns take.
        self._records = Whole(records_per_s, records_per_s // 4, guaranteed=records_per_s)
        self._pages = pages_of_a_node()
        # As many as may be in of one are let in at once, whatever the others do.
        self._connections = Whole(
            CONNECTIONS_PER_S, 2 * config.max_clients, guaranteed=CONNECTIONS_PER_S // 2, start=config.max_clients
        )
        # The hard limit: the manager has as many as it may.
        self._places = NodePlaces(clients_most(resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        for device in devices:
            self.take_in(device)

    def take_in(self, device: Device) -> None:
        """A device is there, with no allocation yet."""
        self.book.extend(device)
        self._contexts.take_in(device)
        pages = self._pages.part(UNITS_PER_DEVICE, len(self.devices))
        self.arbiters[device.id] = DeviceArbiter(
            self._loop, self._settings_of(device), self._ends, self._rule, self.readers, pages
        )

    def fresh(self) -> list[Device]:
        """The devices that were seen and have not been taken in."""
        return [device for device in self.devices if device.id not in self.arbiters]

    def see(self, observation: Observation) -> None:
        """Takes in how busy devices are, and by which processes, as far as that is told."""
        for device_id, percent in observation.busy_percent.items():
            if device_id in self.arbiters:
                active, used_percent = observation.active.get(device_id, {}), None
                # Where something ran and nobody did it, it is not said.
                if active or not percent:
                    used_percent = {
                        each: sum(active.get(pid, 0) for pid in server.pids())
                        for each, server in self.servers.items()
                        if device_id in server.terms.device_ids
                    }
                self.arbiters[device_id].see(percent, used_percent, observation.began_at_ns, monotonic_ns)

    def open(self, wanted: Allocation) -> Allocation:
        """Enters an allocation, listens for its clients, and returns it with its defaults; on an error nothing of it is
        left. Raises EdgeshareError."""
        allocation = self.book.add(wanted)
        try:
            self.servers[allocation.id] = self._opened(allocation)
        except EdgeshareError:
            self.book.remove(allocation.id)
            raise
        self.occupied.set()
        return allocation

    def shut(self, allocation_id: str, undo: bool = False) -> None:
        """Ends its clients' connections, and forgets it; ``undo``: it never came to be."""
        self._leave(allocation_id, self.servers.pop(allocation_id), undo)
        self.book.remove(allocation_id)
        if not self.servers:
            self.occupied.clear()

    def reshare(self, allocation: Allocation) -> None:
        """An allocation's share was changed in the book."""
        device = self.servers[allocation.id].terms.device
        device.update(allocation.id, share_of(allocation), monotonic_ns())

    def close(self) -> None:
        """Ends all clients' connections, and leaves the folders where they are."""
        for server in self.servers.values():
            server.close()
        for arbiter in self.arbiters.values():
            arbiter.close()

    def _opened(self, allocation: Allocation) -> AllocationServer:
        # Several devices are all whole: nobody else is on any of them, so one arbiter can speak for all.
        device = self.arbiters[allocation.device_ids[0]]
        server = AllocationServer(
            folder=self._clients_dir / allocation.id,
            terms=self._terms(allocation, device),
            max_clients=self._config.max_clients,
            client_ids=self._client_ids,
            loop=self._loop,
        )
        device.add(allocation.id, share_of(allocation), server, monotonic_ns())
        try:
            server.open()
        except EdgeshareError:
            self._leave(allocation.id, server, undo=True)
            raise
        return server

    def _leave(self, allocation_id: str, server: AllocationServer, undo: bool) -> None:
        server.close()
        server.terms.device.remove(allocation_id, monotonic_ns())
        server.remove_folder(undo)

    def _settings_of(self, device: Device) -> Settings:
        return tpu_settings(self._config) if KINDS[device.accelerator].is_exclusive else self._settings

    def _terms(self, allocation: Allocation, device: DeviceArbiter) -> Terms:
        own = [each for each in self.devices if each.id in allocation.device_ids]
        # All of an allocation are of one kind.
        settings = self._settings_of(own[0])
        kind = KINDS[own[0].accelerator]
        # By the devices that there are: one that comes later takes nothing from who is there.
        of_all = (allocation.request_percent * len(own), len(self.arbiters))
        records = self._records.part(*of_all)
        return Terms(
            allocation_id=allocation.id,
            device_ids=allocation.device_ids,
            accelerator=wire.Accelerator(kind.wire_number),
            welcome=wire.Welcome(
                version=wire.VERSION,
                failure_policy=POLICIES[self._config.failure_policy],
                grace_ms=self._config.grace_ms,
                epoch=self._epoch,
                queue_cap_ns=settings.queue_cap_ns,
                anticipation_ns=settings.anticipation_ns,
                memory_cap_bytes=allocation.memory_mib * MIB,
                ignore_managed=self._config.managed_memory == "ignore",
            ),
            device_lines=tuple(device_lines(own, self._config.sysfs)) if kind.is_exclusive else (),
            offences=Offences(allocation.id),
            records=records,
            paused=self._queue(records),
            connections=self._connections.part(*of_all),
            places=self._places.part(*of_all),
            inbox=self.inbox,
            look_soon=partial(self.glances.want, allocation.id),
            device=device,
            memory=Memory(
                allocation.id,
                allocation.memory_mib * MIB,
                allocation.device_ids,
                self._contexts,
                partial(self._context_refused, allocation.id),
                self._contexts.unseen_bytes,
            ),
        )

    def _queue(self, records: Part) -> Queue:
        def call_later(wait_ns: int) -> None:
            self._loop.call_later(wait_ns / NS_PER_S, lambda: queue.go_on(monotonic_ns()))

        queue = Queue(records, PAUSE_NS, call_later)
        return queue

    def _context_refused(self, allocation_id: str, message: str) -> None:
        owner = self.book.get(allocation_id).owner
        self._events.warn(owner, Reason.CONTEXT_REFUSED, f"container {owner.container}: {message}")


def share_of(allocation: Allocation) -> Share:
    """What the arbiter has to know of an allocation."""
    return Share(allocation.request_percent, allocation.limit_percent, allocation.latency)


def tpu_settings(config: Config) -> Settings:
    """The rule's constants for an EdgeTPU, which lets one process in at a time."""
    return Settings(
        slice_ns=config.tpu_slice_ns,
        window_ns=config.window_ns,
        queue_cap_ns=0,
        anticipation_ns=config.tpu_anticipation_ns,
        exclusive=True,
    )


def device_lines(devices: Iterable[Device], sysfs: Path) -> Iterator[str]:
    """What hook.conf says of an allocation's devices where there is no driver's library to ask: the nodes that are
    opened, and for one on the USB where sysfs tells the number that it has now, since it comes under another one once
    it has its firmware."""
    for device in devices:
        if device.source == "edgetpu" and device.model == USB_MODEL:
            # Its id is the port's path, as sysfs names it.
            yield f"usb-device={sysfs / 'bus/usb/devices' / device.id}"
        else:
            yield from (f"device={path}" for path in device.paths)
