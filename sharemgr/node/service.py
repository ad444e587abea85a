"""The manager's two gRPC services, each on a socket of its own. Translates calls; decides nothing."""

import asyncio
import logging
import os
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import grpc
from grpc.aio import Server
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health
from grpc_reflection.v1alpha import reflection

from edgeshare.contract.errors import InvalidRequest, NotFound, Unavailable
from edgeshare.contract.units import NS_PER_MS, NS_PER_S
from edgeshare.rpc import STRANGERS, Context, errors_told
from edgeshare.v1 import allocations_pb2 as allocations
from edgeshare.v1 import status_pb2 as status
from edgeshare.v1.allocations_pb2_grpc import AllocationsServicer, add_AllocationsServicer_to_server
from edgeshare.v1.status_pb2_grpc import ShareStatusServicer, add_ShareStatusServicer_to_server
from sharemgr.node.node import Node
from sharemgr.node.sockets.closer import refuses_descriptors

logger = logging.getLogger(__name__)

WATCH_INTERVAL_NS = NS_PER_S
WATCH_INTERVAL_NS_MIN = 100 * NS_PER_MS

TURNS_INTERVAL_S = 0.1

STATUS_CALLS_MAX = 64
"""Calls at a time on the status socket, which anybody on the node may reach; more are refused."""

STATUS_STREAMS_MAX = 32
"""Of these so many may follow: who does not read what it follows keeps its place, and others are to be answered."""

MODE_ALL, MODE_OWN = 0o666, 0o600
"""Of a socket that anybody may connect to; that root and the manager's own user may."""


class StatusService(ShareStatusServicer):
    """Who has what; read only."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._streams = 0

    async def GetNodeStatus(self, request: status.GetNodeStatusRequest, context: Context) -> status.NodeStatus:
        return await self._node.status()

    async def WatchShares(
        self, request: status.WatchSharesRequest, context: Context
    ) -> AsyncIterator[status.NodeStatus]:
        interval_ns = request.interval_ns or WATCH_INTERVAL_NS
        async with errors_told(context):
            if interval_ns < WATCH_INTERVAL_NS_MIN:
                raise InvalidRequest(
                    f"interval_ns {interval_ns} is too short: ask for {WATCH_INTERVAL_NS_MIN} or more, or 0"
                )
        loop = asyncio.get_running_loop()
        next_s = loop.time()
        async with self._following(context):
            while True:
                yield await self._node.status()
                # From the time it was due, not from now: so that the interval holds on average.
                next_s = max(next_s + interval_ns / NS_PER_S, loop.time())
                await asyncio.sleep(next_s - loop.time())

    async def WatchTurns(self, request: status.WatchTurnsRequest, context: Context) -> AsyncIterator[status.Turns]:
        async with errors_told(context), self._following(context):
            with self._node.recorders.open() as recorder:
                while True:
                    yield self._node.recorders.read(recorder)
                    if not recorder.more:
                        await asyncio.sleep(TURNS_INTERVAL_S)

    @asynccontextmanager
    async def _following(self, context: Context) -> AsyncIterator[None]:
        if self._streams == STATUS_STREAMS_MAX:
            await context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{STATUS_STREAMS_MAX} follow this manager already: ask again when one of them has ended",
            )
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1


class AllocationsService(AllocationsServicer):
    """Who may use what. Its socket's mode lets root and the manager's own user in, and nobody else."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def AddAllocation(
        self, request: allocations.AddAllocationRequest, context: Context
    ) -> allocations.AddAllocationResponse:
        async with errors_told(context):
            added, socket_path = await self._node.add(request.allocation)
        return allocations.AddAllocationResponse(allocation=added, socket_path=str(socket_path))

    async def UpdateAllocation(
        self, request: allocations.UpdateAllocationRequest, context: Context
    ) -> allocations.UpdateAllocationResponse:
        async with errors_told(context):
            updated = await self._node.update(request)
        return allocations.UpdateAllocationResponse(allocation=updated)

    async def RemoveAllocation(
        self, request: allocations.RemoveAllocationRequest, context: Context
    ) -> allocations.RemoveAllocationResponse:
        async with errors_told(context):
            await self._node.remove(request.id)
        return allocations.RemoveAllocationResponse()

    async def ListAllocations(
        self, request: allocations.ListAllocationsRequest, context: Context
    ) -> allocations.ListAllocationsResponse:
        return allocations.ListAllocationsResponse(allocations=self._node.allocations())

    async def TellHealth(
        self, request: allocations.TellHealthRequest, context: Context
    ) -> allocations.TellHealthResponse:
        self._node.tell_health({device.device_id: device.cause for device in request.devices})
        return allocations.TellHealthResponse()

    async def HoldAllocation(
        self, request: allocations.HoldAllocationRequest, context: Context
    ) -> AsyncIterator[allocations.HoldAllocationResponse]:
        async with errors_told(context):
            held, socket_path, removed = self._node.hold(request.allocation)
        try:
            yield allocations.HoldAllocationResponse(allocation=held, socket_path=str(socket_path))
            await removed.wait()
        finally:
            # However the call ended: the caller let go, died, or the manager ends.
            self._node.let_go(held.id)
        async with errors_told(context):
            raise NotFound(f"allocation {held.id} was removed")


