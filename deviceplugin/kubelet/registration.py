"""Being registered with the kubelet, and staying so.

Each time under a socket name that was never used before, served before the kubelet is told of it. A session
is over when the kubelet started anew (it then deletes every socket in the folder, ours too), or has stopped
watching: it does not come back by itself. The old server ends before a new one registers: up to Kubernetes
1.36 the end of an old stream takes the newest registration down with it.
"""

import asyncio
import logging
import random
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from deviceplugin.kubelet.service import OPTIONS, Service
from edgeshare.contract.address import check_socket_path
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import KUBELET_SOCKET
from edgeshare.folder_watch import FolderWatch
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api
from edgeshare.kubelet.v1beta1.deviceplugin_pb2_grpc import (
    RegistrationStub,
    add_DevicePluginServicer_to_server,
)
from edgeshare.log_trouble import Trouble
from edgeshare.rpc import OWN_POOL, connect_error
from edgeshare.waiting import Awaited, first_of, is_done

logger = logging.getLogger(__name__)

API_VERSION = "v1beta1"

REGISTER_TIMEOUT_S = 15
"""The kubelet dials back inside the call, for 10 s at most."""

LISTED_TIMEOUT_S = 5
"""From being registered to having sent a list."""

STOP_GRACE_S = 2
"""For calls that are under way when a session ends; the kubelet repeats PreStartContainer anyway."""

STEADY_S = 10
"""After so long a time the next failure is the first again."""

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0


def pause_s(failures: int, jitter: float) -> float:
    """How long to wait after so many failed attempts in a row; ``jitter`` from 0 to 1 spreads it over half of
    that."""
    longest: float = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures - 1, 10))
    return longest * (0.5 + 0.5 * jitter)


class Lifecycle:
    """One resource's registration in one plugin folder."""

    def __init__(self, folder: Path, resource: str, make_service: Callable[[], Service], socket_prefix: str) -> None:
        """Raises InvalidRequest where the folder's path leaves no room for a socket's name."""
        check_socket_path(_own_socket(folder, socket_prefix), "use a shorter --kubelet-dir")
        self.resource = resource
        self.not_ready = "the kubelet was not asked yet"
        """Why the kubelet has no list of ours; empty while its stream is open and the list sent."""
        self._folder = folder
        self._socket_prefix = socket_prefix
        self._make_service = make_service
        self._watch = FolderWatch(folder)
        self._trouble = Trouble(logger, "not registered, trying again", f"{resource} is registered again")

    async def run(self, stop: asyncio.Event, registered: Callable[[], None]) -> None:
        """Serves and registers, again and again, until ``stop``; calls ``registered`` each time that it is."""
        self._clear_leftovers()
        loop = asyncio.get_running_loop()
        failures = 0
        async with self._watch.running():
            while not stop.is_set():
                change = self._watch.next_change()
                began_s = loop.time()
                try:
                    await self._session(stop, registered)
                except Unavailable as error:
                    self.not_ready = str(error)
                    self._trouble.fails(error)
                # A kubelet that registers us and at once lets go again is not to be kept busy with it.
                failures = failures + 1 if loop.time() - began_s < STEADY_S else 1
                # What may have changed is that the kubelet's socket is there: no need to wait any longer.
                await first_of(stop, change, timeout_s=pause_s(failures, random.random()))

    async def _session(self, stop: asyncio.Event, registered: Callable[[], None]) -> None:
        kubelet_socket = self._folder / KUBELET_SOCKET
        kubelet = _identity(kubelet_socket)
        if kubelet is None:
            raise Unavailable(f"no kubelet listens at {kubelet_socket}: start it, or name its folder (kubelet_dir)")
        service = self._make_service()
        async with self._serving(service) as own_socket:

            def is_over() -> bool:
                return stop.is_set() or not own_socket.exists() or _identity(kubelet_socket) != kubelet

            # Whatever it is that the kubelet lets us wait for: one that starts anew will not do it any more.
            asking = asyncio.create_task(self._register(kubelet_socket, own_socket.name))
            try:
                if await self._wait(is_over, stop, asking):
                    await asking
                    await self._wait(is_over, stop, service.listed, service.unwatched, timeout_s=LISTED_TIMEOUT_S)
            finally:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
            if not is_over():
                if not service.listed.is_set():
                    raise Unavailable("the kubelet registered us but takes no list: look into its log")
                logger.info("registered %s as %s", self.resource, own_socket.name)
                self.not_ready = ""
                self._trouble.over()
                registered()
                await self._wait(is_over, stop, service.unwatched)
            self.not_ready = _end(stop, service)
            logger.info("%s", self.not_ready)

    async def _wait(self, is_over: Callable[[], bool], *awaited: Awaited, timeout_s: float | None = None) -> bool:
        """Returns when one of these is done (True), or the session is over, or the time (False)."""
        loop = asyncio.get_running_loop()
        end_s = None if timeout_s is None else loop.time() + timeout_s
        while True:
            change = self._watch.next_change()
            if is_over():
                return False
            if any(is_done(each) for each in awaited):
                return True
            left_s = None if end_s is None else end_s - loop.time()
            if left_s is not None and left_s <= 0:
                return False
            await first_of(*awaited, change, timeout_s=left_s)

    @asynccontextmanager
    async def _serving(self, service: Service) -> AsyncIterator[Path]:
        path = _own_socket(self._folder, self._socket_prefix)
        server = grpc.aio.server()
        add_DevicePluginServicer_to_server(service, server)
        try:
            server.add_insecure_port(f"unix:{path}")
        except RuntimeError as error:
            raise Unavailable(f"cannot listen at {path}: {error}") from error
        try:
            await server.start()
            yield path
        finally:
            service.close()
            await server.stop(STOP_GRACE_S)
            path.unlink(missing_ok=True)

    async def _register(self, kubelet_socket: Path, endpoint: str) -> None:
        request = api.RegisterRequest(
            version=API_VERSION, endpoint=endpoint, resource_name=self.resource, options=OPTIONS
        )
        async with grpc.aio.insecure_channel(f"unix:{kubelet_socket}", OWN_POOL) as channel:
            try:
                await RegistrationStub(channel).Register(request, timeout=REGISTER_TIMEOUT_S)
            except grpc.aio.AioRpcError as error:
                raise Unavailable(f"the kubelet at {kubelet_socket} does not register us: {error.details()}") from error

    def _clear_leftovers(self) -> None:
        """Removes the sockets of plugins that were killed; one that still answers belongs to one that
        runs."""
        for path in self._folder.glob(f"{self._socket_prefix}*.sock"):
            if isinstance(connect_error(path), ConnectionRefusedError):
                path.unlink(missing_ok=True)


def _end(stop: asyncio.Event, service: Service) -> str:
    if stop.is_set():
        return "ending"
    return "the kubelet no longer watches" if service.unwatched.is_set() else "the kubelet started anew"


def _own_socket(folder: Path, prefix: str) -> Path:
    return folder / f"{prefix}{uuid.uuid4().hex[:12]}.sock"


def _identity(path: Path) -> tuple[int, int] | None:
    """Tells one socket from the next under the same name. Its inode number alone can come again."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns
