"""This node's devices, allocations and clients, and what can be done with them. Runs in the event loop's thread."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from time import monotonic_ns

from edgeshare import __version__
from edgeshare.contract.accelerator_kind import KINDS
from edgeshare.contract.devices import Device
from edgeshare.contract.errors import AlreadyExists, EdgeshareError, Unavailable
from edgeshare.contract.lifetime import ABSENT, AT_THE_MANAGER, HELD, SERVED, STRANDED, State
from edgeshare.v1 import allocations_pb2 as messages
from edgeshare.v1.status_pb2 import AllocationStatus, NodeStatus
from sharemgr.node.clients.folder import folders_of_managers, remove_folder
from sharemgr.node.clients.server import AllocationServer
from sharemgr.node.config import Config
from sharemgr.node.events import Events
from sharemgr.node.guarantee import Misses
from sharemgr.node.machine.allocations import Allocation, is_another
from sharemgr.node.machine.contexts import ContextSizes
from sharemgr.node.machine.messages import LATENCY, allocation_from, message_from, owner_from
from sharemgr.node.machine.observer import Observation, ToldHealth
from sharemgr.node.machine.store import Store
from sharemgr.node.recorder import Recorders
from sharemgr.node.serving import Serving
from sharemgr.node.sockets.loop import Loop
from sharemgr.node.status import allocation_status, device_status, guarantee, manager_status, measured_ns
from sharemgr.node.totals import Totals
from sharemgr.node.unmanaged import UnmanagedProcesses

logger = logging.getLogger(__name__)

STRIDE = 8
"""Allocations that are looked at without a pause: a fifth of a millisecond's work."""


