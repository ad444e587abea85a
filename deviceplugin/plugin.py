"""The plugin's parts, put together."""

import asyncio
import copy
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import cuda_hook
from deviceplugin.allocations.manager_client import Manager
from deviceplugin.allocations.records import Records
from deviceplugin.allocations.store import Store
from deviceplugin.cluster.cluster import Cluster
from deviceplugin.cluster.node import Node, connect
from deviceplugin.counters import Counters
from deviceplugin.devices.device_list import Devices, DevicesOfKind
from deviceplugin.devices.other_plugins import OtherPlugins
from deviceplugin.devices.scan import Scan
from deviceplugin.health.watch import HealthWatch
from deviceplugin.inject.cdi import Specs
from deviceplugin.inject.library import Library
from deviceplugin.live_config import ChosenName, Settings
from deviceplugin.node_events import NodeEvents, Reason
from deviceplugin.pods.pod_watch import BoundPods
from deviceplugin.pods.podresources import InFlight
from deviceplugin.reloading import Reloading
from deviceplugin.resource import Resource
from deviceplugin.retry_loop import keep
from deviceplugin.units.ledger import Ledger
from deviceplugin.units.preference import by_device
from edgeshare.contract.accelerator_kind import KINDS, AcceleratorKind
from edgeshare.contract.errors import EdgeshareError, Unavailable
from edgeshare.contract.names import HOOK_LIBRARY, PLUGINS_DIR, POD_RESOURCES_SOCKET
from edgeshare.http import web
from edgeshare.lock_file import locked
from edgeshare.log_trouble import Trouble
from edgeshare.waiting import first_of, told_to_end

logger = logging.getLogger(__name__)

LOCK_FILE = "deviceplugin.lock"

COMPARE_PAUSE_S = 1
"""At least this long between two comparisons: the kubelet answers 100 calls a second for everybody."""

COMPARE_IDLE_S = 60
"""How often, at most, where no container has anything."""

NODE_STATUS_S = 60
"""How often the node is looked at: one that was made anew has lost what was patched into its status, and its label may
ask for another config."""

NODE_RETRY_S = 10
"""How long after a look at the node that failed the next one is."""


