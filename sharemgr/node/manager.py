"""The manager of one node, from its start to its end: puts the parts together in the right order."""

import asyncio
import gc
import logging
import resource
import socket
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from grpc.aio import Server

from edgeshare import detached
from edgeshare.contract.address import check_socket_path
from edgeshare.contract.devices import Device
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import ALLOCATIONS_SOCKET, CLIENTS_DIR, STATUS_SOCKET
from edgeshare.contract.units import NS_PER_S
from edgeshare.http import web
from edgeshare.inventory.config import InventoryConfig
from edgeshare.inventory.interface import Inventory
from edgeshare.inventory.sources import Inventories, sources_of
from edgeshare.kube.kube import Kube
from edgeshare.lock_file import locked
from edgeshare.waiting import ended, first_of, told_to_end
from sharemgr.node.config import Config
from sharemgr.node.events import Events
from sharemgr.node.machine.contexts import FILE_NAME as CONTEXTS_FILE
from sharemgr.node.machine.contexts import UNSEEN_BYTES, ContextSizes
from sharemgr.node.machine.observer import Observation, watch
from sharemgr.node.machine.store import Store
from sharemgr.node.node import Node
from sharemgr.node.service import serve_allocations, serve_status
from sharemgr.node.sockets.loop import Loop
from sharemgr.node.turns.settings import STOOD_STILL_NS

logger = logging.getLogger(__name__)

LOCK_FILE = "manager.lock"

JUDGE_S = STOOD_STILL_NS / NS_PER_S / 2
"""How often it is judged whether guarantees are met, and what each has had is charged, whatever clients do: twice
before so much goes by at once that it is nobody's."""

RESCAN_S = 5.0
"""How often a driver is looked for where there is none yet."""

SWITCH_S = 0.0002
"""How long another thread (one that waits for the driver, or writes metrics) may keep a grant waiting. Python's default
is a whole slice, 5 ms."""


class Manager:
    """Shares one node's devices. ``run`` is all of its life."""

    def __init__(
        self, config: Config, runtime_dir: Path, state_dir: Path, cluster: Callable[[], Kube] | None, node_name: str
    ) -> None:
        """``cluster`` reaches the API server, where the node is one of a cluster's."""
        self._config = config
        self._runtime_dir = runtime_dir
        self._state_dir = state_dir
        self._cluster = cluster
        self._node_name = node_name

    async def run(self, ready: Callable[[str], None]) -> None:
        """Starts, calls ``ready`` with what it shares, and ends at SIGTERM or SIGINT. While another manager serves
        its runtime folder, it waits for that one's end.

        Raises InvalidRequest or Unavailable where it cannot start; then nothing of it is left.
        """
        stopping = told_to_end()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Loop)
        _make_directory(self._runtime_dir, 0o755)
        async with locked(self._runtime_dir / LOCK_FILE, stopping, self._standing_by) as alone:
            if not alone:
                return
            raise_descriptor_limit()
            sys.setswitchinterval(SWITCH_S)
            inventory = find_inventory(self._config.inventory, self._config.wait_for_driver)
            if inventory is None:
                logger.info("there is no driver, or no device: waiting for one")
                inventory = await self._wait(ready, stopping, loop)
            if inventory is not None:
                await self._share(inventory, ready, stopping, loop)

    @asynccontextmanager
    async def _standing_by(self, holder: str) -> AsyncIterator[None]:
        """While another manager has the node: tells so, to probes and to the log."""
        async with AsyncExitStack() as stack:
            if self._config.metrics_address:
                # As those of one that serves: only where somebody asks for them.
                from sharemgr.node.web_pages import pages_standing_by  # noqa: PLC0415

                pages = pages_standing_by(holder)
                address = await stack.enter_async_context(web.serving(self._config.metrics_address, pages))
                logger.info("probes are answered at http://%s/readyz", address)
            logger.info(
                "another share manager (pid %s) serves %s: ready to take over when it ends; to have two beside each "
                "other, choose another --runtime-dir",
                holder,
                self._runtime_dir,
            )
            yield

    async def _wait(self, ready: Callable[[str], None], stopping: asyncio.Event, loop: Loop) -> Inventory | None:
        """Answers calls, with no device, until there is one; None where it is to end before that."""
        async with AsyncExitStack() as stack:
            await self._open(stack, (), ContextSizes(), ready, loop)
            while not stopping.is_set():
                await first_of(stopping, timeout_s=RESCAN_S)
                if stopping.is_set():
                    break
                inventory = await detached.result(lambda: find_inventory(self._config.inventory, True))
                if inventory is not None:
                    return inventory
        return None

    async def _share(
        self, inventory: Inventory, ready: Callable[[str], None], stopping: asyncio.Event, loop: Loop
    ) -> None:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(detached.close, inventory.close)
            devices = tuple(inventory.devices())
            contexts = ContextSizes(self._state_dir / CONTEXTS_FILE, driver_of(devices), UNSEEN_BYTES)
            node = await self._open(stack, devices, contexts, ready, loop)
            seen = asyncio.Event()

            def deliver(observation: Observation) -> None:
                node.observe(observation)
                seen.set()

            tasks = [
                asyncio.create_task(watch(inventory, devices, node.look, deliver, node.occupied, node.glances)),
                asyncio.create_task(keep_contexts(contexts, seen)),
                asyncio.create_task(keep_judging(node)),
            ]
            for task in tasks:
                stack.push_async_callback(ended, task)
                # If looking ever fails, that must end the manager, not pass unseen.
                task.add_done_callback(lambda _: stopping.set())
            await stopping.wait()
            logger.info("ending")
            # Before the servers: what is held only for the time of a call must find its folder again
            # after a restart.
            node.close()
            for task in tasks:
                if task.done():
                    task.result()

    async def _open(
        self,
        stack: AsyncExitStack,
        devices: tuple[Device, ...],
        contexts: ContextSizes,
        ready: Callable[[str], None],
        loop: Loop,
    ) -> Node:
        """Begins to serve these devices, until the stack ends."""
        # Each folder under it belongs to one container; nobody but we goes from one to another.
        _make_directory(self._runtime_dir / CLIENTS_DIR, 0o700)
        _make_directory(self._state_dir, 0o700)
        status_path = claim_socket(self._runtime_dir / STATUS_SOCKET)
        allocations_path = claim_socket(self._runtime_dir / ALLOCATIONS_SOCKET)
        events = Events(self._node_name, self._cluster)
        stack.push_async_callback(events.close)
        clients_dir = self._runtime_dir / CLIENTS_DIR
        node = Node(self._config, devices, clients_dir, Store(self._state_dir), events, loop, contexts)
        stack.callback(node.close)
        node.restore()
        await stack.enter_async_context(serving(await serve_status(status_path, node)))
        await stack.enter_async_context(serving(await serve_allocations(allocations_path, node)))
        if self._config.metrics_address:
            # Loaded only where somebody asks for it: memory is counted on a node.
            from sharemgr.node.web_pages import pages_of  # noqa: PLC0415

            address = await stack.enter_async_context(web.serving(self._config.metrics_address, pages_of(node)))
            logger.info("metrics at http://%s/metrics", address)
        if self._config.remote_status:
            from sharemgr.node.remote import remote_status  # noqa: PLC0415

            remote = remote_status.serving(self._config.remote_status, node)
            logger.info("status at %s, over TLS", await stack.enter_async_context(remote))
        settle_memory()
        ready(f"{len(devices)} devices, {len(node.allocations())} allocations, {self._runtime_dir}")
        return node


