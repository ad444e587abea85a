"""This node's devices, allocations and clients, and what can be done with them. Runs in the event loop's
thread."""

import asyncio
import itertools
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic_ns

from cuda_hook import wire
from edgeshare import __version__
from edgeshare.contract.devices import WORDS, Accelerator, Device
from edgeshare.contract.errors import AlreadyExists, EdgeshareError, Unavailable
from edgeshare.contract.units import MIB
from edgeshare.v1 import allocations_pb2 as messages
from edgeshare.v1.status_pb2 import AllocationStatus, NodeStatus
from sharemgr.node import edgetpu
from sharemgr.node.clients.budget import Whole
from sharemgr.node.clients.client import Terms
from sharemgr.node.clients.device import DeviceArbiter
from sharemgr.node.clients.glances import Glances
from sharemgr.node.clients.offences import Offences
from sharemgr.node.clients.server import AllocationServer, folders_of_managers, remove_folder
from sharemgr.node.config import Config
from sharemgr.node.events import Events, Reason
from sharemgr.node.guarantee import Misses
from sharemgr.node.machine.allocations import Allocation, Book
from sharemgr.node.machine.contexts import ContextSizes
from sharemgr.node.machine.health import ToldHealth
from sharemgr.node.machine.messages import LATENCY, allocation_from, message_from, owner_from
from sharemgr.node.machine.observer import Observation
from sharemgr.node.machine.store import Store
from sharemgr.node.memory.allowances import Memory
from sharemgr.node.sockets.loop import Loop
from sharemgr.node.status import (
    allocation_status,
    device_status,
    guarantee,
    manager_status,
    measured_ns,
    unmanaged_pids,
)
from sharemgr.node.strangers import Strangers
from sharemgr.node.turns.gate import Rule
from sharemgr.node.turns.settings import Settings, Share
from sharemgr.node.turns.slices.ends import Ends

logger = logging.getLogger(__name__)

POLICIES = {"open": wire.FailurePolicy.OPEN, "closed": wire.FailurePolicy.CLOSED}

STRIDE = 8
"""Allocations that are looked at without a pause: a fifth of a millisecond's work."""


