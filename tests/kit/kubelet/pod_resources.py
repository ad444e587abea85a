"""What a kubelet knows of its pods and their units, and tells over PodResources."""

import asyncio
import random
from collections.abc import Iterator
from typing import Any, Self

import grpc

from edgeshare.kubelet.v1 import podresources_pb2 as resources_api
from edgeshare.kubelet.v1.podresources_pb2_grpc import PodResourcesListerServicer
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api
from tests.kit.kubelet.connection import Connection
from tests.kit.kubelet.pod import Pod


class PodResourcesService(PodResourcesListerServicer):
    """Pods that are not over, what was given to each, and the units that its newest plugin has."""

    def __init__(self, resource: str) -> None:
        self.resource = resource
        self.beside: dict[str, Self] = {}
        """What it knows of other resources of ours, by their name; they are never started themselves."""
        self.registrations: list[Connection] = []
        self.pods: dict[str, Pod] = {}
        """By uid: those that are not over."""
        self.held: dict[tuple[str, str], frozenset[str]] = {}
        """By pod's uid and container. Those of pods that are over, until it next looks."""
        self.answers: dict[tuple[str, str], api.ContainerAllocateResponse] = {}
        self.listed_while_allocating = 0
        self.may_list = opened()
        """Cleared: PodResources does not answer List."""
        self.may_answer_list = opened()
        """Cleared: PodResources has looked, and does not answer List yet."""
        self.others: dict[str, list[str]] = {}
        """Resources of other plugins, and their devices."""
        self.refuse_lists = 0
        """So many calls of List are one too many a second."""
        self.get_is_off = False
        self.lists = 0
        """How often it looked for one."""
        self._allocated: set[str] = set()
        self._allocating = 0
        self._changed = asyncio.Condition()

    @property
    def plugin(self) -> Connection:
        """The newest registration."""
        return self.registrations[-1]

    def healthy(self) -> set[str]:
        """The units that can be handed out at all."""
        return {unit for unit, health in self.plugin.units.items() if health == "Healthy"}

    def look(self) -> None:
        """Frees what pods had that are over."""
        for other in self.beside.values():
            other.look()
        over = [key for key in self.held if key[0] not in self.pods]
        if over:
            for key in over:
                del self.held[key]
                del self.answers[key]
            # What it is just handing out is not among what pods hold.
            self._allocated = {unit for units in self.held.values() for unit in units}

    async def List(  # noqa: N802
        self, request: resources_api.ListPodResourcesRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> resources_api.ListPodResourcesResponse:
        """Every pod that is not over. It frees what the others had, and forgets what it is just handing
        out."""
        await self.may_list.wait()
        if self.refuse_lists:
            self.refuse_lists -= 1
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
        self.listed_while_allocating += self._allocating
        self.look()
        self.lists += 1
        found = [self._describe(pod) for pod in self.pods.values()]
        async with self._changed:
            self._changed.notify_all()
        await self.may_answer_list.wait()
        return resources_api.ListPodResourcesResponse(pod_resources=found)

    async def Get(  # noqa: N802
        self, request: resources_api.GetPodResourcesRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> resources_api.GetPodResourcesResponse:
        """One pod."""
        if self.get_is_off:
            await context.abort(grpc.StatusCode.UNKNOWN, "PodResources API Get method disabled")
        for pod in self.pods.values():
            if (pod.namespace, pod.name) == (request.pod_namespace, request.pod_name):
                return resources_api.GetPodResourcesResponse(pod_resources=self._describe(pod))
        # The kubelet's own words: an error of no code of its own.
        await context.abort(
            grpc.StatusCode.UNKNOWN, f"pod {request.pod_name} in namespace {request.pod_namespace} not found"
        )
        raise AssertionError("abort raises")

    async def GetAllocatableResources(  # noqa: N802
        self, request: resources_api.AllocatableResourcesRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> resources_api.AllocatableResourcesResponse:
        """What is healthy, of all resources, each id in an entry of its own."""
        kept = [each for each in self._of_all() if each.registrations]
        ours = [(each.resource, unit) for each in kept for unit in each.healthy()]
        theirs = [(resource, device) for resource, devices in self.others.items() for device in devices]
        return resources_api.AllocatableResourcesResponse(
            devices=[
                resources_api.ContainerDevices(resource_name=resource, device_ids=[device])
                for resource, device in [*ours, *theirs]
            ]
        )

    def _of_all(self) -> list[Self]:
        return [self, *self.beside.values()]

    def _describe(self, pod: Pod) -> resources_api.PodResources:
        def containers() -> Iterator[resources_api.ContainerResources]:
            for name in pod.containers:
                devices = [
                    resources_api.ContainerDevices(resource_name=each.resource, device_ids=[unit])
                    for each in self._of_all()
                    for unit in shuffled(each.held.get((pod.uid, name), frozenset()))
                ]
                yield resources_api.ContainerResources(name=name, devices=devices)

        return resources_api.PodResources(name=pod.name, namespace=pod.namespace, containers=containers())


def opened() -> asyncio.Event:
    """An event that is set."""
    event = asyncio.Event()
    event.set()
    return event


def shuffled(units: set[str] | frozenset[str]) -> list[str]:
    """In no order, as a kubelet's sets are."""
    return random.sample(sorted(units), len(units))