async def keep_judging(node: Node) -> None:
    """Has the node judge its guarantees, until it is cancelled: every second while there are allocations."""
    while True:
        await node.occupied.wait()
        await asyncio.sleep(JUDGE_S)
        await node.judge()


async def keep_contexts(contexts: ContextSizes, seen: asyncio.Event) -> None:
    """Keeps on disk what contexts take, until it is cancelled: looks whenever the driver was asked. A thread waits for
    the disk, so that no grant does."""
    while True:
        await seen.wait()
        seen.clear()
        known = contexts.unsaved()
        if known is not None:
            await asyncio.to_thread(contexts.save, known)


def driver_of(devices: tuple[Device, ...]) -> str:
    """The version of the driver that has them, where it says one; their inventory is open."""
    if not any(device.source == "nvml" for device in devices):
        return ""
    # Loaded only where there is such a driver: memory is counted on a node.
    from edgeshare.inventory.nvml.driver import driver_version  # noqa: PLC0415

    return driver_version()


def find_inventory(config: InventoryConfig, wait: bool) -> Inventory | None:
    """This machine's devices, opened. Where there is none: None if one is to be waited for; else raises Unavailable
    where there is no driver, or none that answers."""
    inventory = Inventories(sources_of(config))
    if inventory.devices():
        return inventory
    missing = (*inventory.troubles, *inventory.absent)
    if not wait and not missing:
        return inventory
    inventory.close()
    if wait:
        return None
    raise Unavailable("; ".join(missing))


def claim_socket(path: Path) -> Path:
    """Makes sure that a socket can be made at ``path``: one that nobody listens on any more is removed.

    Raises InvalidRequest for a path that is too long, Unavailable for one that is in use.
    """
    check_socket_path(path, "choose a shorter --runtime-dir")
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return path
    if not stat.S_ISSOCK(mode):
        raise Unavailable(f"{path} is there and is no socket: move it away, or choose another --runtime-dir")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return path
        except OSError as error:
            raise Unavailable(f"{path} is in use by another program: {error.strerror}") from error
    raise Unavailable(f"{path} is in use by another program: end it, or choose another --runtime-dir")


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[None]:
    """Stops the server at the end; gRPC removes its socket."""
    try:
        yield
    finally:
        await server.stop(grace=None)


def raise_descriptor_limit() -> None:
    """Lets us have as many descriptors as we may: each client costs four, and 1,024 is the usual beginning."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def settle_memory() -> None:
    """Keeps the garbage collector out of the way of grants.

    A full collection walks over every object that it does not know to be permanent: 5 to 17 ms once gRPC and pydantic
    are loaded (43,000 objects, Python 3.11), and it may begin in the middle of handing the device over. What is there
    now stays for ever, so it is made permanent; what comes later is little, and collected in microseconds.
    """
    gc.collect()
    gc.freeze()


def _make_directory(path: Path, mode: int) -> None:
    try:
        path.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"{path} cannot be made: {error.strerror}") from error