class Node:
    """The allocations and their clients. Calls that must reach the disk are coroutines, all others are immediate."""

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
        self._serving = Serving(config, devices, clients_dir, events, loop, contexts or ContextSizes())
        self.glances = self._serving.glances
        """Looks at the driver between those of each second."""
        self.occupied = self._serving.occupied
        """Set while there is an allocation."""
        self.recorders = Recorders(self._serving)
        self._unmanaged = UnmanagedProcesses(events)
        self._held: dict[str, asyncio.Event] = {}
        """Allocations that are not kept on disk: each lives as long as a call, which waits for this event."""
        self._stranded: dict[str, messages.Allocation] = {}
        """Allocations that were kept, but that cannot be served: a device is missing, or room for the folder."""
        self._observation: Observation | None = None
        self._told_health = ToldHealth()
        self._misses = Misses()
        self._totals = Totals()
        self._saving = asyncio.Lock()
        self._closed = False

    def restore(self) -> None:
        """Opens again what was kept on disk, and clears away what calls held that are over.

        Raises Unavailable where the store cannot be read.
        """
        stored = self._store.load()
        for message in stored or ():
            try:
                self._serving.open(allocation_from(message))
            except EdgeshareError as error:
                # Kept: a device that is missing now may come later, and there may be room at the next look.
                logger.error("allocation %s is kept, but cannot be served: %s", message.id, error)
                self._stranded[message.id] = message
        if stored is not None:
            known = self._serving.servers.keys() | self._stranded.keys()
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
        self._serving.close()

    async def add(self, message: messages.Allocation) -> tuple[messages.Allocation, Path]:
        """Adds an allocation that stays until it is removed; returns it with its defaults, and its socket.

        Adding it once more changes nothing. Raises InvalidRequest, NotFound, NoRoom, AlreadyExists, Unavailable.
        """
        async with self._saving:
            self._check_open()
            wanted = allocation_from(message)
            state = self._state(wanted.id)
            if state is SERVED:
                self._serving.book.add(wanted)
            elif (state, SERVED) not in AT_THE_MANAGER:
                raise is_another(wanted.id)
            else:
                self._serving.open(wanted)
                stranded = self._stranded.pop(wanted.id, None)

                def undo() -> None:
                    self._shut(wanted.id, undo=True)
                    if stranded is not None:
                        self._stranded[wanted.id] = stranded

                await self._save(undo)
            return message_from(self._serving.book.get(wanted.id)), self._serving.servers[wanted.id].socket_path

    def hold(self, message: messages.Allocation) -> tuple[messages.Allocation, Path, asyncio.Event]:
        """Adds an allocation that stays until ``let_go``; the event says that it was removed before.
        Raises as add."""
        self._check_open()
        wanted = allocation_from(message)
        if (self._state(wanted.id), HELD) not in AT_THE_MANAGER:
            raise AlreadyExists(f"allocation {wanted.id!r} is there already: choose another id")
        held = self._serving.open(wanted)
        removed = self._held[held.id] = asyncio.Event()
        return message_from(held), self._serving.servers[held.id].socket_path, removed

    def let_go(self, allocation_id: str) -> None:
        """Ends what ``hold`` began; nothing where it is over already."""
        if not self._closed and self._held.pop(allocation_id, None) is not None:
            self._shut(allocation_id)

    async def update(self, request: messages.UpdateAllocationRequest) -> messages.Allocation:
        """Changes limit, class or owner of an allocation. Raises InvalidRequest, NotFound, Unavailable."""
        async with self._saving:
            self._check_open()
            before = self._serving.book.get(request.id)
            after = self._serving.book.update(
                request.id,
                limit_percent=request.limit_percent or None,
                latency=request.share_class == LATENCY if request.share_class else None,
                owner=owner_from(request.owner) if request.HasField("owner") else None,
            )
            self._serving.reshare(after)

            def undo() -> None:
                self._serving.book.remove(before.id)
                self._serving.book.add(before)
                self._serving.reshare(before)

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
            if self._serving.book.find(allocation_id) is not None:
                self._shut(allocation_id)
            self._stranded.pop(allocation_id, None)

    def allocations(self) -> list[messages.Allocation]:
        """All allocations, also those that fit this machine no more."""
        return [message_from(allocation) for allocation in self._serving.book.all()] + list(self._stranded.values())

    async def status(self) -> NodeStatus:
        """Who has what, now."""
        window_ns, missed_ns = self._config.window_ns, self._misses.missed_ns
        known = [
            allocation_status(allocation, server, window_ns, monotonic_ns(), missed_ns(allocation.id), self._totals)
            async for allocation, server in self._served()
        ]
        stranded = [AllocationStatus(allocation=message) for message in self._stranded.values()]
        devices = [self._told_health.of(device, monotonic_ns()) for device in self._serving.devices]
        return NodeStatus(
            version=__version__,
            window_ns=window_ns,
            devices=[
                device_status(device, self._serving.book, self._observation, self._unmanaged) for device in devices
            ],
            allocations=known + stranded,
            manager=manager_status(
                self._serving.inbox.received, (each.timer for each in self._serving.arbiters.values())
            ),
        )

    async def judge(self) -> None:
        """Takes in whose guarantee is missed now, and what all have had."""
        missed = []
        async for allocation, server in self._served():
            now_ns = monotonic_ns()
            device = server.terms.device
            of_ns = measured_ns(server, self._config.window_ns, now_ns)
            account = device.account(allocation.id, now_ns)
            self._totals.take_in(allocation.id, account, device.exclusive)
            if guarantee(allocation, account, of_ns, device.exclusive).missed:
                missed.append(allocation.id)
        self._misses.look(missed, monotonic_ns())

    async def _served(self) -> AsyncIterator[tuple[Allocation, AllocationServer]]:
        """All that fit this machine. Grants come in between: going through all at once would hold them up for
        milliseconds."""
        for index, (allocation_id, server) in enumerate(list(self._serving.servers.items())):
            if index % STRIDE == 0:
                await asyncio.sleep(0)
            allocation = self._serving.book.find(allocation_id)
            if allocation is not None:
                yield allocation, server

    def tell_health(self, causes: Mapping[str, str]) -> None:
        """Takes in why each device is not healthy, by its id, empty for one that is; one that is not there is passed
        over."""
        known = [device.id for device in self._serving.devices if device.id in causes]
        self._told_health.tell({device_id: causes[device_id] for device_id in known}, monotonic_ns())

    def look(self) -> None:
        """The driver is about to be asked."""
        for server in self._serving.servers.values():
            server.terms.memory.look()

    def observe(self, observation: Observation) -> None:
        """Takes in what the driver says: whose memory is freed, what it took by itself, who never joined."""
        for server in self._serving.servers.values():
            server.reconcile(observation)
            server.sweep(monotonic_ns())
        self._unmanaged.look(observation, self._serving.servers.values(), self._serving.book.all())
        self._serving.see(observation)
        self._totals.look(observation, self._serving.book.all())
        self._observation = observation
        self._serving.devices = observation.devices
        fresh = [] if self._closed else self._serving.fresh()
        for device in fresh:
            logger.info("%s %s came", KINDS[device.accelerator].word, device.id)
            self._serving.take_in(device)
        if self._stranded and not self._closed:
            self._open_stranded()

    def _open_stranded(self) -> None:
        """Opens what was kept and can be served now. On disk nothing changes by it."""
        for message in list(self._stranded.values()):
            try:
                self._serving.open(allocation_from(message))
            except EdgeshareError as error:
                logger.debug("allocation %s still cannot be served: %s", message.id, error)
            else:
                logger.info("allocation %s is served again", message.id)
                del self._stranded[message.id]

    def _state(self, allocation_id: str) -> State:
        if allocation_id in self._held:
            return HELD
        if allocation_id in self._stranded:
            return STRANDED
        return ABSENT if self._serving.book.find(allocation_id) is None else SERVED

    def _check_open(self) -> None:
        # A call may come in between the end of the clients and that of the server.
        if self._closed:
            raise Unavailable("the share manager is ending: try again when it is back")

    def _shut(self, allocation_id: str, undo: bool = False) -> None:
        self._serving.shut(allocation_id, undo)
        self._misses.forget(allocation_id)
        self._totals.forget(allocation_id)

    def _kept(self) -> list[messages.Allocation]:
        kept = [message_from(each) for each in self._serving.book.all() if each.id not in self._held]
        return kept + list(self._stranded.values())

    async def _save(self, undo: Callable[[], None]) -> None:
        """Saves what is kept. A disk takes milliseconds to be sure: a thread waits for it, so that no grant does."""
        try:
            await asyncio.to_thread(self._store.save, self._kept())
        except Unavailable:
            undo()
            raise
