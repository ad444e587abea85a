"""Which containers of this node hold which units, as the kubelet knows it. The one importer of its
PodResources API."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from edgeshare.contract.errors import Unavailable
from edgeshare.kubelet.v1 import podresources_pb2 as api
from edgeshare.kubelet.v1.podresources_pb2_grpc import PodResourcesListerStub
from edgeshare.rpc import OWN_POOL

if TYPE_CHECKING:
    # The generated code has it for type checkers alone.
    from edgeshare.kubelet.v1.podresources_pb2_grpc import PodResourcesListerAsyncStub

CALL_TIMEOUT_S = 2
"""The kubelet answers in milliseconds; a pod's admission may wait for this call."""

TRIES = 4
"""The kubelet answers 100 calls a second for all its clients together, and refuses the others at once."""

FIRST_PAUSE_S = 0.05

Pod = tuple[str, str]
"""(namespace, name)"""

Units = Mapping[str, frozenset[str]]
"""Container → the ids that it holds of one resource; empty where it holds none."""


class PodResources:
    """The kubelet's PodResources service, for one resource. Each call raises Unavailable where none
    answers."""

    def __init__(self, socket: Path, resource: str) -> None:
        self._socket = socket
        self._resource = resource

    async def list(self) -> dict[Pod, Units]:
        """Every pod that is not over, those under admission included, with all its containers but plain init
        containers. Not to be called while an Allocate is in flight."""
        async with self._stub() as stub:
            for pause_s in [FIRST_PAUSE_S * 2**n for n in range(TRIES - 1)]:
                try:
                    answer = await stub.List(api.ListPodResourcesRequest(), timeout=CALL_TIMEOUT_S)
                    break
                except grpc.aio.AioRpcError as error:
                    if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                        raise
                await asyncio.sleep(pause_s)
            else:
                answer = await stub.List(api.ListPodResourcesRequest(), timeout=CALL_TIMEOUT_S)
        return {(pod.namespace, pod.name): self._units(pod) for pod in answer.pod_resources}

    async def get(self, namespace: str, name: str) -> Units | None:
        """One pod's containers, or None where the kubelet has no such pod. May be called at any time."""
        request = api.GetPodResourcesRequest(pod_namespace=namespace, pod_name=name)
        async with self._stub() as stub:
            try:
                answer = await stub.Get(request, timeout=CALL_TIMEOUT_S)
            except grpc.aio.AioRpcError as error:
                # The kubelet's error for a pod that it has not carries no code of its own.
                if error.code() is grpc.StatusCode.UNKNOWN and "not found" in (error.details() or ""):
                    return None
                raise
        return self._units(answer.pod_resources)

    async def others(self) -> dict[str, frozenset[str]]:
        """The ids of the healthy devices that other resources of this node have: those of other device plugins. May be
        called at any time."""
        async with self._stub() as stub:
            answer = await stub.GetAllocatableResources(api.AllocatableResourcesRequest(), timeout=CALL_TIMEOUT_S)
        found: defaultdict[str, set[str]] = defaultdict(set)
        for devices in answer.devices:
            if devices.resource_name != self._resource:
                found[devices.resource_name].update(devices.device_ids)
        return {resource: frozenset(ids) for resource, ids in found.items()}

    def _units(self, pod: api.PodResources) -> Units:
        return {
            container.name: frozenset(
                unit_id
                for devices in container.devices
                if devices.resource_name == self._resource
                for unit_id in devices.device_ids
            )
            for container in pod.containers
        }

    @asynccontextmanager
    async def _stub(self) -> AsyncIterator["PodResourcesListerAsyncStub"]:
        async with grpc.aio.insecure_channel(f"unix:{self._socket}", OWN_POOL) as channel:
            try:
                yield PodResourcesListerStub(channel)
            except grpc.aio.AioRpcError as error:
                raise Unavailable(
                    f"the kubelet's PodResources does not answer at {self._socket}: {error.details()}"
                ) from error
