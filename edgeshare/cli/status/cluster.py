"""A cluster's devices and who has them, by what its API server knows: each node's plugin tells it of devices and
allocations, and kube-scheduler why a pod waits. How much of a share is used, the nodes' managers alone know."""

from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict

from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.names import ACCELERATOR_NODES
from edgeshare.contract.text import in_one_line
from edgeshare.kube.kube import Kube
from edgeshare.kube.objects import accelerator_node
from edgeshare.kube.objects.accelerator_node import name_of, status_of
from edgeshare.shown.waiting_pods import LINE_MAX, PODS, WAITING, Line, Waiting, parse_waiting

Json = dict[str, Any]


class Part(BaseModel):
    """A part of an object: immutable, and what else the object says is not looked at."""

    model_config = ConfigDict(frozen=True)


class Taken(Part):
    """What one container has of a device."""

    namespace: Line = ""
    pod: Line = ""
    """Empty where the node does not know yet whose it is."""
    container: Line = ""
    percent: int
    memory_mib: int


class Device(Part):
    """One device of a node."""

    id: Line
    kind: Line = ""
    model: Line = ""
    memory_mib: int = 0
    healthy: bool
    why: Line = ""
    """Where it is not healthy."""
    taken: list[Taken] = []

    @property
    def percent(self) -> int:
        """How much of it is taken."""
        return sum(each.percent for each in self.taken)

    @property
    def taken_mib(self) -> int:
        """How much of its memory is taken."""
        return sum(each.memory_mib for each in self.taken)


class Node(Part):
    """A node with devices."""

    name: str
    devices: list[Device] = []
    fault: str = ""
    """Why it cannot be read; then it has no devices."""


class Cluster(Part):
    """All nodes with devices, and all pods that wait for one."""

    nodes: list[Node]
    waiting: list[Waiting]


def look(kube: Kube) -> Cluster:
    """As it is now, by names. Raises Unavailable where the API server cannot be asked."""
    nodes, _ = kube.objects(ACCELERATOR_NODES, "", parse_node)
    nodes.sort(key=lambda node: node.name)
    return Cluster(nodes=nodes, waiting=waiting_pods(kube, ""))


def waiting_pods(kube: Kube, namespace: str) -> list[Waiting]:
    """The pods that wait in a namespace, or in all where it is empty, by names. Raises Unavailable as ``look``."""
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods" if namespace else PODS
    waiting, _ = kube.objects(path, WAITING, parse_waiting)
    return sorted(waiting, key=lambda pod: (pod.namespace, pod.pod))


def parse_node(thing: Json) -> Node:
    """A node by its AcceleratorNode; one that tells nonsense has a fault. Raises InvalidRequest for what is none."""
    name = in_one_line(name_of(thing), LINE_MAX)
    try:
        told = status_of(thing)
    except InvalidRequest as error:
        return Node(name=name, fault=str(error))
    return Node(name=name, devices=[_device(each, told.allocations) for each in told.devices])


def _device(device: accelerator_node.Device, allocations: list[accelerator_node.Allocation]) -> Device:
    return Device(
        id=device.id,
        kind=device.kind,
        model=device.model,
        memory_mib=device.memory_mib,
        healthy=device.healthy,
        why="" if device.healthy else device.cause or "not healthy",
        taken=[
            Taken(
                namespace=each.pod.namespace,
                pod=each.pod.name,
                container=each.container,
                percent=each.units_each,
                memory_mib=each.memory_mib,
            )
            for each in allocations
            if device.id in each.devices
        ],
    )
