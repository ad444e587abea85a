"""Which nodes have devices, which pods have allocations there, and where each one's share manager is asked: as the API
server tells."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, IPvAnyAddress, ValidationError

from edgeshare.contract.address import join_address
from edgeshare.contract.errors import InvalidRequest
from edgeshare.kube.faults import first_fault
from edgeshare.kube.objects.accelerator_node import Name, name_of, status_of
from sharemgr.cluster.config import ObjectName
from sharemgr.cluster.replica.announcing import SERVICE_LABEL
from sharemgr.cluster.status.query import Query

ADDRESSES_MAX = 4
"""Of one node: while its manager is being replaced there are two."""


@dataclass(frozen=True, slots=True)
class EndpointSlice:
    """Some endpoints of a Service."""

    name: str
    service: str
    managers: tuple[tuple[str, str], ...]
    """Node and address of each, those first that are ready."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A node with devices."""

    name: str
    pods: frozenset[tuple[str, str]]
    """Namespace and name of those that have allocations there."""


class Directory:
    """The nodes with devices, and where their managers are. All calls are immediate."""

    def __init__(self, service: ObjectName) -> None:
        """``service``: whose endpoints the managers are."""
        self._service = service
        self._slices: dict[str, EndpointSlice] | None = None
        self._placed: dict[str, Placed] | None = None
        self.known = asyncio.Event()
        """Set when both were listed; nothing is there before."""

    def endpoints_listed(self, slices: Iterable[EndpointSlice]) -> None:
        """Takes in a list of all slices of endpoints."""
        self._slices = {each.name: each for each in slices if each.service == self._service.name}
        self._listed()

    def endpoints_told(self, kind: str, told: EndpointSlice) -> None:
        """One is there, was changed, or is DELETED."""
        assert self._slices is not None
        self._slices.pop(told.name, None)
        if kind != "DELETED" and told.service == self._service.name:
            self._slices[told.name] = told

    def nodes_listed(self, nodes: Iterable[Placed]) -> None:
        """Takes in a list of all nodes with devices."""
        self._placed = {node.name: node for node in nodes}
        self._listed()

    def node_told(self, kind: str, node: Placed) -> None:
        """One is there, was changed, or is DELETED."""
        assert self._placed is not None
        self._placed.pop(node.name, None)
        if kind != "DELETED":
            self._placed[node.name] = node

    def nodes(self, query: Query) -> list[str]:
        """The nodes that have to be asked, by name."""
        return sorted(node.name for node in (self._placed or {}).values() if _concerns(node, query))

    def addresses(self, node: str) -> tuple[str, ...]:
        """Where a node's manager may be asked; none where that is not known."""
        found = [address for each in (self._slices or {}).values() for name, address in each.managers if name == node]
        return tuple(dict.fromkeys(found))[:ADDRESSES_MAX]

    def _listed(self) -> None:
        if self._slices is not None and self._placed is not None:
            self.known.set()


def _concerns(node: Placed, query: Query) -> bool:
    if query.pod:
        return (query.namespace, query.pod) in node.pods
    return not query.namespace or any(namespace == query.namespace for namespace, _ in node.pods)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Metadata(_Part):
    name: Name = Field(min_length=1)
    labels: dict[str, str] = {}


class _Conditions(_Part):
    ready: bool | None = None


class _Endpoint(_Part):
    addresses: list[IPvAnyAddress] = Field(min_length=1)
    conditions: _Conditions = _Conditions()
    node: Name = Field(default="", alias="nodeName")


class _Port(_Part):
    port: int | None = None


class _EndpointSlice(_Part):
    metadata: _Metadata
    endpoints: list[_Endpoint] | None = None
    ports: list[_Port] | None = None


def parse_endpoints(thing: object) -> EndpointSlice:
    """An EndpointSlice from its plain JSON. Raises InvalidRequest for what is none."""
    try:
        told = _EndpointSlice.model_validate(thing)
    except ValidationError as error:
        raise InvalidRequest(f"expected an EndpointSlice: {first_fault(error)}") from error
    port = next((each.port for each in told.ports or () if each.port is not None), None)
    endpoints = sorted(told.endpoints or (), key=lambda each: each.conditions.ready is False)
    managers = tuple(
        (each.node, join_address(str(each.addresses[0]), port)) for each in endpoints if each.node and port
    )
    return EndpointSlice(told.metadata.name, told.metadata.labels.get(SERVICE_LABEL, ""), managers)


def parse_placed(thing: object) -> Placed:
    """An AcceleratorNode from its plain JSON; one that tells nonsense has no allocations. Raises InvalidRequest for
    what has no name."""
    name = name_of(thing)
    try:
        allocations = status_of(thing).allocations
    except InvalidRequest:
        # The assigner's log says so, and its metrics count it.
        return Placed(name, frozenset())
    return Placed(name, frozenset((each.pod.namespace, each.pod.name) for each in allocations if each.pod.name))
