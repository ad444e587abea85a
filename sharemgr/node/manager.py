"""The manager of one node, from its start to its end: puts the parts together in the right order."""

import asyncio
import fcntl
import gc
import logging
import os
import resource
import signal
import socket
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from grpc.aio import Server

from edgeshare.errors import InvalidRequest, Unavailable
from edgeshare.inventory.nvml import NvmlInventory
from edgeshare.names import ALLOCATIONS_SOCKET, CLIENTS_DIR, STATUS_SOCKET
from sharemgr.node.config import Config
from sharemgr.node.loop import Loop
from sharemgr.node.node import Node
from sharemgr.node.observer import watch
from sharemgr.node.server import SOCKET_PATH_BYTES_MAX
from sharemgr.node.service import serve_allocations, serve_status
from sharemgr.node.store import Store

logger = logging.getLogger(__name__)

LOCK_FILE = "manager.lock"


class Manager:
    """Shares one node's devices. ``run`` is all of its life."""

    def __init__(self, config: Config, runtime_dir: Path, state_dir: Path) -> None:
        self._config = config
        self._runtime_dir = runtime_dir
        self._state_dir = state_dir

    async def run(self, ready: Callable[[str], None]) -> None:
        """Starts, calls ``ready`` with what it shares, and ends at SIGTERM or SIGINT.

        Raises InvalidRequest or Unavailable where it cannot start; then nothing of it is left.
        """
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Loop)
        for ending in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(ending, stopping.set)
        async with AsyncExitStack() as stack:
            _make_directory(self._runtime_dir, 0o755)
            stack.enter_context(locked(self._runtime_dir / LOCK_FILE))
            inventory = stack.enter_context(NvmlInventory())
            devices = tuple(inventory.devices())
            # Each folder under it belongs to one container; nobody but we goes from one to another.
            _make_directory(self._runtime_dir / CLIENTS_DIR, 0o700)
            _make_directory(self._state_dir, 0o700)
            status_path = claim_socket(self._runtime_dir / STATUS_SOCKET)
            allocations_path = claim_socket(self._runtime_dir / ALLOCATIONS_SOCKET)
            raise_descriptor_limit()
            node = Node(self._config, devices, self._runtime_dir / CLIENTS_DIR, Store(self._state_dir), loop)
            stack.callback(node.close)
            node.restore()
            await stack.enter_async_context(serving(await serve_status(status_path, node), status_path))
            await stack.enter_async_context(serving(await serve_allocations(allocations_path, node), allocations_path))
            watching = asyncio.create_task(watch(inventory, devices, node.observe))
            stack.push_async_callback(_cancelled, watching)
            # If looking at the devices ever fails, that must end the manager, not pass unseen.
            watching.add_done_callback(lambda _: stopping.set())
            settle_memory()
            count = len(node.allocations())
            ready(f"{len(devices)} devices, {count} allocations, {self._runtime_dir}")
            await stopping.wait()
            logger.info("ending")
            # Before the servers: what is held only for the time of a call must find its folder again
            # after a restart.
            node.close()
            if watching.done():
                watching.result()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock that one manager at a time can have; raises Unavailable where another has it."""
    try:
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise Unavailable(f"{path} cannot be opened: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise Unavailable(
                f"another share manager (pid {file.read().strip() or 'unknown'}) serves {path.parent}: "
                "end it, or choose another --runtime-dir"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        # The file stays: who removed it could let a third manager lock a new one beside the second's.
        yield


def claim_socket(path: Path) -> Path:
    """Makes sure that a socket can be made at ``path``: one that nobody listens on any more is removed.

    Raises InvalidRequest for a path that is too long, Unavailable for one that is in use.
    """
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES_MAX:
        raise InvalidRequest(
            f"{path} is longer than the {SOCKET_PATH_BYTES_MAX} bytes of a socket's path: "
            "choose a shorter --runtime-dir"
        )
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
async def serving(server: Server, path: Path) -> AsyncIterator[None]:
    """Stops the server at the end, and removes its socket."""
    try:
        yield
    finally:
        # gRPC removes the socket itself.
        await server.stop(grace=None)


def raise_descriptor_limit() -> None:
    """Lets us have as many descriptors as we may: each client costs two, and 1,024 is the usual beginning."""
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


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
