"""The node's share manager, as the plugin speaks to it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from deviceplugin.units.ledger import Allocation, Owner, Terms
from edgeshare.contract.devices import Device
from edgeshare.contract.errors import EdgeshareError, Unavailable
from edgeshare.contract.health import Health
from edgeshare.contract.names import ALLOCATIONS_SOCKET, STATUS_SOCKET
from edgeshare.contract.share_class import NUMBERS, class_of
from edgeshare.contract.text import in_one_line
from edgeshare.rpc import OWN_POOL, SAID_MAX, connect_error, error_from
from edgeshare.v1 import allocations_pb2 as api
from edgeshare.v1.allocations_pb2_grpc import AllocationsStub
from edgeshare.v1.status_pb2 import GetNodeStatusRequest
from edgeshare.v1.status_pb2_grpc import ShareStatusStub
from edgeshare.waiting import first_of

if TYPE_CHECKING:
    # The generated code has it for type checkers alone.
    from edgeshare.v1.allocations_pb2_grpc import AllocationsAsyncStub

logger = logging.getLogger(__name__)

CALL_TIMEOUT_S = 5
"""The manager answers in milliseconds; the kubelet gives a container's start 30 s in all."""

TELL_HEALTH_S = 20
"""What the manager was told of the devices' health holds for a minute."""


class Manager:
    """The share manager that serves ``runtime_dir``. Each call raises Unavailable where none answers
    there."""

    def __init__(self, runtime_dir: Path) -> None:
        self._socket = runtime_dir / ALLOCATIONS_SOCKET
        self._status_socket = runtime_dir / STATUS_SOCKET

    async def add(self, allocation_id: str, device_ids: list[str], owner: Owner, terms: Terms) -> None:
        """Adds an allocation; the same one once more changes nothing. Raises InvalidRequest, NotFound, NoRoom
        and AlreadyExists as AddAllocation tells them."""
        message = api.Allocation(
            id=allocation_id,
            device_ids=device_ids,
            request_percent=terms.request_percent,
            limit_percent=terms.limit_percent,
            share_class=api.ShareClass.ValueType(NUMBERS[terms.share_class]),
            memory_mib=terms.memory_mib,
            owner=api.Owner(namespace=owner.namespace, pod=owner.pod, pod_uid=owner.pod_uid, container=owner.container),
        )
        async with self._stub() as stub:
            await stub.AddAllocation(api.AddAllocationRequest(allocation=message), timeout=CALL_TIMEOUT_S)

    async def remove(self, allocation_id: str) -> None:
        """Removes an allocation; one that is not there changes nothing."""
        async with self._stub() as stub:
            await stub.RemoveAllocation(api.RemoveAllocationRequest(id=allocation_id), timeout=CALL_TIMEOUT_S)

    async def tell_health(self, healths: Iterable[tuple[Device, Health]]) -> None:
        """Says how each device is; that takes the place of what was said before, and holds for a minute."""
        devices = [api.DeviceHealth(device_id=device.id, cause=health.cause) for device, health in healths]
        async with self._stub() as stub:
            await stub.TellHealth(api.TellHealthRequest(devices=devices), timeout=CALL_TIMEOUT_S)

    async def keep_told(
        self, healths: Callable[[], Iterable[tuple[Device, Health]]], changed: asyncio.Event, stop: asyncio.Event
    ) -> None:
        """Says how the devices are at each change, and so often that it holds, until ``stop``: the manager's status
        shows them as they are known here, since by itself it sees no reset."""
        while not stop.is_set():
            changed.clear()
            try:
                await self.tell_health(healths())
            except EdgeshareError as error:
                # With no manager there is no status to be wrong; that none answers, the comparison says aloud.
                logger.debug("the manager is not told of the devices' health: %s", error)
            await first_of(stop, changed, timeout_s=TELL_HEALTH_S)

    async def list(self) -> list[Allocation]:
        """The allocations that pods own, with no units, which the manager does not know, and with its defaults filled
        in."""
        async with self._stub() as stub:
            answer = await stub.ListAllocations(api.ListAllocationsRequest(), timeout=CALL_TIMEOUT_S)
        return [_from_message(message) for message in answer.allocations if message.owner.pod]

    async def having_clients(self) -> set[str]:
        """The ids of the allocations with clients: processes that run, or whose memory the driver still has."""
        async with self._channel(self._status_socket) as channel:
            answer = await ShareStatusStub(channel).GetNodeStatus(GetNodeStatusRequest(), timeout=CALL_TIMEOUT_S)
        return {each.allocation.id for each in answer.allocations if each.clients}

    @asynccontextmanager
    async def _stub(self) -> AsyncIterator["AllocationsAsyncStub"]:
        async with self._channel(self._socket) as channel:
            yield AllocationsStub(channel)

    @asynccontextmanager
    async def _channel(self, socket: Path) -> AsyncIterator[grpc.aio.Channel]:
        async with grpc.aio.insecure_channel(f"unix:{socket}", OWN_POOL) as channel:
            try:
                yield channel
            except grpc.aio.AioRpcError as error:
                raise _translated(error.code(), error.details() or "no reason given", socket) from error


def _translated(code: grpc.StatusCode, text: str, socket: Path) -> EdgeshareError:
    if code is grpc.StatusCode.UNAVAILABLE:
        error = connect_error(socket)
        if not isinstance(error, FileNotFoundError | ConnectionRefusedError):
            # Its own words, where it is there.
            why = in_one_line(text, SAID_MAX) if error is None else error.strerror or error
            return Unavailable(
                f"the node's share manager at {socket} cannot be asked: {why}: containers start as soon as it can"
            )
    elif code is not grpc.StatusCode.DEADLINE_EXCEEDED:
        return error_from(code, text)
    return Unavailable(f"the node's share manager does not answer at {socket}: containers start as soon as it does")


def _from_message(message: api.Allocation) -> Allocation:
    owner = message.owner
    return Allocation(
        id=message.id,
        unit_ids=frozenset(),
        library="",
        owner=Owner(owner.namespace, owner.pod, owner.container, owner.pod_uid),
        terms=Terms(
            request_percent=message.request_percent,
            limit_percent=message.limit_percent,
            share_class=class_of(message.share_class),
            memory_mib=message.memory_mib,
        ),
    )