class Node:
    """The allocations and their clients. Calls that must reach the disk are coroutines, all others are
    immediate."""

    def __init__(
        self,
        config: Config,
        devices: tuple[Device, ...],
        clients_dir: Path,
        store: Store,
        events: Events,
        loop: Loop,
        contexts: ContextSizes | None = None,
    ) -> None:
        """``contexts`` is what is known of contexts from before; None: nothing is."""
        self._config = config
        self._clients_dir = clients_dir
        self._store = store
        self._events = events
        self._strangers = Strangers(events)
        self._loop = loop
        self._book = Book((), config.default_limit == "lend")
        self._settings = Settings(
            slice_ns=config.slice_ns,
            window_ns=config.window_ns,
            queue_cap_ns=config.queue_cap_ns,
            anticipation_ns=config.anticipation_ns,
        )
        self._rule = Rule(kappa=config.kappa)
        self._epoch = secrets.randbelow((1 << 32) - 1) + 1
        self._ends = Ends()
        self._arbiters: dict[str, DeviceArbiter] = {}
        self._servers: dict[str, AllocationServer] = {}
        self.glances = Glances(self._servers)
        """Looks at the driver between those of each second."""
        self.occupied = asyncio.Event()
        """Set while there is an allocation."""
        self._held: dict[str, asyncio.Event] = {}
        """Allocations that are not kept on disk: each lives as long as a call, which waits for this event."""
        self._stranded: dict[str, messages.Allocation] = {}
        """Allocations that were kept, but that fit this machine no more: a device is missing."""
        self._client_ids = itertools.count(1)
        self._inbox = wire.Inbox()
        self._records = Whole(config.max_records_per_s)
        self._devices = devices
        self._contexts = contexts or ContextSizes()
        for device in devices:
            self._take_in(device)
        self._observation: Observation | None = None
        self._seen_ns = monotonic_ns()  # how busy the devices were
        self._told_health = ToldHealth()
        self._misses = Misses()
        self._unmanaged: dict[str, set[int]] = {}
        self._unmanaged_before: dict[str, set[int]] = {}
        self._saving = asyncio.Lock()
        self._closed = False

    def _settings_of(self, device: Device) -> Settings:
        return edgetpu.settings(self._config) if device.accelerator is Accelerator.EDGETPU else self._settings

    def _devices_now(self) -> tuple[Device, ...]:
        """The devices as last seen: those of the start, and what came since."""
        return self._observation.devices if self._observation else self._devices

    def restore(self) -> None:
        """Opens again what was kept on disk, and clears away what calls held that are over.

        Raises Unavailable where the store cannot be read.
        """
        stored = self._store.load()
        for message in stored or ():
            try:
                self._open(allocation_from(message))
            except EdgeshareError as error:
                # Kept: a device that is missing now may come later, or be back after the next start.
                logger.error("allocation %s is kept, but cannot be served: %s", message.id, error)
                self._stranded[message.id] = message
        if stored is not None:
            known = self._servers.keys() | self._stranded.keys()
            for folder in folders_of_managers(self._clients_dir):
                if folder.name not in known:
                    remove_folder(folder)
        try:
            self._store.save(self._kept())
        except Unavailable as error:
            # Whoever has an allocation would run unshared for as long as nobody serves it.
            logger.error("%s; what was read is served, and none can be added before it can be written", error)

    def close(self) -> None:
        """Ends all clients' connections; what is kept stays on disk, and the folders where they are."""
        if self._closed:
            return
        self._closed = True
        for server in self._servers.values():
            server.close()
        for arbiter in self._arbiters.values():
            arbiter.close()

    async def add(self, message: messages.Allocation) -> tuple[messages.Allocation, Path]:
        """Adds an allocation that stays until it is removed; returns it with its defaults, and its socket.

        Adding it once more changes nothing. Raises InvalidRequest, NotFound, NoRoom, AlreadyExists,
        Unavailable.
        """
        async with self._saving:
            self._check_open()
            wanted = allocation_from(message)
            present = self._book.find(wanted.id)
            if present is None:
                wanted = self._book.completed(wanted)
                self._open(wanted)
                stranded = self._stranded.pop(wanted.id, None)

                def undo() -> None:
                    self._shut(wanted.id)
                    if stranded is not None:
                        self._stranded[wanted.id] = stranded

                await self._save(undo)
            elif wanted.id in self._held or not same(present, wanted):
                raise AlreadyExists(
                    f"allocation {wanted.id!r} is there already and is another: choose another id, or remove it first"
                )
            return message_from(self._book.get(wanted.id)), self._servers[wanted.id].socket_path

    def hold(self, message: messages.Allocation) -> tuple[messages.Allocation, Path, asyncio.Event]:
        """Adds an allocation that stays until ``let_go``; the event says that it was removed before.
        Raises as add."""
        self._check_open()
        wanted = self._book.completed(allocation_from(message))
        if self._book.find(wanted.id) is not None:
            raise AlreadyExists(f"allocation {wanted.id!r} is there already: choose another id")
        self._open(wanted)
        removed = self._held[wanted.id] = asyncio.Event()
        return message_from(wanted), self._servers[wanted.id].socket_path, removed

    def let_go(self, allocation_id: str) -> None:
        """Ends what ``hold`` began; nothing where it is over already."""
        if not self._closed and self._held.pop(allocation_id, None) is not None:
            self._shut(allocation_id)

    async def update(self, request: messages.UpdateAllocationRequest) -> messages.Allocation:
        """Changes limit, class or owner of an allocation. Raises InvalidRequest, NotFound, Unavailable."""
        async with self._saving:
            self._check_open()
            before = self._book.get(request.id)
            after = self._book.update(
                request.id,
                limit_percent=request.limit_percent or None,
                latency=request.share_class == LATENCY if request.share_class else None,
                owner=owner_from(request.owner) if request.HasField("owner") else None,
            )
            self._reshare(after)

            def undo() -> None:
                self._book.remove(before.id)
                self._book.add(before)
                self._reshare(before)

            await self._save(undo)
            return message_from(after)

    async def remove(self, allocation_id: str) -> None:
        """Removes an allocation, its folder, and its clients' connections; nothing where it is not there. Raises
        Unavailable, and removes nothing then."""
        async with self._saving:
            self._check_open()
            # First on disk: what cannot be written there is not done.
            await asyncio.to_thread(self._store.save, [each for each in self._kept() if each.id != allocation_id])
            removed = self._held.pop(allocation_id, None)
            if removed is not None:
                removed.set()
            if self._book.find(allocation_id) is not None:
                self._shut(allocation_id)
            self._stranded.pop(allocation_id, None)

    def allocations(self) -> list[messages.Allocation]:
        """All allocations, also those that fit this machine no more."""
        return [message_from(allocation) for allocation in self._book.all()] + list(self._stranded.values())

    async def status(self) -> NodeStatus:
        """Who has what, now."""
        window_ns = self._config.window_ns
        known = [
            allocation_status(allocation, server, window_ns, monotonic_ns(), self._misses.missed_ns(allocation.id))
            async for allocation, server in self._served()
        ]
        stranded = [AllocationStatus(allocation=message) for message in self._stranded.values()]
        devices = [self._told_health.of(device, monotonic_ns()) for device in self._devices_now()]
        return NodeStatus(
            version=__version__,
            window_ns=window_ns,
            devices=[
                device_status(
                    device, self._book, self._observation, self._unmanaged.get(device.id, ()), self._strangers
                )
                for device in devices
            ],
            allocations=known + stranded,
            manager=manager_status(self._inbox.received, (each.timer for each in self._arbiters.values())),
        )

    async def judge(self) -> None:
        """Takes in whose guarantee is missed now."""
        missed = []
        async for allocation, server in self._served():
            now_ns = monotonic_ns()
            device = server.terms.device
            of_ns = measured_ns(server, self._config.window_ns, now_ns)
            if guarantee(allocation, device.account(allocation.id, now_ns), of_ns, device.exclusive).missed:
                missed.append(allocation.id)
        self._misses.look(missed, monotonic_ns())

    async def _served(self) -> AsyncIterator[tuple[Allocation, AllocationServer]]:
        """All that fit this machine. Grants come in between: going through all at once would hold them up for
        milliseconds."""
        for index, (allocation_id, server) in enumerate(list(self._servers.items())):
            if index % STRIDE == 0:
                await asyncio.sleep(0)
            allocation = self._book.find(allocation_id)
            if allocation is not None:
                yield allocation, server

    def tell_health(self, causes: Mapping[str, str]) -> None:
        """Takes in why each device is not healthy, by its id, empty for one that is; one that is not there is passed
        over."""
        known = [device.id for device in self._devices_now() if device.id in causes]
        self._told_health.tell({device_id: causes[device_id] for device_id in known}, monotonic_ns())

    def look(self) -> None:
        """The driver is about to be asked."""
        for server in self._servers.values():
            server.terms.memory.look()

    def observe(self, observation: Observation) -> None:
        """Takes in what the driver says: whose memory is freed, what it took by itself, who never joined."""
        for server in self._servers.values():
            server.reconcile(observation)
            server.sweep(monotonic_ns())
        known = self._known_pids(observation)
        unmanaged = {
            device.id: unmanaged_pids(device, self._book.all(), observation, known.get(device.id, set()))
            for device in observation.devices
        }
        # A process joins a moment before or after the driver lists it: one look is not enough to say that
        # it did not.
        self._unmanaged = {
            device_id: pids & self._unmanaged_before.get(device_id, set()) for device_id, pids in unmanaged.items()
        }
        self._unmanaged_before = unmanaged
        self._strangers.seen(self._unmanaged, self._book.all())
        self._see(observation.busy_percent)
        self._observation = observation
        fresh = [device for device in observation.devices if device.id not in self._arbiters and not self._closed]
        for device in fresh:
            logger.info("%s %s came", WORDS[device.accelerator], device.id)
            self._take_in(device)
        if fresh:
            self._open_stranded()

    def _known_pids(self, observation: Observation) -> dict[str, set[int]]:
        """By device id: the processes of those that have it, and that tell of their use of it."""
        known: dict[str, set[int]] = {}
        for server in self._servers.values():
            pids = set(server.pids())
            for device_id in server.terms.device_ids:
                silent = server.silent_pids(observation.active.get(device_id, ()))
                known.setdefault(device_id, set()).update(pids - silent)
        return known

    def _see(self, busy_percent: Mapping[str, int]) -> None:
        """Takes in how busy devices were since it was last told, as far as it is."""
        if not busy_percent:
            return
        now_ns = monotonic_ns()
        elapsed_ns, self._seen_ns = now_ns - self._seen_ns, now_ns
        for device_id, percent in busy_percent.items():
            if device_id in self._arbiters:
                self._arbiters[device_id].see(elapsed_ns * percent // 100, now_ns)

    def _take_in(self, device: Device) -> None:
        """Takes in a device, with no allocation yet."""
        self._book.extend(device)
        self._contexts.take_in(device)
        self._arbiters[device.id] = DeviceArbiter(self._loop, self._settings_of(device), self._ends, self._rule)

    def _open_stranded(self) -> None:
        """Opens what was kept for a device that was missing. On disk nothing changes by it."""
        for message in list(self._stranded.values()):
            try:
                self._open(allocation_from(message))
            except EdgeshareError as error:
                logger.debug("allocation %s still cannot be served: %s", message.id, error)
            else:
                logger.info("allocation %s is served again", message.id)
                del self._stranded[message.id]

    def _check_open(self) -> None:
        # A call may come in between the end of the clients and that of the server.
        if self._closed:
            raise Unavailable("the share manager is ending: try again when it is back")

    def _open(self, allocation: Allocation) -> None:
        """Enters an allocation and listens for its clients; on an error nothing is left of it."""
        self._book.add(allocation)
        # Several devices are all whole: nobody else is on any of them, so one arbiter can speak for all.
        device = self._arbiters[allocation.device_ids[0]]
        own = [each for each in self._devices_now() if each.id in allocation.device_ids]
        # All of an allocation are of one kind.
        settings = self._settings_of(own[0])
        is_tpu = own[0].accelerator is Accelerator.EDGETPU
        terms = Terms(
            allocation_id=allocation.id,
            device_ids=allocation.device_ids,
            accelerator=wire.Accelerator.EDGETPU if is_tpu else wire.Accelerator.GPU,
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
            device_lines=tuple(edgetpu.device_lines(own, self._config.sysfs)) if is_tpu else (),
            offences=Offences(allocation.id),
            # By the devices that there are: one that comes later takes nothing from who is there.
            records=self._records.part(allocation.request_percent * len(own), len(self._arbiters)),
            inbox=self._inbox,
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
        server = AllocationServer(
            folder=self._clients_dir / allocation.id,
            terms=terms,
            max_clients=self._config.max_clients,
            client_ids=self._client_ids,
            loop=self._loop,
        )
        device.add(allocation.id, share_of(allocation), server, monotonic_ns())
        try:
            server.open()
        except EdgeshareError:
            device.remove(allocation.id, monotonic_ns())
            self._book.remove(allocation.id)
            server.remove_folder()
            raise
        self._servers[allocation.id] = server
        self.occupied.set()

    def _context_refused(self, allocation_id: str, message: str) -> None:
        owner = self._book.get(allocation_id).owner
        self._events.warn(owner, Reason.CONTEXT_REFUSED, f"container {owner.container}: {message}")

    def _shut(self, allocation_id: str) -> None:
        server = self._servers.pop(allocation_id)
        server.close()
        server.terms.device.remove(allocation_id, monotonic_ns())
        server.remove_folder()
        self._book.remove(allocation_id)
        self._misses.forget(allocation_id)
        if not self._servers:
            self.occupied.clear()

    def _reshare(self, allocation: Allocation) -> None:
        device = self._servers[allocation.id].terms.device
        device.update(allocation.id, share_of(allocation), monotonic_ns())

    def _kept(self) -> list[messages.Allocation]:
        kept = [message_from(each) for each in self._book.all() if each.id not in self._held]
        return kept + list(self._stranded.values())

    async def _save(self, undo: Callable[[], None]) -> None:
        """Saves what is kept. A disk takes milliseconds to be sure: a thread waits for it, so that no
        grant does."""
        try:
            await asyncio.to_thread(self._store.save, self._kept())
        except Unavailable:
            undo()
            raise


def share_of(allocation: Allocation) -> Share:
    """What the arbiter has to know of an allocation."""
    return Share(allocation.request_percent, allocation.limit_percent, allocation.latency)


def same(present: Allocation, wanted: Allocation) -> bool:
    """Whether a wanted allocation is the present one; what it leaves to the defaults may be as it is."""
    limit_percent = wanted.limit_percent or present.limit_percent
    memory_mib = wanted.memory_mib or present.memory_mib
    return replace(wanted, limit_percent=limit_percent, memory_mib=memory_mib) == present
