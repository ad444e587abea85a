"""A cluster's devices and who has them, by what its API server knows: each node's plugin tells it of devices and
allocations, and kube-scheduler why a pod waits. How much of a share is used, the nodes' managers alone know."""

from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from edgeshare.contract.accelerator_kind import RESOURCES
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.names import ACCELERATOR_NODES, GPU_MEMORY_MIB
from edgeshare.contract.text import in_one_line
from edgeshare.contract.units import peak
from edgeshare.kube.faults import first_fault
from edgeshare.kube.kube import Kube
from edgeshare.kube.objects import accelerator_node
from edgeshare.kube.objects.accelerator_node import name_of, status_of
from edgeshare.kube.objects.pod_containers import containers

ASKED = (*RESOURCES, GPU_MEMORY_MIB)
WAITING = "spec.nodeName=,status.phase=Pending"
PODS = "/api/v1/pods"

Json = dict[str, Any]

LINE_MAX = 2_000
"""Characters: twice what kube-scheduler cuts its messages at."""

Line = Annotated[str, AfterValidator(partial(in_one_line, most=LINE_MAX))]
"""What somebody wrote who may write to an API server, and which is to be shown on a terminal."""


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
        """How much of its memory is promised."""
        return sum(each.memory_mib for each in self.taken)


class Node(Part):
    """A node with devices."""

    name: str
    devices: list[Device] = []
    fault: str = ""
    """Why it cannot be read; then it has no devices."""


class Waiting(Part):
    """A pod that asks for a share and has no node."""

    namespace: str
    pod: str
    asks: dict[str, int]
    """Of all its containers together, by resource."""
    scheduler: str = ""
    why: str = ""
    """As its scheduler says; empty while that did not look at it."""


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
    """Those of a namespace, or of all where it is empty, by names. Raises Unavailable as ``look``."""
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods" if namespace else PODS
    waiting, _ = kube.objects(path, WAITING, parse_waiting)
    return sorted(waiting, key=lambda pod: (pod.namespace, pod.pod))


class _Metadata(Part):
    name: Line = Field(min_length=1)
    namespace: Line = ""


class _Spec(Part):
    scheduler_name: Line = Field(default="", alias="schedulerName")


class _Condition(Part):
    type: str
    status: str
    message: Line = ""


class _State(Part):
    conditions: list[_Condition] = []


class _WaitingPod(Part):
    metadata: _Metadata
    spec: _Spec
    status: _State = _State()


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


def parse_waiting(thing: Json) -> Waiting | None:
    """A pod that has no node; None for one that asks for no share. Raises InvalidRequest for what is no pod."""
    try:
        pod = _WaitingPod.model_validate(thing)
        asking = list(containers(thing["spec"]))
    except ValidationError as error:
        raise InvalidRequest(f"expected a pod: {first_fault(error)}") from error
    # What it takes at a time: as much as its largest plain init container, or all the others together.
    asks = {name: peak((each.asked(name), each.runs_along) for each in asking) for name in ASKED}
    if not any(asks[name] for name in RESOURCES):
        return None
    return Waiting(
        namespace=pod.metadata.namespace,
        pod=pod.metadata.name,
        asks={name: count for name, count in asks.items() if count},
        scheduler=pod.spec.scheduler_name,
        why=next((each.message for each in pod.status.conditions if each.type == "PodScheduled"), ""),
    )