class Plugin:
    """The device plugin of this node."""

    _stands_by = False
    """While another plugin has the node."""

    def __init__(
        self,
        config_path: Path | None,
        kubelet_dir: Path | None,
        runtime_dir: Path,
        state_dir: Path,
        environment: Mapping[str, str],
    ) -> None:
        """``kubelet_dir`` goes before the configuration's. Raises InvalidRequest for a configuration that is wrong or
        does not fit this place, Unavailable where a credential of the API server cannot be used."""
        self._settings = Settings(config_path)
        self._state_dir = state_dir
        config = self._settings.file
        kubelet_dir = kubelet_dir or config.kubelet_dir
        self._metrics_address = config.metrics_address
        self._devices = Devices()
        self._health = HealthWatch(self._settings.now.health, state_dir / "health", dev=config.node_dev)
        self._events = NodeEvents()
        self._untold = Trouble(logger, "the node is not told of it")
        self._counters = Counters()
        kube, node_name = connect(config, environment)
        self._node = Node(kube, node_name) if kube is not None else None
        self._library = Library(state_dir / "hook", Path(cuda_hook.__file__).parent / HOOK_LIBRARY)
        self._allocated = asyncio.Event()
        self._manager = Manager(runtime_dir)
        ledgers = {kind: Ledger() for kind in KINDS.values()}
        self._specs = Specs(config.cdi_dir, self._settings, self._devices, ledgers.values(), self._events)
        in_flight = InFlight()
        pods = BoundPods(kube, node_name) if kube is not None else None

        def store(kind: AcceleratorKind) -> Store:
            records = Records(state_dir / ("deviceplugin" if kind.is_default else f"deviceplugin-{kind.prefix}"))
            return Store(kind, ledgers, records, self._library, runtime_dir, self._settings, self._specs)

        def resource(kind: AcceleratorKind) -> Resource:
            return Resource(
                kind=kind,
                devices=DevicesOfKind(self._devices, kind.accelerator),
                store=store(kind),
                pod_resources_socket=config.pod_resources_socket or kubelet_dir / POD_RESOURCES_SOCKET,
                in_flight=in_flight,
                manager=self._manager,
                cluster=(kube, node_name),
                pods=pods,
                plugins_dir=kubelet_dir / PLUGINS_DIR,
                allocated=self._allocated,
                counters=self._counters,
                settings=self._settings,
            )

        self._resources = tuple(resource(kind) for kind in KINDS.values())
        self._gpus = self._resources[0]
        self._cluster: Cluster | None = None
        if kube is not None and pods is not None:
            stores = [resource.store for resource in self._resources]
            self._cluster = Cluster(kube, node_name, pods, self._devices, self._health, stores)
        other_plugins = OtherPlugins(self._gpus.listings.others)
        self._scan = Scan(self._devices, self._health, self._settings, self._held, other_plugins, self._events)
        self._reloading = Reloading(config_path, self._settings, ChosenName(state_dir / "config-name"), self._events)
        self._node_changed, self._health_changed = asyncio.Event(), asyncio.Event()

    async def run(self, ready: Callable[[str], None]) -> None:
        """Runs until SIGTERM or SIGINT, and reads its configuration anew at SIGHUP; calls ``ready`` with a line of text
        each time that it is registered. While another plugin of the node runs, it waits for that one's end: what that
        one has handed out is read then.

        Raises Unavailable where the hook library cannot be installed, or the metrics have no address.
        """
        stop, hangup = told_to_end(), asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hangup.set)

        def registered(what: str) -> None:
            self._counters.registrations += 1
            self._allocated.set()
            # A node object that was made anew has lost what it said, and it is a kubelet that starts which makes it.
            self._node_changed.set()
            ready(what)

        async with AsyncExitStack() as stack:
            await self._serve_metrics(stack)
            if not await stack.enter_async_context(locked(self._state_dir / LOCK_FILE, stop, self._standing_by)):
                return
            if not await self._begin(stop):
                return
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            for part in self._parts(stop, hangup, registered):
                tasks.create_task(part)

    async def _serve_metrics(self, stack: AsyncExitStack) -> None:
        """Until ``stack`` ends, where the configuration has an address for them. Raises Unavailable."""
        if self._metrics_address:
            # Loaded only where somebody asks for it: memory is counted on a node.
            from edgeshare.http.pages import pages  # noqa: PLC0415

            served = pages(self._exposition, self._readiness)
            address = await stack.enter_async_context(web.serving(self._metrics_address, served))
            logger.info("metrics at http://%s/metrics", address)

    async def _begin(self, stop: asyncio.Event) -> bool:
        """All that comes before the kubelet may ask; False where ``stop`` came first. Raises Unavailable where the hook
        library cannot be installed."""
        self._library.install()
        for resource in self._resources:
            resource.store.load()
        # Both before the kubelet asks: an empty list would make all that it has given out look lost, and what the
        # node's config leaves out must not be given out.
        await self._reloading.choose_at_start(self._node)
        while not await self._scan.look(self._changed, stop):
            if stop.is_set():
                return False
            await self._tell_notices()
        # A kubelet that finds its plugin may at once start containers anew.
        self._specs.keep_or_tell()
        return True

    def _parts(
        self, stop: asyncio.Event, hangup: asyncio.Event, registered: Callable[[str], None]
    ) -> Iterator[Coroutine[None, None, None]]:
        """What runs until ``stop``, each in a task of its own, in the order in which they begin."""
        yield self._scan.run(stop, self._changed)
        if self._cluster is not None:
            yield self._cluster.run(stop)
        yield self._compare(stop)
        if self._node is not None:
            complaint = "the node is not told of its GPUs, nor asked for its config"
            meet = partial(self._meet_node, self._node)
            yield keep(
                meet, self._node_changes, complaint, stop, pause_s=0, every_s=NODE_STATUS_S, again_s=NODE_RETRY_S
            )
        yield self._manager.keep_told(lambda: self._health.now, self._health_changed, stop)
        yield self._reloading.run(stop, hangup, self._node_changed.set)
        yield self._specs.run(stop)
        for resource in self._resources:
            # Most nodes never have an EdgeTPU, and what a node never had it need not say that it has none of.
            yield resource.run(stop, registered, always=resource is self._gpus)

    @asynccontextmanager
    async def _standing_by(self, holder: str) -> AsyncIterator[None]:
        """While another plugin has the node, and the kubelet: it is ready, for that is what an update waits for before
        it ends the other one."""
        logger.info(
            "another device plugin (pid %s) has %s: ready to take over when it ends; to have two beside each other, "
            "choose another --state-dir and another --kubelet-dir",
            holder,
            self._state_dir,
        )
        self._stands_by = True
        try:
            yield
        finally:
            self._stands_by = False

    def _served(self) -> list[Resource]:
        return [resource for resource in self._resources if resource is self._gpus or resource.is_made]

    def _readiness(self) -> str:
        reasons = [resource.not_ready for resource in self._served() if resource.not_ready]
        if reasons and not self._stands_by:
            # A driver that is broken from the start on is what keeps the plugin from being asked.
            raise Unavailable("; ".join([*self._scan.troubles, *reasons]))
        return "ok"

    def _held(self) -> set[str]:
        allocations = (allocation for resource in self._resources for allocation in resource.store.ledger)
        return set(by_device(unit for allocation in allocations for unit in allocation.unit_ids))

    async def _exposition(self) -> bytes:
        # Loaded only where somebody asks for it: memory is counted on a node.
        from deviceplugin.metrics import Figures, exposition  # noqa: PLC0415

        figures = Figures(
            found=self._scan.found,
            listed=self._devices.now,
            driver_fault=bool(self._scan.troubles),
            registered={resource.kind.resource: not resource.not_ready for resource in self._served()},
            allocations=sum(len(resource.store.ledger) for resource in self._resources),
            config=self._settings.name,
            config_refused=self._events.are_there(Reason.CONFIG_REFUSED, Reason.CONFIG_UNKNOWN),
            counters=copy.deepcopy(self._counters),
            healths=self._health.now,
        )
        # A thread writes it down: the kubelet's calls do not wait for it.
        return await asyncio.to_thread(exposition, figures)

    def _changed(self) -> None:
        self._node_changed.set()
        self._health_changed.set()
        if self._cluster is not None:
            self._cluster.devices_changed()

    async def _tell_notices(self) -> None:
        if self._node is not None:
            try:
                await self._events.write(self._node.warn)
                self._untold.over()
            except EdgeshareError as error:
                self._untold.fails(error)

    async def _compare(self, stop: asyncio.Event) -> None:
        trouble = Trouble(logger, "allocations not compared")
        while not stop.is_set():
            await first_of(stop, timeout_s=COMPARE_PAUSE_S)
            # Where nothing is held nothing can be over, and each comparison wakes the manager too.
            held = trouble.count or any(resource.store.ledger or resource.store.leaving for resource in self._resources)
            compare_s = self._settings.now.compare_s
            await first_of(stop, self._allocated, timeout_s=compare_s if held else max(compare_s, COMPARE_IDLE_S))
            if stop.is_set():
                return
            self._allocated.clear()
            try:
                for resource in self._served():
                    await resource.compare()
            except EdgeshareError as error:
                trouble.fails(error)
            else:
                trouble.over()
                if not self._library.all_known:
                    self._library.all_known = True
                    self._gpus.store.remove_old_libraries()

    async def _meet_node(self, node: Node) -> None:
        await self._events.write(node.warn)
        await node.tell_health(self._health.changes)
        await self._reloading.choose(node)
        await node.tell_memory(self._devices.now)

    def _node_changes(self) -> tuple[asyncio.Event, ...]:
        self._node_changed.clear()
        return self._node_changed, self._events.news