async def serve_status(path: Path, node: Node) -> Server:
    """Starts ShareStatus on a socket that anybody may connect to, where the kernel lets that do no harm."""
    server = grpc.aio.server(maximum_concurrent_rpcs=STATUS_CALLS_MAX, options=STRANGERS)
    add_ShareStatusServicer_to_server(StatusService(node), server)
    await _start(server, path, MODE_ALL, status.DESCRIPTOR.services_by_name["ShareStatus"].full_name)
    return server


async def serve_allocations(path: Path, node: Node) -> Server:
    """Starts Allocations on a socket that root and the manager's own user may connect to."""
    server = grpc.aio.server()
    add_AllocationsServicer_to_server(AllocationsService(node), server)
    await _start(server, path, MODE_OWN, allocations.DESCRIPTOR.services_by_name["Allocations"].full_name)
    return server


async def _start(server: Server, path: Path, mode: int, service: str) -> None:
    checks = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    for name in ("", service):
        await checks.set(name, health_pb2.HealthCheckResponse.SERVING)
    names = (service, reflection.SERVICE_NAME, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name)
    reflection.enable_server_reflection(names, server)
    _listen(server, path, mode)
    await server.start()


def _listen(server: Server, path: Path, mode: int) -> None:
    """gRPC drops descriptors that are passed along in the few threads that serve all connections of all servers of the
    process (grpcio 1.85 adds one a second where all are held). A dozen that are slow to close (closer.py) have nobody
    answered for as long, and one in a connection that is sent away, as there are too many, has nobody let in for as
    long as its sender likes. It has no option for that; the kernel has one, of the socket that gRPC made."""
    # Nobody else may connect before that does no harm.
    before = os.umask(0o777 & ~MODE_OWN)
    try:
        server.add_insecure_port(f"unix:{path}")
        with _listener_at(path) as listener:
            harmless = refuses_descriptors(listener)
        if harmless:
            path.chmod(mode)
        elif mode != MODE_OWN:
            logger.warning(
                "%s: root and this manager's user alone may connect: a kernel before Linux 6.16 lets whoever may "
                "pass descriptors along, and by some that are slow to close hold up all calls",
                path,
            )
    except (RuntimeError, OSError) as error:
        raise Unavailable(f"{path} cannot be made: {error}") from error
    finally:
        os.umask(before)


def _listener_at(path: Path) -> socket.socket:
    """A second descriptor of the socket of this process that listens at a path; to be closed. Raises OSError."""
    for path_of_fd in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            # One that another thread has closed since it was listed, or that cannot be had twice, is none of ours.
            duplicate = os.dup(int(path_of_fd.name))
            if not stat.S_ISSOCK(os.fstat(duplicate).st_mode):
                os.close(duplicate)
                continue
            found = socket.socket(fileno=duplicate)
            if found.getsockname() == str(path) and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                return found
            found.close()
    raise FileNotFoundError(f"nothing in this process listens at {path}")
