"""AcceleratorNodes as the assigner knows them: what a node has, and which allocations its plugin lists. Each is written
by a node about itself, and nothing that one says reaches further than that node."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from edgeshare.contract.accelerator_kind import GPU, KINDS, AcceleratorKind, kind_of
from edgeshare.contract.devices import is_device_id
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.labels import label_value
from edgeshare.contract.units import MAX_DEVICES_PER_ALLOCATION, MEMORY_MIB_MAX, UNITS_PER_DEVICE
from edgeshare.kube.faults import first_fault
from sharemgr.cluster.state.books import AcceleratorNode, Listed
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.request import Take

# As the custom resource definition has them (deploy/chart/crds/acceleratornodes.yaml).
DEVICES_MAX = 256
ALLOCATIONS_MAX = 25_600


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class _Device(_Part):
    id: str
    kind: str
    model: str
    memory_mib: int = Field(alias="memoryMiB", ge=0, le=MEMORY_MIB_MAX)
    healthy: bool


class _Pod(_Part):
    uid: str = ""


class _Allocation(_Part):
    id: str
    devices: list[str] = Field(min_length=1, max_length=MAX_DEVICES_PER_ALLOCATION)
    units_each: int = Field(alias="unitsEach", ge=1, le=UNITS_PER_DEVICE)
    memory_mib: int = Field(alias="memoryMiB", ge=0, le=MEMORY_MIB_MAX)
    pod: _Pod = _Pod()


class _Status(_Part):
    devices: list[_Device] = Field(default=[], max_length=DEVICES_MAX)
    allocations: list[_Allocation] = Field(default=[], max_length=ALLOCATIONS_MAX)


class _Metadata(_Part):
    name: str = Field(min_length=1)


class _Node(_Part):
    metadata: _Metadata


class _Told(_Part):
    status: _Status = _Status()


def name_of(thing: object) -> str:
    """What an AcceleratorNode is called, from its plain JSON. Raises InvalidRequest for what has no name."""
    try:
        return _Node.model_validate(thing).metadata.name
    except ValidationError as error:
        raise InvalidRequest(f"expected an AcceleratorNode with metadata.name: {first_fault(error)}") from error


def parse_node(thing: object) -> AcceleratorNode:
    """An AcceleratorNode from its plain JSON; one that tells nonsense has no devices, and a fault. Raises
    InvalidRequest for what has no name."""
    name = name_of(thing)
    try:
        return _node(name, _Told.model_validate(thing).status)
    except ValidationError as error:
        return AcceleratorNode(Inventory(name, ()), fault=f"AcceleratorNode {name}: {first_fault(error)}")
    except InvalidRequest as error:
        return AcceleratorNode(Inventory(name, ()), fault=f"AcceleratorNode {name}: {error}")


def _node(name: str, status: _Status) -> AcceleratorNode:
    ids = [device.id for device in status.devices]
    for each in ids:
        if not is_device_id(each):
            raise InvalidRequest(f"names what cannot be a device: {each[:80]!r}")
    if len(set(ids)) != len(ids):
        raise InvalidRequest("names a device twice")
    kinds = {device.id: kind_of(device.kind) for device in status.devices}
    models = {model: label_value(model) for model in {device.model for device in status.devices}}
    devices = tuple(
        Device(each.id, models[each.model], each.memory_mib, each.healthy, kind.accelerator)
        for each in status.devices
        if (kind := kinds[each.id]) is not None
    )
    allocations = tuple(
        Listed(each.id, each.pod.uid, takes) for each in status.allocations if (takes := _takes(each, kinds))
    )
    return AcceleratorNode(Inventory(name, devices), allocations)


def _takes(allocation: _Allocation, kinds: Mapping[str, AcceleratorKind | None]) -> tuple[Take, ...]:
    """What it has of devices of the kinds that are known here. One that its node has no more is of the kind that the
    allocation's name tells."""
    takes = []
    for each in allocation.devices:
        kind = kinds[each] if each in kinds else _named(allocation)
        if kind is not None:
            takes.append(Take(each, allocation.units_each, allocation.memory_mib, kind.accelerator))
    return tuple(takes)


def _named(allocation: _Allocation) -> AcceleratorKind:
    return next((kind for kind in KINDS.values() if kind.owns(allocation.id)), GPU)
